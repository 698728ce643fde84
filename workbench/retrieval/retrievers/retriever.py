"""A retriever: LlamaIndex's interface around one request."""

from __future__ import annotations

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from workbench.retrieval.parameters import CANDIDATES
from workbench.retrieval.request import Request


class Retriever(BaseRetriever):
    """A retriever of one request: ``find`` takes a query and returns nodes, best first."""

    def __init__(self, request: Request) -> None:
        self._request = request
        super().__init__()

    @property
    def _keep(self) -> int:
        """The number of nodes for the stages after it: as many as are asked for, or as the strategy's stages take."""
        return max(self._request.limit, int(self._request.number(CANDIDATES, otherwise=0)))

    def find(self, query: str) -> list[NodeWithScore]:
        """Search the request's scope."""
        raise NotImplementedError

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.find(query_bundle.query_str)
