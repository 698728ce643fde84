"""Pseudo-relevance feedback: the first passages are taken to be relevant, and the question is moved towards them.

Rocchio, "Relevance Feedback in Information Retrieval" (1971), without the negative part: with the vectors p of the
first n passages,

    q' = q + weight * mean(p),  scaled to length 1

Terms by RM3 (Abdul-Jaleel et al. 2004): a term's share of the first passages, each weighed by its score, times its
idf; the best of them join the question's terms with a weight that says how much they may count together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llama_index.core.schema import NodeWithScore

from workbench.models.encoder import FloatArray, unit_rows
from workbench.retrieval.bm25 import idf
from workbench.retrieval.hybrid import POOL, hybrid_hits
from workbench.retrieval.keyword import Words, read_words
from workbench.retrieval.moved_query import moved_hits
from workbench.retrieval.nodes import to_nodes
from workbench.retrieval.source import Source
from workbench.storage.rows import TermWeights
from workbench.storage.surroundings import terms_of_passages


class FeedbackRetriever(Source):
    """Ask, move the question towards the first passages, and ask again."""

    def find(self, query: str) -> list[NodeWithScore]:
        """Return the candidates of the second search."""
        request = self._request
        pool = max(POOL, request.limit)
        with request.store.reading() as connection:
            first = [hit.id for hit in hybrid_hits(request, connection, query, pool)]
            first = first[: int(request.parameters["passages"])]
            if not first:
                return []
            vectors = request.store.vectors(connection, first)
            moved = towards(request.encoded(query).vector, np.stack(list(vectors.values())), self._weight("weight"))
            words = self._expanded(connection, read_words(request, connection, query), first)
            hits = moved_hits(request, connection, query, moved, "feedback", pool, words)
            return to_nodes(request, connection, hits[: self._keep])

    def _weight(self, name: str) -> float:
        return float(self._request.parameters[name])

    def _expanded(self, connection: Any, words: Words, passages: list[int]) -> Words:
        """Add the passages' most telling terms; together they count ``term_weight`` of what the question's do."""
        share, most = self._weight("term_weight"), int(self._request.parameters["terms"])
        asked = set(words.weights.ids)
        if not share or not most or not asked:
            return words
        found = terms_of_passages(connection, self._request.store.index.name, passages)
        rated = {
            term.id: term.share * idf(term.df, words.totals.passages)
            for term in found
            if term.id not in asked and term.passages > 1  # a term of one passage alone says little of the question
        }
        best = sorted(rated, key=lambda key: (-rated[key], key))[:most]
        total = sum(rated[key] for key in best)
        if not total:
            return words
        budget = share * sum(words.weights.weights)
        weights = TermWeights(
            ids=(*words.weights.ids, *best),
            weights=(*words.weights.weights, *(budget * rated[key] / total for key in best)),
            a=words.weights.a,
            c=words.weights.c,
            passages=words.weights.passages,
        )
        return Words(words.terms, words.totals, weights)


def towards(query: FloatArray, passages: FloatArray, weight: float) -> FloatArray:
    """Return q + weight * mean(p) at length 1."""
    return unit_rows((query + np.float32(weight) * passages.mean(axis=0))[None, :])[0]
