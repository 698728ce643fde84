"""The agreement of two rankings, compared with numbers worked out by hand."""

from __future__ import annotations

import pytest

from workbench.retrieval.hits import agreement, jaccard, rank_biased_overlap


def test_jaccard_is_shared_over_all() -> None:
    assert jaccard(["a", "b", "c"], ["b", "c", "d"]) == 2 / 4
    assert jaccard([], []) == 1.0
    assert jaccard(["a"], []) == 0.0


def test_equal_rankings_overlap_fully_and_disjoint_ones_not_at_all() -> None:
    assert rank_biased_overlap(list("abc"), list("abc")) == pytest.approx(1.0)
    assert rank_biased_overlap(list("abc"), list("xyz")) == 0.0
    assert rank_biased_overlap([], list("abc")) == 0.0


def test_overlap_of_two_ranks_by_hand() -> None:
    # depth 1: 0/1, depth 2: 2/2; RBO = (1-p)/p * (0*p + 1*p^2) + 1*p^2 = (1-p)*p + p^2 = p
    assert rank_biased_overlap(["a", "b"], ["b", "a"], p=0.9) == pytest.approx(0.9)


def test_agreement_at_the_top_counts_more() -> None:
    top = rank_biased_overlap(list("abcdef"), list("abcxyz"))
    bottom = rank_biased_overlap(list("abcdef"), list("xyzdef"))
    assert top > bottom


def test_every_pair_of_strategies_is_compared_once() -> None:
    found = agreement({"vector": ["a"], "keyword": ["a"], "hybrid": ["b"]})
    assert found["jaccard"] == {"vector|keyword": 1.0, "vector|hybrid": 0.0, "keyword|hybrid": 0.0}
    assert set(found["rbo"]) == set(found["jaccard"])
