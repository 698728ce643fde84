"""The leaderboard, its charts and its scope: scales within the range of the metric, and the chosen question framed."""

from datetime import date

import pytest

from evals.test_set import MeasuredScope
from workbench.app.evaluate.charts import (
    ChartPoint,
    TrendPoint,
    choose_ends,
    make_heat_map,
    make_quality_chart,
    make_trend_chart,
)
from workbench.app.shell.scope_bar import make_scope_changes
from workbench.app.widgets.looks import format_measured
from workbench.types import Scope


@pytest.mark.parametrize(
    ("intervals", "ends"),
    [
        ([(0.62, 0.71), (0.55, 0.68)], (0.55, 0.71)),
        ([(1.0, 1.0)], (0.0, 1.0)),
        ([(0.0, 0.0)], (0.0, 1.0)),
        ([], (0.0, 1.0)),
    ],
)
def test_the_scale_holds_every_interval_and_has_two_ends(intervals, ends):
    assert choose_ends(intervals) == ends


@pytest.mark.parametrize(
    ("quality", "ends"),
    [([1.0, 1.0], (0.95, 1.0)), ([0.61, 0.74], (0.55, 0.8)), ([0.28, 0.75], (0.2, 0.8)), ([], (0.0, 1.0))],
)
def test_the_picture_shows_no_quality_that_cannot_be(quality, ends):
    axis = make_quality_chart([ChartPoint("Run", "vector", 5.0, value, on_front=True) for value in quality], "light")[
        "yAxis"
    ]
    assert (axis["min"], axis["max"]) == ends
    steps = (ends[1] - ends[0]) / axis["interval"]
    assert steps == pytest.approx(round(steps))  # a step ends at each end, so labels do not overlap


def test_the_heat_map_frames_the_chosen_question_and_shows_values_if_there_is_room():
    values = [(0, 0, 0.25), (0, 1, 1.0), (1, 0, 0.0), (1, 1, 0.904)]
    [series] = make_heat_map(["hard", "easy"], ["Keyword", "Vector"], values, "light", 1)["series"]
    assert [cell["value"] for cell in series["data"]] == [[0, 0, 0.25], [0, 1, 1.0], [1, 0, 0.0], [1, 1, 0.9]]
    assert [cell["itemStyle"]["borderWidth"] for cell in series["data"]] == [1, 1, 3, 3]
    assert series["data"][3]["name"] == "Vector: easy · 0.90"  # shown by a pointer
    assert series["label"]["show"]
    many = [(number, 0, 0.5) for number in range(25)]
    [series] = make_heat_map(["?"] * 25, ["Keyword"], many, "dark")["series"]
    assert not series["label"]["show"]


def test_the_trend_has_the_interval_of_each_score():
    points = [TrendPoint("First", "keyword", 0.6, (0.5, 0.7)), TrendPoint("Second", "vector", 0.8, (0.75, 0.9))]
    [series] = make_trend_chart(points, "light")["series"]
    assert [point["value"] for point in series["data"]] == [0.6, 0.8]
    assert [[end["coord"] for end in pair] for pair in series["markLine"]["data"]] == [
        [[0, 0.5], [0, 0.7]],
        [[1, 0.75], [1, 0.9]],
    ]


def test_the_scope_of_a_test_set_replaces_every_part_of_another_one_in_the_url():
    names = ("kind", "project", "folder", "tag", "source", "language", "since", "until", "metadata")
    nothing: dict[str, list[str]] = {name: [] for name in names}
    assert make_scope_changes(MeasuredScope()) == nothing
    scope = Scope(kind="project", project="proj_1", folder="fold_1", tags=("a", "b"), since=date(2026, 1, 2))
    assert make_scope_changes(MeasuredScope(scope, {"fold_1": "Old manuals"})) == nothing | {
        "kind": ["project"],
        "project": ["proj_1"],
        "folder": ["Old manuals"],
        "tag": ["a", "b"],
        "since": ["2026-01-02"],
    }
    assert format_measured("Ours", "tag a]") == r":gray-badge[Test set\: Ours] :gray-badge[Scope\: tag a\]]"
