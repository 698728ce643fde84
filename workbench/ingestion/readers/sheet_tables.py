"""The tables of a sheet: what stands between empty rows, each with the lines above it that name it and its units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from workbench.ingestion.readers.grid import filled, fits_table, rows_to_text
from workbench.ingestion.readers.header_rows import is_amount, with_one_header

CAPTION_CHARACTERS = 120  # of lines that head the rows of a long table


@dataclass(frozen=True, slots=True)
class SheetTable:
    """Lines of a single cell, and the rows below them; either may be none."""

    lines: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


def sheet_text(rows: Sequence[Sequence[str]]) -> str:
    """Return a sheet's lines and tables as Markdown; a long table's rows stand below a heading of its lines."""
    parts: list[str] = []
    lines: list[str] = []
    for table in _tables(rows):
        lines += table.lines
        if not table.rows:
            continue
        named = with_one_header(filled(table.rows))
        if lines and not fits_table(named):
            lines = [f"### {' '.join(lines)[:CAPTION_CHARACTERS]}"]
        parts += [*lines, rows_to_text(named)]
        lines = []
    return "\n\n".join([*parts, *lines])


def _tables(rows: Sequence[Sequence[str]]) -> Iterator[SheetTable]:
    """Yield tables in order; rows after a gap that begin with a figure's row go on with the table before it."""
    last: SheetTable | None = None
    for group in _groups(rows):
        leading = list(takewhile(_is_line, group))
        body = group[len(leading) :]
        if last is not None and last.rows and not leading and any(map(is_amount, body[0])):
            last.rows.extend(body)
            continue
        if last is not None:
            yield last
        last = SheetTable([next(filter(None, row)) for row in leading], body)
    if last is not None:
        yield last


def _groups(rows: Sequence[Sequence[str]]) -> Iterator[list[list[str]]]:
    group: list[list[str]] = []
    for row in rows:
        if any(row):
            group.append(list(row))
        elif group:
            yield group
            group = []
    if group:
        yield group


def _is_line(row: Sequence[str]) -> bool:
    return sum(map(bool, row)) == 1
