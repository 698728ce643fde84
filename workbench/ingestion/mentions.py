"""Phrases of a text that may be titles of other documents: quoted, emphasised, or written in capitals.

Whether they are is decided when the citation is read, by comparing with the titles there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.ingestion.addresses import title_key

MOST_MENTIONS = 400  # keys a document
FEWEST_WORDS, MOST_WORDS = 2, 10  # one word is a word, not a title

_SMALL = "a|an|and|as|at|by|for|from|in|into|of|on|or|the|to|vs|with"
_CAPITAL = r"[A-Z\u00c0-\u00de][\w'’-]{0,40}"
_RUN = re.compile(rf"{_CAPITAL}(?:[ \n](?:(?:{_SMALL})[ \n]){{0,2}}(?:{_CAPITAL}|\d{{1,4}}\b)){{1,{MOST_WORDS - 1}}}")
_MARKED = re.compile(
    r"[\"“«]([^\"“”«»\n]{5,150})[\"”»]|(?<![\w*])\*{1,2}([^*\n]{5,150})\*{1,2}|(?<![\w_])_([^_\n]{5,150})_(?!\w)"
)


def mention_keys(text: str) -> list[str]:
    """Return the title keys of phrases of 2 to 10 words that may be titles, each once, at most 400."""
    keys: dict[str, None] = {}
    for phrase in _phrases(text):
        if FEWEST_WORDS <= len(phrase.split()) <= MOST_WORDS:
            key = title_key(phrase.strip(" .,;:!?"))
            if key:
                keys.setdefault(key)
        if len(keys) >= MOST_MENTIONS:
            break
    return list(keys)


def _phrases(text: str) -> Iterator[str]:
    for match in _MARKED.finditer(text):
        yield next(group for group in match.groups() if group)
    for match in _RUN.finditer(text):
        words = match.group().split()
        capitals = [place for place, word in enumerate(words) if not word[0].islower()]
        for place, first in enumerate(capitals):
            for last in reversed(capitals[place + 1 :]):
                yield " ".join(words[first : last + 1])
