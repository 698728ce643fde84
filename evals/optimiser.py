"""Look for good parameters in a given time: successive halving over the strategies' own parameter tables.

Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization" (AISTATS 2016): many
candidates on few questions, the best third on three times as many, and so on. The questions are split once: the
search sees one half, the figures that are reported come from the other, so that luck is not taken for quality.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evals.corpus import IndexedCorpus
from evals.dataset import Dataset, Question
from evals.leaderboard import pareto_front
from evals.metrics import check_metrics, depth
from evals.runner import Answer, StrategyRun, ask, scored, warm
from evals.significance import Difference, bootstrap_interval, compare
from workbench.errors import Cancelled, InvalidInput
from workbench.retrieval.strategies import check_parameters, strategy_named
from workbench.types import Parameter, Progress, Value
from workbench.workbench import Workbench

KEEP = 3  # one in so many survives a round, and is asked so many times as many questions
FIRST = 12  # questions of the first round
FEWEST = 20  # answerable questions below which a split leaves too little to choose by
FINALISTS = 5
GRID = 20  # steps a float parameter is drawn from, so that candidates meet again and can be named
ROUND = 6


@dataclass(frozen=True, slots=True)
class Candidate(Value):
    """A strategy with all its parameters."""

    strategy: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


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
class Optimised(Value):
    """What a search found, the best on the held-out half first; ``tried`` candidates in ``seconds``."""

    metric: str
    finalists: tuple[Finalist, ...]
    tried: int
    tuning_questions: int
    held_out_questions: int
    seconds: float


def optimise(
    wb: Workbench,
    dataset: Dataset,
    corpus: IndexedCorpus,
    strategies: Sequence[str],
    seconds: float,
    *,
    metric: str = "ndcg@10",
    seed: int = 0,
    clock: Callable[[], float] = time.monotonic,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Optimised:
    """Search for about ``seconds``; every strategy's defaults take part and are never dropped.

    The defaults and the finalists are always measured to the end, however short the time.

    Raises:
        InvalidInput: too few answerable questions to split, no time, or an unknown strategy or metric.
        Cancelled: ``should_stop`` said so.
    """
    check_metrics([metric])
    if seconds <= 0:
        raise InvalidInput(f"The time for a search cannot be {seconds:g} seconds; give it some.")
    if len(dataset.answerable) < FEWEST:
        raise InvalidInput(
            f"{dataset.name!r} has {len(dataset.answerable)} answerable questions; a search with a held-out half "
            f"needs at least {FEWEST}."
        )
    tuning, held_out = split(dataset.answerable)
    defaults = [Candidate(name, check_parameters(name, None)) for name in dict.fromkeys(strategies)]
    for default in defaults:  # what is loaded at first is neither in the time given nor in a latency
        warm(wb, corpus, tuning[0], default.strategy, default.parameters)
    search = _Search(wb, dataset, corpus, metric, clock, clock(), seconds, on_progress, should_stop)
    best = search.halve(defaults, candidates(strategies, seed), tuning)
    finalists = list(dict.fromkeys(_key(candidate) for candidate in [*best[:FINALISTS], *defaults]))
    chosen = [search.known[key] for key in finalists]
    measured = [search.measure(candidate, held_out) for candidate in chosen]
    return Optimised(
        metric=metric,
        finalists=_finalists(metric, chosen, measured, search, defaults),
        tried=len(search.known),
        tuning_questions=len(tuning),
        held_out_questions=len(held_out),
        seconds=round(clock() - search.began, 3),
    )


def split(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """Return (to search with, held out): halves by a hash of the id, the same ones every time."""
    ordered = sorted(questions, key=lambda question: hashlib.sha256(question.id.encode()).hexdigest())
    half = len(ordered) // 2
    return ordered[:half], ordered[half:]


def candidates(strategies: Sequence[str], seed: int) -> Iterator[Candidate]:
    """Yield random candidates without end, the strategies in turn; one without parameters is not drawn."""
    rng = random.Random(seed)
    tunable = [name for name in dict.fromkeys(strategies) if strategy_named(name).parameters]
    for name in itertools.cycle(tunable):
        drawn = {parameter.name: draw(parameter, rng) for parameter in strategy_named(name).parameters}
        yield Candidate(name, check_parameters(name, drawn))


def draw(parameter: Parameter, rng: random.Random) -> Any:
    """Return a random value of a parameter: on a grid of 21 points for numbers, evenly for choices."""
    if parameter.kind == "choice":
        return rng.choice(parameter.choices)
    if parameter.kind == "bool":
        return rng.random() < 0.5
    low, high = float(parameter.low or 0), float(parameter.high or 0)
    value = low + (high - low) * rng.randint(0, GRID) / GRID
    return round(value) if parameter.kind == "int" else round(value, 6)


class _Search:
    """The rounds; every answer is kept, so that a survivor is asked only what is new."""

    def __init__(
        self,
        wb: Workbench,
        dataset: Dataset,
        corpus: IndexedCorpus,
        metric: str,
        clock: Callable[[], float],
        began: float,
        seconds: float,
        on_progress: Callable[[Progress], None] | None,
        should_stop: Callable[[], bool] | None,
    ) -> None:
        self._wb, self._dataset, self._corpus, self._metric = wb, dataset, corpus, metric
        self._clock, self.began, self._seconds, self._on_progress = clock, began, seconds, on_progress
        self._should_stop = should_stop
        self.known: dict[str, Candidate] = {}
        self.tuned: dict[str, float] = {}
        self._answers: dict[str, dict[str, Answer]] = {}

    def halve(self, defaults: list[Candidate], more: Iterator[Candidate], questions: list[Question]) -> list[Candidate]:
        """Return the survivors of the last round, best first."""
        sizes = [FIRST]
        while sizes[-1] * KEEP < len(questions):
            sizes.append(sizes[-1] * KEEP)
        if sizes[-1] < len(questions):
            sizes.append(len(questions))
        share = self._seconds / (len(sizes) + 1)  # the last share is for the held-out questions
        pool = itertools.chain(defaults, _within(more, MOST_DRAWN))
        survivors: list[Candidate] = []
        for number, size in enumerate(sizes, start=1):
            survivors = self._round(pool, questions[:size], len(defaults), self.began + number * share)
            pool = iter(survivors[: max(len(defaults), len(survivors) // KEEP)])
        return survivors

    def _round(
        self, pool: Iterator[Candidate], questions: list[Question], at_least: int, until: float
    ) -> list[Candidate]:
        """Measure candidates until the time is over, the first ``at_least`` in any case; returns them best first."""
        values: dict[str, float] = {}
        for candidate in pool:
            if len(values) >= at_least and self._clock() >= until:
                break
            if _key(candidate) not in values:
                values[_key(candidate)] = self.measure(candidate, questions).means[self._metric]
                self._tell(len(questions))
        self.tuned |= values
        ordered = sorted(values, key=lambda key: -values[key])
        return [self.known[key] for key in ordered]

    def measure(self, candidate: Candidate, questions: Sequence[Question]) -> StrategyRun:
        """Ask a candidate what it was not asked yet and measure it on these questions."""
        key = _key(candidate)
        self.known[key] = candidate
        answers = self._answers.setdefault(key, {})
        for question in questions:
            if self._should_stop is not None and self._should_stop():
                raise Cancelled("Stopped; a search for parameters begins anew.")
            if question.id not in answers:
                answers[question.id] = ask(
                    self._wb,
                    self._corpus,
                    question,
                    candidate.strategy,
                    candidate.parameters,
                    depth([self._metric]),
                )
        asked = [question.id for question in questions]
        chosen = {question_id: answers[question_id] for question_id in asked}
        return scored(self._dataset.only(asked), candidate.strategy, candidate.parameters, chosen, [self._metric])

    def _tell(self, questions: int) -> None:
        if self._on_progress is not None:
            spent = min(int(self._clock() - self.began), int(self._seconds))
            message = f"{len(self.known):,} candidates tried, now on {questions} questions"
            self._on_progress(Progress(spent, int(self._seconds), message))


MOST_DRAWN = 2_000  # random candidates at most; a small table has fewer different ones


def _within(more: Iterator[Candidate], count: int) -> Iterator[Candidate]:
    yield from itertools.islice(more, count)


def _key(candidate: Candidate) -> str:
    return repr((candidate.strategy, sorted(candidate.parameters.items())))


def _finalists(
    metric: str, chosen: list[Candidate], measured: list[StrategyRun], search: _Search, defaults: list[Candidate]
) -> tuple[Finalist, ...]:
    front = set(pareto_front([(run.means[metric], run.latency_ms["p50"]) for run in measured]))
    default_runs = {run.strategy: run for run, one in zip(measured, chosen, strict=True) if one in defaults}
    tuned = [(one, run) for one, run in zip(chosen, measured, strict=True) if one not in defaults]
    pairs = [
        (f"{one.strategy} (tuned)", run.values[metric], one.strategy, default_runs[one.strategy].values[metric])
        for one, run in tuned
    ]
    against = {_key(one): difference for (one, _), difference in zip(tuned, compare(metric, pairs), strict=True)}
    found = [
        Finalist(
            candidate=one,
            held_out=round(run.means[metric], ROUND),
            interval=bootstrap_interval(list(run.values[metric].values())),
            tuned=round(search.tuned.get(_key(one), 0.0), ROUND),
            latency_ms=run.latency_ms,
            is_default=one in defaults,
            on_front=place in front,
            against_default=against.get(_key(one)),
        )
        for place, (one, run) in enumerate(zip(chosen, measured, strict=True))
    ]
    return tuple(sorted(found, key=lambda finalist: -finalist.held_out))
