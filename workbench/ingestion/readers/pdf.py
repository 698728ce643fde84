"""The reader of PDF, with liteparse: Markdown with headings and tables, page by page."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from workbench.errors import Cancelled, UnreadableDocument
from workbench.ingestion.about import CONTENTS, OWN_TITLE
from workbench.ingestion.normalise import normalise
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.markdown import first_heading
from workbench.ingestion.readers.page_charts import largest, placed_words, with_picture_words
from workbench.ingestion.readers.page_labels import page_labels
from workbench.ingestion.readers.pdf_pages import PdfPages, read_pages
from workbench.ingestion.readers.pdf_properties import pdf_properties
from workbench.ingestion.readers.pdf_title import title_of
from workbench.ingestion.readers.running_headers import without_running
from workbench.ingestion.scans.extra import ADVICE, reads_scans
from workbench.ingestion.scans.picture_words import PictureWords, picture_words
from workbench.ingestion.scans.pictures import PDF, page_picture
from workbench.ingestion.scans.scanned_pages import OnPage, ReadScans, read_scans

SIGNATURE = b"%PDF-"
CHART_DOTS = 110  # to the inch: print in charts is seldom small, and half the dots take half the memory
SIGNATURE_WITHIN = 1024  # bytes: readers accept leading junk of this length
DATE = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?")


def read_pdf(data: bytes, name: str, on_page: OnPage | None = None, left_out: Collection[int] = ()) -> Draft:
    """Return the pages that have text; those that lack it are read from their pictures, with the extra ``ocr``.

    Pages in ``left_out`` failed before, and are named as such.

    Raises:
        UnreadableDocument: encrypted, damaged, or without text on any page.
    """
    if SIGNATURE not in data[:SIGNATURE_WITHIN]:
        raise UnreadableDocument(f"'{name}' is not a PDF file, whatever its name says. Check where it came from.")
    file = read_pages(data, name, left_out)
    scans = _scans(data, file, on_page) if reads_scans() else ReadScans({})
    # Markdown of a page without text is an empty fence, so the plain text tells whether there is any.
    with_text = [page for page in file.pages if page.has_text and page.number not in scans.pages]
    numbers = (page.number for page in with_text)
    chart_words, unread_pictures = _chart_words(data, file, on_page) if reads_scans() else ({}, [])
    page_texts = [with_picture_words(page.texts, page.charts, chart_words.get(page.number, ())) for page in with_text]
    texts = dict(zip(numbers, map(normalise, without_running(page_texts)), strict=True))
    pictures = [placed_words(texts[number], number, words) for number, words in chart_words.items()]
    texts |= {number: page.text for number, page in scans.pages.items()}
    if not texts:
        advice = "OCR reads none from their pictures either." if reads_scans() else f"It is probably scanned. {ADVICE}"
        raise UnreadableDocument(f"'{name}' has no text on any of its pages. {advice}")
    pages = tuple(sorted(texts.items()))
    headings = (first_heading(page) for _, page in pages[:2])
    heading = next((heading for heading in headings if heading and heading.casefold() not in CONTENTS), "")
    properties = pdf_properties(data)
    own_title = properties.pop("title", "")
    title = title_of(name, heading, own_title)
    if own_title and own_title != title:
        properties[OWN_TITLE] = own_title
    return Draft(
        title=title,
        pages=pages,
        scans=(*(page.scan for page in scans.pages.values()), *filter(None, pictures)),
        metadata=properties | _metadata(file, scans, unread_pictures) | scans.metadata(),
    )


def _scans(data: bytes, file: PdfPages, on_page: OnPage | None) -> ReadScans:
    """Read the pages that lack text from their pictures."""
    sizes = {page.number: page.size for page in file.pages if page.lacks_text}
    return read_scans(sizes, file.total, lambda number: page_picture(data, PDF, number, sizes[number]), on_page)


def _chart_words(
    data: bytes, file: PdfPages, on_page: OnPage | None
) -> tuple[dict[int, list[PictureWords]], list[int]]:
    """Read the words in the pictures of pages that have text; returns them by page, and the pages where that failed."""
    pages = {page.number: page for page in file.pages if page.has_text and not page.lacks_text}
    words: dict[int, list[PictureWords]] = {}
    failed: list[int] = []
    for number in largest((number, page.charts) for number, page in pages.items()):
        page = pages[number]
        if on_page is not None:
            on_page(number, file.total)
        try:
            picture = page_picture(data, PDF, number, page.size, file.turned.get(number, 0), CHART_DOTS)
            words[number] = picture_words(picture, page.charts.text)
        except Cancelled:
            raise
        except Exception:  # noqa: BLE001 - pictures and models fail in any way they like; the page's text stays
            failed.append(number)
    return words, sorted(failed)


def _metadata(file: PdfPages, scans: ReadScans, unread_pictures: list[int]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"pages": file.total}
    labels = page_labels([page.label for page in file.pages])
    if labels:
        metadata["page_labels"] = labels
    if file.turned:
        metadata["turned_pages"] = {str(number): turn for number, turn in file.turned.items()}
    failed = sorted({*file.failed, *scans.failed})
    if failed:
        metadata["unreadable_pages"] = failed
    if unread_pictures:
        metadata["unread_pictures"] = unread_pictures
    properties = file.facts
    for key, value in (
        (("created", properties.creation_date), ("modified", properties.mod_date)) if properties is not None else ()
    ):
        match = DATE.match(value or "")
        if match:
            metadata[key] = "-".join(part for part in match.groups() if part)
    return metadata
