"""Answers of an experiment: kept one by one, written by any worker, and ended by a budget."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from evals.background import enqueue_experiment, make_runners
from evals.experiments.catalogue import Experiments
from evals.experiments.runs import JUDGED_AT_ONCE, CellRuns
from evals.judges.judging import make_judging, resume_experiment
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet
from tests.evals.test_baseline import run
from tests.evals.test_conversations import count_answers
from tests.evals.test_experiments import ASKED, MANY
from tests.llm_server import serving
from workbench import Workbench
from workbench.errors import InvalidInput
from workbench.settings import Settings

LONG = 120.0  # seconds until a test gives up
MORE = ASKED | {f"{key}-{n}": (f"{text[:-1]}, asked {n} times?", grades) for n in (2, 3, 4)
                for key, (text, grades) in ASKED.items()}  # fmt: skip


@pytest.fixture
def own_llm() -> Iterator[str]:
    """An endpoint of this test alone, which counts the prompts."""
    with serving() as url:
        yield url


@pytest.fixture
def llm_wb(make_settings: Callable[..., Settings], own_llm: str) -> Iterator[Workbench]:
    settings = make_settings(llm_base_url=own_llm, llm_model="late-60", llm_price="2/10")
    with Workbench.open(settings=settings) as workbench:
        yield workbench


def count_prompts(url: str, start: str = "") -> list[int]:
    """Return how often each prompt was sent, of those with a start."""
    with urllib.request.urlopen(f"{url}?{urlencode({'start': start})}") as reply:
        return [int(number) for number in reply.read().decode().strip("[]").split(",") if number.strip()]


@pytest.fixture
def start_worker(database_url: str, test_home: Path, own_llm: str) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Start ``workbench worker`` as a separate process."""
    settings = {"HOME": str(test_home), "DATABASE_URL": database_url, "EMBEDDING_MODEL": "hash"}
    settings |= {"LLM_BASE_URL": own_llm, "LLM_MODEL": "late-60", "LLM_PRICE": "2/10"}
    environment = os.environ | {f"WORKBENCH_{name}": value for name, value in settings.items()}
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "workbench.cli", "worker"]
        started.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL))
        return started[-1]

    yield start
    for process in started:
        process.terminate()
        process.wait()


def start_two(wb: Workbench, start_worker: Callable[[], subprocess.Popen[bytes]]) -> list[subprocess.Popen[bytes]]:
    """Start two workers and return when both wait for jobs, so that neither has done all when the other arrives."""
    started = [start_worker(), start_worker()]
    while wb.health.work().workers < 2:
        assert all(one.poll() is None for one in started)
        time.sleep(0.02)
    return started


def test_a_worker_killed_in_the_middle_of_the_answers_loses_the_one_it_waits_for(
    llm_wb: Workbench,
    beir: WriteTestSet,
    start_worker: Callable[[], subprocess.Popen[bytes]],
    own_llm: str,
) -> None:
    experiments = Experiments(llm_wb)
    test_set = experiments.test_sets.add(load_test_set(beir(MANY, MORE))).id
    made = experiments.create("Killed", test_set, ["keyword", "hybrid"], metrics=["mrr@10"], answers=True)
    first, second = start_two(llm_wb, start_worker)
    job = enqueue_experiment(llm_wb, made.id)
    while count_answers(experiments, made.id) < 20 or llm_wb.jobs.table.parts.tally(job.id).holders < 2:
        assert first.poll() is None and second.poll() is None and not llm_wb.jobs.get(job.id).is_finished
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    done = llm_wb.jobs.wait(job.id, timeout=LONG)
    assert done.status == "completed"
    counts = count_prompts(own_llm)
    asked_twice = sum(times - 1 for times in counts)
    assert count_answers(experiments, made.id) == 2 * len(MORE)
    shared = 2 * len(MORE) - len(counts)  # both strategies found the same passages, so the prompts are equal
    assert asked_twice - shared <= 1
    scores, _ = experiments.answers(made.id)
    assert [one.questions for one in scores.values()] == [len(MORE)] * 2


