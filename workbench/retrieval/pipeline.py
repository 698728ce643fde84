"""The engine of a request's strategy: its retriever, its stages, and the final order."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from llama_index.core.base.base_retriever import dispatcher
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.indices.prompt_helper import ChatPromptHelper, PromptHelper
from llama_index.core.instrumentation.event_handlers import NullEventHandler
from llama_index.core.instrumentation.span_handlers import NullSpanHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index_instrumentation import get_dispatcher

from workbench.errors import ConfigurationError, ModelError, ScopeError, TableUnavailable
from workbench.retrieval.evidence import judge_evidence
from workbench.retrieval.hits import Hit, scale_contributions
from workbench.retrieval.name_matching import list_preferred_names, restrict_to_named
from workbench.retrieval.nodes import CopyFolder, node_hit, node_passage, replace_hits, to_passages
from workbench.retrieval.parameters import CUTOFF, MAX_DEPTH
from workbench.retrieval.query import Query, Request
from workbench.retrieval.retrievers.retriever import Retriever
from workbench.retrieval.spelling import list_corrections
from workbench.retrieval.stages.stage import RETRIEVED_STEP, Checkpoint, FinalOrder, Stage, put_preferred_first
from workbench.retrieval.strategies import STRATEGIES, WORDS_ALONE, load_retrievers, load_stages
from workbench.telemetry import SEARCH, measure
from workbench.text import CONFIGURATIONS, language_title, normalise
from workbench.types import FAULT_END, TOTAL, SearchResult, TimedStep

# Engine of a strategy

_NULL_HANDLERS = (NullEventHandler, NullSpanHandler)


class Engine(RetrieverQueryEngine):
    """A retriever and its stages for one request: ``retrieve`` ranks, ``query`` also answers."""

    _retriever: Retriever
    _node_postprocessors: list[Stage]
    request: Request
    served: Callable[[Callable[[], list[NodeWithScore]]], list[NodeWithScore]] | None = None  # created per retrieval

    def retrieve(self, query_bundle: QueryType) -> list[NodeWithScore]:
        """Return the found nodes, best first."""
        query = self.request.question(query_bundle)
        if self.served is None:
            return extend_results(query, self._run_retriever(query))
        return self.served(lambda: extend_results(query, self._run_retriever(query)))

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return super()._query(self.request.question(query_bundle))

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await super()._aquery(self.request.question(query_bundle))

    def _run_retriever(self, query: Query) -> list[NodeWithScore]:
        """Retrieve; LlamaIndex's spans and events cost 0.15 ms per search, so they are skipped without a handler."""
        if self._has_listeners:
            return super().retrieve(query)
        nodes = self._retriever.find(query)
        for stage in self._node_postprocessors:
            nodes = stage.apply(query, nodes) if nodes else nodes
        return nodes

    @property
    def _has_listeners(self) -> bool:
        if self.callback_manager.handlers or self._retriever.callback_manager.handlers:
            return True
        dispatchers = (get_dispatcher(), dispatcher)  # root dispatcher, and that of retrievers
        handlers = [
            handler for dispatcher in dispatchers for handler in (*dispatcher.event_handlers, *dispatcher.span_handlers)
        ]
        return any(not isinstance(handler, _NULL_HANDLERS) for handler in handlers)


def build_engine(request: Request, synthesizer: BaseSynthesizer | None = None) -> Engine:
    """Assemble the strategy of one request; ``retrieve`` ranks, ``query`` also answers with the synthesizer.

    Raises:
        ScopeError: The strategy needs a scope and the request names none.
        ConfigurationError: The strategy needs a model that is not configured.
    """
    strategy = request.strategy
    if strategy.needs_scope and request.scope.is_everything:
        raise ScopeError(f"The strategy {strategy.name!r} needs a scope; name a project, folder, tag or source.")
    if (strategy.needs_llm and request.llm is None) or (strategy.needs_reranker and request.cross_encoder is None):
        raise ConfigurationError(f"The strategy {strategy.name!r} is not configured. {strategy.needs}")
    stages = [load_stages()[name].make(request) for name in strategy.stages]
    if request.trace.passed is not None:
        stages = add_checkpoints(request, stages)
    engine = Engine(
        retriever=load_retrievers()[strategy.retriever](request),
        response_synthesizer=synthesizer or _silent_synthesizer(),
        node_postprocessors=[*stages, FinalOrder.make(request)],
    )
    engine.request = request
    return engine


