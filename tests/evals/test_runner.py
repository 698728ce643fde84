"""Runs of every strategy over every question, measured by document."""

from __future__ import annotations

from typing import Any

import pytest

from evals.experiments import report, runs
from evals.experiments.runs import SEARCH_LIMIT
from evals.gateway import index_corpus
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet, lines
from workbench import Workbench
from workbench.errors import Cancelled, InvalidInput
from workbench.types import Progress


def test_every_strategy_is_measured_on_every_question(wb: Workbench, beir: WriteTestSet) -> None:
    test_set, seen = load_test_set(beir()), []
    run = runs.run_strategies(wb, test_set, index_corpus(wb, test_set), on_progress=seen.append)
    assert tuple(run.strategies) == runs.default_strategies()
    assert seen[-1] == Progress(5 * len(run.strategies), 5 * len(run.strategies), list(run.strategies)[-1])
    for strategy in run.strategies.values():
        assert strategy.answers.keys() == test_set.qrels.keys()
        assert strategy.means["hit@1"] >= 0.8
        assert 0 < strategy.latency_ms["p50"] <= strategy.latency_ms["p95"]


def test_the_best_passage_of_a_document_counts_and_a_long_document_hides_no_other(
    wb: Workbench, beir: WriteTestSet
) -> None:
    long = "\n\n".join(f"Cats purr. Paragraph {number} says again that cats purr. " * 20 for number in range(30))
    texts = {"long": ("Long", long)} | {f"d{n}": (f"Small {n}", f"Note {n}: some cats purr.") for n in range(12)}
    test_set = load_test_set(beir(texts, {"q": ("cats purr", {"d0": 1})}))
    corpus = index_corpus(wb, test_set)
    answer = runs.run_strategies(wb, test_set, corpus, ["keyword"]).strategies["keyword"].answers["q"]
    assert len(answer.passages) == SEARCH_LIMIT
    assert len(answer.documents) == len(set(answer.documents)) == 13


def test_metrics_deeper_than_a_search_can_go_see_all_that_it_can_find(wb: Workbench, beir: WriteTestSet) -> None:
    texts = {f"d{number}": (f"Cat {number}", f"Cats purr, said number {number}.") for number in range(30)}
    test_set = load_test_set(beir(texts, {"q": ("Why do cats purr?", dict.fromkeys(texts, 1))}))
    found = runs.run_strategies(wb, test_set, index_corpus(wb, test_set), ["vector"], ["recall@30", "recall@1000"])
    assert found.strategies["vector"].means == {"recall@30": 1.0, "recall@1000": 1.0}


def test_spans_of_a_question_that_is_not_asked_are_in_no_mean(wb: Workbench, beir: WriteTestSet) -> None:
    root = beir()
    rows = [{"question_id": key, "document": "fish", "grade": 1, "start": 0, "end": 10} for key in ("q3", "nobody")]
    (root / "spans.jsonl").write_text(lines(rows))
    test_set = load_test_set(root)
    found = runs.run_strategies(wb, test_set, index_corpus(wb, test_set), ["vector"])
    assert found.strategies["vector"].values["span-recall@5"].keys() == {"q3"}


def test_parameters_reach_the_strategy_and_wrong_ones_are_refused(wb: Workbench, beir: WriteTestSet) -> None:
    test_set = load_test_set(beir()).spread(2)
    corpus = index_corpus(wb, test_set)
    run = runs.run_strategies(wb, test_set, corpus, ["hybrid"], parameters={"hybrid": {"vector_weight": 1.0}})
    assert run.strategies["hybrid"].parameters["vector_weight"] == 1.0
    wrong: list[tuple[list[str], dict[str, Any]]] = [(["hybrid"], {"hybrid": {"weight": 1}}), (["fastest"], {})]
    for strategies, parameters in wrong:
        with pytest.raises(InvalidInput):
            runs.run_strategies(wb, test_set, corpus, strategies, parameters=parameters)


def test_a_run_can_be_stopped(wb: Workbench, beir: WriteTestSet) -> None:
    test_set = load_test_set(beir())
    corpus = index_corpus(wb, test_set)
    with pytest.raises(Cancelled):
        runs.run_strategies(wb, test_set, corpus, ["vector"], should_stop=lambda: True)


def test_the_json_holds_what_the_interface_promises(wb: Workbench, beir: WriteTestSet) -> None:
    test_set = load_test_set(beir())
    run = runs.run_strategies(wb, test_set, index_corpus(wb, test_set), ["vector", "keyword"])
    payload = report.to_json(run)
    assert (payload["dataset"], payload["queries"], payload["corpus"]) == ("animals", 5, 5)
    assert payload["strategies"].keys() == {"vector", "keyword"}
    promised = {"ndcg@10", "recall@10", "mrr@10", "map@100", "hit@1", "precision@5", "latency_ms"}
    assert promised <= payload["strategies"]["vector"].keys()
    assert payload["strategies"]["vector"]["latency_ms"].keys() == {"p50", "p95"}
