"""The makers of retrievers and stages: one function each, which imports what it makes when a request first needs it.

The engines' imports take a second, and command-line help must not wait for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.retrieval.request import Request
    from workbench.retrieval.retrievers.retriever import Retriever
    from workbench.retrieval.stages.stage import Stage


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
    from workbench.retrieval.retrievers.feedback import FeedbackRetriever

    return FeedbackRetriever(request)


def hyde(request: Request) -> Retriever:
    """Make a ``HydeRetriever``."""
    from workbench.retrieval.retrievers.hyde import HydeRetriever

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
    from workbench.retrieval.stages.rerank import LateInteractionRerank

    return LateInteractionRerank.of(request)


def cluster(request: Request) -> Stage:
    """Make a ``ClusterRerank``."""
    from workbench.retrieval.stages.cluster import ClusterRerank

    return ClusterRerank.of(request)


def auto_merge(request: Request) -> Stage:
    """Make a ``AutoMerge``."""
    from workbench.retrieval.stages.auto_merge import AutoMerge

    return AutoMerge.of(request)


def window(request: Request) -> Stage:
    """Make a ``Window``."""
    from workbench.retrieval.stages.window import Window

    return Window.of(request)


def mmr(request: Request) -> Stage:
    """Make a ``Mmr``."""
    from workbench.retrieval.stages.mmr import Mmr

    return Mmr.of(request)


def learned(request: Request) -> Stage:
    """Make a ``LearnedRerank``."""
    from workbench.retrieval.stages.learned import LearnedRerank

    return LearnedRerank.of(request)


def llm_rerank(request: Request) -> Stage:
    """Make a ``LlmRerank``."""
    from workbench.retrieval.stages.llm_rerank import LlmRerank

    return LlmRerank.of(request)


def cross_encoder(request: Request) -> Stage:
    """Make a ``CrossEncoderRerank``."""
    from workbench.retrieval.stages.cross_encoder_rerank import CrossEncoderRerank

    return CrossEncoderRerank.of(request)
