"""An experiment shared by several workers: each share runs once, and again only if its worker died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from evals.background import enqueue_experiment, make_runners
from evals.experiments.catalogue import Experiments, make_cells
from evals.experiments.runs import SHARE_QUESTIONS, Experiment, run_strategies
from evals.gateway import index_corpus
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet
from tests.evals.test_experiments import MANY, WORDS
from tests.jobs.shared_work import taken_again
from workbench import Workbench
from workbench.storage.database import statement

LONG = 120.0  # seconds until a test gives up
STRATEGIES = ("keyword", "hybrid")
QUESTIONS = {
    f"q{n:03}": (f"Where is the {WORDS[n % len(WORDS)]}, number {n}?", {WORDS[n % len(WORDS)]: 1})
    for n in range(SHARE_QUESTIONS + 20)
}
SHARES = len(STRATEGIES) * 2


@pytest.fixture
def experiment(wb: Workbench, beir: WriteTestSet) -> Experiment:
    experiments = Experiments(wb)
    test_set = experiments.test_sets.add(load_test_set(beir(MANY, QUESTIONS))).id
    return experiments.create("Together", test_set, make_cells(STRATEGIES))


@contextmanager
def no_answers(database_url: str) -> Generator[None]:
    """Prevent all processes from storing an answer inside the block."""
    with psycopg.connect(database_url) as connection:
        connection.execute("LOCK TABLE eval_answers IN EXCLUSIVE MODE")
        yield


@pytest.fixture
def worker(database_url: str, test_home: Path) -> Callable[[], subprocess.Popen[bytes]]:
    """Start ``workbench worker`` as a separate process."""
    settings = {"HOME": str(test_home), "DATABASE_URL": database_url, "EMBEDDING_MODEL": "hash"}
    environment = os.environ | {f"WORKBENCH_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "workbench.cli", "worker"]
    return lambda: subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)


def asked_alone(wb: Workbench, experiment: Experiment) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the documents of every answer, computed here and not stored."""
    test_set = Experiments(wb).test_set(experiment)
    runs = run_strategies(wb, test_set, index_corpus(wb, test_set), STRATEGIES).strategies
    return {name: {key: answer.documents for key, answer in runs[name].answers.items()} for name in STRATEGIES}


def stored(wb: Workbench, experiment: Experiment) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the documents of every stored answer of the experiment's runs."""
    results = Experiments(wb).results(experiment.id)
    return {each.cell.strategy: {k: a.documents for k, a in each.run.answers.items()} for each in results if each.run}


def test_two_workers_ask_an_experiment_and_a_killed_one_costs_the_share_it_had_in_hand(
    wb: Workbench, database_url: str, experiment: Experiment, worker: Callable[[], subprocess.Popen[bytes]]
) -> None:
    with no_answers(database_url):
        job = enqueue_experiment(wb, experiment.id)
        processes = [worker(), worker()]
        while wb.jobs.table.parts.tally(job.id).holders < 2:
            assert all(process.poll() is None for process in processes)
            time.sleep(0.05)
        leader = wb.jobs.get(job.id).worker
        assert leader is not None
        [dies] = [process for process in processes if not leader.endswith(f"/{process.pid}")]
        dies.send_signal(signal.SIGKILL)
        dies.wait()
    done = wb.jobs.wait(job.id, timeout=LONG)
    [survivor] = [process for process in processes if process is not dies]
    survivor.terminate()
    survivor.wait()
    assert (done.status, done.done, done.total) == ("completed", 2 * len(QUESTIONS), 2 * len(QUESTIONS))
    assert wb.jobs.table.parts.tally(job.id).done == SHARES
    assert taken_again(database_url, job.id) == 1
    assert stored(wb, experiment) == asked_alone(wb, experiment)


def test_all_workers_stop_when_an_experiment_is_cancelled_and_it_continues_later(
    wb: Workbench, database_url: str, experiment: Experiment
) -> None:
    workers = [wb.start_worker(make_runners(wb)), wb.start_worker(make_runners(wb))]
    with no_answers(database_url):
        job = enqueue_experiment(wb, experiment.id)
        while wb.jobs.table.parts.tally(job.id).holders < 2:
            assert all(each.is_alive for each in workers)
            time.sleep(0.05)
        wb.jobs.cancel(job.id)
    assert wb.jobs.wait(job.id, timeout=LONG).status == "cancelled"
    while wb.jobs.table.parts.tally(job.id).holders:
        assert all(each.is_alive for each in workers)
        time.sleep(0.05)
    assert Experiments(wb).get(experiment.id).status == "stopped"
    wb.jobs.resume(job.id)
    done = wb.jobs.wait(job.id, timeout=LONG)
    for each in workers:
        each.stop()
    assert (done.status, Experiments(wb).get(experiment.id).status) == ("completed", "done")
    assert stored(wb, experiment) == asked_alone(wb, experiment)


def test_a_cell_that_cannot_be_run_is_reported_once_and_the_others_are_asked(wb: Workbench, beir: WriteTestSet) -> None:
    experiments = Experiments(wb)
    test_set = experiments.test_sets.add(load_test_set(beir(MANY, QUESTIONS))).id
    made = experiments.create("One fails", test_set, make_cells(("multi-query", "keyword")))  # no language model here
    job = enqueue_experiment(wb, made.id)
    handle = wb.start_worker(make_runners(wb))
    done = wb.jobs.wait(job.id, timeout=LONG)
    handle.stop()
    assert (done.status, done.result["failed"]) == ("completed_with_errors", 1)
    assert done.message.startswith(f"1 of 2 runs failed. {len(QUESTIONS)} questions run")
    failed, whole = experiments.results(made.id)
    assert (failed.status, whole.status) == ("failed", "done")
    assert failed.error and wb.corpus.database.rows(statement("answer_list"), {"run_id": failed.run_id}) == []
