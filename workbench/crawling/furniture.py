"""Texts that most pages of a site repeat and do not mark as navigation: menus, banners, footers in plain elements.

A line that most of the first pages share is furniture. It is taken away only from the beginning and from the end of
a page, where such things stand; a repeated line amid the text ("See also") stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from workbench.crawling.block_hashes import FENCE, hash64, plain_words

SAMPLE = 20  # pages that are looked at before the first is stored
FEWEST = 4  # pages without which nothing can be said to repeat
SHARE = 0.6  # of the sample


def furniture_of(texts: Sequence[str]) -> frozenset[int]:
    """Return the hashes of the lines that most of these pages have."""
    if len(texts) < FEWEST:
        return frozenset()
    pages_with: Counter[int] = Counter()
    for text in texts:
        pages_with.update({hash64(words) for line in text.split("\n") if line and (words := plain_words(line))})
    return frozenset(line for line, count in pages_with.items() if count >= SHARE * len(texts))


def without_furniture(text: str, furniture: frozenset[int]) -> str:
    """Return a page's text without the furniture at its two ends; unchanged where nothing else would be left."""
    if not furniture:
        return text
    lines = text.split("\n")
    first, last = 0, len(lines)
    while first < last and _is_furniture(lines[first], furniture):
        first += 1
    while last > first and _is_furniture(lines[last - 1], furniture):
        last -= 1
    return "\n".join(lines[first:last]).strip("\n") or text


def _is_furniture(line: str, furniture: frozenset[int]) -> bool:
    if FENCE.match(line):
        return False  # a code block is never cut open
    words = plain_words(line)
    return hash64(words) in furniture if words else not line.lstrip().startswith("#")
