"""Reader of Excel workbooks. Cells are formatted by their number formats: "#,##0.00", "0.0%", "$#,##0"."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import drop_empty, fits_table, format_cell, rows_to_text
from workbench.ingestion.readers.header_rows import is_amount, merge_header_rows
from workbench.ingestion.readers.office import drop_title, open_package, read_core_properties

SECTION_SEPARATOR = re.compile(r';(?=(?:[^"]*"[^"]*")*[^"]*$)')  # semicolons outside quotes
FORMAT_CONDITION = re.compile(r"\[[<>=]")
FORMAT_TOKEN = re.compile(
    r'"(?P<text>[^"]*)"|\\(?P<sign>.)|\[\$(?P<coin>[^\]-]*)[^\]]*\]|\[[^\]]*\]|_.|\*.'
    r"|(?P<digits>[#0?][#0?,]*(?:\.[#0?]*)?,*|\.[#0?]+,*)|(?P<other>.)",
    re.DOTALL,
)
MAX_FORMATTED_VALUE = 1e15  # larger figures are not formatted
DECIMAL_PRECISION_DIGITS = 80  # decimal precision: 15 digits of the figure plus the most decimals a format can have


class NumberFormat(NamedTuple):
    """A section of a number format: the text around the figure and how to write the figure."""

    before: str
    after: str
    whole: int  # minimum digits before the decimal point
    least: int  # minimum decimals
    most: int  # maximum decimals
    grouped: bool  # with thousands separators: 1,204
    scale: Decimal  # factor applied before formatting, 100 for percent


def format_value(value: object, number_format: str) -> str:
    """Return a cell's value on one line as the sheet shows it, or as stored if the format is not supported.

    Dates are written in ISO 8601 regardless of their format.
    """
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return format_cell(value)
    sections = SECTION_SEPARATOR.split(number_format)
    opposite = value < 0 and len(sections) > 1  # its section has the minus sign or brackets
    place = 1 if opposite else 2 if not value and len(sections) > 2 else 0
    form = None if FORMAT_CONDITION.search(number_format) else _parse_section(sections[place])
    if form is None or not abs(value) < MAX_FORMATTED_VALUE:
        return _format_stored(value)
    return _format_number(abs(value) if opposite else value, form)


def _format_stored(value: float) -> str:
    if float(value).is_integer() and abs(value) < MAX_FORMATTED_VALUE:
        return str(int(value))  # spreadsheets store integers as floats
    return f"{value:.15g}"


@lru_cache(maxsize=256)
def _parse_section(section: str) -> NumberFormat | None:
    """Parse a section, or return None if not supported: dates, fractions, exponents, "General", no figure."""
    around, digits, hundredfold = ["", ""], "", 0
    for token in FORMAT_TOKEN.finditer(section):
        if token["digits"]:
            if digits:
                return None
            digits = token["digits"]
        elif (other := token["other"]) is not None and (other.isalnum() or other in "/@"):
            return None
        else:
            hundredfold += other == "%"  # a quoted "%" is text
            around[bool(digits)] += token["text"] or token["sign"] or token["coin"] or other or ""
    if not digits:
        return None
    whole, _, fraction = digits.rstrip(",").partition(".")
    thousandth = len(digits) - len(digits.rstrip(",")) + len(whole) - len(whole.rstrip(","))
    whole = whole.rstrip(",")
    scale = Decimal(100) ** hundredfold / Decimal(1000) ** thousandth
    before, after = around[0].lstrip(), around[1].rstrip()
    return NumberFormat(before, after, whole.count("0"), fraction.count("0"), len(fraction), "," in whole, scale)


def _format_number(value: float, form: NumberFormat) -> str:
    """Format a figure with 15 digits, rounding half away from zero as spreadsheets do."""
    with localcontext(prec=DECIMAL_PRECISION_DIGITS):
        exact = Decimal(f"{value:.15g}") * form.scale
        rounded = abs(exact).quantize(Decimal(1).scaleb(-form.most), ROUND_HALF_UP)
    whole, _, fraction = f"{rounded:f}".partition(".")
    whole = whole.lstrip("0").rjust(form.whole, "0")
    if form.grouped and whole:
        whole = f"{int(whole):,}".rjust(form.whole, "0")
    fraction = fraction[: form.least] + fraction[form.least :].rstrip("0")
    figure = f"{whole}.{fraction}" if fraction else whole
    return format_cell(f"{'-' if exact < 0 and rounded else ''}{form.before}{figure}{form.after}")


# --- Tables of a sheet, separated by empty rows ---

MAX_CAPTION_CHARS = 120  # of the lines used as heading of a long table


@dataclass(frozen=True, slots=True)
class SheetTable:
    """Lines with a single cell, and the rows below them. Either may be empty."""

    lines: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


def format_sheet(rows: Sequence[Sequence[str]]) -> str:
    """Return a sheet's lines and tables as Markdown. The lines above a long table become its heading."""
    parts: list[str] = []
    lines: list[str] = []
    for table in _find_tables(rows):
        lines += table.lines
        if not table.rows:
            continue
        named = merge_header_rows(drop_empty(table.rows))
        if lines and not fits_table(named):
            lines = [f"### {' '.join(lines)[:MAX_CAPTION_CHARS]}"]
        parts += [*lines, rows_to_text(named)]
        lines = []
    return "\n\n".join([*parts, *lines])


def _find_tables(rows: Sequence[Sequence[str]]) -> Iterator[SheetTable]:
    """Yield tables in order. Rows after a gap that start with a data row continue the table before it."""
    last: SheetTable | None = None
    for group in _group_rows(rows):
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


def _group_rows(rows: Sequence[Sequence[str]]) -> Iterator[list[list[str]]]:
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


# --- Workbooks, with one section per sheet ---


def read_xlsx(data: bytes, name: str) -> Draft:
    """Return the sheets' values as displayed; formulas have their stored results."""
    with open_package(data, name) as package:
        properties = read_core_properties(package)
    import openpyxl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # features that do not affect values (charts, validation)
        workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sections = []
        for sheet in workbook.worksheets:
            rows = [[format_value(cell.value, cell.number_format) for cell in row] for row in sheet.iter_rows()]
            text = format_sheet(rows)
            if text:
                sections.append(f"## {sheet.title}\n\n{text}")
        workbook.close()
    return Draft("\n\n".join(sections), properties.get("title", ""), drop_title(properties))
