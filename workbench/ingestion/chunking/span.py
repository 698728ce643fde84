"""Input and output of a chunker: a document's text, and where it is cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from workbench.ingestion.about import About

Tokenize = Callable[[str], list[tuple[int, int]]]
BlockKind = Literal["text", "table", "code", "heading", "list"]


@dataclass(frozen=True, slots=True)
class ChunkInput:
    """The parts of a document that cutting needs; ``pages`` are (number, start, end) in ``text``.

    ``about`` holds what the document says of itself beside its title; it goes into every passage's context.
    """

    title: str
    text: str
    document_type: str = "markdown"
    pages: tuple[tuple[int, int, int], ...] = ()
    about: About = field(default=About())


@dataclass(frozen=True, slots=True)
class CutPassage:
    """One passage: ``document.text[start:end]``, without blanks at its ends.

    ``header`` is the context to embed before it (see ``storage.embedded_text``), cut so that both fit the encoder.
    ``parent`` is the (start, end) of the section to return in its place, where the chunker knows one. ``metadata``
    may hold "table_header" (a span), "window" (a span around a single sentence).
    """

    start: int
    end: int
    heading_path: tuple[str, ...] = ()
    kind: BlockKind = "text"
    page: int | None = None
    parent: tuple[int, int] | None = None
    header: str = ""
    metadata: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Piece:
    """The result of a chunker: bounds (not yet stripped) and facts that only it can know."""

    start: int
    end: int
    parent: tuple[int, int] | None = None
    metadata: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def strip(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of ``text[start:end]`` without surrounding blanks; equal bounds when nothing is left."""
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    return start, end
