"""The agreement of two rankings: pure functions over lists of ids, best first, results in 0..1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

PERSISTENCE = 0.9  # RBO's p: the first 10 ranks carry 86 % of the weight


def jaccard(first: Sequence[str], second: Sequence[str]) -> float:
    """Return |A and B| / |A or B|; two empty rankings agree fully."""
    a, b = set(first), set(second)
    return len(a & b) / len(a | b) if a | b else 1.0


def rank_biased_overlap(first: Sequence[str], second: Sequence[str], p: float = PERSISTENCE) -> float:
    """Return extrapolated RBO: the overlap at every depth, deeper ones counting less by p each step.

    Webber, Moffat & Zobel, "A Similarity Measure for Indefinite Rankings" (2010), equation 32. Two empty rankings
    agree fully, an empty and a filled one not at all.
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
