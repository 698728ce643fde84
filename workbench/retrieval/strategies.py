"""The table of strategies.

A strategy is a LlamaIndex retriever, followed by stages (node postprocessors). Screens, tool enums, the README,
the tests and the evaluation all read this table. A new strategy is a file in ``retrievers`` or ``stages``, a function
that imports it, and a row here. Users add their own rows (``workbench.retrieval.own``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

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
    read_parameters,
)

if TYPE_CHECKING:
    from workbench.retrieval.query import Request
    from workbench.retrieval.retrievers.retriever import Retriever
    from workbench.retrieval.stages.stage import Stage

# Factories of retrievers and stages, imported on first use


def vector(request: Request) -> Retriever:
    """Make a ``VectorRetriever``."""
    from workbench.retrieval.retrievers.vector import VectorRetriever

    return VectorRetriever(request)


def keyword(request: Request) -> Retriever:
    """Make a ``KeywordRetriever``."""
    from workbench.retrieval.retrievers.keyword import KeywordRetriever

    return KeywordRetriever(request)


def hybrid(request: Request) -> Retriever:
    """Make a ``HybridRetriever``."""
    from workbench.retrieval.retrievers.hybrid import HybridRetriever

    return HybridRetriever(request)


def fuzzy(request: Request) -> Retriever:
    """Make a ``FuzzyRetriever``."""
    from workbench.retrieval.retrievers.hybrid import FuzzyRetriever

    return FuzzyRetriever(request)


def feedback(request: Request) -> Retriever:
    """Make a ``FeedbackRetriever``."""
    from workbench.retrieval.retrievers.rewriting import FeedbackRetriever

    return FeedbackRetriever(request)


def hyde(request: Request) -> Retriever:
    """Make a ``HydeRetriever``."""
    from workbench.retrieval.retrievers.rewriting import HydeRetriever

    return HydeRetriever(request)


def multi_query(request: Request) -> Retriever:
    """Make a ``MultiQueryRetriever``."""
    from workbench.retrieval.retrievers.rewriting import MultiQueryRetriever

    return MultiQueryRetriever(request)


def framework(request: Request) -> Retriever:
    """Make a ``FrameworkHybridRetriever``."""
    from workbench.retrieval.retrievers.framework_hybrid import FrameworkHybridRetriever

    return FrameworkHybridRetriever(request)


def late(request: Request) -> Stage:
    """Make a ``LateInteractionRerank``."""
    from workbench.retrieval.stages.late_interaction import LateInteractionRerank

    return LateInteractionRerank.make(request)


def cluster(request: Request) -> Stage:
    """Make a ``ClusterRerank``."""
    from workbench.retrieval.stages.similarity import ClusterRerank

    return ClusterRerank.make(request)


def pages(request: Request) -> Stage:
    """Make a ``Pages``."""
    from workbench.retrieval.stages.similarity import Pages

    return Pages.make(request)


def auto_merge(request: Request) -> Stage:
    """Make an ``AutoMerge``."""
    from workbench.retrieval.stages.context import AutoMerge

    return AutoMerge.make(request)


def window(request: Request) -> Stage:
    """Make a ``Window``."""
    from workbench.retrieval.stages.context import Window

    return Window.make(request)


def mmr(request: Request) -> Stage:
    """Make an ``Mmr``."""
    from workbench.retrieval.stages.similarity import Mmr

    return Mmr.make(request)


def learned(request: Request) -> Stage:
    """Make a ``LearnedRerank``."""
    from workbench.retrieval.stages.learned import LearnedRerank

    return LearnedRerank.make(request)


def llm_rerank(request: Request) -> Stage:
    """Make an ``LlmRerank``."""
    from workbench.retrieval.stages.model_rerank import LlmRerank

    return LlmRerank.make(request)


def cross_encoder(request: Request) -> Stage:
    """Make a ``CrossEncoderRerank``."""
    from workbench.retrieval.stages.model_rerank import CrossEncoderRerank

    return CrossEncoderRerank.make(request)


def own(request: Request) -> Retriever:
    """Make the ``ForeignRetriever`` of a strategy that a user has added."""
    from workbench.retrieval.retrievers.foreign import ForeignRetriever

    return ForeignRetriever(request)


_HYBRID_LEGS = (VECTOR, KEYWORD, DOCUMENT)
_RERANK_LEGS = (*_HYBRID_LEGS, LATE, CLUSTER)
_RERANK_STAGES = (late, cluster, pages)

_TABLE = (
    Strategy(
        "vector",
        "Vector",
        "Similarity search: passages with the embedding nearest to the question's.",
        vector,
        legs=(VECTOR,),
        is_one_leg=True,
        reads_attached=True,
    ),
    Strategy(
        "keyword",
        "Keyword",
        "BM25 over stemmed words; finds names, codes and rare terms.",
        keyword,
        legs=(KEYWORD, VECTOR),
        is_one_leg=True,
        reads_attached=True,
    ),
    Strategy(
        "hybrid",
        "Hybrid",
        "Fuses vector and keyword scores of every candidate.",
        hybrid,
        legs=_HYBRID_LEGS,
        parameters=known.HYBRID,
        has_keyword_leg=True,
        pools=True,
        reads_attached=True,
    ),
    Strategy(
        "rerank",
        "Rerank",
        "Hybrid, then late interaction (token matches), similarity to the top passages, a second match on the page.",
        hybrid,
        legs=_RERANK_LEGS,
        parameters=known.RERANK,
        stages=_RERANK_STAGES,
        has_keyword_leg=True,
        pools=True,
        reads_attached=True,
    ),
    Strategy(
        "scoped",
        "Scoped",
        "Rerank, scope required: name a project, folder, tag or source.",
        hybrid,
        legs=_RERANK_LEGS,
        parameters=known.RERANK,
        stages=_RERANK_STAGES,
        has_keyword_leg=True,
        pools=True,
        needs_scope=True,
        reads_attached=True,
    ),
    Strategy(
        "fuzzy",
        "Fuzzy",
        "Hybrid, typo-tolerant: misspelled words match likely corrections, and similarity counts less.",
        fuzzy,
        legs=_HYBRID_LEGS,
        parameters=(*known.HYBRID, known.TYPO_TOLERANCE, known.MIN_SIMILARITY),
        has_keyword_leg=True,
        typo_tolerant=True,
    ),
    Strategy(
        "auto-merge",
        "Auto-merge",
        "Rerank, then small passages are merged into their section or page.",
        hybrid,
        legs=_RERANK_LEGS,
        parameters=(*known.RERANK, known.UNIT, known.SHARE),
        stages=(*_RERANK_STAGES, auto_merge),
        has_keyword_leg=True,
        pools=True,
    ),
    Strategy(
        "window",
        "Window",
        "Rerank, with the text of neighbouring passages around each result.",
        hybrid,
        legs=_RERANK_LEGS,
        parameters=(*known.RERANK, known.NEIGHBOURS),
        stages=(*_RERANK_STAGES, window),
        has_keyword_leg=True,
        pools=True,
    ),
    Strategy(
        "mmr",
        "MMR",
        "Rerank, then selects passages that differ from the ones above.",
        hybrid,
        legs=(*_RERANK_LEGS, NOVELTY),
        parameters=(*known.RERANK, known.LAMBDA),
        stages=(*_RERANK_STAGES, mmr),
        has_keyword_leg=True,
        pools=True,
    ),
    Strategy(
        "feedback",
        "Feedback",
        "Searches twice: the question moves towards the top passages (Rocchio; words by RM3), then rerank.",
        feedback,
        legs=(*_RERANK_LEGS, FEEDBACK),
        parameters=(
            *known.RERANK,
            known.FEEDBACK_PASSAGES,
            known.FEEDBACK_WEIGHT,
            known.TERMS,
            known.TERM_WEIGHT,
        ),
        stages=_RERANK_STAGES,
        has_keyword_leg=True,
    ),
    Strategy(
        "learned",
        "Learned",
        "Rerank, then a linear model trained on judged questions weights features of all legs.",
        hybrid,
        legs=(*_RERANK_LEGS, LEARNED),
        parameters=(*known.RERANK, known.RANKER),
        stages=(*_RERANK_STAGES, learned),
        has_keyword_leg=True,
        pools=True,
    ),
    Strategy(
        "hyde",
        "HyDE",
        "An LLM writes a hypothetical answer; rerank over passages near it and the question.",
        hyde,
        legs=(*_RERANK_LEGS, HYDE),
        parameters=(*known.RERANK, known.HYDE_WEIGHT),
        stages=_RERANK_STAGES,
        has_keyword_leg=True,
        needs_llm=True,
    ),
    Strategy(
        "multi-query",
        "Multi-query",
        "An LLM rephrases the question; all versions are searched, then rerank.",
        multi_query,
        legs=(*_RERANK_LEGS, QUERY),
        parameters=(*known.RERANK, known.QUERIES),
        stages=_RERANK_STAGES,
        has_keyword_leg=True,
        needs_llm=True,
    ),
    Strategy(
        "llm-rerank",
        "LLM rerank",
        "Rerank, then an LLM grades the top passages.",
        hybrid,
        legs=(*_RERANK_LEGS, LLM),
        parameters=(*known.RERANK, known.GRADED_PASSAGES, known.LLM_WEIGHT),
        stages=(*_RERANK_STAGES, llm_rerank),
        has_keyword_leg=True,
        pools=True,
        needs_llm=True,
    ),
    Strategy(
        "cross-encoder",
        "Cross-encoder",
        "Hybrid, then a cross-encoder scores each candidate.",
        hybrid,
        legs=(*_HYBRID_LEGS, CROSS_ENCODER),
        parameters=(*known.HYBRID, known.CANDIDATES, known.CROSS_WEIGHT, known.RERANKER),
        stages=(cross_encoder,),
        has_keyword_leg=True,
        pools=True,
        needs_reranker=True,
    ),
    Strategy(
        "llamaindex-hybrid",
        "LlamaIndex hybrid",
        "LlamaIndex's own hybrid mode, unchanged: the baseline.",
        framework,
        legs=(VECTOR,),
    ),
)
BUILT_IN_STRATEGIES: Mapping[str, Strategy] = {strategy.name: strategy for strategy in _TABLE}


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
