"""Values of a sheet's cells as the sheet shows them, by their number formats: "#,##0.00", "0.0%", "$#,##0"."""

from __future__ import annotations

import re
from datetime import datetime, time
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

from workbench.ingestion.readers.grid import one_line

SECTIONS = re.compile(r';(?=(?:[^"]*"[^"]*")*[^"]*$)')  # not those within quotes
CONDITION = re.compile(r"\[[<>=]")
TOKEN = re.compile(
    r'"(?P<text>[^"]*)"|\\(?P<sign>.)|\[\$(?P<coin>[^\]-]*)[^\]]*\]|\[[^\]]*\]|_.|\*.'
    r"|(?P<digits>[#0?][#0?,]*(?:\.[#0?]*)?,*|\.[#0?]+,*)|(?P<other>.)",
    re.DOTALL,
)
LONGEST = 1e15  # figures from here on stay as they are stored
EXACT = 80  # digits of the computation: fifteen of the figure, and as many after the point as a format can have


class NumberFormat(NamedTuple):
    """A section of a number format: the text around the figure, and how the figure is written."""

    before: str
    after: str
    whole: int  # digits before the point, at least
    least: int  # digits after the point
    most: int
    grouped: bool  # 1,204
    scale: Decimal  # the value is multiplied by it before it is written


def shown(value: object, number_format: str) -> str:
    """Return a cell's value on one line as the sheet shows it; where its format is of no known kind, as it is stored.

    Dates stand in the order of ISO 8601, whatever the format's order is.
    """
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return one_line(value)
    sections = SECTIONS.split(number_format)
    opposite = value < 0 and len(sections) > 1  # whose section has the sign, or brackets
    place = 1 if opposite else 2 if not value and len(sections) > 2 else 0
    form = None if CONDITION.search(number_format) else _form(sections[place])
    if form is None or not abs(value) < LONGEST:
        return _stored(value)
    return _written(abs(value) if opposite else value, form)


def _stored(value: float) -> str:
    if float(value).is_integer() and abs(value) < LONGEST:
        return str(int(value))  # spreadsheets keep whole numbers as floats
    return f"{value:.15g}"


@lru_cache(maxsize=256)
def _form(section: str) -> NumberFormat | None:
    """Read a section; None where it is of another kind: dates, fractions, powers of ten, "General", no figure."""
    around, digits, hundredfold = ["", ""], "", 0
    for token in TOKEN.finditer(section):
        if token["digits"]:
            if digits:
                return None
            digits = token["digits"]
        elif (other := token["other"]) is not None and (other.isalnum() or other in "/@"):
            return None
        else:
            hundredfold += other == "%"  # one in quotes is text
            around[bool(digits)] += token["text"] or token["sign"] or token["coin"] or other or ""
    if not digits:
        return None
    whole, _, fraction = digits.rstrip(",").partition(".")
    thousandth = len(digits) - len(digits.rstrip(",")) + len(whole) - len(whole.rstrip(","))
    whole = whole.rstrip(",")
    scale = Decimal(100) ** hundredfold / Decimal(1000) ** thousandth
    before, after = around[0].lstrip(), around[1].rstrip()
    return NumberFormat(before, after, whole.count("0"), fraction.count("0"), len(fraction), "," in whole, scale)


def _written(value: float, form: NumberFormat) -> str:
    """Write a figure with 15 digits, rounded as sheets round: a half away from zero."""
    with localcontext(prec=EXACT):
        exact = Decimal(f"{value:.15g}") * form.scale
        rounded = abs(exact).quantize(Decimal(1).scaleb(-form.most), ROUND_HALF_UP)
    whole, _, fraction = f"{rounded:f}".partition(".")
    whole = whole.lstrip("0").rjust(form.whole, "0")
    if form.grouped and whole:
        whole = f"{int(whole):,}".rjust(form.whole, "0")
    fraction = fraction[: form.least] + fraction[form.least :].rstrip("0")
    figure = f"{whole}.{fraction}" if fraction else whole
    return one_line(f"{'-' if exact < 0 and rounded else ''}{form.before}{figure}{form.after}")
