"""Rows as text: a Markdown table, or one record of "column: value" lines per row; header rows; number formats."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from itertools import pairwise
from math import isfinite
from typing import NamedTuple, cast

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


# --- Header rows: several are merged into one, and a name above several columns applies to each ---

YEAR_CELL = re.compile(r"(?:19|20)\d\d(?: [^\W\d_]{1,3})?")
AMOUNT_CELL = re.compile(  # 1,204 or CHF 1,204 or (€ 5.1) or 12 % or 2.5x or 5 kg
    r"(?:[A-Z]{3} )?[$€£¥(+-]*(?:(?<=[$€£¥]) )?\.?\d[\d.,' ]*[)%]*(?: ?[$€£¥x]| [^\W\d_]{1,3})?\)?"
)
# Marks of an amount, which column names lack: a currency, decimals, thousands separators, a percent sign, or brackets
# around a negative number
AMOUNT_MARK = re.compile(r"[$€£¥]\s*(?:\(?\.?\d|$)|\d\.\d|\d,\d{3}(?!\d)|\d\s?%|(?<!\w)\(\d[\d,.]*\)")
PERCENT_CELL = re.compile(r"[^%]*\d\s?%")
FIGURES_CELL = re.compile(  # only figures, signs, footnote marks, and units of up to three letters
    r"(?:[$€£¥%()+–—.,-]|(?<![^\W\d_])[\d.,]+|\([a-z]{1,2}\)|(?<![^\W\d_])[^\W\d_]{1,3}(?![^\W\d_])|\s)*"
)
ANY_YEAR = re.compile(r"(?<![\d,.$€£¥])(?:19|20)\d\d(?![\d,.%])")
MAX_HEADER_ROWS = 4  # header rows of one table


def merge_header_rows(rows: Sequence[Sequence[str]], header: int | None = None) -> list[list[str]]:
    """Return rows of equal length with a single header row.

    Args:
        rows: Rows of equal length.
        header: Number of header rows; detected from the cells if None.
    """
    count = count_header_rows(rows) if header is None else min(header, MAX_HEADER_ROWS)
    if count < 2:
        return [list(row) for row in rows]
    spread = [*(_fill_gaps(row) for row in rows[: count - 1]), list(rows[count - 1])]
    names = [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*spread, strict=True)]
    return [names, *(list(row) for row in rows[count:])]


def join_header_rows(rows: list[list[str]]) -> list[list[str]]:
    """Make two header rows one, in place, and return the rows."""
    width = max(map(len, rows), default=0)
    head = [[*row, *[""] * (width - len(row))] for row in rows[:3]]
    if rows and count_header_rows(head) > 1:
        rows[:2] = merge_header_rows(head)[:1]
    return rows


def count_header_rows(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of header rows (1 or 2), judged by gaps in the first row.

    The second row names columns if one of the two rows has no label and the first row has gaps.
    """
    if len(rows) < 3 or len(rows[0]) < 3:
        return 1
    first, second = rows[0], rows[1]
    has_gap = any(name and not after for name, after in pairwise(first[1:]))
    if not has_gap or not all(second[1:]) or any(map(is_amount, second)):
        return 1
    has_figures_below = any(map(is_amount, rows[2]))  # if there are words below, the second row may be data
    return 2 if not second[0] or (not first[0] and has_figures_below) else 1


def is_data_row(cells: Sequence[str]) -> bool:
    """Return whether a row is data: a label, and cells that contain only figures.

    At least one cell must look like an amount. Years next to amounts in a cell are remains of a header. A row without a
    label needs more than percentages, because "5 %" and "10 %" may name scenarios.
    """
    figures = [cell for cell in cells[1:] if cell.strip()]
    if not is_label(cells[0]) and cells[0].strip():
        figures.append(cells[0])
    marked = [cell for cell in figures if AMOUNT_MARK.search(cell)]
    if not marked or not all(FIGURES_CELL.fullmatch(cell) for cell in figures):
        return False
    if any(ANY_YEAR.search(cell) for cell in marked) or ANY_YEAR.fullmatch(cells[0].strip()):
        return False
    return is_label(cells[0]) or not all(PERCENT_CELL.fullmatch(cell) for cell in marked)


