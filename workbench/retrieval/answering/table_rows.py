"""Rows of tables as an answer quotes them: the row's label, and each figure with the name of its column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from workbench.table_excerpts import ROW, RULE, cells

_SIGN = re.compile(r"[$€£¥%]")  # of a currency, alone in its cell


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A row from ``start`` to before ``end``, in characters of the text.

    ``shown`` is how people read it ("Net sales, 2024: 1,204"), ``words`` what is held against a question: the same
    without the signs. ``cells`` lacks the names of the columns as well, which every row of the table has alike.
    """

    start: int
    end: int
    words: str
    shown: str
    cells: str


def labelled_rows(text: str, header: str = "") -> Iterator[LabelledRow]:
    """Yield the rows of figures of the tables in a text that was written as Markdown.

    ``header`` is the header of a table that begins before the text. A row without a label or without any further cell
    says nothing by itself and is left out.
    """
    lines = list(ROW.finditer(text))
    columns = cells(next(iter(header.strip().splitlines()), ""))
    for line, following in zip_longest(lines, lines[1:]):
        if RULE.match(line.group()):
            continue
        if following is not None and following.start() == line.end() + 1 and RULE.match(following.group()):
            columns = cells(line.group())
            continue
        row = cells(line.group())
        words = _row_sentence(row, columns, "", ": ")
        if words:
            yield LabelledRow(line.start(), line.end(), words, _row_sentence(row, columns, ":", ", "), " ".join(row))


def _row_sentence(row: list[str], columns: list[str], sign: str, after_label: str) -> str:
    """Return the label, then "column value · column value"; "" without a label, or without named values or figures.

    ``sign`` stands behind a column's name, ``after_label`` behind the label where the first value has one, else ": ".
    """
    label, *values = row
    names = columns[1:] if len(columns) == len(row) else [""] * len(values)
    kept = [(name, value) for name, value in zip(names, values, strict=True) if value and not _SIGN.fullmatch(value)]
    told = [f"{name.rstrip(': ') if sign else name}{sign} {value}" if name else value for name, value in kept]
    says = any(names) or any(char.isdigit() for value in told for char in value)
    behind = after_label if kept and kept[0][0] else ": "
    return f"{label}{behind}{' · '.join(told)}" if label and told and says else ""
