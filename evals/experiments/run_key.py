"""The key under which a run's answers are kept: a hash of everything that they depend on."""

from __future__ import annotations

from collections.abc import Mapping

from evals.experiments.fingerprint import hash_of, strategy_hash
from evals.experiments.strategy_run import RankedPassage, Ranking
from evals.gateway import IndexedCorpus, NewRun, Row
from evals.test_set import TestSet
from workbench.types import JsonObject, ParameterValue


def run_values(
    test_set: TestSet, corpus: IndexedCorpus, strategy: str, parameters: Mapping[str, ParameterValue], depth: int
) -> NewRun:
    """Return the row of a run that ranks ``depth`` documents for every answerable question, with its key."""
    hashes = {
        "corpus_hash": corpus.corpus_hash,
        "index_hash": corpus.index_hash,
        "strategy_hash": strategy_hash(strategy, parameters),
        "questions_hash": test_set.asked_hash,
    }
    settings: JsonObject = {
        name: getattr(corpus.index, name) for name in ("chunker", "chunker_options", "embedding_model")
    }
    return {
        "corpus_hash": hashes["corpus_hash"],
        "index_hash": hashes["index_hash"],
        "strategy_hash": hashes["strategy_hash"],
        "questions_hash": hashes["questions_hash"],
        "key": hash_of([hashes, depth]),
        "depth": depth,
        "strategy": strategy,
        "parameters": dict(parameters),
        "index_name": corpus.index.name,
        "index_settings": settings,
        "questions": len(test_set.answerable),
    }


def stored_answer(row: Row) -> Ranking:
    """Return an answer from its stored row."""
    hits, within = (tuple(_hit(hit) for hit in row[name]) for name in ("passages", "within"))
    return Ranking(row["question_id"], tuple(row["documents"]), hits, row["latency_ms"], tuple(row["degraded"]), within)


def _hit(row: Row) -> RankedPassage:
    values: Row = {**row, "pages": tuple(row.get("pages", ()))}
    return RankedPassage(**values)
