"""A hit: a candidate with what each leg says of it. Mixing is pure, and a hit's score is always the sum of its legs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workbench.retrieval.fusion import min_max, order_of
from workbench.types import Leg


@dataclass(frozen=True, slots=True)
class Hit:
    """``id`` is the internal passage id; ``score`` is the sum of the legs' contributions."""

    id: int
    score: float
    legs: Mapping[str, Leg]


def joined(key: int, legs: Mapping[str, Leg]) -> Hit:
    """Return the hit that its legs make."""
    return Hit(key, sum(leg.contribution for leg in legs.values()), legs)


def lessened(legs: Mapping[str, Leg], share: float, untouched: str = "") -> dict[str, Leg]:
    """Return the legs with ``share`` (0..1) of what each contributed; the leg ``untouched`` keeps all of it."""
    return {
        name: leg if name == untouched else Leg(leg.score, leg.rank, leg.contribution * share)
        for name, leg in legs.items()
    }


def mixed(
    hits: Iterable[Hit],
    leg: str,
    raw: Mapping[int, float],
    weight: float,
    scaled: Mapping[int, float] | None = None,
    trust: Mapping[int, float] | None = None,
    untouched: tuple[str, float] = ("", 0.0),
) -> list[Hit]:
    """Return the hits by (1 - weight) * score + weight * scaled, best first; unjudged ones get 0 from ``leg``.

    ``raw`` are the judge's scores in its own unit, ``scaled`` the same in 0..1, both by internal id; without
    ``scaled`` the raw ones are scaled over the candidates. ``trust`` (0..1, 1 where a passage is not named) is the
    share of the weight that the judge has for a passage. ``untouched`` names a leg of which the judge knows nothing,
    and the share of the score that it had: it keeps it, and what the judge takes comes from the other legs.
    """
    trust = trust or {}
    scaled = min_max(raw) if scaled is None else scaled
    ranks = {key: rank for rank, key in enumerate(order_of(raw), start=1)}
    result: list[Hit] = []
    name, kept = untouched
    for hit in hits:
        share = min(weight * trust.get(hit.id, 1.0), 1 - kept)
        legs = lessened(hit.legs, 1 - share / (1 - kept) if kept < 1 else 0.0, name)
        if hit.id in raw:
            legs[leg] = Leg(raw[hit.id], ranks[hit.id], share * scaled[hit.id])
        result.append(joined(hit.id, legs))
    return sorted(result, key=lambda hit: (-hit.score, hit.id))
