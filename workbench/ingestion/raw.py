"""What a reader makes of a file: the one text that is stored and shown, and everything known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.ingestion.normalise import normalise
from workbench.types import plain

PageSpan = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class RawDocument:
    """A document as read; every later character span refers to ``text``, which is normalised once, here.

    ``document_type`` is one of markdown, text, html, pdf, docx, pptx, xlsx, epub, csv, json, notebook, code.
    ``language`` is a Postgres text search configuration, or "cjk". ``pages`` are (number, start, end) of PDF pages
    and slides, numbers counting from 1. ``metadata`` holds plain JSON types only.
    """

    title: str
    text: str
    document_type: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    language: str = "simple"
    pages: tuple[PageSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """What one reader returns before normalisation: ``text``, or ``pages`` as (number, text) where there are pages."""

    text: str = ""
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pages: tuple[tuple[int, str], ...] = ()


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


def plain_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as JSON can hold it: dates as ISO strings, odd types as text, strings normalised."""
    return {normalise(str(key)): _plain(value) for key, value in metadata.items()}


def _plain(value: Any) -> Any:
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
