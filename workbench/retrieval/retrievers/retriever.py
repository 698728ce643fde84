"""A retriever: LlamaIndex's interface for one request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from workbench.retrieval.hits import Hit
from workbench.retrieval.nodes import CopyFolder, to_nodes
from workbench.retrieval.parameters import CANDIDATES, FIRST_DEPTH
from workbench.retrieval.query import Query, Request
from workbench.storage.database import Connection


class Retriever(BaseRetriever):
    """A retriever of one request: ``find`` takes a question and returns nodes, best first.

    ``retrieve`` is LlamaIndex's, and also takes text or any query bundle.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        super().__init__()

    @property
    def _keep(self) -> int | None:
        request = self._request
        if request.depth > FIRST_DEPTH:
            return None
        if request.strategy.stages:
            return int(request.float_param(CANDIDATES))
        return None if request.scope.preferred_source_ids else request.limit

    def _fetch(
        self,
        connection: Connection,
        hits: Sequence[Hit],
        fetch: Callable[[Sequence[Hit]], list[NodeWithScore]] | None = None,
    ) -> list[NodeWithScore]:
        """Return the nodes of the first ``_keep`` hits, and record whether there are more.

        If copies are folded and no stage follows, further hits are fetched until ``_keep`` of them are not copies.
        ``fetch`` returns the nodes of some hits; by default, with their stored passages.
        """
        request, keep = self._request, self._keep or len(hits)
        fetch = fetch or partial(to_nodes, request, connection)
        end, nodes = min(keep, len(hits)), fetch(hits[:keep])
        if request.folds_when_found:
            folder = CopyFolder()
            nodes = folder.add(nodes)
            while end < len(hits) and len(nodes) < keep:
                nodes = folder.add(fetch(hits[end : end + keep]))
                end += keep
        request.trace.has_more |= end < len(hits)
        return nodes

    def find(self, query: Query) -> list[NodeWithScore]:
        """Search the request's scope."""
        raise NotImplementedError

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.find(self._request.question(query_bundle))
