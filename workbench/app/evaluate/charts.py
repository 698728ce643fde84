"""ECharts options of the Evaluate page: quality against latency, a heat map, and changed questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor

from workbench.app.widgets.looks import PALETTE, get_look, shorten
from workbench.types import JsonObject, JsonValue, as_integer, as_items, as_object

INK_COLOURS = {"light": "#33302b", "dark": "#e9e5dc"}
QUIET_COLOURS = {"light": "#dcd8cf", "dark": "#3b3833"}
PAPER_COLOURS = {"light": "#fbfaf7", "dark": "#171614"}
SYMBOLS = {
    "circle": "circle",
    "square": "rect",
    "triangle": "triangle",
    "diamond": "diamond",
    "cross": "path://M2 0 L8 6 L14 0 L16 2 L10 8 L16 14 L14 16 L8 10 L2 16 L0 14 L6 8 L0 2 Z",
    "ring": "emptyCircle",
}
TEXT_STYLE: JsonObject = {"fontSize": 13}  # pixels
SEQUENTIAL_COLOURS = {
    "light": ["#f2f0ea", "#b9c9d6", "#6f97b8", "#2f6798", "#0d3a6b"],
    "dark": ["#22201d", "#2b3f52", "#35658c", "#5b9bd0", "#c2e2ff"],
}
MAX_QUESTION_CHARS = 46  # characters of a question in a chart
MAX_COLUMNS_LABELLED = 24  # up to this number of questions, the cells of a heat map have their values
MAX_COLUMNS_SPACED = 150  # with more questions, the grid between the cells is thinner
MAX_POINTS_LABELLED = 6  # up to this number of points, all are labelled; otherwise only those on the Pareto front


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A run in the chart of quality against latency."""

    name: str  # its label
    strategy: str  # its strategy, which sets hue and shape
    milliseconds: float  # median latency
    quality: float  # mean of the metric
    on_front: bool  # true if no other run is both better and faster


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The best run of one experiment in the chart of scores over time."""

    name: str  # the experiment
    strategy: str  # strategy of the best run, which sets hue and shape
    score: float  # mean of the metric
    interval: tuple[float, float]  # the 95% interval of the mean


def make_quality_chart(spots: Sequence[ChartPoint], theme: str) -> JsonObject:
    """Return a scatter chart of median latency and quality, with the Pareto front as a line."""
    front = sorted((spot.milliseconds, spot.quality) for spot in spots if spot.on_front)
    series: list[JsonObject] = [
        {
            "type": "line",
            "step": "end",
            "data": [list(point) for point in front],
            "symbol": "none",
            "silent": True,
            "lineStyle": {"color": INK_COLOURS[theme], "opacity": 0.35, "type": "dashed", "width": 1.5},
            "tooltip": {"show": False},
        }
    ]
    for spot in spots:
        appearance = get_look(spot.strategy)
        series.append(
            {
                "type": "scatter",
                "name": spot.name,
                "symbol": SYMBOLS[appearance.shape],
                "symbolSize": 15 if spot.on_front else 10,
                "itemStyle": {"color": appearance.hex(theme), "opacity": 1 if spot.on_front else 0.7},
                "data": [[spot.milliseconds, spot.quality]],
                "label": {
                    "show": spot.on_front or len(spots) <= MAX_POINTS_LABELLED,
                    "formatter": "{a}",
                    "position": "top",
                    "color": INK_COLOURS[theme],
                    **TEXT_STYLE,
                },
                "labelLayout": {"moveOverlap": "shiftY"},
            }
        )
    return {
        "animation": False,
        "grid": {"left": 48, "right": 40, "top": 24, "bottom": 44, "outerBoundsMode": "none"},
        "tooltip": {"confine": True, "formatter": "{a}: {c} (ms, quality)"},
        "xAxis": {
            "type": "log",
            "logBase": 2,
            "name": "median latency, ms (log)",
            "nameLocation": "middle",
            "nameGap": 28,
            "nameTextStyle": TEXT_STYLE,
            "axisLabel": TEXT_STYLE,
            "splitLine": {"lineStyle": {"color": QUIET_COLOURS[theme], "opacity": 0.6}},
        },
        "yAxis": _make_axis([spot.quality for spot in spots], theme),
        "series": series,
    }


def _make_axis(values: Sequence[float], theme: str) -> JsonObject:
    """Return an axis around values in 0..1, with ticks at every 0.05, or 0.1 for a wide range."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    steps = 20 if high - low < 0.25 else 10  # in all of 0..1
    return {
        "type": "value",
        "min": max(0, floor(steps * low - 0.4)) / steps,
        "max": min(steps, ceil(steps * high + 0.4)) / steps,
        "interval": 1 / steps,
        "axisLabel": TEXT_STYLE,
        "splitLine": {"lineStyle": {"color": QUIET_COLOURS[theme], "opacity": 0.6}},
    }


