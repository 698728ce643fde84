"""The keyword leg: passages that hold the question's words, by BM25 over the postings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llama_index.core.schema import NodeWithScore

from workbench.errors import ModelError
from workbench.models.encoder import FloatArray
from workbench.retrieval.bm25 import ceiling, weigh
from workbench.retrieval.nodes import to_nodes
from workbench.retrieval.request import Hit, Request
from workbench.retrieval.source import Source
from workbench.retrieval.spelling import Guess
from workbench.storage.rows import IndexTotals, QueryTerm, Scored, TermWeights
from workbench.types import Leg

DEEPEST = 2000  # keyword hits looked at for enough that are similar to the question, where that was asked for


@dataclass(frozen=True, slots=True)
class Words:
    """The question's terms, weighed against the whole index; ``guesses`` stand for words that nothing has."""

    terms: tuple[QueryTerm, ...]
    totals: IndexTotals
    weights: TermWeights
    guesses: tuple[Guess, ...] = ()


def read_words(request: Request, connection: Any, query: str) -> Words:
    """Analyse the question as the passages were analysed, and weigh its terms; once a request."""
    if query not in request.words:
        request.words[query] = _read_words(request, connection, query)
    return request.words[query]


def _read_words(request: Request, connection: Any, query: str) -> Words:
    with request.trace.stage("keyword"):
        totals, terms = request.store.query_terms(connection, query)
    if not totals.passages:
        request.trace.note("keyword: the index holds no passages")
    elif not terms:
        request.trace.note("keyword: the question has no words to look up")
    elif not any(term.id is not None for term in terms):
        request.trace.note("keyword: none of the question's words occur in the index")
    return Words(terms, totals, weigh(terms, totals))


def keyword_candidates(
    request: Request, connection: Any, words: Words, limit: int, vector: FloatArray | None = None
) -> list[Scored]:
    """Return the passages in scope with the highest BM25 scores, best first; cosine where a ``vector`` is given."""
    with request.trace.stage("keyword"):
        held = request.held(connection)
        return request.store.best_by_terms(connection, words.weights, request.scope, limit, held, vector)


def similar_candidates(request: Request, connection: Any, query: str, words: Words) -> list[Scored]:
    """Return keyword candidates with their cosines, as deep as it takes to have enough that are similar enough."""
    if not words.weights.ids:
        return []
    vector, depth = _vector(request, query), request.limit
    while True:
        found = keyword_candidates(request, connection, words, depth, vector)
        enough = sum(request.similar_enough(cosine) for _, _, cosine in found if cosine is not None) >= request.limit
        if enough or vector is None or len(found) < depth or depth >= DEEPEST:
            return found
        depth = min(DEEPEST, depth * 4)


def _vector(request: Request, query: str) -> FloatArray | None:
    """Return the question's vector, for similarities that are only shown; None and a note where the model cannot."""
    try:
        return request.encoded(query).vector
    except ModelError as error:
        if request.min_similarity > 0:
            raise
        request.trace.note(f"keyword: passages have no similarity, because {str(error)[0].lower()}{str(error)[1:]}")
        return None


class KeywordRetriever(Source):
    """Rank by BM25 alone; the score is the share of what the question's words could give at most."""

    def find(self, query: str) -> list[NodeWithScore]:
        """Return the passages with the highest BM25 scores."""
        request = self._request
        with request.store.reading() as connection:
            words = read_words(request, connection, query)
            found = similar_candidates(request, connection, query, words)
            highest = ceiling(words.weights)
            hits = []
            for rank, (key, bm25, cosine) in enumerate(found, start=1):
                if cosine is not None and not request.similar_enough(cosine):
                    continue
                legs = {"keyword": Leg(score=bm25, rank=rank, contribution=bm25 / highest)}
                legs |= {"vector": Leg(score=cosine)} if cosine is not None else {}
                hits.append(Hit(key, bm25 / highest, legs))
            return to_nodes(request, connection, hits[: request.limit])
