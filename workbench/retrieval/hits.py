"""Fusion of ranked candidates: pure functions over {passage id: score} that leave their arguments unchanged.

Every fusion returns each leg's contribution by id; the fused score is their sum, so an attribution always adds up.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from workbench.types import Leg

# Agreement of two rankings

RBO_PERSISTENCE = 0.9  # RBO's p: the first 10 ranks have 86% of the weight


def jaccard(first: Sequence[str], second: Sequence[str]) -> float:
    """Return |A and B| / |A or B|; 1 for two empty rankings."""
    a, b = set(first), set(second)
    return len(a & b) / len(a | b) if a | b else 1.0


def rank_biased_overlap(first: Sequence[str], second: Sequence[str], p: float = RBO_PERSISTENCE) -> float:
    """Return extrapolated RBO: the overlap at every depth, discounted by p per rank.

    Webber, Moffat & Zobel, "A Similarity Measure for Indefinite Rankings" (2010), equation 32. Two empty rankings
    give 1, one empty ranking gives 0.
    """
    short, long = sorted((list(first), list(second)), key=len)
    if not long:
        return 1.0
    if not short:
        return 0.0
    overlap = [len(set(short[:depth]) & set(long[:depth])) for depth in range(1, len(long) + 1)]
    s, size = len(short), len(long)
    at_s = overlap[s - 1]
    total = sum(overlap[depth - 1] / depth * p**depth for depth in range(1, size + 1))
    total += sum(at_s * (depth - s) / (s * depth) * p**depth for depth in range(s + 1, size + 1))
    tail = ((overlap[size - 1] - at_s) / size + at_s / s) * p**size
    return min(1.0, max(0.0, (1 - p) / p * total + tail))


def agreement(rankings: Mapping[str, Sequence[str]]) -> dict[str, dict[str, float]]:
    """Return {"jaccard": {"a|b": 0..1}, "rbo": {...}} for every pair of rankings."""
    pairs = list(combinations(rankings, 2))
    return {
        "jaccard": {f"{a}|{b}": round(jaccard(rankings[a], rankings[b]), 4) for a, b in pairs},
        "rbo": {f"{a}|{b}": round(rank_biased_overlap(rankings[a], rankings[b]), 4) for a, b in pairs},
    }


# Interleaving of two rankings


def draft_teams(first: Sequence[str], second: Sequence[str], seed: str) -> dict[str, int]:
    """Return the items of two rankings in one order, each with the ranking that contributed it, 0 or 1.

    Team draft interleaving (Radlinski, Kurup and Joachims, "How Does Clickthrough Data Reflect Retrieval Quality?",
    CIKM 2008): in each round, both rankings contribute their best item that is not yet listed, and a coin decides which
    is first. The coin depends on ``seed`` only, so the list of a smaller limit is the start of a longer one.
    """
    coin = random.Random(seed)
    remaining = iter(first), iter(second)
    drafted: dict[str, int] = {}
    total = len({*first, *second})
    while len(drafted) < total:
        side = coin.randrange(2)
        for team in (side, 1 - side):
            own = next((item for item in remaining[team] if item not in drafted), None)
            if own is not None:
                drafted[own] = team
    return drafted


Scores = Mapping[int, float]
Contributions = dict[int, dict[str, float]]


def scale_min_max(scores: Scores, floor: float | None = None) -> dict[int, float]:
    """Scale scores to 0..1: (s - min) / (max - min); if all are equal, each gives 1. ``floor`` replaces the minimum.

    With a floor (0 for BM25), a single candidate keeps its strength and the lowest score does not become 0.
    """
    if not scores:
        return {}
    low = min(scores.values()) if floor is None else floor
    high = max(scores.values())
    if high <= low:
        return dict.fromkeys(scores, 1.0 if high > 0 or floor is None else 0.0)
    return {key: max(0.0, (score - low) / (high - low)) for key, score in scores.items()}


def fuse_convex(legs: Mapping[str, Scores], weights: Mapping[str, float]) -> Contributions:
    """Combine scaled scores with normalised weights: sum of w * s.

    Bruch, Gai & Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval" (2023).
    """
    total = sum(weights[name] for name in legs) or 1.0
    return {
        key: {name: weights[name] / total * scores.get(key, 0.0) for name, scores in legs.items()}
        for key in _all_ids(legs.values())
    }


def fuse_reciprocal_rank(legs: Mapping[str, Scores], weights: Mapping[str, float], k: int = 60) -> Contributions:
    """Combine ranks: w / (k + rank), scaled so that rank 1 in all legs gives 1; a leg without the passage adds 0.

    Cormack, Clarke & Buettcher, "Reciprocal Rank Fusion outperforms Condorcet" (2009); equal scores share a rank.
    """
    total = sum(weights[name] for name in legs) or 1.0
    ranks = {name: rank_scores(scores) for name, scores in legs.items()}
    return {
        key: {
            name: weights[name] / total * (k + 1) / (k + ranks[name][key]) if key in ranks[name] else 0.0
            for name in legs
        }
        for key in _all_ids(legs.values())
    }


def rank_scores(scores: Scores) -> dict[int, int]:
    """Return each id's rank from 1, highest score first; equal scores share the better rank."""
    ranks: dict[int, int] = {}
    last, rank = None, 0
    for position, key in enumerate(sort_ids(scores), start=1):
        score = scores[key]
        if score != last:
            last, rank = score, position
        ranks[key] = rank
    return ranks


