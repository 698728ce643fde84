"""A file as a reader understood it: the one text that is stored and shown, and everything known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.ingestion.text import normalise
from workbench.types import JsonObject, plain
from workbench.types.json import JsonValue
from workbench.types.results import PageSpan, ScannedPage


@dataclass(frozen=True, slots=True)
class RawDocument:
    """A document as read; every later character span refers to ``text``, which is normalised once, here.

    ``document_type`` is one of markdown, text, html, pdf, picture, docx, pptx, xlsx, epub, csv, json, notebook, code.
    ``language`` is a Postgres text search configuration, or "cjk". ``pages`` are (number, start, end) of PDF pages
    and slides, numbers counting from 1. ``metadata`` holds plain JSON types only. ``scans`` are the pages that OCR
    read, with the place of every word in ``text`` and on its page.
    """

    title: str
    text: str
    document_type: str
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    language: str = "simple"
    pages: tuple[PageSpan, ...] = ()
    scans: tuple[ScannedPage, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """The result of one reader before normalisation: ``text``, or ``pages`` as (number, text) where there are pages.

    ``scans`` are the pages that OCR read, with places in the text of their own page.
    """

    text: str = ""
    title: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    pages: tuple[tuple[int, str], ...] = ()
    scans: tuple[ScannedPage, ...] = ()


def normalised_pages(pages: tuple[tuple[int, str], ...]) -> tuple[str, tuple[PageSpan, ...]]:
    """Join page texts by a blank line; return the text and where each page that has text lies in it."""
    pieces: list[str] = []
    spans: list[PageSpan] = []
    offset = 0
    for number, page in pages:
        text = normalise(page)
        if not text:
            continue
        spans.append((number, offset, offset + len(text)))
        pieces.append(text)
        offset += len(text) + 2
    return "\n\n".join(pieces), tuple(spans)


def placed_scans(scans: tuple[ScannedPage, ...], pages: tuple[PageSpan, ...]) -> tuple[ScannedPage, ...]:
    """Return scans with places in the whole text instead of their page's; a page without text has none."""
    starts = {number: start for number, start, _ in pages}
    return tuple(scan.moved(starts[scan.number]) for scan in scans if scan.number in starts)


def plain_metadata(metadata: Mapping[str, object]) -> JsonObject:
    """Return metadata as JSON can hold it: dates as ISO strings, odd types as text, strings normalised."""
    return {normalise(str(key)): _plain(value) for key, value in metadata.items()}


def _plain(value: object) -> JsonValue:
    value = plain(value)
    if isinstance(value, Mapping):
        return plain_metadata(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)  # JSON has no NaN and no infinity
    if value is None or isinstance(value, bool | int | float):
        return value
    return normalise(str(value))
