"""The table of strategies, and the one place that assembles an engine from it.

A strategy is a source (a LlamaIndex retriever) and stages after it (node postprocessors). Screens, tool enums, the
README, the tests and the evaluation all read this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from workbench.errors import ConfigurationError, InvalidInput, ScopeError, choices
from workbench.retrieval import parameters as known
from workbench.types import Parameter, Value, read_parameters

if TYPE_CHECKING:
    from workbench.retrieval.engine import Engine
    from workbench.retrieval.request import Request
    from workbench.retrieval.source import Source


@dataclass(frozen=True, slots=True)
class Strategy(Value):
    """A named way to retrieve; ``source`` and ``stages`` say how, the rest is for people."""

    name: str
    title: str
    summary: str
    parameters: tuple[Parameter, ...]
    source: Callable[[Request], Source]
    stages: tuple[Callable[[Request], Any], ...] = ()
    needs_scope: bool = False
    needs_llm: bool = False
    needs_reranker: bool = False

    @property
    def has_keyword_leg(self) -> bool:
        """True for strategies over both legs: the keyword leg serves alone where the embedding model fails."""
        return any(parameter.name == known.VECTOR_WEIGHT.name for parameter in self.parameters)

    @property
    def uses_words(self) -> bool:
        """True for strategies that look the question's words up in the lexicon."""
        return self.has_keyword_leg or self.name == "keyword"

    @property
    def needs(self) -> str:
        """What must be configured before it can be used, as a sentence; "" where nothing is."""
        if self.needs_llm:
            return "It needs an LLM: set WORKBENCH_LLM_BASE_URL and WORKBENCH_LLM_MODEL."
        if self.needs_reranker:
            return "It needs a cross-encoder: set WORKBENCH_RERANKER to a Hugging Face id or a local folder."
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Return what can be said of it in JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "summary": self.summary,
            "parameters": [parameter.to_dict() for parameter in self.parameters],
            "needs_scope": self.needs_scope,
            "needs_llm": self.needs_llm,
            "needs_reranker": self.needs_reranker,
            "needs": self.needs,
        }


def _made(module: str, name: str) -> Callable[[Request], Any]:
    """Return what makes a source or stage for a request; its module is imported when it is first made."""
    return lambda request: getattr(import_module(f"workbench.retrieval.{module}"), name)(request)


def _source(module: str, name: str) -> Callable[[Request], Source]:
    """Return what makes a source that hands its best candidates to the stages after it."""

    def make(request: Request) -> Source:
        keep = max(request.limit, int(request.parameters.get("candidates", 0)))
        return getattr(import_module(f"workbench.retrieval.{module}"), name)(request, keep)

    return make


_HYBRID = _source("hybrid", "HybridRetriever")
_LATE = _made("rerank", "LateInteractionRerank")

