"""Tuning of parameters within a time limit: successive halving over the strategies' parameter tables.

Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization" (AISTATS 2016): many
candidates are tried on few questions, the best third on three times as many, and so on. The questions are split once:
the search uses one half, and the reported scores come from the other, so that luck does not count as quality.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from pydantic import TypeAdapter

from evals.experiments.leaderboard import pareto_front
from evals.experiments.runs import (
    Ranking,
    StrategyRun,
    ask_question,
    make_run_row,
    parse_answer,
    score_answers,
    warm_up,
)
from evals.gateway import IndexedCorpus, RunTables
from evals.measures.metrics import check_metrics, max_ranking_depth
from evals.measures.significance import Difference, bootstrap_interval, compare_pairs
from evals.test_set import Question, TestSet
from workbench.errors import Cancelled, InvalidInput
from workbench.jobs.sharing import Job
from workbench.retrieval.strategies import check_parameters, strategy_named
from workbench.types import OnProgress, Parameter, ParameterValue, Progress, ShouldStop, Value
from workbench.workbench import Workbench

# Random candidates

GRID_STEPS = 20  # steps of a float parameter, so that candidates can repeat and have short names
MAX_CANDIDATES = 2_000  # maximum of random candidates; a small table has fewer distinct ones


@dataclass(frozen=True, slots=True)
class Candidate(Value):
    """A strategy with all its parameters."""

    strategy: str
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A key that identifies the strategy and its settings."""
        return repr((self.strategy, sorted(self.parameters.items())))


def make_defaults(strategies: Sequence[str]) -> list[Candidate]:
    """Return each strategy with its default parameters. Raises InvalidInput for an unknown strategy."""
    return [Candidate(name, check_parameters(name, None)) for name in dict.fromkeys(strategies)]


def draw_candidates(strategies: Sequence[str]) -> Iterator[Candidate]:
    """Yield up to 2,000 random candidates, taking strategies in turn and skipping those without parameters."""
    rng = random.Random(0)  # fixed, so that a resumed search draws the same
    tunable = [name for name in dict.fromkeys(strategies) if strategy_named(name).parameters]
    for name in itertools.islice(itertools.cycle(tunable), MAX_CANDIDATES):
        values = {parameter.name: draw_value(parameter, rng) for parameter in strategy_named(name).parameters}
        yield Candidate(name, check_parameters(name, values))


def draw_value(parameter: Parameter, rng: random.Random) -> str | int | float | bool:
    """Return a random value of a parameter: uniform over choices, or over a grid of 21 points for numbers."""
    if parameter.kind == "choice":
        return rng.choice(parameter.choices)
    if parameter.kind == "bool":
        return rng.random() < 0.5
    if parameter.kind in ("name", "text"):  # names an object, not a setting to vary
        return parameter.default
    low, high = float(parameter.low or 0), float(parameter.high or 0)
    value = low + (high - low) * rng.randint(0, GRID_STEPS) / GRID_STEPS
    return round(value) if parameter.kind == "int" else round(value, 6)


