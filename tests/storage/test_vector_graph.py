"""Vector search of stored passages: exact up to a size, then with a graph that is measured and rebuilt."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from workbench import Workbench
from workbench.errors import Cancelled
from workbench.services.indexes import report_graph_progress
from workbench.storage import graph
from workbench.storage.database import statement
from workbench.storage.documents import NewDocument
from workbench.storage.graph import (
    EXACT_UP_TO,
    GRAPH_SHAPES,
    SERVING_PARAMETERS,
    GraphShape,
    measure_recall,
    parse_graph_state,
)
from workbench.storage.passages import NewPassage, find_nearest_passages, insert_passages, parse_sent_vector
from workbench.storage.ranking import nearest
from workbench.types import Index, ResolvedScope

WANTED = 10
TICKET = (
    "# Ticket {0}\n\nOpened on 2031-0{1}-1{1}. The {2} on floor {1} does not work. Please send somebody to look at it."
)
THINGS = ("printer", "badge", "lamp", "door", "window", "chair", "lift", "alarm", "camera", "desk")


def _store(wb: Workbench, vectors: NDArray[np.float32], first: int = 0) -> Index:
    """Store passages of these vectors, one per document, as an ingest writes them."""
    corpus = wb.corpus
    source, index = wb.sources.ensure("made"), corpus.index()
    with corpus.database.transaction() as connection:
        passages: list[NewPassage] = []
        for place in range(first, first + len(vectors)):
            document = NewDocument(
                source_id=source.id, key=f"d{place}", title=f"D{place}", text=f"text {place}", content_hash=str(place)
            )
            document_id, *_ = corpus.documents.write(connection, document)
            passages.append(NewPassage(document_id, source.id, f"text {place}", "", 0, 5, 0, "english"))
            corpus.indexes.record_document(connection, index.name, document_id, str(place), 1)
        insert_passages(connection, index.name, passages, vectors, [None] * len(passages))
    return index


def _vectors(wb: Workbench, groups: Sequence[tuple[int, float]], seed: int = 5) -> NDArray[np.float32]:
    """Return groups of vectors: (count, spread) scatter around a centre; a small spread makes them nearly equal."""
    rng, dimensions = np.random.default_rng(seed), wb.corpus.encoder().dimensions
    made = [
        rng.standard_normal(dimensions) + spread * rng.standard_normal((count, dimensions)) for count, spread in groups
    ]
    vectors = np.concatenate(made).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _lost(wb: Workbench, index: Index) -> int:
    """Return how many of a third of the passages are not found by their own vector, with either statement."""
    lost, size = 0, EXACT_UP_TO + 1 if index.has_graph else 0
    with wb.corpus.store(index).reading() as connection:
        query = f"SELECT id, halfvec_send(embedding) AS sent FROM data_{index.name}"
        for row in connection.execute(query.encode()).fetchall()[::3]:
            vector = parse_sent_vector(row["sent"])
            scores = nearest(connection, index.name, vector, ResolvedScope(), WANTED, size).scores
            shown = {passage.id: score for passage, score in find_nearest_passages(connection, index, vector, WANTED)}
            lost += any(row["id"] not in found and min(found.values()) < 0.9999 for found in (scores, shown))
    return lost


def test_every_passage_of_a_small_index_is_found_by_its_own_vector(minilm_wb: Workbench) -> None:
    wb = minilm_wb
    for number in range(40):
        wb.documents.create(text=TICKET.format(number, number % 9 + 1, THINGS[number % 10]), title=f"Ticket {number}")
    wb.documents.create(text="worker-1 INFO heartbeat ok, queue empty, nothing to do. " * 150, title="Log")
    wb.documents.create(text="Herons nest in the reeds by the old mill and hunt eels at dusk.", title="Herons")
    index = wb.corpus.index()
    assert not index.has_graph
    built = wb.corpus.database.rows(b"SELECT FROM pg_indexes WHERE strpos(indexdef, 'hnsw') > 0")  # pyright: ignore
    assert built == [], "a graph that small indexes do not use slows down their writes"
    assert _lost(wb, index) == 0
    result = wb.search("where do herons nest", strategy="vector")
    assert result[0].document_title == "Herons"


def test_an_index_that_outgrows_exact_search_gets_a_graph_that_finds_its_passages(
    wb: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", 600)
    index = _store(wb, _vectors(wb, [(300, 1.0)]))
    wb.corpus.store(index).maintain_graph()
    assert wb.corpus.index().graph is None, "300 passages are searched exactly"
    _store(wb, _vectors(wb, [(300, 0.02), (300, 1.0), (100, 0.0)], seed=6), first=300)
    wb.corpus.store(index).maintain_graph()
    index = wb.corpus.index()
    state = parse_graph_state(index.graph)
    assert index.has_graph and state is not None and state.is_sound and state.passages == 1_000
    assert state.asked >= 900, "an index smaller than the sample is asked for nearly all of its passages"
    assert _lost(wb, index) <= 0.005 * state.passages
    status = next(row for row in wb.health.status()["indexes"] if row["name"] == index.name)
    assert status["has_graph"] and f"finds {state.recall:.2%} of {state.asked:,} passages" in status["vector_search"]
    assert next(check for check in wb.health.doctor() if check.name == "vector search").ok


def test_a_graph_that_loses_passages_is_rebuilt_with_more_links(wb: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", 600)
    poor = GraphShape(2, 4, 10)
    monkeypatch.setattr(graph, "GRAPH_SHAPES", (poor, *GRAPH_SHAPES))
    index = _store(wb, _vectors(wb, [(300, 1.0), (400, 0.2), (300, 1.0)]))
    said: list[str] = []
    wb.corpus.store(index).maintain_graph(said.append)
    state = parse_graph_state(wb.corpus.index().graph)
    assert state is not None and state.m > poor.m  # rebuilt
    index = wb.corpus.index()
    assert index.has_graph == state.is_sound  # if chance leaves even the largest shape poor, searches are exact
    assert index.has_graph or _lost(wb, index) == 0
    assert said[0].startswith("building the graph of 1,000 passages (m 2,") and len(said) > 2, said


def test_a_long_build_reports_how_far_it_is(wb: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", 600)
    monkeypatch.setattr(graph, "WATCH_INTERVAL_S", 0.03)
    index = _store(wb, _vectors(wb, [(2_000, 1.0)]))
    said: list[str] = []
    wb.corpus.store(index).maintain_graph(said.append)
    shares = [int(found[1]) for text in said if (found := re.search(r"building the graph of .*: (\d+)%$", text))]
    assert shares and shares == sorted(shares) and shares[0] < 100, said


def test_nearly_equal_vectors_cost_one_build_and_are_searched_exactly(
    wb: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", 1_000)
    monkeypatch.setattr(graph, "MIN_PROMISING_M", 2)
    monkeypatch.setattr(graph, "GRAPH_SHAPES", (GraphShape(2, 4, 10), *GRAPH_SHAPES))
    index = _store(wb, _vectors(wb, [(1_200, 0.02)]))
    said: list[str] = []
    wb.corpus.store(index).maintain_graph(said.append)
    _store(wb, _vectors(wb, [(200, 0.02)], seed=6), first=1_200)
    wb.corpus.store(index).maintain_graph(said.append)
    assert [text.split()[0] for text in said if not text.endswith("%")] == ["building", "measuring", "measuring"]
    state = parse_graph_state(wb.corpus.index().graph)
    assert state is not None and (state.m, state.passages, state.is_sound) == (2, 1_400, False)
    assert _lost(wb, wb.corpus.index()) == 0
    check = next(check for check in wb.health.doctor() if check.name == "vector search")
    assert not check.ok and "Searches are exact, and slower" in check.detail


def test_a_stop_ends_a_build_at_once_and_the_next_ingest_builds_the_graph(
    wb: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", 600)
    index = _store(wb, _vectors(wb, [(3_000, 0.5)]))
    with monkeypatch.context() as slow:
        slow.setattr(graph, "WATCH_INTERVAL_S", 0.05)
        slow.setattr(graph, "GRAPH_SHAPES", (GraphShape(64, 1_000, 400),))
        said: list[str] = []

        def stop(text: str) -> None:
            said.append(text)
            if text.endswith("%"):
                raise Cancelled("Stopped.")

        with pytest.raises(Cancelled):
            wb.corpus.store(index).maintain_graph(stop)
    assert len(said) == 2 and wb.corpus.index().graph is None and _lost(wb, wb.corpus.index()) == 0
    wb.documents.ingest_items(wb.sources.ensure("made").id, [])
    assert wb.corpus.index().has_graph
    with pytest.raises(Cancelled, match="what was read is kept"):
        report_graph_progress(None, 0, lambda: True)("building")


def test_a_graph_is_measured_again_after_a_large_ingest_and_unused_after_most_was_deleted(
    wb: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", 400)
    index = _store(wb, _vectors(wb, [(500, 1.0)]))
    store = wb.corpus.store(index)
    for expected, added in ((500, 20), (500, 200), (720, 0)):  # 20 more are less than a tenth
        store.maintain_graph()
        state = parse_graph_state(wb.corpus.index().graph)
        assert state is not None and state.passages == expected
        if added:
            _store(wb, _vectors(wb, [(added, 1.0)], seed=added), first=1_000 * added)
    assert wb.corpus.index().has_graph
    wb.corpus.database.rows(b"DELETE FROM documents WHERE key > 'd11'")  # pyright: ignore[reportArgumentType]
    index = wb.corpus.index()
    assert not index.has_graph and _lost(wb, index) == 0


def test_without_a_graph_that_finds_its_passages_searches_are_exact_and_doctor_reports_it(
    wb: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", 600)
    monkeypatch.setattr(graph, "GRAPH_SHAPES", (GraphShape(2, 4, 10),))
    index = _store(wb, _vectors(wb, [(300, 1.0), (400, 0.01), (300, 1.0)]))
    wb.corpus.store(index).maintain_graph()
    index = wb.corpus.index()
    assert index.graph is not None and not index.has_graph
    assert _lost(wb, index) == 0
    check = next(check for check in wb.health.doctor() if check.name == "vector search")
    assert not check.ok and "Searches are exact, and slower" in check.detail
    with wb.corpus.database.transaction() as connection:
        found, asked = measure_recall(connection, index.name, 10, 1_000)
    assert found / asked == pytest.approx(float(str(index.graph["recall"])), abs=1e-4)


def test_what_a_killed_process_left_undone_is_continued_and_reported(
    wb: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the first build, or between the measurement of a poor graph and its rebuild."""
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", 600)
    poor = GraphShape(2, 4, 10)
    index = _store(wb, _vectors(wb, [(300, 1.0), (400, 0.01), (300, 1.0)]))
    check = next(check for check in wb.health.doctor() if check.name == "vector search")
    assert check.ok and check.detail == (
        "main: exact until the next ingest, or 'workbench indexes build main', builds its graph"
    )
    with monkeypatch.context() as killed:
        killed.setattr(graph, "GRAPH_SHAPES", (poor,))
        wb.corpus.store(index).maintain_graph()
    check = next(check for check in wb.health.doctor() if check.name == "vector search")
    assert not check.ok and check.detail.endswith("Run 'workbench indexes build main' to rebuild it.")
    wb.documents.ingest_items(wb.sources.ensure("made").id, [])  # nothing changes
    state = parse_graph_state(wb.corpus.index().graph)
    assert state is not None and state.m > poor.m  # rebuilt
    index = wb.corpus.index()
    assert index.has_graph == state.is_sound  # if chance leaves even the largest shape poor, searches are exact
    assert index.has_graph or _lost(wb, index) == 0


