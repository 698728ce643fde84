"""The words for how a crawl stands: the same while it runs, after a cancel and at its end, in every face.

An address is to be fetched, then to be stored, then done with one outcome. An address that the site forbids, that this
workbench may not fetch, or that the crawl's own limits leave out is never fetched.
"""

from __future__ import annotations

from collections.abc import Mapping

KEPT_OUT = ("forbidden", "not_allowed", "left_out")  # outcomes of addresses that were never to be fetched
_WORDS = {
    "left_out": "left out", "not_allowed": "not allowed", "held": "removal held",
    "fetched": "to be stored", "queued": "to be fetched",
}  # fmt: skip


def word(outcome: str) -> str:
    """Return an outcome of a page, or the state of one without an outcome yet, as people say it."""
    return _WORDS.get(outcome, outcome)


def standing(done: int, total: int, *, stored_next: int, fetched_next: int, failed: int) -> str:
    """Return how far a crawl is; ``failed`` pages are among those done."""
    return (
        f"{done:,} of {total:,} pages done, {stored_next:,} {word('fetched')}, {fetched_next:,} {word('queued')}, "
        f"{failed:,} failed"
    )


def removals_held(count: int, documents: int) -> str:
    """Return the sentence on removals that wait to be accepted."""
    return (
        f"Nothing was removed: {count:,} of {documents:,} documents would go, more than a fifth. "
        "If the site is right, accept the removals."
    )


def ending(done: int, total: int, outcomes: Mapping[str, int]) -> str:
    """Return how a crawl ended: the pages done by their outcomes, which add up, then those that were kept out."""
    counts = {name: count for name, count in outcomes.items() if count}
    settled = ", ".join(f"{count:,} {word(name)}" for name, count in counts.items() if name not in KEPT_OUT)
    kept_out = ", ".join(f"{count:,} {word(name)}" for name, count in counts.items() if name in KEPT_OUT)
    return f"{done:,} of {total:,} pages done: {settled or 'nothing new'}." + (
        f" Besides: {kept_out}." * bool(kept_out)
    )
