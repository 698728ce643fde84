"""Prose that the parser took for a table: its lines, cut at the columns of a table above or beside, made whole again.

A run of words stands in one place of the page's text. Where the words of a run are in several cells, there is no cell:
"We are party to | a variety of litigation". Rows above the first such line stay a table, what follows is read in
columns and paragraphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import inf
from typing import TYPE_CHECKING

from workbench.ingestion.readers.grid import markdown_table, one_line
from workbench.ingestion.readers.page_blocks import PageBlock, page_blocks
from workbench.ingestion.readers.replaced_blocks import says_all
from workbench.ingestion.scans.order import paragraphs
from workbench.ingestion.scans.recognition import ReadLine, ReadWord
from workbench.ingestion.scans.skew import Box

if TYPE_CHECKING:
    from liteparse.types import LayoutCell, ParsedPage, TextItem

LEAST_WORDS = 6  # of a run that is looked for in the cells: a shorter one may be the name of several columns
LEAST_CUT = 2  # cut runs that make prose of a table
SLACK = 1.0  # points between a line and the cell that it is in


def with_whole_lines(page: ParsedPage, texts: Sequence[str]) -> list[str]:
    """Return the blocks of a page's Markdown, one for each of ``page_blocks``, with whole lines for cut ones."""
    blocks = page_blocks(page)
    if len(blocks) != len(texts):
        return list(texts)
    return [
        _whole(page, block, text) if block.kind == "table" else text for block, text in zip(blocks, texts, strict=True)
    ]


def _whole(page: ParsedPage, block: PageBlock, text: str) -> str:
    box, rows = block.box, block.rows
    if box is None:
        return text
    items = [item for item in page.text_items if item.text.strip() and _within(item, box)]
    cells = [_letters(cell.text) for row in rows for cell in row]
    cut = [item for item in items if len(item.text.split()) >= LEAST_WORDS and _is_cut(_letters(item.text), cells)]
    if len(cut) < LEAST_CUT:
        return text
    first = min(item.y + item.height / 2 for item in cut)
    kept = list(takewhile(lambda row: _bottom(row) <= first, rows))
    table = markdown_table([[one_line(cell.text) for cell in row] for row in kept]) if len(kept) > 1 else ""
    below = max(map(_bottom, kept)) if table else box[1] - SLACK
    rest = [item for item in items if item.y + item.height / 2 > below]
    whole = "\n\n".join(filter(None, [table, *_paragraphs(rest)]))
    return whole if says_all(whole, [text]) else text


def _within(item: TextItem, box: Box) -> bool:
    left, top, right, bottom = box
    middle = item.y + item.height / 2
    return item.x + item.width > left and item.x < right and top - SLACK <= middle <= bottom + SLACK


def _is_cut(run: str, cells: Sequence[str]) -> bool:
    return not any(run in cell for cell in cells)


def _bottom(row: Sequence[LayoutCell]) -> float:
    """Return where the lowest cell of a row ends; without limit where that is not known."""
    boxes = [cell.bbox for cell in row if cell.text.strip()]
    return max((inf if box is None else box.y + box.height for box in boxes), default=inf)


def _paragraphs(items: Sequence[TextItem]) -> Iterator[str]:
    """Yield the text of items by column and paragraph; of a paragraph with several texts in a line, line by line."""
    lines: list[ReadLine] = []
    for item in items:
        box = (item.x, item.y, item.x + item.width, item.y + item.height)
        lines.append(ReadLine((ReadWord(one_line(item.text), 1.0, box),), box))
    for paragraph in paragraphs(lines):
        texts = [" ".join(line.words[0].text for line in row) for row in paragraph]
        yield (" " if all(len(row) == 1 for row in paragraph) else "\n").join(texts)


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum())
