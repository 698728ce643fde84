"""The numbers that pages bear: a PDF's own page labels, or those printed at the edges of its pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from liteparse.types import ParsedPage

EDGE = 2  # lines looked at from each end of a page
LEAST = 3  # pages that must bear a number
SHARE = 0.5  # of the pages with text that must bear one at the same distance from the count
PRINTED = re.compile(r"\W*(?:page|p\.|seite|pagina|página)?\s*(\d{1,4})\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageLabel:
    """A page's number from 1, its label in the file ("" for none), and the numbers printed at its edges.

    ``edges`` is None of a page without text.
    """

    number: int
    own: str
    edges: frozenset[int] | None


def label_of(page: ParsedPage) -> PageLabel:
    """Return what a page says of its number."""
    edges = frozenset(_edge_numbers(page.text)) if page.text.strip() else None
    return PageLabel(page.page_num, page.page_label or "", edges)


def page_labels(pages: Sequence[PageLabel]) -> dict[str, str]:
    """Return the labels of pages by their numbers (from 1, as text), where they differ from the numbers.

    A file's own labels win; else a number printed in the first or last two lines counts where at least half of the
    pages bear one at the same distance from the count.
    """
    own = {str(page.number): page.own for page in pages if page.own}
    labels = own or _printed(pages)
    return labels if any(number != label for number, label in labels.items()) else {}


def _printed(pages: Sequence[PageLabel]) -> dict[str, str]:
    numbers = [(page.number, page.edges) for page in pages if page.edges is not None]
    distances = Counter(page - number for page, printed in numbers for number in printed)
    if not distances:
        return {}
    distance, count = distances.most_common(1)[0]
    if count < max(LEAST, SHARE * len(numbers)):
        return {}
    return {str(page): str(page - distance) for page, printed in numbers if page - distance in printed}


def _edge_numbers(text: str) -> Iterator[int]:
    lines = [line for line in text.splitlines() if line.strip()]
    for line in (*lines[:EDGE], *lines[EDGE:][-EDGE:]):
        match = PRINTED.fullmatch(line.strip())
        if match is not None:
            yield int(match[1])