@pytest.mark.parametrize("deleted", [False, True], ids=["all kept", "most deleted"])
def test_the_graph_of_a_process_killed_before_it_replaced_the_old_one_is_removed(
    wb: Workbench, monkeypatch: pytest.MonkeyPatch, deleted: bool
) -> None:
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", 400)
    index, database = _store(wb, _vectors(wb, [(500, 1.0)])), wb.corpus.database
    wb.corpus.store(index).maintain_graph()
    database.rows(statement("graph_build"), {"index": index.name, "m": 8, "ef_construction": 20})
    if deleted:
        database.rows(b"DELETE FROM documents WHERE key > 'd11'")  # pyright: ignore[reportArgumentType]
    wb.corpus.store(index).maintain_graph()
    query = b"SELECT indexname FROM pg_indexes WHERE strpos(indexdef, 'hnsw') > 0"
    graphs = database.rows(query)  # pyright: ignore[reportArgumentType]
    assert [row["indexname"] for row in graphs] == ["data_main_embedding_idx"]
    assert _lost(wb, wb.corpus.index()) == 0


def test_an_index_that_is_small_again_is_not_called_lossy(wb: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", 600)
    monkeypatch.setattr(graph, "GRAPH_SHAPES", (GraphShape(2, 4, 10),))
    index = _store(wb, _vectors(wb, [(300, 1.0), (400, 0.01), (300, 1.0)]))
    wb.corpus.store(index).maintain_graph()
    assert not next(check for check in wb.health.doctor() if check.name == "vector search").ok
    wb.corpus.database.rows(b"DELETE FROM documents WHERE key > 'd5'")  # pyright: ignore[reportArgumentType]
    check = next(check for check in wb.health.doctor() if check.name == "vector search")
    assert (check.ok, check.detail) == (True, "main: exact")
