"""Maximal marginal relevance: each next passage is relevant and differs from the ones before it.

Carbonell & Goldstein, "The Use of MMR, Diversity-Based Reranking" (1998). With relevance r in 0..1 and the greatest
cosine s (not below 0) to a passage chosen before,

    score = lambda * r + (1 - lambda) * (1 - s)

which is theirs plus the constant 1 - lambda, so that it is in 0..1. A later choice never scores higher: s only
grows, so scores only fall.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llama_index.core.schema import NodeWithScore

from workbench.models.encoder import FloatArray, normalise_rows
from workbench.retrieval.hits import Hit, hit_from_legs, scale_contributions
from workbench.retrieval.nodes import node_hit, replace_hits
from workbench.retrieval.parameters import LAMBDA
from workbench.retrieval.stages.stage import Query, Stage
from workbench.storage.passages import fetch_vectors
from workbench.types import NOVELTY, Leg, TimedStep


class Mmr(Stage):
    """A stage that selects passages up to the limit by marginal relevance over the stored vectors."""

    leg = NOVELTY

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Select and rescore."""
        request, share = self._request, self._request.float_param(LAMBDA)
        hits = [node_hit(node) for node in nodes]
        index, ids = request.index, [hit.id for hit in hits]
        with request.store.reading() as connection, request.trace.stage(TimedStep.MMR):
            vectors_by_id = fetch_vectors(connection, index.name, ids)
        hits = [hit for hit in hits if hit.id in vectors_by_id]
        rows = np.stack([vectors_by_id[hit.id] for hit in hits])
        wanted = len(hits) if request.scope.preferred_source_ids else request.rank_limit  # FinalOrder puts these first
        chosen = choose_by_mmr([hit.score for hit in hits], rows, share, wanted)
        return replace_hits(nodes, [self._rescore(hits[place], novelty, share) for place, novelty in chosen])

    def _rescore(self, hit: Hit, novelty: float, share: float) -> Hit:
        return hit_from_legs(
            hit.id, {**scale_contributions(hit.legs, share), self.leg: Leg(novelty, None, (1 - share) * novelty)}
        )


def choose_by_mmr(relevance: Sequence[float], vectors: FloatArray, share: float, limit: int) -> list[tuple[int, float]]:
    """Return (position, 1 - s) of the selected candidates in order; ties go to the earlier candidate."""
    rows, candidates = normalise_rows(vectors), np.ones(len(relevance), dtype=bool)
    closest = np.zeros(len(relevance), dtype=np.float64)
    chosen: list[tuple[int, float]] = []
    for _ in range(min(limit, len(relevance))):
        scores = share * np.asarray(relevance) + (1 - share) * (1 - closest)
        place = int(np.where(candidates, scores, -np.inf).argmax())
        chosen.append((place, float(1 - closest[place])))
        candidates[place] = False
        closest = np.maximum(closest, np.clip(rows @ rows[place], 0.0, 1.0))
    return chosen
