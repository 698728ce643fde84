"""Bring text into the one form that is stored, shown, cut and searched."""

from __future__ import annotations

import re
import unicodedata

NEWLINES = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Controls (all but tab and newline), soft hyphens, zero-width spaces, stray byte order marks; and lone surrogates and
# non-characters, which no UTF-8 database accepts.
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]"
)
SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f]")
TRAILING = re.compile(r"[ \t]+(?=\n)")
GAPS = re.compile(r"\n{4,}")


def normalise(text: str) -> str:
    """Return text in NFC with ``\\n`` line ends, no control characters, no trailing blanks and no wide gaps.

    Applying it twice changes nothing. Indentation is kept, because Markdown and code live by it.
    """
    text = NEWLINES.sub("\n", text)
    text = INVISIBLE.sub("", text)
    text = SPACES.sub(" ", text)
    text = unicodedata.normalize("NFC", text)
    text = TRAILING.sub("", text)
    text = GAPS.sub("\n\n\n", text)
    return text.strip("\n").rstrip() if text.strip() else ""