def is_label(cell: str) -> bool:
    """Return whether a cell contains a word of at least three letters."""
    return re.search(r"[^\W\d_]{3}", cell) is not None


def is_amount(cell: str) -> bool:
    """Return whether a cell is a figure but not a year, which may be a column name."""
    return AMOUNT_CELL.fullmatch(cell) is not None and YEAR_CELL.fullmatch(cell) is None


def _fill_gaps(row: Sequence[str]) -> list[str]:
    """Return a header row with each gap filled by the name before it. The label cell fills no gap."""
    spread = [row[0]]
    for name in row[1:]:
        spread.append(name or (spread[-1] if len(spread) > 1 else ""))
    return spread


# --- Figures in the number formats of sheets and charts ---

SECTION_SEPARATOR = re.compile(r';(?=(?:[^"]*"[^"]*")*[^"]*$)')  # semicolons outside quotes
WORDS_SECTION = re.compile(
    r'(?:\[[A-Z]\w+\])?"([^"]*[^\W\d_][^"]*)"', re.IGNORECASE
)  # shows words instead of the figure
FORMAT_CONDITION = re.compile(r"\[([<>]=?|<>|=)(-?\d+(?:\.\d+)?)\]")
FORMAT_COLOUR = re.compile(r"\[[A-Za-z]{3,}\s?\d*\]")
COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
FORMAT_TOKEN = re.compile(
    r'"(?P<text>[^"]*)"|\\(?P<sign>.)|\[\$(?P<coin>[^\]-]*)[^\]]*\]|\[[^\]]*\]|_.|\*.'
    r"|(?P<digits>[#0?][#0?,]*(?:\.[#0?]*)?,*|\.[#0?]+,*)|(?P<other>.)",
    re.DOTALL,
)
GENERAL = re.compile(r'("[^"]*")|General')
GENERAL_DIGITS = "0." + "#" * 15
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
    inner: tuple[tuple[int, str], ...]  # texts within the figure, as in "000-0000", each with the digits after it


def _format_value(value: float, number_format: str) -> str:
    section, opposite = _choose_section(value, number_format)
    if words := WORDS_SECTION.fullmatch(section):
        return format_cell(words[1])
    form = _parse_section(section)
    if form is None or not abs(value) < MAX_FORMATTED_VALUE:
        return _format_stored(value)
    return _format_number(abs(value) if opposite else value, form)


def _choose_section(value: float, number_format: str) -> tuple[str, bool]:
    """Return the section of a format for a value, and whether that has the minus sign or brackets itself."""
    sections = SECTION_SEPARATOR.split(number_format)
    for section in sections if FORMAT_CONDITION.search(number_format) else ():
        condition = FORMAT_CONDITION.search(section)
        if condition is None or COMPARISONS[condition[1]](value, float(condition[2])):
            section = FORMAT_CONDITION.sub("", section)
            return section, value < 0 and re.search(r"[-(]", section) is not None
    opposite = value < 0 and len(sections) > 1
    if opposite and FORMAT_COLOUR.sub("", sections[0]) == FORMAT_COLOUR.sub("", sections[1]):
        return sections[0], False  # shown as negative by its colour only
    return sections[1 if opposite else 2 if not value and len(sections) > 2 else 0], opposite


def _format_stored(value: float) -> str:
    if float(value).is_integer() and abs(value) < MAX_FORMATTED_VALUE:
        return str(int(value))  # spreadsheets store integers as floats
    return f"{value:.15g}"


