"""Hybrid with the question's vector moved: towards good passages (feedback) or a made-up answer (HyDE).

The words stay the question's. A hit keeps the question's own cosine in the leg "vector", without a share in the
score; the leg named after the move holds the cosine to the moved vector.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.models.encoder import EncodedQuery, FloatArray
from workbench.retrieval.hit import Hit
from workbench.retrieval.question_words import Words
from workbench.retrieval.request import Request
from workbench.retrieval.retrievers.hybrid import hybrid_hits
from workbench.storage.database import Connection
from workbench.storage.postings import cosines
from workbench.types import Leg
from workbench.types.parameter import KEYWORD, VECTOR


def moved_hits(
    request: Request,
    connection: Connection,
    query: str,
    vector: FloatArray,
    leg: str,
    pool: int,
    words: Words | None = None,
) -> list[Hit]:
    """Return every candidate for the moved ``vector``, fused, best first; ``words`` stand in for the question's."""
    encoded = request.encoded(query)
    moved = replace(
        request,
        min_similarity=0.0,
        words=request.words if words is None else {query: words},
        encoded_queries={query: EncodedQuery(vector, encoded.token_axes, encoded.token_spans)},
    )
    hits = hybrid_hits(moved, connection, query, pool)
    index, found = request.index, [hit.id for hit in hits]
    near = cosines(connection, index.name, encoded.vector, found)
    hits = [hit for hit in hits if hit.id in near]  # others were deleted meanwhile
    return [_relabelled(hit, leg, near[hit.id]) for hit in hits if _similar(request, query, hit, near[hit.id])]


def _similar(request: Request, query: str, hit: Hit, cosine: float) -> bool:
    return request.similar_enough(query, cosine, worded=KEYWORD in hit.legs)


def _relabelled(hit: Hit, leg: str, cosine: float) -> Hit:
    others = {name: value for name, value in hit.legs.items() if name != VECTOR}
    return Hit(hit.id, hit.score, {leg: hit.legs[VECTOR], **others, VECTOR: Leg(cosine)})
