"""The history of a test set's experiments: winners in order, and sentences on weaknesses."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from evals.experiments.leaderboard import (
    Winner,
    describe_weaknesses,
    find_winner,
    load_winner,
    make_leaderboard,
    winner_trend,
)
from evals.experiments.runs import Cell, CellResult, Experiment, StrategyRun
from evals.test_set import Judgment, Question, TestSet

METRIC = "ndcg@10"


def make_run(strategy: str, values: list[float]) -> StrategyRun:
    return StrategyRun(strategy, {}, {}, {METRIC: {f"q{n}": value for n, value in enumerate(values)}})


def make_result(strategy: str, values: list[float]) -> CellResult:
    return CellResult(Cell(strategy), f"run_{strategy}", "done", make_run(strategy, values), "default")


def experiment(key: str, day: int, metric: str = METRIC) -> Experiment:
    began = datetime(2026, 1, day, tzinfo=UTC)
    return Experiment(key, key, "set_1", "Set", 1, "", "", "done", "", (), (metric,), None, began)


def won(one: Experiment, results: list[CellResult]) -> Winner:
    best = find_winner(one, results)
    assert best is not None
    return best


def questions(count: int, origin: str = "person", relevant: int = 2) -> TestSet:
    asked = tuple(Question(f"q{n}", f"{n}?", origin=origin) for n in range(count))
    judged = tuple(Judgment(question.id, f"d{place}") for question in asked for place in range(relevant))
    return TestSet("set", asked, judged)


def test_the_winner_has_the_highest_mean_and_its_interval() -> None:
    best = find_winner(experiment("one", 1), [make_result("vector", [0.2, 0.4]), make_result("hybrid", [0.5, 0.5])])
    assert best is not None and (best.label, best.score, best.interval) == ("hybrid", 0.5, (0.5, 0.5))
    assert find_winner(experiment("one", 1), []) is None


def test_a_trend_goes_from_the_oldest_to_the_newest_by_one_metric() -> None:
    better, worse = [make_result("rerank", [0.8])], [make_result("vector", [0.6])]
    new, old, other = experiment("new", 9), experiment("old", 2), experiment("other", 5)
    first, last = won(old, worse), won(new, better)
    winners = [last, first, replace(last, test_set_id="set_2"), replace(won(other, worse), metric="mrr@10")]
    assert [(win.experiment_id, win.score) for win in winner_trend(winners, "set_1")] == [("old", 0.6), ("new", 0.8)]
    assert winner_trend(winners, "set_3") == []


def test_a_winner_is_the_same_after_it_was_stored() -> None:
    began = experiment("one", 1)
    best = won(began, [make_result("vector", [0.2, 0.4]), make_result("hybrid", [0.5, 0.5])])
    assert load_winner(began, best.to_dict()) == best


def test_thin_generated_and_saturated_test_sets_are_named() -> None:
    runs = {"vector": make_run("vector", [0.97]), "hybrid": make_run("hybrid", [0.99])}
    said = describe_weaknesses(questions(12, "synthetic", relevant=1), runs, METRIC)
    assert [sentence.split()[0] for sentence in said] == ["There", "Each", "12", "Every"]
    assert describe_weaknesses(questions(40), {"vector": make_run("vector", [0.6])}, METRIC) == ()


def test_runs_with_the_same_score_are_a_tie_and_share_a_rank() -> None:
    names = ("vector", "keyword", "hybrid", "rerank", "mmr", "window", "feedback", "learned", "exact")
    results = [make_result(name, [0.5, 1.0]) for name in names]
    assert won(experiment("one", 1), results).tied == 9
    assert [line.rank for line in make_leaderboard([*results, make_result("last", [0.0, 0.5])], METRIC)] == [1] * 9 + [
        10
    ]
    assert won(experiment("one", 1), [*results[:1], make_result("best", [1.0, 1.0])]).tied == 1