_TABLE = (
    Strategy(
        "vector",
        "Vector",
        "By meaning: passages whose embedding is nearest to the question's.",
        (),
        _made("vector", "VectorRetriever"),
    ),
    Strategy(
        "keyword",
        "Keyword",
        "By words: BM25 over stemmed words; finds names, codes, rare terms.",
        (),
        _made("keyword", "KeywordRetriever"),
    ),
    Strategy("hybrid", "Hybrid", "Every candidate scored by meaning and by words, fused.", known.HYBRID, _HYBRID),
    Strategy(
        "rerank",
        "Rerank",
        "Hybrid, then compared word by word (late interaction) to put the best first.",
        known.RERANK,
        _HYBRID,
        (_LATE,),
    ),
    Strategy(
        "scoped",
        "Scoped",
        "Rerank that insists on a scope: a project, folder, tag or source must be named.",
        known.RERANK,
        _HYBRID,
        (_LATE,),
        needs_scope=True,
    ),
    Strategy(
        "auto-merge",
        "Auto-merge",
        "Rerank finds small passages; their section is returned (best on an index of the chunker 'hierarchical').",
        (*known.RERANK, known.SHARE),
        _HYBRID,
        (_LATE, _made("auto_merge", "AutoMerge")),
    ),
    Strategy(
        "window",
        "Window",
        "Rerank, each passage shown with its neighbours' text around it.",
        (*known.RERANK, known.NEIGHBOURS),
        _HYBRID,
        (_LATE, _made("window", "Window")),
    ),
    Strategy(
        "mmr",
        "MMR",
        "Rerank, then each next passage must add something the ones before it do not say.",
        (*known.RERANK, known.LAMBDA),
        _HYBRID,
        (_LATE, _made("mmr", "Mmr")),
    ),
    Strategy(
        "feedback",
        "Feedback",
        "Asks twice: the question moves towards the first passages (Rocchio; words by RM3), then rerank.",
        (*known.RERANK, known.FEEDBACK_PASSAGES, known.FEEDBACK_WEIGHT, known.TERMS, known.TERM_WEIGHT),
        _source("feedback", "FeedbackRetriever"),
        (_LATE,),
    ),
    Strategy(
        "hyde",
        "HyDE",
        "An LLM imagines the answer; rerank over passages near to it and to the question.",
        (*known.RERANK, known.HYDE_WEIGHT),
        _source("hyde", "HydeRetriever"),
        (_LATE,),
        needs_llm=True,
    ),
    Strategy(
        "multi-query",
        "Multi-query",
        "An LLM says the question in other words; all are searched, then rerank.",
        (*known.RERANK, known.QUERIES),
        _source("multi_query", "MultiQueryRetriever"),
        (_LATE,),
        needs_llm=True,
    ),
    Strategy(
        "llm-rerank",
        "LLM rerank",
        "Rerank, then an LLM reads the first passages and grades them.",
        (*known.RERANK, known.GRADED, known.LLM_WEIGHT),
        _HYBRID,
        (_LATE, _made("llm_rerank", "LlmRerank")),
        needs_llm=True,
    ),
    Strategy(
        "cross-encoder",
        "Cross-encoder",
        "Hybrid, then a model reads question and passage together and scores each.",
        (*known.HYBRID, known.CANDIDATES, known.CROSS_WEIGHT),
        _HYBRID,
        (_made("cross_encoder", "CrossEncoderRerank"),),
        needs_reranker=True,
    ),
    Strategy(
        "llamaindex-hybrid",
        "LlamaIndex hybrid",
        "The framework's own hybrid as it comes: the baseline to beat.",
        (),
        _made("baseline", "FrameworkHybridRetriever"),
    ),
)
STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for strategy in _TABLE}
DEFAULT_STRATEGY = "rerank"
SOURCE = "source"  # the name of what a source hands on, in a watched request


def strategy_named(name: str) -> Strategy:
    """Return a strategy of the table. Raises InvalidInput naming the valid ones."""
    if name not in STRATEGIES:
        raise InvalidInput(f"There is no strategy {name!r}; use one of {choices(STRATEGIES, 20)}.")
    return STRATEGIES[name]


def check_parameters(name: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return all parameters of a strategy, the given ones checked. Raises InvalidInput."""
    strategy = strategy_named(name)
    return read_parameters(f"The strategy {name!r}", strategy.parameters, given or {})


def watched(request: Request, stages: list[Any]) -> list[Any]:
    """Return the stages with a checkpoint before the first ("source") and after each (its class name)."""
    from workbench.retrieval.checkpoint import Checkpoint

    noted: list[Any] = [Checkpoint(request, SOURCE)]
    for stage in stages:
        noted += [stage, Checkpoint(request, stage.class_name())]
    return noted


@cache
def _silence() -> Any:
    """What answers nothing, for whoever only retrieves: made once, for it holds nothing of a request."""
    from llama_index.core.llms import MockLLM
    from llama_index.core.response_synthesizers.no_text import NoText

    return NoText(llm=MockLLM())


def build_engine(name: str, request: Request, synthesizer: Any = None) -> Engine:
    """Assemble a strategy for one request; ``retrieve`` ranks, ``query`` also answers with the synthesizer.

    Raises:
        ScopeError: the strategy insists on a scope and the request names none.
        ConfigurationError: the strategy needs a model that is not configured.
    """
    from workbench.retrieval.engine import Engine
    from workbench.retrieval.ordering import FinalOrder

    strategy = strategy_named(name)
    if strategy.needs_scope and request.scope.is_everything:
        raise ScopeError(f"The strategy {name!r} needs a scope; name a project, folder, tag or source.")
    if (strategy.needs_llm and request.llm is None) or (strategy.needs_reranker and request.cross_encoder is None):
        raise ConfigurationError(f"The strategy {name!r} cannot be used yet. {strategy.needs}")
    last: Any = FinalOrder  # Stage's own __init__ is hidden from type checkers by the one pydantic makes up
    stages = [make(request) for make in strategy.stages]
    if request.trace.passed is not None:
        stages = watched(request, stages)
    return Engine(
        retriever=strategy.source(request),
        response_synthesizer=synthesizer or _silence(),
        node_postprocessors=[*stages, last(request)],
    )
