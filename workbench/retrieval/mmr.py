"""Maximal marginal relevance: each next passage is relevant and says something the ones before it do not.

Carbonell & Goldstein, "The Use of MMR, Diversity-Based Reranking" (1998). With relevance r in 0..1 and the greatest
cosine s (not below 0) to a passage chosen before,

    score = lambda * r + (1 - lambda) * (1 - s)

which is theirs plus the constant 1 - lambda, so that it lies in 0..1. What is chosen later never scores higher: s only
grows, so every candidate's score only falls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llama_index.core.schema import NodeWithScore

from workbench.models.encoder import FloatArray, unit_rows
from workbench.retrieval.nodes import LEGS, hit_of
from workbench.retrieval.stage import Stage
from workbench.types import Leg


class Mmr(Stage):
    """Choose as many passages as are asked for, by marginal relevance over the stored vectors."""

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Choose and score anew."""
        request, share = self._request, float(self._request.parameters["lambda"])
        with request.store.reading() as connection, request.trace.stage("mmr"):
            vectors = request.store.vectors(connection, [hit_of(node).id for node in nodes])
        nodes = [node for node in nodes if hit_of(node).id in vectors]
        rows = np.stack([vectors[hit_of(node).id] for node in nodes])
        chosen = choose([hit_of(node).score for node in nodes], rows, share, request.limit)
        return [_scored(nodes[place], novelty, share) for place, novelty in chosen]


def choose(relevance: Sequence[float], vectors: FloatArray, share: float, limit: int) -> list[tuple[int, float]]:
    """Return (place, 1 - s) of the chosen candidates in order; equal scores go to the earlier candidate."""
    rows, left = unit_rows(vectors), np.ones(len(relevance), dtype=bool)
    closest = np.zeros(len(relevance), dtype=np.float64)
    chosen = []
    for _ in range(min(limit, len(relevance))):
        scores = share * np.asarray(relevance) + (1 - share) * (1 - closest)
        place = int(np.where(left, scores, -np.inf).argmax())
        chosen.append((place, float(1 - closest[place])))
        left[place] = False
        closest = np.maximum(closest, np.clip(rows @ rows[place], 0.0, 1.0))
    return chosen


def _scored(node: NodeWithScore, novelty: float, share: float) -> NodeWithScore:
    hit = hit_of(node)
    legs = {name: Leg(leg.score, leg.rank, share * leg.contribution) for name, leg in hit.legs.items()}
    legs["novelty"] = Leg(novelty, None, (1 - share) * novelty)
    node.node.metadata[LEGS] = legs
    return NodeWithScore(node=node.node, score=sum(leg.contribution for leg in legs.values()))
