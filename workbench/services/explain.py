"""Explain: why a passage was found where it was, and where an expected document fell out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidInput, ModelError, NotFound
from workbench.retrieval.strategies import STRATEGIES
from workbench.services.corpus import Corpus
from workbench.services.question import check_limit, check_query
from workbench.services.search import SearchService
from workbench.types import Passage, Scope, SearchResult

if TYPE_CHECKING:
    from workbench.retrieval.explain import Alignment, Explanation
    from workbench.retrieval.request import Request
    from workbench.storage.rows import StoredPassage

ELSEWHERE = 50  # how far down the other strategies' rankings are looked at


class ExplainService:
    """The verb ``explain``."""

    def __init__(self, corpus: Corpus, search: SearchService) -> None:
        self._corpus, self._search = corpus, search

    def explain(
        self,
        query: str,
        *,
        passage_id: str | None = None,
        document_id: str | None = None,
        strategy: str | None = None,
        limit: int = 10,
        scope: Scope | None = None,
        index: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        elsewhere: bool = True,
    ) -> Explanation:
        """Say why a passage, or a document by its best passage, stands where it stands, or where it fell out.

        ``elsewhere`` also ranks it by every other strategy that needs no further model.

        Raises:
            InvalidInput: neither or both of passage and document. NotFound: there is no such one.
            ModelError: the index's model cannot be used. Further what ``search`` raises.
        """
        if (passage_id is None) == (document_id is None):
            raise InvalidInput("Explain one thing: name either a passage_id or a document_id.")
        name, request, result = self._watched(query, strategy, limit, scope, index, parameters)
        candidates = self._candidates(request, passage_id, document_id)
        if not candidates:
            return self._not_indexed(query, name, request, str(document_id))
        explained = self._explained(query, name, request, result, candidates)
        return self._beside(explained, self._others(query, name, request)) if elsewhere else explained

    def explain_hits(
        self,
        query: str,
        *,
        strategy: str | None = None,
        limit: int = 10,
        scope: Scope | None = None,
        index: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> tuple[SearchResult, list[Explanation]]:
        """Search, and explain every passage that was found; the other strategies are asked once for all of them."""
        name, request, result = self._watched(query, strategy, limit, scope, index, parameters)
        others = self._others(query, name, request) if len(result) else {}
        explained = []
        for hit in result:
            candidates = self._candidates(request, hit.passage_id, None)
            explained.append(self._beside(self._explained(query, name, request, result, candidates), others))
        return result, explained

    def alignments(
        self, query: str, hits: Sequence[Passage], index: str | None = None
    ) -> dict[str, tuple[Alignment, ...]]:
        """Return passage id -> which of its words are like which of the question's, by the stored token vectors.

        Cheap enough for every search that is shown: about a millisecond a passage. What has no token vectors is
        left out.
        """
        from workbench.retrieval.explain import alignments
        from workbench.retrieval.keyword import read_words

        request = self._search.request("hybrid", self._search.resolve(None), len(hits), index, None)
        with request.store.reading() as connection:
            ids = request.store.internal_ids(connection, [hit.passage_id for hit in hits])
            passages = list(request.store.passages(connection, list(ids.values())).values())
            words = read_words(request, connection, query)
            return alignments(request, connection, query, words, passages)

    def _watched(
        self,
        query: str,
        strategy: str | None,
        limit: int,
        scope: Scope | None,
        index: str | None,
        parameters: Mapping[str, Any] | None,
    ) -> tuple[str, Request, SearchResult]:
        """Search with every step written down."""
        check_query(query)
        check_limit(limit)
        resolved = self._search.resolve(scope)
        name, index, parameters = self._search.chosen(strategy, resolved, index, parameters)
        request = self._search.request(name, resolved, limit, index, parameters)
        request.trace.passed = {}
        return name, request, self._search.run(query, name, request)

    def _candidates(self, request: Request, passage_id: str | None, document_id: str | None) -> list[StoredPassage]:
        store = request.store
        if document_id is not None:
            self._corpus.documents.record(document_id)
            return store.passages_of_document(document_id)
        with store.reading() as connection:
            key = store.internal_ids(connection, [str(passage_id)]).get(str(passage_id))
            if key is None:
                raise NotFound(
                    "passage", str(passage_id), f"Search the index {store.index.name!r} to see its passages."
                )
            return list(store.passages(connection, [key]).values())

    def _not_indexed(self, query: str, strategy: str, request: Request, document_id: str) -> Explanation:
        from workbench.retrieval.explain import Explanation
        from workbench.retrieval.fate import NOT_INDEXED

        index = request.store.index.name
        return Explanation(
            query=query,
            strategy=strategy,
            index=index,
            document_id=document_id,
            document_title=str(self._corpus.documents.record(document_id)["title"]),
            fate=NOT_INDEXED,
            reason=f"The index {index!r} holds no passage of it; build the index again.",
        )

    def _explained(
        self, query: str, strategy: str, request: Request, result: SearchResult, candidates: list[StoredPassage]
    ) -> Explanation:
        from workbench.retrieval.explain import Explanation, LegView, alignment, leg_views, term_views
        from workbench.retrieval.keyword import read_words

        with request.store.reading() as connection:
            words = read_words(request, connection, query)
            passage, hit = self._best(request, connection, query, result, candidates)
            legs = leg_views(request, connection, query, passage)
            fate, reason = self._fate(request, connection, query, strategy, passage, hit, legs)
            terms, missing = term_views(request, connection, words, passage)
            aligned = alignment(request, connection, query, words, passage)
        own = hit is not None and hit.passage_id == passage.node_id
        for name, leg in (hit.attribution if hit is not None and own else {}).items():
            known = legs.get(name, LegView(leg.score, leg.rank))
            legs[name] = replace(known, contribution=leg.contribution, rank=known.rank or leg.rank)
        return Explanation(
            query=query,
            strategy=strategy,
            index=request.store.index.name,
            document_id=passage.document_id,
            document_title=passage.title,
            fate=fate,
            reason=reason,
            passage_id=passage.node_id,
            start=int(passage.metadata["start"]),
            end=int(passage.metadata["end"]),
            text=passage.text,
            rank=hit.rank if hit is not None else None,
            score=hit.score if hit is not None else None,
            legs=legs,
            terms=terms,
            missing_terms=missing,
            alignment=aligned,
            notes=result.degraded,
        )

    def _best(
        self, request: Request, connection: Any, query: str, result: SearchResult, candidates: list[StoredPassage]
    ) -> tuple[StoredPassage, Passage | None]:
        """Return the candidate that is to be explained, and the result that shows it."""
        by_id = {passage.node_id: passage for passage in candidates}
        for hit in result:
            if hit.passage_id in by_id:
                return by_id[hit.passage_id], hit
        for hit in result:
            for passage in candidates:
                if shows(hit, passage):
                    return passage, hit
        if len(candidates) == 1:
            return candidates[0], None
        words = request.words[query]
        ids = [passage.id for passage in candidates]
        cosines = request.store.cosines(connection, request.encoded(query).vector, ids)
        bm25 = request.store.term_scores(connection, words.weights, ids)
        highest = max(bm25.values(), default=0.0) or 1.0
        return max(candidates, key=lambda p: (cosines[p.id] + bm25.get(p.id, 0.0) / highest, -p.id)), None

    def _fate(
        self,
        request: Request,
        connection: Any,
        query: str,
        strategy: str,
        passage: StoredPassage,
        hit: Passage | None,
        legs: Mapping[str, Any],
    ) -> tuple[str, str]:
        from workbench.retrieval import fate
        from workbench.retrieval.hybrid import POOL, hybrid_hits

        if hit is not None:
            if hit.passage_id == passage.node_id:
                return fate.FOUND, f"It is number {hit.rank}."
            return fate.SHOWN, f"Its text is shown within number {hit.rank}, {hit.passage_id}."
        if not request.store.in_scope(connection, request.scope, [passage.id]):
            return fate.NOT_IN_SCOPE, "The search's scope leaves its document out."
        pool = max(POOL, request.limit)
        fused: tuple[int, ...] = ()
        if STRATEGIES[strategy].source is STRATEGIES["hybrid"].source:
            fused = tuple(found.id for found in hybrid_hits(request, connection, query, pool))
        way = fate.Way(strategy, request.trace.passed or {}, fused, request.limit, pool)
        return fate.fate_of(passage.id, way, legs)

    def _others(self, query: str, strategy: str, request: Request) -> dict[str, SearchResult]:
        """Ask every other strategy that needs no further model, in the same scope and index."""
        found = {}
        for name, other in STRATEGIES.items():
            if name == strategy or other.needs or (other.needs_scope and request.scope.is_everything):
                continue
            try:
                found[name] = self._search.search_within(
                    query, request.scope, strategy=name, limit=ELSEWHERE, index=request.store.index.name
                )
            except ModelError:  # said once already, by the strategy that is explained
                continue
        return found

    def _beside(self, explained: Explanation, others: Mapping[str, SearchResult]) -> Explanation:
        ranks = {
            name: next((hit.rank for hit in result if _shows(hit, explained)), None) for name, result in others.items()
        }
        return replace(explained, elsewhere=ranks)


def shows(hit: Passage, passage: StoredPassage) -> bool:
    """Tell whether a result's text holds a passage of the same document."""
    start, end = int(passage.metadata["start"]), int(passage.metadata["end"])
    return hit.document_id == passage.document_id and hit.start <= start and end <= hit.end


def _shows(hit: Passage, explained: Explanation) -> bool:
    same = hit.document_id == explained.document_id and hit.start <= explained.start and explained.end <= hit.end
    return same or hit.passage_id == explained.passage_id
