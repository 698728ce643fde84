"""Paired tests compared with exact enumeration, scipy, and differences with known results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evals.measures.significance import (
    bootstrap_interval,
    compare_all_pairs,
    compare_pairs,
    compare_with_best,
    describe_difference,
    holm_correction,
    randomisation_p,
)
from workbench.errors import InvalidInput

STEPS = st.sampled_from([-0.5, -0.25, 0.0, 0.25, 0.5])


def test_the_exact_p_value_is_the_share_of_sign_patterns() -> None:
    # three questions won by one: of 8 patterns only +++ and --- are as extreme; one-sided: none is below
    assert randomisation_p([1, 1, 1]) == 2 / 8
    assert randomisation_p([-1, -1, -1], "less") == 1 / 8
    assert randomisation_p([1, 1, 1], "less") == 1.0


@settings(max_examples=25, deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=9))
def test_the_exact_test_agrees_with_scipys_permutation_test(values: list[float]) -> None:
    theirs = stats.permutation_test((np.array(values),), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert randomisation_p(values) == pytest.approx(min(1.0, theirs.pvalue), abs=1e-9)


def test_the_sampled_test_comes_near_the_exact_one() -> None:
    values = [0.3, -0.1, 0.2, 0.25, -0.05, 0.1, 0.4, -0.2, 0.15, 0.05, 0.2, -0.1]
    assert randomisation_p(values, rounds=4000) == pytest.approx(randomisation_p(values, rounds=5000), abs=0.02)


def test_without_a_difference_nothing_is_significant() -> None:
    assert randomisation_p([0.0] * 50) == 1.0
    assert randomisation_p([]) == 1.0
    assert bootstrap_interval([]) == (0.0, 0.0)


def test_the_interval_of_the_mean_is_near_the_normal_one() -> None:
    values = np.random.default_rng(1).normal(0.1, 0.3, 300)
    low, high = bootstrap_interval(list(values))
    half = 1.96 * values.std(ddof=1) / np.sqrt(300)
    assert (low, high) == (
        pytest.approx(values.mean() - half, abs=0.005),
        pytest.approx(values.mean() + half, abs=0.005),
    )


def test_holm_multiplies_the_smallest_by_the_number_of_tests_and_never_falls() -> None:
    assert holm_correction([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm_correction([0.5, 0.9]) == [1.0, 1.0]
    assert holm_correction([]) == []


def test_pairs_are_corrected_together_and_report_wins_and_losses() -> None:
    good = {f"q{n}": 1.0 for n in range(20)}
    bad = dict.fromkeys(good, 0.5) | {"q0": 1.0}
    by_pair = {(item.a, item.b): item for item in compare_all_pairs("ndcg@10", {"a": good, "b": bad, "c": dict(good)})}
    assert (by_pair["a", "b"].wins, by_pair["a", "b"].losses, by_pair["a", "b"].ties) == (19, 0, 1)
    assert by_pair["a", "b"].difference == pytest.approx(0.475)
    assert by_pair["a", "b"].significant and not by_pair["a", "c"].significant
    assert by_pair["a", "b"].p_corrected == pytest.approx(3 * by_pair["a", "b"].p, abs=1e-5)


def test_values_of_different_questions_are_not_paired() -> None:
    with pytest.raises(InvalidInput, match="different questions"):
        compare_pairs("ndcg@10", [("a", {"q1": 1.0}, "b", {"q2": 1.0})])


def test_the_others_are_compared_with_the_best() -> None:
    values = {name: {f"q{n}": value for n in range(20)} for name, value in (("low", 0.1), ("high", 0.9), ("mid", 0.5))}
    found = compare_with_best("ndcg@10", values)
    assert [(item.a, item.b) for item in found] == [("low", "high"), ("mid", "high")]
    assert all(item.significant and item.losses == 20 for item in found)


def described(values: list[float], *others: list[float]) -> str:
    """Return the sentence on the first list of differences, which is compared together with the others."""
    zero = {f"q{n}": 0.0 for n in range(len(values))}
    pairs = [
        (f"r{n}", {f"q{m}": v for m, v in enumerate(own)}, "best", zero) for n, own in enumerate([values, *others])
    ]
    return describe_difference(compare_pairs("ndcg@10", pairs)[0])


@pytest.mark.parametrize(
    ("values", "others", "told"),
    [
        ([-0.5] * 7 + [0.0] * 3, 9, "too few questions to be sure: lost 7 of 7 differing questions, p = .016, but "
         "p = .156 after correcting for 10 comparisons"),
        ([0.0] * 10, 8, "tie: equal on all 10 questions"),
        ([-0.5] * 3 + [0.0] * 7, 0, "too few questions to be sure: lost 3 of 3 differing questions, p = .250"),
        ([0.5, -0.5] * 4 + [0.0], 0, "no clear difference: won 4, lost 4 of 8 differing questions, p = 1.000"),
        ([0.5] * 12, 0, "better: won 12 of 12 differing questions, p < .001"),
        ([-0.5] * 12, 1, "worse: lost 12 of 12 differing questions, p < .001, and p < .001 after correcting for 2 "
         "comparisons"),
        ([0.25], 0, "too few questions to be sure: won 1 of 1 differing question, p = 1.000"),
    ],
)  # fmt: skip
def test_a_difference_is_described_by_questions_and_by_both_p_values(
    values: list[float], others: int, told: str
) -> None:
    assert described(values, *([[0.0] * len(values)] * others)) == told
