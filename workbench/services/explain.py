"""Explanations of a passage's rank, and of the step at which an expected document was dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from workbench.errors import InvalidInput, ModelError, NotFound
from workbench.retrieval.first_import import import_framework
from workbench.retrieval.options import Ask
from workbench.retrieval.strategies import BOTH_LEGS, BUILT_IN_STRATEGIES
from workbench.services.checks import MAX_RESULTS, check_limit, check_query
from workbench.services.corpus import Corpus, retry_read
from workbench.services.search import DEFAULT_ASK, Requests, SearchService
from workbench.types import KEYWORD, VECTOR, Passage, SearchResult

if TYPE_CHECKING:
    from workbench.retrieval.explain.explanation import Alignment, Explanation, LegView, Step, WordComparison
    from workbench.retrieval.explain.outcome import FinalRank, PipelineTrace
    from workbench.retrieval.query import Query, Request
    from workbench.storage.database import Connection
    from workbench.storage.passages import StoredPassage

OTHER_RANK_LIMITS = (
    50,
    MAX_RESULTS,
)  # how far down the other strategies' rankings are read; the second if the first lacks it
SINGLE_LEG_STRATEGIES = {"vector": VECTOR, "keyword": KEYWORD}  # strategies whose ranks are those of a leg


@dataclass(frozen=True, slots=True)
class _TracedSearch:
    """A search with every step written down."""

    query: Query
    result: SearchResult
    way: PipelineTrace


class ExplainService:
    """The verb ``explain``."""

    def __init__(self, corpus: Corpus, requests: Requests, search: SearchService) -> None:
        self._corpus, self._requests, self._search = corpus, requests, search

    @retry_read
    def explain(
        self,
        query: str,
        ask: Ask = DEFAULT_ASK,
        *,
        passage_id: str | None = None,
        document_id: str | None = None,
        elsewhere: bool = True,
    ) -> Explanation:
        """Explain the rank of a passage, or of a document by its best passage, or the step that dropped it.

        ``elsewhere`` also ranks it by every other strategy that needs no further model.

        Raises:
            InvalidInput: neither or both of passage and document. NotFound: there is no such one.
            ModelError: the index's model cannot be used. Further what ``search`` raises.
        """
        if (passage_id is None) == (document_id is None):
            raise InvalidInput("Explain one thing: name either a passage_id or a document_id.")
        watched = self._watched(query, ask)
        candidates = self._candidates(watched.query.request, passage_id, document_id)
        if not candidates:
            return self._not_indexed(watched.query, str(document_id))
        explained = self._explained(watched, candidates)
        return self._beside(explained, self._others(watched.query)) if elsewhere else explained

    @retry_read
    def explain_hits(self, query: str, ask: Ask = DEFAULT_ASK) -> tuple[SearchResult, list[Explanation]]:
        """Search, and explain every passage that was found; the other strategies are asked once for all of them."""
        watched = self._watched(query, ask)
        others = self._others(watched.query)
        explained: list[Explanation] = []
        for hit in watched.result:
            if "unmatched" in hit.metadata:  # a foreign retriever's own text, of which nothing else is known
                continue
            candidates = self._candidates(watched.query.request, hit.passage_id, None)
            explained.append(self._beside(self._explained(watched, candidates), others))
        return watched.result, explained

    @retry_read
    def alignments(
        self, query: str, hits: Sequence[Passage], index: str | None = None
    ) -> dict[str, tuple[Alignment, ...]]:
        """Return passage id -> which of its words are like which of the question's, by the stored token vectors.

        Cheap enough for every search that is shown: about a millisecond a passage. Passages without token vectors
        are left out.
        """
        import_framework()
        from workbench.retrieval.explain.explanation import align_passages
        from workbench.storage.passages import fetch_internal_ids, fetch_passages

        request = self._requests.of(Ask(BOTH_LEGS, len(hits), index=index))
        name = request.index.name
        with request.store.reading() as connection:
            ids = fetch_internal_ids(connection, name, [hit.passage_id for hit in hits])
            passages = list(fetch_passages(connection, name, list(ids.values())).values())
            return align_passages(request.question(query), connection, passages)

    @retry_read
    def word_by_word(self, query: str, passage_id: str, index: str | None = None) -> WordComparison:
        """Hold each word of a question against each word of a passage.

        Raises:
            NotFound: there is no such passage. ModelError: the index's model cannot be used.
        """
        from workbench.retrieval.explain.explanation import compare_words

        check_query(query)
        request = self._requests.of(Ask(BOTH_LEGS, 1, index=index))
        [passage] = self._candidates(request, passage_id, None)
        with request.store.reading() as connection:
            return compare_words(request.question(query), connection, passage)

    def _watched(self, query: str, ask: Ask) -> _TracedSearch:
        from workbench.retrieval.explain.outcome import PipelineTrace
        from workbench.retrieval.name_matching import restrict_to_named
        from workbench.retrieval.pipeline import run_search
        from workbench.retrieval.retrievers.hybrid import find_hybrid_hits, leg_depth

        check_query(query)
        check_limit(ask.limit)
        asked = restrict_to_named(self._requests.of(ask).question(query))
        request = asked.request
        request.trace.passed = {}
        result = run_search(asked)
        pool = leg_depth(request)
        fused: tuple[int, ...] = ()
        if request.strategy.pools:
            with request.store.reading() as connection:
                fused = tuple(candidate.id for candidate in find_hybrid_hits(asked, connection, pool))
        way = PipelineTrace(request.strategy, request.trace.passed or {}, fused, request.limit, pool)
        return _TracedSearch(asked, result, way)

    def _candidates(self, request: Request, passage_id: str | None, document_id: str | None) -> list[StoredPassage]:
        from workbench.storage.passages import fetch_document_passages, fetch_internal_ids, fetch_passages

        index = request.index.name
        with request.store.reading() as connection:
            if document_id is not None:
                self._corpus.documents.record(document_id)
                return fetch_document_passages(connection, index, document_id)
            key = fetch_internal_ids(connection, index, [str(passage_id)]).get(str(passage_id))
            if key is None:
                raise NotFound("passage", str(passage_id), f"Search the index {index!r} to see its passages.")
            return list(fetch_passages(connection, index, [key]).values())

    def _not_indexed(self, query: Query, document_id: str) -> Explanation:
        from workbench.retrieval.explain.explanation import Explanation
        from workbench.retrieval.explain.outcome import NOT_INDEXED, trace_unindexed

        request = query.request
        index = request.index.name
        return Explanation(
            query=query.text,
            strategy=request.strategy.name,
            index=index,
            document_id=document_id,
            document_title=self._corpus.documents.record(document_id).title,
            fate=NOT_INDEXED,
            reason=f"The index {index!r} holds no passage of it; build the index again.",
            course=trace_unindexed(query.words.totals.passages),
        )

    def _explained(self, watched: _TracedSearch, candidates: list[StoredPassage]) -> Explanation:
        from workbench.retrieval.explain.explanation import (
            Explanation,
            LegView,
            align_passage,
            view_features,
            view_legs,
            view_terms,
        )
        from workbench.retrieval.explain.outcome import FinalRank
        from workbench.storage.ranking import filter_passages

        query, result = watched.query, watched.result
        request = query.request
        document_id = candidates[0].document_id
        with request.store.reading() as connection:
            inside = filter_passages(
                connection, request.index.name, request.scope, [passage.id for passage in candidates]
            )
            candidates = [passage for passage in candidates if passage.id in inside]
            if not candidates:
                return self._out_of_scope(watched, connection, document_id)
            passage, hit = self._best(watched, connection, candidates)
            legs = view_legs(query, connection, passage)
            fate, reason = self._fate(watched, passage, hit, legs)
            steps = self._course(watched, connection, passage, FinalRank(fate, hit.rank if hit else None, legs))
            terms, missing = view_terms(query, connection, passage)
            aligned = align_passage(query, connection, passage)
        own = hit is not None and hit.passage_id == passage.node_id
        for name, leg in (hit.attribution if hit is not None and own else {}).items():
            view = legs.get(name, LegView(leg.score, leg.rank))
            legs[name] = replace(view, contribution=leg.contribution, rank=view.rank or leg.rank)
        return Explanation(
            query=query.text,
            strategy=request.strategy.name,
            index=request.index.name,
            document_id=passage.document_id,
            document_title=passage.title,
            fate=fate,
            reason=reason,
            passage_id=passage.node_id,
            start=passage.span[0],
            end=passage.span[1],
            text=passage.text,
            rank=hit.rank if hit is not None else None,
            score=hit.score if hit is not None else None,
            legs=legs,
            terms=terms,
            missing_terms=missing,
            alignment=aligned,
            features=view_features(query, passage.id),
            course=steps,
            preferring=result.preferring,
            notes=result.degraded,
        )

    def _out_of_scope(self, watched: _TracedSearch, connection: Connection, document_id: str) -> Explanation:
        """Return the explanation of a document that the scope leaves out: nothing of it is read."""
        from workbench.retrieval.explain.explanation import Explanation
        from workbench.retrieval.explain.outcome import NOT_IN_SCOPE, trace_out_of_scope

        return Explanation(
            query=watched.query.text,
            strategy=watched.query.request.strategy.name,
            index=watched.query.request.index.name,
            document_id=document_id,
            document_title="",
            fate=NOT_IN_SCOPE,
            reason="The search's scope leaves its document out.",
            course=trace_out_of_scope(self._countable(watched.query.request, connection)),
            notes=watched.result.degraded,
        )

    def _best(
        self, watched: _TracedSearch, connection: Connection, candidates: list[StoredPassage]
    ) -> tuple[StoredPassage, Passage | None]:
        """Return the candidate that is to be explained, and the result that shows it."""
        from workbench.retrieval.explain.explanation import covers
        from workbench.storage.postings import fetch_cosines, score_passages

        result, query = watched.result, watched.query
        by_id = {passage.node_id: passage for passage in candidates}
        for hit in result:
            if hit.passage_id in by_id:
                return by_id[hit.passage_id], hit
        for hit in result:
            for passage in candidates:
                if covers(hit, passage):
                    return passage, hit
        if len(candidates) == 1:
            return candidates[0], None
        index, ids = query.request.index, [passage.id for passage in candidates]
        near = fetch_cosines(connection, index.name, query.encoded.vector, ids)
        bm25 = score_passages(connection, index.name, query.read_words(connection).weights, ids)
        highest = max(bm25.values(), default=0.0) or 1.0
        return max(candidates, key=lambda p: (near[p.id] + bm25.get(p.id, 0.0) / highest, -p.id)), None

    def _fate(
        self,
        watched: _TracedSearch,
        passage: StoredPassage,
        hit: Passage | None,
        legs: Mapping[str, LegView],
    ) -> tuple[str, str]:
        from workbench.retrieval.explain import outcome

        if hit is not None:
            if hit.passage_id == passage.node_id:
                return outcome.FOUND, f"It is number {hit.rank}."
            return outcome.SHOWN, f"Its text is shown within number {hit.rank}, {hit.passage_id}."
        return outcome.find_outcome(passage.id, watched.way, legs)

    def _course(
        self, watched: _TracedSearch, connection: Connection, passage: StoredPassage, standing: FinalRank
    ) -> tuple[Step, ...]:
        from workbench.retrieval.explain.outcome import StageCounts, trace_stages

        request = watched.query.request
        everything = watched.query.read_words(connection).totals.passages
        countable = self._countable(request, connection)
        counts = (everything, everything) if request.scope.is_everything else (None, countable)
        sizes = StageCounts(*counts, len(watched.result))
        return trace_stages(passage.id, watched.way, standing, sizes)

    def _countable(self, request: Request, connection: Connection) -> int | None:
        """Return how many passages the request's scope holds; None if they are too many to count."""
        from workbench.storage.ranking import EXACT_UP_TO

        size = request.scope_size(connection)
        return None if size > EXACT_UP_TO else size

    def _others(self, query: Query) -> _OtherRankings:
        """Return the rankings of every other strategy that needs no further model, in the same scope and index."""
        request = query.request
        names = tuple(
            name
            for name, other in BUILT_IN_STRATEGIES.items()
            if not (other is request.strategy or other.needs or (other.needs_scope and request.scope.is_everything))
        )
        return _OtherRankings(self._search, query, names)

    def _beside(self, explained: Explanation, others: _OtherRankings) -> Explanation:
        return replace(explained, elsewhere=others.ranks_of(explained))


