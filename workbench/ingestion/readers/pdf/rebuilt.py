"""Rebuilt tables that replace the parser's blocks, including tables with a single column of figures.

A single column is weaker evidence than two, so each row must be one run of words with a figure far to its right, and
enough figures must look like amounts. A table of contents, whose figures are page numbers, does not qualify.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from statistics import median
from typing import TYPE_CHECKING

from workbench.ingestion.ocr.images import Box
from workbench.ingestion.readers.header_rows import AMOUNT_MARK, merge_header_rows
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
    group_lines,
    group_rows,
    split_words,
)

if TYPE_CHECKING:
    from liteparse.types import LayoutBlock, LayoutCell, ParsedPage

# --- Blocks of a page, with each list as one ---

LIST_ITEM_KIND = "list_item"


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A block of a page."""

    kind: str  # the parser's name for its kind
    rows: tuple[Sequence[LayoutCell], ...]  # rows of a table
    box: tuple[float, float, float, float] | None  # left, top, right and bottom in points; None if unknown


def list_blocks(page: ParsedPage) -> list[PageBlock]:
    """Return a page's blocks in order, with consecutive list items merged into one block."""
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
    """Return a line with a year and a figure as a row labelled by the year, as in a table of debt maturities."""
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
    """Return whether a row continues the label of the previous line: "at December 31," and "2020"."""
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
        left_texts = [piece.text for piece in row.stretches() if piece.right <= left]
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
        label = " ".join(filter(None, (*left_texts, label)))
        top = row.top
    return label, name, top


def _row_middle(row: FigureRow) -> float:
    """Return the horizontal middle of a row. Text that starts to the left of it does not name the figures."""
    return (row.pieces[0].left + row.pieces[-1].right) / 2


# --- Tables with rules around their cells, read with merged cells ---

RULE_TOLERANCE_PT = 3.0  # points by which rules of one edge may differ, and by which they may miss each other
MAX_RULES = 400  # rules of a page; drawings have more
MIN_RULED_CELLS = 4  # cells with text
MAX_ALIGNED_LINES = 2  # lines in every cell of a row; more are rows without rules between them

Rule = tuple[float, float, float]  # position, start and end in points
Cell = tuple[int, int]  # row and column of the grid


def find_ruled_tables(page: ParsedPage) -> list[FigureTable]:
    """Return the tables whose cells are surrounded by rules. A merged cell applies to each row and column it spans."""
    graphics = page.vector_graphics
    if graphics is None or not 4 <= len(graphics.lines) <= MAX_RULES:
        return []
    lines = [(line.x1, line.y1, line.x2, line.y2) for line in graphics.lines if line.stroke]
    for shape in graphics.shapes:
        x, y, width, height = shape.bbox
        if shape.fill and min(width, height) <= RULE_TOLERANCE_PT:
            middle = (y + height / 2, x + width / 2)
            lines.append(
                (x, middle[0], x + width, middle[0]) if width > height else (middle[1], y, middle[1], y + height)
            )
    across = _join_rules([(y1, min(x1, x2), max(x1, x2)) for x1, y1, x2, y2 in lines if abs(y1 - y2) <= 1])
    down = _join_rules([(x1, min(y1, y2), max(y1, y2)) for x1, y1, x2, y2 in lines if abs(x1 - x2) <= 1])
    tables = (_read_grid(page, *group) for group in _group_rules(across, down))
    return [table for table in tables if table is not None]


def _join_rules(rules: Sequence[Rule]) -> list[Rule]:
    """Join rules that continue each other."""
    joined: list[Rule] = []
    for position, start, end in sorted(rules, key=lambda rule: (round(rule[0] / RULE_TOLERANCE_PT), rule[1])):
        last = joined[-1] if joined else None
        if last is not None and abs(last[0] - position) <= RULE_TOLERANCE_PT and start <= last[2] + RULE_TOLERANCE_PT:
            joined[-1] = (last[0], min(last[1], start), max(last[2], end))
        elif end - start > RULE_TOLERANCE_PT:
            joined.append((position, start, end))
    return joined


