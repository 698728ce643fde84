"""Fusion, by hand and by hypothesis: pure functions, independent of the origin of scores."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.retrieval.hits import fuse_convex, fuse_reciprocal_rank, rank_scores, scale_min_max

SCORES = st.dictionaries(st.integers(1, 30), st.floats(-5, 50, allow_nan=False).map(lambda x: round(x, 3)), max_size=15)
LEGS = st.fixed_dictionaries({"a": SCORES, "b": SCORES, "c": SCORES})
WEIGHTS = st.fixed_dictionaries({name: st.integers(1, 10).map(float) for name in "abc"})


def total(parts: dict[int, dict[str, float]]) -> dict[int, float]:
    """Return the fused scores."""
    return {key: sum(legs.values()) for key, legs in parts.items()}


def test_min_max_by_hand() -> None:
    assert scale_min_max({1: 2.0, 2: 4.0, 3: 3.0}) == {1: 0.0, 2: 1.0, 3: 0.5}
    assert scale_min_max({1: 2.0, 2: 4.0}, floor=0.0) == {1: 0.5, 2: 1.0}
    assert scale_min_max({1: 7.0}) == {1: 1.0} and scale_min_max({}) == {}


def test_convex_and_reciprocal_rank_by_hand() -> None:
    parts = fuse_convex({"a": {1: 1.0, 2: 0.5}, "b": {2: 1.0}}, {"a": 3, "b": 1})
    assert parts == {1: {"a": 0.75, "b": 0.0}, 2: {"a": 0.375, "b": 0.25}}
    by_rank = fuse_reciprocal_rank({"a": {1: 9.0, 2: 1.0}}, {"a": 1}, k=60)
    assert by_rank == {1: {"a": 1.0}, 2: {"a": 61 / 62}}
    assert rank_scores({1: 5.0, 2: 7.0, 3: 5.0}) == {2: 1, 1: 2, 3: 2}


@given(LEGS, WEIGHTS)
def test_fusion_does_not_depend_on_the_order_of_legs_or_passages(legs: dict, weights: dict) -> None:
    turned = {name: dict(reversed(list(legs[name].items()))) for name in reversed(list(legs))}
    for fuse in (fuse_convex, fuse_reciprocal_rank):
        straight, other = total(fuse(legs, weights)), total(fuse(turned, weights))
        assert straight.keys() == other.keys()
        assert all(straight[key] == pytest.approx(other[key]) for key in straight)


@given(LEGS, WEIGHTS, st.sampled_from("abc"), st.floats(0.01, 10))
def test_a_better_score_in_a_leg_never_lowers_the_fused_one(legs: dict, weights: dict, leg: str, more: float) -> None:
    for key in legs[leg]:
        raised = {**legs, leg: {**legs[leg], key: legs[leg][key] + more}}
        for fuse in (fuse_convex, fuse_reciprocal_rank):
            assert total(fuse(raised, weights))[key] >= total(fuse(legs, weights))[key] - 1e-9


@given(LEGS, WEIGHTS)
def test_contributions_are_shares_that_sum_to_at_most_one(legs: dict, weights: dict) -> None:
    scaled = {name: scale_min_max(scores, floor=0.0) for name, scores in legs.items()}
    for fuse in (fuse_convex, fuse_reciprocal_rank):
        parts = fuse(scaled, weights)
        assert all(value >= 0 for legs in parts.values() for value in legs.values())
        assert all(score <= 1 + 1e-9 for score in total(parts).values())
        assert set(parts) == {key for scores in scaled.values() for key in scores}


@given(SCORES)
def test_scaling_keeps_the_order_and_changes_nothing_it_is_given(scores: dict) -> None:
    before = dict(scores)
    scaled = scale_min_max(scores)
    assert scores == before
    order = sorted(scores, key=lambda key: scores[key])
    assert all(scaled[a] <= scaled[b] for a, b in pairwise(order))
