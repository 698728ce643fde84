"""The search for good parameters in a given time: successive halving over the strategies' own parameter tables.

Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization" (AISTATS 2016): many
candidates on few questions, the best third on three times as many, and so on. The questions are split once: the
search sees one half, the figures that are reported come from the other, so that luck is not taken for quality.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evals.experiments.answer_book import AnswerBook, PassingBook
from evals.experiments.candidates import Candidate, candidates, defaults_of, split
from evals.experiments.leaderboard import pareto_front
from evals.experiments.search_rounds import FIRST, OutOfTime, Rounds, Timer
from evals.experiments.strategy_run import StrategyRun, warm
from evals.gateway import IndexedCorpus
from evals.measures.metrics import check_metrics
from evals.measures.significance import Difference, bootstrap_interval, compare
from evals.test_set import Question, TestSet
from workbench.errors import InvalidInput
from workbench.retrieval.strategies import strategy_named
from workbench.types import OnProgress, ShouldStop, Value
from workbench.workbench import Workbench

FEWEST = 20  # answerable questions below which a split leaves too little to choose by
FINALISTS = 5
ROUND = 6
SEARCHED = 0.6  # share of the time that the rounds may take; the rest is for the held-out half


@dataclass(frozen=True, slots=True)
class Finalist(Value):
    """A candidate on the held-out questions; ``tuned`` is its value on the questions the search saw.

    ``against_default`` compares it with its strategy's defaults, corrected for the number of finalists.
    """

    candidate: Candidate
    held_out: float
    interval: tuple[float, float]
    tuned: float
    latency_ms: Mapping[str, float]
    is_default: bool
    on_front: bool = False
    against_default: Difference | None = None


@dataclass(frozen=True, slots=True)
class TuningResult(Value):
    """The outcome of a search, the best on the held-out half first; ``tried`` settings in ``seconds``.

    ``varied`` counts the settings that differ from the defaults, ``notes`` say what the time did not allow.
    """

    metric: str
    finalists: tuple[Finalist, ...]
    tried: int
    tuning_questions: int
    held_out_questions: int
    seconds: float
    varied: int = 0
    notes: tuple[str, ...] = ()


def optimise(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    strategies: Sequence[str],
    seconds: float,
    *,
    metric: str = "ndcg@10",
    seed: int = 0,
    spent: float = 0.0,
    book: AnswerBook | None = None,
    clock: Callable[[], float] = time.monotonic,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> TuningResult:
    """Search for ``seconds``; every strategy's defaults take part, however short the time.

    Where the time is short, fewer questions are asked and fewer settings tried, and ``notes`` say so. A search goes on
    with the ``book`` of answers that an earlier one left, of which ``spent`` seconds are over.

    Raises:
        InvalidInput: too few answerable questions to split, no time, or an unknown strategy or metric.
        Cancelled: ``should_stop`` said so.
    """
    check_metrics([metric])
    if seconds <= 0:
        raise InvalidInput(f"The time for a search cannot be {seconds:g} seconds; give it some.")
    if len(test_set.answerable) < FEWEST:
        raise InvalidInput(
            f"{test_set.name!r} has {len(test_set.answerable)} answerable questions; a search with a held-out half "
            f"needs at least {FEWEST}."
        )
    tuning, held_out = split(test_set.answerable)
    defaults = defaults_of(strategies)
    for default in defaults:  # the first load is neither in the time given nor in a latency
        warm(wb, corpus, tuning[0], default.strategy, default.parameters)
    timer = Timer(clock, clock() - spent, seconds)
    rounds = Rounds(wb, test_set, corpus, metric, timer, book or PassingBook(), on_progress, should_stop)
    for default in defaults:
        rounds.measure(default, tuning[:FIRST])
    affordable = _affordable(rounds, defaults, seconds)
    best = rounds.halve(defaults, candidates(strategies, seed), tuning[:affordable], seconds * SEARCHED)
    chosen, measured = _held_out(rounds, timer, best, defaults, held_out[:affordable])
    tried = len(rounds.measured)
    return TuningResult(
        metric=metric,
        finalists=_finalists(metric, chosen, measured, rounds, defaults),
        tried=tried,
        tuning_questions=len(tuning[:affordable]),
        held_out_questions=len(held_out[:affordable]),
        seconds=round(timer.elapsed, 3),
        varied=tried - len(defaults),
        notes=tuple(_notes(strategies, tried - len(defaults), affordable, len(held_out))),
    )


def _affordable(rounds: Rounds, defaults: Sequence[Candidate], seconds: float) -> int:
    """Return how many questions of a half the defaults can be asked in their share of the time, at least 12."""
    pace = sum(rounds.pace(default.strategy) for default in defaults)
    return max(FIRST, int(seconds * (1 - SEARCHED) / max(pace, 1e-9)))


def _held_out(
    rounds: Rounds, timer: Timer, best: Sequence[Candidate], defaults: Sequence[Candidate], questions: list[Question]
) -> tuple[list[Candidate], list[StrategyRun]]:
    """Measure the defaults on the held-out half, then the finalists that the time allows."""
    chosen = list(defaults)
    measured = [rounds.measure(default, questions) for default in defaults]
    for candidate in [finalist for finalist in best[:FINALISTS] if finalist not in chosen]:
        if timer.elapsed + rounds.cost(candidate, questions) > timer.seconds and rounds.cost(candidate, questions):
            break
        try:
            measured.append(rounds.measure(candidate, questions, needed=False))
        except OutOfTime:
            break
        chosen.append(candidate)
    return chosen, measured


def _notes(strategies: Sequence[str], varied: int, affordable: int, half: int) -> list[str]:
    notes: list[str] = []
    if not any(strategy_named(name).parameters for name in strategies):
        notes.append("None of these strategies has a parameter, so there was nothing to vary.")
    elif not varied:
        notes.append("There was not enough time to vary anything; only the defaults were measured. Give it more time.")
    if affordable < half:
        notes.append(f"The time was enough for {affordable} of the {half} questions of each half.")
    return notes


def _finalists(
    metric: str,
    chosen: Sequence[Candidate],
    measured: Sequence[StrategyRun],
    rounds: Rounds,
    defaults: Sequence[Candidate],
) -> tuple[Finalist, ...]:
    front = set(pareto_front([(run.means[metric], run.latency_ms["p50"]) for run in measured]))
    default_runs = {run.strategy: run for run, candidate in zip(measured, chosen, strict=True) if candidate in defaults}
    tuned = [(candidate, run) for candidate, run in zip(chosen, measured, strict=True) if candidate not in defaults]
    pairs = [
        (
            f"{candidate.strategy} (tuned)",
            run.values[metric],
            candidate.strategy,
            default_runs[candidate.strategy].values[metric],
        )
        for candidate, run in tuned
    ]
    against = {
        candidate.key: difference for (candidate, _), difference in zip(tuned, compare(metric, pairs), strict=True)
    }
    finalists = [
        Finalist(
            candidate=candidate,
            held_out=round(run.means[metric], ROUND),
            interval=bootstrap_interval(list(run.values[metric].values())),
            tuned=round(rounds.tuned.get(candidate.key, 0.0), ROUND),
            latency_ms=run.latency_ms,
            is_default=candidate in defaults,
            on_front=place in front,
            against_default=against.get(candidate.key),
        )
        for place, (candidate, run) in enumerate(zip(chosen, measured, strict=True))
    ]
    return tuple(sorted(finalists, key=lambda finalist: -finalist.held_out))
