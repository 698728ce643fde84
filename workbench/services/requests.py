"""Requests from questions: names become ids, promotions and defaults fill in, models are looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.errors import ConfigurationError, ModelError
from workbench.retrieval.first_import import import_framework
from workbench.retrieval.options import Ask, named
from workbench.retrieval.parameters import RANKER, SHIPPED
from workbench.retrieval.scope import resolve
from workbench.retrieval.strategies import STRATEGIES, check_parameters, strategy_named
from workbench.services.corpus import Corpus
from workbench.storage.promotions import EVERYWHERE
from workbench.types import Index, ResolvedScope, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from PIL.Image import Image

    from workbench.models.encoder import Encoder
    from workbench.retrieval.query import Request
    from workbench.types import ParameterValue, Passage, Ranker


class Requests:
    """The maker of the requests of every service that searches."""

    def __init__(self, corpus: Corpus, draw_page: Callable[[Passage], Image] | None = None) -> None:
        """Take what draws the page of a passage, which the hits of all requests offer."""
        self._corpus, self._draw_page = corpus, draw_page

    def of(self, ask: Ask, *, remembered: bool = False) -> Request:
        """Return a new request.

        ``remembered`` spares the look-up of the index where an earlier request made it: the search has to notice if
        the index has changed and to ask again, so a strategy that asks an LLM does not use it.

        Raises:
            InvalidInput: an unknown strategy or parameter. ScopeError: an unknown name in the scope.
            NotFound: no such index or ranker. ConfigurationError: a model is half configured.
        """
        import_framework()
        from workbench.retrieval.query import Request

        scope = self.resolve(ask.scope)
        name, index, parameters = self._serving(ask, scope)
        strategy = strategy_named(name)
        checked = check_parameters(name, parameters)
        remembered = remembered and not strategy.needs_llm
        chosen = self._corpus.last_seen_index(index) if remembered else self._corpus.index(index)
        return Request(
            strategy=strategy,
            store=self._corpus.store(chosen),
            encoder=self._encoder(chosen),
            scope=scope,
            limit=ask.limit,
            parameters=checked,
            remembered=remembered,
            min_similarity=ask.min_similarity,
            llm=self._corpus.llm if strategy.needs_llm else None,
            cross_encoder=self._corpus.cross_encoder if strategy.needs_reranker else None,
            kept_names=self._corpus.names(chosen),
            draw_page=self._draw_page,
            ranker=self._ranker(checked),
        )

    def resolve(self, scope: Scope | ResolvedScope) -> ResolvedScope:
        """Return what a scope's names stand for; a resolved one as it is. Raises ScopeError."""
        if isinstance(scope, ResolvedScope):
            return scope
        return resolve(scope, self._corpus.projects, self._corpus.sources)

    def check_usable(self, strategy: str) -> None:
        """Raise ConfigurationError, saying what is missing, where a strategy cannot be used with these settings."""
        row = strategy_named(strategy)
        lacks = (row.needs_llm and self._corpus.llm is None) or (
            row.needs_reranker and self._corpus.cross_encoder is None
        )
        if lacks:
            raise ConfigurationError(f"The strategy {strategy!r} cannot be used yet. {row.needs}")

    def check_named(self, parameters: Mapping[str, ParameterValue]) -> None:
        """Raise NotFound where a strategy's parameter names something that there is not."""
        self._ranker(parameters)

    def usable(self) -> dict[str, str]:
        """Return every strategy with what it lacks here, "" where it can be used."""
        return {name: self._lacks(name) for name in STRATEGIES}

    def _lacks(self, strategy: str) -> str:
        try:
            self.check_usable(strategy)
        except ConfigurationError as error:
            return str(error)
        return ""

    def _serving(self, ask: Ask, scope: ResolvedScope) -> tuple[str, str | None, Mapping[str, object]]:
        """Return strategy, index and parameters: the named ones, else what is promoted for the scope."""
        if ask.strategy is not None:
            return (*named(ask.strategy, ask.index), ask.parameters)
        promoted = self._corpus.promotions.serving(promotion_keys(scope))
        if promoted is None:
            return ask.built_in, ask.index, ask.parameters
        return promoted.strategy, ask.index or promoted.index, {**promoted.parameters, **ask.parameters}

    def _ranker(self, parameters: Mapping[str, ParameterValue]) -> Ranker | None:
        """Return the ranker that a strategy's parameters name; None for a strategy that has none."""
        from workbench.retrieval.ranker import shipped

        name = dict(parameters).get(RANKER.name)
        if name is None:
            return None
        return shipped() if name == SHIPPED else self._corpus.rankers.get(str(name))

    def _encoder(self, index: Index) -> Encoder:
        """Return the index's model, or one that says why there is none: the keyword leg does not need it."""
        from workbench.models.encoder import UnavailableEncoder

        try:
            return self._corpus.encoder_of(index)
        except ModelError as error:
            return UnavailableEncoder(index.embedding_model, str(error))


def promotion_keys(scope: ResolvedScope) -> list[str]:
    """Return the scopes whose promotion can serve this one, the most specific first."""
    source = scope.source_ids[0] if scope.source_ids is not None and len(scope.source_ids) == 1 else None
    places = (("source", source), ("folder", scope.folder_id), ("project", scope.project_id))
    return [*(f"{kind}:{key}" for kind, key in places if key), EVERYWHERE]
