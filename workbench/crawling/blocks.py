"""The pieces a page's text is compared by: paragraphs for what is there twice, lines for what is on every page."""

from __future__ import annotations

import hashlib
import re

SHORTEST = 40  # characters; shorter paragraphs ("See also:") are on many pages that have nothing else in common
FENCE = re.compile(r"^ {0,3}(?:```|~~~)")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
MARKS = re.compile(r"[^\w]+", re.UNICODE)


def block_hashes(text: str) -> tuple[int, ...]:
    """Return the hashes of a text's paragraphs, each once, in order; markup and white space do not count."""
    found: dict[int, None] = {}
    for block in re.split(r"\n\s*\n", text):
        plain = plain_words(block)
        if len(plain) >= SHORTEST:
            found.setdefault(hash64(plain))
    return tuple(found)


def plain_words(text: str) -> str:
    """Return the words of a piece of Markdown in lower case, without addresses and markup."""
    return MARKS.sub(" ", LINK.sub(r"\1", text)).strip().lower()


def hash64(text: str) -> int:
    """Return a signed 64-bit hash that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)
