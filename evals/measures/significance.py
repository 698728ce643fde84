"""Significance of differences between strategies: paired tests over the questions, without assuming normality.

The randomisation test is Fisher's: if two strategies were equal, each question's difference could equally well have the
opposite sign (Smucker, Allan and Carterette, CIKM 2007, compare it with the t-test and the bootstrap). Several
comparisons at once are corrected by Holm's step-down method (Scandinavian Journal of Statistics, 1979).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, floor, inf, log2
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evals.measures.metrics import metric_title
from workbench.errors import InvalidInput
from workbench.types import Value

RESAMPLING_ROUNDS = 10_000  # random sign flips or resamples; gives a p-value of .05 to about .004
SIGNIFICANCE_LEVEL = 0.05
RESAMPLING_SEED = 20_070  # fixed, so that the same run gives the same figures
ROUNDS_PER_BLOCK = 500  # bounds the memory to 500 x questions
# smaller differences count as 0: saved values are rounded, and models differ in the last digits
EQUALITY_TOLERANCE = 1e-6

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
    deviation: float = 0.0  # standard deviation of the differences by question
    alternative: Alternative = "two-sided"  # of the test; "less" does not ask whether ``a`` is better
    unjudged: float = 0.0  # share (0..1) of a pool without a judgment, if too large for a difference to be significant

    @property
    def is_gain(self) -> bool:
        """True if ``a`` is higher, but only tested for being lower."""
        return self.alternative == "less" and self.difference > 0

    @property
    def more_questions(self) -> int | None:
        """About how many more questions would decide it; 0 if it is decided, None if they cannot."""
        if self.significant:
            return 0
        if self.unjudged:
            return None
        measured = self.wins + self.losses + self.ties
        differing = (self.wins + self.losses) / max(1, measured)
        needed = count_questions_needed(self.deviation, abs(self.difference), differing, self.comparisons)
        return None if needed is None else max(1, needed - measured)

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
        but = "but" if difference.p < SIGNIFICANCE_LEVEL <= difference.p_corrected else "and"
        corrected = format_p(difference.p_corrected)
        values += f", {but} {corrected} after correcting for {difference.comparisons} comparisons"
    verdict = "better" if difference.difference > 0 else "worse"
    if difference.is_gain:
        verdict = "not worse"
    elif not difference.significant:
        is_rare = difference.p < SIGNIFICANCE_LEVEL or not (difference.wins and difference.losses)
        verdict = f"too few {'judgments' if difference.unjudged else 'questions'} to be sure"
        verdict = verdict if is_rare else "no clear difference"
    return f"{verdict}: {counts}, {values}"


def explain_difference(difference: Difference) -> str:
    """Return a sentence on why a difference is or is not clear, and how many more questions would decide it."""
    sentence = describe_difference(difference)
    if not (difference.significant or difference.is_tie or difference.is_gain):
        more = difference.more_questions
        sentence += f"; {_describe_obstacle(difference)}" if more is None else f"; {format_more(more)} would decide it"
    return f"{sentence[0].upper()}{sentence[1:]}."


def describe_decision(difference: Difference) -> str:
    """Return "decided", "not decided: about 180 more questions", or "tie"."""
    if difference.is_tie:
        return "tie"
    if difference.significant:
        return "decided"
    if difference.is_gain:
        return "not worse"
    more = difference.more_questions
    return f"not decided: {_describe_obstacle(difference) if more is None else format_more(more)}"


def _describe_obstacle(difference: Difference) -> str:
    """Return why no number of further questions decides a difference."""
    return f"{difference.unjudged:.0%} of the pool is unjudged" if difference.unjudged else "the means are equal"


def format_more(questions: int) -> str:
    """Return a number of further questions as text, with two significant digits."""
    if questions > MAX_QUESTIONS_NAMED:
        return f"more than {MAX_QUESTIONS_NAMED:,} more questions"
    step = 10 ** max(0, len(str(questions)) - 2)
    about = -(-questions // step) * step
    return f"about {about:,} more question{'' if about == 1 else 's'}"


def find_winner_name(best: str, differences: Sequence[Difference]) -> str | None:
    """Return the best of several strategies if it is significantly better than every other one, else None."""
    return best if differences and all(one.significant for one in differences) else None


def describe_outcome(best: str, differences: Sequence[Difference]) -> str:
    """Return a sentence on whether the best strategy is decided, from its comparisons with the others ("" if alone)."""
    if not differences:
        return ""
    if find_winner_name(best, differences):
        others = f"the other {len(differences)}" if len(differences) > 1 else differences[0].a
        return f"Decided: {best} is better than {others}."
    if ties := [one for one in differences if one.is_tie]:
        return f"Not decided: {', '.join([best, *(one.a for one in ties)])} are {describe_tie(ties[0])}."
    open_ones = sorted((one for one in differences if not one.significant), key=lambda one: abs(one.difference))
    slowest = max(open_ones, key=lambda one: inf if one.more_questions is None else one.more_questions)
    rivals = ", ".join(one.a for one in open_ones[:3]) + (
        f" and {len(open_ones) - 3} more" if len(open_ones) > 3 else ""
    )
    more = slowest.more_questions
    need = _describe_obstacle(slowest) if more is None else f"{format_more(more)} would decide it"
    return f"Not decided: {best} leads, but {rivals} may be as good; {need}."


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


def bootstrap_interval(values: Sequence[float], comparisons: int = 1) -> tuple[float, float]:
    """Return the 95% percentile bootstrap interval of the mean (Efron 1979); (0, 0) without values.

    With ``comparisons``, all of them hold together (Bonferroni).
    """
    sample = np.asarray(values, dtype=np.float64)
    if not len(sample):
        return 0.0, 0.0
    rng = np.random.default_rng(RESAMPLING_SEED)
    resampled: list[Floats] = []
    for begin in range(0, RESAMPLING_ROUNDS, ROUNDS_PER_BLOCK):
        draws = rng.integers(0, len(sample), size=(min(ROUNDS_PER_BLOCK, RESAMPLING_ROUNDS - begin), len(sample)))
        resampled.append(sample[draws].mean(axis=1))
    tail = SIGNIFICANCE_LEVEL / 2 / comparisons
    low, high = np.quantile(np.concatenate(resampled), [tail, 1 - tail])
    return float(low), float(high)


def holm_correction(p_values: Sequence[float], comparisons: int | None = None) -> list[float]:
    """Return corrected p-values: the i-th smallest of m is multiplied by (m - i + 1), kept monotonic and at most 1.

    ``comparisons`` is m if these are the interesting ones of more comparisons.
    """
    total = max(len(p_values), comparisons or 0)
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        highest = max(highest, min(1.0, p_values[index] * (total - place)))
        corrected[index] = highest
    return corrected


def compare_pairs(
    metric: str,
    pairs: Sequence[tuple[str, Mapping[str, float], str, Mapping[str, float]]],
    alternative: Alternative = "two-sided",
    comparisons: int | None = None,
    *,
    together: bool = False,
) -> list[Difference]:
    """Compare pairs (name a, values of a, name b, values of b) by question, corrected for ``comparisons``.

    The default is the number of pairs. With ``together`` the intervals are corrected too.

    Raises:
        InvalidInput: A pair was not measured on the same questions.
    """
    for a, of_a, b, of_b in pairs:
        if of_a.keys() != of_b.keys():
            raise InvalidInput(f"{a!r} and {b!r} were measured on different questions; run both on one test set.")
    differences = [[of_a[key] - of_b[key] for key in sorted(of_a)] for _, of_a, _, of_b in pairs]
    p_values = [randomisation_p(values, alternative) for values in differences]
    found: list[Difference] = []
    adjusted = holm_correction(p_values, comparisons)
    for (a, _, b, _), values, p, corrected in zip(pairs, differences, p_values, adjusted, strict=True):
        low, high = bootstrap_interval(values, max(1, len(pairs), comparisons or 0) if together else 1)
        found.append(
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
                comparisons=max(len(pairs), comparisons or 0),
                deviation=round(float(np.std(values, ddof=1)), 6) if len(values) > 1 else 0.0,
                alternative=alternative,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Lift(Value):
    """Whether better retrieval reached the answers: how run ``a`` differs from ``b`` in both, on the same questions."""

    retrieval: Difference
    answers: Difference
    # Questions for which retrieval got better, and worse: those with a better, an equal and a worse answer.
    better: Sequence[int]
    worse: Sequence[int]

    def describe(self, titles: Mapping[str, str] | None = None) -> str:
        """Return a sentence for a report; ``titles`` are the display names of the runs."""
        found, answered = self.retrieval, self.answers
        low, high = answered.interval
        measure = metric_title(answered.metric).lower()
        a, b = ((titles or {}).get(name, name) for name in (found.a, found.b))
        return (
            f"{a} against {b}: {metric_title(found.metric)} is better for {sum(self.better):,} questions, of whose "
            f"answers {self.better[0]:,} got better and {self.better[2]:,} worse by {measure}; it is worse for "
            f"{sum(self.worse):,}, with {self.worse[0]:,} better and {self.worse[2]:,} worse answers. On all questions "
            f"{measure} differs by {answered.difference:+.3f} (95% interval {low:+.3f} to {high:+.3f})."
        )


def measure_lift(
    a: str,
    b: str,
    retrieval: tuple[str, Mapping[str, Mapping[str, float]]],
    answers: tuple[str, Mapping[str, Mapping[str, float]]],
) -> Lift:
    """Return how far better retrieval by run ``a`` than by ``b`` reached the answers.

    Args:
        a: Name of a run.
        b: Name of another run.
        retrieval: A metric, and its values by run and question id.
        answers: A measure of the answers, and its values by run and question id, for some of the questions.
    """
    (metric, found), (measure, answered) = retrieval, answers
    found = {name: {key: found[name][key] for key in answered[name]} for name in (a, b)}
    counts = {sign: [0, 0, 0] for sign in (1, 0, -1)}
    for key in answered[a]:
        changes = [find_sign(values[a][key] - values[b][key]) for values in (found, answered)]
        counts[changes[0]][1 - changes[1]] += 1
    [first] = compare_pairs(metric, [(a, found[a], b, found[b])])
    [second] = compare_pairs(measure, [(a, answered[a], b, answered[b])])
    return Lift(first, second, tuple(counts[1]), tuple(counts[-1]))


def find_sign(difference: float) -> int:
    """Return 1, -1, or 0 for equal values."""
    return 0 if abs(difference) <= EQUALITY_TOLERANCE else 1 if difference > 0 else -1


def compare_all_pairs(metric: str, values: Mapping[str, Mapping[str, float]]) -> list[Difference]:
    """Compare every pair of strategies ({name: {question id: value}}), corrected for the number of pairs."""
    return compare_pairs(metric, [(a, values[a], b, values[b]) for a, b in combinations(values, 2)])


def compare_with_best(metric: str, values: Mapping[str, Mapping[str, float]]) -> list[Difference]:
    """Compare every strategy with the one that has the highest mean.

    Any of them could have been the best, so the correction is for every pair of strategies.
    """
    best = max(values, key=lambda name: sum(values[name].values()))
    pairs = [(name, values[name], best, values[best]) for name in values if name != best]
    return compare_pairs(metric, pairs, comparisons=count_pairs(len(values)))


def count_pairs(strategies: int) -> int:
    """Return the number of pairs of some strategies."""
    return strategies * (strategies - 1) // 2


# Power: the differences that a test set can show

POWER = 0.8  # probability of finding a difference that exists
MAX_QUESTIONS_NAMED = 100_000  # larger numbers of questions are not worth naming


@dataclass(frozen=True, slots=True)
class Power(Value):
    """The differences that a number of questions can show at the level .05 with a power of 80%."""

    metric: str
    questions: int  # the questions of the test set
    pilot: int  # the measured questions that the deviation is from
    comparisons: int  # the correction is for this number
    deviation: float  # standard deviation of the differences by question, over the pairs of strategies
    differing: float  # share (0..1) of the questions on which two strategies differ
    smallest: float | None  # the smallest difference that can be shown; None if none can
    wanted: float | None = None  # a difference to show
    needed: int | None = None  # about how many questions it takes to show that difference


def measure_power(
    metric: str,
    values: Mapping[str, Mapping[str, float]],
    questions: int | None = None,
    wanted: float | None = None,
    comparisons: int | None = None,
) -> Power:
    """Return what a test set can show, from the paired differences of strategies that were measured on it.

    Args:
        metric: The compared metric.
        values: {name: {question id: value}} of two or more strategies, on the test set or a part of it (a pilot).
        questions: Number of questions of the test set; those of ``values`` if None.
        wanted: Also return the number of questions that this difference needs.
        comparisons: Number of comparisons to correct for; the pairs of ``values`` if None.

    Raises:
        InvalidInput: Fewer than two strategies or questions, or a wanted difference of 0 or less.
    """
    pairs = list(combinations(values.values(), 2))
    pilot = len(next(iter(values.values()), {}))
    if not pairs or pilot < 2:
        raise InvalidInput("Power needs two strategies on two questions or more; measure another strategy.")
    check_difference(wanted)
    rows = np.array([[of_a[key] - of_b[key] for key in of_a] for of_a, of_b in pairs])
    deviation = float(np.sqrt(rows.var(axis=1, ddof=1).mean()))
    differing = float((np.abs(rows) > EQUALITY_TOLERANCE).mean())
    total = pilot if questions is None else questions
    comparisons = comparisons or len(pairs)
    return Power(
        metric=metric,
        questions=total,
        pilot=pilot,
        comparisons=comparisons,
        deviation=round(deviation, 6),
        differing=round(differing, 6),
        smallest=find_smallest_difference(deviation, total, differing, comparisons),
        wanted=wanted,
        needed=None if wanted is None else count_questions_needed(deviation, wanted, differing, comparisons),
    )


def check_difference(wanted: float | None) -> None:
    """Raise InvalidInput for a difference outside 0..1."""
    if wanted is not None and not 0 < wanted <= 1:
        raise InvalidInput(f"Invalid difference {wanted:g}; use a number above 0 and up to 1, such as 0.02.")


def find_smallest_difference(
    deviation: float, questions: int, differing: float = 1.0, comparisons: int = 1
) -> float | None:
    """Return the smallest difference of means that a paired test finds with a power of 80%; None if it finds none.

    (t(1 - alpha / 2) + t(power)) * deviation / sqrt(questions), as for a paired t-test; the randomisation test has the
    same power (Smucker et al. 2007). With fewer differing questions than ``count_least`` nothing is significant.
    """
    if questions < 2 or not deviation or questions * differing < count_least(comparisons):
        return None
    return round(_quantiles(questions, comparisons) * deviation / questions**0.5, 6)


def count_questions_needed(
    deviation: float, difference: float, differing: float = 1.0, comparisons: int = 1
) -> int | None:
    """Return about how many questions show a difference of means with a power of 80%; None for no difference."""
    if difference < EQUALITY_TOLERANCE or not differing:
        return None
    shown = bisect_left(
        range(2, 10**18), -difference, key=lambda count: -_quantiles(count, comparisons) * deviation / count**0.5
    )
    return max(2 + shown, ceil(count_least(comparisons) / differing))


def count_least(comparisons: int) -> int:
    """Return how many differing questions the exact test needs at least: 2 / 2**n must be below the corrected level."""
    return floor(log2(2 * comparisons / SIGNIFICANCE_LEVEL)) + 1


def _quantiles(questions: int, comparisons: int) -> float:
    """Return the sum of Student's quantiles for the corrected level, two-sided, and for the power."""
    return _find_t(1 - SIGNIFICANCE_LEVEL / 2 / comparisons, questions - 1) + _find_t(POWER, questions - 1)


