"""A strategy's engine: LlamaIndex's own, which leaves its tracing out where nobody listens."""

from __future__ import annotations

from collections.abc import Callable

from llama_index.core.base.base_retriever import dispatcher
from llama_index.core.instrumentation.event_handlers import NullEventHandler
from llama_index.core.instrumentation.span_handlers import NullSpanHandler
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

from workbench.retrieval.retrievers.retriever import Retriever
from workbench.retrieval.stages.stage import Stage

_DEAF = (NullEventHandler, NullSpanHandler)


class Engine(RetrieverQueryEngine):
    """A retriever and its stages for one request: ``retrieve`` ranks, ``query`` also answers."""

    _retriever: Retriever
    _node_postprocessors: list[Stage]
    served: Callable[[Callable[[], list[NodeWithScore]]], list[NodeWithScore]] | None = None  # what calls a retrieval
    continued: Callable[[str, list[NodeWithScore]], list[NodeWithScore]] | None = None  # what adds the further nodes

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return the nodes that are found, best first; a text will do, too."""
        if self.served is None:
            return self._all(query_bundle)
        return self.served(lambda: self._all(query_bundle))

    def _all(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle if isinstance(query_bundle, str) else query_bundle.query_str
        nodes = self._found(query_bundle)
        return nodes if self.continued is None else self.continued(query, nodes)

    def _found(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve; LlamaIndex's spans and events cost a search 0.15 ms, so without a handler they are not made."""
        if self._listened_to:
            return super().retrieve(query_bundle)
        query = query_bundle if isinstance(query_bundle, str) else query_bundle.query_str
        nodes = self._retriever.find(query)
        for stage in self._node_postprocessors:
            nodes = stage.apply(query, nodes) if nodes else nodes
        return nodes

    @property
    def _listened_to(self) -> bool:
        if self.callback_manager.handlers or self._retriever.callback_manager.handlers:
            return True
        dispatchers = (get_dispatcher(), dispatcher)  # all dispatchers, and that of every retriever
        handlers = [
            handler for dispatcher in dispatchers for handler in (*dispatcher.event_handlers, *dispatcher.span_handlers)
        ]
        return any(not isinstance(handler, _DEAF) for handler in handlers)
