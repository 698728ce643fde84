"""Hybrid with the question's vector moved: towards good passages (feedback) or a made-up answer (HyDE).

The words stay the question's. A hit keeps the question's own cosine in the leg "vector", without a share in the
score; the leg named after the move holds the cosine to the moved vector.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.models.encoder import EncodedQuery, FloatArray
from workbench.retrieval.hybrid import hybrid_hits
from workbench.retrieval.request import Hit, Request
from workbench.types import Leg


def moved_hits(
    request: Request, connection: Any, query: str, vector: FloatArray, leg: str, pool: int, words: Any = None
) -> list[Hit]:
    """Return every candidate for the moved ``vector``, fused, best first; ``words`` stand in for the question's."""
    asked = request.encoded(query)
    moved = replace(
        request,
        min_similarity=0.0,
        words=request.words if words is None else {query: words},
        _encoded={query: EncodedQuery(vector, asked.token_axes, asked.token_spans)},
    )
    found = hybrid_hits(moved, connection, query, pool)
    cosines = request.store.cosines(connection, asked.vector, [hit.id for hit in found])
    return [_relabelled(hit, leg, cosines[hit.id]) for hit in found if request.similar_enough(cosines[hit.id])]


def _relabelled(hit: Hit, leg: str, cosine: float) -> Hit:
    others = {name: value for name, value in hit.legs.items() if name != "vector"}
    return Hit(hit.id, hit.score, {leg: hit.legs["vector"], **others, "vector": Leg(cosine)})
