"""The metrics compared with trec_eval: on a recorded run that a reader can check, and on random runs."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.experiments.runs import PAGE_FAMILIES
from evals.measures.metrics import (
    DEFAULT_METRICS,
    FAMILIES,
    OFFERED_METRICS,
    check_metrics,
    measure_rankings,
    measure_spans,
    metric_title,
    rank_documents,
)
from workbench.errors import InvalidInput

DOCUMENTS = st.sampled_from([f"d{number}" for number in range(14)])
QUESTIONS = st.sampled_from(["q1", "q2", "q3", "q4"])
QRELS = st.dictionaries(QUESTIONS, st.dictionaries(DOCUMENTS, st.integers(0, 2), max_size=9), max_size=4)
RUNS = st.dictionaries(QUESTIONS, st.dictionaries(DOCUMENTS, st.sampled_from([0.0, 0.25, 0.5, 1.0])), max_size=4)

GRADES = {
    "q1": {"a": 1, "b": 1, "c": 0, "z": 1},
    "q2": {"a": 2, "d": 1},
    "q3": {"e": 1},
    "q4": {"f": 3, "g": 2, "h": 1},
}
RANKINGS = {
    "q1": list("xacbywvutsrz"),  # relevant at 2, 4 and 12
    "q2": list("da"),  # the better one second
    "q3": list("abcdfghijke"),  # relevant at 11
    "q4": list("gxfh"),  # grades 2, 0, 3, 1
}
RECORDED = {  # ``trec_eval -q -m ndcg_cut.10 -m recall.10 -m recip_rank -m map_cut.100 -m success.1 -m P.5`` on these
    "ndcg@10": {"q1": 0.4982, "q2": 0.8597, "q3": 0.0, "q4": 0.8254},
    "recall@10": {"q1": 0.6667, "q2": 1.0, "q3": 0.0, "q4": 1.0},
    "mrr@10": {"q1": 0.5, "q2": 1.0, "q3": 0.0, "q4": 1.0},  # recip_rank is .0909 for q3, because it has no cutoff
    "map@100": {"q1": 0.4167, "q2": 1.0, "q3": 0.0909, "q4": 0.8056},
    "hit@1": {"q1": 0.0, "q2": 1.0, "q3": 0.0, "q4": 1.0},
    "precision@5": {"q1": 0.4, "q2": 0.4, "q3": 0.0, "q4": 0.6},
}
BY_HAND = {  # gains are the grades, discounts log2(rank + 1)
    ("ndcg@10", "q1"): (1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / log2(4)),
    ("ndcg@10", "q4"): (2 + 3 / log2(4) + 1 / log2(5)) / (3 + 2 / log2(3) + 1 / log2(4)),
    ("map@100", "q1"): (1 / 2 + 2 / 4 + 3 / 12) / 3,
    ("map@100", "q4"): (1 / 1 + 2 / 3 + 3 / 4) / 3,
}
THEIRS = {"ndcg": "ndcg_cut", "recall": "recall", "map": "map_cut", "hit": "success", "precision": "P"}


@pytest.mark.parametrize("metric", RECORDED)
def test_a_recorded_run_has_the_figures_of_trec_eval(metric: str) -> None:
    assert measure_rankings(GRADES, RANKINGS, [metric])[metric] == pytest.approx(RECORDED[metric], abs=5.1e-5)


@pytest.mark.parametrize(("metric", "question"), BY_HAND)
def test_a_reader_can_check_figures_by_hand(metric: str, question: str) -> None:
    assert measure_rankings(GRADES, RANKINGS, [metric])[metric][question] == pytest.approx(
        BY_HAND[metric, question], abs=1e-9
    )


def by_trec_eval(name: str, qrels: dict[str, dict[str, int]], run: Mapping[str, dict[str, float]]) -> dict[str, float]:
    """Return trec_eval's value for the scores, with its own handling of ties; 0 for unanswered questions."""
    family, _, cutoff = name.partition("@")
    judged = {key: grades for key, grades in qrels.items() if any(grades.values())}
    wanted = "recip_rank" if family == "mrr" else f"{THEIRS[family]}.{cutoff}"
    evaluator = pytrec_eval.RelevanceEvaluator(judged, {wanted})
    found = evaluator.evaluate({key: scores for key, scores in run.items() if key in judged and scores})
    values = {key: next(iter(found[key].values())) if key in found else 0.0 for key in judged}
    if family == "mrr":  # a relevant document below the cutoff counts nothing
        return {key: value if value >= 1 / int(cutoff) - 1e-12 else 0.0 for key, value in values.items()}
    return values


@settings(max_examples=150, deadline=None)
@given(QRELS, RUNS)
def test_every_metric_equals_trec_evals_with_ties_missing_questions_and_empty_results(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> None:
    names = (*DEFAULT_METRICS, "ndcg@3", "mrr@2", "precision@1", "recall@1", "hit@5", "map@4")
    rankings = {key: rank_documents(scores) for key, scores in run.items()}
    for name, values in measure_rankings(qrels, rankings, names).items():
        assert values == pytest.approx(by_trec_eval(name, qrels, run), abs=1e-9), name


def test_equal_scores_fall_as_trec_eval_lets_them_fall() -> None:
    assert rank_documents({"a": 1.0, "c": 1.0, "b": 2.0}) == ["b", "c", "a"]


def test_a_document_that_is_ranked_twice_counts_at_its_better_place() -> None:
    assert measure_rankings({"q": {"d": 1}}, {"q": ["x", "d", "x", "d"]}, ["mrr@10", "recall@10"])["mrr@10"] == {
        "q": 0.5
    }


@pytest.mark.parametrize("name", ["ndcg", "ndcg@0", "ndcg@1001", "bleu@10", "NDCG@10", "span-iou@5", ""])
def test_an_unknown_metric_is_refused_with_the_valid_ones(name: str) -> None:
    with pytest.raises(InvalidInput, match="'ndcg@K', 'recall@K'"):
        check_metrics([name])


def test_every_metric_that_is_offered_can_be_asked_for_and_has_a_name_for_people() -> None:
    assert check_metrics(OFFERED_METRICS) == OFFERED_METRICS and set(DEFAULT_METRICS) <= set(OFFERED_METRICS)
    assert [metric_title(name) for name in ("ndcg@10", "hit@5", "span-iou@5", "old-one@3")] == [
        "nDCG@10", "Hit rate@5", "Span IoU@5", "Old one@3",
    ]  # fmt: skip
    assert all(family.meaning for family in FAMILIES.values())


def test_every_metric_of_our_own_is_measured() -> None:
    own = {family.name for family in FAMILIES.values() if not family.provider_name}
    measured = {*measure_spans([("d", 0, 4)], [("d", 0, 4)]), *PAGE_FAMILIES}
    assert own == measured, "measure it where evals/experiments/runs.py measures a run, and list it here"
