"""Real servers for the tests of clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

from tests.storage.shards import Server, servers
from workbench import Workbench
from workbench.settings import Settings


@pytest.fixture(scope="module")
def running() -> Iterator[list[Server]]:
    """Four servers; a test takes as many of them as it needs."""
    with servers(4) as made:
        yield made


@pytest.fixture
def fresh(running: list[Server]) -> list[Server]:
    """The servers, each up and with an empty database; what a failed test left to follow another one is let go."""
    for server in running:
        if not (server.folder / "data").exists():
            server.create()
        if not (server.folder / "data" / "postmaster.pid").exists():
            server.start()
        with psycopg.connect(server.url, autocommit=True) as connection:
            for (name,) in connection.execute("SELECT subname FROM pg_subscription").fetchall():
                for step in ("ALTER SUBSCRIPTION {} DISABLE", "ALTER SUBSCRIPTION {} SET (slot_name = NONE)"):
                    connection.execute(sql.SQL(step).format(sql.Identifier(name)))
                connection.execute(sql.SQL("DROP SUBSCRIPTION {}").format(sql.Identifier(name)))
    for server in running:
        with psycopg.connect(server.url.replace("/postgres?", "/template1?"), autocommit=True) as connection:
            while connection.execute("SELECT FROM pg_replication_slots WHERE active").fetchone():
                connection.execute("SELECT pg_sleep(0.05)")
            connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
            connection.execute("DROP DATABASE postgres WITH (FORCE)")
            connection.execute("CREATE DATABASE postgres")
    return running


@pytest.fixture
def cluster(fresh: list[Server], make_settings: Callable[..., Settings]) -> Iterator[Workbench]:
    """A workbench whose indexes lie on two shards."""
    with Workbench.open(settings=make_settings(database_url=fresh[0].url)) as wb:
        for server in fresh[1:3]:
            wb.shards.add(server.url)
        yield wb
