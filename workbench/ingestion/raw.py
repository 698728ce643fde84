"""The result of a reader: the text to store and its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.ingestion.text import normalise
from workbench.types import JsonObject, JsonValue, PageSpan, ScannedPage, to_plain


@dataclass(frozen=True, slots=True)
class RawDocument:
    """A document as read.

    Attributes:
        title: Its title.
        text: Its normalised text. All character spans refer to it.
        document_type: markdown, text, html, pdf, picture, docx, pptx, xlsx, epub, csv, json, notebook or code.
        metadata: Facts as plain JSON types.
        language: A Postgres text search configuration, or "cjk".
        pages: (number, start, end) of PDF pages and slides; numbers count from 1.
        scans: Pages read by OCR, with the position of every word in ``text`` and on its page.
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
    """The result of a reader before normalisation.

    Attributes:
        text: The text, unless the document has pages.
        title: Its title.
        metadata: Facts of any type.
        pages: (number, text) of its pages.
        scans: Pages read by OCR, with positions in the text of their page.
    """

    text: str = ""
    title: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    pages: tuple[tuple[int, str], ...] = ()
    scans: tuple[ScannedPage, ...] = ()


def join_pages(pages: tuple[tuple[int, str], ...]) -> tuple[str, tuple[PageSpan, ...]]:
    """Join page texts by blank lines; return the text and the span of each page that has text."""
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


def place_scans(scans: tuple[ScannedPage, ...], pages: tuple[PageSpan, ...]) -> tuple[ScannedPage, ...]:
    """Convert positions in pages to positions in the whole text. Pages without text are dropped."""
    starts = {number: start for number, start, _ in pages}
    return tuple(scan.shift(starts[scan.number]) for scan in scans if scan.number in starts)


def to_json_metadata(metadata: Mapping[str, object]) -> JsonObject:
    """Return metadata as JSON types: dates as ISO strings, other types as text, and strings normalised."""
    return {normalise(str(key)): _to_json(value) for key, value in metadata.items()}


def _to_json(value: object) -> JsonValue:
    value = to_plain(value)
    if isinstance(value, Mapping):
        return to_json_metadata(value)
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)  # JSON has no NaN or infinity
    if value is None or isinstance(value, bool | int | float):
        return value
    return normalise(str(value))
