"""The keyword leg: passages with the question's words, by BM25 over the postings."""

from __future__ import annotations

from dataclasses import replace

from llama_index.core.schema import NodeWithScore

from workbench.errors import ModelError, TableUnavailable, WorkbenchError
from workbench.models.encoder import FloatArray
from workbench.retrieval.bm25 import max_score
from workbench.retrieval.hits import Hit
from workbench.retrieval.retrievers.retriever import Query, Retriever
from workbench.storage.ranking import Connection, LegRanking, rank_by_terms
from workbench.types import KEYWORD, VECTOR, Leg, TimedStep

MAX_KEYWORD_DEPTH = 2000  # maximum hits examined for a minimum similarity


def rank_by_keywords(query: Query, connection: Connection, limit: int, vector: FloatArray | None = None) -> LegRanking:
    """Return the passages in scope with the highest BM25 scores, with their cosines if ``vector`` is given."""
    request, words = query.request, query.read_words(connection)
    with request.trace.stage(TimedStep.KEYWORD):
        size, index = request.scope_size(connection), request.index
        ranking = rank_by_terms(connection, index.name, words.weights, request.scope, limit, size)
        if vector is None or not ranking.scores:
            return ranking
        cosines = request.store.fetch_cosines(connection, vector, list(ranking.scores))
        return replace(ranking, others={key: cosines[key] for key in ranking.scores if key in cosines})


def rank_similar_by_keywords(query: Query, connection: Connection) -> LegRanking:
    """Return the keyword leg's passages with their cosines, searching deep enough to find enough similar ones."""
    if not query.read_words(connection).weights.ids:
        return LegRanking({})
    wanted = max(query.request.limit, query.request.depth) if query.request.fold_copies else query.request.limit
    vector, depth = _encode_or_note(query), wanted
    while True:
        try:
            ranking = rank_by_keywords(query, connection, depth, vector)
        except TableUnavailable as error:
            _note_no_similarity(query, error)
            vector = None
            continue
        similar = sum(query.is_similar_enough(cosine, has_words=True) for cosine in ranking.others.values())
        if similar >= wanted or vector is None or len(ranking.scores) < depth or depth >= MAX_KEYWORD_DEPTH:
            return ranking
        depth = min(MAX_KEYWORD_DEPTH, depth * 4)


def _encode_or_note(query: Query) -> FloatArray | None:
    """Return the question's vector for similarities that are only displayed; None, with a note, if the model fails."""
    try:
        return query.encoded.vector
    except ModelError as error:
        _note_no_similarity(query, error)
        return None


def _note_no_similarity(query: Query, error: WorkbenchError) -> None:
    """Note why passages have no similarity, once; raise the error if only similar ones are wanted."""
    if query.request.min_similarity > 0:
        raise error
    if any(str(error).removesuffix(".") in note for note in query.request.trace.degraded):
        return
    reason = f"{str(error)[0].lower()}{str(error)[1:]}"
    query.request.trace.note(f"keyword: passages have no similarity, because {reason}")


class KeywordRetriever(Retriever):
    """BM25 only; the score is a fraction of the question's maximum."""

    def find(self, query: Query) -> list[NodeWithScore]:
        """Return the passages with the highest BM25 scores."""
        request = self._request
        with request.store.reading() as connection:
            highest = max_score(query.read_words(connection).weights)
            ranking = rank_similar_by_keywords(query, connection)
            hits: list[Hit] = []
            for rank, (key, bm25) in enumerate(ranking.scores.items(), start=1):
                cosine = ranking.others.get(key)
                if cosine is not None and not query.is_similar_enough(cosine, has_words=True):
                    continue
                legs = {KEYWORD: Leg(score=bm25, rank=rank, contribution=bm25 / highest)}
                legs |= {VECTOR: Leg(score=cosine)} if cosine is not None else {}
                hits.append(Hit(key, bm25 / highest, legs))
            if not request.fold_copies:
                hits = hits[: request.limit]
            request.trace.has_more = request.fold_copies and len(ranking.scores) >= request.depth
            return self._fetch(connection, hits)
