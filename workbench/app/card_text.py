"""A passage as a card shows it: running text, cut where most of the question's words are in sight, with its marks.

Two kinds of mark: words that the question has too, and words that late interaction found like one of the question's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

from workbench.marking import matched_spans

Span = tuple[int, int]
Segment = tuple[str, bool, int]  # a stretch of text, whether the question has its words, how like one they are: 0 to 3

_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"[.!?:;—·]\s")
_SIGNS = (
    (re.compile(r"^```.*$", re.M), ""),  # fences
    (re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*$", re.M), r"\1 —"),
    (re.compile(r"^\s*\|?[\s:|-]*-{3,}[\s:|-]*$", re.M), ""),  # a table's rule
    (re.compile(r"^(?:[ \t]*\|[ \t]?)+|(?:[ \t]?\|[ \t]*)+$", re.M), ""),
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


def card_text(
    query: str,
    text: str,
    headings: Sequence[str] = (),
    language: str = "english",
    likes: Mapping[Span, int] | None = None,
    length: int = 420,
) -> list[Segment]:
    """Return about ``length`` characters of a passage in stretches; joined they are the text that is shown.

    ``likes`` are spans of ``text`` with how like a word of the question they are, 1 to 3.
    """
    running = plain(text, headings)
    matched = _joined(matched_spans(query, running, language), running)
    alike = carried(text, running, likes or {})
    start = best_start(running, [first for first, _ in matched], length)
    cut = running[start : start + length]
    if start + length < len(running):
        cut = cut.rsplit(" ", 1)[0]
    end = start + len(cut)
    before, after = (["… "] if start else []), ([" …"] if end < len(running) else [])
    return [
        *((dots, False, 0) for dots in before),
        *_segments(running, start, end, matched, alike),
        *((dots, False, 0) for dots in after),
    ]


def carried(text: str, running: str, likes: Mapping[Span, int]) -> dict[Span, int]:
    """Return the spans of the running text's words that hold a marked stretch of the original, each with its number.

    The running text has the original's words in their order, some left out: each is the next of its spelling.
    """
    if not likes:
        return {}
    words = [match.span() for match in _WORD.finditer(text)]
    starts = [start for start, _ in words]
    marks: dict[int, int] = {}
    for (first, last), number in likes.items():
        place = bisect_right(starts, first) - 1
        if place >= 0 and last <= words[place][1]:
            marks[place] = max(number, marks.get(place, 0))
    found, at = {}, 0
    for match in _WORD.finditer(running):
        there = next((n for n in range(at, len(words)) if text[slice(*words[n])] == match[0]), None)
        if there is None:
            continue
        at = there + 1
        if there in marks:
            found[match.span()] = marks[there]
    return found


def best_start(text: str, matches: Sequence[int], length: int) -> int:
    """Return where a cut begins: at the start of the first matched sentence after which most matches are in sight."""
    visible = length // 2  # three lines of a narrow column
    if not matches or matches[-1] < visible:
        return 0
    sentences = [0, *(match.end() for match in _SENTENCE_END.finditer(text))]
    starts = [sentences[bisect_right(sentences, hit) - 1] for hit in matches]
    return max(starts, key=lambda start: (sum(start <= hit < start + visible for hit in matches), -start))


def _joined(spans: Sequence[Span], text: str) -> list[Span]:
    """Make one mark of neighbours with nothing but blanks between them."""
    found: list[Span] = []
    for start, end in spans:
        if found and not text[found[-1][1] : start].strip():
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _segments(text: str, start: int, end: int, matched: Sequence[Span], alike: Mapping[Span, int]) -> list[Segment]:
    inside = [span for span in (*matched, *alike) if span[0] < end and span[1] > start]
    edges = sorted({start, end, *(min(end, max(start, edge)) for span in inside for edge in span)})
    cut: list[Segment] = []
    for first, last in pairwise(edges):
        marked = any(a <= first and last <= b for a, b in matched)
        cut.append((text[first:last], marked, next((n for (a, b), n in alike.items() if a <= first and last <= b), 0)))
    return cut
