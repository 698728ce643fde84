"""Page images of documents, with the words of a passage highlighted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from workbench.errors import NotFound
from workbench.ingestion.ocr.images import PDF_MEDIA_TYPE, render_page
from workbench.services.checks import check_key
from workbench.services.corpus import Corpus
from workbench.types import Passage, ScannedPage, Span, as_items

if TYPE_CHECKING:
    from PIL.Image import Image

    from workbench.ingestion.readers.pdf.words import PageBox, PageLine


# Lines of a page that contain a passage

WORD_PATTERN = re.compile(r"[^\W_]+")
ALIGNMENT_PASSES = 3  # alignments; columns and tables may be stored in another order than they are drawn
MIN_RUN_WORDS = 2  # consecutive words required by a later pass
WHOLE_LINE_SHARE = 0.5  # share of matching words from which the whole line is marked


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the page."""

    text: str  # case-folded
    line: int
    place: int  # among the words of its line


def find_boxes(text: str, span: Span, lines: Sequence[PageLine]) -> list[PageBox]:
    """Return the boxes of lines, or of words in them, that contain ``text[span]``.

    Args:
        text: Stored text of the page.
        span: Characters of the passage in this text.
        lines: Lines of the page with their boxes; if half of a line matches, all of it is marked.
    """
    wanted = [match for match in WORD_PATTERN.finditer(text) if match.start() < span[1] and match.end() > span[0]]
    first = sum(1 for _ in WORD_PATTERN.finditer(text, 0, wanted[0].start())) if wanted else 0
    inside = range(first, first + len(wanted))
    stored = [match[0].casefold() for match in WORD_PATTERN.finditer(text)]
    drawn = [
        _Word(part.casefold(), number, place)
        for number, line in enumerate(lines)
        for place, word in enumerate(line.words)
        for part in WORD_PATTERN.findall(word)
    ]
    matched: dict[int, set[int]] = {}
    for word in _align_words(stored, drawn, inside):
        matched.setdefault(word.line, set()).add(word.place)
    return [box for number, places in sorted(matched.items()) for box in _line_boxes(lines[number], places)]


def _align_words(stored: Sequence[str], drawn: Sequence[_Word], inside: range) -> list[_Word]:
    """Return the words of the page that align with a range of stored words."""
    words: list[_Word] = []
    left, right = list(enumerate(stored)), list(drawn)
    for turn in range(ALIGNMENT_PASSES):
        matcher = SequenceMatcher(None, [text for _, text in left], [word.text for word in right], autojunk=False)
        blocks = [block for block in matcher.get_matching_blocks() if block.size >= (MIN_RUN_WORDS if turn else 1)]
        pairs = [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]
        words += [right[b] for a, b in pairs if left[a][0] in inside]
        taken_left, taken_right = {a for a, _ in pairs}, {b for _, b in pairs}
        left = [item for place, item in enumerate(left) if place not in taken_left]
        right = [item for place, item in enumerate(right) if place not in taken_right]
        if not blocks or not any(number in inside for number, _ in left):
            break
    return words


def _line_boxes(line: PageLine, places: set[int]) -> list[PageBox]:
    boxes = (
        line.boxes
        if len(places) >= WHOLE_LINE_SHARE * len(line.boxes)
        else [line.boxes[place] for place in sorted(places)]
    )
    if len(boxes) < len(line.boxes):
        return list(boxes)
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return [(min(lefts), min(tops), max(rights), max(bottoms))]


MARKER_COLOR = (255, 226, 120)  # multiplied with the page, so that dark text stays dark


