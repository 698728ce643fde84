"""The framework's own hybrid, as it comes, over the same table: the honest baseline to compare with."""

from __future__ import annotations

from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from workbench.retrieval.nodes import node_of
from workbench.retrieval.request import Hit
from workbench.retrieval.source import Source
from workbench.storage.rows import scope_statement
from workbench.types import Leg


class FrameworkHybridRetriever(Source):
    """PGVectorStore's HYBRID mode: the vector hits, then the ts_rank hits, nothing fused."""

    def find(self, query: str) -> list[NodeWithScore]:
        """Return what the framework's own store finds."""
        request = self._request
        if request.scope.is_empty:
            return []
        vector = request.encoded(query).vector
        asked = VectorStoreQuery(
            query_embedding=vector.tolist(),
            query_str=query.replace("\x00", ""),
            similarity_top_k=request.limit,
            mode=VectorStoreQueryMode.HYBRID,
            filters=self._filters(),
        )
        with request.trace.stage("framework"):
            found = request.store.query(asked)
        order = list(found.ids or [])[: request.limit]
        with request.store.reading() as connection:
            keys = request.store.internal_ids(connection, order)
            stored = request.store.passages(connection, list(keys.values()), only_same=request.remembered)
            cosines = request.store.cosines(connection, vector, list(stored))
        nodes = []
        for rank, node_id in enumerate(order, start=1):
            key = keys.get(node_id)
            if key is None or key not in stored or not request.similar_enough(cosines[key]):
                continue
            score = max(0.0, cosines[key])
            leg = Leg(score=cosines[key], rank=rank, contribution=score)
            nodes.append(node_of(stored[key], Hit(key, score, {"vector": leg})))
        return nodes

    def _filters(self) -> MetadataFilters | None:
        """Say the scope in the framework's terms: ids that we resolved, never a caller's text."""
        request = self._request
        predicate = scope_statement(request.scope)
        if predicate == "scope_everything":
            return None
        if predicate == "scope_sources":
            key, values = "source_id", list(request.scope.source_ids or ())
        else:
            with request.store.reading() as connection:
                key, values = "document_id", request.store.documents_in_scope(connection, request.scope)
        chosen: list[MetadataFilter | MetadataFilters] = [
            MetadataFilter(key=key, value=values, operator=FilterOperator.IN)
        ]
        return MetadataFilters(filters=chosen, condition=FilterCondition.AND)
