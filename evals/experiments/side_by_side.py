"""Two experiments side by side: each run of both, its two scores, and what chance explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evals.experiments.plan import CellResult
from evals.measures.significance import Difference, bootstrap_interval, compare
from workbench.errors import InvalidInput
from workbench.types import Value

ROUND = 6


@dataclass(frozen=True, slots=True)
class Score(Value):
    """The mean of a run's metric over its questions, in 0..1, with the 95 % bootstrap interval."""

    mean: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Pair(Value):
    """One run as the first and as the second experiment have it; None where an experiment has no such finished run.

    ``difference`` is second - first, paired by question; None where the two were asked different questions.
    """

    label: str
    strategy: str
    first: Score | None
    second: Score | None
    difference: Difference | None = None


def shared_metrics(first: Sequence[CellResult], second: Sequence[CellResult]) -> list[str]:
    """Return the metrics that every finished run of both experiments was measured by, in the first one's order."""
    runs = [result.run for result in (*first, *second) if result.run is not None]
    return [metric for metric in (runs[0].values if runs else ()) if all(metric in run.values for run in runs)]


def side_by_side(
    first: Sequence[CellResult], second: Sequence[CellResult], metric: str, *, paired: bool = True
) -> list[Pair]:
    """Return the runs of two experiments matched by label, the best of either first.

    The differences are corrected for their number (Holm); ``paired=False`` leaves them out, as it must be where the
    questions or their judgments differ.

    Raises:
        InvalidInput: the metric was not measured in both.
    """
    if metric not in shared_metrics(first, second):
        raise InvalidInput(f"{metric} was not measured in both experiments; choose a metric that both have.")
    before, after = _by_label(first), _by_label(second)
    tested = [
        label for label in before if paired and label in after and _same_questions(before[label], after[label], metric)
    ]
    differences = compare(
        metric,
        [
            (label, _values_of_metric(after[label], metric), label, _values_of_metric(before[label], metric))
            for label in tested
        ],
    )
    by_label = dict(zip(tested, differences, strict=True))
    pairs = [
        Pair(
            label=label,
            strategy=(before.get(label) or after[label]).cell.strategy,
            first=_score(before.get(label), metric),
            second=_score(after.get(label), metric),
            difference=by_label.get(label),
        )
        for label in dict.fromkeys([*before, *after])
    ]
    return sorted(pairs, key=lambda pair: -max(score.mean for score in (pair.first, pair.second) if score))


def _by_label(results: Sequence[CellResult]) -> dict[str, CellResult]:
    return {result.cell.label: result for result in results if result.run is not None}


def _values_of_metric(result: CellResult, metric: str) -> dict[str, float]:
    return dict(result.run.values[metric]) if result.run else {}


def _same_questions(first: CellResult, second: CellResult, metric: str) -> bool:
    return _values_of_metric(first, metric).keys() == _values_of_metric(second, metric).keys()


def _score(result: CellResult | None, metric: str) -> Score | None:
    if result is None or result.run is None:
        return None
    low, high = bootstrap_interval(list(result.run.values[metric].values()))
    return Score(round(result.run.means[metric], ROUND), (round(low, ROUND), round(high, ROUND)))
