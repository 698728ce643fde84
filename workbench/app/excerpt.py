"""A passage as a card shows it: without Markdown's signs, the part with the most matched words, those marked.

A word matches when its stem is one of the question's; the stemmer is Snowball's, as in the keyword index.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

Segment = tuple[str, bool]  # a stretch of text, and whether it is a matched word

_WORD = re.compile(r"[^\W_]+")
_STOP_WORDS = """
a about after all also am an and any are as at be because been before being but by can could did do
does doing for from had has have having he her here him his how i if in into is it its just me more
most my no nor not now of off on once only or other our out over own same she should so some such
than that the their them then there these they this those through to too under until up very was we
were what when where which while who whom why will with would you your
"""
_STOP = frozenset(_STOP_WORDS.split())
_SIGNS = (
    (re.compile(r"^```.*$", re.M), ""),  # fences
    (re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*$", re.M), r"\1 —"),
    (re.compile(r"^\s*\|?[\s:|-]*-{3,}[\s:|-]*$", re.M), ""),  # a table's rule
    (re.compile(r"^[ \t]*\|[ \t]?|[ \t]?\|[ \t]*$", re.M), ""),
    (re.compile(r"[ \t]\|[ \t]"), " · "),
    (re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+", re.M), "· "),
    (re.compile(r"^\s*>\s?", re.M), ""),
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\*\*|__|`"), ""),
    (re.compile(r"(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)"), ""),
    (re.compile(r"\s+"), " "),
)


def plain(text: str, headings: Sequence[str] = ()) -> str:
    """Return Markdown as running text; opening headings that a heading path shows already are left out."""
    for heading in headings:
        text = re.sub(rf"\A\s*#{{1,6}}\s+{re.escape(heading)}\s*#*\s*(?:\n|\Z)", "", text)
    for pattern, replacement in _SIGNS:
        text = pattern.sub(replacement, text)
    return text.strip(" —")


def stems_of(question: str, language: str = "english") -> frozenset[str]:
    """Return the stems of the question's words, function words left out."""
    words = [word.lower() for word in _WORD.findall(question)]
    telling = [word for word in words if word not in _STOP] or words
    return frozenset(_stem(word, language) for word in telling)


def marked(text: str, stems: frozenset[str], language: str = "english") -> list[Segment]:
    """Cut a text into stretches, each either matched words or not; joined they are the text again."""
    segments: list[Segment] = []
    at = 0
    for word in _WORD.finditer(text):
        if _stem(word[0].lower(), language) not in stems:
            continue
        if segments and segments[-1][1] and not text[at : word.start()].strip():
            segments[-1] = (segments[-1][0] + text[at : word.end()], True)  # neighbours are one mark
        else:
            if word.start() > at:
                segments.append((text[at : word.start()], False))
            segments.append((word[0], True))
        at = word.end()
    if at < len(text):
        segments.append((text[at:], False))
    return segments


def excerpt(text: str, stems: frozenset[str], language: str = "english", length: int = 420) -> list[Segment]:
    """Return about ``length`` characters of a plain text where most matched words stand, marked."""
    start = _best_start(text, stems, language, length)
    cut = text[start : start + length]
    if start + length < len(text):
        cut = cut.rsplit(" ", 1)[0] + " …"
    return [*([("… ", False)] if start else []), *marked(cut, stems, language)]


def _best_start(text: str, stems: frozenset[str], language: str, length: int) -> int:
    """Return where the cut begins: at the start of the first matched sentence after which most matches are in sight."""
    visible = length // 2  # three lines of a narrow column
    hits = [word.start() for word in _WORD.finditer(text) if _stem(word[0].lower(), language) in stems]
    if not hits or hits[-1] < visible:
        return 0
    sentences = [0, *(match.end() for match in re.finditer(r"[.!?:;—·]\s", text))]
    starts = [max(start for start in sentences if start <= hit) for hit in hits]
    return max(starts, key=lambda start: (sum(start <= hit < start + visible for hit in hits), -start))


@cache
def _stemmer(language: str) -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer(language) if language in snowballstemmer.algorithms() else None


@cache
def _stem(word: str, language: str) -> str:
    stemmer = _stemmer(language)
    return stemmer.stemWord(word) if stemmer else word
