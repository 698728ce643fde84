"""The engine of a request's strategy: its retriever, its stages, and the order that ends every strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import cast

from llama_index.core.indices.prompt_helper import ChatPromptHelper, PromptHelper
from llama_index.core.llms import MockLLM
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.schema import NodeWithScore

from workbench.errors import ConfigurationError, ScopeError
from workbench.retrieval.engine import Engine
from workbench.retrieval.hit import Hit, lessened
from workbench.retrieval.nodes import hit_of, stored, with_hits
from workbench.retrieval.parameters import CUTOFF, DEEPEST
from workbench.retrieval.request import Request
from workbench.retrieval.retrievers.retriever import Retriever
from workbench.retrieval.stages.checkpoint import RETRIEVED, Checkpoint
from workbench.retrieval.stages.final_order import FinalOrder, preferred_first
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
    engine = Engine(
        retriever=strategy.retriever(request),
        response_synthesizer=synthesizer or _silence(),
        node_postprocessors=[*stages, FinalOrder.of(request)],
    )
    engine.continued = partial(continued, request)
    return engine


def continued(request: Request, query: str, first: list[NodeWithScore]) -> list[NodeWithScore]:
    """Return the nodes that a request has found, with further ones after them if it asks for more than the candidates.

    These come in the retriever's own order of a search to ``DEEPEST``, with scores no higher than the last one's, so
    that no limit changes what comes first. What the first ones show already is left out.
    """
    trace = request.trace
    if not first or len(first) + trace.cut >= request.limit or not trace.has_more:
        return first
    wanted = request.limit - len(first)
    # what the first ones are explained by stays as it is
    deep = replace(request, depth=DEEPEST, limit=wanted, likenesses={}, spreads={}, titles={}, sheet=None)
    found = cast(Retriever, request.strategy.retriever(deep)).find(query)
    further = preferred_first(deep, [node for node in found if not any(_shows(other, node) for other in first)])
    for make in request.strategy.stages:
        stage = cast(Stage, make(deep))
        further = stage.apply(query, further) if stage.widens and further else further
    bound = float(first[-1].score or 0.0)
    further = [_scored_below(node, bound) for node in further[: deep.limit]]
    floor = request.number(CUTOFF, otherwise=0.0) * (first[0].score or 0.0)
    worthy = [node for node in further if (node.score or 0.0) >= floor]
    trace.cut += len(further) - len(worthy)
    return [*first, *worthy]


def _shows(shown: NodeWithScore, node: NodeWithScore) -> bool:
    """Return whether a node that is shown holds another one: the same passage, or a widened text around it."""
    passage, other = stored(shown), stored(node)
    if passage.id == other.id:
        return True
    start, end = shown.node.metadata.get("start"), shown.node.metadata.get("end")
    if start is None or end is None or passage.document_id != other.document_id:
        return False
    return start <= other.span[0] and other.span[1] <= end


def _scored_below(node: NodeWithScore, bound: float) -> NodeWithScore:
    """Return a node with a score of at most ``bound``, the parts of its legs in proportion."""
    score = float(node.score or 0.0)
    if score <= bound:
        return node
    hit = hit_of(node)
    [bounded] = with_hits([node], [Hit(hit.id, bound, lessened(hit.legs, bound / score))])
    return bounded


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
