"""The pages of documents as pictures, with the words of a passage marked where they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from workbench.errors import NotFound
from workbench.ingestion.ocr.images import PDF
from workbench.ingestion.readers.pdf.pages import turn_of
from workbench.ingestion.readers.pdf.words import PageBox, PageLine
from workbench.services.checks import check_key
from workbench.services.corpus import Corpus
from workbench.types import as_items
from workbench.types.results import Span

if TYPE_CHECKING:
    from PIL.Image import Image

    from workbench.types import Passage
    from workbench.types.results import ScannedPage

# --- The lines of a page that a passage stands in: the words of its text, aligned with the words of the page ---

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


MARKER = (255, 226, 120)  # laid over the paper as a felt pen is: what is dark stays dark


class PagePictures:
    """The verbs over pages that are seen: where OCR read which word, and the picture of a page."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def scans(self, document_id: str, number: int | None = None) -> Sequence[ScannedPage]:
        """Return the pages that OCR read, or the one of that number: each word's place in the text and on its page.

        A page that has text of its own is among them with the words in its pictures; ``scanned_pages`` in the
        document's metadata are those that were read as a whole.
        """
        check_key("document", document_id)
        return self._corpus.documents.scans(document_id, number)

    def page_of(self, document_id: str, span: Span | None = None) -> int | None:
        """Return the number of the page to show for a span: where it begins; of a picture without one the first."""
        record = self._corpus.documents.record(document_id)
        if record.document_type not in ("pdf", "picture") or (span is None and record.document_type == "pdf"):
            return None
        pages = (number for number, start, end in record.pages if span is None or (start < span[1] and end > span[0]))
        return next(pages, None)

    def label(self, document_id: str, number: int) -> str:
        """Return the number that a page (from 1) bears, "" where that is its place in the file."""
        labels = self._corpus.documents.record(document_id).metadata.get("page_labels")
        label = labels.get(str(number)) if isinstance(labels, Mapping) else None
        return label if isinstance(label, str) and label != str(number) else ""

    def count(self, document_id: str) -> int:
        """Return how many pages a document's file has; 0 where it has none."""
        pages = self._corpus.documents.record(document_id).metadata.get("pages")
        return pages if isinstance(pages, int) else 0

    def of_passage(self, passage: Passage | str, index: str | None = None) -> Image:
        """Return the picture of the page that a hit, or the passage of an id, begins on, with its lines marked.

        A notebook shows it as it is: ``wb.pages.of_passage(result[0])``.

        Raises:
            NotFound: no such passage, or its document has no pages that can be seen. UnreadableDocument: it cannot be
                drawn.
        """
        if isinstance(passage, str):
            document_id, span = self._place(passage, index)
        else:
            document_id, span = passage.document_id, (passage.start, passage.end)
        number = self.page_of(document_id, span)
        if number is None:
            raise NotFound("page of document", document_id, "Only PDFs and pictures have pages that can be seen.")
        return self.picture(document_id, number, span)

    def _place(self, passage_id: str, index: str | None) -> tuple[str, Span]:
        from workbench.storage.passages import passage_named

        store = self._corpus.store(self._corpus.index(index))
        with store.reading() as connection:
            passage = passage_named(connection, store.index.name, passage_id)
        return passage.document_id, passage.span

    def picture(self, document_id: str, number: int, span: Span | None = None) -> Image:
        """Return the picture of a page (from 1) of a document whose original is kept.

        ``span`` are the characters of the document that are marked: lines of a PDF's text, words that OCR read.

        Raises:
            NotFound: no original of that document. UnreadableDocument: no such page, or it cannot be drawn.
        """
        from workbench.ingestion.ocr.images import page_picture

        check_key("document", document_id)
        original = self._corpus.documents.file(document_id)
        if original is None:
            raise NotFound("original of document", document_id)
        _, media_type, data = original
        turned = turn_of(self._corpus.documents.record(document_id).metadata, number)
        picture = page_picture(data, media_type, number, turned=turned)
        if span is None:
            return picture
        scans = self.scans(document_id, number)
        boxes = _boxes_of_words(scans, span)
        if media_type == PDF and not self._is_scan(document_id, number):
            boxes += self._boxes_of_lines(data, document_id, number, span, scans)
        return _marked(picture, boxes)

    def _is_scan(self, document_id: str, number: int) -> bool:
        """Tell whether OCR read the whole page; of others it reads the words in their pictures."""
        return number in as_items(self._corpus.documents.record(document_id).metadata.get("scanned_pages"))

    def _boxes_of_lines(
        self, data: bytes, document_id: str, number: int, span: Span, scans: Sequence[ScannedPage]
    ) -> list[PageBox]:
        """Return the boxes of the lines of a PDF's page that a span of its document's text stands in.

        Words that OCR read in its pictures are in no line.
        """
        from workbench.ingestion.readers.pdf.words import lines_of_page

        record = self._corpus.documents.record(document_id)
        pages = {page: (start, end) for page, start, end in record.pages}
        if number not in pages:
            return []
        start, end = pages[number]
        own = (max(0, span[0] - start), min(end, span[1]) - start)
        text = record.text[start:end]
        for word in (word for scan in scans for word in scan.words):
            text = text[: word.start - start] + " " * (word.end - word.start) + text[word.end - start :]
        return boxes_of(text, own, lines_of_page(data, number, turn_of(record.metadata, number)))


def _boxes_of_words(scans: Sequence[ScannedPage], span: Span) -> list[PageBox]:
    words = (word for scan in scans for word in scan.words if word.start < span[1] and word.end > span[0])
    return [(word.left, word.top, word.right, word.bottom) for word in words]


def _marked(picture: Image, boxes: Sequence[PageBox]) -> Image:
    from PIL import Image, ImageChops, ImageDraw

    pen = Image.new("RGB", picture.size, "white")
    draw = ImageDraw.Draw(pen)
    for sides in boxes:
        box = [round(side * (picture.width, picture.height)[place % 2]) for place, side in enumerate(sides)]
        draw.rectangle(box, fill=MARKER)
    return ImageChops.multiply(picture, pen)
