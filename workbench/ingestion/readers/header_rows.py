"""The rows of a grid that name its columns: several become one, and a name over columns belongs to each of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

YEAR = re.compile(r"(?:19|20)\d\d(?: [^\W\d_]{1,3})?")
AMOUNT = re.compile(  # 1,204 or CHF 1,204 or (€ 5.1) or 12 % or 2.5x or 5 kg
    r"(?:[A-Z]{3} )?[$€£¥(+-]*(?:(?<=[$€£¥]) )?\.?\d[\d.,' ]*[)%]*(?: ?[$€£¥x]| [^\W\d_]{1,3})?\)?"
)
MOST_ROWS = 4  # of names above one table


def with_one_header(rows: Sequence[Sequence[str]], header: int | None = None) -> list[list[str]]:
    """Return rows of equal length with one row of names; ``header`` says how many there are, where that is known.

    A second row names columns where one of the two has no label of its own and the first one leaves out names.
    """
    count = header_rows(rows) if header is None else min(header, MOST_ROWS)
    if count < 2:
        return [list(row) for row in rows]
    spread = [*(_spread(row) for row in rows[: count - 1]), list(rows[count - 1])]
    names = [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*spread, strict=True)]
    return [names, *(list(row) for row in rows[count:])]


def header_rows(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows at the top name the columns, as far as their gaps tell: 1 or 2."""
    if len(rows) < 3 or len(rows[0]) < 3:
        return 1
    first, second = rows[0], rows[1]
    has_gap = any(name and not after for name, after in pairwise(first[1:]))
    if not has_gap or not all(second[1:]) or any(map(is_amount, second)):
        return 1
    has_figures_below = any(map(is_amount, rows[2]))  # where words stand below, the second row may be one of them
    return 2 if not second[0] or (not first[0] and has_figures_below) else 1


def is_amount(cell: str) -> bool:
    """Tell whether a cell holds a figure; a year may be a name."""
    return AMOUNT.fullmatch(cell) is not None and YEAR.fullmatch(cell) is None


def _spread(row: Sequence[str]) -> list[str]:
    """Return a row of names in which a gap has the name before it; what stands over the labels spans nothing."""
    spread = [row[0]]
    for name in row[1:]:
        spread.append(name or (spread[-1] if len(spread) > 1 else ""))
    return spread
