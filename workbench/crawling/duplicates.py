"""Duplicates: a page whose text another page has, or one page that holds many others again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NEAR = 0.9  # share of a page's paragraphs and short lines that its copy has; the copy has no others
FEWEST_BLOCKS = 5  # paragraphs below which only equal texts count as the same
CONTAINED_SHARE = 0.8  # share of a page's paragraphs that lie in a larger one, to count as held by it
COVERED = 0.95  # share of the larger page's paragraphs that the pages it holds cover, to count as their collection
FEWEST_HELD = 3
COMMON = 0.5  # share of all pages above which a paragraph belongs to the site, not to a page


@dataclass(frozen=True, slots=True)
class PageToCompare:
    """A page as this module sees it: its address, and the hashes of its paragraphs."""

    url: str
    blocks: tuple[int, ...]


def repeats(pages: Sequence[PageToCompare]) -> dict[str, str]:
    """Return {address: reason} of the pages that only repeat others; ``pages`` in the order they were met.

    Of two pages that are nearly the same the later one goes if all of its text is in the earlier one: pages that
    differ in a line, such as two data sheets, are both kept. A collection (a print page that holds a whole book)
    goes when at least three other pages together cover nearly all of it.
    """
    reasons: dict[str, str] = {}
    holders: dict[int, list[int]] = defaultdict(list)
    for place, page in enumerate(pages):
        for block in page.blocks:
            holders[block].append(place)
    everywhere = {block for block, places in holders.items() if len(places) > max(3, COMMON * len(pages))}
    pages = [PageToCompare(page.url, tuple(b for b in page.blocks if b not in everywhere)) for page in pages]
    for place, page in enumerate(pages):
        if len(page.blocks) >= FEWEST_BLOCKS:
            shared = _shared(place, page, holders)
            reason = _collection(page, shared, pages, reasons) or _near(place, page, shared, pages, reasons)
            if reason:
                reasons[page.url] = reason
    return reasons


def _shared(place: int, page: PageToCompare, holders: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Return {other page's place: the paragraphs it has in common with this one}."""
    shared: dict[int, list[int]] = defaultdict(list)
    for block in page.blocks:
        for other in holders[block]:
            if other != place:
                shared[other].append(block)
    return shared


def _near(
    place: int,
    page: PageToCompare,
    shared: Mapping[int, Sequence[int]],
    pages: Sequence[PageToCompare],
    gone: Mapping[str, str],
) -> str:
    for other in sorted(shared):
        holds_all = len(shared[other]) == len(page.blocks) >= NEAR * len(pages[other].blocks)
        if holds_all and other < place and pages[other].url not in gone:
            return f"nearly the same text as {pages[other].url}"
    return ""


def _collection(
    page: PageToCompare, shared: Mapping[int, Sequence[int]], pages: Sequence[PageToCompare], gone: Mapping[str, str]
) -> str:
    contained = [
        other
        for other, common in shared.items()
        if pages[other].url not in gone
        and len(pages[other].blocks) < len(page.blocks) / 2
        and len(common) >= CONTAINED_SHARE * len(pages[other].blocks)
    ]
    covered = {block for other in contained for block in shared[other]}
    if len(contained) >= FEWEST_HELD and len(covered) >= COVERED * len(page.blocks):
        return f"holds {len(contained)} other pages again"
    return ""
