"""Rebuilt tables that replace the parser's blocks, including tables with a single column of figures.

A single column is weaker evidence than two. So each row must be one run of words with a figure far to its right, and
enough figures must look like amounts. A table of contents, whose figures are page numbers, does not qualify.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from statistics import median
from typing import TYPE_CHECKING

from workbench.ingestion.ocr.images import Box
from workbench.ingestion.readers.header_rows import AMOUNT_MARK
from workbench.ingestion.readers.pdf.tables import (
    MAX_HEADER_LINES,
    MAX_LEADING_LINES,
    MAX_ROW_GAP_LINES,
    MAX_SPANNING_NAME_CHARS,
    YEAR,
    FigureRow,
    FigureTable,
    PlacedText,
    find_figure_tables,
    format_table,
    group_rows,
)

if TYPE_CHECKING:
    from liteparse.types import LayoutBlock, LayoutCell, ParsedPage

# --- Blocks of a page, with each list as one ---

LIST_ITEM_KIND = "list_item"


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A block of a page.

    Attributes:
        kind: The parser's name for its kind.
        rows: Rows of a table.
        box: Left, top, right and bottom in points; None if unknown.
    """

    kind: str
    rows: tuple[Sequence[LayoutCell], ...]
    box: tuple[float, float, float, float] | None


def list_blocks(page: ParsedPage) -> list[PageBlock]:
    """Return a page's blocks in order, with consecutive list items as one block."""
    blocks: list[PageBlock] = []
    for block in page.blocks or ():
        own = _make_block(block)
        if own.kind == LIST_ITEM_KIND and blocks and blocks[-1].kind == LIST_ITEM_KIND:
            blocks[-1] = PageBlock(LIST_ITEM_KIND, (), _bounding_box(blocks[-1].box, own.box))
        else:
            blocks.append(own)
    return blocks


def _make_block(block: LayoutBlock) -> PageBlock:
    box = block.bbox
    rows = (*([block.header] if block.header else []), *(block.rows or []))
    return PageBlock(block.kind, rows, None if box is None else (box.x, box.y, box.x + box.width, box.y + box.height))


def _bounding_box(
    one: tuple[float, float, float, float] | None, other: tuple[float, float, float, float] | None
) -> tuple[float, float, float, float] | None:
    if one is None or other is None:
        return None
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])


RIGHT_EDGE_TOLERANCE_PT = 4.0  # points by which the figures' right edges may differ
MIN_GAP_LINES = 1.5  # line heights; minimum gap between a label and its figure, and between two runs of words
MIN_SINGLE_COLUMN_ROWS = 4
MIN_AMOUNT_SHARE = 0.5  # of the figures that must look like amounts: "$ 1,204", "5 %"
MIN_WHOLE_LABEL_SHARE = 0.8  # of the labels that must be one run of words
LEADER_CHARACTERS = "\u2026._ "


def find_single_column_tables(rows: Sequence[FigureRow], taken: Sequence[FigureTable]) -> list[FigureTable]:
    """Return the tables with one column of figures that are not part of the ``taken`` tables."""
    rows = [_use_year_as_label(row) for row in rows]
    free = [all(row.bottom <= table.top or row.top >= table.bottom for table in taken) for row in rows]
    found: list[FigureTable] = []
    run: list[int] = []
    for place in range(len(rows) + 1):
        if place < len(rows) and free[place] and _continues_table(rows, run, place):
            run.append(place)
            continue
        found += _tables_in_run(rows, run)
        run = [place] if place < len(rows) and free[place] and _is_row(rows[place]) else []
    return found


def _use_year_as_label(row: FigureRow) -> FigureRow:
    """Return a line of a year and a figure as a row labelled by the year, as in debt maturities."""
    if row.label or len(row.figures) != 2 or not YEAR.fullmatch(row.figures[0].text):
        return row
    return replace(row, label=row.figures[0].text, figures=row.figures[1:])


def _is_row(row: FigureRow) -> bool:
    """Return whether a line is a label with one figure far to its right."""
    if len(row.figures) != 1 or not _plain_label(row) or row.is_header:
        return False
    return row.figures[0].left - row.right > MIN_GAP_LINES * (row.bottom - row.top)


