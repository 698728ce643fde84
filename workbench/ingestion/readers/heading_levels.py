"""One order of heading levels for a PDF that was parsed in windows, each of which had levels of its own.

The parser gives a larger print a higher level, and bold lines in the size of the text the level below all of these; it
knows only the sizes of its window.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from workbench.ingestion.readers.running_headers import PageTexts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from liteparse.types import LayoutBlock, ParsedPage

LARGER = 0.5  # points by which a heading's print exceeds the usual one, or another size of headings
LOWEST = 6
MARK = re.compile(r"#{1,6}(?= )")


@dataclass(frozen=True, slots=True)
class HeadingSizes:
    """The size of the usual print of a window, and those of its headings by page and text, in points."""

    usual: float = 0.0
    of_headings: Mapping[tuple[int, str], float] = field(default_factory=dict[tuple[int, str], float])

    def larger(self) -> list[float]:
        """Return the sizes of headings in larger print than the usual one."""
        return [size for size in self.of_headings.values() if size > self.usual + LARGER]


def heading_sizes(pages: Sequence[ParsedPage]) -> HeadingSizes:
    """Return the sizes of print of a window of pages, parsed with their blocks."""
    letters = Counter[float]()
    for page in pages:
        for item in page.text_items:
            letters[round(item.font_size or 0.0, 1)] += len(item.text)
    usual = max(letters, key=lambda size: letters[size], default=0.0)
    return HeadingSizes(usual, {key: size for page in pages for key, size in _of_headings(page)})


def with_levels_of_all(windows: Sequence[Sequence[PageTexts]], sizes: Sequence[HeadingSizes]) -> list[list[PageTexts]]:
    """Return the pages of all windows with heading levels that mean the same in each."""
    distinct = _distinct([size for window in sizes for size in window.larger()])
    return [
        [_levelled(page, window_sizes, distinct) for page in window]
        for window, window_sizes in zip(windows, sizes, strict=True)
    ]


def _of_headings(page: ParsedPage) -> Iterator[tuple[tuple[int, str], float]]:
    for block in page.blocks or ():
        if block.kind == "heading" and block.text and (size := _size(page, block)):
            yield (page.page_num, _letters(block.text)), size


def _size(page: ParsedPage, block: LayoutBlock) -> float:
    """Return the size of most letters in a block's box; 0 where nothing is known."""
    box = block.bbox
    sizes = Counter[float]()
    for item in page.text_items if box is not None else ():
        middle = item.y + item.height / 2
        if box is not None and box.y <= middle <= box.y + box.height and box.x - 1 <= item.x <= box.x + box.width:
            sizes[item.font_size or 0.0] += len(item.text.strip())
    return max(sizes, key=lambda size: sizes[size], default=0.0)


def _distinct(sizes: Sequence[float]) -> list[float]:
    """Return the sizes from the largest down, those that are nearly alike once."""
    kept: list[float] = []
    for size in sorted(sizes, reverse=True):
        if not kept or kept[-1] - size > LARGER:
            kept.append(size)
    return kept


def _levelled(page: PageTexts, sizes: HeadingSizes, distinct: Sequence[float]) -> PageTexts:
    own = len(_distinct(sizes.larger()))

    def level(text: str) -> str:
        mark = MARK.match(text)
        size = sizes.of_headings.get((page.number, _letters(text)))
        if mark is None or size is None:
            return text
        if size > sizes.usual + LARGER:
            rank = sum(larger > size + LARGER for larger in distinct) + 1
        elif len(mark[0]) == 1 and own:  # named by the file's outline, as parts and items are
            rank = 1
        else:
            rank = len(distinct) + 1
        return "#" * min(rank, LOWEST) + text[mark.end() :]

    margins = tuple(replace(line, text=level(line.text)) for line in page.margins)
    return PageTexts(page.number, tuple(level(text) for text in page.blocks), margins)


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum())
