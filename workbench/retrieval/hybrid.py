"""Hybrid: both legs over the same scope, every candidate scored by both, then fused.

A passage that only one leg found still gets the other leg's true score (a lookup by id), so that being outside a
leg's first n costs nothing by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from workbench.retrieval.fusion import convex, min_max, reciprocal_rank
from workbench.retrieval.keyword import Words, keyword_candidates, read_words
from workbench.retrieval.nodes import to_nodes
from workbench.retrieval.request import Hit, Request
from workbench.retrieval.vector import vector_candidates
from workbench.types import Leg

# Candidates a leg brings at least. On scifact's train questions nDCG@10 of hybrid / rerank was .740 / .752 with 30,
# .740 / .752 with 50 and .742 / .752 with 100: the plateau is flat, and 50 leaves room where answers are rarer.
POOL = 50


class HybridRetriever(BaseRetriever):
    """Fuse the vector and the keyword leg; ``keep`` is how many candidates go on to the next stage."""

    def __init__(self, request: Request, keep: int) -> None:
        self._request, self._keep = request, keep
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        request, query = self._request, query_bundle.query_str
        with request.store.reading() as connection:
            hits = hybrid_hits(request, connection, query, max(POOL, request.limit), self._keep)
            return to_nodes(request, connection, hits)


def hybrid_hits(request: Request, connection: Any, query: str, pool: int, keep: int | None = None) -> list[Hit]:
    """Return the candidates of both legs, fused, best first: all of them, or the first ``keep``."""
    nearest = vector_candidates(request, connection, query, pool)
    words = read_words(request, connection, query)
    worded = keyword_candidates(request, connection, words, pool)
    with request.trace.stage("fuse"):
        cosines, bm25 = complete_scores(request, connection, query, words, dict(nearest), dict(worded))
        contributions = fuse(cosines, bm25, request.parameters)
        # the vector leg brings at least as many as are kept, so whoever is similar enough is among them
        scores = {
            key: sum(parts.values()) for key, parts in contributions.items() if request.similar_enough(cosines[key])
        }
        # Of equals the one with more of the words goes first: the only passage with a rare word ties with the nearest
        # one where it is itself the farthest of all candidates.
        order = sorted(scores, key=lambda key: (-scores[key], -contributions[key].get("keyword", 0.0), key))[:keep]
    vector_ranks = {key: rank for rank, (key, _) in enumerate(nearest, start=1)}
    keyword_ranks = {key: rank for rank, (key, _) in enumerate(worded, start=1)}
    hits = []
    for key in order:
        parts = contributions[key]
        legs = {"vector": Leg(cosines[key], vector_ranks.get(key), parts["vector"])}
        if key in bm25:
            legs["keyword"] = Leg(bm25[key], keyword_ranks.get(key), parts["keyword"])
        hits.append(Hit(key, scores[key], legs))
    return hits


def complete_scores(
    request: Request, connection: Any, query: str, words: Words, cosines: dict[int, float], bm25: dict[int, float]
) -> tuple[dict[int, float], dict[int, float]]:
    """Return both legs' scores for the union of their candidates."""
    worded, near = sorted(bm25.keys() - cosines.keys()), sorted(cosines.keys() - bm25.keys())
    if not worded and not near:
        return cosines, bm25
    vector = request.encoded(query).vector
    more_cosines, more_bm25 = request.store.missing_scores(connection, vector, words.weights, worded, near)
    cosines, bm25 = cosines | more_cosines, bm25 | more_bm25
    return cosines, {key: score for key, score in bm25.items() if key in cosines}  # some may be deleted by now


def fuse(
    cosines: Mapping[int, float], bm25: Mapping[int, float], parameters: Mapping[str, Any]
) -> dict[int, dict[str, float]]:
    """Fuse by the strategy's parameters: ``fusion`` ("convex" or "rrf") and ``vector_weight`` (0..1)."""
    weights = {"vector": parameters["vector_weight"], "keyword": 1 - parameters["vector_weight"]}
    if parameters["fusion"] == "rrf":
        return reciprocal_rank({"vector": cosines, "keyword": bm25}, weights)
    return convex({"vector": min_max(cosines), "keyword": min_max(bm25, floor=0.0)}, weights)
