"""Rows as text: a Markdown table, or one record of "column: value" lines per row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from workbench.ingestion.readers.header_rows import count_header_rows, merge_header_rows

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


def join_header_rows(rows: list[list[str]]) -> list[list[str]]:
    """Make two header rows one, in place, and return the rows."""
    width = max(map(len, rows), default=0)
    head = [[*row, *[""] * (width - len(row))] for row in rows[:3]]
    if rows and count_header_rows(head) > 1:
        rows[:2] = merge_header_rows(head)[:1]
    return rows


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
