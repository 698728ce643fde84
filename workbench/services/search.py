"""Search and compare: one query, one or several strategies, one scope."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import ConfigurationError, InvalidInput, ModelError, StatementRefused, choices
from workbench.retrieval.agreement import agreement
from workbench.retrieval.scope import resolve
from workbench.retrieval.strategies import (
    DEFAULT_STRATEGY,
    STRATEGIES,
    build_engine,
    check_parameters,
    strategy_named,
)
from workbench.services.corpus import Corpus
from workbench.services.lacking import Lacking
from workbench.services.question import check_limit, check_query
from workbench.storage.promotions import EVERYWHERE
from workbench.types import Comparison, Index, ResolvedScope, Scope, SearchResult

FEWEST_COMPARED, MOST_COMPARED = 1, 12


class SearchService:
    """The verbs ``search`` and ``compare``."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._lacking = Lacking(corpus.documents)

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
        built_in: str = DEFAULT_STRATEGY,
    ) -> SearchResult:
        """Return the best passages for a query, best first; scores fall with rank and lie in 0..1.

        ``min_similarity`` is the least cosine between query and passage, for every strategy; it is judged before the
        cut to the limit. ``built_in`` serves where no strategy is named and none is promoted.

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
            built_in=built_in,
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
        built_in: str = DEFAULT_STRATEGY,
    ) -> SearchResult:
        """Search a scope whose names are resolved already. Raises what ``search`` raises."""
        check_query(query)
        check_limit(limit)
        if not 0 <= min_similarity <= 1:
            raise InvalidInput(f"min_similarity cannot be {min_similarity}; use a number from 0 to 1.")
        name, index, parameters = self.chosen(strategy, scope, index, parameters, built_in)
        request = self.request(name, scope, limit, index, parameters, remembered=True)
        request.min_similarity = min_similarity
        self._note_what_is_lacking(request)
        return self.run(query, name, request)

    def compare(
        self,
        query: str,
        *,
        strategies: str | Sequence[str],
        limit: int = 10,
        scope: Scope | None = None,
        index: str | None = None,
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Comparison:
        """Answer one query by several strategies; ``parameters`` by strategy name.

        "strategy@index" asks that index. Agreement is by passage; where the indexes differ, passages do too, and it
        is by document. A strategy that fails makes the comparison fail. Raises what ``search`` raises.
        """
        check_query(query)
        check_limit(limit)
        names = list(dict.fromkeys([strategies] if isinstance(strategies, str) else strategies))
        if not FEWEST_COMPARED <= len(names) <= MOST_COMPARED:
            raise InvalidInput(f"Compare from {FEWEST_COMPARED} to {MOST_COMPARED} strategies, not {len(names)}.")
        resolved = self.resolve(scope)
        shared: dict[str, dict[str, Any]] = {}
        results = {}
        for name in names:
            strategy, own_index = named(name, None)
            given = (parameters or {}).get(name, (parameters or {}).get(strategy))
            request = self.request(strategy, resolved, limit, own_index or index, given, remembered=True)
            request.share_encoded(shared.setdefault(request.store.index.embedding_model, {}))
            self._note_what_is_lacking(request)
            results[name] = self.run(query, strategy, request)
        one_index = len({result.index for result in results.values()}) == 1
        rankings = {
            name: [hit.passage_id for hit in result]
            if one_index
            else list(dict.fromkeys(hit.document_id for hit in result))
            for name, result in results.items()
        }
        return Comparison(query=query, strategies=results, agreement=agreement(rankings))

    def query_engine(
        self,
        strategy: str | None = None,
        *,
        limit: int = 10,
        scope: Scope | None = None,
        index: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return a LlamaIndex query engine of a strategy, for whoever wants to build on it; it answers as ``ask``."""
        from workbench.retrieval.synthesis import CitingSynthesizer

        resolved = self.resolve(scope)
        name, index, parameters = self.chosen(strategy, resolved, index, parameters)
        request = self.request(name, resolved, limit, index, parameters)
        request.llm = self._corpus.llm
        return build_engine(name, request, CitingSynthesizer(request))

    def resolve(self, scope: Scope | None) -> ResolvedScope:
        """Return what a scope's names stand for. Raises ScopeError."""
        return resolve(Scope() if scope is None else scope, self._corpus.projects, self._corpus.sources)

    def request(
        self,
        strategy: str,
        scope: ResolvedScope,
        limit: int,
        index: str | None,
        parameters: Mapping[str, Any] | None,
        *,
        remembered: bool = False,
    ) -> Any:
        """Return a new request for a strategy. Raises ConfigurationError where it needs a model that cannot load.

        ``remembered`` spares the look-up of the index where an earlier request made it: for ``run``, which notices
        if the index has changed and then asks twice, so an LLM is not used with it.
        """
        from workbench.retrieval.request import Request

        needs = strategy_named(strategy)
        remembered = remembered and not needs.needs_llm
        checked = check_parameters(strategy, parameters)
        chosen = self._corpus.last_seen_index(index) if remembered else self._corpus.index(index)
        return Request(
            index_name=index,
            remembered=remembered,
            store=self._corpus.store(chosen),
            encoder=self._encoder(chosen),
            scope=scope,
            limit=limit,
            parameters=checked,
            llm=self._corpus.llm if needs.needs_llm else None,
            cross_encoder=self._corpus.cross_encoder if needs.needs_reranker else None,
        )

    def _encoder(self, index: Index) -> Any:
        """Return the index's model, or what says why there is none: the keyword leg does not need it."""
        from workbench.models.unavailable import UnavailableEncoder

        try:
            return self._corpus.encoder_of(index)
        except ModelError as error:
            return UnavailableEncoder(index.embedding_model, str(error))

    def chosen(
        self,
        strategy: str | None,
        scope: ResolvedScope,
        index: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        built_in: str = DEFAULT_STRATEGY,
    ) -> tuple[str, str | None, Mapping[str, Any] | None]:
        """Return strategy, index and parameters of a search: the named ones, else what is promoted for the scope."""
        if strategy is not None:
            return (*named(strategy, index), parameters)
        promoted = self._corpus.promotions.serving(promotion_keys(scope))
        if promoted is None:
            return built_in, index, parameters
        return promoted.strategy, index or promoted.index, {**promoted.parameters, **(parameters or {})}

    def _note_what_is_lacking(self, request: Any) -> None:
        """Say it where an index is not up to date: an ingest fills one index, the default one unless told otherwise."""
        index = request.store.index
        if index.is_default or index.dataset is not None:
            return
        lacking = self._lacking.count(index)
        if lacking:
            documents = "1 document" if lacking == 1 else f"{lacking:,} documents"
            request.trace.note(f"{index.name} lacks {documents}; run 'workbench indexes build {index.name}'")

    def check_usable(self, strategy: str) -> None:
        """Raise ConfigurationError, saying what is missing, where a strategy cannot be used with these settings."""
        needs = strategy_named(strategy)
        lacks = (needs.needs_llm and self._corpus.llm is None) or (
            needs.needs_reranker and self._corpus.cross_encoder is None
        )
        if lacks:
            raise ConfigurationError(f"The strategy {strategy!r} cannot be used yet. {needs.needs}")

    def usable(self) -> dict[str, str]:
        """Return every strategy with what it lacks here, "" where it can be used."""
        return {name: self._lacks(name) for name in STRATEGIES}

    def _lacks(self, strategy: str) -> str:
        try:
            self.check_usable(strategy)
        except ConfigurationError as error:
            return str(error)
        return ""

    def run(self, query: str, strategy: str, request: Any) -> SearchResult:
        """Serve one request; the keyword leg alone, and a note, where the index's model fails.

        A remembered index that was dropped, rebuilt or is no longer the default shows nothing, or its tables are
        gone: then the index is looked up and asked again.
        """
        if request.remembered:
            try:
                result = self._run(query, strategy, request)
                if result.results:
                    return result
            except (StatementRefused, ModelError):
                pass
            request = self._looked_up(strategy, request)
        return self._run(query, strategy, request)

    def _looked_up(self, strategy: str, request: Any) -> Any:
        """Return the same request to the index as it is now."""
        again = self.request(strategy, request.scope, request.limit, request.index_name, request.parameters)
        again.min_similarity = request.min_similarity
        self._note_what_is_lacking(again)
        return again

    def _run(self, query: str, strategy: str, request: Any) -> SearchResult:
        from llama_index.core.schema import QueryBundle

        from workbench.retrieval.corrections import correct
        from workbench.retrieval.nodes import to_passages

        began = time.perf_counter()
        corrections = correct(request, query) if strategy_named(strategy).uses_words else {}
        try:
            nodes = build_engine(strategy, request).retrieve(QueryBundle(query))
        except ModelError:  # the embedding model's: the stages catch those of theirs
            if not strategy_named(strategy).has_keyword_leg:
                raise
            request.trace.note(f"{strategy}: the vector leg could not serve, so the keyword leg served alone")
            nodes = build_engine("keyword", request).retrieve(QueryBundle(query))
        found = to_passages(nodes)
        timings = {name: round(ms, 3) for name, ms in request.trace.timings_ms.items()}
        timings["total"] = round((time.perf_counter() - began) * 1000, 3)
        return SearchResult(
            query=query,
            strategy=strategy,
            scope=request.scope,
            under_filled=len(found) + request.trace.cut < request.limit,
            degraded=tuple(request.trace.degraded),
            timings_ms=timings,
            results=found,
            index=request.store.index.name,
            corrections=corrections,
        )


