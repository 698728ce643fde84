"""Pages of a PDF whose text is turned by a quarter or a half, as wide tables are; the parser gives them no Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from liteparse.types import ParsedPage

MOST = 0.5  # of a page's letters that are turned alike
QUARTER = 90


def turned_pages(pages: Sequence[ParsedPage]) -> dict[int, int]:
    """Return the degrees (90, 180, 270), with the clock, by which the text of pages is turned, by their numbers."""
    turns = ((page.page_num, _turn(page)) for page in pages)
    return {number: turn for number, turn in turns if turn}


def turn_of(metadata: Mapping[str, object], number: int) -> int:
    """Return the degrees by which the text of a page (from 1) of a document is turned, by its metadata."""
    turned = metadata.get("turned_pages")
    turn = turned.get(str(number)) if isinstance(turned, Mapping) else None
    return turn if isinstance(turn, int) else 0


def _turn(page: ParsedPage) -> int:
    letters = Counter[int]()
    for item in page.text_items:
        if item.text.strip():
            letters[round(item.rotation / QUARTER) * QUARTER % 360] += len(item.text.strip())
    turn = max(letters, key=lambda degrees: letters[degrees], default=0)
    return turn if letters[turn] > MOST * letters.total() else 0
