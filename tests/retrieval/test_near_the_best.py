"""The stage that prefers passages similar to the top ones."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from pathlib import Path

import numpy as np
import pytest

from workbench import Workbench
from workbench.retrieval.stages.similarity import TEMPERATURE, compute_nearness
from workbench.types import SearchResult

NEAR = (1.0, 0.0)
ASIDE = (0.6, 0.8)  # a cosine of .6 to NEAR
ACROSS = (0.0, 1.0)  # of 0 to NEAR, of .8 to ASIDE


def test_each_candidate_has_the_mean_cosine_to_the_others_of_which_the_best_counts_most() -> None:
    half, least = exp(-0.5 / TEMPERATURE), exp(-1 / TEMPERATURE)
    near = compute_nearness([1.0, 0.5, 0.0], np.array([NEAR, ASIDE, ACROSS]))
    assert near[0] == pytest.approx((half * 0.6 + least * 0.0) / (half + least))
    assert near[1] == pytest.approx((1 * 0.6 + least * 0.8) / (1 + least))
    assert near[2] == pytest.approx((1 * 0.0 + half * 0.8) / (1 + half))


def test_the_range_of_the_scores_and_the_length_of_the_vectors_change_nothing() -> None:
    vectors = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)
    scores = [0.9, 0.7, 0.6, 0.4, 0.3, 0.1]
    stretched = compute_nearness(
        [5 + 3 * score for score in scores], vectors * np.arange(1, 7, dtype=np.float32)[:, None]
    )
    assert stretched == pytest.approx(compute_nearness(scores, vectors), abs=1e-6)


def test_equal_scores_count_alike() -> None:
    near = compute_nearness([0.4, 0.4, 0.4], np.array([NEAR, ASIDE, ACROSS]))
    assert near == pytest.approx([0.3, 0.7, 0.4])


ARTICLES = {
    "whales.md": "# Whales\n\nThe song of the whale fills the sea, and every whale knows the song of its own sea.",
    "calves.md": "# Calves\n\nA calf of the whale learns the song from its mother in the sea.",
    "opera.md": "# Opera\n\nThe song of the evening was sung in the opera house by a choir.",
    "bread.md": "# Bread\n\nFlour, water and salt are all that a loaf needs.",
}


@pytest.fixture
def articles(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Four short texts, three of which contain a word of the question."""
    wb.ingest(folder(ARTICLES), source="Articles")
    return wb


def asked(wb: Workbench, weight: float) -> SearchResult:
    return wb.search("song of the whale", "rerank", 4, parameters={"cluster_weight": weight})


def test_rerank_adds_the_leg_and_the_scores_stay_the_sums_of_the_legs(articles: Workbench) -> None:
    result = asked(articles, 0.3)
    assert {"cluster", "late"} <= set(result[0].attribution)
    for hit in result:
        assert sum(leg.contribution for leg in hit.attribution.values()) == pytest.approx(hit.score, abs=1e-6)


def test_a_passage_near_to_the_first_one_gains_on_one_that_only_shares_a_word(articles: Workbench) -> None:
    def lead(weight: float) -> float:
        scores = {hit.document_title: hit.score for hit in asked(articles, weight)}
        return scores["Calves"] - scores["Opera"]

    assert lead(0.5) > lead(0.0)


def test_without_a_weight_the_leg_is_left_out(articles: Workbench) -> None:
    assert all("cluster" not in hit.attribution for hit in asked(articles, 0.0))


def test_two_candidates_have_no_cluster(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder({name: ARTICLES[name] for name in ("whales.md", "bread.md")}), source="Two")
    assert all("cluster" not in hit.attribution for hit in asked(wb, 0.3))


def test_a_question_that_the_model_cannot_read_is_not_judged_by_nearness(
    minilm_wb: Workbench, folder: Callable[..., Path]
) -> None:
    arabic = {
        f"{number}.md": f"# {word}\n\n{word} في المدينة" for number, word in enumerate(["نهر", "برج", "سوق", "بيت"])
    }
    minilm_wb.ingest(folder(arabic), source="Arabic")
    result = minilm_wb.search("أين النهر في المدينة؟", "rerank", 4)
    assert len(result) == 4
    assert all("cluster" not in hit.attribution for hit in result)
