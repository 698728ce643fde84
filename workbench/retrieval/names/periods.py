"""Years and quarters as people and files write them: FY2018, FY18, 2021Q1, 1Q21, "the second quarter of 2023"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SIGN_OF_ONE = re.compile(r"\d|quart", re.IGNORECASE)  # no pattern below matches a text without it
_ORDINALS = ("first|1st|erste[ns]?", "second|2nd|zweite[ns]?", "third|3rd|dritte[ns]?", "fourth|4th|vierte[ns]?")
_YEAR = re.compile(r"(?:(?<![^\W_])FY ?['’]?(\d{4}|\d{2})|(?<![^\W_])(?<!\d[.,])((?:19|20)\d\d))(?!\d)(?![.,]\d)", re.I)
_QUARTER = re.compile(
    r"(?:(?<![^\W\d_])Q([1-4])(?:['’](\d\d))?|(?<![^\W_])([1-4])Q(\d\d)?)(?!\d)(?![^\W\d_])", re.IGNORECASE
)
_SPELT_OUT = tuple(re.compile(rf"\b(?:{ordinal})\s+(?:quarter|quartals?)\b", re.IGNORECASE) for ordinal in _ORDINALS)


@dataclass(frozen=True, slots=True)
class Period:
    """A year ("2018") or a quarter ("Q2") and the span of the text that says it."""

    kind: str
    text: str
    start: int
    end: int


def periods_in(text: str) -> list[Period]:
    """Return the years and quarters that a text says, in their order."""
    if not _SIGN_OF_ONE.search(text):
        return []
    periods = [Period("year", _whole(match[1] or match[2]), *match.span()) for match in _YEAR.finditer(text)]
    for match in _QUARTER.finditer(text):
        periods.append(Period("quarter", f"Q{match[1] or match[3]}", *match.span()))
        short = match[2] or match[4]
        if short:
            periods.append(Period("year", _whole(short), *match.span()))
    for number, pattern in enumerate(_SPELT_OUT, start=1):
        periods += [Period("quarter", f"Q{number}", *match.span()) for match in pattern.finditer(text)]
    return sorted(periods, key=lambda period: (period.start, period.kind))


def without(text: str, periods: Sequence[Period]) -> str:
    """Return the text with each period replaced by a line's end, so that no words meet that were apart."""
    for period in sorted(periods, key=lambda period: -period.start):
        text = f"{text[: period.start]}\n{text[period.end :]}"
    return text


def _whole(year: str) -> str:
    return year if len(year) == 4 else f"20{year}"
