"""The scales of the leaderboard and its chart: both ends are within the range of the metric."""

import pytest

from evals.experiments.leaderboard import LeaderboardLine
from workbench.app.evaluate.charts import ChartPoint, make_quality_chart
from workbench.app.evaluate.experiment import choose_scale


@pytest.mark.parametrize(
    ("intervals", "ends"),
    [
        ([(0.62, 0.71), (0.55, 0.68)], (0.5, 0.8)),
        ([(1.0, 1.0)], (0.99, 1.0)),
        ([(0.0, 0.0)], (0.0, 0.01)),
        ([], (0.0, 1.0)),
    ],
)
def test_the_scale_holds_every_interval_and_has_two_ends(intervals, ends):
    lines = [LeaderboardLine("Run", "run_1", "done", None, {}, interval, {}, "main", 0) for interval in intervals]
    assert choose_scale(lines)[:2] == ends


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