@lru_cache(maxsize=256)
def _parse_section(section: str) -> NumberFormat | None:
    """Parse a section, or return None if it is not supported: dates, fractions, exponents, "General", no figure."""
    around, digits, hundredfold = ["", ""], "", 0
    inner: list[tuple[int, str]] = []
    general = "G" if section == "General" else GENERAL_DIGITS
    for token in FORMAT_TOKEN.finditer(GENERAL.sub(lambda found: found[1] or general, section)):
        if token["digits"]:
            inner += [(len(digits), around[1])] if digits else []
            digits += token["digits"]
            around[1] = ""
        elif (other := token["other"]) is not None and (other.isalnum() or other in "/@"):
            return None
        else:
            hundredfold += other == "%"  # a quoted "%" is text
            around[bool(digits)] += token["text"] or token["sign"] or token["coin"] or other or ""
    if not digits or (inner and ("." in digits or "," in digits)):
        return None
    whole, _, fraction = digits.rstrip(",").partition(".")
    thousandth = len(digits) - len(digits.rstrip(",")) + len(whole) - len(whole.rstrip(","))
    whole = whole.rstrip(",")
    scale = Decimal(100) ** hundredfold / Decimal(1000) ** thousandth
    before, after = around[0].lstrip(), around[1].rstrip()
    inner = [(len(digits) - place, text) for place, text in inner]
    least, most = fraction.count("0"), len(fraction)
    return NumberFormat(before, after, whole.count("0"), least, most, "," in whole, scale, tuple(inner))


def _format_number(value: float, form: NumberFormat) -> str:
    """Format a figure with 15 digits, rounding half away from zero as spreadsheets do."""
    with localcontext(prec=DECIMAL_PRECISION_DIGITS):
        exact = Decimal(f"{value:.15g}") * form.scale
        rounded = abs(exact).quantize(Decimal(1).scaleb(-form.most), ROUND_HALF_UP)
    whole, _, fraction = f"{rounded:f}".partition(".")
    whole = whole.lstrip("0").rjust(form.whole, "0")
    if form.grouped and whole:
        whole = f"{int(whole):,}".rjust(form.whole, "0")
    for place, text in form.inner:
        whole = f"{whole[:-place]}{text}{whole[-place:]}" if len(whole) > place else whole
    fraction = fraction[: form.least] + fraction[form.least :].rstrip("0")
    figure = f"{whole}.{fraction}" if fraction else whole
    return format_cell(f"{'-' if exact < 0 and rounded else ''}{form.before}{figure}{form.after}")


NOT_A_DATE_PART = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
ELAPSED_PART = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
SECOND_DECIMALS = re.compile(r"s\]?\.(0+)")
DATE_SECTION = re.compile(r"(?=.*[dmyhs])(?:AM/PM|A/P|[dmyhsegb0\[\]\W\u5e74\u6708\u65e5])+", re.IGNORECASE)
MAX_SERIAL = 2_958_466  # day after 9999-12-31


def format_figure(figure: float, number_format: str, epoch: datetime | None) -> str:
    """Return a figure, a date, a time or a duration on one line as the sheet displays it, or as stored if that fails.

    Dates are written in ISO 8601 regardless of their format.
    """
    section = NOT_A_DATE_PART.sub("", SECTION_SEPARATOR.split(number_format)[0]).lower()
    if not isfinite(figure):  # as some programs write the result of a division by zero
        return str(figure)
    if not DATE_SECTION.fullmatch(section) or "#" in section:
        return _format_value(figure, number_format)
    is_calendar = re.search(r"[dy]", section) is not None or not re.search(r"[hs\[]", section)
    decimals = len(fraction[1]) if (fraction := SECOND_DECIMALS.search(section)) else 0
    if not is_calendar and (ELAPSED_PART.search(section) or not 0 <= figure < 1):
        minutes, seconds = divmod(round(abs(figure) * 86_400, decimals), 60)
        text = f"{int(minutes // 60)}:{int(minutes % 60):02}:{seconds:0{decimals + 3 if decimals else 2}.{decimals}f}"
        return f"-{text}" if figure < 0 else text
    if not 0 <= figure < MAX_SERIAL:
        return _format_stored(figure)
    days = figure + (1 if epoch is None and figure < 60 and figure >= 1 else 0)  # 1900-02-29 never existed
    moment = (epoch or datetime(1899, 12, 30)) + timedelta(days=int(days), seconds=round(days % 1 * 86_400, decimals))
    if not is_calendar:
        return format_cell(moment.time()) if not moment.microsecond else format_cell(moment.time()).rstrip("0")
    return format_cell(moment if moment.time() != time() else moment.date())
