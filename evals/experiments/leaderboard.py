"""Reading an experiment: who leads and by how much, question by question, and what changed between two runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evals.experiments.plan import CellResult, Experiment
from evals.measures.significance import EQUAL, Difference, bootstrap_interval, compare
from workbench.errors import InvalidInput, choices
from workbench.types import Value

ROUND = 6


@dataclass(frozen=True, slots=True)
class LeaderboardLine(Value):
    """One run on the leaderboard; ``interval`` is the 95 % bootstrap interval of the first metric.

    ``against_best`` is None for the leader. ``on_front``: no other run is both better and faster (at the median).
    """

    label: str
    run_id: str
    status: str
    error: str | None
    metrics: Mapping[str, float]
    interval: tuple[float, float]
    latency_ms: Mapping[str, float]
    index_name: str
    index_bytes: int
    against_best: Difference | None = None
    on_front: bool = False
    rank: int | None = None  # runs of equal means share one; None if the run is not done


@dataclass(frozen=True, slots=True)
class Change(Value):
    """One question in two runs; ``difference`` = second - first."""

    question_id: str
    first: float
    second: float

    @property
    def difference(self) -> float:
        """How much the second run is better."""
        return self.second - self.first


def leaderboard(results: Sequence[CellResult], metric: str) -> list[LeaderboardLine]:
    """Return the runs, best first, each compared with the leader and corrected for the number of runs.

    Raises:
        InvalidInput: the metric was not measured.
    """
    measured = [result for result in results if result.run is not None]
    _check_measured(measured, metric)
    ordered = sorted(measured, key=lambda result: -_means(result)[metric])
    lines = [_line(result, metric) for result in ordered]
    if len(ordered) > 1:
        best = ordered[0]
        pairs = [
            (r.cell.label, _values_by_metric(r)[metric], best.cell.label, _values_by_metric(best)[metric])
            for r in ordered[1:]
        ]
        against = [None, *compare(metric, pairs)]
    else:
        against = [None] * len(ordered)
    front = set(pareto_front([(line.metrics[metric], line.latency_ms["p50"]) for line in lines]))
    means = [line.metrics[metric] for line in lines]
    placed = [
        replace(
            line,
            against_best=difference,
            on_front=place in front,
            rank=1 + sum(mean > means[place] + EQUAL for mean in means),
        )
        for place, (line, difference) in enumerate(zip(lines, against, strict=True))
    ]
    return placed + [_line(result, metric) for result in results if result.run is None]


def against(results: Sequence[CellResult], metric: str, run_id: str) -> dict[str, Difference]:
    """Return run id -> how each other measured run differs from one run, corrected for the number of runs.

    Raises:
        InvalidInput: that run or the metric was not measured.
    """
    measured = {result.run_id: result for result in results if result.run is not None}
    reference = measured.pop(run_id, None)
    if reference is None:
        raise InvalidInput("A run that is not done cannot be compared; finish the experiment first.")
    _check_measured([reference, *measured.values()], metric)
    pairs = [
        (
            result.cell.label,
            _values_by_metric(result)[metric],
            reference.cell.label,
            _values_by_metric(reference)[metric],
        )
        for result in measured.values()
    ]
    return dict(zip(measured, compare(metric, pairs), strict=True))


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the places of (quality, cost) pairs that no other one beats in both, one of equals."""
    front = []
    for place, (quality, cost) in enumerate(points):
        beaten = any(
            (other_quality >= quality and other_cost <= cost)
            and ((other_quality, other_cost) != (quality, cost) or other < place)
            for other, (other_quality, other_cost) in enumerate(points)
            if other != place
        )
        if not beaten:
            front.append(place)
    return front


def by_question(results: Sequence[CellResult], metric: str) -> dict[str, dict[str, float]]:
    """Return question id -> run label -> value: the heat map. Raises InvalidInput for a metric that is not there."""
    _check_measured(results, metric)
    values: dict[str, dict[str, float]] = {}
    for result in results:
        if result.run is not None:
            for question_id, value in result.run.values[metric].items():
                values.setdefault(question_id, {})[result.cell.label] = value
    return values


def changes(first: CellResult, second: CellResult, metric: str) -> list[Change]:
    """Return the questions whose value differs between two runs, the greatest losses first.

    Raises:
        InvalidInput: one of them is not done, the metric was not measured, or they were not asked the same questions.
    """
    if first.run is None or second.run is None:
        raise InvalidInput("A run that is not done cannot be compared; finish the experiment first.")
    _check_measured([first, second], metric)
    before, after = first.run.values[metric], second.run.values[metric]
    if before.keys() != after.keys():
        raise InvalidInput("The runs were asked different questions; compare runs on one version of a test set.")
    differing = [Change(key, before[key], after[key]) for key in before if abs(after[key] - before[key]) > 1e-9]
    return sorted(differing, key=lambda change: (change.difference, change.question_id))


def check_same_ground(first: Experiment, second: Experiment) -> None:
    """Refuse to compare experiments on different ground. Raises InvalidInput saying what differs."""
    if first.corpus_hash != second.corpus_hash:
        raise InvalidInput(f"{first.title!r} and {second.title!r} ran on different corpora, so they do not compare.")
    if first.test_set_hash != second.test_set_hash:
        raise InvalidInput(f"{first.title!r} and {second.title!r} had other questions or judgments; run one anew.")


def to_csv(lines: Sequence[LeaderboardLine], scope: str) -> str:
    """Return the leaderboard as CSV; ``scope`` is a column."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    metrics = list(dict.fromkeys(name for line in lines for name in line.metrics))
    tail = ["low", "high", "p50_ms", "p95_ms", "index", "index_bytes", "p", "p_against_best", "won", "lost", "scope"]
    heads = ["run", "status", *metrics, *tail]
    writer.writerow(heads)
    for line in lines:
        best = line.against_best
        against = [best.p, best.p_corrected, best.wins, best.losses] if best else [""] * 4
        values = [line.metrics.get(name, "") for name in metrics]
        times = [line.latency_ms.get(name, "") for name in ("p50", "p95")]
        writer.writerow(
            (
                line.label,
                line.status,
                *values,
                *line.interval,
                *times,
                line.index_name,
                line.index_bytes,
                *against,
                scope,
            )
        )
    return stream.getvalue()


def _check_measured(results: Sequence[CellResult], metric: str) -> None:
    for result in results:
        if result.run is not None and metric not in result.run.values:
            raise InvalidInput(
                f"{metric} was not measured in this experiment; choose one of {choices(result.run.values)}."
            )


def _values_by_metric(result: CellResult) -> Mapping[str, Mapping[str, float]]:
    return result.run.values if result.run else {}


def _means(result: CellResult) -> dict[str, float]:
    return result.run.means if result.run else {}


def _line(result: CellResult, metric: str) -> LeaderboardLine:
    low, high = bootstrap_interval(list(_values_by_metric(result).get(metric, {}).values()))
    return LeaderboardLine(
        label=result.cell.label,
        run_id=result.run_id,
        status=result.status,
        error=result.error,
        metrics={name: round(value, ROUND) for name, value in _means(result).items()},
        interval=(round(low, ROUND), round(high, ROUND)),
        latency_ms=result.run.latency_ms if result.run else {},
        index_name=result.index_name,
        index_bytes=result.index_bytes,
    )
