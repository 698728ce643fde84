"""The table of strategies.

A strategy is a LlamaIndex retriever, followed by stages (node postprocessors). Screens, tool enums, the README,
the tests and the evaluation all read this table. A new strategy is a class in ``retrievers`` or ``stages``, its import
below, and a row here. Users add their own rows (``workbench.retrieval.own``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from workbench.errors import Conflict, InvalidInput, NotFound, list_choices
from workbench.retrieval import parameters as known
from workbench.retrieval.strategy import ParametersOf, Strategy
from workbench.types import (
    CLUSTER,
    CROSS_ENCODER,
    DOCUMENT,
    FEEDBACK,
    HYDE,
    KEYWORD,
    LATE,
    LEARNED,
    LLM,
    NOVELTY,
    QUERY,
    VECTOR,
    Index,
    ParameterValue,
    read_parameters,
)

if TYPE_CHECKING:
    from workbench.retrieval.retrievers.retriever import Retriever
    from workbench.retrieval.stages.stage import Stage

T = TypeVar("T")
_HYBRID_LEGS = (VECTOR, KEYWORD, DOCUMENT)
_RERANK_LEGS = (*_HYBRID_LEGS, LATE, CLUSTER)
_RERANK_STAGES = ("LateInteractionRerank", "ClusterRerank", "Pages")

_TABLE = (
    Strategy(
        "vector",
        "Vector",
        "Similarity search: passages with the embedding nearest to the question's.",
        "VectorRetriever",
        legs=(VECTOR,),
        reads_attached=True,
    ),
    Strategy(
        "keyword",
        "Keyword",
        "BM25 over stemmed words; finds names, codes and rare terms.",
        "KeywordRetriever",
        legs=(KEYWORD, VECTOR),
        reads_attached=True,
    ),
    Strategy(
        "hybrid",
        "Hybrid",
        "Fuses vector and keyword scores of every candidate.",
        "HybridRetriever",
        legs=_HYBRID_LEGS,
        parameters=known.HYBRID,
        reads_attached=True,
    ),
    Strategy(
        "rerank",
        "Rerank",
        "Hybrid, then late interaction (token matches), similarity to the top passages, a second match on the page.",
        "HybridRetriever",
        legs=_RERANK_LEGS,
        parameters=known.RERANK,
        stages=_RERANK_STAGES,
        reads_attached=True,
    ),
    Strategy(
        "scoped",
        "Scoped",
        "Rerank, scope required: name a project, folder, tag or source.",
        "HybridRetriever",
        legs=_RERANK_LEGS,
        parameters=known.RERANK,
        stages=_RERANK_STAGES,
        needs_scope=True,
        reads_attached=True,
    ),
    Strategy(
        "fuzzy",
        "Fuzzy",
        "Hybrid, typo-tolerant: misspelled words match likely corrections, and similarity counts less.",
        "FuzzyRetriever",
        legs=_HYBRID_LEGS,
        parameters=(*known.HYBRID, known.TYPO_TOLERANCE, known.MIN_SIMILARITY),
    ),
    Strategy(
        "auto-merge",
        "Auto-merge",
        "Rerank, then small passages are merged into their section or page.",
        "HybridRetriever",
        legs=_RERANK_LEGS,
        parameters=(*known.RERANK, known.UNIT, known.SHARE),
        stages=(*_RERANK_STAGES, "AutoMerge"),
    ),
    Strategy(
        "window",
        "Window",
        "Rerank, with the text of neighbouring passages around each result.",
        "HybridRetriever",
        legs=_RERANK_LEGS,
        parameters=(*known.RERANK, known.NEIGHBOURS),
        stages=(*_RERANK_STAGES, "Window"),
    ),
    Strategy(
        "mmr",
        "MMR",
        "Rerank, then selects passages that differ from the ones above.",
        "HybridRetriever",
        legs=(*_RERANK_LEGS, NOVELTY),
        parameters=(*known.RERANK, known.LAMBDA),
        stages=(*_RERANK_STAGES, "Mmr"),
    ),
    Strategy(
        "feedback",
        "Feedback",
        "Searches twice: the question moves towards the top passages (Rocchio; words by RM3), then rerank.",
        "FeedbackRetriever",
        legs=(*_RERANK_LEGS, FEEDBACK),
        parameters=(*known.RERANK, known.FEEDBACK_PASSAGES, known.FEEDBACK_WEIGHT, known.TERMS, known.TERM_WEIGHT),
        stages=_RERANK_STAGES,
    ),
    Strategy(
        "learned",
        "Learned",
        "Rerank, then a linear model trained on judged questions weights features of all legs.",
        "HybridRetriever",
        legs=(*_RERANK_LEGS, LEARNED),
        parameters=(*known.RERANK, known.RANKER),
        stages=(*_RERANK_STAGES, "LearnedRerank"),
    ),
    Strategy(
        "hyde",
        "HyDE",
        "An LLM writes a hypothetical answer; rerank over passages near it and the question.",
        "HydeRetriever",
        legs=(*_RERANK_LEGS, HYDE),
        parameters=(*known.RERANK, known.HYDE_WEIGHT, known.LLM_NAME),
        stages=_RERANK_STAGES,
        needs_llm=True,
    ),
    Strategy(
        "multi-query",
        "Multi-query",
        "An LLM rephrases the question; all versions are searched, then rerank.",
        "MultiQueryRetriever",
        legs=(*_RERANK_LEGS, QUERY),
        parameters=(*known.RERANK, known.QUERIES, known.LLM_NAME),
        stages=_RERANK_STAGES,
        needs_llm=True,
    ),
    Strategy(
        "llm-rerank",
        "LLM rerank",
        "Rerank, then an LLM grades the top passages.",
        "HybridRetriever",
        legs=(*_RERANK_LEGS, LLM),
        parameters=(*known.RERANK, known.GRADED_PASSAGES, known.LLM_WEIGHT, known.LLM_NAME),
        stages=(*_RERANK_STAGES, "LlmRerank"),
        needs_llm=True,
    ),
    Strategy(
        "cross-encoder",
        "Cross-encoder",
        "Hybrid, then a cross-encoder scores each candidate.",
        "HybridRetriever",
        legs=(*_HYBRID_LEGS, CROSS_ENCODER),
        parameters=(*known.HYBRID, known.CANDIDATES, known.CROSS_WEIGHT, known.RERANKER),
        stages=("CrossEncoderRerank",),
        needs_reranker=True,
    ),
    Strategy(
        "llamaindex-hybrid",
        "LlamaIndex hybrid",
        "LlamaIndex's own hybrid mode, unchanged: the baseline.",
        "FrameworkHybridRetriever",
        legs=(VECTOR,),
    ),
)
BUILT_IN_STRATEGIES: Mapping[str, Strategy] = {strategy.name: strategy for strategy in _TABLE}


@cache
def load_retrievers() -> Mapping[str, type[Retriever]]:
    """Return the classes of retrievers by name; their modules are imported on first use."""
    from workbench.retrieval.retrievers import foreign, framework_hybrid, hybrid, keyword, rewriting, vector
    from workbench.retrieval.retrievers.retriever import Retriever

    return _find_classes(Retriever, (vector, keyword, hybrid, rewriting, framework_hybrid, foreign))


@cache
def load_stages() -> Mapping[str, type[Stage]]:
    """Return the classes of stages by name; their modules are imported on first use."""
    from workbench.retrieval.stages import context, late_interaction, learned, model_rerank, similarity
    from workbench.retrieval.stages.stage import Stage

    return _find_classes(Stage, (late_interaction, similarity, context, learned, model_rerank))


def _find_classes(base: type[T], modules: Sequence[ModuleType]) -> dict[str, type[T]]:
    found = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    return {value.__name__: value for value in found if issubclass(value, base)}


class StrategyTable(Mapping[str, Strategy]):
    """Strategies by name: the built-in ones and those that users have added to this process; thread-safe.

    Strategies declared by packages or in ``workbench.toml`` are read when a name is unknown or all names are listed, so
    a process that needs none of them never looks for them.
    """

    def __init__(self) -> None:
        self._rows = dict(BUILT_IN_STRATEGIES)
        self._unread: list[Callable[[], Mapping[str, Strategy]]] = []
        self._declared = set[str]()
        self._lock = threading.RLock()

    def __getitem__(self, name: str) -> Strategy:
        row = self._rows.get(name)
        if row is None:
            self._read_declared()
            row = self._rows[name]
        return row

    def __iter__(self) -> Iterator[str]:
        self._read_declared()
        return iter(tuple(self._rows))

    def __len__(self) -> int:
        self._read_declared()
        return len(self._rows)

    def declare(self, origin: str, read: Callable[[], Mapping[str, Strategy]]) -> None:
        """Have ``read`` called when its strategies may be needed, once for each ``origin``.

        Strategies that were added to this process keep their names.
        """
        with self._lock:
            if origin not in self._declared:
                self._declared.add(origin)
                self._unread.append(read)

    def add(self, strategy: Strategy, *, replace: bool = False) -> None:
        """Add a strategy to this process.

        Raises:
            Conflict: The name belongs to a built-in strategy, or to another one and ``replace`` is False.
        """
        name = strategy.name
        if name in BUILT_IN_STRATEGIES:
            raise Conflict(f"The strategy {name!r} is built in; choose another name.")
        with self._lock:
            if not replace and name in self:
                raise Conflict(f"There is already a strategy {name!r}; choose another name, or pass replace=True.")
            self._rows[name] = strategy

    def remove(self, name: str) -> None:
        """Remove a strategy that was added or declared from this process.

        Raises:
            Conflict: It is built in.
            NotFound: There is no such strategy.
        """
        if name in BUILT_IN_STRATEGIES:
            raise Conflict(f"The strategy {name!r} is built in and cannot be removed.")
        with self._lock:
            if name not in self:
                raise NotFound("strategy", name, "List the strategies to see the valid names.")
            del self._rows[name]

    def _read_declared(self) -> None:
        if not self._unread:
            return
        with self._lock:
            while self._unread:
                declared = self._unread[0]()  # stays unread if it raises, so that its fault is reported again
                del self._unread[0]
                self._rows = {**dict(declared), **self._rows} if declared else self._rows
            order = [*BUILT_IN_STRATEGIES, *(name for name in self._rows if name not in BUILT_IN_STRATEGIES)]
            self._rows = {name: self._rows[name] for name in order}


STRATEGIES = StrategyTable()
DEFAULT_STRATEGY = "rerank"
WORDS_ALONE = "keyword"  # fallback if the embedding model fails
BOTH_LEGS = "hybrid"  # candidates with the scores of both legs, without stages
TYPO_TOLERANT_STRATEGY = "fuzzy"  # corrects misspelled words
COMPARED_STRATEGIES = ("vector", WORDS_ALONE, BOTH_LEGS, DEFAULT_STRATEGY)  # default of compare
UNPROMOTED_TOOL_STRATEGY = BOTH_LEGS  # default of the tool search_knowledge_base, as specified


def describe_unregistered(strategy: str) -> str:
    """Return a sentence about a stored choice of a strategy that this process does not have."""
    return (
        f"The strategy {strategy!r} is not registered in this process; declare it in workbench.toml or by an entry "
        "point, add it with wb.strategies.add, or choose another one."
    )


def strategy_named(name: str) -> Strategy:
    """Return a strategy of the table. Raises InvalidInput naming the valid ones."""
    if name not in STRATEGIES:
        raise InvalidInput(f"There is no strategy {name!r}; use one of {list_choices(STRATEGIES, 20)}.")
    return STRATEGIES[name]


def asks_llm(name: str, parameters: Mapping[str, ParameterValue], *, has_turns: bool = True) -> bool:
    """Return whether a search calls the LLM: the strategy does, or it rewrites a question with earlier turns."""
    return STRATEGIES[name].needs_llm or (has_turns and parameters.get(known.HISTORY.name) == known.ASK_LLM)


def split_strategy(strategy: str, index: str | None) -> tuple[str, str | None]:
    """Split "strategy" or "strategy@index" into strategy and index. Raises InvalidInput if two indexes are named."""
    if not isinstance(strategy, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a notebook may give anything
        raise InvalidInput(f"Invalid strategy {strategy!r}: use one of {list_choices(STRATEGIES, 20)}.")
    name, at, own = strategy.partition("@")
    strategy_named(name)
    if at and index is not None and own != index:
        raise InvalidInput(f"{strategy!r} names the index {own!r}, but {index!r} was given too; use one of them.")
    if at and not own:
        raise InvalidInput(f"{strategy!r} names no index; use {name}@INDEX.")
    return name, own if at else index


def check_index(strategy: Strategy, index: Index) -> None:
    """Check that a strategy can search an index.

    Raises:
        InvalidInput: The index reads a table in place, and the strategy needs vectors of our own.
    """
    if index.is_attached and not strategy.reads_attached:
        able = list_choices(name for name, row in BUILT_IN_STRATEGIES.items() if row.reads_attached)
        raise InvalidInput(
            f"The strategy {strategy.name!r} cannot search {index.name!r}, which reads a table in place; "
            f"use one of {able}, or another index."
        )


def check_parameters(name: str, given: Mapping[str, object] | None) -> ParametersOf:
    """Return all parameters of a strategy, after checking the given ones. Raises InvalidInput."""
    strategy = strategy_named(name)
    return ParametersOf(name, read_parameters(f"The strategy {name!r}", strategy.parameters, given or {}))
