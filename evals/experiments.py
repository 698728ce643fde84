"""Experiments: a matrix of indexes, strategies and parameters on one test set, stored as it goes.

A cell of the matrix is a run. A run is kept under the hash of everything it depends on, so that a cell nothing has
changed for is never run again, in this experiment or another; each answer is stored when it is there, so that an
experiment that was stopped or killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evals.corpus import IndexedCorpus, index_corpus, own_hash
from evals.dataset import Dataset
from evals.fingerprint import hash_of, strategy_hash
from evals.metrics import DEFAULT_METRICS, check_metrics, depth
from evals.plan import Cell, CellResult, Experiment, experiment_from, matrix
from evals.runner import Answer, Hit, ask, scored, warm
from evals.store import DatasetStore
from workbench.errors import Cancelled, Conflict, InvalidInput, WorkbenchError
from workbench.retrieval.strategies import check_parameters
from workbench.storage.experiments import ExperimentTables, RunTables
from workbench.types import Progress, plain
from workbench.workbench import Workbench

__all__ = ["Cell", "CellResult", "Experiment", "Experiments", "matrix"]
OnProgress = Callable[[Progress], None]
STORED_AT_ONCE = 8  # answers a transaction: at most so many are asked again after a kill


class Experiments:
    """The verbs over experiments."""

    def __init__(self, wb: Workbench) -> None:
        self._wb = wb
        self.datasets = DatasetStore(wb)
        self._experiments, self._runs = ExperimentTables(wb.corpus.database), RunTables(wb.corpus.database)

    def create(
        self,
        title: str,
        dataset: str,
        cells: Sequence[Cell],
        *,
        metrics: Sequence[str] = DEFAULT_METRICS,
        limit_queries: int | None = None,
    ) -> Experiment:
        """Plan an experiment on the present version of a stored test set; ``run`` carries it out.

        Raises:
            NotFound: no such test set or index. InvalidInput: a wrong metric, or no answerable question.
        """
        info = self.datasets.info(dataset)
        chosen = self.datasets.load(info.id).first(limit_queries)
        if not chosen.answerable:
            raise InvalidInput(f"No question of {info.title!r} has a relevant document; judge some first.")
        for index in {cell.index for cell in cells}:
            self._wb.corpus.index(index)
        plan = {
            "cells": [plain(cell) for cell in cells],
            "metrics": list(check_metrics(metrics)),
            "limit_queries": limit_queries,
        }
        values = {"title": title.strip() or info.title, "dataset_id": info.id, "dataset_version": info.version}
        corpus_hash = chosen.corpus.hash if chosen.corpus else own_hash(self._wb)
        hashes = {"dataset_hash": chosen.questions_hash, "corpus_hash": corpus_hash}
        return experiment_from(self._experiments.create(values | hashes | {"plan": plan}))

    def list(self, dataset: str | None = None) -> list[Experiment]:
        """Return experiments, newest first."""
        dataset_id = self.datasets.info(dataset).id if dataset else None
        return [experiment_from(row) for row in self._experiments.list(dataset_id)]

    def get(self, experiment_id: str) -> Experiment:
        """Return one experiment. Raises NotFound."""
        return experiment_from(self._experiments.get(experiment_id))

    def delete(self, experiment_id: str) -> None:
        """Delete an experiment; its runs stay for others."""
        self._experiments.delete(self.get(experiment_id).id)

    def dataset(self, experiment: Experiment) -> Dataset:
        """Return the test set in the version the experiment was made with."""
        stored = self.datasets.load(experiment.dataset_id, experiment.dataset_version)
        return stored.first(experiment.limit_queries)

    def run(
        self,
        experiment_id: str,
        *,
        on_progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Experiment:
        """Carry out what is not done yet. A cell that fails is noted and the others go on.

        Raises:
            Conflict: the person's documents changed since the experiment began.
            Cancelled: ``should_stop`` said so; ``run`` again goes on from there.
        """
        experiment = self.get(experiment_id)
        dataset = self.dataset(experiment)
        watch = _Watch(len(experiment.cells) * len(dataset.answerable), on_progress, should_stop)
        self._experiments.set_status(experiment.id, "running")
        failed = 0
        try:
            for position, cell in enumerate(experiment.cells):
                watch.at(position * len(dataset.answerable), cell.label)
                failed += not self._run_cell(experiment, dataset, position, cell, watch)
            watch.end()
        except Cancelled:
            self._experiments.set_status(experiment.id, "stopped", "Stopped; run it again to go on.")
            raise
        except WorkbenchError as error:
            self._experiments.set_status(experiment.id, "failed", str(error))
            raise
        message = f"{failed} of {len(experiment.cells)} runs failed. " if failed else ""
        self._experiments.set_status(experiment.id, "done", message + watch.summary)
        return self.get(experiment.id)

    def results(self, experiment_id: str) -> list[CellResult]:
        """Return every cell that was begun, measured with the judgments of the experiment's version."""
        experiment = self.get(experiment_id)
        dataset = self.dataset(experiment)
        return [self._result(experiment, dataset, row) for row in self._experiments.runs(experiment.id)]

    def state(self, experiment_id: str) -> dict[str, str]:
        """Return what results depend on, cheaply: each begun run with its status and what was noted of it."""
        rows = self._experiments.runs(experiment_id)
        return {row["id"]: f"{row['status']} {sorted(row['extra'])}" for row in rows}

    def note(self, experiment: Experiment, result: CellResult, extra: Mapping[str, Any]) -> None:
        """Keep what was measured of a run besides its metrics."""
        self._experiments.add_run(experiment.id, result.position, result.run_id, result.cell.label, extra)

    def _run_cell(self, experiment: Experiment, dataset: Dataset, position: int, cell: Cell, watch: _Watch) -> bool:
        """Run one cell; returns False, and notes why, where it failed."""
        corpus = index_corpus(self._wb, dataset, cell.index, on_progress=watch.indexing, should_stop=watch.should_stop)
        if corpus.corpus_hash != experiment.corpus_hash:
            raise Conflict("The corpus has changed since the experiment began; start a new one to compare fairly.")
        parameters = check_parameters(cell.strategy, cell.parameters)
        wanted = depth(experiment.metrics)
        row = self._runs.begin(_run_values(dataset, corpus, cell.strategy, parameters, wanted))
        self._experiments.add_run(experiment.id, position, row["id"], cell.label, {})
        if row["status"] == "done":
            watch.known += len(dataset.answerable)
            return True
        answered = {answer["question_id"] for answer in self._runs.answers(row["id"])}
        waiting: list[dict[str, Any]] = []
        try:
            if len(answered) < len(dataset.answerable):
                warm(self._wb, corpus, dataset.answerable[0], cell.strategy, parameters)
            for number, question in enumerate(dataset.answerable):
                watch.at(position * len(dataset.answerable) + number, cell.label)
                if question.id in answered:
                    watch.known += 1
                    continue
                watch.asked += 1
                waiting.append(plain(ask(self._wb, corpus, question, cell.strategy, parameters, wanted)))
                if len(waiting) >= STORED_AT_ONCE:
                    self._runs.add_answers(row["id"], waiting)
                    waiting = []
        except Cancelled:
            self._runs.add_answers(row["id"], waiting)
            raise
        except WorkbenchError as error:
            self._runs.set_status(row["id"], "failed", str(error))
            return False
        self._runs.add_answers(row["id"], waiting)
        self._runs.set_status(row["id"], "done")
        return True

    def _result(self, experiment: Experiment, dataset: Dataset, row: Mapping[str, Any]) -> CellResult:
        run = None
        if row["status"] == "done":
            answers = {answer["question_id"]: _answer(answer) for answer in self._runs.answers(row["id"])}
            run = scored(dataset, row["strategy"], row["parameters"], answers, experiment.metrics)
        size = self._wb.corpus.indexes.bytes_on_disk(row["index_name"])
        cell = experiment.cells[row["position"]]
        place = (row["index_name"], size, row["error"], row["position"], row["extra"])
        return CellResult(cell, row["id"], row["status"], run, *place)


