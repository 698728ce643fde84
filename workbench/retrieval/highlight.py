"""Snippets with matched words marked: HTML-escaped text in which ``<mark>`` is the only markup.

A word is marked if the search used one of its terms, as analysed by the keyword index. So exactly the matching words
are marked, in their original form.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from workbench.retrieval.bm25 import term_idf
from workbench.retrieval.query import Words
from workbench.storage.database import Connection
from workbench.storage.ranking import fetch_word_terms
from workbench.text import find_names, fold_word, gram_spans, is_unspaced, iter_spaced_words, ungroup_numbers
from workbench.types import Span

# Coverage of a question's words by a text

MIN_PREFIX_LETTERS = 4  # shorter words must match whole words
HALF_CLOSENESS_CHARS = 12.0  # gap between two words at which their closeness is half of that of neighbours
MAX_PLACES = 30  # per word and text


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of the question, for matching in lower-case text; ``weight`` is its idf.

    ``is_whole`` is true if only whole words match; ``is_gram`` if it matches inside text of a script without spaces.
    """

    text: str
    weight: float
    is_whole: bool = False
    is_gram: bool = False


def query_words(query: str, words: Words) -> tuple[QueryWord, ...]:
    """Return the question's words that are terms of the index, without stop words."""
    typed = [ungroup_numbers(match.group().lower()) for match in iter_spaced_words(query)]
    by_text: dict[str, QueryWord] = {}
    for term in words.terms:
        weight = term_idf(term, words.totals.passages)
        if is_unspaced(term.term):
            by_text[term.term] = QueryWord(term.term, weight, is_gram=True)
        elif 0 < term.position <= len(typed):
            word = typed[term.position - 1]
            prefix = _common_prefix(word, term.term)
            text, is_whole = (prefix, False) if len(prefix) >= MIN_PREFIX_LETTERS else (word, True)
            known = by_text.get(text)
            if known is None or known.weight < weight:
                by_text[text] = QueryWord(text, weight, is_whole=is_whole)
    return tuple(by_text.values())


def compute_coverage(text: str, asked: Sequence[QueryWord]) -> float:
    """Return the share (0..1) of the words' total weight that a lower-case text contains; 0 without words."""
    text = ungroup_numbers(text)
    total = sum(word.weight for word in asked)
    held = sum(word.weight for word in asked if word.text in text and _find_places(text, word, 1))
    return held / total if total else 0.0


def compute_coverage_and_closeness(text: str, asked: Sequence[QueryWord]) -> tuple[float, float]:
    """Return the share of the words' total weight that a lower-case text contains, and the closeness of the words.

    Closeness is a sum over all pairs of words that are adjacent anywhere: the smaller weight / (1 + gap / 12
    characters) at the best position. It is divided by the weight of all words.
    """
    total = sum(word.weight for word in asked)
    if not total:
        return 0.0, 0.0
    text = ungroup_numbers(text)
    there = [(number, word) for number, word in enumerate(asked) if word.text in text]
    found = [(place, number) for number, word in there for place in _find_places(text, word, MAX_PLACES)]
    held = sum(asked[number].weight for number in {number for _, number in found})
    best: dict[tuple[int, int], float] = {}
    ordered = sorted(found)
    for (place, one), (later, other) in itertools.pairwise(ordered):
        if one != other:
            gap = max(0, later - place - len(asked[one].text))
            pair = (min(one, other), max(one, other))
            near = min(asked[one].weight, asked[other].weight) / (1 + gap / HALF_CLOSENESS_CHARS)
            best[pair] = max(best.get(pair, 0.0), near)
    return held / total, sum(best.values()) / total


def _common_prefix(word: str, stem: str) -> str:
    same = next((place for place, (a, b) in enumerate(zip(word, stem, strict=False)) if a != b), len(stem))
    return word[:same]


def _find_places(text: str, word: QueryWord, most: int) -> list[int]:
    """Return the first ``most`` positions of a word in a lower-case text."""
    places: list[int] = []
    at = text.find(word.text)
    while at >= 0 and len(places) < most:
        end = at + len(word.text)
        begins = word.is_gram or at == 0 or not text[at - 1].isalnum()
        if begins and not (word.is_whole and end < len(text) and text[end].isalnum()):
            places.append(at)
        at = text.find(word.text, end)
    return places


