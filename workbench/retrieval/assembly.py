"""The engine of a request's strategy: its retriever, its stages, and the order that ends every strategy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

from llama_index.core.indices.prompt_helper import ChatPromptHelper, PromptHelper
from llama_index.core.llms import MockLLM
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.response_synthesizers.no_text import NoText

from workbench.errors import ConfigurationError, ScopeError
from workbench.retrieval.engine import Engine
from workbench.retrieval.request import Request
from workbench.retrieval.stages.checkpoint import RETRIEVED, Checkpoint
from workbench.retrieval.stages.final_order import FinalOrder
from workbench.retrieval.stages.stage import Stage


def build_engine(request: Request, synthesizer: BaseSynthesizer | None = None) -> Engine:
    """Assemble the strategy of one request; ``retrieve`` ranks, ``query`` also answers with the synthesizer.

    Raises:
        ScopeError: the strategy insists on a scope and the request names none.
        ConfigurationError: the strategy needs a model that is not configured.
    """
    strategy = request.strategy
    if strategy.needs_scope and request.scope.is_everything:
        raise ScopeError(f"The strategy {strategy.name!r} needs a scope; name a project, folder, tag or source.")
    if (strategy.needs_llm and request.llm is None) or (strategy.needs_reranker and request.cross_encoder is None):
        raise ConfigurationError(f"The strategy {strategy.name!r} cannot be used yet. {strategy.needs}")
    stages = [cast(Stage, make(request)) for make in strategy.stages]
    if request.trace.passed is not None:
        stages = watched(request, stages)
    return Engine(
        retriever=strategy.retriever(request),
        response_synthesizer=synthesizer or _silence(),
        node_postprocessors=[*stages, FinalOrder.of(request)],
    )


def watched(request: Request, stages: Sequence[Stage]) -> list[Stage]:
    """Return the stages with a checkpoint before the first ("retrieved") and after each (its leg or class name)."""
    noted: list[Stage] = [Checkpoint(request, RETRIEVED)]
    for stage in stages:
        noted += [stage, Checkpoint(request, stage.step)]
    return noted


@cache
def _silence() -> BaseSynthesizer:
    """Return a synthesizer that answers nothing, for engines that only retrieve; it holds nothing of a request.

    It never counts tokens, so its helpers count words: their own tokenizer would read a list of 100,000 tokens.
    """
    return NoText(
        llm=MockLLM(),
        prompt_helper=PromptHelper(tokenizer=str.split),
        chat_prompt_helper=ChatPromptHelper(tokenizer=str.split),
    )