def split_questions(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """Return (search half, held-out half), always split the same way, by a hash of the id."""
    ordered = sorted(questions, key=lambda question: hashlib.sha256(question.id.encode()).hexdigest())
    half = len(ordered) // 2
    return ordered[:half], ordered[half:]


# Answers of candidates


class StoredAnswers:
    """The answers of each candidate, in the database as separate runs, which are deleted at the end of the search."""

    def __init__(self, wb: Workbench, test_set: TestSet, corpus: IndexedCorpus, depth: int) -> None:
        """``depth`` is the number of documents per ranking."""
        self._tables = RunTables(wb.corpus.database)
        self._test_set, self._corpus, self._depth = test_set, corpus, depth
        self._runs: dict[str, str] = {}
        self._answers: dict[str, dict[str, Ranking]] = {}

    def load_answers(self, candidate: Candidate) -> Mapping[str, Ranking]:
        """Return the answers of a candidate so far, including those of an earlier attempt."""
        run_id = self._run(candidate)
        if candidate.key not in self._answers:
            rows = map(parse_answer, self._tables.answers(run_id))
            self._answers[candidate.key] = {answer.question_id: answer for answer in rows}
        return dict(self._answers[candidate.key])

    def keep(self, candidate: Candidate, answers: Iterable[Ranking]) -> None:
        """Add answers of a candidate."""
        added = list(answers)
        if added:
            self._tables.add_answers(self._run(candidate), [answer.to_dict() for answer in added])
            self._answers.setdefault(candidate.key, {}).update({answer.question_id: answer for answer in added})

    def close(self) -> None:
        """Delete the answers at the end of the search, except those of experiment runs."""
        self._tables.forget_unused(list(self._runs.values()))

    def _run(self, candidate: Candidate) -> str:
        if candidate.key not in self._runs:
            values = make_run_row(self._test_set, self._corpus, candidate.strategy, candidate.parameters, self._depth)
            self._runs[candidate.key] = self._tables.begin(values)["id"]
        return self._runs[candidate.key]


# Rounds of successive halving

HALVING_FACTOR = 3  # 1 / this survives a round, with this times as many questions
FIRST_ROUND_QUESTIONS = 12  # questions of the first round


class OutOfTime(Exception):
    """An event, not an error: the time is up, and this candidate is optional."""


class Rounds:
    """The rounds of one search within its time; ``measured`` has all candidates tried, and ``tuned`` their values."""

    def __init__(
        self,
        wb: Workbench,
        test_set: TestSet,
        corpus: IndexedCorpus,
        metric: str,
        seconds: float,
        book: StoredAnswers,
        clock: Callable[[], float],
        began: float,
        on_progress: OnProgress | None,
        should_stop: ShouldStop | None,
    ) -> None:
        """``began`` is the start by ``clock``; for a resumed search, it is earlier by the time already spent."""
        self._wb, self._test_set, self._corpus, self._metric = wb, test_set, corpus, metric
        self._book, self._on_progress, self._should_stop = book, on_progress, should_stop
        self._clock, self._began, self.seconds = clock, began, seconds
        self._costs: dict[str, list[float]] = {}
        self.measured: dict[str, Candidate] = {}
        self.tuned: dict[str, float] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since the search started."""
        return self._clock() - self._began

    def halve(
        self, defaults: list[Candidate], more: Iterable[Candidate], questions: list[Question], until: float
    ) -> list[Candidate]:
        """Return the candidates of the last finished round, best first; rounds end after ``until`` seconds."""
        sizes = [FIRST_ROUND_QUESTIONS]
        while sizes[-1] * HALVING_FACTOR < len(questions):
            sizes.append(sizes[-1] * HALVING_FACTOR)
        if sizes[-1] < len(questions):
            sizes.append(len(questions))
        survivors: list[Candidate] = []
        pool: Iterable[Candidate] = itertools.chain(defaults, more)
        for number, size in enumerate(sizes, start=1):
            least = len(defaults) if number == 1 else 0
            ordered = self._round(pool, questions[:size], least, until * number / len(sizes), until)
            survivors = ordered or survivors
            if not ordered:
                break
            pool = survivors[: max(len(defaults), len(survivors) // HALVING_FACTOR)]
        return survivors

    def _round(
        self, pool: Iterable[Candidate], questions: Sequence[Question], least: int, until: float, end: float
    ) -> list[Candidate]:
        """Measure candidates, at least ``least``, until the round's time is up; return them best first."""
        values: dict[str, float] = {}
        for candidate in pool:
            needed = len(values) < least
            cost = self.cost(candidate, questions)
            now = self.elapsed
            if not needed and cost and (now >= until or now + cost > end):
                break
            if candidate.key in values:
                continue
            try:
                run = self.measure(candidate, questions, needed=needed)
            except OutOfTime:
                break
            values[candidate.key] = run.means[self._metric]
        self.tuned |= values
        return [self.measured[key] for key in sorted(values, key=lambda key: -values[key])]

    def cost(self, candidate: Candidate, questions: Sequence[Question]) -> float:
        """Return the estimated seconds to ask a candidate the rest of these questions; 0 if none is left."""
        answers = self._book.load_answers(candidate)
        return self.pace(candidate.strategy) * sum(question.id not in answers for question in questions)

    def pace(self, strategy: str) -> float:
        """Return the mean seconds per question of a strategy so far."""
        return fmean(self._costs.get(strategy) or [0.01])

    def measure(self, candidate: Candidate, questions: Sequence[Question], *, needed: bool = True) -> StrategyRun:
        """Ask a candidate its remaining questions and measure it on all of them.

        Raises:
            OutOfTime: The time is up, and the candidate is not ``needed``. Cancelled: A stop was requested.
        """
        answers = dict(self._book.load_answers(candidate))
        if answers and candidate.strategy not in self._costs:  # a resumed search knows their durations
            self._costs[candidate.strategy] = [answer.latency_ms / 1000 for answer in answers.values()]
        fresh: list[Ranking] = []
        before = self.elapsed
        try:
            for question in questions:
                if self._should_stop is not None and self._should_stop():
                    raise Cancelled("Stopped; resume the job to continue the search.")
                if question.id in answers:
                    continue
                wanted = max_ranking_depth([self._metric])
                answer = ask_question(
                    self._wb, self._corpus, question, candidate.strategy, candidate.parameters, wanted
                )
                fresh.append(answer)
                now = self.elapsed
                self._costs.setdefault(candidate.strategy, []).append(now - before)
                before = now
                if self._on_progress is not None:
                    message = f"{len(self.measured):,} settings tried, currently on {len(questions)} questions"
                    self._on_progress(Progress(int(min(now, self.seconds)), int(self.seconds), message))
                if not needed and now >= self.seconds:
                    raise OutOfTime
        finally:
            self._book.keep(candidate, fresh)
        self.measured[candidate.key] = candidate
        ids = [question.id for question in questions]
        answers |= {answer.question_id: answer for answer in fresh}
        chosen = {question_id: answers[question_id] for question_id in ids}
        return score_answers(self._test_set.only(ids), candidate.strategy, candidate.parameters, chosen, [self._metric])


MIN_TUNING_QUESTIONS = 20  # fewer answerable questions are too few to split
MAX_FINALISTS = 5
SCORE_DIGITS = 6
ROUNDS_TIME_SHARE = 0.6  # share of the time for the rounds; the rest is for the held-out half


@dataclass(frozen=True, slots=True)
class Finalist(Value):
    """A candidate on the held-out questions; ``tuned`` is its value on the search half.

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
    """The outcome of a search, best on the held-out half first; it ``tried`` that many settings in ``seconds``.

    ``varied`` counts the settings that differ from the defaults; ``notes`` lists what there was no time for.
    """

    metric: str
    finalists: tuple[Finalist, ...]
    tried: int
    tuning_questions: int
    held_out_questions: int
    seconds: float
    varied: int = 0
    notes: tuple[str, ...] = ()
    scope: str = "all your documents"  # the searched documents, as text


def tune(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    strategies: Sequence[str],
    seconds: float,
    *,
    metric: str = "ndcg@10",
    spent: float = 0.0,
    book: StoredAnswers | None = None,
    clock: Callable[[], float] = time.monotonic,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> TuningResult:
    """Search for ``seconds``; every strategy's defaults are always included.

    If time is short, fewer questions and settings are tried, as ``notes`` report. A resumed search
    continues with the stored answers of an earlier one that took ``spent`` seconds. A ``book`` is left open.

    Raises:
        InvalidInput: Too few answerable questions to split, no time, or an unknown strategy or metric.
        Cancelled: ``should_stop`` returned True.
    """
    check_metrics([metric])
    if seconds <= 0:
        raise InvalidInput(f"Invalid time limit of {seconds:g} s; use more than 0.")
    if len(test_set.answerable) < MIN_TUNING_QUESTIONS:
        raise InvalidInput(
            f"{test_set.name!r} has {len(test_set.answerable)} answerable questions; a search with a held-out half "
            f"needs at least {MIN_TUNING_QUESTIONS}."
        )
    tuning, held_out = split_questions(test_set.answerable)
    defaults = make_defaults(strategies)
    for default in defaults:  # loading models counts in neither the time limit nor a latency
        warm_up(wb, corpus, tuning[0], default.strategy, default.parameters)
    began = clock() - spent
    answers = book or StoredAnswers(wb, test_set, corpus, max_ranking_depth([metric]))
    rounds = Rounds(wb, test_set, corpus, metric, seconds, answers, clock, began, on_progress, should_stop)
    for default in defaults:
        rounds.measure(default, tuning[:FIRST_ROUND_QUESTIONS])
    pace = sum(rounds.pace(default.strategy) for default in defaults)  # of the defaults, in their share of the time
    affordable = max(FIRST_ROUND_QUESTIONS, int(seconds * (1 - ROUNDS_TIME_SHARE) / max(pace, 1e-9)))
    best = rounds.halve(defaults, draw_candidates(strategies), tuning[:affordable], seconds * ROUNDS_TIME_SHARE)
    chosen, measured = _measure_held_out(rounds, best, defaults, held_out[:affordable])
    tried = len(rounds.measured)
    if book is None:
        answers.close()
    return TuningResult(
        metric=metric,
        finalists=_make_finalists(metric, chosen, measured, rounds, defaults),
        tried=tried,
        tuning_questions=len(tuning[:affordable]),
        held_out_questions=len(held_out[:affordable]),
        seconds=round(rounds.elapsed, 3),
        varied=tried - len(defaults),
        notes=tuple(_make_notes(strategies, tried - len(defaults), affordable, len(held_out))),
        scope=test_set.over,
    )


def _measure_held_out(
    rounds: Rounds, best: Sequence[Candidate], defaults: Sequence[Candidate], questions: list[Question]
) -> tuple[list[Candidate], list[StrategyRun]]:
    """Measure the defaults on the held-out half, then as many finalists as time allows."""
    chosen = list(defaults)
    measured = [rounds.measure(default, questions) for default in defaults]
    for candidate in [finalist for finalist in best[:MAX_FINALISTS] if finalist not in chosen]:
        if rounds.elapsed + rounds.cost(candidate, questions) > rounds.seconds and rounds.cost(candidate, questions):
            break
        try:
            measured.append(rounds.measure(candidate, questions, needed=False))
        except OutOfTime:
            break
        chosen.append(candidate)
    return chosen, measured


def _make_notes(strategies: Sequence[str], varied: int, affordable: int, half: int) -> list[str]:
    notes: list[str] = []
    if not any(strategy_named(name).parameters for name in strategies):
        notes.append("None of these strategies has a parameter, so there was nothing to vary.")
    elif not varied:
        notes.append("There was only time to measure the defaults. Increase the time limit.")
    if affordable < half:
        notes.append(f"There was time for {affordable} of the {half} questions of each half.")
    return notes


def _make_finalists(
    metric: str,
    chosen: Sequence[Candidate],
    measured: Sequence[StrategyRun],
    rounds: Rounds,
    defaults: Sequence[Candidate],
) -> tuple[Finalist, ...]:
    front = set(pareto_front([(run.means[metric], run.latency_ms["p50"]) for run in measured]))
    values = {run.strategy: run.values[metric] for run in measured[: len(defaults)]}  # the defaults are measured first
    tuned = list(zip(chosen, measured, strict=True))[len(defaults) :]
    pairs = [(f"{one.strategy} (tuned)", run.values[metric], one.strategy, values[one.strategy]) for one, run in tuned]
    against = dict(zip((one.key for one, _ in tuned), compare_pairs(metric, pairs), strict=True))
    finalists = [
        Finalist(
            candidate=candidate,
            held_out=round(run.means[metric], SCORE_DIGITS),
            interval=bootstrap_interval(list(run.values[metric].values())),
            tuned=round(rounds.tuned.get(candidate.key, 0.0), SCORE_DIGITS),
            latency_ms=run.latency_ms,
            is_default=candidate in defaults,
            on_front=place in front,
            against_default=against.get(candidate.key),
        )
        for place, (candidate, run) in enumerate(zip(chosen, measured, strict=True))
    ]
    return tuple(sorted(finalists, key=lambda finalist: -finalist.held_out))


# The stored result of a tuning job


def read_tuning_result(job: Job) -> TuningResult | None:
    """Return the outcome of a job of the kind "optimise"; None if it has not finished."""
    return TypeAdapter(TuningResult).validate_python(job.result) if job.result else None
