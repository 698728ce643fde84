"""The legs' scores of given passages, whether a leg would bring them or not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.storage.database import Connection, numbers_value
from workbench.storage.postings import postings_of_passages
from workbench.storage.rows import TermWeights, read, vector_value
from workbench.storage.term_ranking import shares


def cosines(connection: Connection, index: str, vector: NDArray[np.float32], ids: Sequence[int]) -> dict[int, float]:
    """Return the cosine similarity of given passages with a vector."""
    rows = read(connection, index, "cosines_of", {"vector": vector_value(vector), "ids": numbers_value(ids)})
    return {row["id"]: float(row["score"]) for row in rows}


def term_shares(connection: Connection, index: str, terms: TermWeights, passage: int) -> list[tuple[int, int, float]]:
    """Return (term's id, frequency, share of the BM25 score) for one passage, largest first."""
    postings = postings_of_passages(connection, index, terms.ids, [passage])
    given = [(term, int(of["frequency"][0]), float(shares(of, terms, term)[0])) for term, of in postings.items()]
    return sorted(given, key=lambda share: (-share[2], share[0]))


def terms_held(connection: Connection, index: str, terms: Sequence[int], ids: Sequence[int]) -> dict[int, set[int]]:
    """Return which of given terms (by their ids) given passages have; those with none of them are left out."""
    terms_of: dict[int, set[int]] = {}
    for term, postings in postings_of_passages(connection, index, terms, ids).items():
        for passage in postings["passage"].tolist():
            terms_of.setdefault(passage, set()).add(term)
    return terms_of
