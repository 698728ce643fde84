"""Limits of judging: divided among strategies, set by settings and options, enforced at once, with reasons."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evals.background import enqueue_experiment, make_runners
from evals.experiments.catalogue import Experiments, make_cells
from evals.experiments.runs import run_strategies
from evals.gateway import index_corpus
from evals.judges.endpoint import Endpoint, Limits
from evals.judges.judging import judge_run
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import StartJudge, WriteTestSet
from workbench import Workbench
from workbench.settings import Settings

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
    judge = start_judge("good", calls=24, at_once=1)
    judged = judge_run(wb, both, endpoint=judge)
    assert judge.spent.calls == 24
    measured = {name: found["faithfulness"].measured for name, found in judged.items()}
    assert measured["vector"] == measured["keyword"] > 0
    assert "This run's share of the judge's calls is used up" in str(judged["vector"]["answer_relevancy"].reasons)


def test_the_reason_why_there_is_no_answer_is_kept(wb: Workbench, beir: WriteTestSet, start_judge: StartJudge) -> None:
    test_set = load_test_set(beir())
    one = run_strategies(wb, test_set, index_corpus(wb, test_set), ["keyword"])
    judged = judge_run(wb, one, endpoint=start_judge("busy", retries=0))["keyword"]
    assert judged["faithfulness"].reasons == {"There is no answer: The judge answered with HTTP status 429.": 5}


def test_a_judge_spends_no_more_than_is_left_of_a_budget(
    wb: Workbench, beir: WriteTestSet, start_judge: StartJudge
) -> None:
    test_set = load_test_set(beir())
    both = run_strategies(wb, test_set, index_corpus(wb, test_set), ["vector", "keyword"])
    whole = start_judge("good", at_once=1)
    whole.limits = replace(whole.limits, price=(2.0, 10.0))
    judge_run(wb, both, endpoint=whole)
    judge = start_judge("good", at_once=1, dollars=whole.spent.dollars / 2)
    judge.limits = replace(judge.limits, price=(2.0, 10.0))
    judged = judge_run(wb, both, endpoint=judge)
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
