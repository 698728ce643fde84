"""The lines of a PDF's page as rows of a table: a label on the left, and the figures at the right with their edges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from liteparse.types import TextItem

# A figure with its signs and the mark of a footnote, a dash, or what stands for a figure that is not available, not
# applicable or not meaningful
FIGURE = re.compile(r"[$€£¥]?\(?[$€£¥]?\d[\d,.]*\)?%?\)?(?:\([a-z]{1,2}\))?|[$€£¥]?[-–—]|N/?[AM]|n/?[am]")
YEAR = re.compile(r"(?:19|20)\d\d")
NOTE = re.compile(r"\(\w{1,2}\)")
SIGN = re.compile(r"[$€£¥(]+")  # stands before the figure it belongs to
AFTER = re.compile(r"[)%]+|\([a-z]{1,2}\)")  # stands after it: a bracket, a sign, the mark of a footnote
CLOSE = 0.6  # of a line's height between two words of one text
SAME_LINE = 0.5  # of a line's height between the middles of what stands on one line


@dataclass(frozen=True, slots=True)
class PlacedText:
    """A text with its left and right edge, in points."""

    text: str
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A line of a page: its label, the figures after it, and where it stands, in points from the page's top."""

    label: str
    figures: tuple[PlacedText, ...]
    pieces: tuple[PlacedText, ...]
    top: float
    bottom: float

    @property
    def is_header(self) -> bool:
        """True where its figures are years alone, but for the marks of notes, as those over columns are."""
        others = [figure.text for figure in self.figures if not YEAR.match(figure.text) or YEAR.sub("", figure.text)]
        return len(others) < len(self.figures) and all(NOTE.fullmatch(YEAR.sub("", other)) for other in others)

    def fitted(self, edges: Sequence[float], within: float) -> FigureRow:
        """Return the row without figures that end its label: those left of the first that ends at an edge."""
        count = 0
        while count < len(self.figures) and min(abs(self.figures[count].right - edge) for edge in edges) > within:
            count += 1
        if not count:
            return self
        label = " ".join([self.label, *(figure.text for figure in self.figures[:count])])
        return replace(self, label=label.strip(), figures=self.figures[count:])

    def stretches(self) -> list[PlacedText]:
        """Return its words, those that stand close to each other as one."""
        joined: list[PlacedText] = []
        for piece in self.pieces:
            if joined and piece.left - joined[-1].right <= CLOSE * (self.bottom - self.top):
                joined[-1] = PlacedText(f"{joined[-1].text} {piece.text}", joined[-1].left, piece.right)
            else:
                joined.append(piece)
        return joined

    @property
    def right(self) -> float:
        """The right edge of its label; that of its left edge where it has none."""
        words = self.pieces[: len(self.pieces) - len(self.figures)]
        return max((piece.right for piece in words), default=0.0)


def rows_of(items: Sequence[TextItem]) -> list[FigureRow]:
    """Return the lines of a page from its top, each split into a label and the figures that end it."""
    rows: list[FigureRow] = []
    for line in _group_lines(items):
        pieces = _joined(word for item in line for word in _words(item))
        top, bottom = min(item.y for item in line), max(item.y + item.height for item in line)
        figures = _tail(pieces, CLOSE * (bottom - top))
        label = " ".join(piece.text for piece in pieces[: len(pieces) - len(figures)])
        rows.append(FigureRow(label, tuple(figures), tuple(pieces), top, bottom))
    return rows


def _group_lines(items: Sequence[TextItem]) -> list[list[TextItem]]:
    """Group items into lines by their middles; each line from left to right."""
    lines: list[list[TextItem]] = []
    for item in sorted((item for item in items if item.text.strip()), key=lambda item: item.y + item.height / 2):
        middle = item.y + item.height / 2
        last = lines[-1][-1] if lines else None
        if last is not None and middle - (last.y + last.height / 2) <= SAME_LINE * min(item.height, last.height):
            lines[-1].append(item)
        else:
            lines.append([item])
    return [sorted(line, key=lambda item: item.x) for line in lines]


def _words(item: TextItem) -> Iterable[PlacedText]:
    """Return the words of an item; where each begins is reckoned by its share of the letters."""
    each = item.width / max(1, len(item.text))
    for match in re.finditer(r"\S+", item.text):
        yield PlacedText(match[0], item.x + match.start() * each, item.x + match.end() * each)


def _joined(words: Iterable[PlacedText]) -> list[PlacedText]:
    """Join signs with the figure that they belong to."""
    pieces: list[PlacedText] = []
    sign: PlacedText | None = None
    for word in words:
        if SIGN.fullmatch(word.text):
            sign = word if sign is None else PlacedText(sign.text + word.text, sign.left, word.right)
            continue
        if sign is not None:
            joiner = "" if sign.text.endswith("(") else " "
            text = sign.text + joiner + word.text if FIGURE.fullmatch(word.text) else word.text
            if text == word.text:
                pieces.append(sign)
            word, sign = PlacedText(text, word.left, word.right), None
        if AFTER.fullmatch(word.text) and pieces and _is_figure(pieces[-1].text):
            pieces[-1] = PlacedText(pieces[-1].text + word.text, pieces[-1].left, pieces[-1].right)
        else:
            pieces.append(word)
    return pieces if sign is None else [*pieces, sign]


def _tail(pieces: Sequence[PlacedText], close: float) -> list[PlacedText]:
    """Return the figures that a line ends with; one close to a word, such as a year, belongs to the words."""
    count = 0
    while count < len(pieces) and _is_whole(pieces[-1 - count].text):
        count += 1
    first = len(pieces) - count
    while 0 < first < len(pieces) and pieces[first].left - pieces[first - 1].right <= close:
        first += 1
    return list(pieces[first:])


def _is_whole(text: str) -> bool:
    """Tell whether a text is a figure with both of its brackets: "3)" ends "(Note 3)"."""
    return _is_figure(text) and text.count("(") == text.count(")")


def _is_figure(text: str) -> bool:
    return FIGURE.fullmatch(text.replace(" ", "")) is not None
