"""Limits of judging: divided among strategies, set by settings and options, enforced at once, with reasons."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evals.background import enqueue_experiment, make_runners
from evals.command import add_arguments, evaluate
from evals.experiments.answers import read_answers
from evals.experiments.catalogue import Experiments, make_cells
from evals.experiments.runs import MAX_JUDGED, EvalRun, Ranking, answer_question, run_strategies
from evals.gateway import index_corpus
from evals.judges.endpoint import Endpoint, Limits
from evals.judges.judging import judge_run, resume_experiment
from evals.test_set import TestSet
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import StartJudge, WriteTestSet
from tests.evals.test_baseline import run
from tests.evals.test_shared_answers import count_prompts
from tests.llm_server import serving
from workbench import Workbench
from workbench.errors import Cancelled
from workbench.settings import Settings
from workbench.types import Progress

LONG = 30.0  # seconds until a test gives up; a silent judge is waited for 60


def test_a_share_is_an_even_part_of_what_is_left_and_leftovers_continue() -> None:
    judge = Endpoint("http://127.0.0.1:9/v1", "small", limits=Limits(calls=12, tokens=600))
    first = judge.share(3)
    assert (first.limits.calls, first.limits.tokens) == (4, 200)
    judge.spent.calls, judge.spent.tokens = 2, 300  # the first run left two calls over and took more tokens
    second = judge.share(2)
    assert (second.limits.calls - 2, second.limits.tokens - 300) == (5, 150)
    assert judge.share(1).limits == judge.limits


def test_every_strategy_is_judged_within_its_share(wb: Workbench, beir: WriteTestSet, start_judge: StartJudge) -> None:
    test_set = load_test_set(beir())
    corpus = index_corpus(wb, test_set)
    both = run_strategies(wb, test_set, corpus, ["vector", "keyword"])
    judge = start_judge("good", calls=14, at_once=1)  # each answer takes two
    judged = judge_run(wb, both, endpoint=judge, answers=answer_all(wb, test_set, both))
    assert judge.spent.calls == 14
    measured = {name: found["faithfulness"].measured for name, found in judged.items()}
    assert measured["vector"] == measured["keyword"] > 0
    assert "This run's share of the judge's calls is used up" in str(judged["vector"]["answer_relevancy"].reasons)


def test_the_reason_why_there_is_no_answer_is_kept(
    make_settings: Callable[..., Settings], beir: WriteTestSet, start_judge: StartJudge
) -> None:
    url = start_judge("busy")._base_url
    with Workbench.open(settings=make_settings(llm_base_url=url, llm_model="small")) as wb:
        payload, code, said = run(wb, str(beir()), "--strategies", "keyword", "--ragas", "llm")
    reason = "The LLM failed at one question, and those after it were not asked: The LLM 'small' at "
    assert code == 1 and payload["error"].startswith(reason) and "(429), 3 times" in payload["error"]
    assert payload["error"] in said
    reasons = payload["strategies"]["keyword"]["ragas"]["faithfulness"]["reasons"]
    assert reasons == {f"There is no answer: {payload['error']}": 5}


def test_the_searches_are_reported_before_answers_that_no_judge_needs(wb: Workbench, beir: WriteTestSet) -> None:
    def stop(progress: Progress) -> None:
        if progress.message == "answers":
            raise Cancelled("Stopped.")

    parser, lines = argparse.ArgumentParser(), list[str]()
    add_arguments(parser)
    arguments = parser.parse_args([str(beir()), "--strategies", "keyword", "--answers"])
    with pytest.raises(Cancelled):
        evaluate(wb, arguments, say=lines.append, on_progress=stop)
    assert "nDCG@10" in "\n".join(lines)


def test_answers_written_before_one_that_failed_are_judged(
    make_settings: Callable[..., Settings], beir: WriteTestSet, llm_url: str
) -> None:
    with Workbench.open(settings=make_settings(llm_base_url=llm_url, llm_model="picky")) as wb:  # not about honey, q4
        payload, code, _ = run(wb, str(beir()), "--strategies", "keyword", "--ragas", "llm")
    assert code == 1 and "The LLM 'picky' at " in payload["error"]
    reasons = payload["strategies"]["keyword"]["ragas"]["faithfulness"]["reasons"]
    assert reasons[f"There is no answer: {payload['error']}"] == 2


def test_answers_that_a_budget_left_out_have_it_as_their_reason(
    make_settings: Callable[..., Settings], beir: WriteTestSet, llm_url: str
) -> None:
    priced = make_settings(llm_base_url=llm_url, llm_model="plain", llm_price="900000/900000")
    with Workbench.open(settings=priced) as wb:
        payload, _, _ = run(wb, str(beir()), "--strategies", "keyword", "--ragas", "llm", "--budget", "1")
    reasons = payload["strategies"]["keyword"]["ragas"]["faithfulness"]["reasons"]
    assert reasons["There is no answer: The budget was used up before it."] == 4  # one answer costs more than that


def test_a_judge_judges_the_answers_of_the_run_and_the_passages_that_they_are_from(
    make_settings: Callable[..., Settings], beir: WriteTestSet, start_judge: StartJudge
) -> None:
    url = start_judge("good")._base_url
    with Workbench.open(settings=make_settings(llm_base_url=url, llm_model="small")) as wb:
        payload, code, _ = run(wb, str(beir()), "--strategies", "keyword", "--ragas", "llm", "--answers")
        experiments = Experiments(wb)
        test_set = experiments.test_sets.add(load_test_set(beir()))
        made = experiments.create("Judged", test_set.id, make_cells(["keyword"]))
        experiments.prepare(made.id, judge="built-in")
        assert resume_experiment(wb, made.id).status == "done"
        (result,) = experiments.results(made.id)
        answers = read_answers([result])["keyword"]
    answered, judged = payload["answers"]["keyword"], payload["strategies"]["keyword"]["ragas"]["faithfulness"]
    assert code == 0 and answered.usage["llm_calls"] == answers.usage["llm_calls"] == 1.0
    assert judged == result.extra["ragas"]["faithfulness"]
    assert (judged["mean"], judged["measured"]) == (1.0, 5)  # each is a sentence of a passage that it read


def test_only_questions_that_are_judged_are_answered_for_a_judge(
    make_settings: Callable[..., Settings], beir: WriteTestSet
) -> None:
    numbers = range(MAX_JUDGED + 7)
    texts = {f"d{n}": (f"House {n}", f"The cat sleeps in house {n}.") for n in numbers}
    asked = {f"q{n}": (f"What sleeps in house {n}?", {f"d{n}": 1}) for n in numbers}
    with (
        serving() as url,
        Workbench.open(settings=make_settings(llm_base_url=url, llm_model="good", judge_calls=5)) as wb,
    ):
        words = (str(beir(texts, asked)), "--strategies", "keyword", "--repeats", "2")
        _, code, said = run(wb, *words, "--ragas", "llm")
        assert code == 0 and len(count_prompts(url, "Question: What sleeps in house ")) == MAX_JUDGED
        assert f"{len(asked)} searches and {MAX_JUDGED} answers with about {12 * MAX_JUDGED} calls" in said
        experiments = Experiments(wb)
        made = experiments.create("Judged", experiments.test_sets.add(load_test_set(words[0])).id, ["keyword"])
        experiments.prepare(made.id, judge="built-in")
        assert resume_experiment(wb, made.id).status == "done" and not read_answers(experiments.results(made.id))
        assert len(count_prompts(url, "Question: What sleeps in house ")) == MAX_JUDGED
        payload, code, said = run(wb, *words, "--ragas", "llm", "--answers")
    assert code == 0 and payload["answers"]["keyword"].questions == len(asked)
    assert f"{2 * len(asked)} answers with about {2 * len(asked) + 11 * MAX_JUDGED} calls" in said


def answer_all(wb: Workbench, test_set: TestSet, run: EvalRun) -> dict[str, dict[str, Ranking]]:
    return {
        name: {one.id: answer_question(wb, run.corpus, one, name, {}) for one in test_set.answerable}
        for name in run.strategies
    }


def test_a_judge_spends_no_more_than_is_left_of_a_budget(
    wb: Workbench, beir: WriteTestSet, start_judge: StartJudge
) -> None:
    test_set = load_test_set(beir())
    both = run_strategies(wb, test_set, index_corpus(wb, test_set), ["vector", "keyword"])
    whole = start_judge("good", at_once=1)
    whole.limits = replace(whole.limits, price=(2.0, 10.0))
    answers = answer_all(wb, test_set, both)
    judge_run(wb, both, endpoint=whole, answers=answers)
    judge = start_judge("good", at_once=1, dollars=whole.spent.dollars / 2)
    judge.limits = replace(judge.limits, price=(2.0, 10.0))
    judged = judge_run(wb, both, endpoint=judge, answers=answers)
    assert 0.5 <= judge.spent.dollars / whole.spent.dollars < 0.6 and judge.spent.calls < whole.spent.calls
    assert "The budget was used up before this judgment." in str(judged["keyword"]["answer_relevancy"].reasons)


def test_limits_come_from_settings(make_settings: Callable[..., Settings]) -> None:
    limits = Limits.from_settings(make_settings(judge_seconds=30, judge_calls=7))
    assert (limits.seconds, limits.calls, limits.tokens) == (30.0, 7, 1_000_000)
    with pytest.raises(ValueError, match="judge_seconds"):
        make_settings(judge_seconds=0)


@pytest.fixture
def silent() -> Iterator[subprocess.Popen[str]]:
    """A judge that receives every question and never answers; it prints its port and a line per question."""
    module = [sys.executable, "-m", "tests.evals.judge_server", "silent"]
    process = subprocess.Popen(module, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    yield process
    process.kill()
    process.communicate()


def test_cancelling_an_experiment_does_not_wait_for_the_judge(
    make_settings: Callable[..., Settings], beir: WriteTestSet, silent: subprocess.Popen[str]
) -> None:
    assert silent.stdout is not None
    base = f"http://127.0.0.1:{int(silent.stdout.readline())}/v1"
    with Workbench.open(settings=make_settings(llm_base_url=base, llm_model="small")) as wb:
        experiments = Experiments(wb)
        made = experiments.create(
            "Judged", experiments.test_sets.add(load_test_set(beir())).id, make_cells(["keyword"])
        )
        job = enqueue_experiment(wb, made.id, ragas="llm")
        wb.work(make_runners(wb))
        assert silent.stdout.readline() == "asked\n"  # ragas is waiting, and would wait a minute for the answer
        wb.jobs.cancel(job.id)
        assert wb.jobs.wait(job.id, timeout=LONG).status == "cancelled"