class _Watch:
    """Progress over the whole matrix, and the question whether to stop."""

    def __init__(self, total: int, on_progress: OnProgress | None, should_stop: Callable[[], bool] | None) -> None:
        self._total, self._on_progress, self.should_stop = total, on_progress, should_stop
        self._done, self._label = 0, ""
        self.asked = self.known = 0

    @property
    def summary(self) -> str:
        """How much was done now, and how much was there from before."""
        return f"{self.asked:,} questions asked; {self.known:,} answers were there already."

    def at(self, done: int, label: str) -> None:
        """Say how far it is. Raises Cancelled where somebody wants it to stop."""
        self._done, self._label = done, label
        if self.should_stop is not None and self.should_stop():
            raise Cancelled("Stopped; what was answered so far is kept.")
        self._tell(label)

    def end(self) -> None:
        """Say that nothing is left; it is too late to stop."""
        self._done = self._total
        self._tell("done")

    def indexing(self, progress: Progress) -> None:
        """Say that a corpus is being indexed first."""
        self._tell(f"{self._label}: indexing, {progress.message}")

    def _tell(self, message: str) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(self._done, self._total, message))


def _run_values(
    dataset: Dataset, corpus: IndexedCorpus, strategy: str, parameters: Mapping[str, Any], wanted: int
) -> dict[str, Any]:
    hashes = {
        "corpus_hash": corpus.corpus_hash,
        "index_hash": corpus.index_hash,
        "strategy_hash": strategy_hash(strategy, parameters),
        "questions_hash": dataset.asked_hash,
    }
    settings = {name: getattr(corpus.index, name) for name in ("chunker", "chunker_options", "embedding_model")}
    return hashes | {
        "key": hash_of([hashes, wanted]),
        "depth": wanted,
        "strategy": strategy,
        "parameters": dict(parameters),
        "index_name": corpus.index.name,
        "index_settings": settings,
        "questions": len(dataset.answerable),
    }


def _answer(row: Mapping[str, Any]) -> Answer:
    hits = tuple(Hit(**hit) for hit in row["passages"])
    return Answer(row["question_id"], tuple(row["documents"]), hits, row["latency_ms"], tuple(row["degraded"]))