def named(strategy: str, index: str | None) -> tuple[str, str | None]:
    """Return strategy and index of "strategy" or "strategy@index". Raises InvalidInput where two are named."""
    if not isinstance(strategy, str):
        raise InvalidInput(f"A strategy cannot be {strategy!r}; use one of {choices(STRATEGIES, 20)}.")
    name, at, own = strategy.partition("@")
    strategy_named(name)
    if at and index is not None and own != index:
        raise InvalidInput(f"{strategy!r} names the index {own!r}, and {index!r} is asked for too; name one of them.")
    if at and not own:
        raise InvalidInput(f"{strategy!r} names no index; write it as {name}@INDEX.")
    return name, own if at else index


def across(strategies: Sequence[str], indexes: Sequence[str]) -> list[str]:
    """Return every strategy on every index as "strategy@index", a strategy's indexes side by side; as they are without.

    Raises:
        InvalidInput: a strategy names an index of its own, and others are asked for.
    """
    if not indexes:
        return list(strategies)
    for strategy in strategies:
        if "@" in strategy:
            raise InvalidInput(
                f"{strategy!r} names an index, and {choices(indexes)} are asked for too; drop one of them."
            )
    return [f"{strategy}@{index}" for strategy in strategies for index in indexes]


def promotion_keys(scope: ResolvedScope) -> list[str]:
    """Return the scopes whose promotion can serve this one, the most specific first."""
    source = scope.source_ids[0] if scope.source_ids is not None and len(scope.source_ids) == 1 else None
    places = (("source", source), ("folder", scope.folder_id), ("project", scope.project_id))
    return [*(f"{kind}:{key}" for kind, key in places if key), EVERYWHERE]
