"""The text of a page read by OCR, with the position of each word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median, median_low
from typing import TYPE_CHECKING

from workbench.ingestion.ocr.images import Box, UprightPage, deskew
from workbench.ingestion.ocr.recognition import ReadLine, ReadWord, bounding_box, get_recogniser
from workbench.types import ScannedPage, WordPlace

if TYPE_CHECKING:
    from PIL.Image import Image

# --- Reading order: paragraphs within columns ---

MIN_COLUMN_GAP = 0.8  # line heights; minimum white between two columns
MIN_COLUMN_WIDTH = 6.0  # line heights; a narrower column belongs to a table, whose rows stay together
MIN_PARAGRAPH_GAP = 0.25  # line heights above the median distance of rows that separate paragraphs
SIZE_RATIO = 1.3  # ratio of row heights that separates paragraphs
MIN_ROW_OVERLAP = 0.5  # of the lower line's height that lines of one row share

LineRow = tuple[ReadLine, ...]  # lines side by side, from left to right
Paragraph = tuple[LineRow, ...]


def order_paragraphs(lines: Sequence[ReadLine]) -> list[Paragraph]:
    """Return a page's lines as paragraphs in reading order."""
    if not lines:
        return []
    height = median(line.box[3] - line.box[1] for line in lines)
    return [
        paragraph
        for block in _split_blocks(list(lines), height)
        for paragraph in _split_paragraphs(group_rows(block), height)
    ]


def group_rows(lines: Sequence[ReadLine]) -> list[LineRow]:
    """Group lines that are side by side into rows: rows from top to bottom, lines in a row from left to right."""
    found: list[list[ReadLine]] = []
    for line in sorted(lines, key=lambda line: line.box[1] + line.box[3]):
        if found and _shares_row(found[-1][-1], line):
            found[-1].append(line)
        else:
            found.append([line])
    return [tuple(sorted(row, key=lambda line: line.box[0])) for row in found]


def _shares_row(one: ReadLine, other: ReadLine) -> bool:
    shared = min(one.box[3], other.box[3]) - max(one.box[1], other.box[1])
    return shared > MIN_ROW_OVERLAP * min(one.box[3] - one.box[1], other.box[3] - other.box[1])


def _split_blocks(lines: list[ReadLine], height: float) -> list[list[ReadLine]]:
    """Split lines into columns at vertical white, or else at the widest horizontal white, recursively."""
    if len(lines) < 4:
        return [lines]
    columns = _split_at_gaps(lines, 0, MIN_COLUMN_GAP * height)
    if len(columns) > 1 and all(_is_prose(column, height) for column in columns):
        return [block for column in columns for block in _split_blocks(column, height)]
    bands = _split_at_gaps(lines, 1, MIN_PARAGRAPH_GAP * height)
    if len(bands) == 1:
        return [lines]
    divided = [_split_blocks(band, height) for band in bands]
    if all(len(band) == 1 for band in divided):  # without columns, one block keeps the median distance of its rows
        return [lines]
    return [block for band in divided for block in band]


def _split_at_gaps(lines: Sequence[ReadLine], axis: int, gap: float) -> list[list[ReadLine]]:
    """Split lines at gaps of at least ``gap`` pixels along an axis (0 horizontal, 1 vertical)."""
    parts: list[list[ReadLine]] = []
    reached = float("-inf")
    for line in sorted(lines, key=lambda line: line.box[axis]):
        if line.box[axis] - reached >= gap:
            parts.append([])
        parts[-1].append(line)
        reached = max(reached, line.box[axis + 2])
    return parts


def _is_prose(column: Sequence[ReadLine], height: float) -> bool:
    return len(column) > 1 and median(line.box[2] - line.box[0] for line in column) >= MIN_COLUMN_WIDTH * height


def _split_paragraphs(rows_of_block: Sequence[LineRow], height: float) -> list[Paragraph]:
    boxes = [bounding_box([line.box for line in row]) for row in rows_of_block]
    white = [after[1] - before[3] for before, after in pairwise(boxes)]
    usual = median(white) if white else 0.0
    found: list[list[LineRow]] = []
    for number, row in enumerate(rows_of_block):
        if not number or white[number - 1] > usual + MIN_PARAGRAPH_GAP * height or _sizes_differ(boxes[number - 1 :]):
            found.append([])
        found[-1].append(row)
    return [tuple(paragraph) for paragraph in found]


