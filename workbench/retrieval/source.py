"""What the sources of candidates have in common: LlamaIndex's interface around one request."""

from __future__ import annotations

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from workbench.retrieval.request import Request


class Source(BaseRetriever):
    """A retriever of one request: ``find`` takes a query and returns nodes, best first.

    ``keep`` is how many of them the stages after it are to see; by default as many as are asked for.
    """

    def __init__(self, request: Request, keep: int | None = None) -> None:
        self._request = request
        self._keep = request.limit if keep is None else keep
        super().__init__()

    def find(self, query: str) -> list[NodeWithScore]:
        """Search the request's scope."""
        raise NotImplementedError

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.find(query_bundle.query_str)
