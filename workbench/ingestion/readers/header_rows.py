"""The header rows of a table: several are merged into one, and a name above several columns applies to each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

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
