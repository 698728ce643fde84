"""The reader of pictures (PNG, JPEG, TIFF, WebP): scans and photographs of pages, read by OCR."""

from __future__ import annotations

from collections.abc import Collection

from workbench.errors import UnreadableDocument
from workbench.ingestion.ocr.document import ADVICE, OnPage, read_scans, reads_scans
from workbench.ingestion.ocr.images import picture_page, picture_pages
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.plain_text import first_heading


def read_picture(data: bytes, name: str, on_page: OnPage | None = None, left_out: Collection[int] = ()) -> Draft:
    """Return the pages of a picture file that have text; those in ``left_out`` failed before, and are named as such.

    Raises:
        UnreadableDocument: the extra is not installed, the file is damaged, or there is no text on it.
    """
    if not reads_scans():
        raise UnreadableDocument(f"'{name}' is a picture. {ADVICE}")
    try:
        total = picture_pages(data)
    except UnreadableDocument as error:
        raise UnreadableDocument(f"'{name}' is damaged or no picture. Save it anew.") from error
    numbers = [number for number in range(1, total + 1) if number not in left_out]
    scans = read_scans(numbers, total, lambda number: picture_page(data, number), on_page)
    failed = sorted({*left_out, *scans.failed})
    if not scans.pages:
        raise UnreadableDocument(
            f"'{name}' cannot be drawn: it is damaged. Save it anew."
            if len(failed) == total
            else f"'{name}' shows no text that OCR can read."
        )
    first = next(iter(scans.pages.values()))
    unreadable = {"unreadable_pages": failed} if failed else {}
    return Draft(
        title=first_heading(first.text) or "",
        pages=tuple((number, page.text) for number, page in scans.pages.items()),
        scans=tuple(page.scan for page in scans.pages.values()),
        metadata={"pages": total, **scans.metadata(), **unreadable},
    )
