"""Rows as text: a Markdown table, or one record of "column: value" lines per row; and the header rows of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import cast

MAX_TABLE_CHARS = 4_000
MAX_TABLE_COLUMNS = 8
ROWS_JOINED = 10_000  # rows made text at a time


def rows_to_text(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table if the rows are small enough for one passage, else records.

    The first row has the column names. Empty columns are removed.
    """
    rows = drop_empty(rows)
    if not rows:
        return ""
    if len(rows) == 1:
        return " | ".join(cell for cell in rows[0] if cell)
    return format_markdown_table(rows) if fits_table(rows) else format_records(rows)


def fits_table(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows are few and narrow enough for one table."""
    return sum(len(cell) for row in rows for cell in row) <= MAX_TABLE_CHARS and len(rows[0]) <= MAX_TABLE_COLUMNS


def format_markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of equal length as a Markdown table whose header is the first row."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(lines)


def format_records(rows: Sequence[Sequence[str]]) -> str:
    """Return one paragraph per row, with a line for each cell that is not empty, and one for names without cells."""
    names = [name or f"column {number}" for number, name in enumerate(rows[0], 1)]
    parts: list[str] = []
    unused = set(range(len(names)))
    for row in rows[1:]:
        unused -= {column for column in unused if row[column]}
    for start in range(1, len(rows), ROWS_JOINED):  # all paragraphs at once would take twice the memory of the text
        paragraphs = (
            "\n".join(f"{name}: {cell}" for name, cell in zip(names, row, strict=True) if cell)
            for row in rows[start : start + ROWS_JOINED]
        )
        parts.append("\n\n".join(filter(None, paragraphs)))
    if without := ", ".join(names[column] for column in sorted(unused) if rows[0][column]):
        parts.append(f"Columns without values: {without}")
    return "\n\n".join(filter(None, parts))


def format_cell(value: object) -> str:
    """Return a cell's text on one line, or "" for None."""
    return "" if value is None else " ".join(str(value).split())


def drop_empty(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return the rows that are not empty, padded to equal length, without empty columns."""
    filled = [row for row in rows if any(row)]
    width = max(map(len, filled), default=0)
    used = [column for column in range(width) if any(column < len(row) and row[column] for row in filled)]
    if len(used) == width and all(isinstance(row, list) and len(row) == width for row in filled):
        return cast("list[list[str]]", filled)  # copies of the rows of a large file take as much memory as its text
    return [[row[column] if column < len(row) else "" for column in used] for row in filled]


# --- Header rows: several are merged into one, and a name above several columns applies to each ---

YEAR_CELL = re.compile(r"(?:19|20)\d\d(?: [^\W\d_]{1,3})?")
AMOUNT_CELL = re.compile(  # 1,204 or CHF 1,204 or (€ 5.1) or 12 % or 2.5x or 5 kg
    r"(?:[A-Z]{3} )?[$€£¥(+-]*(?:(?<=[$€£¥]) )?\.?\d[\d.,' ]*[)%]*(?: ?[$€£¥x]| [^\W\d_]{1,3})?\)?"
)
# Marks of an amount, which column names lack: a currency, decimals, thousands separators, a percent sign, or brackets
# around a negative number
AMOUNT_MARK = re.compile(r"[$€£¥]\s*(?:\(?\.?\d|$)|\d\.\d|\d,\d{3}(?!\d)|\d\s?%|(?<!\w)\(\d[\d,.]*\)")
PERCENT_CELL = re.compile(r"[^%]*\d\s?%")
FIGURES_CELL = re.compile(  # only figures, signs, footnote marks, and units of up to three letters
    r"(?:[$€£¥%()+–—.,-]|(?<![^\W\d_])[\d.,]+|\([a-z]{1,2}\)|(?<![^\W\d_])[^\W\d_]{1,3}(?![^\W\d_])|\s)*"
)
ANY_YEAR = re.compile(r"(?<![\d,.$€£¥])(?:19|20)\d\d(?![\d,.%])")
MAX_HEADER_ROWS = 4  # header rows of one table


def merge_header_rows(rows: Sequence[Sequence[str]], header: int | None = None) -> list[list[str]]:
    """Return rows of equal length with a single header row.

    Args:
        rows: Rows of equal length.
        header: Number of header rows; detected from the cells if None.
    """
    count = count_header_rows(rows) if header is None else min(header, MAX_HEADER_ROWS)
    if count < 2:
        return [list(row) for row in rows]
    spread = [*(_fill_gaps(row) for row in rows[: count - 1]), list(rows[count - 1])]
    names = [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*spread, strict=True)]
    return [names, *(list(row) for row in rows[count:])]


def join_header_rows(rows: list[list[str]]) -> list[list[str]]:
    """Make two header rows one, in place, and return the rows."""
    width = max(map(len, rows), default=0)
    head = [[*row, *[""] * (width - len(row))] for row in rows[:3]]
    if rows and count_header_rows(head) > 1:
        rows[:2] = merge_header_rows(head)[:1]
    return rows


def count_header_rows(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of header rows (1 or 2), judged by gaps in the first row.

    The second row names columns if one of the two rows has no label and the first row has gaps.
    """
    if len(rows) < 3 or len(rows[0]) < 3:
        return 1
    first, second = rows[0], rows[1]
    has_gap = any(name and not after for name, after in pairwise(first[1:]))
    if not has_gap or not all(second[1:]) or any(map(is_amount, second)):
        return 1
    has_figures_below = any(map(is_amount, rows[2]))  # if there are words below, the second row may be data
    return 2 if not second[0] or (not first[0] and has_figures_below) else 1


def is_data_row(cells: Sequence[str]) -> bool:
    """Return whether a row is data: a label, and cells that contain only figures.

    At least one cell must look like an amount. Years next to amounts in a cell are remains of a header. A row without a
    label needs more than percentages, because "5 %" and "10 %" may name scenarios.
    """
    figures = [cell for cell in cells[1:] if cell.strip()]
    if not is_label(cells[0]) and cells[0].strip():
        figures.append(cells[0])
    marked = [cell for cell in figures if AMOUNT_MARK.search(cell)]
    if not marked or not all(FIGURES_CELL.fullmatch(cell) for cell in figures):
        return False
    if any(ANY_YEAR.search(cell) for cell in marked) or ANY_YEAR.fullmatch(cells[0].strip()):
        return False
    return is_label(cells[0]) or not all(PERCENT_CELL.fullmatch(cell) for cell in marked)


def is_label(cell: str) -> bool:
    """Return whether a cell contains a word of at least three letters."""
    return re.search(r"[^\W\d_]{3}", cell) is not None


def is_amount(cell: str) -> bool:
    """Return whether a cell is a figure but not a year, which may be a column name."""
    return AMOUNT_CELL.fullmatch(cell) is not None and YEAR_CELL.fullmatch(cell) is None


def _fill_gaps(row: Sequence[str]) -> list[str]:
    """Return a header row with each gap filled by the name before it. The label cell fills no gap."""
    spread = [row[0]]
    for name in row[1:]:
        spread.append(name or (spread[-1] if len(spread) > 1 else ""))
    return spread
