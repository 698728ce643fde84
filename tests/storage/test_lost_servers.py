"""Reads whose server goes away meanwhile: once more by the primary, or over the other shards, and with a note."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from llama_index.core.schema import MetadataMode, QueryBundle
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from evals.gateway import weighed_question
from tests.storage.birds import fill
from tests.storage.relay import Relay
from tests.storage.replica import Replica
from tests.storage.shards import Server
from tests.storage.test_read_replica import opened, replica
from tests.storage.test_server_states import commands
from workbench import Workbench
from workbench.errors import StorageError
from workbench.retrieval.ask import Ask
from workbench.retrieval.run import REPLICA_AWAY
from workbench.services.outages import once_more
from workbench.settings import Settings
from workbench.storage.database import only_row

__all__ = ["commands", "replica"]
UNSEEN = "shard 2"


@pytest.fixture
def bereft(cluster: Workbench, fresh: list[Server], make_settings: Callable[..., Settings]) -> Iterator[Workbench]:
    """A workbench that was opened after one of its two shards died, and has not noticed yet."""
    fill(cluster)
    fresh[2].kill()
    with Workbench.open(settings=make_settings(database_url=fresh[0].url)) as wb:
        yield wb


def test_an_answer_goes_over_the_shards_that_are_there(bereft: Workbench) -> None:
    answer = bereft.ask("who reads a book by night?")
    assert answer.passages
    assert any(UNSEEN in note for note in answer.degraded)


def test_a_query_engine_goes_over_the_shards_that_are_there(bereft: Workbench) -> None:
    nodes = bereft.query_engine("hybrid", limit=50).retrieve(QueryBundle("herons in the reeds"))
    assert 0 < len(nodes) < 36
    assert all(UNSEEN in node.node.metadata["degraded"] for node in nodes)
    assert not any("degraded" in node.node.get_content(MetadataMode.LLM) for node in nodes)


def test_an_explanation_goes_over_the_shards_that_are_there(bereft: Workbench) -> None:
    result, explained = bereft.explaining.explain_hits("herons in the reeds", Ask("hybrid", 5))
    assert [one.passage_id for one in explained] == [hit.passage_id for hit in result]
    assert all(any(UNSEEN in note for note in one.notes) for one in explained)


def test_an_explanation_leaves_out_the_strategy_that_cannot_ask_shards(cluster: Workbench) -> None:
    fill(cluster)
    elsewhere = cluster.explain("herons", cluster.search("herons")[0].passage_id).elsewhere
    assert "keyword" in elsewhere and "llamaindex-hybrid" not in elsewhere


def test_a_document_on_a_shard_that_is_away_is_explained_by_that(bereft: Workbench) -> None:
    found = {hit.document_id for hit in bereft.search("herons", limit=200)}
    lost = next(document for document in bereft.documents.list() if document.id not in found)
    assert UNSEEN in bereft.explain("herons", document_id=lost.id).reason


def test_archives_are_searched_on_the_shards_that_are_there(
    cluster: Workbench,
    fresh: list[Server],
    commands: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "archives"
    for number in range(20):
        note = folder / "research" / f"2024-01-{number + 1:02}" / "note.md"
        note.parent.mkdir(parents=True)
        note.write_text(f"# Note {number}\n\nHerons and storks, part {number}.")
    monkeypatch.setenv("WORKBENCH_ARCHIVES_DIR", str(folder))
    assert commands("archives", "refresh") == 0
    fresh[2].kill()
    assert commands("archives", "search", "herons") == 0
    shown = capsys.readouterr()
    assert "Note" in shown.out and UNSEEN in shown.err


def test_nothing_is_learned_from_a_part_of_the_passages(bereft: Workbench) -> None:
    with pytest.raises(StorageError, match=r"Learning needs every passage, but shard 2 .* start it"):
        weighed_question(bereft, "herons in the reeds", Ask())


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


@pytest.mark.parametrize(
    ("asked", "strategy"),
    [
        (searched, "hybrid"),
        (searched, "rerank"),
        (searched, "llamaindex-hybrid"),
        (answered, "rerank"),
        (explained, "rerank"),
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
        assert asked(wb, strategy) == (REPLICA_AWAY,)
        assert killed.is_set()


def test_a_read_that_stands_in_the_way_of_the_log_is_done_by_the_primary(shared_home: Path, replica: Replica) -> None:
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
                return only_row(connection.execute(sql.SQL(read)))["title"]

        asking = threading.Thread(target=lambda: done.append(once_more(wb.corpus, reading)))
        asking.start()
        with psycopg.connect(replica.url, autocommit=True) as there:
            asleep = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid <> pg_backend_pid()"
            while there.execute(asleep).fetchone() is None:
                there.execute("SELECT pg_sleep(0.05)")
        with psycopg.connect(replica.primary_url) as primary:
            primary.execute("LOCK TABLE documents IN ACCESS EXCLUSIVE MODE")
        asking.join()
        assert done == ["Herons"]
        assert wb.search("herons").degraded == (REPLICA_AWAY,)
