"""Searches continue while another process creates, switches and drops indexes; the next one uses the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from workbench import Workbench
from workbench.errors import NotFound, StorageError
from workbench.settings import Settings
from workbench.storage.documents import NewDocument
from workbench.types import Scope

STRATEGIES = ["vector", "keyword", "hybrid", "rerank", "feedback", "mmr", "window", "auto-merge", "llamaindex-hybrid"]
DOCS = {f"d{n}.md": f"# Topic {n}\n\n" + " ".join(f"Plum {p} is number {n}." for p in range(12)) for n in range(4)}


@pytest.fixture
def filled(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """The process that changes indexes: four documents in "main" and in "other"."""
    wb.ingest(folder(DOCS), source="Topics")
    wb.indexes.create("other", chunker="sentence", options={"size": 16})
    wb.indexes.build("other")
    return wb


@pytest.fixture
def searcher(filled: Workbench, make_settings: Callable[..., Settings]) -> Iterator[Workbench]:
    """Another process's workbench on the same database."""
    workbench = Workbench.open(settings=make_settings())
    yield workbench
    workbench.close()


def found(workbench: Workbench, strategy: str, index: str | None = None) -> set[str]:
    """Return the passages of a strategy for a question that each of them answers."""
    return {hit.passage_id for hit in workbench.search("number of the plum", strategy=strategy, index=index, limit=20)}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_new_default_serves_the_next_search(filled: Workbench, searcher: Workbench, strategy: str) -> None:
    before = found(searcher, strategy)
    filled.indexes.set_default("other")
    after = searcher.search("number of the plum", strategy=strategy, limit=20)
    assert after.index == "other" and {hit.passage_id for hit in after} == found(filled, strategy, "other") != before
    assert searcher.compare("number of the plum", [strategy]).strategies[strategy].index == "other"
    filled.indexes.delete("main")
    assert searcher.search("plum", strategy=strategy).index == "other"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_dropped_index_is_named_and_one_built_again_is_searched(
    filled: Workbench, searcher: Workbench, strategy: str
) -> None:
    assert found(searcher, strategy, "other")
    filled.indexes.delete("other")
    with pytest.raises(NotFound, match=r"Index not found: other\. Valid indexes: 'main'"):
        searcher.search("plum", strategy=strategy, index="other")
    filled.indexes.create("other", chunker="token", options={"size": 16})
    assert not searcher.search("plum", strategy=strategy, index="other")  # made, and not built yet
    filled.indexes.build("other")
    assert found(searcher, strategy, "other") == found(filled, strategy, "other")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_index_that_comes_back_under_its_name_shows_what_it_holds_now(
    filled: Workbench, searcher: Workbench, strategy: str
) -> None:
    before = found(searcher, strategy, "other")
    filled.indexes.delete("other")
    filled.indexes.create("other", chunker="token", options={"size": 24})
    filled.indexes.build("other")
    assert found(searcher, strategy, "other") == found(filled, strategy, "other") != before


def test_anyone_who_switches_the_default_is_reported_what_each_index_lacks(
    filled: Workbench, folder: Callable[..., Path]
) -> None:
    assert not filled.search("plum").degraded and not filled.search("plum", index="other").degraded
    filled.indexes.set_default("other")
    filled.ingest(folder({"new.md": "A quince is new."}, "later"))  # goes into the default index, now "other"
    assert not filled.search("quince").degraded
    assert filled.search("plum", index="main").degraded == (
        "main lacks 1 document; run 'workbench indexes build main'",
    )


def test_a_search_immediately_finds_documents_of_another_process(
    filled: Workbench, searcher: Workbench, folder: Callable[..., Path]
) -> None:
    lacks = "other lacks 1 document; run 'workbench indexes build other'"
    assert [searcher.search("plum", index="other").degraded for _ in range(2)] == [(), ()]
    filled.ingest(folder({"new.md": "A plum is new."}, "later"))
    assert [searcher.search("plum", index="other").degraded for _ in range(2)] == [(lacks,), (lacks,)]
    filled.indexes.build("other")
    assert searcher.search("plum", index="other").degraded == ()
    filled.indexes.delete("other")
    filled.indexes.create("other", chunker="token")
    assert (
        "other lacks 5 documents; run 'workbench indexes build other'"
        in searcher.search("plum", index="other").degraded
    )


def test_what_was_written_before_an_index_was_found_complete_and_committed_after_it_is_noticed(
    filled: Workbench, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.services.search.MAX_AGE_S", 0.5)
    source = filled.sources.list()[0].id
    with filled.corpus.database.transaction() as connection:
        late = NewDocument(source_id=source, key="late", title="Late", text="A plum comes late.", content_hash="late")
        filled.corpus.documents.write(connection, late)
        filled.ingest(folder({"new.md": "A plum is new."}, "later"), source="Later", index="other")
        assert filled.search("plum", index="other").degraded == ()
    deadline = time.monotonic() + 20
    while not filled.search("plum", index="other").degraded:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert "other lacks 1 document;" in filled.search("plum", index="other").degraded[0]


def test_the_vector_strategy_shows_the_same_with_and_without_a_scope(filled: Workbench) -> None:
    everything = filled.search("number 3", strategy="vector", limit=5, index="other")
    scoped = filled.search("number 3", strategy="vector", limit=5, index="other", scope=Scope(sources=["Topics"]))
    # The graph computes in 4 bytes and the small scope in 8: of passages whose scores differ by less than a millionth
    # either may come first, and the fifth may be another. A passage that both show is alike in both.
    assert [round(hit.score, 6) for hit in everything] == [round(hit.score, 6) for hit in scoped]
    by_graph = {hit.passage_id: (round(hit.score, 6), hit.metadata) for hit in everything}
    exactly = {hit.passage_id: (round(hit.score, 6), hit.metadata) for hit in scoped}
    shared = by_graph.keys() & exactly.keys()
    assert len(shared) >= 3
    assert {key: by_graph[key] for key in shared} == {key: exactly[key] for key in shared}
    assert len(everything) == 5 and everything[0].document_title == "Topic 3"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_refused_statement_is_one_sentence_whatever_asks(filled: Workbench, database_url: str, strategy: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DROP TABLE data_main")
    with pytest.raises(StorageError, match=r"The database rejected a statement: relation .* does not exist"):
        filled.search("plum", strategy=strategy)
