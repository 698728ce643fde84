"""The vector leg: passages whose embedding is nearest to the question's."""

from __future__ import annotations

from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from workbench.retrieval.nodes import to_nodes
from workbench.retrieval.request import Hit, Request
from workbench.storage.rows import Scored, TermWeights
from workbench.types import Leg


def vector_candidates(
    request: Request, connection: Any, query: str, limit: int, terms: TermWeights | None = None
) -> list[Scored]:
    """Return the nearest passages in scope, best first: cosine similarity, and BM25 where ``terms`` are given."""
    vector = request.encoded(query).vector
    with request.trace.stage("vector"):
        return request.store.nearest(connection, vector, request.scope, limit, request.held(connection), terms)


class VectorRetriever(BaseRetriever):
    """Rank by cosine similarity alone."""

    def __init__(self, request: Request) -> None:
        self._request = request
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        request = self._request
        with request.store.reading() as connection:
            found = vector_candidates(request, connection, query_bundle.query_str, request.limit)
            hits = []
            for rank, (key, cosine, _) in enumerate(found, start=1):
                if not request.similar_enough(cosine):
                    break  # best first: the rest are less similar still
                score = max(0.0, cosine)
                hits.append(Hit(key, score, {"vector": Leg(score=cosine, rank=rank, contribution=score)}))
            return to_nodes(request, connection, hits)
