"""The text of a page that was read from its picture, and the place of each word in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low
from typing import TYPE_CHECKING

from workbench.ingestion.scans.order import LineRow, Paragraph, paragraphs
from workbench.ingestion.scans.recognition import ReadLine, ReadWord, around, recogniser
from workbench.ingestion.scans.skew import UprightPage, upright
from workbench.types.results import ScannedPage, WordPlace

if TYPE_CHECKING:
    from PIL.Image import Image

HEADING = 1.2  # times the height of the page's usual line
FULL = 0.75  # of a paragraph's width: a row that ends before it ends a line of the text, too
LONGEST_HEADING = 2  # rows


@dataclass(frozen=True, slots=True)
class PageText:
    """A page's text, and what OCR knows of it: ``scan`` has places in this very text."""

    text: str
    scan: ScannedPage


@dataclass(slots=True)
class _Writer:
    """A text that grows by words, and their places."""

    page: UprightPage
    text: str = ""
    places: list[WordPlace] = field(default_factory=list)

    def add(self, word: ReadWord) -> None:
        start = len(self.text)
        self.text += word.text
        box = self.page.on_original(word.box)
        self.places.append(WordPlace(start, len(self.text), *box, round(word.confidence, 4)))


def read_page(picture: Image, number: int) -> PageText | None:
    """Read a page's picture, also one that lies on its side or on its head; None where there is no text on it.

    Raises:
        ConfigurationError: the models of the extra are not there.
    """
    page = upright(picture)
    lines, side = recogniser().read(page.picture)
    if side == "side":
        page = upright(picture, 1)
        lines, side = recogniser().read(page.picture)
    if side == "head":  # perhaps: it is the way in which more is read
        other = upright(picture, page.quarters + 2)
        others, _ = recogniser().read(other.picture)
        if _certainty(others) > _certainty(lines):
            page, lines = other, others
    return written(page, lines, number)


def _certainty(lines: Sequence[ReadLine]) -> float:
    return sum(len(word.text) * word.confidence for line in lines for word in line.words)


def written(page: UprightPage, lines: Sequence[ReadLine], number: int) -> PageText | None:
    """Write the lines of an upright page as text, in reading order; None where there are none."""
    if not lines:
        return None
    usual = median_low(line.box[3] - line.box[1] for line in lines)
    writer = _Writer(page)
    for paragraph in paragraphs(lines):
        writer.text += "\n\n" if writer.text else ""
        if _is_heading(paragraph, usual):
            writer.text += "## "
        _write(writer, paragraph)
    return PageText(writer.text, ScannedPage(number, mean_confidence(writer.places), tuple(writer.places)))


def _is_heading(paragraph: Paragraph, usual: float) -> bool:
    heights = [line.box[3] - line.box[1] for row in paragraph for line in row]
    return len(paragraph) <= LONGEST_HEADING and min(heights) >= HEADING * usual


def _write(writer: _Writer, paragraph: Paragraph) -> None:
    """Write a paragraph: full rows flow on, a word divided at a row's end is one word again."""
    left, _, right, _ = around([line.box for row in paragraph for line in row])
    before: LineRow | None = None
    for row in paragraph:
        words = [word for line in row for word in line.words]
        if before is not None:
            _break(writer, ends_full=before[-1].box[2] >= left + FULL * (right - left), first=words[0].text)
        for number, word in enumerate(words):
            writer.text += " " if number else ""
            writer.add(word)
        before = row


def _break(writer: _Writer, *, ends_full: bool, first: str) -> None:
    """Write what stands between two rows."""
    divided = writer.text[-1:] == "-" and writer.text[-2:-1].isalpha() and first[:1].islower()
    if ends_full and divided:
        writer.text = writer.text[:-1]
        last = writer.places[-1]
        writer.places[-1] = replace(last, end=last.end - 1)
    else:
        writer.text += " " if ends_full else "\n"


def mean_confidence(places: Iterable[WordPlace]) -> float:
    """Return the mean confidence (0..1) of words, long ones counting more; 0 without any."""
    sizes = [(place.end - place.start, place.confidence) for place in places]
    return round(sum(size * confidence for size, confidence in sizes) / max(1, sum(size for size, _ in sizes)), 4)
