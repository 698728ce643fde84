"""The state of a crawl, in words and numbers that agree with each other."""

from __future__ import annotations

from workbench.app.crawl.page import describe_changes
from workbench.crawling.options import describe_result
from workbench.services.crawls import CrawlCounts, count_pages
from workbench.storage.crawls import PageCount


def counts(*, fetched: int = 0, queued: int = 0, added: int = 0) -> CrawlCounts:
    """Return the counts of a crawl with the given numbers of pages by state."""
    states = (("fetched", None, fetched), ("queued", None, queued), ("done", "added", added))
    return count_pages([PageCount(state, outcome, n, 0, 0) for state, outcome, n in states if n])


def test_a_crawl_that_was_stopped_before_it_stored_a_page_does_not_report_that_it_fetched_none() -> None:
    assert describe_changes(counts(fetched=40, queued=153)) == ("None yet: resume to store 40 fetched pages.")
    assert describe_changes(counts(queued=1)) == "No pages fetched."
    assert describe_changes(counts(added=2, fetched=1)) == "2 pages added"


def test_removals_that_are_held_are_worded_for_any_count() -> None:
    said = describe_result(9, 9, {"unchanged": 3, "held": 6})
    assert said.startswith("9 of 9 pages done: 3 unchanged, 6 not removed yet")
