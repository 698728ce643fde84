"""Read Excel workbooks: each sheet a section with its rows."""

from __future__ import annotations

import io
import warnings

from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import one_line, rows_to_text
from workbench.ingestion.readers.package import core_properties, open_package, without_title


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
            rows = [[_cell(value) for value in row] for row in sheet.iter_rows(values_only=True)]
            text = rows_to_text(rows)
            if text:
                sections.append(f"## {sheet.title}\n\n{text}")
        workbook.close()
    return Draft("\n\n".join(sections), properties.get("title", ""), without_title(properties))


def _cell(value: object) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))  # spreadsheets keep whole numbers as floats
    return one_line(value)
