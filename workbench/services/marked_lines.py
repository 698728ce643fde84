"""The lines of a page that a passage stands in: the words of its text, aligned with the words of the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from workbench.ingestion.readers.pdf.words import PageBox, PageLine
from workbench.types.results import Span

WORD = re.compile(r"[^\W_]+")
PASSES = 3  # alignments in turn: columns and tables may be stored in another order than they are drawn in
RUN = 2  # words in a row that a later pass needs
LINE = 0.5  # share of a line's words from which on the line is marked as a whole


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the page: folded, its line, and its place among the line's words."""

    text: str
    line: int
    place: int


def boxes_of(text: str, span: Span, lines: Sequence[PageLine]) -> list[PageBox]:
    """Return the boxes of a page's lines, or of words in them, that hold ``text[span]``.

    ``text`` is the page's stored text. A line of which at least half belongs to the passage is marked whole.
    """
    wanted = [match for match in WORD.finditer(text) if match.start() < span[1] and match.end() > span[0]]
    first = sum(1 for _ in WORD.finditer(text, 0, wanted[0].start())) if wanted else 0
    inside = range(first, first + len(wanted))
    stored = [match[0].casefold() for match in WORD.finditer(text)]
    drawn = [
        _Word(part.casefold(), number, place)
        for number, line in enumerate(lines)
        for place, word in enumerate(line.words)
        for part in WORD.findall(word)
    ]
    matched: dict[int, set[int]] = {}
    for word in _aligned(stored, drawn, inside):
        matched.setdefault(word.line, set()).add(word.place)
    return [box for number, places in sorted(matched.items()) for box in _boxes(lines[number], places)]


def _aligned(stored: Sequence[str], drawn: Sequence[_Word], inside: range) -> list[_Word]:
    """Return the page's words that are aligned with stored words inside the range."""
    words: list[_Word] = []
    left, right = list(enumerate(stored)), list(drawn)
    for turn in range(PASSES):
        matcher = SequenceMatcher(None, [text for _, text in left], [word.text for word in right], autojunk=False)
        blocks = [block for block in matcher.get_matching_blocks() if block.size >= (RUN if turn else 1)]
        pairs = [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]
        words += [right[b] for a, b in pairs if left[a][0] in inside]
        taken_left, taken_right = {a for a, _ in pairs}, {b for _, b in pairs}
        left = [item for place, item in enumerate(left) if place not in taken_left]
        right = [item for place, item in enumerate(right) if place not in taken_right]
        if not blocks or not any(number in inside for number, _ in left):
            break
    return words


def _boxes(line: PageLine, places: set[int]) -> list[PageBox]:
    boxes = line.boxes if len(places) >= LINE * len(line.boxes) else [line.boxes[place] for place in sorted(places)]
    if len(boxes) < len(line.boxes):
        return list(boxes)
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return [(min(lefts), min(tops), max(rights), max(bottoms))]
