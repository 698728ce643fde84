"""The result of a reader: the text to store and its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.ingestion.text import normalise
from workbench.types import JsonObject, JsonValue, PageSpan, ScannedPage, to_plain


@dataclass(frozen=True, slots=True)
class RawDocument:
    """A document as read."""

    title: str  # its title
    text: str  # its normalised text. All character spans refer to it.
    # markdown, text, html, pdf, picture, docx, rtf, pptx, xlsx, epub, csv, json, notebook, mail or code
    document_type: str
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)  # facts as plain JSON types
    language: str = "simple"  # a Postgres text search configuration, or "cjk"
    pages: tuple[PageSpan, ...] = ()  # (number, start, end) of PDF pages and slides; numbers count from 1
    # Pages read by OCR, with the position of every word in ``text`` and on its page.
    scans: tuple[ScannedPage, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """The result of a reader before normalisation."""

    text: str = ""  # the text, unless the document has pages
    title: str = ""  # its title
    metadata: Mapping[str, object] = field(default_factory=dict)  # facts of any type
    pages: tuple[tuple[int, str], ...] = ()  # (number, text) of its pages
    scans: tuple[ScannedPage, ...] = ()  # pages read by OCR, with positions in the text of their page


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
