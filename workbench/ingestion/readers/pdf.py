"""Read PDF with liteparse: Markdown with headings and tables, page by page."""

from __future__ import annotations

import re
from typing import Any

from workbench.errors import UnreadableDocument
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.markdown import first_heading
from workbench.ingestion.readers.running import without_running

SIGNATURE = b"%PDF-"
SIGNATURE_WITHIN = 1024  # readers accept leading junk of this length
DATE = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?")


def read_pdf(data: bytes, name: str) -> Draft:
    """Return the pages that have text.

    Raises:
        UnreadableDocument: encrypted, damaged, or scanned without a text layer.
    """
    if SIGNATURE not in data[:SIGNATURE_WITHIN]:
        raise UnreadableDocument(f"'{name}' is not a PDF file, whatever its name says. Check where it came from.")
    result = _parsed(data, name)
    # Markdown of a page without text is an empty fence, so the plain text tells whether there is any.
    with_text = [page for page in result.pages if page.text.strip()]
    numbers = (page.page_num for page in with_text)
    pages = tuple(zip(numbers, without_running(with_text), strict=True))
    if not pages:
        raise UnreadableDocument(
            f"'{name}' has no text on any of its pages: it is probably scanned. Run OCR on it first."
        )
    title = next((found for _, page in pages[:2] if (found := first_heading(page))), "")
    return Draft(title=title, pages=pages, metadata=_metadata(result))


def _parsed(data: bytes, name: str) -> Any:
    from liteparse.parser import LiteParse
    from liteparse.types import ParseError

    parser = LiteParse(
        ocr_enabled=False,
        output_format="markdown",
        image_mode="off",
        quiet=True,
        continue_on_page_error=True,
        keep_headers_footers=True,  # its own rule takes headings like "Chapter 1", "Chapter 2" for running headers
        extract_blocks=True,
        extract_document_metadata=True,
    )
    try:
        return parser.parse(data)
    except ParseError as error:
        if "password" in str(error).lower():
            raise UnreadableDocument(f"'{name}' is protected by a password. Save a copy without one.") from error
        raise UnreadableDocument(
            f"'{name}' is damaged and cannot be opened as PDF. Fetch or export it anew."
        ) from error


def _metadata(result: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"pages": result.total_pages}
    if result.page_errors:
        metadata["unreadable_pages"] = [error.page_num for error in result.page_errors]
    for key, value in (("created", result.doc_meta.creation_date), ("modified", result.doc_meta.mod_date)):
        match = DATE.match(value or "")
        if match:
            metadata[key] = "-".join(part for part in match.groups() if part)
    return metadata
