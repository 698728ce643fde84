"""Which words of a passage a question matched, for the eye: every face marks the same ones.

A word matches when its stem is one of the question's; the stemmer is Snowball's, as in the keyword index.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any

_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯豈-﫿]+")
_HEADINGS = re.compile(r"\A(?:\s*#{1,6}\s[^\n]*\n)+(?=.*\S)", re.DOTALL)
_FUNCTION_WORDS = """
    a about after all also am an and any are as at be because been before being but by can could did do does
    doing for from had has have having he her here him his how i if in into is it its just me my no nor not of
    off on once only or other our out over own s same she should so some such t than that the their them then
    there these they this those through to too under until up very was we were what when where which while who
    whom why will with would you your
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())


def matched_spans(query: str, text: str, language: str = "english") -> tuple[tuple[int, int], ...]:
    """Return (start, end) of the words in ``text`` that also stand in the query, in order, never overlapping.

    ``language`` is whose stemmer tells which words are the same.
    """
    words = _WORD.findall(query.lower())
    wanted = {stem(word, language) for word in [word for word in words if word not in FUNCTION_WORDS] or words}
    pairs = {a + b for run in _CJK.findall(query) for a, b in pairwise(run)} | {
        run for run in _CJK.findall(query) if len(run) == 1
    }
    spans = []
    for match in _WORD.finditer(text):
        if stem(match.group().lower(), language) in wanted:
            spans.append(match.span())
        elif pairs and _CJK.search(match.group()):
            spans += _pair_spans(pairs, match.group(), match.start())
    return tuple(spans)


@cache
def stem(word: str, language: str = "english") -> str:
    """Return the stem of a lower-case word in a language that Snowball knows; otherwise the word itself."""
    stemmer = _stemmer(language)
    return stemmer.stemWord(word) if stemmer else word


@cache
def _stemmer(language: str) -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer(language) if language in snowballstemmer.algorithms() else None


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
    """Return at most about ``length`` characters of a text, from a little before its densest matches.

    Headings that open it are left out: what shows a passage shows its heading path.
    """
    clean = " ".join(_HEADINGS.sub("", text).split())
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
