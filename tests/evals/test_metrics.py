"""The metrics against formulas written out here, question by question, to 1e-9."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.metrics import DEFAULT_METRICS, check_metrics, measure, rank
from workbench.errors import InvalidInput

DOCUMENTS = st.sampled_from([f"d{number}" for number in range(14)])
QUESTIONS = st.sampled_from(["q1", "q2", "q3", "q4"])
QRELS = st.dictionaries(QUESTIONS, st.dictionaries(DOCUMENTS, st.integers(0, 2), max_size=9), max_size=4)
RUNS = st.dictionaries(QUESTIONS, st.dictionaries(DOCUMENTS, st.sampled_from([0.0, 0.25, 0.5, 1.0])), max_size=4)


def independent(name: str, grades: dict[str, int], ranked: list[str]) -> float:
    """Each metric from its definition; gains are the grades, discounts log2(rank + 1)."""
    family, cutoff = name.split("@")
    k = int(cutoff)
    relevant = {document for document, grade in grades.items() if grade > 0}
    hits = [document in relevant for document in ranked[:k]]
    if family == "ndcg":
        best = sorted(grades.values(), reverse=True)[:k]
        ideal = sum(grade / math.log2(place + 1) for place, grade in enumerate(best, start=1))
        gained = sum(grades.get(document, 0) / math.log2(place + 1) for place, document in enumerate(ranked[:k], 1))
        return gained / ideal
    if family == "map":
        return sum(sum(hits[:place]) / place for place, hit in enumerate(hits, start=1) if hit) / len(relevant)
    return {
        "recall": sum(hits) / len(relevant),
        "precision": sum(hits) / k,
        "hit": float(any(hits)),
        "mrr": next((1 / place for place, hit in enumerate(hits, start=1) if hit), 0.0),
    }[family]


@settings(max_examples=150, deadline=None)
@given(QRELS, RUNS)
def test_every_metric_equals_its_definition_with_ties_missing_questions_and_empty_results(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> None:
    names = (*DEFAULT_METRICS, "ndcg@3", "mrr@2", "precision@1", "recall@1", "hit@5", "map@4")
    rankings = {key: rank(scores) for key, scores in run.items()}
    asked = {key for key, grades in qrels.items() if any(grades.values())}
    for name, values in measure(qrels, rankings, names).items():
        assert values.keys() == asked
        for key, value in values.items():
            assert value == pytest.approx(independent(name, qrels[key], rankings.get(key, [])), abs=1e-9), name


def test_equal_scores_fall_as_trec_eval_lets_them_fall() -> None:
    assert rank({"a": 1.0, "c": 1.0, "b": 2.0}) == ["b", "c", "a"]


def test_a_document_that_is_ranked_twice_counts_at_its_better_place() -> None:
    assert measure({"q": {"d": 1}}, {"q": ["x", "d", "x", "d"]}, ["mrr@10", "recall@10"])["mrr@10"] == {"q": 0.5}


@pytest.mark.parametrize("name", ["ndcg", "ndcg@0", "ndcg@1001", "bleu@10", "NDCG@10", ""])
def test_an_unknown_metric_is_refused_with_the_valid_ones(name: str) -> None:
    with pytest.raises(InvalidInput, match="'ndcg@K', 'recall@K'"):
        check_metrics([name])
