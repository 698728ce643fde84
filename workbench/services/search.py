"""Search and compare: one query, one or several strategies, one scope."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import InvalidInput
from workbench.retrieval.agreement import agreement
from workbench.retrieval.scope import resolve
from workbench.retrieval.strategies import DEFAULT_STRATEGY, build_engine, check_parameters
from workbench.services.corpus import Corpus
from workbench.types import Comparison, ResolvedScope, Scope, SearchResult

LONGEST_QUERY = 10_000  # characters
MOST_RESULTS = 200
FEWEST_COMPARED, MOST_COMPARED = 1, 12


class SearchService:
    """The verbs ``search`` and ``compare``."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def search(
        self,
        query: str,
        *,
        strategy: str | None = None,
        limit: int = 10,
        scope: Scope | None = None,
        index: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        min_similarity: float = 0.0,
    ) -> SearchResult:
        """Return the best passages for a query, best first; scores fall with rank and lie in 0..1.

        ``min_similarity`` is the least cosine between query and passage, for every strategy; it is judged before the
        cut to the limit.

        Raises:
            InvalidInput: an empty or overlong query, a limit outside 1..200, an unknown strategy or parameter.
            ScopeError: the scope names something that does not exist.
        """
        return self.search_within(
            query,
            self.resolve(scope),
            strategy=strategy,
            limit=limit,
            index=index,
            parameters=parameters,
            min_similarity=min_similarity,
        )

    def search_within(
        self,
        query: str,
        scope: ResolvedScope,
        *,
        strategy: str | None = None,
        limit: int = 10,
        index: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        min_similarity: float = 0.0,
    ) -> SearchResult:
        """Search a scope whose names are resolved already. Raises what ``search`` raises."""
        check_query(query)
        if not 1 <= limit <= MOST_RESULTS:
            raise InvalidInput(f"limit cannot be {limit}; use a whole number from 1 to {MOST_RESULTS}.")
        if not 0 <= min_similarity <= 1:
            raise InvalidInput(f"min_similarity cannot be {min_similarity}; use a number from 0 to 1.")
        request = self.request(strategy or DEFAULT_STRATEGY, scope, limit, index, parameters)
        request.min_similarity = min_similarity
        return self._run(query, strategy or DEFAULT_STRATEGY, request)

    def compare(
        self,
        query: str,
        *,
        strategies: Sequence[str],
        limit: int = 10,
        scope: Scope | None = None,
        index: str | None = None,
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Comparison:
        """Answer one query by several strategies; ``parameters`` by strategy name.

        A strategy that fails makes the comparison fail. Raises what ``search`` raises.
        """
        check_query(query)
        names = list(dict.fromkeys(strategies))
        if not FEWEST_COMPARED <= len(names) <= MOST_COMPARED:
            raise InvalidInput(f"Compare from {FEWEST_COMPARED} to {MOST_COMPARED} strategies, not {len(names)}.")
        resolved = self.resolve(scope)
        shared: dict[str, Any] = {}
        results = {}
        for name in names:
            given = (parameters or {}).get(name)
            request = self.request(name, resolved, limit, index, given, encoded=shared)
            results[name] = self._run(query, name, request)
        rankings = {name: [passage.passage_id for passage in result] for name, result in results.items()}
        return Comparison(query=query, strategies=results, agreement=agreement(rankings))

    def query_engine(
        self,
        strategy: str,
        *,
        limit: int = 10,
        scope: Scope | None = None,
        index: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return a LlamaIndex query engine of a strategy, for whoever wants to build on it."""
        request = self.request(strategy, self.resolve(scope), limit, index, parameters)
        return build_engine(strategy, request)

    def resolve(self, scope: Scope | None) -> ResolvedScope:
        """Return what a scope's names stand for. Raises ScopeError."""
        return resolve(scope or Scope(), self._corpus.projects, self._corpus.sources)

    def request(
        self,
        strategy: str,
        scope: ResolvedScope,
        limit: int,
        index: str | None,
        parameters: Mapping[str, Any] | None,
        encoded: dict[str, Any] | None = None,
    ) -> Any:
        """Return a new request for a strategy; ``encoded`` shares the embedded query between strategies."""
        from workbench.retrieval.request import Request

        checked = check_parameters(strategy, parameters)
        chosen = self._corpus.index(index)
        request = Request(
            store=self._corpus.store(chosen),
            encoder=self._corpus.encoder_of(chosen),
            scope=scope,
            limit=limit,
            parameters=checked,
        )
        if encoded is not None:
            request.share_encoded(encoded)
        return request

    def _run(self, query: str, strategy: str, request: Any) -> SearchResult:
        from llama_index.core.schema import QueryBundle

        from workbench.retrieval.nodes import to_passages

        began = time.perf_counter()
        engine = build_engine(strategy, request)
        found = to_passages(engine.retrieve(QueryBundle(query)))
        timings = {name: round(ms, 3) for name, ms in request.trace.timings_ms.items()}
        timings["total"] = round((time.perf_counter() - began) * 1000, 3)
        return SearchResult(
            query=query,
            strategy=strategy,
            scope=request.scope,
            under_filled=len(found) < request.limit,
            degraded=tuple(request.trace.degraded),
            timings_ms=timings,
            results=found,
            index=request.store.index.name,
        )


def check_query(query: str) -> None:
    """Refuse a query that cannot be answered. Raises InvalidInput."""
    if not query.replace("\x00", "").strip():
        raise InvalidInput("The query is empty; ask something.")
    if len(query) > LONGEST_QUERY:
        raise InvalidInput(f"The query has {len(query):,} characters; shorten it to at most {LONGEST_QUERY:,}.")
