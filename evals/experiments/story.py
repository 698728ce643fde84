"""The story of a test set's experiments: who won and how surely, how that went over time, and what weakens it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from evals.experiments.plan import CellResult, Experiment
from evals.experiments.strategy_run import StrategyRun
from evals.gateway import deleted_parts, documents_in, documents_of, resolved_scope
from evals.measures.families import metric_title
from evals.measures.significance import EQUAL, bootstrap_interval
from evals.test_set import TestSet
from workbench.sizes import counted
from workbench.types import JsonObject, Value, as_items, as_number, as_text
from workbench.types.json import as_whole
from workbench.workbench import Workbench

FEW = 30  # questions below which an interval is so wide that few differences can be told
SATURATED = 0.95  # where every run is above it, nothing is left to tell them apart
ROUND = 6


@dataclass(frozen=True, slots=True)
class Winner(Value):
    """The best run of an experiment by a metric, with the 95 % bootstrap interval of its mean."""

    experiment_id: str
    test_set_id: str
    label: str
    strategy: str
    metric: str
    score: float
    interval: tuple[float, float]
    created_at: datetime | None = None
    tied: int = 1  # runs that reach this score, this one included


def winner(experiment: Experiment, results: Sequence[CellResult]) -> Winner | None:
    """Return the best run by the experiment's first metric; None where none is done."""
    metric = experiment.metrics[0]
    done = [(result.cell, result.run) for result in results if result.run is not None]
    if not done:
        return None
    cell, run = max(done, key=lambda pair: pair[1].means[metric])
    low, high = bootstrap_interval(list(run.values[metric].values()))
    tied = sum(abs(other.means[metric] - run.means[metric]) <= EQUAL for _, other in done)
    return Winner(
        experiment_id=experiment.id,
        test_set_id=experiment.test_set_id,
        label=cell.label,
        strategy=cell.strategy,
        metric=metric,
        score=round(run.means[metric], ROUND),
        interval=(round(low, ROUND), round(high, ROUND)),
        created_at=experiment.created_at,
        tied=tied,
    )


def stored_winner(experiment: Experiment, stored: JsonObject) -> Winner:
    """Return an experiment's winner from its stored form."""
    low, high = (as_number(end) for end in as_items(stored["interval"]))
    return Winner(
        experiment_id=experiment.id,
        test_set_id=experiment.test_set_id,
        label=as_text(stored["label"]),
        strategy=as_text(stored["strategy"]),
        metric=as_text(stored["metric"]),
        score=as_number(stored["score"]),
        interval=(low, high),
        created_at=experiment.created_at,
        tied=as_whole(stored["tied"]),
    )


def trend(winners: Iterable[Winner], test_set_id: str) -> list[Winner]:
    """Return the winners of a test set's experiments, the oldest first; those by another first metric are left out.

    The newest experiment's metric is the one that is followed.
    """
    own = [win for win in winners if win.test_set_id == test_set_id]
    dated = sorted(own, key=lambda win: (win.created_at is not None, win.created_at))
    return [win for win in dated if win.metric == dated[-1].metric]


def judged_outside(wb: Workbench, test_set: TestSet) -> tuple[str, ...]:
    """Return a sentence on the relevant documents that the test set's scope leaves out; () if it leaves none out."""
    if test_set.corpus is not None or test_set.scope.is_everything or deleted_parts(wb, test_set.scope):
        return ()
    relevant = {key for grades in test_set.qrels.values() for key, grade in grades.items() if grade > 0}
    present = {document.id for document in documents_of(wb)} & relevant
    outside = present - {document.id for document in documents_in(wb, resolved_scope(wb, test_set.scope))}
    if not outside:
        return ()
    are = "is" if len(outside) == 1 else "are"
    return (
        f"{counted(len(outside), 'document')} judged relevant {are} outside the scope of this test set "
        f"({test_set.scope.text}), so no search finds {'it' if len(outside) == 1 else 'them'}.",
    )


def weaknesses(test_set: TestSet, runs: Mapping[str, StrategyRun], metric: str) -> tuple[str, ...]:
    """Return what weakens any conclusion from these runs, a sentence each: a thin, generated or saturated test set."""
    questions = test_set.answerable
    sentences: list[str] = []
    if len(questions) < FEW:
        verb = "is" if len(questions) == 1 else "are"
        asked = counted(len(questions), "question")
        sentences.append(f"There {verb} only {asked}; with fewer than {FEW} few differences can be told apart.")
    relevant = [sum(grade > 0 for grade in test_set.qrels[question.id].values()) for question in questions]
    if relevant and max(relevant) == 1:
        sentences.append("Each question has a single judged document, so other good documents count as misses.")
    synthetic = sum(question.origin == "synthetic" for question in questions)
    if questions and synthetic * 2 > len(questions):
        sentences.append(
            f"{synthetic} of {len(questions)} questions were made from the documents' own words: keyword search gains."
        )
    means = [run.means[metric] for run in runs.values() if metric in run.values]
    if means and min(means) >= SATURATED:
        sentences.append(
            f"Every run reaches at least {SATURATED} {metric_title(metric)}: the questions are too easy to compare by."
        )
    return tuple(sentences)
