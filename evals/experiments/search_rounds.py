"""The rounds of a search for parameters: many candidates on few questions, the best third on three times as many."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from evals.experiments.answer_book import AnswerBook
from evals.experiments.candidates import Candidate
from evals.experiments.strategy_run import Ranking, StrategyRun, ask, scored
from evals.gateway import IndexedCorpus
from evals.measures.metrics import depth
from evals.test_set import Question, TestSet
from workbench.errors import Cancelled
from workbench.types import OnProgress, Progress, ShouldStop
from workbench.workbench import Workbench

KEEP = 3  # one in so many survives a round, and is asked so many times as many questions
FIRST = 12  # questions of the first round


class OutOfTime(Exception):
    """An event, not an error: the time is over, and this candidate may be left out."""


@dataclass(frozen=True)
class Timer:
    """The time of a search, in seconds of ``clock``; a search that goes on began so much earlier."""

    clock: Callable[[], float]
    began: float
    seconds: float

    @property
    def elapsed(self) -> float:
        """Seconds since the search began."""
        return self.clock() - self.began


class Rounds:
    """The rounds of one search within its time; ``known`` are all that were tried, ``tuned`` their values."""

    def __init__(
        self,
        wb: Workbench,
        test_set: TestSet,
        corpus: IndexedCorpus,
        metric: str,
        timer: Timer,
        book: AnswerBook,
        on_progress: OnProgress | None,
        should_stop: ShouldStop | None,
    ) -> None:
        self._wb, self._test_set, self._corpus, self._metric = wb, test_set, corpus, metric
        self._timer, self._book, self._on_progress, self._should_stop = timer, book, on_progress, should_stop
        self._costs: dict[str, list[float]] = {}
        self.measured: dict[str, Candidate] = {}
        self.tuned: dict[str, float] = {}

    def halve(
        self, defaults: list[Candidate], more: Iterable[Candidate], questions: list[Question], until: float
    ) -> list[Candidate]:
        """Return the candidates of the last round that was finished, best first; rounds end ``until`` seconds."""
        sizes = [FIRST]
        while sizes[-1] * KEEP < len(questions):
            sizes.append(sizes[-1] * KEEP)
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
            pool = survivors[: max(len(defaults), len(survivors) // KEEP)]
        return survivors

    def _round(
        self, pool: Iterable[Candidate], questions: Sequence[Question], least: int, until: float, end: float
    ) -> list[Candidate]:
        """Measure candidates until the round's time is over, ``least`` in any case; returns them best first."""
        values: dict[str, float] = {}
        for candidate in pool:
            needed = len(values) < least
            cost = self.cost(candidate, questions)
            now = self._timer.elapsed
            if not needed and cost and (now >= until or now + cost > end):
                break
            if candidate.key in values:
                continue
            try:
                run = self.measure(candidate, questions, needed=needed)
            except OutOfTime:
                break
            values[candidate.key] = run.means[self._metric]
            self._tell(len(questions))
        self.tuned |= values
        return [self.measured[key] for key in sorted(values, key=lambda key: -values[key])]

    def cost(self, candidate: Candidate, questions: Sequence[Question]) -> float:
        """Return the likely seconds to ask a candidate the rest of these questions; 0 where none is left."""
        answers = self._book.answers_of(candidate)
        return self.pace(candidate.strategy) * sum(question.id not in answers for question in questions)

    def pace(self, strategy: str) -> float:
        """Return the mean seconds that a question of a strategy took so far."""
        return fmean(self._costs.get(strategy) or [0.01])

    def measure(self, candidate: Candidate, questions: Sequence[Question], *, needed: bool = True) -> StrategyRun:
        """Ask a candidate what it was not asked yet and measure it on these questions.

        Raises:
            OutOfTime: the time is over, and the candidate is not ``needed``. Cancelled: somebody wants it to stop.
        """
        answers = dict(self._book.answers_of(candidate))
        if answers and candidate.strategy not in self._costs:  # a search that goes on knows how long they took
            self._costs[candidate.strategy] = [answer.latency_ms / 1000 for answer in answers.values()]
        fresh: list[Ranking] = []
        before = self._timer.elapsed
        try:
            for question in questions:
                if self._should_stop is not None and self._should_stop():
                    raise Cancelled("Stopped; the search goes on from here when its job is resumed.")
                if question.id in answers:
                    continue
                wanted = depth([self._metric])
                answer = ask(self._wb, self._corpus, question, candidate.strategy, candidate.parameters, wanted)
                fresh.append(answer)
                now = self._timer.elapsed
                self._costs.setdefault(candidate.strategy, []).append(now - before)
                before = now
                if not needed and now >= self._timer.seconds:
                    raise OutOfTime
        finally:
            self._book.keep(candidate, fresh)
        self.measured[candidate.key] = candidate
        ids = [question.id for question in questions]
        answers |= {answer.question_id: answer for answer in fresh}
        chosen = {question_id: answers[question_id] for question_id in ids}
        return scored(self._test_set.only(ids), candidate.strategy, candidate.parameters, chosen, [self._metric])

    def _tell(self, questions: int) -> None:
        if self._on_progress is not None:
            spent = min(int(self._timer.elapsed), int(self._timer.seconds))
            message = f"{len(self.measured):,} settings tried, now on {questions} questions"
            self._on_progress(Progress(spent, int(self._timer.seconds), message))
