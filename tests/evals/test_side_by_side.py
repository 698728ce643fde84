"""Two experiments side by side: runs are matched, and differences are tested only if comparable."""

from __future__ import annotations

import pytest

from evals.experiments.catalogue import Experiments, make_cells
from evals.experiments.leaderboard import find_shared_metrics, pair_runs
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet
from workbench import Workbench
from workbench.errors import InvalidInput

METRIC = "ndcg@10"


@pytest.fixture
def experiments(wb: Workbench) -> Experiments:
    wb.indexes.create("small", chunker="sentence", options={"size": 16})
    return Experiments(wb)


def test_runs_of_one_name_are_next_to_each_other_and_others_alone(experiments: Experiments, beir: WriteTestSet) -> None:
    test_set = experiments.test_sets.add(load_test_set(beir())).id
    first = experiments.run(experiments.create("One", test_set, make_cells(["vector", "keyword"])).id)
    second = experiments.run(experiments.create("Two", test_set, make_cells(["keyword", "hybrid"])).id)
    pairs = pair_runs(experiments.results(first.id), experiments.results(second.id), METRIC)
    told = {pair.label: (pair.first is not None, pair.second is not None) for pair in pairs}
    assert told == {"vector": (True, False), "keyword": (True, True), "hybrid": (False, True)}
    keyword = next(pair for pair in pairs if pair.label == "keyword")
    assert keyword.first == keyword.second and keyword.difference is not None
    assert (keyword.difference.difference, keyword.difference.significant) == (0.0, False)
    best = [max(score.mean for score in (pair.first, pair.second) if score) for pair in pairs]
    assert best == sorted(best, reverse=True)


def test_other_judgments_are_shown_but_not_tested(experiments: Experiments, beir: WriteTestSet) -> None:
    test_set = experiments.test_sets.add(load_test_set(beir())).id
    first = experiments.run(experiments.create("One", test_set, make_cells(["keyword"])).id)
    results = experiments.results(first.id)
    assert [pair.difference for pair in pair_runs(results, results, METRIC, paired=False)] == [None]


def test_fewer_questions_are_not_tested_against_more(experiments: Experiments, beir: WriteTestSet) -> None:
    test_set = experiments.test_sets.add(load_test_set(beir())).id
    all_of_them = experiments.run(experiments.create("All", test_set, make_cells(["keyword"])).id)
    two = experiments.run(experiments.create("Two", test_set, make_cells(["keyword"]), limit_queries=2).id)
    pairs = pair_runs(experiments.results(all_of_them.id), experiments.results(two.id), METRIC)
    assert [pair.difference for pair in pairs] == [None]


def test_a_metric_that_one_lacks_is_refused(experiments: Experiments, beir: WriteTestSet) -> None:
    test_set = experiments.test_sets.add(load_test_set(beir())).id
    first = experiments.run(experiments.create("One", test_set, make_cells(["keyword"]), metrics=[METRIC]).id)
    second = experiments.run(experiments.create("Two", test_set, make_cells(["keyword"]), metrics=["mrr@10"]).id)
    before, after = experiments.results(first.id), experiments.results(second.id)
    assert find_shared_metrics(before, after) == []
    with pytest.raises(InvalidInput, match="was not measured in both"):
        pair_runs(before, after, METRIC)


def test_a_winner_is_kept_until_the_experiment_runs_again(experiments: Experiments, beir: WriteTestSet) -> None:
    test_set = experiments.test_sets.add(load_test_set(beir())).id
    done = experiments.run(experiments.create("One", test_set, make_cells(["vector", "keyword"])).id)
    waiting = experiments.create("Two", test_set, make_cells(["vector"]))
    listed = experiments.list()
    found = experiments.winners(listed)
    assert set(found) == {done.id} and waiting.id not in found
    best = max((result.run.means[METRIC], result.cell.label) for result in experiments.results(done.id) if result.run)
    assert found[done.id].score == pytest.approx(best[0])
    assert experiments.winners(listed) == found
