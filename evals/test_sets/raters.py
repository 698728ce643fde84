"""Agreement of the raters of a test set: Cohen's kappa, Krippendorff's alpha, base rates, and disagreements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from evals.test_set import Place
from evals.test_sets.store import AGENT_JUDGE, LLM_JUDGE, ORIGINAL, Rating, find_counting
from workbench.types import Value

AGAIN = " #2"  # end of a rater's name for a second round, which shows how consistent the rater is
UNNAMED = "(no name)"
KINDS = {LLM_JUDGE: "LLM", AGENT_JUDGE: "agent"}  # all other judges are persons
BINARY = "relevant or not"  # the scale with all grades above 0 as one


def cohens_kappa(pairs: Iterable[tuple[int, int]], *, weighted: bool = False) -> float | None:
    """Return the agreement of two raters beyond chance: 1 - observed / expected disagreement; None if undefined.

    Disagreement is 1 for different grades (Cohen 1960) or, if weighted, their distance (Cohen 1968, linear weights).
    Expected is that of raters who use each grade as often, but independently.
    """
    both = list(pairs)
    first, second = (Counter(side) for side in zip(*both, strict=True)) if both else (Counter[int](), Counter[int]())
    observed = Fraction(sum(_distance(a, b, weighted) for a, b in both), len(both) or 1)
    apart = sum(_distance(a, b, weighted) * first[a] * second[b] for a in first for b in second)
    return round(float(1 - observed * len(both) ** 2 / apart), 6) if apart else None


def _distance(a: int, b: int, weighted: bool) -> int:
    return abs(a - b) if weighted else int(a != b)


def krippendorffs_alpha(units: Iterable[Sequence[int]], *, ordinal: bool = True) -> float | None:
    """Return the agreement of any number of raters beyond chance; None if undefined.

    Args:
        units: The grades of each judged place; those with fewer than two are ignored.
        ordinal: Grades are ordered; otherwise all different grades are equally far apart.

    Follows Krippendorff, Computing Krippendorff's Alpha-Reliability (2011).
    """
    rated = [unit for unit in units if len(unit) > 1]
    totals = Counter(grade for unit in rated for grade in unit)
    observed, expected = Fraction(0), Fraction(0)
    for unit in rated:
        counts = Counter(unit)
        for a, b in combinations(sorted(counts), 2):
            observed += 2 * _weight_difference(a, b, totals, ordinal) * Fraction(counts[a] * counts[b], len(unit) - 1)
    for a, b in combinations(sorted(totals), 2):
        expected += 2 * _weight_difference(a, b, totals, ordinal) * totals[a] * totals[b]
    return round(float(1 - (totals.total() - 1) * observed / expected), 6) if expected else None


def _weight_difference(low: int, high: int, totals: Mapping[int, int], ordinal: bool) -> Fraction:
    if not ordinal:
        return Fraction(1)
    between = sum(count for grade, count in totals.items() if low <= grade <= high)
    return (between - Fraction(totals[low] + totals[high], 2)) ** 2


@dataclass(frozen=True, slots=True)
class RaterFigures(Value):
    """One rater: number of judgments, share of them that are relevant, and of equal grades in a second round."""

    rater: str
    kind: str  # "person", "LLM" or "agent"
    judgments: int
    base_rate: float
    consistency: float | None  # None without a second round


@dataclass(frozen=True, slots=True)
class PairAgreement(Value):
    """Two raters on one scale: number of places that both judged, share of equal grades, and Cohen's kappa."""

    a: str
    b: str
    scale: str
    places: int
    agreement: float
    kappa: float | None
    weighted_kappa: float | None  # a neighbouring grade counts as less of a disagreement


@dataclass(frozen=True, slots=True)
class ScaleAgreement(Value):
    """All raters on one scale: number of places that at least two judged, and Krippendorff's alpha."""

    scale: str
    places: int
    alpha: float | None  # for ordered grades
    nominal_alpha: float | None


@dataclass(frozen=True, slots=True)
class Disagreement(Value):
    """A place with different grades of people, or of one and the original, and none that settles them."""

    question_id: str
    document: str
    start: int | None
    end: int | None
    quote: str
    grades: Mapping[str, int]  # by rater
    reasons: Mapping[str, str]  # of those who gave one
    counts: int  # the grade that counts until it is settled


