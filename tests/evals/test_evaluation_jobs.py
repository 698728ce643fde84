"""Experiments in the queue: a real worker runs them, reports progress, and resumes a stopped one."""

from __future__ import annotations

import itertools
import threading
from contextlib import suppress

import pytest

from evals.background import enqueue_experiment, enqueue_optimise, find_job, make_runners
from evals.experiments.catalogue import Experiments, make_cells
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet
from tests.evals.test_experiments import ASKED, MANY
from workbench import Workbench
from workbench.errors import Cancelled, ConfigurationError, Conflict, InvalidInput
from workbench.storage.database import statement
from workbench.types import Progress

LONG = 60.0  # seconds until a test gives up


@pytest.fixture
def words(wb: Workbench, beir: WriteTestSet) -> str:
    return Experiments(wb).test_sets.add(load_test_set(beir(MANY, ASKED))).id


def test_a_worker_runs_an_experiment_and_ragas_looks_at_its_texts(wb: Workbench, words: str) -> None:
    experiments = Experiments(wb)
    made = experiments.create("Two", words, make_cells(["vector", "keyword"]))
    job = enqueue_experiment(wb, made.id, ragas="free")
    with pytest.raises(Conflict, match="already queued"):
        enqueue_experiment(wb, made.id)
    wb.work(make_runners(wb))
    done = wb.jobs.wait(job.id, timeout=LONG)
    assert (done.status, find_job(wb, made.id)) == ("completed", done)
    assert (done.done, done.total) == (48, 48)  # 12 questions asked and 12 judged, of both runs
    ragas = [result.extra["ragas"] for result in experiments.results(made.id)]
    assert [figures["id_context_recall"]["measured"] for figures in ragas] == [12, 12]


def test_a_stopped_experiment_continues_and_asks_nothing_twice(wb: Workbench, words: str) -> None:
    """The first job is stopped during the first of two runs: after some answers and before all."""
    experiments = Experiments(wb)
    made = experiments.create("Stopped", words, make_cells(["vector", "keyword"]))
    looks = itertools.count()
    with pytest.raises(Cancelled):
        experiments.run(made.id, should_stop=lambda: next(looks) > 10)
    (begun,) = experiments.results(made.id)
    kept = wb.corpus.database.rows(statement("answer_list"), {"run_id": begun.run_id})
    assert 0 < len(kept) < 12
    again = enqueue_experiment(wb, made.id)
    wb.work(make_runners(wb))
    finished = wb.jobs.wait(again.id, timeout=LONG)
    assert finished.message == f"{24 - len(kept)} questions run, {len(kept)} cached."
    assert (finished.done, finished.total) == (24, 24)
    third = enqueue_experiment(wb, made.id)
    assert wb.jobs.wait(third.id, timeout=LONG).message == "0 questions run, 24 cached."


def test_a_search_for_parameters_leaves_its_finalists_with_its_job(
    wb: Workbench, words: str, beir: WriteTestSet
) -> None:
    twice = ASKED | {f"r{key}": (f"What is {text}", grades) for key, (text, grades) in ASKED.items()}
    many = Experiments(wb).test_sets.add(load_test_set(beir(MANY, twice, name="many"))).id
    job = enqueue_optimise(wb, many, ["hybrid"], 2, "ndcg@10")
    wb.work(make_runners(wb))
    done = wb.jobs.wait(job.id, timeout=LONG)
    assert done.status == "completed", done.error
    assert any(finalist["is_default"] for finalist in done.result["finalists"])
    assert done.result["tuning_questions"] + done.result["held_out_questions"] == 24


def test_a_stopped_search_for_parameters_continues_with_the_time_that_was_left(
    wb: Workbench, beir: WriteTestSet
) -> None:
    twice = ASKED | {f"r{key}": (f"What is {text}", grades) for key, (text, grades) in ASKED.items()}
    many = Experiments(wb).test_sets.add(load_test_set(beir(MANY, twice, name="many"))).id
    job = enqueue_optimise(wb, many, ["hybrid"], 4, "ndcg@10")
    stopping = threading.Thread(target=cancel_once_it_searches, args=(wb, job.id))
    stopping.start()
    wb.work(make_runners(wb))
    stopped = wb.jobs.wait(job.id, timeout=LONG)
    stopping.join()
    assert (stopped.status, stopped.result) == ("cancelled", {})
    wb.jobs.resume(job.id)
    done = wb.jobs.wait(job.id, timeout=LONG)
    assert done.status == "completed", done.error
    assert done.result["seconds"] >= stopped.done >= 1  # seconds of the first attempt count
    took = f"Tried {done.result['tried']} settings in {done.result['seconds']:.0f} s of 4, "
    assert done.message.startswith(took)


def cancel_once_it_searches(wb: Workbench, job_id: str) -> None:
    """Cancel a search after it has run for one second."""

    def stop(progress: Progress) -> None:
        if "settings tried" in progress.message and progress.done >= 1:
            with suppress(Conflict):
                wb.jobs.cancel(job_id)

    wb.jobs.wait(job_id, timeout=LONG, on_progress=stop)


def test_what_cannot_be_run_is_refused_before_it_is_queued(wb: Workbench, words: str) -> None:
    made = Experiments(wb).create("LLM", words, make_cells(["vector"]))
    with pytest.raises(ConfigurationError, match="WORKBENCH_LLM_BASE_URL"):
        enqueue_experiment(wb, made.id, ragas="llm")
    with pytest.raises(InvalidInput, match="needs a time limit above 0 seconds"):
        enqueue_optimise(wb, words, ["keyword"], 0, "ndcg@10")
    assert wb.jobs.list() == []