@dataclass
class _OtherRankings:
    """The rankings of other strategies for one question, each read once and only as deep as a passage needs."""

    search: SearchService
    query: Query
    names: tuple[str, ...]
    _read: dict[tuple[str, int], SearchResult | None] = field(default_factory=dict)

    def ranks_of(self, explained: Explanation) -> dict[str, int | None]:
        """Return strategy -> rank of the explained passage; None if it is not among the first 200."""
        return {
            name: self._rank(name, explained)
            for name in self.names
            if self._result(name, OTHER_RANK_LIMITS[0]) is not None
        }

    def _rank(self, name: str, explained: Explanation) -> int | None:
        for limit in OTHER_RANK_LIMITS:
            result = self._result(name, limit)
            rank = next((hit.rank for hit in result or () if _covers(hit, explained)), None)
            if rank is not None:
                return rank
            if result is None or result.under_filled:
                break
        leg = explained.legs.get(
            SINGLE_LEG_STRATEGIES.get(name, "")
        )  # exact, where an approximate search has lost the passage
        return leg.rank if leg is not None and leg.rank is not None and leg.rank <= MAX_RESULTS else None

    def _result(self, name: str, limit: int) -> SearchResult | None:
        if (name, limit) not in self._read:
            request = self.query.request
            ask = Ask(name, limit, request.scope, request.index.name)
            try:
                self._read[name, limit] = self.search.search(self.query.text, ask, self.query.encodings)
            except (ModelError, InvalidInput):  # reported by the explained strategy
                self._read[name, limit] = None
        return self._read[name, limit]


def _covers(hit: Passage, explained: Explanation) -> bool:
    same = hit.document_id == explained.document_id and hit.start <= explained.start and explained.end <= hit.end
    return same or hit.passage_id == explained.passage_id
