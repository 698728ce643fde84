"""Rows of tables as an answer quotes them: the row's label, and each figure with the name of its column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

ROW = re.compile(r"^\|.*\|[ \t]*$", re.MULTILINE)
_RULE = re.compile(r"^\|(?:\s*:?-+:?\s*\|)+\s*$")
_CELL = re.compile(r"(?<!\\)\|")  # a bar behind a backslash belongs to the cell
_SIGN = re.compile(r"[$€£¥%]")  # of a currency, alone in its cell


def labelled_rows(text: str, header: str = "") -> Iterator[tuple[int, int, str, str]]:
    """Yield (start, end, words, cells) of each row of figures of the tables in a text that was written as Markdown.

    ``cells`` are the words without the names of the columns, which every row of the table has alike; ``header`` is the
    header of a table that begins before the text. A row without a label or without any further cell says nothing by
    itself and is left out.
    """
    lines = list(ROW.finditer(text))
    columns = cells(next(iter(header.strip().splitlines()), ""))
    for line, following in zip_longest(lines, lines[1:]):
        if _RULE.match(line.group()):
            continue
        if following is not None and following.start() == line.end() + 1 and _RULE.match(following.group()):
            columns = cells(line.group())
            continue
        words = _words(cells(line.group()), columns)
        if words:
            yield line.start(), line.end(), words, " ".join(cells(line.group()))


def cells(row: str) -> list[str]:
    """Return the cells of a row, stripped."""
    return [" ".join(cell.replace("\\|", "|").split()) for cell in _CELL.split(row.strip().strip("|"))]


def _words(row: list[str], columns: list[str]) -> str:
    """Return "label: column value · column value"; "" without a label, or without values that are named or figures."""
    label, *values = row
    names = columns[1:] if len(columns) == len(row) else [""] * len(values)
    told = [
        f"{name} {value}".strip()
        for name, value in zip(names, values, strict=True)
        if value and not _SIGN.fullmatch(value)
    ]
    says = any(names) or any(char.isdigit() for value in told for char in value)
    return f"{label}: {' · '.join(told)}" if label and told and says else ""
