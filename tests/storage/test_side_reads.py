"""The legs of a search are read in parallel if a core and a connection are free."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest
from psycopg import sql

from workbench import Workbench
from workbench.errors import StorageError
from workbench.settings import Settings
from workbench.storage.database import Connection, Database
from workbench.storage.store import read_in_parallel

BACKEND = sql.SQL("SELECT pg_backend_pid() AS pid")


def backend(connection: Connection) -> int:
    row = connection.execute(BACKEND).fetchone()
    assert row is not None
    return row["pid"]


@pytest.fixture
def grown(database_url: str) -> Database:
    """A database whose pool has two open connections."""
    database = Database(database_url, pool_size=2)
    both_lent = threading.Barrier(2)

    def borrow() -> None:
        with database.reading():
            both_lent.wait(30)

    threads = [threading.Thread(target=borrow) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return database


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a machine of one core reads one after the other")
def test_a_side_read_continues_while_its_search_waits_for_something_else(grown: Database) -> None:
    with grown.reading() as connection:
        connection.execute(sql.SQL("SELECT pg_advisory_lock(77)"))

        def read(other: Connection) -> int:
            other.execute(sql.SQL("SELECT pg_advisory_lock(77)"))  # for ever, if it were read in turn
            other.execute(sql.SQL("SELECT pg_advisory_unlock(77)"))
            return backend(other)

        result = read_in_parallel(grown, connection, read)
        connection.execute(sql.SQL("SELECT pg_advisory_unlock(77)"))
        assert result() != backend(connection)
    grown.close()


def test_a_read_with_nothing_free_goes_over_the_connection_at_hand(database_url: str) -> None:
    database = Database(database_url, pool_size=1)
    with database.reading() as connection:
        assert read_in_parallel(database, connection, backend)() == backend(connection)
    database.close()


def test_a_side_read_that_is_refused_reports_it_and_gives_its_connection_back(grown: Database) -> None:
    def refused(other: Connection) -> int:
        other.execute(sql.SQL("SELECT nothing FROM nowhere"))
        return 0

    for _ in range(5):
        with pytest.raises(StorageError, match="nowhere"), grown.reading() as connection:
            read_in_parallel(grown, connection, refused)()
    with grown.reading() as connection:
        assert backend(connection)
    grown.close()


def test_a_search_finds_the_same_with_one_connection_and_with_many(make_settings: Callable[..., Settings]) -> None:
    with Workbench.open(settings=make_settings(pool_size=1)) as alone:
        for name, text in {
            "Herons": "Herons stand in the reeds and wait for fish.",
            "Reeds": "Reeds were cut in winter, when the herons had left.",
            "Boats": "Boats of the harbour are tarred in spring.",
        }.items():
            alone.documents.create(text=text, title=name)
        questions = ("herons in the reeds", "tarred boats", "what happens in winter?")
        one = [alone.search(question, "hybrid") for question in questions]
        with Workbench.open(settings=make_settings(pool_size=8)) as beside:
            for _ in range(3):  # the pool grows with the first ones
                many = [beside.search(question, "hybrid") for question in questions]
                assert [list(result.results) for result in many] == [list(result.results) for result in one]