def extend_results(query: Query, first: list[NodeWithScore]) -> list[NodeWithScore]:
    """Return the nodes of a search, and more if the limit exceeds the candidates.

    The additional nodes are in the order of a deeper search to ``MAX_DEPTH``, and their scores do not exceed the last
    one's, so that the limit never changes the first results. Nodes that are already covered are omitted.
    """
    request, trace = query.request, query.request.trace
    if not first or len(first) + trace.cut >= request.limit or not trace.has_more:
        return first
    wanted = request.limit - len(first)
    deep = replace(request, depth=MAX_DEPTH, limit=wanted)
    deeper = query.rebind(deep)  # keeps the explanation of the first ones
    found = load_retrievers()[request.strategy.retriever](deep).find(deeper)
    further = put_preferred_first(deep, _omit_covered(found, first))
    for name in request.strategy.stages:
        stage = load_stages()[name].make(deep)
        further = stage.apply(deeper, further) if stage.widens and further else further
    bound = float(first[-1].score or 0.0)
    further = [_cap_score(node, bound) for node in further]
    if request.fold_copies:
        further = CopyFolder().add([*first, *further])[len(first) :]
    further = further[: deep.limit]
    floor = request.float_param(CUTOFF, otherwise=0.0) * (first[0].score or 0.0)
    worthy = [node for node in further if (node.score or 0.0) >= floor]
    trace.cut += len(further) - len(worthy)
    return [*first, *worthy]


