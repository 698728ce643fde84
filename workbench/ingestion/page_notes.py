"""Sentences on the pages of a document that could not be read, or that OCR may have misread."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.types.json import JsonValue

SHOWN = 20  # page numbers named in a sentence


def page_notes(name: str, metadata: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return a sentence each for pages that failed, pictures that did, and pages of little confidence, by metadata."""
    notes: list[str] = []
    if pages := _pages(metadata.get("unreadable_pages")):
        notes.append(f"{name}: {pages} could not be read.")
    if pages := _pages(metadata.get("unread_pictures")):
        notes.append(f"{name}: words in the pictures of {pages} could not be read; the text beside them was.")
    if pages := _pages(metadata.get("uncertain_pages")):
        notes.append(f"{name}: OCR is not sure of {pages}; compare with the picture.")
    return tuple(notes)


def scan_note(metadata: Mapping[str, JsonValue]) -> str:
    """Return which pages OCR read, and how sure it is: "pages 1, 2 read by OCR, 99 % sure"; "" where it read none."""
    pages, sure = _pages(metadata.get("scanned_pages")), metadata.get("ocr_confidence")
    if not pages:
        return ""
    return f"{pages} read by OCR" + (f", {100 * sure:.0f} % sure" if isinstance(sure, int | float) else "")


def _pages(numbers: JsonValue) -> str:
    """Return "page 3" or "pages 3, 4 and 2 more"; "" where there are none."""
    if not isinstance(numbers, list) or not numbers:
        return ""
    named = ", ".join(str(number) for number in numbers[:SHOWN])
    more = f" and {len(numbers) - SHOWN:,} more" if len(numbers) > SHOWN else ""
    return f"{'page' if len(numbers) == 1 else 'pages'} {named}{more}"
