"""Which words of a passage a question matched, for the eye: every face marks the same ones.

Ranking knows its terms better (stemmed by Postgres in each document's language); this cuts English endings only, needs
no database, and is right for nearly every word that a person would look for.
"""

from __future__ import annotations

import re
from itertools import pairwise

_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯豈-﫿]+")
_ENDINGS = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "ions",
    "ion",
    "ness",
    "ies",
    "ers",
    "ed",
    "er",
    "es",
    "ly",
    "al",
    "s",
)
_SHORTEST_STEM = 3
_FUNCTION_WORDS = """
    a about after all also am an and any are as at be because been before being but by can could did do does
    doing for from had has have having he her here him his how i if in into is it its just me my no nor not of
    off on once only or other our out over own s same she should so some such t than that the their them then
    there these they this those through to too under until up very was we were what when where which while who
    whom why will with would you your
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())


def matched_spans(query: str, text: str) -> tuple[tuple[int, int], ...]:
    """Return (start, end) of the words in ``text`` that also stand in the query, in order, never overlapping."""
    wanted = {stem(word) for word in _WORD.findall(query.casefold()) if word not in FUNCTION_WORDS}
    pairs = {a + b for run in _CJK.findall(query) for a, b in pairwise(run)} | {
        run for run in _CJK.findall(query) if len(run) == 1
    }
    spans = []
    for match in _WORD.finditer(text):
        if stem(match.group().casefold()) in wanted:
            spans.append(match.span())
        elif pairs and _CJK.search(match.group()):
            spans += _pair_spans(pairs, match.group(), match.start())
    return tuple(spans)


def stem(word: str) -> str:
    """Return a lower-case word without its English ending; words with digits stay whole."""
    if not word.isalpha():
        return word
    for ending in _ENDINGS:
        if (
            word.endswith(ending)
            and len(word) - len(ending) >= _SHORTEST_STEM
            and not word.endswith(("ss", "us", "is"))
        ):
            word = word.removesuffix(ending)
            break
    if len(word) > _SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if len(word) > _SHORTEST_STEM and word[-1] in "eiy" else word


def pieces(query: str, text: str) -> list[tuple[str, bool]]:
    """Return the text cut into (piece, whether it matched); joined, the pieces are the text."""
    found: list[tuple[str, bool]] = []
    at = 0
    for start, end in matched_spans(query, text):
        if start > at:
            found.append((text[at:start], False))
        found.append((text[start:end], True))
        at = end
    if at < len(text):
        found.append((text[at:], False))
    return found


def excerpt(query: str, text: str, length: int) -> str:
    """Return at most about ``length`` characters of a text, from a little before its densest matches."""
    clean = " ".join(text.split())
    if len(clean) <= length:
        return clean
    starts = [start for start, _ in matched_spans(query, clean)]
    best = max(starts, key=lambda at: (sum(at <= other < at + length for other in starts), -at), default=0)
    begin = max(0, min(best - length // 5, len(clean) - length))
    begin = clean.find(" ", begin) + 1 if begin else 0
    end = clean.rfind(" ", begin, begin + length) if begin + length < len(clean) else len(clean)
    return (
        ("… " if begin else "")
        + clean[begin : end if end > begin else begin + length]
        + (" …" if end < len(clean) else "")
    )


def _pair_spans(pairs: set[str], word: str, offset: int) -> list[tuple[int, int]]:
    """Return where neighbouring characters match, joined where they touch."""
    spans: list[tuple[int, int]] = []
    for size in (2, 1):
        for at in range(len(word) - size + 1):
            if word[at : at + size] in pairs:
                start, end = offset + at, offset + at + size
                if spans and start <= spans[-1][1]:
                    spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
                else:
                    spans.append((start, end))
    return sorted(spans)