def test_a_budget_ends_an_experiment_between_two_answers_and_a_higher_one_continues(
    llm_wb: Workbench, beir: WriteTestSet
) -> None:
    experiments = Experiments(llm_wb)
    test_set = experiments.test_sets.add(load_test_set(beir(MANY, ASKED))).id
    whole = experiments.run(experiments.create("All", test_set, ["keyword"], metrics=["mrr@10"], answers=True).id)
    [scores] = experiments.answers(whole.id)[0].values()
    assert scores.dollars is not None and scores.usage["llm_calls"] == 1.0
    expected = (scores.usage["llm_input_tokens"] * 2 + scores.usage["llm_output_tokens"] * 10) / 1e6
    assert scores.dollars == pytest.approx(expected, rel=1e-4)
    budget = scores.dollars * 4.5
    made = experiments.create("Few", test_set, ["hybrid"], metrics=["mrr@10"], answers=True, budget=budget)
    stopped = experiments.run(made.id)
    kept = count_answers(experiments, made.id)
    assert stopped.status == "stopped" and 4 <= kept <= 6
    assert f"0 searches and {12 - kept} answers are left out" in stopped.message
    assert experiments.answers(made.id) == ({}, [])  # an incomplete set of answers is not compared
    more = experiments.create("More", test_set, ["hybrid"], metrics=["mrr@10"], answers=True, budget=budget * 10)
    done = experiments.run(more.id)
    assert done.status == "done"
    assert done.message == f"0 questions run, 12 cached. {12 - kept} answers written, {kept} cached."
    longer = experiments.create("Resumed", test_set, ["fuzzy"], metrics=["mrr@10"], answers=True, budget=budget)
    assert experiments.run(longer.id).status == experiments.run(longer.id).status == "stopped"
    assert "Resume it with a higher budget: workbench experiments resume" in experiments.get(longer.id).message
    resumed = experiments.run(longer.id, budget=budget * 10)
    assert (resumed.status, resumed.budget) == ("done", budget * 10)
    with pytest.raises(InvalidInput, match="Invalid budget 0"):
        experiments.run(longer.id, budget=0.0)
    with pytest.raises(InvalidInput, match="Invalid budget 0"):
        experiments.create("None", test_set, ["hybrid"], budget=0.0)


def test_the_command_estimates_answers_and_its_budget_ends_between_two(llm_wb: Workbench, beir: WriteTestSet) -> None:
    place = str(beir())
    words = (place, "--strategies", "keyword,hybrid", "--metrics", "mrr@10", "--answers")
    _, _, said = run(llm_wb, *words)
    assert "The cost of 10 searches and 10 answers with about 10 calls of an LLM is not known before: it" in said
    assert "depends on the answers of the LLM" in said
    payload, _, said = run(llm_wb, *words)  # now the corpus is indexed
    assert "calls of an LLM, which reads about " in said and " tokens, cost $" in said
    assert "it depends on what the LLM writes; a pilot" in said
    assert llm_wb.estimate(place, ["keyword", "hybrid"], answers=True) in said
    dollars = payload["answers"]["hybrid"].dollars
    assert dollars and "The answers cost $" in said and "LLM tokens" in said
    payload, _, said = run(llm_wb, *words, "--budget", str(dollars * 7.5))
    assert len(payload["answers"]) == 1
    [left_out] = [note for note in payload["notes"] if note.startswith("Answers left out")]
    assert "(2 of 5 not written)" in left_out and left_out in said
    payload, _, said = run(llm_wb, *words, "--budget", str(dollars / 2))
    assert payload["answers"] == {} and "Answers left out" in said and "Answers: holding" not in said


