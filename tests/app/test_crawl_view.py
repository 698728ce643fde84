"""The state of a crawl, in words and numbers that agree with each other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from workbench.app.crawl.page import CrawlBaseline, compute_progress, describe_changes
from workbench.crawling.options import describe_result
from workbench.services.crawls import CrawlCounts, count_pages
from workbench.storage.crawls import PageCount

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def counts(*, fetched: int = 0, queued: int = 0, added: int = 0) -> CrawlCounts:
    """Return the counts of a crawl with the given numbers of pages by state."""
    states = (("fetched", None, fetched), ("queued", None, queued), ("done", "added", added))
    return count_pages([PageCount(state, outcome, n, 0, 0) for state, outcome, n in states if n])


def test_a_page_that_is_fetched_and_not_stored_is_half_done() -> None:
    assert compute_progress(counts()) == 0.0
    assert compute_progress(counts(fetched=4, queued=6)) == pytest.approx(0.2)
    assert compute_progress(counts(fetched=2, queued=2, added=6)) == pytest.approx(0.7)


def test_time_left_and_pace_go_by_what_happened_since_a_former_look() -> None:
    half, later = counts(added=5, queued=5), NOON + timedelta(seconds=10)
    look = CrawlBaseline(NOON, 0.25, 3)
    assert (look.seconds_left(half, later), look.pace(half, later)) == (pytest.approx(20), pytest.approx(12))
    same = CrawlBaseline(NOON, 0.5, 5)  # nothing happened since
    assert (same.seconds_left(half, later), same.pace(half, later)) == (None, 0)


def test_a_crawl_that_was_stopped_before_it_stored_a_page_does_not_report_that_it_fetched_none() -> None:
    assert describe_changes(counts(fetched=40, queued=153)) == ("None yet: resume to store 40 fetched pages.")
    assert describe_changes(counts(queued=1)) == "No pages fetched."
    assert describe_changes(counts(added=2, fetched=1)) == "2 pages added"


def test_removals_that_are_held_are_worded_for_any_count() -> None:
    said = describe_result(9, 9, {"unchanged": 3, "held": 6})
    assert said.startswith("9 of 9 pages done: 3 unchanged, 6 not removed yet")
