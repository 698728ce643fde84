"""Experiments in the queue: a real worker runs them, tells how far they are, and goes on with one that was stopped."""

from __future__ import annotations

import pytest

from evals.datasets import load_dataset
from evals.experiments import Experiments, matrix
from evals.jobs import enqueue_experiment, enqueue_optimise, job_of
from tests.evals.conftest import WriteDataset
from tests.evals.test_experiments import ASKED, MANY
from workbench import Workbench
from workbench.errors import ConfigurationError, Conflict, InvalidInput

LONG = 60.0  # seconds until a test gives up


@pytest.fixture
def words(wb: Workbench, beir: WriteDataset) -> str:
    return Experiments(wb).datasets.add(load_dataset(beir(MANY, ASKED))).id


def test_a_worker_runs_an_experiment_and_ragas_looks_at_its_texts(wb: Workbench, words: str) -> None:
    experiments = Experiments(wb)
    made = experiments.create("Two", words, matrix(["vector", "keyword"]))
    job = enqueue_experiment(wb, made.id, ragas="free")
    with pytest.raises(Conflict, match="queued already"):
        enqueue_experiment(wb, made.id)
    wb.work()
    done = wb.jobs.wait(job.id, timeout=LONG)
    assert (done.status, job_of(wb, made.id)) == ("completed", done)
    assert (done.done, done.total) == (8, 8)  # ragas' metrics of both runs
    ragas = [result.extra["ragas"] for result in experiments.results(made.id)]
    assert [found["id_context_recall"]["measured"] for found in ragas] == [12, 12]


def test_a_stopped_experiment_goes_on_and_asks_nothing_twice(wb: Workbench, words: str) -> None:
    experiments = Experiments(wb)
    made = experiments.create("Stopped", words, matrix(["vector", "keyword"]))
    first = enqueue_experiment(wb, made.id)
    wb.jobs.cancel(first.id)
    wb.work()
    assert wb.jobs.wait(first.id, timeout=LONG).status == "cancelled"
    again = enqueue_experiment(wb, made.id)
    finished = wb.jobs.wait(again.id, timeout=LONG)
    assert finished.message == "24 questions asked; 0 answers were there already."
    assert (finished.done, finished.total) == (24, 24)
    third = enqueue_experiment(wb, made.id)
    assert wb.jobs.wait(third.id, timeout=LONG).message == "0 questions asked; 24 answers were there already."


def test_a_search_for_parameters_leaves_its_finalists_with_its_job(
    wb: Workbench, words: str, beir: WriteDataset
) -> None:
    twice = ASKED | {f"r{key}": (f"What is {text}", grades) for key, (text, grades) in ASKED.items()}
    many = Experiments(wb).datasets.add(load_dataset(beir(MANY, twice, name="many"))).id
    job = enqueue_optimise(wb, many, ["keyword"], 0.5, "ndcg@10")
    wb.work()
    done = wb.jobs.wait(job.id, timeout=LONG)
    assert done.status == "completed", done.error
    assert any(finalist["is_default"] for finalist in done.result["finalists"])
    assert done.result["tuning_questions"] + done.result["held_out_questions"] == 24


def test_what_cannot_be_run_is_refused_before_it_is_queued(wb: Workbench, words: str) -> None:
    made = Experiments(wb).create("LLM", words, matrix(["vector"]))
    with pytest.raises(ConfigurationError, match="WORKBENCH_LLM_BASE_URL"):
        enqueue_experiment(wb, made.id, ragas="llm")
    with pytest.raises(InvalidInput, match="needs some seconds"):
        enqueue_optimise(wb, words, ["keyword"], 0, "ndcg@10")
    assert wb.jobs.list() == []
