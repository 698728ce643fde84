"""Passages that are deleted between two statements of one search."""

from workbench.retrieval.retrievers.hybrid import merge_leg_scores
from workbench.storage.ranking import LegRanking


def test_a_passage_without_a_cosine_is_no_candidate_of_hybrid() -> None:
    worded = LegRanking({2: 3.0, 3: 2.0, 4: 1.0})  # 4 was deleted after its words were read
    nearest = LegRanking({1: 0.9, 2: 0.8}, others={2: 0.8, 3: 0.2})
    cosines, bm25 = merge_leg_scores(nearest, worded, {2: 3.0})
    assert cosines == {1: 0.9, 2: 0.8, 3: 0.2}
    assert bm25 == {2: 3.0, 3: 2.0}
