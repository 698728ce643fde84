"""Cells of tables."""

import time
from datetime import UTC, datetime

import pytest

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