def choose_ends(intervals: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the ends of a scale that all intervals fit in."""
    low, high = min((low for low, _ in intervals), default=0.0), max((high for _, high in intervals), default=1.0)
    return (low, high) if low < high else (0.0, 1.0)


def make_heat_map(
    questions: Sequence[str],
    runs: Sequence[str],
    values: Sequence[tuple[int, int, float]],
    theme: str,
    chosen: int | None = None,
) -> JsonObject:
    """Return a heat map of questions (columns) and runs (rows); ``values`` are (question, run, 0..1).

    ``chosen`` is the question whose column is framed. Few questions have their values in the cells.
    """
    grid: JsonObject = {
        "borderColor": PAPER_COLOURS[theme],
        "borderWidth": 1 if len(questions) <= MAX_COLUMNS_SPACED else 0.3,
    }
    frame: JsonObject = {"borderColor": PALETTE["orange"][theme == "dark"], "borderWidth": 3}  # seen on all blues
    names: list[JsonValue] = [shorten(text, MAX_QUESTION_CHARS) for text in questions]
    hidden: JsonObject = {"show": False}
    return {
        "animation": False,
        "grid": {"left": 8, "right": 8, "top": 8, "bottom": 46, "containLabel": True},
        "tooltip": {"confine": True, "formatter": "{b}", "extraCssText": "max-width:420px;white-space:normal"},
        "xAxis": {"type": "category", "data": names, "axisLabel": hidden, "axisTick": hidden, "splitArea": hidden},
        "yAxis": {
            "type": "category",
            "data": list(runs),
            "inverse": True,
            "axisTick": hidden,
            "axisLine": hidden,
            "axisLabel": {"color": INK_COLOURS[theme], **TEXT_STYLE, "width": 260, "overflow": "truncate"},
        },
        "visualMap": {
            "min": 0,
            "max": 1,
            "orient": "horizontal",
            "left": "center",
            "bottom": 0,
            "itemHeight": 120,
            "itemWidth": 12,
            "text": ["1 (best)", "0 (worst)"],
            "inRange": {"color": SEQUENTIAL_COLOURS[theme]},
            "textStyle": {"color": INK_COLOURS[theme], **TEXT_STYLE},
        },
        "series": [
            {
                "type": "heatmap",
                "data": [
                    _make_cell((x, y, value), frame if x == chosen else grid, theme, f"{runs[y]}: {names[x]}")
                    for x, y, value in values
                ],
                "label": {"show": len(questions) <= MAX_COLUMNS_LABELLED, **TEXT_STYLE},
                "labelLayout": {"hideOverlap": True},
                "selectedMode": "single",
                "emphasis": {"itemStyle": frame},
                "select": {"itemStyle": frame},
            }
        ],
    }


def _make_cell(place: tuple[int, int, float], style: JsonObject, theme: str, name: str) -> JsonObject:
    """Return a cell of the heat map, with a label that contrasts with its colour, and what a pointer shows."""
    x, y, value = place
    label: JsonObject = {"color": "#ffffff" if (value > 0.62) == (theme == "light") else "#1c1a17"}
    return {"name": f"{name} · {value:.2f}", "value": [x, y, round(value, 2)], "itemStyle": style, "label": label}


def make_trend_chart(points: Sequence[TrendPoint], theme: str) -> JsonObject:
    """Return a line of the best scores over time, with the interval of each and the hue of its strategy."""
    return {
        "animation": False,
        "grid": {"left": 48, "right": 24, "top": 24, "bottom": 64, "outerBoundsMode": "none"},
        "tooltip": {"confine": True, "formatter": "{b}: {c}"},
        "xAxis": {
            "type": "category",
            "data": [one.name for one in points],
            "axisLabel": TEXT_STYLE
            | {"show": len(points) <= MAX_POINTS_LABELLED, "interval": 0, "hideOverlap": True}
            | {"width": 98, "overflow": "break", "lineHeight": 16},
        },
        "yAxis": _make_axis([end for one in points for end in one.interval], theme),
        "series": [
            {
                "type": "line",
                "data": [
                    {
                        "value": round(one.score, 3),
                        "symbol": SYMBOLS[get_look(one.strategy).shape],
                        "symbolSize": 12,
                        "itemStyle": {"color": get_look(one.strategy).hex(theme)},
                    }
                    for one in points
                ],
                "lineStyle": {"color": INK_COLOURS[theme], "width": 1.5, "opacity": 0.5},
                "markLine": {
                    "silent": True,
                    "symbol": "none",
                    "label": {"show": False},
                    "lineStyle": {"type": "solid", "width": 3, "opacity": 0.35, "color": INK_COLOURS[theme]},
                    "data": [[{"coord": [x, end]} for end in one.interval] for x, one in enumerate(points)],
                },
            }
        ],
    }


def read_selection(state: Mapping[str, JsonValue] | None) -> int | None:
    """Return the position of the clicked item in a chart's last series; None without one."""
    for group in as_items(as_object((state or {}).get("selection")).get("selected")):
        for place in as_items(as_object(group)["data_indices"]):
            return as_integer(place)
    return None
