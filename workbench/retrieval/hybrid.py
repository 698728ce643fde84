"""Hybrid: both legs over the same scope, every candidate scored by both, then fused.

A passage that only one leg found still has the other leg's true score (each leg looks it up for what it finds), so
that being outside a leg's first n costs nothing by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.fusion import convex, min_max, reciprocal_rank
from workbench.retrieval.keyword import keyword_candidates, read_words
from workbench.retrieval.nodes import to_nodes
from workbench.retrieval.request import Hit, Request
from workbench.retrieval.source import Source
from workbench.retrieval.vector import vector_candidates
from workbench.types import Leg

# Candidates a leg brings at least. On scifact's train questions nDCG@10 of hybrid / rerank was .740 / .752 with 30,
# .740 / .752 with 50 and .742 / .752 with 100: the plateau is flat, and 50 leaves room where answers are rarer.
POOL = 50


class HybridRetriever(Source):
    """Fuse the vector and the keyword leg; ``keep`` is how many candidates go on to the next stage."""

    def find(self, query: str) -> list[NodeWithScore]:
        """Return the fused candidates of both legs."""
        request = self._request
        with request.store.reading() as connection:
            hits = hybrid_hits(request, connection, query, max(POOL, request.limit), self._keep)
            return to_nodes(request, connection, hits)


def hybrid_hits(request: Request, connection: Any, query: str, pool: int, keep: int | None = None) -> list[Hit]:
    """Return the candidates of both legs, fused, best first: all of them, or the first ``keep``."""
    words = read_words(request, connection, query)
    nearest = vector_candidates(request, connection, query, pool, words.weights)
    worded = keyword_candidates(request, connection, words, pool, request.encoded(query).vector)
    with request.trace.stage("fuse"):
        cosines = {key: cosine for key, _, cosine in worded if cosine is not None}
        cosines |= {key: cosine for key, cosine, _ in nearest}
        bm25 = {key: score for key, _, score in nearest if score is not None} | {key: score for key, score, _ in worded}
        contributions = fuse(cosines, bm25, request.parameters)
        # the vector leg brings at least as many as are kept, so whoever is similar enough is among them
        scores = {
            key: sum(parts.values()) for key, parts in contributions.items() if request.similar_enough(cosines[key])
        }
        # Of equals the one with more of the words goes first: the only passage with a rare word ties with the nearest
        # one where it is itself the farthest of all candidates.
        order = sorted(scores, key=lambda key: (-scores[key], -contributions[key].get("keyword", 0.0), key))[:keep]
    vector_ranks = {key: rank for rank, (key, _, _) in enumerate(nearest, start=1)}
    keyword_ranks = {key: rank for rank, (key, _, _) in enumerate(worded, start=1)}
    hits = []
    for key in order:
        parts = contributions[key]
        legs = {"vector": Leg(cosines[key], vector_ranks.get(key), parts["vector"])}
        if key in bm25:
            legs["keyword"] = Leg(bm25[key], keyword_ranks.get(key), parts["keyword"])
        hits.append(Hit(key, scores[key], legs))
    return hits


def fuse(
    cosines: Mapping[int, float], bm25: Mapping[int, float], parameters: Mapping[str, Any]
) -> dict[int, dict[str, float]]:
    """Fuse by the strategy's parameters: ``fusion`` ("convex" or "rrf") and ``vector_weight`` (0..1)."""
    weights = {"vector": parameters["vector_weight"], "keyword": 1 - parameters["vector_weight"]}
    if parameters["fusion"] == "rrf":
        return reciprocal_rank({"vector": cosines, "keyword": bm25}, weights)
    return convex({"vector": min_max(cosines), "keyword": min_max(bm25, floor=0.0)}, weights)