def _group_rules(across: Sequence[Rule], down: Sequence[Rule]) -> list[tuple[list[Rule], list[Rule]]]:
    """Return groups of horizontal and vertical rules that touch each other."""
    groups: list[tuple[list[Rule], list[Rule]]] = [([rule], []) for rule in across]
    for rule in down:
        touched = [group for group in groups if any(_touch(other, rule) for other in group[0])]
        if touched:
            groups = [group for group in groups if group not in touched]
            groups.append(
                (
                    [one for group in touched for one in group[0]],
                    [*(one for group in touched for one in group[1]), rule],
                )
            )
    return groups


def _touch(across: Rule, down: Rule) -> bool:
    return (
        across[1] - RULE_TOLERANCE_PT <= down[0] <= across[2] + RULE_TOLERANCE_PT
        and down[1] - RULE_TOLERANCE_PT <= across[0] <= down[2] + RULE_TOLERANCE_PT
    )


def _distinct_positions(positions: Sequence[float]) -> list[float]:
    distinct: list[float] = []
    for position in sorted(positions):
        if not distinct or position - distinct[-1] > RULE_TOLERANCE_PT:
            distinct.append(position)
    return distinct


def _read_grid(page: ParsedPage, across: Sequence[Rule], down: Sequence[Rule]) -> FigureTable | None:
    """Return the table in a group of rules, or None if it is not one (a frame or an axis, for example)."""
    if len(across) < 2 or not down:
        return None
    left, right = min(rule[1] for rule in across), max(rule[2] for rule in across)
    top, bottom = min(rule[1] for rule in down), max(rule[2] for rule in down)
    columns = _distinct_positions([left, right, *(rule[0] for rule in down)])
    rows = _distinct_positions([top, bottom, *(rule[0] for rule in across)])
    if len(columns) < 3 or len(rows) < 3:
        return None
    areas = _merge_cells(columns, rows, across, down)
    if areas is None:
        return None
    texts = _place_words(page, columns, rows, areas)
    filled = {area for area in areas.values() if texts.get(area)}
    if len(filled) < MIN_RULED_CELLS or _lacks_row_rules(rows, areas, texts):
        return None
    grid = [[areas[row, column] for column in range(len(columns) - 1)] for row in range(len(rows) - 1)]
    return FigureTable(_format_grid(grid, texts), top, bottom, left, right)


def _merge_cells(
    columns: Sequence[float], rows: Sequence[float], across: Sequence[Rule], down: Sequence[Rule]
) -> dict[Cell, Cell] | None:
    """Return, for each cell, the first cell of its area, or None if an area is not a rectangle."""
    areas: dict[Cell, Cell] = {}
    for row, (upper, lower) in enumerate(pairwise(rows)):
        for column, (left, right) in enumerate(pairwise(columns)):
            own = areas.setdefault((row, column), (row, column))
            if column + 2 < len(columns) and not _has_rule(down, right, (upper + lower) / 2):
                _unite(areas, own, areas.setdefault((row, column + 1), (row, column + 1)))
            own = areas[row, column]
            if row + 2 < len(rows) and not _has_rule(across, lower, (left + right) / 2):
                _unite(areas, own, areas.setdefault((row + 1, column), (row + 1, column)))
    for area in set(areas.values()):
        cells = [cell for cell, first in areas.items() if first == area]
        height = max(row for row, _ in cells) - min(row for row, _ in cells) + 1
        if height * (max(column for _, column in cells) - min(column for _, column in cells) + 1) != len(cells):
            return None
    return areas


def _unite(areas: dict[Cell, Cell], one: Cell, other: Cell) -> None:
    for cell, area in areas.items():
        if area in (one, other):
            areas[cell] = min(one, other)


def _has_rule(rules: Sequence[Rule], position: float, middle: float) -> bool:
    return any(abs(rule[0] - position) <= RULE_TOLERANCE_PT and rule[1] <= middle <= rule[2] for rule in rules)


