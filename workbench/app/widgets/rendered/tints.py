"""The tints of passages on a text, raw or rendered: a stretch is cut where a passage begins or ends.

Each stretch says which passage it belongs to and how it is tinted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from workbench.app.widgets.rendered.elements import TextRun
from workbench.types.json import JsonObject, JsonValue
from workbench.types.results import Span


class Tints:
    """A text's stretches of one tint each, in order."""

    def __init__(self, text: str, spans: Sequence[Span], place: Span | None = None) -> None:
        """Cut the whole text as the raw reader does."""
        self._starts: list[int] = []
        self._kinds: list[JsonObject] = []
        at = 0
        for stretch in stretches(text, spans, place):
            self._starts.append(at)
            self._kinds.append({"kind": stretch["kind"], "passage": stretch["passage"]})
            at += len(str(stretch["text"]))

    def pieces(self, run: TextRun) -> list[JsonValue]:
        """Return a run cut by tint: a text outside of all passages is itself."""
        if run.start == run.end or not run.text or not self._starts:
            return [run.text]
        first = self._number(run.start)
        if not run.is_exact:
            return [self._tinted(first, run.text)]
        edges = [run.start, *self._starts[first + 1 : self._number(run.end - 1) + 1], run.end]
        return [
            self._tinted(first + n, run.text[edges[n] - run.start : edges[n + 1] - run.start])
            for n in range(len(edges) - 1)
        ]

    def whole(self, span: Span) -> JsonValue:
        """Return the tint of an element that is marked whole: that of its first character."""
        return self._kinds[self._number(span[0])]["kind"] if self._starts and span[0] < span[1] else None

    def _number(self, place: int) -> int:
        return max(0, bisect_right(self._starts, place) - 1)

    def _tinted(self, number: int, text: str) -> JsonValue:
        kind = self._kinds[number]
        return text if kind["kind"] == "bare" else {"text": text, **kind}


def stretches(text: str, spans: Sequence[tuple[int, int]], place: tuple[int, int] | None = None) -> list[JsonObject]:
    """Cut ``text`` at every edge of the passages' spans; joined, the stretches are the text again.

    A stretch of the found span is "found", one that several passages share "overlap", others are "odd" and "even"
    in turn; one outside of all is "bare". ``passage`` counts from 1.
    """
    edges = {0, len(text)}
    for start, end in (*spans, *([place] if place else [])):
        edges |= {min(max(start, 0), len(text)), min(max(end, 0), len(text))}
    ordered = sorted(edges)
    numbered = sorted(spans)
    cut: list[JsonObject] = []
    for start, end in pairwise(ordered):
        holders = [number for number, span in enumerate(numbered, start=1) if span[0] <= start and end <= span[1]]
        cut.append(
            {
                "text": text[start:end],
                "passage": holders[0] if holders else None,
                "kind": _kind(start, end, holders, place),
            }
        )
    return cut


def _kind(start: int, end: int, holders: Sequence[int], place: tuple[int, int] | None) -> str:
    if place and place[0] <= start and end <= place[1]:
        return "found"
    if len(holders) > 1:
        return "overlap"
    if not holders:
        return "bare"
    return "odd" if holders[0] % 2 else "even"
