"""The reading order of a page's lines: paragraphs within columns, by the white between them.

A recursive XY-cut (G. Nagy and S. Seth, Hierarchical representation of optically scanned documents, ICPR 1984).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from workbench.ingestion.scans.recognition import ReadLine, around
from workbench.ingestion.scans.skew import Box

COLUMN_GAP = 0.8  # of a line's height: white from top to bottom that is as wide may divide columns
COLUMN_WIDTH = 6.0  # times a line's height: what is narrower is a table's column, whose rows stay together
PARAGRAPH_GAP = 0.25  # of a line's height, more than the usual white between two rows
OTHER_SIZE = 1.3  # times another row's height: the two are not of one paragraph
SAME_ROW = 0.5  # of the lower line's height that both share

LineRow = tuple[ReadLine, ...]  # lines that stand side by side, from left to right
Paragraph = tuple[LineRow, ...]


def paragraphs(lines: Sequence[ReadLine]) -> list[Paragraph]:
    """Return a page's lines as paragraphs in the order in which they are read."""
    if not lines:
        return []
    height = median(line.box[3] - line.box[1] for line in lines)
    return [paragraph for block in _blocks(list(lines), height) for paragraph in _paragraphs(rows(block), height)]


def rows(lines: Sequence[ReadLine]) -> list[LineRow]:
    """Put lines that stand side by side into one row; rows from top to bottom, lines in them from left to right."""
    found: list[list[ReadLine]] = []
    for line in sorted(lines, key=lambda line: line.box[1] + line.box[3]):
        if found and _shares_row(found[-1][-1], line):
            found[-1].append(line)
        else:
            found.append([line])
    return [tuple(sorted(row, key=lambda line: line.box[0])) for row in found]


def _shares_row(one: ReadLine, other: ReadLine) -> bool:
    shared = min(one.box[3], other.box[3]) - max(one.box[1], other.box[1])
    return shared > SAME_ROW * min(one.box[3] - one.box[1], other.box[3] - other.box[1])


def _blocks(lines: list[ReadLine], height: float) -> list[list[ReadLine]]:
    """Divide lines into columns where white runs from top to bottom, else at the widest white across, and so on."""
    if len(lines) < 4:
        return [lines]
    columns = _divided(lines, 0, COLUMN_GAP * height)
    if len(columns) > 1 and all(_is_prose(column, height) for column in columns):
        return [block for column in columns for block in _blocks(column, height)]
    bands = _divided(lines, 1, PARAGRAPH_GAP * height)
    if len(bands) == 1:
        return [lines]
    divided = [_blocks(band, height) for band in bands]
    if all(len(band) == 1 for band in divided):  # no columns anywhere: one block keeps its usual white between rows
        return [lines]
    return [block for band in divided for block in band]


def _divided(lines: Sequence[ReadLine], axis: int, gap: float) -> list[list[ReadLine]]:
    """Divide lines where nothing stands for ``gap`` pixels along an axis (0 across, 1 down)."""
    parts: list[list[ReadLine]] = []
    reached = float("-inf")
    for line in sorted(lines, key=lambda line: line.box[axis]):
        if line.box[axis] - reached >= gap:
            parts.append([])
        parts[-1].append(line)
        reached = max(reached, line.box[axis + 2])
    return parts


def _is_prose(column: Sequence[ReadLine], height: float) -> bool:
    return len(column) > 1 and median(line.box[2] - line.box[0] for line in column) >= COLUMN_WIDTH * height


def _paragraphs(rows_of_block: Sequence[LineRow], height: float) -> list[Paragraph]:
    boxes = [around([line.box for line in row]) for row in rows_of_block]
    white = [after[1] - before[3] for before, after in pairwise(boxes)]
    usual = median(white) if white else 0.0
    found: list[list[LineRow]] = []
    for number, row in enumerate(rows_of_block):
        if not number or white[number - 1] > usual + PARAGRAPH_GAP * height or _sizes_differ(boxes[number - 1 :]):
            found.append([])
        found[-1].append(row)
    return [tuple(paragraph) for paragraph in found]


def _sizes_differ(boxes: Sequence[Box]) -> bool:
    """Tell whether the first two rows are printed in different sizes, as a heading and its text are."""
    lesser, larger = sorted(bottom - top for _, top, _, bottom in boxes[:2])
    return larger > OTHER_SIZE * lesser
