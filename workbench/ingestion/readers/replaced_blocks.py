"""Rebuilt tables in the place of the parser's blocks that they cover, so that the page says each of its words still."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from workbench.ingestion.readers.figure_rows import FigureRow, rows_of
from workbench.ingestion.readers.figure_tables import FigureTable, figure_tables
from workbench.ingestion.readers.page_blocks import page_blocks
from workbench.ingestion.readers.page_columns import Region, regions_of
from workbench.ingestion.readers.single_columns import single_column_tables
from workbench.ingestion.scans.skew import Box

if TYPE_CHECKING:
    from liteparse.types import ParsedPage

WORD = re.compile(r"[^\W_]+")
DIVIDED = re.compile(r"(?<=[^\W\d_])[-\u2010]\s+(?=[^\W\d_])")  # a word at a line's end, which the parser makes whole
OVERLAP = 3.0  # points that a block must reach into a table to be part of it


def with_figure_tables(page: ParsedPage, texts: Sequence[str]) -> list[str]:
    """Return the blocks of a page's Markdown with each rebuilt table in place of the blocks that it covers.

    ``texts`` are the page's blocks as Markdown, one for each of ``page_blocks``; where they are not, none is replaced.
    """
    boxes = [block.box for block in page_blocks(page) if block.box is not None]
    if len(boxes) != len(texts):
        return list(texts)
    result = list(texts)
    regions = regions_of(page.text_items, page.width)
    rows = [rows_of(region.items) for region in regions]
    placed = [(place, table) for place, lines in enumerate(rows) for table in _tables_in_rows(lines)]
    for tables, covered in _groups(placed, regions, boxes):
        own = [boxes[place] for place in covered]
        others = [box for place, box in enumerate(boxes) if place not in covered]
        for left_out in (others, []):  # a block may lie within the box of another one, which says it, too
            parts = (
                _region_text(region, lines, [table for at, table in tables if at == place], own, left_out)
                for place, (region, lines) in enumerate(zip(regions, rows, strict=True))
            )
            text = "\n\n".join(filter(None, parts))
            if says_all(text, [texts[place] for place in covered]):
                result[covered[0]] = text
                for place in covered[1:]:
                    result[place] = ""
                break
    return result


def _tables_in_rows(rows: Sequence[FigureRow]) -> list[FigureTable]:
    tables = figure_tables(rows)
    return [*tables, *single_column_tables(rows, tables)]


def _groups(
    tables: Sequence[tuple[int, FigureTable]], regions: Sequence[Region], boxes: Sequence[Box]
) -> list[tuple[list[tuple[int, FigureTable]], list[int]]]:
    """Return tables, each with its region's place, with the places of the blocks that they reach into.

    Those that share a block are together.
    """
    groups: list[tuple[list[tuple[int, FigureTable]], list[int]]] = []
    for region, table in tables:
        covered = {
            place
            for place, box in enumerate(boxes)
            if _reaches(regions[region], box) and box[1] < table.bottom - OVERLAP and box[3] > table.top + OVERLAP
        }
        if not covered:
            continue
        shared = [group for group in groups if covered & set(group[1])]
        groups = [group for group in groups if group not in shared]
        together = [item for group in shared for item in group[0]]
        groups.append(([*together, (region, table)], sorted(covered.union(*(group[1] for group in shared)))))
    return groups


def _reaches(region: Region, box: Box) -> bool:
    return box[0] < region.right - OVERLAP and box[2] > region.left + OVERLAP


def _region_text(
    region: Region,
    rows: Sequence[FigureRow],
    tables: Sequence[FigureTable],
    own: Sequence[Box],
    others: Sequence[Box],
) -> str:
    """Return what a region says within its own blocks and not in others: its tables, and the words between them."""
    inside = [row for row in rows if _is_in(row, region, own) and not _is_in(row, region, others)]
    top = -inf
    parts: list[str] = []
    for table in sorted(tables, key=lambda table: table.top):
        parts += [_words(inside, top, table.top), table.markdown]
        top = table.bottom
    return "\n\n".join(filter(None, [*parts, _words(inside, top, inf)]))


def _is_in(row: FigureRow, region: Region, boxes: Sequence[Box]) -> bool:
    """Tell whether the middle of a region's line lies in one of the boxes that reach into the region."""
    middle = (row.top + row.bottom) / 2
    return any(_reaches(region, box) and box[1] - 1 <= middle < box[3] + 1 for box in boxes)


def _words(rows: Sequence[FigureRow], top: float, bottom: float) -> str:
    """Return the words of the lines whose middles lie between two heights."""
    lines = (row for row in rows if top - 1 <= (row.top + row.bottom) / 2 < bottom + 1)
    return " ".join(piece.text for row in lines for piece in row.pieces)


def says_all(text: str, texts: Sequence[str]) -> bool:
    """Tell whether a text says every word of the texts that it would replace, whole or divided at a line's end."""
    said = {*WORD.findall(text), *WORD.findall(DIVIDED.sub("", text))}
    return said.issuperset(WORD.findall(" ".join(texts)))