def _sizes_differ(boxes: Sequence[Box]) -> bool:
    """Return whether the first two rows have different print sizes, like a heading and its text."""
    lesser, larger = sorted(bottom - top for _, top, _, bottom in boxes[:2])
    return larger > SIZE_RATIO * lesser


HEADING_HEIGHT_RATIO = 1.2  # times the median line height
FULL_ROW_SHARE = 0.75  # of a paragraph's width; a shorter row is followed by a line break
MAX_HEADING_ROWS = 2  # rows


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page, and the OCR results with their positions in it."""

    text: str
    scan: ScannedPage


@dataclass(slots=True)
class _TextBuilder:
    """A text that grows word by word, and the positions of its words."""

    page: UprightPage
    text: str = ""
    places: list[WordPlace] = field(default_factory=list)

    def add(self, word: ReadWord) -> None:
        start = len(self.text)
        self.text += word.text
        box = self.page.on_original(word.box)
        self.places.append(WordPlace(start, len(self.text), *box, round(word.confidence, 4)))


def read_page(picture: Image, number: int) -> PageText | None:
    """Read a page image, even if it is sideways or upside down; return None if it has no text.

    Raises:
        ConfigurationError: The models of the extra are missing.
    """
    if len(picture.convert("L").getcolors() or ()) == 1:
        return None  # blank, as every second page of a scan may be
    page = deskew(picture)
    lines, side = get_recogniser().read(page.picture)
    if side == "side":
        page = deskew(picture, 1)
        lines, side = get_recogniser().read(page.picture)
    if side == "head":  # uncertain, so keep the orientation with more confident text
        other = deskew(picture, page.quarters + 2)
        others, _ = get_recogniser().read(other.picture)
        if _total_confidence(others) > _total_confidence(lines):
            page, lines = other, others
    return write_page(page, lines, number)


def _total_confidence(lines: Sequence[ReadLine]) -> float:
    return sum(len(word.text) * word.confidence for line in lines for word in line.words)


def write_page(page: UprightPage, lines: Sequence[ReadLine], number: int) -> PageText | None:
    """Return the lines of an upright page as text in reading order, or None if there are none."""
    if not lines:
        return None
    usual = median_low(line.box[3] - line.box[1] for line in lines)
    writer = _TextBuilder(page)
    for paragraph in order_paragraphs(lines):
        writer.text += "\n\n" if writer.text else ""
        lowest = min(line.box[3] - line.box[1] for row in paragraph for line in row)
        if len(paragraph) <= MAX_HEADING_ROWS and lowest >= HEADING_HEIGHT_RATIO * usual:
            writer.text += "## "
        _write_paragraph(writer, paragraph)
    return PageText(writer.text, ScannedPage(number, mean_confidence(writer.places), tuple(writer.places)))


def _write_paragraph(writer: _TextBuilder, paragraph: Paragraph) -> None:
    """Add a paragraph. Full rows are joined, and words divided at a row's end are restored."""
    left, _, right, _ = bounding_box([line.box for row in paragraph for line in row])
    before: LineRow | None = None
    for row in paragraph:
        words = [word for line in row for word in line.words]
        if before is not None:
            _write_break(
                writer, ends_full=before[-1].box[2] >= left + FULL_ROW_SHARE * (right - left), first=words[0].text
            )
        for number, word in enumerate(words):
            writer.text += " " if number else ""
            writer.add(word)
        before = row


def _write_break(writer: _TextBuilder, *, ends_full: bool, first: str) -> None:
    """Add the separator between two rows."""
    divided = writer.text[-1:] == "-" and writer.text[-2:-1].isalpha() and first[:1].islower()
    if ends_full and divided:
        writer.text = writer.text[:-1]
        last = writer.places[-1]
        writer.places[-1] = replace(last, end=last.end - 1)
    else:
        writer.text += " " if ends_full else "\n"


def mean_confidence(places: Iterable[WordPlace]) -> float:
    """Return the mean confidence (0..1) of words, weighted by length; 0 if there are no words."""
    sizes = [(place.end - place.start, place.confidence) for place in places]
    return round(sum(size * confidence for size, confidence in sizes) / max(1, sum(size for size, _ in sizes)), 4)
