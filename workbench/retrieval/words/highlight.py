"""Snippets of a text with the matched words marked: HTML-escaped text in which ``<mark>`` is the only markup.

A word is marked when its terms are among those that were searched, made by the keyword index's own analysis, so that
exactly the words that matched are marked, as they stand in the document.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from workbench.languages import folded, gram_spans, is_unspaced, spaced_words
from workbench.storage.database import Connection
from workbench.storage.ranking import terms_of_words
from workbench.types.results import Span

SNIPPET = 200  # characters, about
MOST_SNIPPETS = 3
MOST_MARKED = 60  # words of one snippet

_CAMEL = re.compile(r"[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class MarkableText:
    """A text to be marked, and the language its words are analysed in."""

    text: str
    language: str


def matched_spans(connection: Connection, texts: Sequence[MarkableText], terms: Collection[str]) -> list[list[Span]]:
    """Return, for each text, where the words stand whose terms are among ``terms``; one database call for all."""
    wanted = set(terms)
    heads = {term[:2] for term in wanted}  # a stem keeps a word's first letters, but for the article in Arabic
    pairs = {term for term in wanted if is_unspaced(term)}
    candidates = {
        (match.group(), text.language)
        for text in texts
        for match in spaced_words(text.text)
        if text.language == "arabic" or folded(match.group()).lower()[:2] in heads or _CAMEL.search(match.group())
    }
    terms_of = terms_of_words(connection, sorted(candidates)) if candidates else {}
    wanted_pairs = {pair for pair, own_terms in terms_of.items() if own_terms & wanted}
    return [_spans_in(text, wanted_pairs, pairs) for text in texts]


def snippets(text: str, spans: Sequence[Span], length: int = SNIPPET, most: int = MOST_SNIPPETS) -> list[str]:
    """Return up to ``most`` snippets of about ``length`` characters around the spans, in reading order, marked.

    Without spans the text's beginning, unmarked.
    """
    if not text.strip():
        return []
    windows: list[Span] = []
    for start, end in sorted(_by_density(spans, length), key=lambda item: item[0])[: len(spans)]:
        if windows and start < windows[-1][1]:
            continue
        windows.append(_around(text, start, end, length))
    best = sorted(windows, key=lambda window: -_spans_within(window, spans))[:most]
    chosen = sorted(best) or [_around(text, 0, 0, length)]
    return [_shown(text, window, spans) for window in chosen]


def mark(text: str, spans: Iterable[Span]) -> str:
    """Return a whole text, escaped, with the spans in ``<mark>``; neighbouring words are marked together."""
    return _marked(text, 0, len(text), _joined(text, spans))


def _spans_in(text: MarkableText, marked: Collection[tuple[str, str]], pairs: Collection[str]) -> list[Span]:
    spans = [match.span() for match in spaced_words(text.text) if (match.group(), text.language) in marked]
    spans += gram_spans(text.text, pairs)
    return _merged(sorted(set(spans)))


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _joined(text: str, spans: Iterable[Span]) -> list[Span]:
    """Join words with nothing but a blank between them: "machine learning" is one mark."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and text[joined[-1][1] : start] in (" ", ""):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _by_density(spans: Sequence[Span], length: int) -> list[Span]:
    """Return groups of spans that fit one snippet, from first word to last."""
    groups: list[Span] = []
    for start, end in spans:
        if groups and end - groups[-1][0] <= length * 0.8:
            groups[-1] = (groups[-1][0], end)
        else:
            groups.append((start, end))
    return groups


def _spans_within(window: Span, spans: Sequence[Span]) -> int:
    return sum(window[0] <= start and end <= window[1] for start, end in spans)


def _around(text: str, start: int, end: int, length: int) -> Span:
    """Return a window of about ``length`` characters around a span, at word ends."""
    room = max(0, length - (end - start))
    first = max(0, start - room // 3)
    last = min(len(text), max(end, first + length))
    first = max(0, min(first, last - length))
    if first > 0:
        blank = re.search(r"\s", text[first:start])
        first = first + blank.end() if blank else first
    if last < len(text):
        tail = text[end:last]
        last = end + (len(tail.rsplit(None, 1)[0]) if len(tail.split()) > 1 else len(tail))
    return first, max(last, end)


def _shown(text: str, window: Span, spans: Sequence[Span]) -> str:
    start, end = window
    inside = [span for span in spans if start <= span[0] and span[1] <= end][:MOST_MARKED]
    before = "…" if start > 0 else ""
    after = "…" if end < len(text.rstrip()) else ""
    return before + " ".join(_marked(text, start, end, _joined(text, inside)).split()) + after


def _marked(text: str, start: int, end: int, spans: Sequence[Span]) -> str:
    pieces, at = [], start
    for first, last in spans:
        pieces += [escape(text[at:first], quote=False), "<mark>", escape(text[first:last], quote=False), "</mark>"]
        at = last
    return "".join([*pieces, escape(text[at:end], quote=False)])