def _continues_table(rows: Sequence[FigureRow], run: Sequence[int], place: int) -> bool:
    """Return whether a line continues a table: an aligned row, or words left of the figures."""
    if not run:
        return False
    row, before = rows[place], rows[place - 1]
    if row.top - before.bottom > MAX_ROW_GAP_LINES * (row.bottom - row.top):
        return False
    figures = [rows[inside].figures[0] for inside in run if rows[inside].figures]
    edge = median(figure.right for figure in figures)
    if row.figures:
        return _is_row(row) and abs(row.figures[0].right - edge) <= RIGHT_EDGE_TOLERANCE_PT
    worded = 0
    for inside in reversed(run):
        if rows[inside].figures:
            break
        worded += 1
    return worded < MAX_LEADING_LINES and row.right < min(figure.left for figure in figures)


def _tables_in_run(rows: Sequence[FigureRow], run: Sequence[int]) -> list[FigureTable]:
    """Return the table formed by a run of lines, if any."""
    places = list(run)
    while places and not rows[places[-1]].figures:
        places.pop()
    figured = [rows[place] for place in places if rows[place].figures]
    if len(figured) < MIN_SINGLE_COLUMN_ROWS:
        return []
    marked = sum(AMOUNT_MARK.search(row.figures[0].text) is not None for row in figured)
    whole = sum(_is_one_run(row) for row in figured)
    if marked < MIN_AMOUNT_SHARE * len(figured) or whole < MIN_WHOLE_LABEL_SHARE * len(figured):
        return []
    label, name, top = _find_header(rows, places[0], [row.figures[0] for row in figured])
    lines: list[list[str]] = []
    for row in (rows[place] for place in places):
        figure = row.figures[0].text if row.figures else ""
        if lines and _continues_label(lines[-1], row):
            lines[-1] = [f"{lines[-1][0]} {_plain_label(row)}", figure or lines[-1][1]]
        else:
            lines.append([_plain_label(row), figure])
    return [FigureTable(format_table([label, name], lines), top, rows[places[-1]].bottom)]


def _continues_label(line: Sequence[str], row: FigureRow) -> bool:
    """Return whether a row continues the label of the line before: "at December 31," and "2020"."""
    if line[1] and row.figures:
        return False
    return row.label[:1].islower() or (line[0].endswith(",") and YEAR.fullmatch(row.label) is not None)


def _plain_label(row: FigureRow) -> str:
    return row.label.rstrip(LEADER_CHARACTERS)


def _is_one_run(row: FigureRow) -> bool:
    """Return whether the label is one run of words. Two runs are cells of two columns."""
    words = [piece for piece in row.pieces[: len(row.pieces) - len(row.figures)] if piece.text.strip(LEADER_CHARACTERS)]
    gaps = (after.left - before.right for before, after in pairwise(words))
    return all(gap <= MIN_GAP_LINES * (row.bottom - row.top) for gap in gaps)


def _find_header(rows: Sequence[FigureRow], first: int, figures: Sequence[PlacedText]) -> tuple[str, str, float]:
    """Return the names of both columns from the lines above the first row, and the top of the header."""
    left, right = min(figure.left for figure in figures), max(figure.right for figure in figures)
    label, name, top = "", "", rows[first].top
    for place in range(first - 1, max(-1, first - 1 - MAX_HEADER_LINES), -1):
        row = rows[place]
        over = [piece for piece in row.stretches() if piece.right > left]
        beside = [piece.text for piece in row.stretches() if piece.right <= left]
        far = top - row.bottom > MAX_ROW_GAP_LINES * (row.bottom - row.top)
        if (
            far
            or len(over) != 1
            or len(over[0].text) > MAX_SPANNING_NAME_CHARS
            or over[0].right > right + 6 * RIGHT_EDGE_TOLERANCE_PT
        ):
            break
        if (row.figures and not YEAR.search(over[0].text)) or over[0].left < _row_middle(rows[first]):
            break
        name = f"{over[0].text} {name}".strip()
        label = " ".join(filter(None, (*beside, label)))
        top = row.top
    return label, name, top


