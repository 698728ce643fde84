"""The vector leg: passages whose embeddings are nearest to the question's."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.nodes import Hit, make_node
from workbench.retrieval.retrievers.retriever import Query, Retriever
from workbench.storage.passages import Connection, find_nearest_passages
from workbench.storage.ranking import LegRanking
from workbench.types import VECTOR, Leg, TimedStep


def rank_by_vector(query: Query, connection: Connection, limit: int, given: Collection[int] = ()) -> LegRanking:
    """Return the nearest passages in scope by cosine, and the cosines of ``given`` passages."""
    request, vector = query.request, query.encoded.vector
    with request.trace.stage(TimedStep.VECTOR):
        size = request.scope_size(connection)
        return request.store.nearest(connection, vector, request.scope, limit, size, given)


class VectorRetriever(Retriever):
    """Cosine similarity; ranked to the request's depth, so that ties have the same order at any limit."""

    def find(self, query: Query) -> list[NodeWithScore]:
        request = self._request
        with request.store.reading() as connection:
            if not request.scope.is_everything or request.index.is_attached:
                ranking = rank_by_vector(query, connection, request.depth)
                hits = self._hits(query, list(ranking.scores.items()))
                return self._fetch(connection, hits)
            vector = query.encoded.vector
            with request.trace.stage(TimedStep.VECTOR):
                nearest = find_nearest_passages(connection, request.index, vector, request.depth, request.same_as)
            passages = {passage.id: passage for passage, _ in nearest}
            hits = self._hits(query, [(passage.id, cosine) for passage, cosine in nearest])
            return self._fetch(connection, hits, lambda some: [make_node(passages[hit.id], hit) for hit in some])

    def _hits(self, query: Query, cosines: Sequence[tuple[int, float]]) -> list[Hit]:
        request = self._request
        hits: list[Hit] = []
        for rank, (key, cosine) in enumerate(cosines, start=1):
            if not query.is_similar_enough(cosine):
                return hits  # best first: the rest are less similar
            score = max(0.0, cosine)
            hits.append(Hit(key, score, {VECTOR: Leg(score=cosine, rank=rank, contribution=score)}))
        request.trace.has_more |= len(hits) >= request.depth
        return hits
