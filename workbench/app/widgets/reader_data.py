"""The data of the reader: the text in stretches, the marked ones among them, and its pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.app.widgets.rendered.elements import drawn
from workbench.app.widgets.rendered.markdown_tree import markdown_tree
from workbench.app.widgets.rendered.text_window import window
from workbench.app.widgets.rendered.tints import Tints, stretches
from workbench.types import JsonObject
from workbench.types.results import Span

if TYPE_CHECKING:
    from workbench.storage.passages import StoredPassage
    from workbench.types import Document

RENDERED, RAW = "rendered", "raw"
# The types whose text is Markdown: as written, or as their reader makes it.
_MARKDOWN = {"markdown", "html", "docx", "epub", "notebook", "pptx", "xlsx", "csv"}
PDF = "pdf"
_DRAWN_AT_FIRST = _MARKDOWN | {PDF}  # its reader writes headings and tables, and keeps other signs as they are
_CODE = {"code", "json"}
_SHEETS = {"xlsx", "csv"}


def reader_data(
    document: Document,
    passages: Sequence[StoredPassage],
    place: Span | None,
    original: str | None,
    form: str = "",
    wanted: int | None = None,
) -> JsonObject:
    """Return what the reader draws: of a long text the part around ``place``, or the one that begins at ``wanted``.

    ``form`` is "rendered", "raw" or "", by the document's type.
    """
    text = document.text or ""
    start, end = window(text, wanted, place)
    part = text[start:end]
    page = next((p.metadata.get("page") for p in passages if place and p.metadata["start"] == place[0]), None)
    spans = [
        (first - start, last - start) for first, last in (p.span for p in passages) if last > start and first < end
    ]
    own = (place[0] - start, place[1] - start) if place and place[1] > start and place[0] < end else None
    form = form_of(document.document_type, form)
    return {
        "document": document.id,
        "title": document.title,
        "type": document.document_type,
        "passages": len(passages),
        "found": bool(place),
        "shown": bool(own),
        "form": form,
        "can_turn": not is_code(document.document_type),
        "part": {"start": start, "end": end, "of": len(text)} if (start, end) != (0, len(text)) else None,
        "original": original,
        "page": page,
        **(
            _rendered(part, spans, own, document.document_type)
            if form == RENDERED
            else {"stretches": stretches(part, spans, own)}
        ),
    }


def form_of(document_type: str, wanted: str) -> str:
    """Return in which form a document is shown."""
    if is_code(document_type):
        return RAW
    return wanted if wanted in (RENDERED, RAW) else RENDERED if document_type in _DRAWN_AT_FIRST else RAW


def is_code(document_type: str) -> bool:
    """Tell whether a document is code, which is never rendered."""
    return document_type in _CODE


def is_markdown(document_type: str) -> bool:
    """Tell whether a document's text is Markdown, so that it is rendered unless a person wants it raw."""
    return document_type in _MARKDOWN


def has_records(document_type: str) -> bool:
    """Tell whether a document's rows may stand as "name: value" lines, which are shown as a table."""
    return document_type in _SHEETS


def _rendered(text: str, spans: Sequence[Span], place: Span | None, document_type: str) -> JsonObject:
    has_code = document_type != PDF  # in a page's text blanks before a line are the page's, not the author's
    tree = markdown_tree(text, has_indented_code=has_code, has_records=has_records(document_type))
    tints = Tints(text, spans, place)
    return {
        "blocks": drawn(tree.blocks, tints.pieces, tints.whole),
        "outline": [{"level": heading.level, "words": heading.words} for heading in tree.headings],
    }


def read_place(value: str) -> tuple[int, int] | None:
    """Read "120-480" of an address as a span; None where it is none."""
    first, _, last = value.partition("-")
    if not (first.isdecimal() and last.isdecimal()) or int(last) <= int(first):
        return None
    return int(first), int(last)
