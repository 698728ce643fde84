"""The answers of a search for parameters, kept so that a search that was stopped goes on where it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from evals.experiments.candidates import Candidate
from evals.experiments.run_key import run_values, stored_answer
from evals.experiments.strategy_run import Ranking
from evals.gateway import IndexedCorpus, run_tables
from evals.test_set import TestSet
from workbench.workbench import Workbench


class AnswerBook(Protocol):
    """The answers of each candidate, by question."""

    def answers_of(self, candidate: Candidate) -> Mapping[str, Ranking]:
        """Return the answers of a candidate so far: question id -> answer."""
        ...

    def keep(self, candidate: Candidate, answers: Iterable[Ranking]) -> None:
        """Add answers of a candidate."""
        ...


class PassingBook:
    """Answers in memory, for a search that nobody resumes."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[str, Ranking]] = {}

    def answers_of(self, candidate: Candidate) -> Mapping[str, Ranking]:
        """Return the answers of a candidate so far."""
        return dict(self._answers.get(candidate.key, {}))

    def keep(self, candidate: Candidate, answers: Iterable[Ranking]) -> None:
        """Add answers of a candidate."""
        self._answers.setdefault(candidate.key, {}).update({answer.question_id: answer for answer in answers})


class StoredBook:
    """Answers in the database, as runs of their own; they end with the search, as nobody asks for them again."""

    def __init__(self, wb: Workbench, test_set: TestSet, corpus: IndexedCorpus, depth: int) -> None:
        """Take ``depth``, the number of documents of each ranking."""
        self._tables = run_tables(wb)
        self._test_set, self._corpus, self._depth = test_set, corpus, depth
        self._runs: dict[str, str] = {}
        self._answers: dict[str, dict[str, Ranking]] = {}

    def answers_of(self, candidate: Candidate) -> Mapping[str, Ranking]:
        """Return the answers of a candidate so far, those of an earlier attempt too."""
        run_id = self._run(candidate)
        if candidate.key not in self._answers:
            rows = map(stored_answer, self._tables.answers(run_id))
            self._answers[candidate.key] = {answer.question_id: answer for answer in rows}
        return dict(self._answers[candidate.key])

    def keep(self, candidate: Candidate, answers: Iterable[Ranking]) -> None:
        """Add answers of a candidate."""
        added = list(answers)
        if added:
            self._tables.add_answers(self._run(candidate), [answer.to_dict() for answer in added])
            self._answers.setdefault(candidate.key, {}).update({answer.question_id: answer for answer in added})

    def close(self) -> None:
        """Forget the answers, once the search is over; runs that an experiment shows stay."""
        self._tables.forget_unused(list(self._runs.values()))

    def _run(self, candidate: Candidate) -> str:
        if candidate.key not in self._runs:
            values = run_values(self._test_set, self._corpus, candidate.strategy, candidate.parameters, self._depth)
            self._runs[candidate.key] = self._tables.begin(values)["id"]
        return self._runs[candidate.key]