def sort_ids(scores: Scores) -> list[int]:
    """Return the ids by score, highest first; ties by lower id."""
    return sorted(scores, key=lambda key: (-scores[key], key))


def _all_ids(legs: Iterable[Scores]) -> list[int]:
    return sorted({key for scores in legs for key in scores})


# Hits and attribution


@dataclass(frozen=True, slots=True)
class Hit:
    """``id`` is the internal passage id; ``score`` is the sum of the legs' contributions."""

    id: int
    score: float
    legs: Mapping[str, Leg]


def hit_from_legs(key: int, legs: Mapping[str, Leg]) -> Hit:
    return Hit(key, sum(leg.contribution for leg in legs.values()), legs)


def scale_contributions(legs: Mapping[str, Leg], share: float, untouched: str = "") -> dict[str, Leg]:
    """Scale the legs' contributions by ``share`` (0..1), except that of the leg ``untouched``."""
    return {
        name: leg if name == untouched else Leg(leg.score, leg.rank, leg.contribution * share)
        for name, leg in legs.items()
    }


def add_leg(
    hits: Iterable[Hit],
    leg: str,
    raw: Mapping[int, float],
    weight: float,
    scaled: Mapping[int, float] | None = None,
    trust: Mapping[int, float] | None = None,
    untouched: tuple[str, float] = ("", 0.0),
) -> list[Hit]:
    """Rescore hits as (1 - weight) * score + weight * scaled, best first; unscored ones get 0 from ``leg``.

    ``raw`` are the reranker's scores in its own unit, ``scaled`` the same in 0..1, both by internal id; without
    ``scaled``, the raw scores are scaled over the candidates. ``trust`` (0..1, default 1) scales the weight for single
    passages. ``untouched`` is a leg that the reranker does not affect, and the share of the score that it keeps.
    """
    trust = trust or {}
    scaled = scale_min_max(raw) if scaled is None else scaled
    ranks = {key: rank for rank, key in enumerate(sort_ids(raw), start=1)}
    result: list[Hit] = []
    name, kept = untouched
    for hit in hits:
        share = min(weight * trust.get(hit.id, 1.0), 1 - kept)
        legs = scale_contributions(hit.legs, 1 - share / (1 - kept) if kept < 1 else 0.0, name)
        if hit.id in raw:
            legs[leg] = Leg(raw[hit.id], ranks[hit.id], share * scaled[hit.id])
        result.append(hit_from_legs(hit.id, legs))
    return sorted(result, key=lambda hit: (-hit.score, hit.id))
