"""The reader of CSV and TSV: the delimiter sniffed, the header kept, each row readable by itself."""

from __future__ import annotations

import csv
import io
import sys

from workbench.ingestion.decoding import decode
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import one_line, rows_to_text

DELIMITERS = ",;\t|"
SNIFFED_LINES = 30


def read_separated(data: bytes, name: str) -> Draft:
    """Return the rows as a table or as records; the columns' names are in the metadata."""
    text = decode(data, name).replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # the size of the file is limited already
    rows = [[one_line(cell) for cell in row] for row in csv.reader(io.StringIO(text), delimiter=_delimiter(text))]
    rows = [row for row in rows if any(row)]
    if rows and not _is_header(rows):
        rows.insert(0, [f"column {number}" for number in range(1, max(map(len, rows)) + 1)])
    metadata = {"columns": rows[0], "rows": len(rows) - 1} if rows else {}
    return Draft(rows_to_text(rows), metadata=metadata)


def _delimiter(text: str) -> str:
    """Return the delimiter that cuts the first lines into the same number of cells most often, and into most cells."""
    sample = "\n".join(text.split("\n", SNIFFED_LINES)[:SNIFFED_LINES])
    best, best_score = ",", (0.0, 0)
    for delimiter in DELIMITERS:
        widths = [len(row) for row in csv.reader(io.StringIO(sample), delimiter=delimiter) if row]
        if not widths or max(widths) < 2:
            continue
        usual = max(set(widths), key=widths.count)
        score = (widths.count(usual) / len(widths) if usual > 1 else 0.0, usual)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _is_header(rows: list[list[str]]) -> bool:
    """Tell whether the first row holds names: one of numbers, or with gaps or repetitions, does not."""
    first = [cell for cell in rows[0] if cell]
    return len(rows) > 1 and len(set(first)) == len(first) and not any(_is_number(cell) for cell in first)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
