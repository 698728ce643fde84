"""Signs that stand in a column of their own, put back to their figures: "$ | 51" is "$ 51", "(4 | )" is "(4)".

Statements are set with the currency at the left edge of a column and the bracket at its right; a reader of cells takes
the sign for a cell, or for the end of the cell before it ("242 $ | 27 $ | 29").
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SIGN = r"[$€£¥](?:\s*\()?|\("
OPENING = re.compile(rf"(?P<before>|.*\S\s)(?P<sign>{SIGN})")  # all of a cell, or its end
CLOSING = re.compile(r"(?P<sign>\)?\s?%?|%)(?P<after>|\s.*)")
FIGURE = re.compile(r"[$€£¥]?\s?\(?\s?\.?\d[\d,.]*\)?(?:\s?%)?\)?(?:\s?\(\w{1,2}\))*|[-–—]+|N/?[AM]")
OPEN = re.compile(r"[^()]*\([\d,.]+")


def with_whole_amounts(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return rows of equal length with each sign in the cell of its figure, without the columns that held only signs.

    The first row names the columns; the name of a column of signs goes to the column of their figures.
    """
    whole = [_opened(_closed(row)) for row in rows]
    names = list(whole[0]) if whole else []
    emptied = [
        column
        for column in range(len(names))
        if not any(row[column] for row in whole[1:])
        and any(row[column] for row in rows[1:])
        and (column + 1 < len(names) or not names[column])
    ]
    for column in emptied:
        if names[column]:
            names[column + 1] = " ".join(dict.fromkeys(filter(None, (names[column], names[column + 1]))))
    kept = [column for column in range(len(names)) if column not in emptied]
    return [[row[column] for column in kept] for row in [names, *whole[1:]]] if whole else []


def _opened(row: Sequence[str]) -> list[str]:
    """Return a row in which a currency or a bracket at the end of a cell begins the next figure."""
    cells = list(row)
    for place in range(len(cells) - 1):
        match = OPENING.fullmatch(cells[place])
        follower = next((after for after in range(place + 1, len(cells)) if cells[after]), None)
        if match is None or follower is None or not FIGURE.match(cells[follower]):
            continue
        if cells[follower][0] in "$€£¥":
            continue
        if not FIGURE.fullmatch(_without_sign(cells[follower])):
            continue
        joiner = "" if match["sign"].endswith("(") else " "
        cells[place] = match["before"].strip()
        cells[follower] = match["sign"] + joiner + cells[follower]
    return cells


def _without_sign(cell: str) -> str:
    """Return a cell without the sign of the next figure that ends it."""
    match = OPENING.fullmatch(cell)
    return match["before"].strip() if match and match["before"].strip() else cell


def _closed(row: Sequence[str]) -> list[str]:
    """Return a row in which a bracket or a percent sign that begins a cell ends the figure before it."""
    cells = list(row)
    for place in range(1, len(cells)):
        match = CLOSING.fullmatch(cells[place])
        before = next((at for at in range(place - 1, 0, -1) if cells[at]), None)
        if match is None or not match["sign"].strip() or before is None:
            continue
        is_open = OPEN.fullmatch(cells[before]) is not None
        if match["sign"].startswith(")") != is_open or not FIGURE.fullmatch(cells[before] + (")" if is_open else "")):
            continue
        cells[before] += match["sign"] if is_open else f" {match['sign'].strip()}"
        cells[place] = match["after"].strip()
    return cells