def test_a_run_is_saved_although_the_llm_fails_its_answers(
    make_settings: Callable[..., Settings], own_llm: str, beir: WriteTestSet, tmp_path: Path
) -> None:
    saved = tmp_path / "run.json"
    settings = make_settings(llm_base_url=own_llm, llm_model="garbled")
    with Workbench.open(settings=settings) as wb:
        payload, code, said = run(wb, str(beir()), "--strategies", "keyword", "--answers", "--save", str(saved))
    assert code == 1 and "did not return a chat message" in payload["error"] and payload["error"] in said
    assert payload["strategies"]["keyword"]["mrr@10"] > 0 and "answers" not in payload
    assert '"keyword"' in saved.read_text()


def test_an_llm_that_fails_fails_the_answers_and_not_the_searches(
    make_settings: Callable[..., Settings], own_llm: str, beir: WriteTestSet
) -> None:
    with Workbench.open(settings=make_settings(llm_base_url=own_llm, llm_model="garbled")) as wb:
        experiments = Experiments(wb)
        test_set = experiments.test_sets.add(load_test_set(beir())).id
        made = experiments.run(experiments.create("F", test_set, ["keyword"], metrics=["mrr@10"], answers=True).id)
        [result] = experiments.results(made.id)
        assert made.message.startswith("1 of 1 runs failed.") and result.run is not None
        assert result.error is not None and "did not return a chat message" in result.error
        assert experiments.answers(made.id) == ({}, [])


def test_another_threshold_of_refusals_is_another_answer(wb: Workbench, beir: WriteTestSet) -> None:
    experiments = Experiments(wb)
    test_set = experiments.test_sets.add(load_test_set(beir())).id
    first = experiments.run(experiments.create("A", test_set, ["keyword"], metrics=["mrr@10"], answers=True).id)
    [result] = experiments.results(first.id)
    wb.indexes.set_threshold(result.index_name, 0.9)
    second = experiments.run(experiments.create("B", test_set, ["keyword"], metrics=["mrr@10"], answers=True).id)
    assert second.message == "0 questions run, 5 cached. 5 answers written, 0 cached."


def count_judged(experiments: Experiments, experiment_id: str) -> int:
    """Return the number of stored verdicts of an experiment's judge."""
    [judged] = experiments.verdicts(experiments.get(experiment_id), "built-in").values() or [[]]
    return len(judged)


def test_a_worker_killed_in_the_middle_of_judging_loses_the_questions_it_waits_for(
    llm_wb: Workbench,
    beir: WriteTestSet,
    start_worker: Callable[[], subprocess.Popen[bytes]],
    own_llm: str,
) -> None:
    experiments = Experiments(llm_wb)
    test_set = experiments.test_sets.add(load_test_set(beir(MANY, MORE))).id
    made = experiments.create("Killed", test_set, ["keyword"], metrics=["mrr@10"])
    worker = start_worker()
    job = enqueue_experiment(llm_wb, made.id, ragas="llm")
    while count_judged(experiments, made.id) < 8:
        assert worker.poll() is None and not llm_wb.jobs.get(job.id).is_finished
        time.sleep(0.02)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert count_judged(experiments, made.id) < len(MORE)
    start_worker()
    assert llm_wb.jobs.wait(job.id, timeout=LONG).status == "completed"
    assert count_judged(experiments, made.id) == len(MORE)
    [result] = experiments.results(made.id)
    assert result.extra["ragas"]["id_context_recall"]["measured"] == len(MORE)
    assert result.extra["judge"]["model"] == "late-60"
    answers = count_prompts(own_llm, "Question: ")
    assert len(answers) == len(MORE) and sum(times - 1 for times in answers) <= JUDGED_AT_ONCE