def _omit_covered(found: Sequence[NodeWithScore], first: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Return the found nodes that are not among the first ones nor within the wider text of one of them."""
    ids = {node_passage(node).id for node in first}
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)  # of wider texts, by document
    for node in first:
        start, end = node.node.metadata.get("start"), node.node.metadata.get("end")
        if start is not None and end is not None:
            spans[node_passage(node).document_id].append((start, end))
    rest: list[NodeWithScore] = []
    for node in found:
        passage = node_passage(node)
        start, end = passage.span
        wider = spans.get(passage.document_id, ())
        if passage.id not in ids and not any(low <= start and end <= high for low, high in wider):
            rest.append(node)
    return rest


def _cap_score(node: NodeWithScore, bound: float) -> NodeWithScore:
    """Return a node with a score of at most ``bound``, and contributions in proportion."""
    score = float(node.score or 0.0)
    if score <= bound:
        return node
    hit = node_hit(node)
    [bounded] = replace_hits([node], [Hit(hit.id, bound, scale_contributions(hit.legs, bound / score))])
    return bounded


def add_checkpoints(request: Request, stages: Sequence[Stage]) -> list[Stage]:
    """Return the stages with a checkpoint before the first ("retrieved") and after each (its leg or class name)."""
    noted: list[Stage] = [Checkpoint(request, RETRIEVED_STEP)]
    for stage in stages:
        noted += [stage, Checkpoint(request, stage.step)]
    return noted


@cache
def _silent_synthesizer() -> BaseSynthesizer:
    """Return a synthesizer that gives no answers and has no state, for engines that only retrieve.

    It never counts tokens, so its helpers get a word counter: the default tokenizer loads 100,000 tokens.
    """
    return NoText(
        llm=MockLLM(),
        prompt_helper=PromptHelper(tokenizer=str.split),
        chat_prompt_helper=ChatPromptHelper(tokenizer=str.split),
    )


# Running one search

REPLICA_UNAVAILABLE = "replica: unavailable, so the primary was searched; see 'workbench status'"


def run_search(query: Query) -> SearchResult:
    """Answer a question, recorded as a telemetry span.

    Raises:
        WorkbenchError: Whatever ``rank_nodes`` raises.
    """
    request = query.request
    with measure(SEARCH, request.strategy.name, index=request.index.name, limit=request.limit) as search:
        result = _search(query)
        search.add_attributes(results=len(result), notes=len(result.degraded))
        search.add_retrieval(query.text, ((p.passage_id, p.score, p.text) for p in result.results))
        return result


def _search(query: Query) -> SearchResult:
    began = time.perf_counter()
    query = restrict_to_named(query)
    request = query.request
    nodes = request.trace.found = rank_nodes(query)
    note_lost_replica(request)
    passages = to_passages(nodes, request.draw_page)
    if not passages and not request.index.is_attached and (note := request.store.describe_changes(request.scope)):
        request.trace.note(note)
    with request.trace.stage(TimedStep.EVIDENCE):
        evidence = judge_evidence(query, nodes)
    timings = {name: round(ms, 3) for name, ms in request.trace.timings_ms.items()}
    timings[TOTAL] = round((time.perf_counter() - began) * 1000 + request.trace.shared_ms, 3)
    return SearchResult(
        query=query.typed,
        rewritten=query.text if request.history and query.text != normalise(query.typed) else "",
        strategy=request.strategy.name,
        scope=request.scope,
        under_filled=len(passages) + request.trace.cut < request.limit,
        degraded=tuple(request.trace.degraded),
        timings_ms=timings,
        results=passages,
        index=request.index.name,
        corrections=list_corrections(query, passages),
        evidence=evidence,
        preferring=list_preferred_names(query),
    )


def note_lost_replica(request: Request) -> None:
    """Add a note if the primary was read because the replica is unavailable."""
    if request.store.replica_is_away:
        request.trace.note(REPLICA_UNAVAILABLE)


def _describe_unreadable(request: Request) -> str:
    """Add a note that the model cannot read the question, and how that affects the results."""
    names = sorted(language_title(CONFIGURATIONS.get(code, code)) for code in request.encoder.languages or ())
    reads = " and ".join(names) or "other languages"
    if request.strategy.uses_words:
        rest = "similarities mean little; passages are found by the question's words"
    else:
        rest = "this order means little; keyword, hybrid and rerank use the question's words"
    model = f"the model {request.index.embedding_model!r} (trained on {reads})"
    return f"vector: {model} cannot read this question, so {rest}"


def rank_nodes(query: Query) -> list[NodeWithScore]:
    """Return the nodes of a question's strategy, best first; by keywords only, with a note, if the model fails.

    Raises:
        ModelError: The index's model fails and the strategy has no keyword leg.

    If the server of an attached table is unavailable, a strategy without a keyword leg finds nothing, with a note.
    """
    request = query.request
    strategy = request.strategy
    if not query.can_read:
        request.trace.note(_describe_unreadable(request))
    if request.correct is not None:
        _ = query.words  # before encoding, so that notes and corrections exist if the model fails
    try:
        return build_engine(request).retrieve(query)
    except ModelError as error:  # from the embedding model; stages handle their own errors
        if not strategy.has_keyword_leg:
            raise
        reason = str(error).removesuffix(".")
        request.trace.note(f"{strategy.name}: vector search failed, so only keyword search was used ({reason})")
    except TableUnavailable as error:  # of an attached index, whose terms are in our database
        reason = str(error).removesuffix(".")
        if not strategy.has_keyword_leg:
            request.trace.note(f"{strategy.name}: {reason}{FAULT_END}")
            return []
        request.trace.note(f"{strategy.name}: {reason}, so only keyword search was used")
    by_words = replace(request, strategy=STRATEGIES[WORDS_ALONE])
    return build_engine(by_words).retrieve(query.rebind(by_words))
