"""Explanations of a passage's rank, and of the step at which an expected document was dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from workbench.errors import InvalidInput, ModelError, NotFound
from workbench.retrieval.options import Ask
from workbench.retrieval.strategies import BOTH_LEGS, BUILT_IN_STRATEGIES
from workbench.services.checks import MAX_RESULTS, check_limit, check_query
from workbench.services.corpus import Corpus, import_framework, retry_read
from workbench.services.search import DEFAULT_ASK, Requests, SearchService
from workbench.types import KEYWORD, VECTOR, Passage, SearchResult

if TYPE_CHECKING:
    from workbench.retrieval.explain import (
        Alignment,
        Explanation,
        FinalRank,
        LegView,
        PipelineTrace,
        Step,
        WordComparison,
    )
    from workbench.retrieval.query import Query, Request
    from workbench.storage.passages import Connection, StoredPassage

OTHER_RANK_LIMITS = (50, MAX_RESULTS)  # ranks read from other strategies; the second if the passage is not in the first
SINGLE_LEG_STRATEGIES = {"vector": VECTOR, "keyword": KEYWORD}  # strategies with the ranks of a single leg


@dataclass(frozen=True, slots=True)
class _TracedSearch:
    """A search with a record of every step."""

    query: Query
    result: SearchResult
    way: PipelineTrace


class ExplainService:
    """The operation ``explain``."""

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
        """Explain a rank, or the step that dropped a passage; see ``Workbench.explain``.

        Raises:
            ModelError: The index's model is unavailable.
        """
        if (passage_id is None) == (document_id is None):
            raise InvalidInput("Give either a passage_id or a document_id.")
        traced = self._trace_search(query, ask)
        candidates = self._candidates(traced.query.request, passage_id, document_id)
        if not candidates:
            return self._not_indexed(traced, str(document_id))
        explained = self._make_explanation(traced, candidates, document_id or "")
        if not elsewhere:
            return explained
        return replace(explained, elsewhere=self._others(traced.query).find_ranks(explained))

    @retry_read
    def explain_hits(self, query: str, ask: Ask = DEFAULT_ASK) -> tuple[SearchResult, list[Explanation]]:
        """Search and explain every result; other strategies run once for all results."""
        traced = self._trace_search(query, ask)
        others = self._others(traced.query)
        explained: list[Explanation] = []
        for hit in traced.result:
            if "unmatched" in hit.metadata:  # a foreign retriever's own text, about which nothing else is known
                continue
            candidates = self._candidates(traced.query.request, hit.passage_id, None)
            one = self._make_explanation(traced, candidates)
            explained.append(replace(one, elsewhere=others.find_ranks(one)))
        return traced.result, explained

    @retry_read
    def alignments(
        self, query: str, hits: Sequence[Passage], index: str | None = None
    ) -> dict[str, tuple[Alignment, ...]]:
        """Return, by passage id, the best matches for the question's tokens, using the stored token vectors.

        This is fast enough for every search: about a millisecond per passage. Passages without token vectors
        are omitted.
        """
        import_framework()
        from workbench.retrieval.explain import align_passages
        from workbench.storage.passages import fetch_internal_ids, fetch_passages

        request = self._requests.make(Ask(BOTH_LEGS, len(hits), index=index))
        name = request.index.name
        with request.store.reading() as connection:
            ids = fetch_internal_ids(connection, name, [hit.passage_id for hit in hits])
            passages = list(fetch_passages(connection, name, list(ids.values())).values())
            return align_passages(request.question(query), connection, passages)

    @retry_read
    def word_by_word(self, query: str, passage_id: str, index: str | None = None) -> WordComparison:
        """Compare each word of a question with each word of a passage.

        Raises:
            NotFound: There is no such passage. ModelError: The index's model is unavailable.
        """
        import_framework()
        from workbench.retrieval.explain import compare_words

        check_query(query)
        request = self._requests.make(Ask(BOTH_LEGS, 1, index=index))
        [passage] = self._candidates(request, passage_id, None)
        with request.store.reading() as connection:
            return compare_words(request.question(query), connection, passage)

    def _trace_search(self, query: str, ask: Ask) -> _TracedSearch:
        import_framework()
        from workbench.retrieval.explain import PipelineTrace
        from workbench.retrieval.name_matching import restrict_to_named
        from workbench.retrieval.pipeline import run_search
        from workbench.retrieval.retrievers.hybrid import find_hybrid_hits, leg_depth

        check_query(query)
        check_limit(ask.limit)
        asked = restrict_to_named(self._requests.make(ask).question(query))
        request = asked.request
        request.trace.passed = {}
        result = run_search(asked)
        pool = leg_depth(request)
        fused: tuple[int, ...] = ()
        if request.strategy.pools:
            with request.store.reading() as connection:
                fused = tuple(find_hybrid_hits(asked, connection, pool).order)
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

    def _not_indexed(self, traced: _TracedSearch, document_id: str) -> Explanation:
        from workbench.retrieval.explain import NOT_INDEXED, Explanation, trace_unindexed
        from workbench.storage.ranking import filter_documents

        query, request = traced.query, traced.query.request
        if not filter_documents(self._corpus.database, request.scope, [document_id]):
            with request.store.reading() as connection:
                return self._out_of_scope(traced, connection, document_id)
        index = request.index.name
        return Explanation(
            query=query.typed,
            strategy=request.strategy.name,
            index=index,
            document_id=document_id,
            document_title=self._corpus.documents.record(document_id).title,
            outcome=NOT_INDEXED,
            reason=f"The index {index!r} has no passage of it; rebuild the index.",
            steps=trace_unindexed(query.words.totals.passages),
        )

    def _make_explanation(
        self, traced: _TracedSearch, candidates: list[StoredPassage], document_id: str = ""
    ) -> Explanation:
        """Explain the best candidate; ``document_id`` is the document that the caller asked for."""
        from workbench.retrieval.explain import (
            Explanation,
            FinalRank,
            LegView,
            align_passages,
            view_features,
            view_legs,
            view_terms,
        )
        from workbench.storage.ranking import filter_passages

        query, result = traced.query, traced.result
        request = query.request
        with request.store.reading() as connection:
            inside = filter_passages(
                connection, request.index.name, request.scope, [passage.id for passage in candidates]
            )
            candidates = [passage for passage in candidates if passage.id in inside]
            if not candidates:
                return self._out_of_scope(traced, connection, document_id)
            passage, hit = self._best(traced, connection, candidates)
            legs = view_legs(query, connection, passage)
            outcome, reason = self._find_outcome(traced, passage, hit, legs)
            steps = self._make_steps(traced, connection, passage, FinalRank(outcome, hit.rank if hit else None, legs))
            terms, missing = view_terms(query, connection, passage)
            aligned = align_passages(query, connection, [passage]).get(passage.node_id, ())
        own = hit is not None and hit.passage_id == passage.node_id
        for name, leg in (hit.attribution if hit is not None and own else {}).items():
            view = legs.get(name, LegView(leg.score, leg.rank))
            legs[name] = replace(view, contribution=leg.contribution, rank=view.rank or leg.rank)
        return Explanation(
            query=query.typed,
            strategy=request.strategy.name,
            index=request.index.name,
            document_id=passage.document_id,
            document_title=passage.title,
            outcome=outcome,
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
            steps=steps,
            preferring=result.preferring,
            notes=result.degraded,
        )

    def _out_of_scope(self, traced: _TracedSearch, connection: Connection, document_id: str) -> Explanation:
        """Return the explanation of a document outside the scope, without reading it."""
        from workbench.retrieval.explain import NOT_IN_SCOPE, Explanation, trace_out_of_scope

        return Explanation(
            query=traced.query.typed,
            strategy=traced.query.request.strategy.name,
            index=traced.query.request.index.name,
            document_id=document_id,
            document_title="",
            outcome=NOT_IN_SCOPE,
            reason="Its document is outside the scope.",
            steps=trace_out_of_scope(self._countable(traced.query.request, connection)),
            notes=traced.result.degraded,
        )

    def _best(
        self, traced: _TracedSearch, connection: Connection, candidates: list[StoredPassage]
    ) -> tuple[StoredPassage, Passage | None]:
        """Return the candidate to explain, and the result that shows it."""
        from workbench.retrieval.explain import covers
        from workbench.storage.postings import score_passages

        result, query = traced.result, traced.query
        by_id = {passage.node_id: passage for passage in candidates}
        for hit in result:
            if hit.passage_id in by_id:
                return by_id[hit.passage_id], hit
        for hit in result:
            for passage in candidates:
                if covers(hit, passage) or passage.node_id in {copy.passage_id for copy in hit.copies}:
                    return passage, hit
        if len(candidates) == 1:
            return candidates[0], None
        index, ids = query.request.index, [passage.id for passage in candidates]
        near = query.request.store.fetch_cosines(connection, query.encoded.vector, ids)
        bm25 = score_passages(connection, index.name, query.read_words(connection).weights, ids)
        highest = max(bm25.values(), default=0.0) or 1.0
        return max(candidates, key=lambda p: (near.get(p.id, 0.0) + bm25.get(p.id, 0.0) / highest, -p.id)), None

    def _find_outcome(
        self, traced: _TracedSearch, passage: StoredPassage, hit: Passage | None, legs: Mapping[str, LegView]
    ) -> tuple[str, str]:
        from workbench.retrieval import explain as outcome

        if hit is not None:
            if hit.passage_id == passage.node_id:
                return outcome.IS_FOUND, f"It has rank {hit.rank}."
            if passage.node_id in {copy.passage_id for copy in hit.copies}:
                return outcome.COPY, f"It is a copy of rank {hit.rank}, {hit.passage_id}."
            return outcome.IS_SHOWN_WITHIN, f"Its text is shown within rank {hit.rank}, {hit.passage_id}."
        return outcome.find_outcome(passage.id, traced.way, legs)

    def _make_steps(
        self, traced: _TracedSearch, connection: Connection, passage: StoredPassage, standing: FinalRank
    ) -> tuple[Step, ...]:
        from workbench.retrieval.explain import trace_stages

        request = traced.query.request
        everything = traced.query.read_words(connection).totals.passages
        countable = self._countable(request, connection)
        index, scope = (everything, everything) if request.scope.is_everything else (None, countable)
        return trace_stages(passage.id, traced.way, standing, index=index, scope=scope, shown=len(traced.result))

    def _countable(self, request: Request, connection: Connection) -> int | None:
        """Return the number of passages in the request's scope; None if too many to count."""
        from workbench.storage.ranking import EXACT_UP_TO

        size = request.scope_size(connection)
        return None if size > EXACT_UP_TO else size

    def _others(self, query: Query) -> _OtherRankings:
        """Return the rankings of all other strategies that need no additional model, in the same scope and index."""
        request = query.request
        names = tuple(
            name
            for name, other in BUILT_IN_STRATEGIES.items()
            if not (other is request.strategy or other.needs or (other.needs_scope and request.scope.is_everything))
            and (other.reads_attached or not request.index.is_attached)
        )
        return _OtherRankings(self._search, query, names)


