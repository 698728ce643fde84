"""The reader of Excel workbooks: each sheet a section with its rows."""

from __future__ import annotations

import io
import re
import warnings
from datetime import datetime, time
from typing import TYPE_CHECKING

from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import one_line
from workbench.ingestion.readers.package import core_properties, open_package, without_title
from workbench.ingestion.readers.sheet_tables import sheet_text

if TYPE_CHECKING:
    from openpyxl.cell.cell import Cell, MergedCell
    from openpyxl.cell.read_only import EmptyCell, ReadOnlyCell

PERCENT = re.compile(r"0(?:\.(0+))?%")  # in a number format


def read_xlsx(data: bytes, name: str) -> Draft:
    """Return the sheets' values (of formulas, the result that was stored last)."""
    with open_package(data, name) as package:
        properties = core_properties(package)
    import openpyxl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # features that do not touch the values (charts, validation)
        workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sections = []
        for sheet in workbook.worksheets:
            rows = [[_words(cell) for cell in row] for row in sheet.iter_rows()]
            text = sheet_text(rows)
            if text:
                sections.append(f"## {sheet.title}\n\n{text}")
        workbook.close()
    return Draft("\n\n".join(sections), properties.get("title", ""), without_title(properties))


def _words(cell: Cell | MergedCell | ReadOnlyCell | EmptyCell) -> str:
    """Return a cell's value as the sheet shows it: a date without a time of day, a share in percent, 15 digits."""
    value = cell.value
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _figure(value, cell.number_format)
    return one_line(value)


def _figure(value: float, number_format: str) -> str:
    percent = PERCENT.search(number_format)
    if percent is not None:
        return f"{100 * value:.{len(percent[1] or '')}f}%"
    if float(value).is_integer() and abs(value) < 1e15:
        return str(int(value))  # spreadsheets keep whole numbers as floats
    return f"{value:.15g}"
