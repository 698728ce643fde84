"""The sentence that compares a run with the live strategy, based on the paired test if there is one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evals.experiments.catalogue import Experiments, make_cells
from evals.experiments.runs import Cell, CellResult, StrategyRun
from evals.test_set import Question
from evals.test_sets.store import TestSetStore
from workbench import Workbench
from workbench.app.widgets.promoting import (
    PromotionCandidate,
    compare_with_live,
    find_joint_evidence,
    make_live_strategy,
)

METRIC = "ndcg@10"
SERVES = make_live_strategy(PromotionCandidate("rerank", {}, None), "main")
FLAT = (0.5,) * 12


def result(strategy: str, values: tuple[float, ...]) -> CellResult:
    run = StrategyRun(strategy, {}, {}, {METRIC: {f"q{n}": value for n, value in enumerate(values)}})
    return CellResult(Cell(strategy), f"run_{strategy}", "done", run, "main")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            (0.9,) * 12,
            "It is clearly better than Rerank, which is live</b>: +0.400, 95% CI +0.400 to +0.400; better: won 12",
        ),
        ((0.1,) * 12, "It is clearly worse than Rerank, which is live</b>: -0.400"),
        ((0.6, 0.4) * 6, "It is not clearly better than Rerank, which is live</b>: +0.000"),
        ((0.5, 0.4, 0.5) * 4, "It is not better than Rerank, which is live</b>: -0.033"),
        (FLAT, "It ties with Rerank, which is live</b>: equal on all 12 questions."),
    ],
)
def test_a_run_is_distinguished_from_what_serves_by_the_paired_test(values: tuple[float, ...], told: str) -> None:
    sentence = compare_with_live([result("keyword", values), result("rerank", FLAT)], METRIC, "run_keyword", SERVES)
    assert told in sentence
    assert ("Nothing in this experiment is clearly better." in sentence) == (values[0] < 0.9)


def test_another_run_that_is_clearly_better_is_not_denied() -> None:
    runs = [result("keyword", FLAT), result("hybrid", (0.9,) * 12), result("rerank", FLAT)]
    assert "Nothing in this experiment" not in compare_with_live(runs, METRIC, "run_keyword", SERVES)


def test_an_interval_without_zero_that_several_runs_make_chance_is_explained() -> None:
    ahead = (0.9,) * 7 + (0.5,) * 5 + (0.4,)
    others = [result(name, (0.6, 0.4) * 6 + (0.5,)) for name in ("vector", "hybrid", "window", "mmr", "feedback")]
    runs = [result("keyword", ahead), *others, result("rerank", (*FLAT, 0.5))]
    alone = compare_with_live([runs[0], runs[-1]], METRIC, "run_keyword", SERVES)
    among = compare_with_live(runs, METRIC, "run_keyword", SERVES)
    assert "It is clearly better" in alone
    assert (
        "too few questions to be sure: won 7, lost 1 of 8 differing questions, p = .016, but p = .094 after correcting"
        in among
    )


def test_what_serves_has_no_difference_to_itself_and_may_not_have_been_measured() -> None:
    runs = [result("keyword", FLAT), result("rerank", FLAT)]
    assert compare_with_live(runs, METRIC, "run_rerank", SERVES) == "It is already live."
    assert "This experiment does not include Rerank, which is live" in compare_with_live(
        runs[:1], METRIC, "run_keyword", SERVES
    )


def test_on_compare_the_newest_experiment_that_measured_both_is_asked(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    candidate = PromotionCandidate("keyword", {}, None)
    assert "No experiment includes both it and Rerank" in find_joint_evidence(wb, candidate, SERVES)
    wb.ingest(folder({"a.md": "The tide gauge.", "b.md": "The stilling well."}))
    store = TestSetStore(wb)
    made = store.create("Harbour <b>")
    store.add_questions(made.id, [Question("q1", "tide gauge")])
    store.judge(made.id, "q1", wb.documents.list()[0].id, "relevant")
    experiments = Experiments(wb)
    experiments.run(experiments.create("Both <i>", made.id, make_cells(["keyword", "rerank"])).id)
    told = find_joint_evidence(wb, candidate, SERVES)
    assert "It ties with Rerank, which is live</b>: equal on the one question." in told
    assert "(nDCG@10 in Both &lt;i&gt;, scope: all your documents)" in told
