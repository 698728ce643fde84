"""Status messages of a crawl, for every interface."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.crawling.options import UNFETCHED_OUTCOMES

_WORDS = {
    "left_out": "left out", "not_allowed": "not allowed", "held": "not removed yet",
    "fetched": "to be stored", "queued": "to be fetched",
}  # fmt: skip


def outcome_label(outcome: str) -> str:
    """Return the display name of a page's outcome or state."""
    return _WORDS.get(outcome, outcome)


def describe_progress(done: int, total: int, *, stored_next: int, fetched_next: int, failed: int) -> str:
    """Return the status of a running crawl; ``failed`` pages are among those done."""
    return (
        f"{done:,} of {total:,} pages done, {stored_next:,} {outcome_label('fetched')}, {fetched_next:,} "
        f"{outcome_label('queued')}, "
        f"{failed:,} failed"
    )


def describe_held_removals(count: int, documents: int) -> str:
    """Return the message about removals that wait for confirmation."""
    return (
        f"Nothing was removed: {count:,} of {documents:,} documents would be, more than 20%. "
        "If this is expected, accept the removals."
    )


def describe_result(done: int, total: int, outcomes: Mapping[str, int]) -> str:
    """Return the final status of a crawl: pages by outcome, which add up to those done, then pages not fetched.

    Args:
        done: Pages that were visited.
        total: Pages to visit.
        outcomes: Number of pages by outcome.
    """
    parts = {name: f"{count:,} {outcome_label(name)}" for name, count in outcomes.items() if count}
    settled = ", ".join(part for name, part in parts.items() if name not in UNFETCHED_OUTCOMES)
    kept_out = ", ".join(part for name, part in parts.items() if name in UNFETCHED_OUTCOMES)
    message = f"{done:,} of {total:,} pages done: {settled or 'nothing new'}."
    return f"{message} Not fetched: {kept_out}." if kept_out else message