def _row_middle(row: FigureRow) -> float:
    """Return the horizontal middle of a row. Text that starts left of it does not name the figures."""
    return (row.pieces[0].left + row.pieces[-1].right) / 2


# --- Replacement of the parser's blocks by rebuilt tables ---

WORD = re.compile(r"[^\W_]+")
DIVIDED_WORD = re.compile(
    r"(?<=[^\W\d_])[-\u2010]\s+(?=[^\W\d_])"
)  # a word divided at a line end, which the parser joins
MIN_OVERLAP_PT = 3.0  # points by which a block must overlap a table


def insert_figure_tables(page: ParsedPage, texts: Sequence[str]) -> list[str]:
    """Return the blocks of a page with each rebuilt table in place of the blocks that it covers.

    Args:
        page: A page that was parsed with its blocks.
        texts: Its blocks as Markdown, one for each of ``list_blocks``. If the counts differ, no block is replaced.
    """
    boxes = [block.box for block in list_blocks(page) if block.box is not None]
    if len(boxes) != len(texts):
        return list(texts)
    result = list(texts)
    rows = group_rows(page.text_items)
    for tables, covered in _group_tables(_find_tables(rows), boxes):
        own = [boxes[place] for place in covered]
        others = [box for place, box in enumerate(boxes) if place not in covered]
        for excluded in (others, []):  # a block may be inside the box of another, which then has its words too
            text = _text_in_blocks(rows, tables, own, excluded)
            if contains_all_words(text, [texts[place] for place in covered]):
                result[covered[0]] = text
                for place in covered[1:]:
                    result[place] = ""
                break
    return result


def _find_tables(rows: Sequence[FigureRow]) -> list[FigureTable]:
    tables = find_figure_tables(rows)
    return [*tables, *find_single_column_tables(rows, tables)]


def _group_tables(tables: Sequence[FigureTable], boxes: Sequence[Box]) -> list[tuple[list[FigureTable], list[int]]]:
    """Return tables with the indexes of the blocks they overlap; tables that share a block are in one group."""
    groups: list[tuple[list[FigureTable], list[int]]] = []
    for table in tables:
        covered = {
            place
            for place, box in enumerate(boxes)
            if box[1] < table.bottom - MIN_OVERLAP_PT and box[3] > table.top + MIN_OVERLAP_PT
        }
        if not covered:
            continue
        shared = [group for group in groups if covered & set(group[1])]
        groups = [group for group in groups if group not in shared]
        together = [item for group in shared for item in group[0]]
        groups.append(([*together, table], sorted(covered.union(*(group[1] for group in shared)))))
    return groups


def _text_in_blocks(
    rows: Sequence[FigureRow], tables: Sequence[FigureTable], own: Sequence[Box], others: Sequence[Box]
) -> str:
    """Return the tables, and the words between them that are in ``own`` blocks and not in ``others``."""
    inside = [row for row in rows if _is_beside_box(row, own) and not _is_beside_box(row, others)]
    top = -inf
    parts: list[str] = []
    for table in sorted(tables, key=lambda table: table.top):
        parts += [_words_between(inside, top, table.top), table.markdown]
        top = table.bottom
    return "\n\n".join(filter(None, [*parts, _words_between(inside, top, inf)]))


def _is_beside_box(row: FigureRow, boxes: Sequence[Box]) -> bool:
    """Return whether the middle of a line is at the height of one of the boxes."""
    middle = (row.top + row.bottom) / 2
    return any(box[1] - 1 <= middle < box[3] + 1 for box in boxes)


def _words_between(rows: Sequence[FigureRow], top: float, bottom: float) -> str:
    """Return the words of the lines whose middles are between two heights."""
    lines = (row for row in rows if top - 1 <= (row.top + row.bottom) / 2 < bottom + 1)
    return " ".join(piece.text for row in lines for piece in row.pieces)


def contains_all_words(text: str, texts: Sequence[str]) -> bool:
    """Return whether a text contains every word of ``texts``, whole or divided at a line end."""
    said = {*WORD.findall(text), *WORD.findall(DIVIDED_WORD.sub("", text))}
    return said.issuperset(WORD.findall(" ".join(texts)))
