"""The run of one request: ranked by its strategy's engine, with its times and the parts that could not serve."""

from __future__ import annotations

import time
from dataclasses import replace

from llama_index.core.schema import NodeWithScore, QueryBundle

from workbench.errors import ModelError
from workbench.languages import CONFIGURATIONS, language_title
from workbench.retrieval.assembly import build_engine
from workbench.retrieval.evidence import evidence_of
from workbench.retrieval.nodes import to_passages
from workbench.retrieval.parameters import FORGIVE
from workbench.retrieval.request import Request
from workbench.retrieval.strategies import STRATEGIES, WORDS_ALONE
from workbench.retrieval.words.corrections import correct, corrections
from workbench.retrieval.words.question_names import told_names, within_named
from workbench.telemetry import SEARCH, measured
from workbench.types import SearchResult
from workbench.types.results import TOTAL, TimedStep

REPLICA_AWAY = "replica: it could not serve, so the primary was searched; see 'workbench status'"


def run(query: str, request: Request) -> SearchResult:
    """Serve one request, and tell of it where somebody listens. Raises what ``ranked`` raises."""
    name, index = request.strategy.name, request.index.name
    with measured(SEARCH, name, index=index, limit=request.limit) as search:
        result = _served(query, request)
        search.tell(results=len(result), notes=len(result.degraded))
        return result


def _served(query: str, request: Request) -> SearchResult:
    began = time.perf_counter()
    request = within_named(request, query)
    nodes = ranked(query, request)
    note_lost_replica(request)
    passages = to_passages(nodes, request.draw_page)
    with request.trace.stage(TimedStep.EVIDENCE):
        evidence = evidence_of(request, query, nodes)
    timings = {name: round(ms, 3) for name, ms in request.trace.timings_ms.items()}
    timings[TOTAL] = round((time.perf_counter() - began) * 1000 + request.trace.shared_ms, 3)
    return SearchResult(
        query=query,
        strategy=request.strategy.name,
        scope=request.scope,
        under_filled=len(passages) + request.trace.cut < request.limit,
        degraded=tuple(request.trace.degraded),
        timings_ms=timings,
        results=passages,
        index=request.index.name,
        corrections=corrections(request, query, passages),
        evidence=evidence,
        preferring=told_names(request, query),
    )


def note_lost_replica(request: Request) -> None:
    """Add a note if the primary was read because the replica is unavailable."""
    if request.store.replica_is_away:
        request.trace.note(REPLICA_AWAY)


def _unread(request: Request) -> str:
    """Say that the model cannot read the question, and what that means for the passages."""
    names = sorted(language_title(CONFIGURATIONS.get(code, code)) for code in request.encoder.languages or ())
    reads = " and ".join(names) or "other languages"
    if request.strategy.uses_words:
        rest = "its similarities say little; passages are found by the question's words"
    else:
        rest = "the order of these passages says little; keyword, hybrid and rerank go by the question's words"
    model = f"the model {request.index.embedding_model!r} (trained for {reads})"
    return f"vector: {model} cannot read this question, so {rest}"


def ranked(query: str, request: Request) -> list[NodeWithScore]:
    """Return the nodes that a request's strategy finds, best first; by words alone, and a note, without the model.

    Raises:
        ModelError: the index's model fails and the strategy has no keyword leg.
    """
    strategy = request.strategy
    if not request.can_read(query):
        request.trace.note(_unread(request))
    if strategy.uses_words and request.is_on(FORGIVE, otherwise=True):
        correct(request, query)
    try:
        return build_engine(request).retrieve(QueryBundle(query))
    except ModelError:  # the embedding model's: the stages catch those of theirs
        if not strategy.has_keyword_leg:
            raise
        request.trace.note(f"{strategy.name}: the vector leg could not serve, so the keyword leg served alone")
        return build_engine(replace(request, strategy=STRATEGIES[WORDS_ALONE])).retrieve(QueryBundle(query))