class PageImages:
    """Page images and the positions of words read by OCR."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def scans(self, document_id: str, number: int | None = None) -> Sequence[ScannedPage]:
        """Return pages read by OCR, or one of them: the position of each word in the text and on the page.

        For pages with embedded text, only the words in pictures are included. Pages read entirely by OCR are listed in
        the document's metadata as ``scanned_pages``.
        """
        check_key("document", document_id)
        return self._corpus.documents.scans(document_id, number)

    def find_page(self, document_id: str, span: Span | None = None) -> int | None:
        """Return the page on which a span starts; for a picture without a span the first one, else None."""
        record = self._corpus.documents.record(document_id)
        if record.document_type not in ("pdf", "picture") or (span is None and record.document_type == "pdf"):
            return None
        pages = (number for number, start, end in record.pages if span is None or (start < span[1] and end > span[0]))
        return next(pages, None)

    def label(self, document_id: str, number: int) -> str:
        """Return the printed number of a page (counted from 1); "" if it equals its position."""
        labels = self._corpus.documents.record(document_id).metadata.get("page_labels")
        label = labels.get(str(number)) if isinstance(labels, Mapping) else None
        return label if isinstance(label, str) and label != str(number) else ""

    def count(self, document_id: str) -> int:
        """Return the number of pages of a document's file; 0 without pages."""
        pages = self._corpus.documents.record(document_id).metadata.get("pages")
        return pages if isinstance(pages, int) else 0

    def of_passage(self, passage: Passage | str, index: str | None = None) -> Image:
        """Return the image of the page on which a passage starts, with its lines highlighted.

        In a notebook: ``wb.pages.of_passage(result[0])``.

        Args:
            passage: A hit, or the id of a passage.
            index: Index of a passage given by id; the default index if None.

        Raises:
            NotFound: No such passage, or its document has no page images.
            UnreadableDocument: Rendering the page failed.
        """
        if isinstance(passage, str):
            document_id, span = self._place(passage, index)
        else:
            document_id, span = passage.document_id, (passage.start, passage.end)
        number = self.find_page(document_id, span)
        if number is None:
            raise NotFound("page of document", document_id, "Only PDFs and pictures have page images.")
        return self.picture(document_id, number, span)

    def _place(self, passage_id: str, index: str | None) -> tuple[str, Span]:
        from workbench.storage.passages import fetch_passage

        store = self._corpus.store(self._corpus.index(index))
        with store.reading() as connection:
            passage = fetch_passage(connection, store.index.name, passage_id)
        return passage.document_id, passage.span

    def picture(self, document_id: str, number: int, span: Span | None = None) -> Image:
        """Return the image of a page of a document whose original file is kept.

        Args:
            document_id: Document.
            number: Page, from 1.
            span: Characters of the document to highlight.

        Raises:
            NotFound: The original file was not kept.
            UnreadableDocument: No such page, or rendering failed.
        """
        from workbench.ingestion.readers.pdf.pages import page_rotation, trim_preamble

        check_key("document", document_id)
        original = self._corpus.documents.file(document_id)
        if original is None:
            raise NotFound("original of document", document_id)
        _, media_type, data = original
        data = trim_preamble(data) if media_type == PDF_MEDIA_TYPE else data
        turned = page_rotation(self._corpus.documents.record(document_id).metadata, number)
        picture = render_page(data, media_type, number, turned=turned)
        if span is None:
            return picture
        scans = self.scans(document_id, number)
        words = (word for scan in scans for word in scan.words if word.start < span[1] and word.end > span[0])
        boxes: list[PageBox] = [(word.left, word.top, word.right, word.bottom) for word in words]
        scanned = as_items(self._corpus.documents.record(document_id).metadata.get("scanned_pages"))  # read whole
        if media_type == PDF_MEDIA_TYPE and number not in scanned:
            boxes += self._boxes_of_lines(data, document_id, number, span, scans)
        return _highlight(picture, boxes)

    def _boxes_of_lines(
        self, data: bytes, document_id: str, number: int, span: Span, scans: Sequence[ScannedPage]
    ) -> list[PageBox]:
        """Return the boxes of the lines of a PDF page that contain a span of the document's text.

        Words that OCR found in pictures do not belong to a line.
        """
        from workbench.ingestion.readers.pdf.pages import page_rotation
        from workbench.ingestion.readers.pdf.words import read_page_lines

        record = self._corpus.documents.record(document_id)
        pages = {page: (start, end) for page, start, end in record.pages}
        if number not in pages:
            return []
        start, end = pages[number]
        own = (max(0, span[0] - start), min(end, span[1]) - start)
        text = record.text[start:end]
        for word in (word for scan in scans for word in scan.words):
            text = text[: word.start - start] + " " * (word.end - word.start) + text[word.end - start :]
        return find_boxes(text, own, read_page_lines(data, number, page_rotation(record.metadata, number)))


def _highlight(picture: Image, boxes: Sequence[PageBox]) -> Image:
    from PIL import Image, ImageChops, ImageDraw

    pen = Image.new("RGB", picture.size, "white")
    draw = ImageDraw.Draw(pen)
    for sides in boxes:
        box = [round(side * (picture.width, picture.height)[place % 2]) for place, side in enumerate(sides)]
        draw.rectangle(box, fill=MARKER_COLOR)
    return ImageChops.multiply(picture, pen)
