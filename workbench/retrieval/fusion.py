"""Fusion of ranked candidates: pure functions over {passage id: score}, keyed by id, changing nothing they are given.

Every function returns, for each id, what each leg adds; the fused score is their sum, so an attribution always adds up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Scores = Mapping[int, float]
Contributions = dict[int, dict[str, float]]


def min_max(scores: Scores, floor: float | None = None) -> dict[int, float]:
    """Scale scores to 0..1: (s - min) / (max - min); all equal gives 1. ``floor`` stands in for the minimum.

    With a floor (0 for BM25) a lone candidate's strength survives, and the lowest is not pushed to nothing.
    """
    if not scores:
        return {}
    low = min(scores.values()) if floor is None else floor
    high = max(scores.values())
    if high <= low:
        return dict.fromkeys(scores, 1.0 if high > 0 or floor is None else 0.0)
    return {key: max(0.0, (score - low) / (high - low)) for key, score in scores.items()}


def convex(legs: Mapping[str, Scores], weights: Mapping[str, float]) -> Contributions:
    """Combine scaled scores with weights that are made to sum to 1: sum of w * s.

    Bruch, Gai & Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval" (2023).
    """
    total = sum(weights[name] for name in legs) or 1.0
    return {
        key: {name: weights[name] / total * scores.get(key, 0.0) for name, scores in legs.items()}
        for key in _keys(legs.values())
    }


def reciprocal_rank(legs: Mapping[str, Scores], weights: Mapping[str, float], k: int = 60) -> Contributions:
    """Combine by ranks: w / (k + rank), scaled so that first everywhere gives 1; a leg without the passage adds 0.

    Cormack, Clarke & Buettcher, "Reciprocal Rank Fusion outperforms Condorcet" (2009); equal scores share a rank.
    """
    total = sum(weights[name] for name in legs) or 1.0
    ranks = {name: ranked(scores) for name, scores in legs.items()}
    return {
        key: {
            name: weights[name] / total * (k + 1) / (k + ranks[name][key]) if key in ranks[name] else 0.0
            for name in legs
        }
        for key in _keys(legs.values())
    }


def ranked(scores: Scores) -> dict[int, int]:
    """Return each id's rank from 1, highest score first; equal scores share the better rank."""
    ranks: dict[int, int] = {}
    last, rank = None, 0
    for position, key in enumerate(order_of(scores), start=1):
        score = scores[key]
        if score != last:
            last, rank = score, position
        ranks[key] = rank
    return ranks


def order_of(scores: Scores) -> list[int]:
    """Return the ids by their scores, highest first; the lower id of equals goes first."""
    return sorted(scores, key=lambda key: (-scores[key], key))


def _keys(legs: Iterable[Scores]) -> list[int]:
    return sorted({key for scores in legs for key in scores})
