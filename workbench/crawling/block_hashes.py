"""The pieces by which pages are compared: paragraphs for repeated texts, lines for texts on every page."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from itertools import islice

from workbench.crawling.pieces import pieces

SHORTEST = 40  # characters; shorter paragraphs ("See also:") are on many pages that have nothing else in common
LONGEST_LINE = 4_000  # characters; a longer line is compared by its beginning
MOST_PIECES = 32  # of 65,536 characters: the beginning of a page that it is compared by
FENCE = re.compile(r"^ {0,3}(?:```|~~~)")
LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^()]*+\)")
MARKS = re.compile(r"[^\w]+", re.UNICODE)


def block_hashes(text: str) -> tuple[int, ...]:
    """Return the hashes of a text's paragraphs, each once, in order; markup and white space do not count.

    Of a text of more than two million characters the beginning is compared.
    """
    hashes: dict[int, None] = {}
    for block in _paragraphs(text):
        plain = " ".join(filter(None, map(plain_words, block)))
        if len(plain) >= SHORTEST:
            hashes.setdefault(hash64(plain))
    return tuple(hashes)


def _paragraphs(text: str) -> Iterator[list[str]]:
    """Yield the lines of each paragraph; blank lines part them."""
    lines: list[str] = []
    for piece in islice(pieces(text), MOST_PIECES):
        for line in piece.removesuffix("\n").split("\n"):
            if line.strip():
                lines.append(line)
            elif lines:
                yield lines
                lines = []
    if lines:
        yield lines


def plain_words(text: str) -> str:
    """Return the words of a line of Markdown in lower case, without addresses and markup."""
    return MARKS.sub(" ", LINK.sub(r"\1", text[:LONGEST_LINE])).strip().lower()


def hash64(text: str) -> int:
    """Return a signed 64-bit hash that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)
