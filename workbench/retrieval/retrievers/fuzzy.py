"""Fuzzy: hybrid for questions with typos, without unrelated passages.

Corrections are added to misspelled words, and similarity, which typos distort, counts less. A
passage without any of the words needs a high similarity.
"""

from __future__ import annotations

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.hits import Hit
from workbench.retrieval.parameters import MIN_SIMILARITY, TYPO_TOLERANCE
from workbench.retrieval.retrievers.hybrid import find_hybrid_hits
from workbench.retrieval.retrievers.retriever import Query, Retriever
from workbench.types.parameter import KEYWORD, VECTOR

MIN_POOL = 100  # candidates per leg at least: several passages of each shown document


class FuzzyRetriever(Retriever):
    """Both legs, fused, with corrected words; with the typed words if ``forgive`` is off."""

    def find(self, query: Query) -> list[NodeWithScore]:
        """Return the fused candidates that contain one of the words or are similar to the question."""
        request = self._request
        with request.store.reading() as connection:
            hits = find_hybrid_hits(query, connection, max(MIN_POOL, request.depth))
            counted = [hit for hit in hits if self._counts(hit)]
            return self._fetch(connection, counted)

    def _counts(self, hit: Hit) -> bool:
        keyword = hit.legs.get(KEYWORD)
        if keyword is not None and keyword.score > 0:
            return True
        near = hit.legs[VECTOR].score >= self._request.float_param(MIN_SIMILARITY)
        return self._request.bool_param(TYPO_TOLERANCE) and near
