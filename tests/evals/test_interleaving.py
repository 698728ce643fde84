"""Team draft interleaving: lists by hand, no bias between equal strategies, and a better one that is found."""

from __future__ import annotations

import numpy as np
import pytest

from evals.measures.significance import explain_difference
from evals.test_sets.traffic import compare_teams
from workbench.retrieval.hits import draft_teams

DEPTH = 10


def test_each_ranking_contributes_its_best_unlisted_item_in_every_round() -> None:
    for seed in map(str, range(50)):
        drafted = draft_teams("abcd", "bxyz", seed)
        order = list(drafted)
        assert set(order) == set("abcdxyz")
        first = drafted[order[0]]
        # one takes a or b; the other then its own best unlisted item
        assert order[:2] == (["a", "b"] if first == 0 else ["b", "a"])
        assert [order[n : n + 2].count("c") + order[n : n + 2].count("x") for n in (2,)] == [2]
        assert [{drafted[one] for one in order[n : n + 2]} for n in (0, 2, 4)] == [{0, 1}] * 3
        assert order[-1] == "z" and drafted["z"] == 1  # the shorter ranking has nothing left
    assert {next(iter(draft_teams("a", "b", str(seed)))) for seed in range(50)} == {"a", "b"}


def test_a_longer_list_has_the_shorter_one_as_its_start_and_an_empty_ranking_contributes_nothing() -> None:
    first, second = [f"a{n}" for n in range(30)] + ["s"], ["s", *(f"b{n}" for n in range(30))]
    whole = list(draft_teams(first, second, "seed").items())
    for limit in (1, 5, 11, 20):
        assert list(draft_teams(first[:limit], second[:limit], "seed").items())[:limit] == whole[:limit]
    assert draft_teams([], ["x", "y"], "seed") == {"x": 1, "y": 1}


def simulate(
    rng: np.random.Generator, lists: int, noise: tuple[float, float], care: float
) -> dict[str, dict[str, int]]:
    """Return the credits of two strategies that rank 30 documents by their relevance plus noise.

    A simulated agent opens a document with a chance that falls with its rank, and rises with its relevance by ``care``.
    """
    credits: dict[str, dict[str, int]] = {}
    for number in range(lists):
        relevance = rng.random(30)
        rankings = [np.argsort(-(relevance + rng.normal(0, spread, 30)))[:DEPTH].astype(str) for spread in noise]
        shown = list(draft_teams(list(rankings[0]), list(rankings[1]), str(rng.integers(2**60))).items())[:DEPTH]
        opened = [
            team
            for rank, (key, team) in enumerate(shown, start=1)
            if rng.random() < (1 - care + care * relevance[int(key)]) / rank
        ]
        credits[str(number)] = {"a": opened.count(0), "b": opened.count(1)}
    return credits


@pytest.mark.parametrize("care", [0.0, 1.0], ids=["by-rank-only", "by-relevance"])
def test_ten_thousand_lists_of_equal_strategies_show_no_difference(care: float) -> None:
    found = compare_teams("a", "b", simulate(np.random.default_rng(11), 10_000, (0.3, 0.3), care))
    assert found.wins + found.losses > 3_000 and not found.significant
    assert found.interval[0] < 0 < found.interval[1] and abs(found.difference) < 0.02


def test_equal_strategies_differ_no_more_often_than_the_level_allows() -> None:
    rng = np.random.default_rng(13)
    alarms = sum(compare_teams("a", "b", simulate(rng, 12, (0.3, 0.3), 1.0)).significant for _ in range(200))
    assert alarms <= 16  # 5% of 200, and twice its deviation more


def test_a_planted_better_strategy_is_found_on_both_sides() -> None:
    better = compare_teams("a", "b", simulate(np.random.default_rng(17), 400, (0.1, 0.6), 1.0))
    worse = compare_teams("a", "b", simulate(np.random.default_rng(17), 400, (0.6, 0.1), 1.0))
    assert better.significant and better.difference > 0 and better.wins > better.losses
    assert worse.significant and worse.difference < 0
    assert explain_difference(better).startswith("Better: won")


def test_lists_count_once_and_those_without_an_opened_document_not_at_all() -> None:
    credits = {"one": {"a": 3, "b": 1}, "two": {"b": 1}, "three": {"a": 1, "b": 1}, "four": {}}
    found = compare_teams("a", "b", credits)
    assert (found.wins, found.losses, found.ties, found.difference, found.p) == (1, 1, 1, 0.0, 1.0)
    five = compare_teams("a", "b", {str(n): {"a": 1} for n in range(6)})
    assert five.p == 2 / 2**6 and five.significant  # the sign test of six wins
