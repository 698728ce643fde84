"""Cells of tables."""

import json
import time
from datetime import UTC, datetime

import pytest
from streamlit.testing.v1 import AppTest

from workbench.app.widgets.table import make_time_cell


@pytest.fixture
def in_tokyo(monkeypatch):
    """A machine nine hours ahead of UTC."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_moment_is_reported_by_this_machines_clock_and_sorted_as_time(in_tokyo):
    early, late = datetime(2026, 3, 1, 20, 5, 9, tzinfo=UTC), datetime(2026, 11, 3, 1, 2, tzinfo=UTC)
    assert make_time_cell(early)["text"] == "2 Mar 2026, 05:05"
    assert make_time_cell(None)["text"] == "–"
    assert make_time_cell(None)["order"] < make_time_cell(early)["order"] < make_time_cell(late)["order"]


def _two_runs_with_one_title():
    from workbench.app.widgets.rows import make_figure, show_rows

    columns = ("Part", "Hybrid", "Hybrid", "Note")
    show_rows("runs", columns, {"a": ("short", make_figure(None), make_figure(0.5), None)}, label="Runs", noun="runs")


def test_two_columns_with_one_title_keep_their_own_cells():
    page = AppTest.from_function(_two_runs_with_one_title, default_timeout=30).run()
    assert not page.exception
    [table] = page.get("bidi_component")
    data = json.loads(table.proto.json)
    [row] = data["rows"]
    assert [column["label"] for column in data["columns"]] == ["Part", "Hybrid", "Hybrid", "Note"]
    cells = [row["cells"][column["name"]] for column in data["columns"]]
    assert cells == ["short", {"text": "–", "order": None}, {"text": "0.500", "order": 0.5}, "–"]


def _thresholds_that_differ_in_the_fourth_decimal():
    from evals.experiments.answers import RefusalPoint, Refusals
    from evals.experiments.runs import Cell, CellResult
    from workbench.app.evaluate.outcome import _show_refusals

    curve = tuple(RefusalPoint(threshold, 0.5, recall, 0.0) for threshold, recall in ((0.4121, 0.25), (0.4124, 0.75)))
    cell = CellResult(Cell("hybrid"), "run_1", "done", None, "main")
    _show_refusals(None, None, cell, Refusals(4, 4, 4, 2, curve, None))


def test_thresholds_that_are_shown_alike_keep_a_row_each():
    page = AppTest.from_function(_thresholds_that_differ_in_the_fourth_decimal, default_timeout=30).run()
    assert not page.exception
    [table] = page.get("bidi_component")
    rows = json.loads(table.proto.json)["rows"]
    assert [[*row["cells"].values()][2]["text"] for row in rows] == ["25%", "75%"]
