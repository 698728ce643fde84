"""The vector leg: passages whose embedding is nearest to the question's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.nodes import node_of, to_nodes
from workbench.retrieval.request import Hit, Request
from workbench.retrieval.source import Source
from workbench.storage.rows import Candidate, Scored, TermWeights
from workbench.types import Leg


def vector_candidates(
    request: Request, connection: Any, query: str, limit: int, terms: TermWeights | None = None
) -> list[Scored]:
    """Return the nearest passages in scope, best first: cosine similarity, and BM25 where ``terms`` are given."""
    vector = request.encoded(query).vector
    with request.trace.stage("vector"):
        return request.store.nearest(connection, vector, request.scope, limit, request.held(connection), terms)


class VectorRetriever(Source):
    """Rank by cosine similarity alone."""

    def find(self, query: str) -> list[NodeWithScore]:
        """Return the passages nearest to the query."""
        request = self._request
        with request.store.reading() as connection:
            if not request.scope.is_everything:
                found = vector_candidates(request, connection, query, request.limit)
                return to_nodes(request, connection, _hits(request, [(key, cosine) for key, cosine, _ in found]))
            vector = request.encoded(query).vector
            with request.trace.stage("vector"):
                shown = request.store.nearest_passages(connection, vector, request.limit, only_same=request.remembered)
        hits = _hits(request, [(passage.id, cosine) for passage, cosine in shown])
        return [node_of(passage, hit) for (passage, _), hit in zip(shown, hits, strict=False)]


def _hits(request: Request, found: Iterable[Candidate]) -> list[Hit]:
    hits = []
    for rank, (key, cosine) in enumerate(found, start=1):
        if not request.similar_enough(cosine):
            break  # best first: the rest are less similar still
        score = max(0.0, cosine)
        hits.append(Hit(key, score, {"vector": Leg(score=cosine, rank=rank, contribution=score)}))
    return hits
