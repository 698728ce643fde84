"""The reader of Excel workbooks: each sheet a section with its rows."""

from __future__ import annotations

import io
import warnings

from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.cell_formats import shown
from workbench.ingestion.readers.package import core_properties, open_package, without_title
from workbench.ingestion.readers.sheet_tables import sheet_text


def read_xlsx(data: bytes, name: str) -> Draft:
    """Return the sheets' values as they show them (of formulas, the result that was stored last)."""
    with open_package(data, name) as package:
        properties = core_properties(package)
    import openpyxl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # features that do not touch the values (charts, validation)
        workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sections = []
        for sheet in workbook.worksheets:
            rows = [[shown(cell.value, cell.number_format) for cell in row] for row in sheet.iter_rows()]
            text = sheet_text(rows)
            if text:
                sections.append(f"## {sheet.title}\n\n{text}")
        workbook.close()
    return Draft("\n\n".join(sections), properties.get("title", ""), without_title(properties))
