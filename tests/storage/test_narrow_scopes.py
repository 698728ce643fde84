"""A narrow scope that the graph of vectors is walked for: above the limit up to which every distance is computed."""

from __future__ import annotations

from evals.bench.loading import fill
from evals.bench.synthetic_corpus import SyntheticCorpus
from workbench import Workbench
from workbench.storage.ranking import EXACT_UP_TO, in_scope, nearest
from workbench.storage.rows import scope_parameters, scope_statement, vector_value
from workbench.storage.statements import statement
from workbench.types import ResolvedScope

PASSAGES, WANTED, QUESTIONS = 4_000, 10, 20


def test_the_walk_for_one_percent_finds_what_computing_every_distance_finds(wb: Workbench) -> None:
    synthetic = SyntheticCorpus(wb.corpus.encoder().dimensions)
    filled = fill(wb, PASSAGES, synthetic)
    name, scope = filled.index.name, ResolvedScope(source_ids=(filled.small.id,))
    agreed, questions = 0, synthetic.questions(QUESTIONS)
    with wb.corpus.store(filled.index).reading() as connection:
        connection.execute("SET enable_sort = off")  # as many passages as the planner wants the graph for take minutes
        for _, vector in questions:
            exact = nearest(connection, name, vector, scope, WANTED, EXACT_UP_TO).scores
            walked = nearest(connection, name, vector, scope, WANTED, EXACT_UP_TO + 1).scores
            assert len(walked) == len(exact) == WANTED
            assert in_scope(connection, name, scope, list(walked)) == set(walked)
            agreed += len(exact.keys() & walked.keys())
        walk = statement("vector_filtered", name, scope=scope_statement(scope))
        values = {"vector": vector_value(questions[0][1]), "limit": WANTED, **scope_parameters(scope)}
        plan = connection.execute(b"EXPLAIN " + walk.as_bytes(connection), values).fetchall()
        connection.execute("RESET enable_sort")
    assert f"data_{name}_embedding_idx" in str(plan), plan
    assert agreed >= 0.95 * WANTED * QUESTIONS
