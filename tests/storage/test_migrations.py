"""Migrations: once, in order, under a lock."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from workbench.errors import OtherVersion, StorageError
from workbench.storage.migrate import list_migrations, migrate

MIGRATE = "import sys; from workbench.storage.migrate import migrate; print(*migrate(sys.argv[1]))"


@pytest.fixture
def encoding() -> str:
    return "UTF8"


@pytest.fixture
def empty_database(server_url: str, encoding: str) -> Iterator[str]:
    """A database without any of our tables."""
    name = f"empty_{uuid.uuid4().hex[:10]}"
    made = "CREATE DATABASE {} ENCODING {} LOCALE 'C' TEMPLATE template0"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL(made).format(sql.Identifier(name), sql.Literal(encoding)))
    yield psycopg.conninfo.make_conninfo(server_url, dbname=name)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_two_processes_that_start_together_migrate_once(empty_database: str) -> None:
    command = [sys.executable, "-c", MIGRATE, empty_database]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    ran = [process.communicate(timeout=60)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(ran, key=len) == [[], [name for _, name, _ in list_migrations()]]


def test_a_second_start_runs_nothing(database_url: str) -> None:
    assert migrate(database_url) == []


def test_a_migration_that_was_changed_after_it_ran_is_refused(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE schema_migrations SET checksum = 'other' WHERE number = 0")
    sentence = (
        r"another version: schema\.sql has changed since it was applied to this database.*'workbench export FILE'"
    )
    with pytest.raises(OtherVersion, match=sentence):
        migrate(database_url)


def test_a_database_from_before_the_first_release_is_refused(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE schema_migrations SET name = '0001_corpus.sql', number = 1")
    with pytest.raises(OtherVersion, match=r"from before the first release.*'workbench export FILE'"):
        migrate(database_url)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_every_character_is_refused(empty_database: str, encoding: str) -> None:
    sentence = rf"has the encoding {encoding} instead of UTF8; create one with 'createdb"
    with pytest.raises(StorageError, match=sentence):
        migrate(empty_database)
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("SELECT to_regclass('schema_migrations')").fetchone() == (None,)


def test_migrations_are_numbered_without_collision() -> None:
    numbers = [number for number, _, _ in list_migrations()]
    assert numbers == sorted(set(numbers)) and numbers[0] == 0
