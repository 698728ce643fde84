"""The legs' scores of given passages, whether a leg would bring them or not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.storage.database import Connection
from workbench.storage.rows import TermWeights, read, vector_value


def cosines(connection: Connection, index: str, vector: NDArray[np.float32], ids: Sequence[int]) -> dict[int, float]:
    """Return the cosine similarity of given passages with a vector."""
    rows = read(connection, index, "cosines_of", {"vector": vector_value(vector), "ids": list(ids)})
    return {row["id"]: float(row["score"]) for row in rows}


def term_scores(connection: Connection, index: str, terms: TermWeights, ids: Sequence[int]) -> dict[int, float]:
    """Return the BM25 scores of given passages; those without any of the terms are left out."""
    rows = read(connection, index, "bm25_of", {**terms.parameters(), "ids": list(ids)}) if terms.ids else []
    return {row["id"]: float(row["score"]) for row in rows}


def term_shares(connection: Connection, index: str, terms: TermWeights, passage: int) -> list[tuple[str, int, float]]:
    """Return (term, frequency, share of the BM25 score) for one passage, largest first."""
    rows = read(connection, index, "bm25_by_term", {**terms.parameters(), "passage": passage}) if terms.ids else []
    return [(row["term"], int(row["tf"]), float(row["score"])) for row in rows]


def terms_held(connection: Connection, index: str, terms: Sequence[int], ids: Sequence[int]) -> dict[int, set[int]]:
    """Return which of given terms (by their ids) given passages have; those with none of them are left out."""
    terms_of: dict[int, set[int]] = {}
    if terms and ids:
        for row in read(connection, index, "terms_held", {"term_ids": list(terms), "ids": list(ids)}):
            terms_of.setdefault(row["passage_id"], set()).add(row["term_id"])
    return terms_of
