"""The pieces by which pages are compared: paragraphs and short lines, and lines for texts on every page."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from itertools import islice
from urllib.parse import unquote

from workbench.crawling.pieces import pieces

LONGEST_LINE = 4_000  # characters of a line by which texts on every page are recognised
MOST_PIECES = 32  # of 65,536 characters: the beginning of a page that it is compared by
FENCE = re.compile(r"^ {0,3}(?:```|~~~)")
INLINE_LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^()]*+\)")
WORD = re.compile(r"\w+")
MARKS = re.compile(r"[^\w]+", re.UNICODE)


def block_hashes(text: str) -> tuple[int, ...]:
    """Return the hashes of a text's paragraphs, each once, in order; addresses and white space do not count.

    Of a text of more than two million characters the beginning is compared.
    """
    hashes: dict[int, None] = {}
    for block in _paragraphs(text):
        plain = " ".join(" ".join(INLINE_LINK.sub(r"\1", line).split()) for line in block)
        hashes.setdefault(hash64(plain))
    return tuple(hashes)


def hash_of_shape(body: bytes, url: str) -> int:
    """Return a hash of a text's words that leaves out numbers and the words of the page's own address."""
    address = set(WORD.findall(unquote(url).lower()))
    words = WORD.findall(body.decode("utf-8", "replace").lower())
    return hash64(" ".join(word for word in words if word not in address and not any(map(str.isdigit, word))))


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
    return MARKS.sub(" ", INLINE_LINK.sub(r"\1", text[:LONGEST_LINE])).strip().lower()


def hash64(text: str) -> int:
    """Return a signed 64-bit hash that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)