def _find_t(probability: float, freedom: int) -> float:
    """Return a quantile of Student's t by its expansion (Abramowitz and Stegun, 26.7.5)."""
    z = NormalDist().inv_cdf(probability)
    terms = (z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return sum(term / freedom**order for order, term in enumerate(terms))


def describe_power(power: Power) -> list[str]:
    """Return sentences on what a test set can show."""
    asked = f"{power.questions:,} question{'' if power.questions == 1 else 's'}"
    source = f" (estimated from {power.pilot:,} of them)" if power.pilot < power.questions else ""
    corrected = f", corrected for {power.comparisons} comparisons" if power.comparisons > 1 else ""
    if not power.deviation:
        return [
            f"The strategies scored the same on all {power.pilot:,} questions, so power cannot be estimated from them."
        ]
    if power.smallest is None:
        sentences = [f"{asked} are too few to show any difference{source}{corrected}."]
    else:
        shown = f"a difference of {power.smallest:.3f} {metric_title(power.metric)} or more"
        sentences = [f"{asked} can show {shown}, with a power of {POWER:.0%}{source}{corrected}."]
    if power.needed is not None and power.wanted is not None:
        more = power.needed - power.questions
        rest = f", {more:,} more" if more > 0 else ", which this test set has"
        sentences.append(f"A difference of {power.wanted:g} needs about {power.needed:,} questions{rest}.")
    return sentences


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