@dataclass(frozen=True, slots=True)
class RaterAgreement(Value):
    """How far the raters of a test set agree."""

    test_set: str
    grades: int
    raters: tuple[RaterFigures, ...]
    pairs: tuple[PairAgreement, ...]
    scales: tuple[ScaleAgreement, ...]
    disagreements: int  # that are not settled

    def describe(self) -> str:
        """Return a sentence."""
        to_settle = f"Disagreements to settle: {self.disagreements:,}."
        if len(self.raters) < 2:
            named = f"Named raters of {self.test_set!r}: {len(self.raters)}; agreement needs two."
            return f"{named} {to_settle}" if self.disagreements else named
        alphas = "; ".join(f"{_format_alpha(one.alpha)} for {one.scale}" for one in self.scales)
        return (
            f"Krippendorff's alpha of {len(self.raters)} raters: {alphas} (0 is chance, 1 is perfect). Judged by at "
            f"least two: {self.scales[0].places:,}. {to_settle}"
        )


def _format_alpha(alpha: float | None) -> str:
    return "undefined" if alpha is None else f"{alpha:.2f}"


def measure_raters(test_set: str, grades: int, ratings: Sequence[Rating]) -> RaterAgreement:
    """Return the agreement of the named raters; people without a name are one rater if no person has a name.

    A second round (``NAME #2``) shows only a rater's own consistency.
    """
    by_rater: dict[str, dict[Place, int]] = {}
    kinds: dict[str, str] = {}
    machines = {one.rater for one in ratings if one.judge in KINDS}
    has_sole_person = machines and not any(one.rater and one.judge not in KINDS for one in ratings)
    for rating in (one for one in ratings if one.rater or has_sole_person):
        name = rating.rater or UNNAMED
        by_rater.setdefault(name, {})[rating.judgment.place] = rating.judgment.grade
        kinds[name] = rating.judge
    first = {name: own for name, own in by_rater.items() if not name.endswith(AGAIN)}
    figures = []
    for name, own in first.items():
        again = by_rater.get(name + AGAIN, {})
        same = [own[place] == grade for place, grade in again.items() if place in own]
        consistency = round(sum(same) / len(same), 6) if same else None
        rate = round(sum(grade > 0 for grade in own.values()) / len(own), 6)
        figures.append(RaterFigures(name, KINDS.get(kinds[name], "person"), len(own), rate, consistency))
    scales = [f"{grades} grades", *([BINARY] if grades > 2 else [])]
    measured = [_measure_scale(scale, first) for scale in scales]
    people = {name: own for name, own in first.items() if kinds[name] not in KINDS}
    if 1 < len(people) < len(first):  # a machine that differs from all of them lowers the others' figure
        measured += [([], replace(_measure_scale(scale, people)[1], scale=f"{scale}, people only")) for scale in scales]
    return RaterAgreement(
        test_set,
        grades,
        tuple(figures),
        tuple(pair for pairs, _ in measured for pair in pairs),
        tuple(whole for _, whole in measured),
        len(find_disagreements(ratings)),
    )


def _measure_scale(
    scale: str, by_rater: Mapping[str, Mapping[Place, int]]
) -> tuple[list[PairAgreement], ScaleAgreement]:
    graded = {
        name: {place: int(grade > 0) if scale == BINARY else grade for place, grade in own.items()}
        for name, own in by_rater.items()
    }
    pairs: list[PairAgreement] = []
    for (a, first), (b, second) in combinations(graded.items(), 2):
        both = [(first[place], second[place]) for place in first if place in second]
        if both:
            share = round(sum(x == y for x, y in both) / len(both), 6)
            kappas = cohens_kappa(both), cohens_kappa(both, weighted=True)
            pairs.append(PairAgreement(a, b, scale, len(both), share, *kappas))
    units: dict[Place, list[int]] = {}
    for own in graded.values():
        for place, grade in own.items():
            units.setdefault(place, []).append(grade)
    places = sum(len(unit) > 1 for unit in units.values())
    alphas = krippendorffs_alpha(units.values()), krippendorffs_alpha(units.values(), ordinal=False)
    return pairs, ScaleAgreement(scale, places, *alphas)


def find_disagreements(ratings: Iterable[Rating]) -> list[Disagreement]:
    """Return the places with different grades of people that are not settled, in the order they were judged.

    A person's grade without a name settles the earlier ones. Any other without a name is one more opinion, "original".
    Agents differ only if no person has judged.
    """
    places: dict[Place, list[Rating]] = {}
    for rating in ratings:
        if rating.judge != LLM_JUDGE and not rating.rater.endswith(AGAIN):
            places.setdefault(rating.judgment.place, []).append(rating)
    people = [[one for one in rated if one.judge != AGENT_JUDGE] or rated for rated in places.values()]
    return [
        Disagreement(
            *rated[0].judgment.place,
            rated[0].judgment.quote,
            {rating.rater or ORIGINAL: rating.judgment.grade for rating in rated},
            {rating.rater or ORIGINAL: rating.reason for rating in rated if rating.reason},
            find_counting(rated)[0].judgment.grade,
        )
        for rated in people
        if any(one.rater for one in rated)
        and (rated[-1].rater or rated[-1].judge != "person")
        and len({one.judgment.grade for one in rated}) > 1
    ]