@dataclass
class _OtherRankings:
    """The rankings of other strategies for one question, cached, and computed only as deep as needed."""

    search: SearchService
    query: Query
    names: tuple[str, ...]
    _read: dict[tuple[str, int], SearchResult | None] = field(default_factory=dict)

    def find_ranks(self, explained: Explanation) -> dict[str, int | None]:
        """Return {strategy: rank of the explained passage}; None if it is not among the first 200."""
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
        # exact even if approximate search misses the passage
        leg = explained.legs.get(SINGLE_LEG_STRATEGIES.get(name, ""))
        return leg.rank if leg is not None and leg.rank is not None and leg.rank <= MAX_RESULTS else None

    def _result(self, name: str, limit: int) -> SearchResult | None:
        if (name, limit) not in self._read:
            request = self.query.request
            ask = Ask(name, limit, request.scope, request.index.name, history=request.history)
            try:
                self._read[name, limit] = self.search.search(self.query.typed, ask, self.query.encodings)
            except (ModelError, InvalidInput):  # reported by the explained strategy
                self._read[name, limit] = None
        return self._read[name, limit]


def _covers(hit: Passage, explained: Explanation) -> bool:
    same = hit.document_id == explained.document_id and hit.start <= explained.start and explained.end <= hit.end
    return same or hit.passage_id == explained.passage_id
