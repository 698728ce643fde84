"""Learned ranking: the candidates of rerank once more, by weights that were trained on judged questions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from llama_index.core.schema import NodeWithScore

from workbench.retrieval.hit import Hit, joined
from workbench.retrieval.nodes import hit_of, with_hits
from workbench.retrieval.ranker.feature_table import BEFORE, FEATURES, NAMES
from workbench.retrieval.ranker.scoring import FeatureArray, shares, stretched, weight_row
from workbench.retrieval.stages.candidate_features import feature_sheet
from workbench.retrieval.stages.stage import Stage
from workbench.types import Leg
from workbench.types.parameter import LEARNED
from workbench.types.results import TimedStep


class LearnedRerank(Stage):
    """A stage that weighs the features of the candidates; what each adds is counted to the leg that it belongs to.

    Its own leg holds what belongs to none, and the score before it was spread over the range of rerank's.
    """

    leg = LEARNED

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Return the nodes by the ranker's scores."""
        request = self._request
        assert request.ranker is not None  # Requests saw to it
        with request.trace.stage(TimedStep.LEARNED):
            request.sheet = feature_sheet(request, query, nodes)
            parts = shares(request.sheet.scaled, weight_row(request.ranker.weights))
            hits = scored([hit_of(node) for node in nodes], parts)
        return with_hits(nodes, hits)


def scored(hits: list[Hit], parts: FeatureArray) -> list[Hit]:
    """Return the hits by the sum of their parts (candidates, features), best first; equals in the order they came."""
    plain = parts.sum(axis=1)
    before = [hit.score for hit in hits]
    final = stretched(plain, min(before), max(before))
    order = np.argsort(-final, kind="stable")
    ranks = {int(place): rank for rank, place in enumerate(order, start=1)}
    return [
        joined(hits[place].id, _legs(hits[place], parts[place], float(final[place]), float(plain[place]), ranks[place]))
        for place in map(int, order)
    ]


def _legs(hit: Hit, parts: FeatureArray, final: float, plain: float, rank: int) -> Mapping[str, Leg]:
    """Return the attribution: the parts by leg, in proportion, so that they sum to the final score."""
    unit = final / plain if plain > 0 else 0.0
    added = dict.fromkeys([*hit.legs, LEARNED], 0.0)
    for feature, name, part in zip(FEATURES, NAMES, parts, strict=True):
        if name == BEFORE and hit.score > 0:
            for leg, own in hit.legs.items():
                added[leg] += float(part) * own.contribution / hit.score
        else:
            added[feature.leg if feature.leg in added else LEARNED] += float(part)
    if plain <= 0:
        added[LEARNED] = final
        unit = 1.0
    legs = {leg: Leg(own.score, own.rank, added[leg] * unit) for leg, own in hit.legs.items()}
    return {**legs, LEARNED: Leg(plain, rank, added[LEARNED] * unit)}
