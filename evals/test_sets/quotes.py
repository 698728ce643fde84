"""The place of a quote in a text, also where reading has changed its blanks."""

from __future__ import annotations

import re

from workbench.ingestion.text import normalise


def locate(text: str, quote: str, near: int = 0) -> tuple[int, int] | None:
    """Return (start, end) of the quote's occurrence that begins nearest to ``near``; None where it does not stand.

    Tried as it is, then as reading normalises it, then with any blanks between its words.
    """
    if not quote.strip():
        return None
    words = normalise(quote).split()
    for pattern in (re.escape(quote), re.escape(normalise(quote)), r"\s+".join(re.escape(word) for word in words)):
        places = [match.span() for match in re.finditer(pattern, text)] if pattern else []
        if places:
            return min(places, key=lambda span: abs(span[0] - near))
    return None