SNIPPET_CHARS = 200  # approximate
MAX_SNIPPETS = 3
MAX_MARKED_WORDS = 60  # per snippet

_CAMEL = re.compile(r"[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class MarkableText:
    """A text to mark, and the language for analysing its words."""

    text: str
    language: str


def find_matched_spans(
    connection: Connection, texts: Sequence[MarkableText], terms: Collection[str]
) -> list[list[Span]]:
    """Return, for each text, the spans of words whose terms are in ``terms``, with one database call."""
    wanted = set(terms)
    heads = {term[:2] for term in wanted}  # a stem starts like its word, except for the article in Arabic
    pairs = {term for term in wanted if is_unspaced(term)}
    candidates = {
        (match.group(), text.language)
        for text in texts
        for match in iter_spaced_words(text.text)
        if text.language == "arabic" or fold_word(match.group()).lower()[:2] in heads or _CAMEL.search(match.group())
    }
    terms_of = fetch_word_terms(connection, sorted(candidates)) if candidates else {}
    wanted_pairs = {pair for pair, own_terms in terms_of.items() if own_terms & wanted}
    return [_find_spans(text, wanted_pairs, pairs, wanted) for text in texts]


def make_snippets(text: str, spans: Sequence[Span], most: int = MAX_SNIPPETS) -> list[str]:
    """Return up to ``most`` marked snippets of about ``SNIPPET_CHARS`` characters around the spans, in reading order.

    Without spans, return the start of the text, unmarked.
    """
    if not text.strip():
        return []
    windows: list[Span] = []
    for start, end in sorted(_group_by_density(spans, SNIPPET_CHARS), key=lambda item: item[0])[: len(spans)]:
        if windows and start < windows[-1][1]:
            continue
        windows.append(_make_window(text, start, end, SNIPPET_CHARS))

    def count_spans(window: Span) -> int:
        return sum(window[0] <= start and end <= window[1] for start, end in spans)

    best = sorted(windows, key=lambda window: -count_spans(window))[:most]
    chosen = sorted(best) or [_make_window(text, 0, 0, SNIPPET_CHARS)]
    return [_render_snippet(text, window, spans) for window in chosen]


def mark_spans(text: str, spans: Iterable[Span]) -> str:
    """Return a whole text, escaped, with the spans in ``<mark>``; neighbouring words are marked together."""
    return _render_marked(text, 0, len(text), _join_neighbours(text, spans))


def _find_spans(
    text: MarkableText, marked: Collection[tuple[str, str]], pairs: Collection[str], terms: Collection[str]
) -> list[Span]:
    spans = [match.span() for match in iter_spaced_words(text.text) if (match.group(), text.language) in marked]
    spans += gram_spans(text.text, pairs)
    spans += [(start, end) for name, start, end in find_names(text.text) if name in terms]
    return _merge_spans(sorted(set(spans)))


def _merge_spans(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _join_neighbours(text: str, spans: Iterable[Span]) -> list[Span]:
    """Join words separated only by whitespace: "machine learning" becomes one mark."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and text[joined[-1][1] : start] in (" ", ""):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _group_by_density(spans: Sequence[Span], length: int) -> list[Span]:
    groups: list[Span] = []
    for start, end in spans:
        if groups and end - groups[-1][0] <= length * 0.8:
            groups[-1] = (groups[-1][0], end)
        else:
            groups.append((start, end))
    return groups


def _make_window(text: str, start: int, end: int, length: int) -> Span:
    """Return a window of about ``length`` characters around a span, at word boundaries."""
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


def _render_snippet(text: str, window: Span, spans: Sequence[Span]) -> str:
    start, end = window
    inside = [span for span in spans if start <= span[0] and span[1] <= end][:MAX_MARKED_WORDS]
    before = "…" if start > 0 else ""
    after = "…" if end < len(text.rstrip()) else ""
    return before + " ".join(_render_marked(text, start, end, _join_neighbours(text, inside)).split()) + after


def _render_marked(text: str, start: int, end: int, spans: Sequence[Span]) -> str:
    pieces, at = [], start
    for first, last in spans:
        pieces += [escape(text[at:first], quote=False), "<mark>", escape(text[first:last], quote=False), "</mark>"]
        at = last
    return "".join([*pieces, escape(text[at:end], quote=False)])
