"""Reader of image files (PNG, JPEG, TIFF, WebP): scans and photographs of pages, read by OCR."""

from __future__ import annotations

from collections.abc import Collection

from workbench.errors import UnreadableDocument
from workbench.ingestion.ocr.document import INSTALL_ADVICE, OnPage, is_ocr_installed, read_scans
from workbench.ingestion.ocr.images import count_image_pages, load_image_page
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.plain_text import find_first_heading


def read_picture(data: bytes, name: str, on_page: OnPage | None = None, left_out: Collection[int] = ()) -> Draft:
    """Return the pages that have text. Pages in ``left_out`` failed before and are reported as failed.

    Raises:
        UnreadableDocument: The extra is not installed, the file is damaged, or it shows no text.
    """
    if not is_ocr_installed():
        raise UnreadableDocument(f"'{name}' is an image. {INSTALL_ADVICE}")
    try:
        total = count_image_pages(data)
    except UnreadableDocument as error:
        raise UnreadableDocument(f"'{name}' is damaged or not an image. Re-save it.") from error
    numbers = [number for number in range(1, total + 1) if number not in left_out]
    scans = read_scans(numbers, total, lambda number: load_image_page(data, number), on_page)
    failed = sorted({*left_out, *scans.failed})
    if not scans.pages:
        raise UnreadableDocument(
            f"'{name}' is damaged. Re-save it." if len(failed) == total else f"OCR found no text in '{name}'."
        )
    first = next(iter(scans.pages.values()))
    unreadable = {"unreadable_pages": failed} if failed else {}
    return Draft(
        title=find_first_heading(first.text) or "",
        pages=tuple((number, page.text) for number, page in scans.pages.items()),
        scans=tuple(page.scan for page in scans.pages.values()),
        metadata={"pages": total, **scans.metadata(), **unreadable},
    )
