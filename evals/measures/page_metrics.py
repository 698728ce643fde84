"""Pages as truth: is a passage from a page that holds the evidence among the first K?

Where a question's truth is pages of a document, a whole document is too coarse a unit (a report of 200 pages is always
found) and characters too fine. ``page-hit@K`` searches everything; ``page-hit-within@K`` only the right document, which
tells apart whether the document or the page was missed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from workbench.types.results import PageSpan

PagePlace = tuple[str, int]  # document key, page counted from 1


def page_hit(passages: Sequence[Collection[PagePlace]], truth: Collection[PagePlace], cutoff: int) -> float:
    """Return 1 where one of the first ``cutoff`` passages stands on a page that answers, else 0.

    A passage is given by the pages it stands on. Where page 7 of a answers, of passages on (a, 3), (b, 7) and (a, 7)
    the third is a hit, so @1 and @2 are 0 and @3 is 1.
    """
    return float(any(place in truth for places in passages[:cutoff] for place in places))


def pages_between(spans: Sequence[PageSpan], start: int, end: int) -> tuple[int, ...]:
    """Return the pages that the characters from ``start`` to ``end`` stand on."""
    return tuple(page for page, begin, stop in spans if begin < end and start < stop)
