"""The one form in which text is stored, shown, cut and searched."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

NEWLINES = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Controls (all but tab and newline), soft hyphens, zero-width spaces, stray byte order marks; and lone surrogates and
# non-characters, which no UTF-8 database accepts.
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]"
)
SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f]")
TRAILING = re.compile(r"[ \t]+(?=\n)")
GAPS = re.compile(r"\n{4,}")
PART = 200_000  # characters: a text of millions is brought into form by stretches, of which each step makes a copy


def normalise(text: str) -> str:
    """Return text in NFC with ``\\n`` line ends, no control characters, no trailing blanks and no wide gaps.

    Applying it twice changes nothing. Indentation is kept, because Markdown and code live by it.
    """
    text = "".join(_formed(text[start:end]) for start, end in _parts(text))
    return text.strip("\n").rstrip() if text.strip() else ""


def _formed(text: str) -> str:
    text = NEWLINES.sub("\n", text)
    text = INVISIBLE.sub("", text)
    text = SPACES.sub(" ", text)
    text = unicodedata.normalize("NFC", text)
    text = TRAILING.sub("", text)
    return GAPS.sub("\n\n\n", text)


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield stretches that begin with a letter or digit at a line's beginning: no step looks across such a place."""
    start = 0
    while len(text) - start > PART:
        end = text.find("\n", start + PART) + 1
        while 0 < end < len(text) and not text[end].isalnum():
            end = text.find("\n", end) + 1
        if not 0 < end < len(text):
            break
        yield start, end
        start = end
    yield start, len(text)
