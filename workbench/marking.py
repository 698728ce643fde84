"""The words of a passage that a question matched, for the eye: every face marks the same ones.

A word matches when its stem is one of the question's; the stemmer is Snowball's, as in the keyword index.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import Protocol

from workbench.languages import folded, gram_spans, grams, is_unspaced, spaced_words

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
    wanted = _stems(query, language)
    initials = (
        {word[0] for word in wanted} if language == "english" else None
    )  # its stemmer keeps a word's first letter
    spans = [word.span() for word in spaced_words(text) if _is_wanted(word.group().lower(), language, wanted, initials)]
    if is_unspaced(query):
        spans = sorted([*spans, *gram_spans(text, grams(query))])
    return tuple(spans)


def telling_stems(query: str, language: str = "english") -> set[str]:
    """Return what of a query tells a text that holds any of it: stems of words, and grams where no space parts them."""
    return _stems(query, language) | grams(query.lower())


def _stems(query: str, language: str) -> set[str]:
    words = [word.group() for word in spaced_words(query.lower())]
    return {stem(word, language) for word in [word for word in words if word not in FUNCTION_WORDS] or words}


def _is_wanted(word: str, language: str, wanted: Collection[str], initials: Collection[str] | None) -> bool:
    """Tell whether a word's stem is wanted; a word of another initial is not stemmed, which takes .1 ms a new word."""
    return (initials is None or word[0] in initials) and stem(word, language) in wanted


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...


@cache
def stem(word: str, language: str = "english") -> str:
    """Return the stem of a lower-case word in a language that Snowball knows; otherwise the word itself."""
    stemmer = _stemmer(language)
    return stemmer.stemWord(folded(word)) if stemmer else folded(word)


@cache
def _stemmer(language: str) -> _Stemmer | None:
    import snowballstemmer

    return snowballstemmer.stemmer(language) if language in snowballstemmer.algorithms() else None


def own_word(query: str, term: str, language: str = "english") -> str:
    """Return the question's own word for a term of the index, which is folded and stemmed."""
    words = [match.group() for match in spaced_words(query)]
    return next((word for word in words if term in (word.lower(), stem(word.lower(), language))), term)


def pieces(query: str, text: str) -> list[tuple[str, bool]]:
    """Return the text cut into (piece, whether it matched); joined, the pieces are the text."""
    marks: list[tuple[str, bool]] = []
    at = 0
    for start, end in matched_spans(query, text):
        if start > at:
            marks.append((text[at:start], False))
        marks.append((text[start:end], True))
        at = end
    if at < len(text):
        marks.append((text[at:], False))
    return marks


def excerpt(query: str, text: str, length: int) -> str:
    """Return at most about ``length`` characters of a text, from a little before its densest matches.

    Headings that open it are left out: every place that shows a passage shows its heading path.
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
