"""Recall and time of graph search by ``hnsw.ef_search``."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from benchmarks.figures import WalkRow
from benchmarks.latency import RESULT_LIMIT, EncodedQuestion, format_vector
from benchmarks.loading import BenchCorpus
from benchmarks.statements import baseline
from workbench.storage.database import Connection, Query, statement

EF_SEARCH_VALUES = (100, 200, 400, 600, 1000)  # 1000 is pgvector's maximum
NEAREST_COUNT = 50  # passages per leg of hybrid


def sweep_ef_search(corpus: BenchCorpus, questions: Sequence[EncodedQuestion]) -> list[WalkRow]:
    """Return, for each value, the recall at 10 and 50 and the median time."""
    name = corpus.index.name
    exact = statement("vector_exact", name, scope="scope_everything")
    rows: list[WalkRow] = []
    with corpus.wb.corpus.database.transaction() as connection:
        truths = [_fetch_ids(connection, exact, question)[0] for question in questions]
        for width in EF_SEARCH_VALUES:
            connection.execute(baseline("width", name), {"width": str(width)})
            walked = [_fetch_ids(connection, baseline("nearest_ids", name), question) for question in questions]
            pairs = [(truth, found) for truth, (found, _) in zip(truths, walked, strict=True)]
            rows.append(
                {
                    "ef_search": width,
                    "recall@10": round(float(np.mean([_compute_recall(*pair, RESULT_LIMIT) for pair in pairs])), 4),
                    "recall@50": round(float(np.mean([_compute_recall(*pair, NEAREST_COUNT) for pair in pairs])), 4),
                    "p50_ms": round(float(np.median([ms for _, ms in walked])), 3),
                }
            )
    return rows


def _fetch_ids(connection: Connection, query: Query, question: EncodedQuestion) -> tuple[list[int], float]:
    began = time.perf_counter()
    parameters = {"vector": format_vector(question[1]), "limit": NEAREST_COUNT}
    rows = connection.execute(query, parameters).fetchall()
    return [row["id"] for row in rows], (time.perf_counter() - began) * 1000


def _compute_recall(truth: Sequence[int], found: Sequence[int], first: int) -> float:
    return len(set(truth[:first]) & set(found[:first])) / len(truth[:first])
