"""A narrow scope searched with the vector graph, above the limit up to which every distance is computed."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest

from benchmarks.loading import fill_corpus
from benchmarks.synthetic_corpus import SyntheticCorpus
from workbench import Workbench
from workbench.storage.database import statement
from workbench.storage.graph import SERVING_PARAMETERS
from workbench.storage.passages import bind_vector, choose_scope_predicate, scope_parameters
from workbench.storage.ranking import EXACT_UP_TO, filter_passages, nearest
from workbench.types import ResolvedScope

PASSAGES, WANTED, QUESTIONS = 4_000, 10, 20


def test_the_walk_for_one_percent_finds_what_computing_every_distance_finds(
    wb: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", PASSAGES - 1)
    synthetic = SyntheticCorpus(wb.corpus.encoder().dimensions)
    filled = fill_corpus(wb, PASSAGES, synthetic)
    name, scope = filled.index.name, ResolvedScope(source_ids=(filled.small.id,))
    agreed, questions = 0, synthetic.questions(QUESTIONS)
    with wb.corpus.store(filled.index).reading() as connection:
        connection.execute("SET enable_sort = off")  # as many passages as the planner wants the graph for take minutes
        for _, vector in questions:
            exact = nearest(connection, name, vector, scope, WANTED, EXACT_UP_TO).scores
            walked = nearest(connection, name, vector, scope, WANTED, EXACT_UP_TO + 1).scores
            assert len(walked) == len(exact) == WANTED
            assert filter_passages(connection, name, scope, list(walked)) == set(walked)
            agreed += len(exact.keys() & walked.keys())
        walk = statement("vector_filtered", name, scope=choose_scope_predicate(scope), breadth="breadth_by_size")
        values = {"vector": bind_vector(questions[0][1]), "limit": WANTED, "index": name, **scope_parameters(scope)}
        plan = connection.execute(b"EXPLAIN " + walk.as_bytes(connection), values).fetchall()
        connection.execute("RESET enable_sort")
    assert f"data_{name}_embedding_idx" in str(plan), plan
    assert agreed >= 0.95 * WANTED * QUESTIONS


@pytest.mark.parametrize(("passages", "breadth"), [(159_000, "100"), (1_000_000, "625"), (9_000_000, "1000")])
def test_the_walk_keeps_more_in_view_in_a_larger_index(wb: Workbench, passages: int, breadth: str) -> None:
    wb.documents.create(text="A heron stands in the reeds.")
    vector = np.ones(wb.corpus.encoder().dimensions, np.float32)
    with psycopg.connect(wb.corpus.database.url) as connection:
        connection.execute("UPDATE index_statistics SET passages = %s", (passages,))
    with wb.corpus.database.transaction() as connection:
        assert len(nearest(connection, "main", vector, ResolvedScope(), WANTED, passages).scores) == 1
        assert connection.execute("SHOW hnsw.ef_search").fetchall() == [{"hnsw.ef_search": breadth}]
    with wb.corpus.database.transaction() as connection:
        assert connection.execute("SHOW hnsw.ef_search").fetchall() == [{"hnsw.ef_search": "100"}]
