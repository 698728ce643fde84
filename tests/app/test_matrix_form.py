"""The matrix of an experiment from the form: every combination of a strategy's varied parameters."""

from __future__ import annotations

import pytest

from workbench.app.evaluate.page import combine_values, list_values, preselect_values
from workbench.retrieval.parameters import CANDIDATES, CUTOFF, FEEDBACK_PASSAGES, FEEDBACK_WEIGHT, TERMS, VECTOR_WEIGHT
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Parameter


def test_every_combination_of_a_strategys_values_is_a_run_and_strategies_do_not_mix() -> None:
    varied = {
        "hybrid.alpha": [0.2, 0.8],
        "hybrid.candidates": [20, 50],
        "mmr.diversity": [0.5],
        "rerank.candidates": [],
    }
    assert combine_values(varied) == {
        "hybrid": [
            {"alpha": 0.2, "candidates": 20},
            {"alpha": 0.2, "candidates": 50},
            {"alpha": 0.8, "candidates": 20},
            {"alpha": 0.8, "candidates": 50},
        ],
        "mmr": [{"diversity": 0.5}],
    }


def test_offered_values_lie_in_the_range_of_their_parameter() -> None:
    for strategy in STRATEGIES.values():
        for parameter in (one for one in strategy.parameters if one.kind != "text"):
            offered = list_values(parameter, ["default", "mine"])
            assert len(offered) >= 2 and len(set(offered)) == len(offered)
            if parameter.kind in ("int", "float"):
                assert offered == sorted(offered) and parameter.default in offered
                assert all(parameter.read(value) == value for value in offered)


@pytest.mark.parametrize(
    ("parameter", "offered"),
    [
        (CANDIDATES, [10, 20, 50, 100, 200, 400]),
        (TERMS, [0, 1, 2, 5, 10, 20, 50]),
        (FEEDBACK_PASSAGES, [1, 2, 5, 10, 20]),
        (FEEDBACK_WEIGHT, [0.0, 0.25, 0.5, 1.0, 1.5, 2.0]),
        (CUTOFF, [0.0, 0.25, 0.5, 0.75]),
        (VECTOR_WEIGHT, [0.0, 0.25, 0.5, 0.75, 1.0]),
    ],
)
def test_offered_values_are_round_and_count_by_their_size(parameter: Parameter, offered: list[float]) -> None:
    assert list_values(parameter) == offered


def test_at_first_at_most_three_values_are_chosen_over_the_whole_range() -> None:
    assert preselect_values([0.0, 0.25, 0.5, 0.75, 1.0]) == [0.0, 0.5, 1.0]
    assert preselect_values(["convex", "rrf"]) == ["convex", "rrf"]
    for strategy in STRATEGIES.values():
        for parameter in (one for one in strategy.parameters if one.kind != "text"):
            assert 2 <= len(preselect_values(list_values(parameter, ["default", "mine"]))) <= 3
