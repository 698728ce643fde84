"""The runs of an experiment's cells, asked in shares of some hundred questions; each answer is stored when it is there.

A share may be asked by any process, and again after one that died: an answer that is stored is not asked for twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evals.experiments.plan import Cell, Experiment
from evals.experiments.run_key import run_values
from evals.experiments.strategy_run import ask, warm
from evals.gateway import IndexedCorpus, experiment_tables, index_corpus, run_tables
from evals.measures.metrics import depth
from evals.test_set import Question, TestSet
from workbench.errors import Cancelled, Conflict, WorkbenchError
from workbench.retrieval.strategies import check_parameters
from workbench.types import JsonObject, OnProgress, ParameterValue, Progress, ShouldStop, Value
from workbench.workbench import Workbench

SHARE = 100  # questions
STORED_AT_ONCE = 8  # answers a transaction: at most so many are asked again after a kill


@dataclass(frozen=True, slots=True)
class Share(Value):
    """Some questions of one cell, by its position and theirs: from ``first`` to before ``last``."""

    cell: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ShareOutcome(Value):
    """The outcome of a share: questions asked now, and those that had been; ``failed`` where the cell cannot be run."""

    cell: int
    asked: int
    stored: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class _OpenRun:
    """A cell whose corpus is indexed and whose run is begun."""

    cell: Cell
    run_id: str
    corpus: IndexedCorpus
    parameters: dict[str, ParameterValue]


class CellRuns:
    """The runs of an experiment in this process's hands; a cell is opened with its first share."""

    def __init__(
        self,
        wb: Workbench,
        experiment: Experiment,
        test_set: TestSet,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> None:
        """Take ``on_progress``, which is told of the questions of all cells, as if no other process asked any."""
        self._wb, self._experiment, self._test_set = wb, experiment, test_set
        self._on_progress, self._should_stop = on_progress, should_stop
        self._experiments, self._runs = experiment_tables(wb), run_tables(wb)
        self._open: dict[int, _OpenRun] = {}
        self._done, self._part = 0, 0.0  # questions, and how far the share that is asked is

    def shares(self) -> Iterator[Share]:
        """Yield the shares of the experiment, cell by cell."""
        questions = len(self._test_set.answerable)
        for cell in range(len(self._experiment.cells)):
            for first in range(0, questions, SHARE):
                yield Share(cell, first, min(first + SHARE, questions))

    def open(self, position: int) -> _OpenRun:
        """Index a cell's corpus and begin its run, unless that is done.

        Raises:
            Conflict: the person's documents changed since the experiment began. Cancelled.
        """
        if position not in self._open:
            self._open[position] = self._opened(position)
        return self._open[position]

    def answer(self, share: Share) -> ShareOutcome:
        """Ask what has not been asked of a share; where a search fails the cell does, and its run tells why.

        Raises:
            Conflict: the person's documents changed since the experiment began.
            Cancelled: it is to stop; the answers so far are stored.
        """
        self._begin(share, share.first, self._experiment.cells[share.cell].label)
        run = self.open(share.cell)
        answered = self._runs.answered(run.run_id)
        questions = self._test_set.answerable[share.first : share.last]
        open_questions = [question for question in questions if question.id not in answered]
        try:
            if open_questions:
                warm(self._wb, run.corpus, questions[0], run.cell.strategy, run.parameters)
            self._ask(run, share, open_questions)
        except Cancelled:
            raise
        except WorkbenchError as error:
            self._runs.set_status(run.run_id, "failed", str(error))
            return ShareOutcome(share.cell, 0, 0, failed=True)
        self._runs.complete(run.run_id)
        return ShareOutcome(share.cell, len(open_questions), len(questions) - len(open_questions))

    def end(self) -> None:
        """Tell that nothing is left; it is too late to stop."""
        self._done = len(self._experiment.cells) * len(self._test_set.answerable)
        self._tell("done")

    def look(self) -> None:
        """Raise Cancelled where somebody wants it to stop."""
        if self._should_stop is not None and self._should_stop():
            raise Cancelled("Stopped; the answers so far are kept.")

    def _ask(self, run: _OpenRun, share: Share, questions: list[Question]) -> None:
        wanted, pages = depth(self._experiment.metrics), self._test_set.pages
        waiting: list[JsonObject] = []
        try:
            for number, question in enumerate(questions, share.last - len(questions)):
                self._begin(share, number, run.cell.label)
                answer = ask(self._wb, run.corpus, question, run.cell.strategy, run.parameters, wanted, pages)
                waiting.append(answer.to_dict())
                if len(waiting) >= STORED_AT_ONCE:
                    self._runs.add_answers(run.run_id, waiting)
                    waiting = []
        finally:
            self._runs.add_answers(run.run_id, waiting)

    def _opened(self, position: int) -> _OpenRun:
        cell, label = self._experiment.cells[position], self._experiment.cells[position].label

        def indexing(progress: Progress) -> None:
            self._tell(f"{label}: indexing, {progress.message}")

        corpus = index_corpus(self._wb, self._test_set, cell.index, on_progress=indexing, should_stop=self._should_stop)
        if corpus.corpus_hash != self._experiment.corpus_hash:
            raise Conflict("The corpus has changed since the experiment began; start a new one to compare fairly.")
        parameters = check_parameters(cell.strategy, cell.parameters)
        wanted = depth(self._experiment.metrics)
        row = self._runs.begin(run_values(self._test_set, corpus, cell.strategy, parameters, wanted))
        self._experiments.add_run(self._experiment.id, position, row["id"], label, {})
        return _OpenRun(cell, row["id"], corpus, parameters)

    def _begin(self, share: Share, number: int, label: str) -> None:
        """Tell how far it is. Raises Cancelled where somebody wants it to stop."""
        self._done = share.cell * len(self._test_set.answerable) + number
        self._part = (number - share.first) / max(1, share.last - share.first)
        self.look()
        self._tell(label)

    def _tell(self, message: str) -> None:
        if self._on_progress is not None:
            total = len(self._experiment.cells) * len(self._test_set.answerable)
            self._on_progress(Progress(self._done, total, message, self._part, share=self._done / max(1, total)))
