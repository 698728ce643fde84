"""The table of strategies, and the one place that assembles an engine from it.

A strategy is a source (a LlamaIndex retriever) and stages after it (node postprocessors). Screens, tool enums, the
README, the tests and the evaluation all read this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidInput, ScopeError, choices
from workbench.types import Parameter, Value, read_parameters

if TYPE_CHECKING:
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import BaseRetriever

    from workbench.retrieval.request import Request

VECTOR_WEIGHT = Parameter(
    "vector_weight", "float", 0.5, "Share of meaning against words; 1 is vector alone, 0 keywords alone.", 0.0, 1.0
)
FUSION = Parameter(
    "fusion",
    "choice",
    "convex",
    "Convex keeps how strong a match is; rrf looks at ranks only.",
    choices=("convex", "rrf"),
)
CANDIDATES = Parameter(
    "candidates", "int", 100, "Passages the reranker looks at: all that the two legs bring; fewer saves time.", 10, 400
)
LATE_WEIGHT = Parameter(
    "late_weight", "float", 0.3333, "Share of the word-by-word evidence; a third: all three kinds alike.", 0.0, 1.0
)


@dataclass(frozen=True, slots=True)
class Strategy(Value):
    """A named way to retrieve; ``source`` and ``stages`` say how, the rest is for people."""

    name: str
    title: str
    summary: str
    parameters: tuple[Parameter, ...]
    source: Callable[[Request], BaseRetriever]
    stages: tuple[Callable[[Request], Any], ...] = ()
    needs_scope: bool = False
    needs_llm: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return what can be said of it in JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "summary": self.summary,
            "parameters": [parameter.to_dict() for parameter in self.parameters],
            "needs_scope": self.needs_scope,
            "needs_llm": self.needs_llm,
        }


def _vector(request: Request) -> BaseRetriever:
    from workbench.retrieval.vector import VectorRetriever

    return VectorRetriever(request)


def _keyword(request: Request) -> BaseRetriever:
    from workbench.retrieval.keyword import KeywordRetriever

    return KeywordRetriever(request)


def _hybrid(request: Request) -> BaseRetriever:
    from workbench.retrieval.hybrid import HybridRetriever

    return HybridRetriever(request, keep=max(request.limit, int(request.parameters.get("candidates", 0))))


def _framework(request: Request) -> BaseRetriever:
    from workbench.retrieval.baseline import FrameworkHybridRetriever

    return FrameworkHybridRetriever(request)


def _late_interaction(request: Request) -> Any:
    from workbench.retrieval.rerank import LateInteractionRerank

    return LateInteractionRerank(request)


_HYBRID = (VECTOR_WEIGHT, FUSION)
_RERANK = (*_HYBRID, CANDIDATES, LATE_WEIGHT)

_TABLE = (
    Strategy("vector", "Vector", "By meaning: passages whose embedding is nearest to the question's.", (), _vector),
    Strategy("keyword", "Keyword", "By words: BM25 over stemmed words; finds names, codes, rare terms.", (), _keyword),
    Strategy("hybrid", "Hybrid", "Every candidate scored by meaning and by words, fused.", _HYBRID, _hybrid),
    Strategy(
        "rerank",
        "Rerank",
        "Hybrid, then compared word by word (late interaction) to put the best first.",
        _RERANK,
        _hybrid,
        (_late_interaction,),
    ),
    Strategy(
        "scoped",
        "Scoped",
        "Rerank that insists on a scope: a project, folder, tag or source must be named.",
        _RERANK,
        _hybrid,
        (_late_interaction,),
        needs_scope=True,
    ),
    Strategy(
        "llamaindex-hybrid",
        "LlamaIndex hybrid",
        "The framework's own hybrid as it comes: the baseline to beat.",
        (),
        _framework,
    ),
)
STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for strategy in _TABLE}
DEFAULT_STRATEGY = "rerank"


def strategy_named(name: str) -> Strategy:
    """Return a strategy of the table. Raises InvalidInput naming the valid ones."""
    if name not in STRATEGIES:
        raise InvalidInput(f"There is no strategy {name!r}; use one of {choices(STRATEGIES, 20)}.")
    return STRATEGIES[name]


def check_parameters(name: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return all parameters of a strategy, the given ones checked. Raises InvalidInput."""
    strategy = strategy_named(name)
    return read_parameters(f"The strategy {name!r}", strategy.parameters, given or {})


def build_engine(name: str, request: Request, synthesizer: Any = None) -> RetrieverQueryEngine:
    """Assemble a strategy for one request; ``retrieve`` ranks, ``query`` also answers with the synthesizer.

    Raises:
        ScopeError: the strategy insists on a scope and the request names none.
    """
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers.no_text import NoText

    from workbench.retrieval.ordering import FinalOrder

    strategy = strategy_named(name)
    if strategy.needs_scope and request.scope.is_everything:
        raise ScopeError(f"The strategy {name!r} needs a scope; name a project, folder, tag or source.")
    stages = [make(request) for make in strategy.stages]
    return RetrieverQueryEngine(
        retriever=strategy.source(request),
        response_synthesizer=synthesizer or NoText(llm=MockLLM()),
        node_postprocessors=[*stages, FinalOrder(request)],
    )
