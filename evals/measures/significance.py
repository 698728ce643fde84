"""Significance of differences between strategies: paired tests over the questions, without assuming normality.

The randomisation test is Fisher's: if two strategies were equal, each question's difference could equally well have the
opposite sign (Smucker, Allan and Carterette, CIKM 2007, compare it with the t-test and the bootstrap). Several
comparisons at once are corrected by Holm's step-down method (Scandinavian Journal of Statistics, 1979).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidInput
from workbench.types import Value

RESAMPLING_ROUNDS = 10_000  # random sign flips or resamples; gives a p-value of .05 to about .004
SIGNIFICANCE_LEVEL = 0.05
RESAMPLING_SEED = 20_070  # fixed, so that the same run gives the same figures
ROUNDS_PER_BLOCK = 500  # bounds the memory to 500 x questions
EQUALITY_TOLERANCE = (
    1e-6  # smaller differences count as 0: saved values are rounded, and models differ in the last digits
)

Alternative = Literal["two-sided", "less"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference(Value):
    """How ``a`` differs from ``b`` in a metric: ``difference`` = mean of a - b, with a 95% bootstrap interval.

    ``p_corrected`` is corrected for the number of ``comparisons``.
    """

    metric: str
    a: str
    b: str
    difference: float
    interval: tuple[float, float]
    p: float
    p_corrected: float
    significant: bool
    wins: int
    losses: int
    ties: int
    comparisons: int = 1

    @property
    def is_tie(self) -> bool:
        """True if the two are equal on every question."""
        return not self.wins and not self.losses


def format_p(p: float) -> str:
    """Return a p-value as text, such as "p = .016"."""
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("= 0.", "= .")


def describe_tie(difference: Difference) -> str:
    """Return a clause for two strategies that are equal on every question."""
    return "equal on the one question" if difference.ties == 1 else f"equal on all {difference.ties:,} questions"


def describe_difference(difference: Difference) -> str:
    """Describe the difference of ``a`` from ``b``: its significance, questions won and lost, p before and after Holm.

    A difference that is insignificant only because of the correction is not called "no clear difference".
    """
    differing = difference.wins + difference.losses
    if difference.is_tie:
        return f"tie: {describe_tie(difference)}"
    won, lost = f"won {difference.wins:,}", f"lost {difference.losses:,}"
    counts = ", ".join([won, lost] if difference.wins and difference.losses else [won if difference.wins else lost])
    counts += f" of {differing:,} differing question{'' if differing == 1 else 's'}"
    values = format_p(difference.p)
    if difference.comparisons > 1:
        but = "but" if difference.p < SIGNIFICANCE_LEVEL and not difference.significant else "and"
        corrected = format_p(difference.p_corrected)
        values += f", {but} {corrected} after correcting for {difference.comparisons} comparisons"
    if difference.significant:
        return f"{'better' if difference.difference > 0 else 'worse'}: {counts}, {values}"
    if difference.p < SIGNIFICANCE_LEVEL or not (difference.wins and difference.losses):
        return f"{counts}, {values}: too few questions to be sure"
    return f"no clear difference: {counts}, {values}"


def randomisation_p(
    differences: Sequence[float], alternative: Alternative = "two-sided", rounds: int = RESAMPLING_ROUNDS
) -> float:
    """Return the p-value of the paired randomisation test; ``less`` tests whether the mean is below 0.

    Exact if there are at most ``rounds`` sign patterns; otherwise (1 + as extreme) / (1 + rounds), which is never 0.
    """
    changed = np.asarray([value for value in differences if abs(value) > EQUALITY_TOLERANCE], dtype=np.float64)
    if not len(changed):
        return 1.0
    exact = 2 ** len(changed) <= rounds
    sums = _all_sums(changed) if exact else _random_sums(changed, rounds)
    observed = changed.sum()
    extreme = (
        np.abs(sums) >= abs(observed) - EQUALITY_TOLERANCE
        if alternative == "two-sided"
        else sums <= observed + EQUALITY_TOLERANCE
    )
    return float(extreme.mean()) if exact else float((1 + extreme.sum()) / (1 + rounds))


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95% percentile bootstrap interval of the mean (Efron 1979); (0, 0) without values."""
    sample = np.asarray(values, dtype=np.float64)
    if not len(sample):
        return 0.0, 0.0
    rng = np.random.default_rng(RESAMPLING_SEED)
    resampled: list[Floats] = []
    for begin in range(0, RESAMPLING_ROUNDS, ROUNDS_PER_BLOCK):
        draws = rng.integers(0, len(sample), size=(min(ROUNDS_PER_BLOCK, RESAMPLING_ROUNDS - begin), len(sample)))
        resampled.append(sample[draws].mean(axis=1))
    low, high = np.quantile(np.concatenate(resampled), [SIGNIFICANCE_LEVEL / 2, 1 - SIGNIFICANCE_LEVEL / 2])
    return float(low), float(high)