def test_an_answer_that_a_judge_needs_before_it_is_written_is_stored_counted_and_judged(
    llm_wb: Workbench, beir: WriteTestSet, own_llm: str
) -> None:
    experiments = Experiments(llm_wb)
    test_set = experiments.test_sets.add(load_test_set(beir(MANY, ASKED)))
    made = experiments.create("Early", test_set.id, ["keyword"], metrics=["mrr@10"])
    experiments.prepare(made.id, judge="built-in")
    made = experiments.get(made.id)
    judge, _ = make_judging(llm_wb, made)
    runs = CellRuns(llm_wb, made, experiments.test_set(made), judge=judge)
    *others, judging = runs.shares()
    assert made.cells[judging.cell].judge and runs.answer(judging).asked == len(ASKED)
    assert count_answers(experiments, made.id) == 2 * len(ASKED)  # the answers and the verdicts
    for share in others:
        runs.answer(share)
    assert count_prompts(own_llm, "Question: ") == [1] * len(ASKED)
    [result] = experiments.results(made.id)
    assert result.status == "done" and experiments.answers(made.id)[0]["keyword"].questions == len(ASKED)


def test_a_question_that_the_llm_does_not_answer_is_judged_with_the_reason(
    make_settings: Callable[..., Settings], own_llm: str, beir: WriteTestSet
) -> None:
    with Workbench.open(settings=make_settings(llm_base_url=own_llm, llm_model="picky")) as wb:
        experiments = Experiments(wb)
        test_set = experiments.test_sets.add(load_test_set(beir())).id
        made = experiments.create("Picky", test_set, ["keyword"], metrics=["mrr@10"])
        experiments.prepare(made.id, judge="built-in")
        resume_experiment(wb, made.id)
        [verdicts] = experiments.verdicts(experiments.get(made.id), "built-in").values()
    reasons = {one["question_id"]: one["scores"]["faithfulness"] for one in verdicts}
    assert len(reasons) == 5 and str(reasons.pop("q4")).startswith("There is no answer: The LLM 'picky' ")
    assert "There is no answer" not in str(reasons)


def test_another_threshold_of_refusals_is_judged_again(llm_wb: Workbench, beir: WriteTestSet) -> None:
    experiments = Experiments(llm_wb)
    test_set = experiments.test_sets.add(load_test_set(beir())).id
    messages: list[str] = []
    for _ in range(2):
        made = experiments.create("", test_set, ["keyword"], metrics=["mrr@10"])
        experiments.prepare(made.id, judge="built-in")
        messages.append(resume_experiment(llm_wb, made.id).message)
        [result] = experiments.results(made.id)
        llm_wb.indexes.set_threshold(result.index_name, 0.9)
    assert messages[1] == "0 questions run, 5 cached. 5 questions judged, 0 cached."


def test_judging_stops_with_the_budget_and_continues_with_a_higher_one(llm_wb: Workbench, beir: WriteTestSet) -> None:
    experiments = Experiments(llm_wb)
    test_set = experiments.test_sets.add(load_test_set(beir(MANY, ASKED))).id
    made = experiments.create("Judged", test_set, ["keyword"], metrics=["mrr@10"], answers=True)
    with pytest.raises(InvalidInput, match="Invalid budget -1"):
        enqueue_experiment(llm_wb, made.id, ragas="llm", budget=-1)
    assert experiments.get(made.id) == made and not llm_wb.jobs.list()  # neither a judge nor a job
    made = experiments.run(made.id)
    answered = len(ASKED) * (experiments.answers(made.id)[0]["keyword"].dollars or 0)
    job = enqueue_experiment(llm_wb, made.id, ragas="llm", budget=answered + 1e-6)
    worker = llm_wb.start_worker(make_runners(llm_wb))
    llm_wb.jobs.wait(job.id, timeout=LONG)
    stopped = experiments.get(made.id)
    assert (stopped.status, count_judged(experiments, made.id)) == ("stopped", JUDGED_AT_ONCE)
    assert f"and {len(ASKED) - JUDGED_AT_ONCE} questions not judged" in stopped.message
    again = enqueue_experiment(llm_wb, made.id, budget=1.0)
    llm_wb.jobs.wait(again.id, timeout=LONG)
    worker.stop()
    assert (experiments.get(made.id).status, count_judged(experiments, made.id)) == ("done", len(ASKED))
    assert experiments.get(made.id).message.endswith("8 questions judged, 4 cached.")
