"""LlamaIndex's own hybrid mode over the same table, unmodified, as a baseline."""

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

from workbench.retrieval.hits import Hit
from workbench.retrieval.nodes import CopyFolder, make_node
from workbench.retrieval.retrievers.retriever import Query, Retriever
from workbench.storage.passages import (
    choose_scope_predicate,
    fetch_documents_in_scope,
    fetch_internal_ids,
    fetch_passages,
)
from workbench.types import VECTOR, Leg, TimedStep


class FrameworkHybridRetriever(Retriever):
    """PGVectorStore's HYBRID mode: the vector hits, then the ts_rank hits, without fusion."""

    def find(self, query: Query) -> list[NodeWithScore]:
        """Return the results of LlamaIndex's own store."""
        request = self._request
        if request.scope.is_empty:
            return []
        vector = query.encoded.vector
        store_query = VectorStoreQuery(
            query_embedding=vector.tolist(),
            query_str=query.text.replace("\x00", ""),
            similarity_top_k=request.depth,
            mode=VectorStoreQueryMode.HYBRID,
            filters=self._filters(),
        )
        with request.trace.stage(TimedStep.FRAMEWORK):
            result = request.store.for_llama_index.query(store_query)
        order = list(result.ids or [])[: request.depth]
        request.trace.has_more |= len(order) == request.depth
        with request.store.reading() as connection:
            keys = fetch_internal_ids(connection, request.index.name, order)
            passages = fetch_passages(connection, request.index.name, list(keys.values()), request.same_as)
            near = request.store.fetch_cosines(connection, vector, list(passages))  # deleted passages have none
        nodes: list[NodeWithScore] = []
        for rank, node_id in enumerate(order, start=1):
            key = keys.get(node_id)
            if key is None or key not in near or not query.is_similar_enough(near[key]):
                continue
            score = max(0.0, near[key])
            leg = Leg(score=near[key], rank=rank, contribution=score)
            nodes.append(make_node(passages[key], Hit(key, score, {VECTOR: leg})))
        return CopyFolder().add(nodes) if request.folds_when_found else nodes[: self._keep]

    def _filters(self) -> MetadataFilters | None:
        """Return the scope as LlamaIndex filters on resolved ids, never on a caller's text."""
        request = self._request
        predicate = choose_scope_predicate(request.scope)
        if predicate == "scope_everything":
            return None
        if predicate == "scope_sources":
            key, values = "source_id", list(request.scope.source_ids or ())
        else:
            with request.store.reading() as connection:
                key, values = "document_id", fetch_documents_in_scope(connection, request.index.name, request.scope)
        chosen: list[MetadataFilter | MetadataFilters] = [
            MetadataFilter(key=key, value=values, operator=FilterOperator.IN)
        ]
        return MetadataFilters(filters=chosen, condition=FilterCondition.AND)
