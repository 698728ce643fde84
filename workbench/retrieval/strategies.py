"""The table of strategies.

A strategy is a LlamaIndex retriever, followed by stages (node postprocessors). Screens, tool enums, the README,
the tests and the evaluation all read this table. A new one is a file in ``retrievers`` or ``stages``, the
function in ``makers`` that imports it, and a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.errors import InvalidInput, list_choices
from workbench.retrieval import parameters as known
from workbench.retrieval.strategy import ParametersOf, Strategy
from workbench.types import parameter, read_parameters

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
    from workbench.retrieval.retrievers.fuzzy import FuzzyRetriever

    return FuzzyRetriever(request)


def feedback(request: Request) -> Retriever:
    """Make a ``FeedbackRetriever``."""
    from workbench.retrieval.retrievers.expansion import FeedbackRetriever

    return FeedbackRetriever(request)


def hyde(request: Request) -> Retriever:
    """Make a ``HydeRetriever``."""
    from workbench.retrieval.retrievers.expansion import HydeRetriever

    return HydeRetriever(request)


def multi_query(request: Request) -> Retriever:
    """Make a ``MultiQueryRetriever``."""
    from workbench.retrieval.retrievers.multi_query import MultiQueryRetriever

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
    from workbench.retrieval.stages.cluster import ClusterRerank

    return ClusterRerank.make(request)


def auto_merge(request: Request) -> Stage:
    """Make a ``AutoMerge``."""
    from workbench.retrieval.stages.context import AutoMerge

    return AutoMerge.make(request)


def window(request: Request) -> Stage:
    """Make a ``Window``."""
    from workbench.retrieval.stages.context import Window

    return Window.make(request)


def mmr(request: Request) -> Stage:
    """Make a ``Mmr``."""
    from workbench.retrieval.stages.mmr import Mmr

    return Mmr.make(request)


def learned(request: Request) -> Stage:
    """Make a ``LearnedRerank``."""
    from workbench.retrieval.stages.learned import LearnedRerank

    return LearnedRerank.make(request)


def llm_rerank(request: Request) -> Stage:
    """Make a ``LlmRerank``."""
    from workbench.retrieval.stages.llm_rerank import LlmRerank

    return LlmRerank.make(request)


def cross_encoder(request: Request) -> Stage:
    """Make a ``CrossEncoderRerank``."""
    from workbench.retrieval.stages.cross_encoder_rerank import CrossEncoderRerank

    return CrossEncoderRerank.make(request)


_BOTH = (parameter.VECTOR, parameter.KEYWORD, parameter.DOCUMENT)
_RERANKED = (*_BOTH, parameter.LATE, parameter.CLUSTER)
_RERANK = (late, cluster)

_TABLE = (
    Strategy(
        "vector",
        "Vector",
        "Similarity search: passages with the embedding nearest to the question's.",
        vector,
        legs=(parameter.VECTOR,),
        is_one_leg=True,
    ),
    Strategy(
        "keyword",
        "Keyword",
        "BM25 over stemmed words; finds names, codes and rare terms.",
        keyword,
        legs=(parameter.KEYWORD, parameter.VECTOR),
        is_one_leg=True,
    ),
    Strategy(
        "hybrid",
        "Hybrid",
        "Fuses vector and keyword scores of every candidate.",
        hybrid,
        legs=_BOTH,
        parameters=known.HYBRID,
        has_keyword_leg=True,
        pools=True,
    ),
    Strategy(
        "rerank",
        "Rerank",
        "Hybrid, then late interaction (token matches) and similarity to the top passages.",
        hybrid,
        legs=_RERANKED,
        parameters=known.RERANK,
        stages=_RERANK,
        has_keyword_leg=True,
        pools=True,
    ),
    Strategy(
        "scoped",
        "Scoped",
        "Rerank, scope required: name a project, folder, tag or source.",
        hybrid,
        legs=_RERANKED,
        parameters=known.RERANK,
        stages=_RERANK,
        has_keyword_leg=True,
        pools=True,
        needs_scope=True,
    ),
    Strategy(
        "fuzzy",
        "Fuzzy",
        "Hybrid, typo-tolerant: misspelled words match likely corrections, and similarity counts less.",
        fuzzy,
        legs=_BOTH,
        parameters=(*known.HYBRID, known.TYPO_TOLERANCE, known.MIN_SIMILARITY),
        has_keyword_leg=True,
        typo_tolerant=True,
    ),
    Strategy(
        "auto-merge",
        "Auto-merge",
        "Rerank, then small passages are merged into their section or page.",
        hybrid,
        legs=_RERANKED,
        parameters=(*known.RERANK, known.UNIT, known.SHARE),
        stages=(*_RERANK, auto_merge),
        has_keyword_leg=True,
        pools=True,
    ),
    Strategy(
        "window",
        "Window",
        "Rerank, with the text of neighbouring passages around each result.",
        hybrid,
        legs=_RERANKED,
        parameters=(*known.RERANK, known.NEIGHBOURS),
        stages=(*_RERANK, window),
        has_keyword_leg=True,
        pools=True,
    ),
    Strategy(
        "mmr",
        "MMR",
        "Rerank, then selects passages that differ from the ones above.",
        hybrid,
        legs=(*_RERANKED, parameter.NOVELTY),
        parameters=(*known.RERANK, known.LAMBDA),
        stages=(*_RERANK, mmr),
        has_keyword_leg=True,
        pools=True,
    ),
    Strategy(
        "feedback",
        "Feedback",
        "Searches twice: the question moves towards the top passages (Rocchio; words by RM3), then rerank.",
        feedback,
        legs=(*_RERANKED, parameter.FEEDBACK),
        parameters=(
            *known.RERANK,
            known.FEEDBACK_PASSAGES,
            known.FEEDBACK_WEIGHT,
            known.TERMS,
            known.TERM_WEIGHT,
        ),
        stages=_RERANK,
        has_keyword_leg=True,
    ),
    Strategy(
        "learned",
        "Learned",
        "Rerank, then a linear model trained on judged questions weights features of all legs.",
        hybrid,
        legs=(*_RERANKED, parameter.LEARNED),
        parameters=(*known.RERANK, known.RANKER),
        stages=(*_RERANK, learned),
        has_keyword_leg=True,
        pools=True,
    ),
    Strategy(
        "hyde",
        "HyDE",
        "An LLM writes a hypothetical answer; rerank over passages near it and the question.",
        hyde,
        legs=(*_RERANKED, parameter.HYDE),
        parameters=(*known.RERANK, known.HYDE_WEIGHT),
        stages=_RERANK,
        has_keyword_leg=True,
        needs_llm=True,
    ),
    Strategy(
        "multi-query",
        "Multi-query",
        "An LLM rephrases the question; all versions are searched, then rerank.",
        multi_query,
        legs=(*_RERANKED, parameter.QUERY),
        parameters=(*known.RERANK, known.QUERIES),
        stages=_RERANK,
        has_keyword_leg=True,
        needs_llm=True,
    ),
    Strategy(
        "llm-rerank",
        "LLM rerank",
        "Rerank, then an LLM grades the top passages.",
        hybrid,
        legs=(*_RERANKED, parameter.LLM),
        parameters=(*known.RERANK, known.GRADED_PASSAGES, known.LLM_WEIGHT),
        stages=(*_RERANK, llm_rerank),
        has_keyword_leg=True,
        pools=True,
        needs_llm=True,
    ),
    Strategy(
        "cross-encoder",
        "Cross-encoder",
        "Hybrid, then a cross-encoder scores each candidate.",
        hybrid,
        legs=(*_BOTH, parameter.CROSS_ENCODER),
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
        legs=(parameter.VECTOR,),
    ),
)
STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for strategy in _TABLE}
DEFAULT_STRATEGY = "rerank"
WORDS_ALONE = "keyword"  # fallback if the embedding model fails
BOTH_LEGS = "hybrid"  # candidates with the scores of both legs, without stages
TYPO_TOLERANT_STRATEGY = "fuzzy"  # corrects misspelled words
COMPARED = ("vector", WORDS_ALONE, BOTH_LEGS, DEFAULT_STRATEGY)  # default of compare
UNPROMOTED_TOOL_STRATEGY = BOTH_LEGS  # default of the tool search_knowledge_base, as specified


def strategy_named(name: str) -> Strategy:
    """Return a strategy of the table. Raises InvalidInput naming the valid ones."""
    if name not in STRATEGIES:
        raise InvalidInput(f"There is no strategy {name!r}; use one of {list_choices(STRATEGIES, 20)}.")
    return STRATEGIES[name]


def check_parameters(name: str, given: Mapping[str, object] | None) -> ParametersOf:
    """Return all parameters of a strategy, the given ones checked. Raises InvalidInput."""
    strategy = strategy_named(name)
    return ParametersOf(name, read_parameters(f"The strategy {name!r}", strategy.parameters, given or {}))