def holm_correction(p_values: Sequence[float]) -> list[float]:
    """Return corrected p-values: the i-th smallest of m is multiplied by (m - i + 1), kept monotonic and at most 1."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        highest = max(highest, min(1.0, p_values[index] * (len(p_values) - place)))
        corrected[index] = highest
    return corrected


def compare_pairs(
    metric: str,
    pairs: Sequence[tuple[str, Mapping[str, float], str, Mapping[str, float]]],
    alternative: Alternative = "two-sided",
) -> list[Difference]:
    """Compare pairs (name a, values of a, name b, values of b) by question, corrected for their number.

    Raises:
        InvalidInput: A pair was not measured on the same questions.
    """
    differences = [_compute_differences(a, of_a, b, of_b) for a, of_a, b, of_b in pairs]
    p_values = [randomisation_p(values, alternative) for values in differences]
    comparisons = []
    for (a, _, b, _), values, p, corrected in zip(pairs, differences, p_values, holm_correction(p_values), strict=True):
        low, high = bootstrap_interval(values)
        comparisons.append(
            Difference(
                metric=metric,
                a=a,
                b=b,
                difference=round(float(np.mean(values)), 6) if values else 0.0,
                interval=(round(low, 6), round(high, 6)),
                p=round(p, 6),
                p_corrected=round(corrected, 6),
                significant=corrected < SIGNIFICANCE_LEVEL,
                wins=sum(value > EQUALITY_TOLERANCE for value in values),
                losses=sum(value < -EQUALITY_TOLERANCE for value in values),
                ties=sum(abs(value) <= EQUALITY_TOLERANCE for value in values),
                comparisons=len(pairs),
            )
        )
    return comparisons


def compare_all_pairs(metric: str, values: Mapping[str, Mapping[str, float]]) -> list[Difference]:
    """Compare every pair of strategies ({name: {question id: value}}), corrected for the number of pairs."""
    return compare_pairs(metric, [(a, values[a], b, values[b]) for a, b in combinations(values, 2)])


def compare_with_best(metric: str, values: Mapping[str, Mapping[str, float]]) -> list[Difference]:
    """Compare every strategy with the one that has the highest mean, corrected for the number of comparisons."""
    best = max(values, key=lambda name: sum(values[name].values()))
    return compare_pairs(metric, [(name, values[name], best, values[best]) for name in values if name != best])


def _compute_differences(a: str, of_a: Mapping[str, float], b: str, of_b: Mapping[str, float]) -> list[float]:
    if of_a.keys() != of_b.keys():
        raise InvalidInput(f"{a!r} and {b!r} were measured on different questions; run both on one test set.")
    return [of_a[key] - of_b[key] for key in sorted(of_a)]


def _all_sums(values: Floats) -> Floats:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _random_sums(values: Floats, rounds: int) -> Floats:
    rng = np.random.default_rng(RESAMPLING_SEED)
    sums: list[Floats] = []
    for begin in range(0, rounds, ROUNDS_PER_BLOCK):
        flips = rng.integers(0, 2, size=(min(ROUNDS_PER_BLOCK, rounds - begin), len(values)), dtype=np.int8)
        sums.append((flips * 2.0 - 1.0) @ values)
    return np.concatenate(sums)
