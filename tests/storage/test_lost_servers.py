"""Reads that lose the replica are repeated on the primary, with a note."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from llama_index.core.schema import QueryBundle
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.storage.relay import Relay
from tests.storage.replica import Replica
from tests.storage.test_read_replica import opened, replica
from workbench import Workbench
from workbench.retrieval.pipeline import REPLICA_UNAVAILABLE
from workbench.services.corpus import retry_on_primary
from workbench.storage.database import fetch_one

__all__ = ["replica"]


def searched(wb: Workbench, strategy: str) -> tuple[str, ...]:
    found = wb.search("herons reeds", strategy)
    assert [hit.document_title for hit in found] == ["Herons"]
    return found.degraded


def answered(wb: Workbench, strategy: str) -> tuple[str, ...]:
    answer = wb.ask("where do herons stand?", strategy)
    assert [hit.document_title for hit in answer.passages] == ["Herons"]
    return answer.degraded


def explained(wb: Workbench, strategy: str) -> tuple[str, ...]:
    said = wb.explain("herons reeds", strategy=strategy, document_id=wb.documents.list()[0].id)
    assert said.rank == 1
    return said.notes


def retrieved(wb: Workbench, strategy: str) -> tuple[str, ...]:
    nodes = wb.query_engine(strategy).retrieve(QueryBundle("herons reeds"))
    assert [node.node.metadata["document_title"] for node in nodes] == ["Herons"]
    return wb.search("herons", strategy).degraded


@pytest.mark.parametrize(
    ("asked", "strategy"),
    [
        (searched, "hybrid"),
        (searched, "rerank"),
        (searched, "llamaindex-hybrid"),
        (answered, "rerank"),
        (explained, "rerank"),
        (retrieved, "hybrid"),
    ],
)
def test_a_replica_that_dies_between_two_statements_of_a_question_is_left_for_the_primary(
    shared_home: Path, replica: Replica, asked: Callable[[Workbench, str], tuple[str, ...]], strategy: str
) -> None:
    armed, killed, turn = threading.Event(), threading.Event(), threading.Lock()

    def kill() -> None:
        with turn:
            if armed.is_set() and not killed.is_set():
                killed.set()
                replica.kill()

    relay = Relay(Path(conninfo_to_dict(replica.url)["host"]) / ".s.PGSQL.5432", before=(b"<=>", kill))
    by_relay = replace(replica, url=make_conninfo(replica.url, host="127.0.0.1", port=relay.port))
    with ExitStack() as stack:
        stack.callback(relay.cut)
        wb = stack.enter_context(opened(shared_home, by_relay))
        wb.documents.create(text="Herons stand in the reeds.", title="Herons")
        replica.catch_up()
        assert wb.search("herons", "keyword").degraded == ()
        armed.set()
        assert asked(wb, strategy) == (REPLICA_UNAVAILABLE,)
        assert killed.is_set()


def test_a_read_that_blocks_of_the_log_is_done_by_the_primary(shared_home: Path, replica: Replica) -> None:
    with psycopg.connect(replica.url, autocommit=True) as there:
        there.execute("ALTER SYSTEM SET max_standby_streaming_delay = 0")
        there.execute("SELECT pg_reload_conf()")
    read = "SELECT title, CASE WHEN pg_is_in_recovery() THEN pg_sleep(200) END FROM documents"
    with opened(shared_home, replica) as wb:
        wb.documents.create(text="Herons stand in the reeds.", title="Herons")
        replica.catch_up()
        done: list[str] = []

        def reading() -> str:
            with wb.corpus.reader.reading() as connection:
                return fetch_one(connection.execute(sql.SQL(read)))["title"]

        asking = threading.Thread(target=lambda: done.append(retry_on_primary(wb.corpus, reading)))
        asking.start()
        with psycopg.connect(replica.url, autocommit=True) as there:
            asleep = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid <> pg_backend_pid()"
            while there.execute(asleep).fetchone() is None:
                there.execute("SELECT pg_sleep(0.05)")
        with psycopg.connect(replica.primary_url) as primary:
            primary.execute("LOCK TABLE documents IN ACCESS EXCLUSIVE MODE")
        asking.join()
        assert done == ["Herons"]
        assert wb.search("herons").degraded == (REPLICA_UNAVAILABLE,)
