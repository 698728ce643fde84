"""A retriever: LlamaIndex's interface for one request."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from workbench.retrieval.hits import Hit
from workbench.retrieval.parameters import CANDIDATES, FIRST_DEPTH
from workbench.retrieval.query import Query, Request


class Retriever(BaseRetriever):
    """A retriever of one request: ``find`` takes a question and returns nodes, best first.

    ``retrieve`` is LlamaIndex's, and also takes text or any query bundle.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        super().__init__()

    @property
    def _keep(self) -> int | None:
        """The number of nodes to return: the stages' candidates, or the limit; None for all."""
        request = self._request
        if request.depth > FIRST_DEPTH:
            return None
        if request.strategy.stages:
            return int(request.float_param(CANDIDATES))
        return None if request.scope.preferred_source_ids else request.limit

    def _truncate(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """Return the first ``_keep`` hits, and record whether there are more."""
        kept = hits[: self._keep]
        self._request.trace.has_more |= len(kept) < len(hits)
        return kept

    def find(self, query: Query) -> list[NodeWithScore]:
        """Search the request's scope."""
        raise NotImplementedError

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.find(self._request.question(query_bundle))
