"""Pseudo-relevance feedback: the first passages are taken to be relevant, and the question is moved towards them.

Rocchio, "Relevance Feedback in Information Retrieval" (1971), without the negative part: with the vectors p of the
first n passages,

    q' = q + weight * mean(p),  scaled to length 1

Terms by RM3 (Abdul-Jaleel et al. 2004): a term's share of the first passages, each weighed by its score, times its
idf; the best of them join the question's terms with a weight that says how much they may count together.
"""

from __future__ import annotations

import numpy as np
from llama_index.core.schema import NodeWithScore

from workbench.models.encoder import FloatArray, unit_rows
from workbench.retrieval.nodes import to_nodes
from workbench.retrieval.parameters import FEEDBACK_PASSAGES, FEEDBACK_WEIGHT, TERM_WEIGHT, TERMS
from workbench.retrieval.question_words import Words
from workbench.retrieval.retrievers.hybrid import depth, hybrid_hits
from workbench.retrieval.retrievers.moved_query import moved_hits
from workbench.retrieval.retrievers.retriever import Retriever
from workbench.retrieval.words.bm25 import idf
from workbench.retrieval.words.query_words import read_words
from workbench.storage.database import Connection
from workbench.storage.passages import TermWeights, vectors
from workbench.storage.ranking import terms_of_passages
from workbench.types.parameter import FEEDBACK


class FeedbackRetriever(Retriever):
    """A retriever that asks, moves the question towards the first passages, and asks again."""

    def find(self, query: str) -> list[NodeWithScore]:
        """Return the candidates of the second search."""
        request = self._request
        pool = depth(request)
        with request.store.reading() as connection:
            first = [hit.id for hit in hybrid_hits(request, connection, query, pool)]
            first = first[: int(request.number(FEEDBACK_PASSAGES))]
            if not first:
                return []
            stored = vectors(connection, request.index.name, first)
            rows = np.stack([stored[key] for key in first if key in stored])
            moved = towards(request.encoded(query).vector, rows, request.number(FEEDBACK_WEIGHT))
            words = self._expanded(connection, read_words(request, connection, query), first)
            hits = moved_hits(request, connection, query, moved, FEEDBACK, pool, words)
            return to_nodes(request, connection, self._kept(hits))

    def _expanded(self, connection: Connection, words: Words, passages: list[int]) -> Words:
        """Add the passages' most telling terms; together they count ``term_weight`` of what the question's do."""
        share, most = self._request.number(TERM_WEIGHT), int(self._request.number(TERMS))
        asked_ids = set(words.weights.ids)
        if not share or not most or not asked_ids:
            return words
        telling = terms_of_passages(connection, self._request.index.name, passages)
        rated = {
            term.id: term.share * idf(term.df, words.totals.passages)
            for term in telling
            if term.id not in asked_ids and term.passages > 1  # a term of one passage alone says little of the question
        }
        counts, names = {term.id: term.df for term in telling}, {term.id: term.term for term in telling}
        best = sorted(rated, key=lambda key: (-rated[key], names[key]))[:most]
        total = sum(rated[key] for key in best)
        if not total:
            return words
        budget = share * sum(words.weights.weights)
        weights = TermWeights(
            ids=(*words.weights.ids, *best),
            weights=(*words.weights.weights, *(budget * rated[key] / total for key in best)),
            counts=(*words.weights.counts, *(counts[key] for key in best)),
            a=words.weights.a,
            c=words.weights.c,
            passages=words.weights.passages,
        )
        return Words(words.terms, words.totals, weights)


def towards(query: FloatArray, passages: FloatArray, weight: float) -> FloatArray:
    """Return q + weight * mean(p) at length 1."""
    return unit_rows((query + np.float32(weight) * passages.mean(axis=0))[None, :])[0]
