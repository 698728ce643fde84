"""Mix a further judge's scores into what the stages before said; attributions still add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.nodes import LEGS, hit_of
from workbench.types import Leg


def mixed(
    nodes: Sequence[NodeWithScore], leg: str, raw: Mapping[int, float], scaled: Mapping[int, float], weight: float
) -> list[NodeWithScore]:
    """Return the nodes by (1 - weight) * score + weight * scaled, best first; what was not judged gets 0 for it.

    ``raw`` are the judge's scores in its own unit, ``scaled`` the same in 0..1, both by internal id.
    """
    ranks = {key: rank for rank, key in enumerate(sorted(scaled, key=lambda key: (-scaled[key], key)), start=1)}
    scored = []
    for node in nodes:
        hit = hit_of(node)
        legs = {name: Leg(part.score, part.rank, (1 - weight) * part.contribution) for name, part in hit.legs.items()}
        if hit.id in scaled:
            legs[leg] = Leg(raw[hit.id], ranks[hit.id], weight * scaled[hit.id])
        node.node.metadata[LEGS] = legs
        scored.append(NodeWithScore(node=node.node, score=sum(part.contribution for part in legs.values())))
    return sorted(scored, key=lambda node: (-(node.score or 0.0), hit_of(node).id))