def _place_words(
    page: ParsedPage, columns: Sequence[float], rows: Sequence[float], areas: Mapping[Cell, Cell]
) -> dict[Cell, list[str]]:
    """Return the lines of text in each area."""
    lines: dict[Cell, list[tuple[float, list[str]]]] = {}
    for line in group_lines(page.text_items):
        for item in line:
            middle = item.y + item.height / 2
            row = bisect_right(rows, middle) - 1
            whole = bisect_right(columns, item.x + 1) == bisect_right(columns, item.x + item.width - 1)
            pieces = [PlacedText(item.text.strip(), item.x, item.x + item.width)] if whole else split_words(item)
            for piece in pieces:
                area = areas.get((row, bisect_right(columns, (piece.left + piece.right) / 2) - 1))
                if area is None:
                    continue
                own = lines.setdefault(area, [])
                if own and middle - own[-1][0] <= item.height / 2:
                    own[-1][1].append(piece.text)
                else:
                    own.append((middle, [piece.text]))
    return {area: [" ".join(words) for _, words in own] for area, own in lines.items()}


def _lacks_row_rules(rows: Sequence[float], areas: Mapping[Cell, Cell], texts: Mapping[Cell, Sequence[str]]) -> bool:
    """Return whether a row of the grid contains several rows of text without rules between them."""
    for row in range(len(rows) - 1):
        counts = {len(texts.get(area, ())) for cell, area in areas.items() if cell[0] == row}
        if len(counts - {0}) == 1 and max(counts) > MAX_ALIGNED_LINES:
            return True
    return False


def _format_grid(grid: Sequence[Sequence[Cell]], texts: Mapping[Cell, Sequence[str]]) -> str:
    """Return a grid as Markdown, preceded by the single-cell rows above it."""
    titles: list[str] = []
    first = 0
    while first < len(grid) - 1 and len(set(grid[first])) == 1:
        titles.append(" ".join(texts.get(grid[first][0], ())))
        first += 1
    lines: list[list[str]] = []
    for areas in grid[first:]:
        cells = [" ".join(texts.get(area, ())) for area in areas]
        lines.append([cells[0], *([""] * (len(cells) - 1))] if len(set(areas)) == 1 else cells)
    names = grid[first]
    depth = max(sum(area in row for row in grid[first:]) for area in names)
    depth = max(depth, 2 if len(set(names)) < len(names) and len(lines) > 2 else 1)
    merged = merge_header_rows(lines, min(depth, len(lines) - 1) if depth > 1 else None) if len(lines) > 2 else lines
    table = format_table(merged[0], merged[1:])
    return "\n\n".join([*filter(None, dict.fromkeys(titles)), table])


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
    for tables, covered in _group_tables(_find_tables(page, rows), boxes):
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


def _find_tables(page: ParsedPage, rows: Sequence[FigureRow]) -> list[FigureTable]:
    ruled = find_ruled_tables(page)
    tables = [
        table
        for table in find_figure_tables(rows)
        if all(table.bottom <= other.top or table.top >= other.bottom for other in ruled)
    ]
    return [*ruled, *tables, *find_single_column_tables(rows, [*ruled, *tables])]


def _group_tables(tables: Sequence[FigureTable], boxes: Sequence[Box]) -> list[tuple[list[FigureTable], list[int]]]:
    """Return tables with the indexes of the blocks they overlap; tables that share a block are in one group."""
    groups: list[tuple[list[FigureTable], list[int]]] = []
    for table in tables:
        covered = {
            place
            for place, box in enumerate(boxes)
            if box[1] < table.bottom - MIN_OVERLAP_PT
            and box[3] > table.top + MIN_OVERLAP_PT
            and box[0] < table.right
            and box[2] > table.left
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
    """Return whether the middle of a line is level with one of the boxes."""
    middle = (row.top + row.bottom) / 2
    return any(box[1] - 1 <= middle < box[3] + 1 for box in boxes)


def _words_between(rows: Sequence[FigureRow], top: float, bottom: float) -> str:
    """Return the words of the lines whose middles are between two heights."""
    lines = (row for row in rows if top - 1 <= (row.top + row.bottom) / 2 < bottom + 1)
    return " ".join(piece.text for row in lines for piece in row.pieces)


def contains_all_words(text: str, texts: Sequence[str]) -> bool:
    """Return whether a text contains every word of ``texts``, whole or hyphenated at a line break."""
    known_words = {*WORD.findall(text), *WORD.findall(DIVIDED_WORD.sub("", text))}
    return known_words.issuperset(WORD.findall(" ".join(texts)))
