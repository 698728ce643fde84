"""The document reader: the text with its passages highlighted, and the original if it is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.state import address
from workbench.app.state.address import add_base_path
from workbench.app.state.shared import name_tab, note_change
from workbench.app.widgets.elements import to_json
from workbench.app.widgets.looks import CRAWL_METADATA, escape_markdown
from workbench.app.widgets.markdown import parse_markdown
from workbench.app.widgets.notices import mount
from workbench.app.widgets.source_places import TintedText, choose_part, split_by_passages
from workbench.errors import NotFound
from workbench.ingestion.metadata import left_out_note, scan_note
from workbench.types import JsonObject, Span

if TYPE_CHECKING:
    from workbench.storage.passages import StoredPassage
    from workbench.types import Document
    from workbench.workbench import Workbench

# The data of the reader

RENDERED, RAW = "rendered", "raw"
# Types whose text is Markdown, as written or as made by their reader.
_MARKDOWN_TYPES = {"markdown", "html", "docx", "epub", "notebook", "pptx", "xlsx", "csv", "mail"}
PDF_TYPE = "pdf"
_RENDERED_TYPES = _MARKDOWN_TYPES | {
    PDF_TYPE
}  # its reader writes headings and tables, but does not escape other characters
_CODE_TYPES = {"code", "json"}
_SHEET_TYPES = {"xlsx", "csv"}


def build_reader_data(
    document: Document,
    passages: Sequence[StoredPassage],
    place: Span | None,
    original: str | None,
    form: str = "",
    wanted: int | None = None,
) -> JsonObject:
    """Return the data of the reader.

    Args:
        document: The document, with its text.
        passages: Its passages.
        place: Span of the found passage, in characters.
        original: URL of the original.
        form: "rendered", "raw", or "" for the default of the document's type.
        wanted: Start of the part of a long text; by default the part around ``place``.
    """
    text = document.text or ""
    start, end = choose_part(text, wanted, place)
    part = text[start:end]
    page = next((p.metadata.get("page") for p in passages if place and p.metadata["start"] == place[0]), None)
    spans = [
        (first - start, last - start) for first, last in (p.span for p in passages) if last > start and first < end
    ]
    own = (place[0] - start, place[1] - start) if place and place[1] > start and place[0] < end else None
    form = choose_form(document.document_type, form)
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
            _build_rendered(part, spans, own, document.document_type)
            if form == RENDERED
            else {"stretches": split_by_passages(part, spans, own)}
        ),
    }


def choose_form(document_type: str, wanted: str) -> str:
    """Return the form in which a document is shown: "rendered" or "raw"."""
    if is_code(document_type):
        return RAW
    return wanted if wanted in (RENDERED, RAW) else RENDERED if document_type in _RENDERED_TYPES else RAW


def is_code(document_type: str) -> bool:
    """Return whether a document is code, which is never rendered."""
    return document_type in _CODE_TYPES


def is_markdown(document_type: str) -> bool:
    """Return whether a document's text is Markdown, which is rendered by default."""
    return document_type in _MARKDOWN_TYPES


def has_records(document_type: str) -> bool:
    """Return whether rows of a document may be "name: value" lines, which are shown as a table."""
    return document_type in _SHEET_TYPES


def _build_rendered(text: str, spans: Sequence[Span], place: Span | None, document_type: str) -> JsonObject:
    has_code = document_type != PDF_TYPE  # indentation in a page's text is layout
    tree = parse_markdown(text, has_indented_code=has_code, has_records=has_records(document_type))
    tints = TintedText(text, spans, place)
    return {
        "blocks": to_json(tree.blocks, tints.pieces, tints.whole),
        "outline": [{"level": heading.level, "words": heading.words} for heading in tree.headings],
    }


def parse_place(value: str) -> tuple[int, int] | None:
    """Parse "120-480" as a span; None if invalid."""
    first, _, last = value.partition("-")
    if not (first.isdecimal() and last.isdecimal()) or int(last) <= int(first):
        return None
    return int(first), int(last)


_COMPONENT_KEY = "reader_sent"
MAX_METADATA_CHARS = 120  # characters of a value that is shown


def open_document(document_id: str, start: int | None = None, end: int | None = None) -> None:
    """Put a document and the found span into the URL; ``show_reader`` shows them."""
    at = f"{start}-{end}" if start is not None and end is not None else None
    address.put(doc=document_id, at=at, form=None, part=None)


def show_reader(wb: Workbench, index: str | None = None) -> None:
    """Show the document of the URL, if any, in a drawer; called at the end of every page that opens documents."""
    document = find_document(wb)
    if document is None:
        return
    name_tab(part=document.title)
    title, width = escape_markdown(document.title, 120) or "Document", 1240 if wb.documents.file(document.id) else 980
    st.dialog(title, width=width, position="right", on_dismiss=close_document)(show_document)(wb, document, index)


def find_document(wb: Workbench) -> Document | None:
    """Return the document of the URL; None if there is none, or if it has been deleted, which is reported."""
    document_id = address.get("doc")
    try:
        return wb.documents.get(document_id) if document_id else None
    except NotFound:
        close_document()
        note_change()  # refreshes the results
        st.toast("This document no longer exists.")
        return None


def list_metadata(document: Document) -> dict[str, str]:
    """Return the metadata of a document that people can read, such as its author, date and status, as text."""
    shown: dict[str, str] = {}
    for name, value in document.metadata.items():
        if name in CRAWL_METADATA:
            continue
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            shown[name] = ", ".join(map(str, value))
        elif isinstance(value, str | int | float) and value != document.title:
            shown[name] = str(value)
    return {name: text for name, text in shown.items() if text}


def find_in_text(text: str, wanted: str) -> list[Span]:
    """Return the spans of a text that equal the wanted words, ignoring case and the kind of white space."""
    words = [re.escape(word) for word in wanted.split()]
    return [match.span() for match in re.finditer(r"\s+".join(words), text, re.IGNORECASE)] if words else []


def _show_find(document: Document) -> None:
    """Show a search inside the document; the match is the found span in the URL."""
    key = f"find_in_{document.id}"

    def go(step: int) -> None:
        found = find_in_text(document.text or "", st.session_state.get(key) or "")
        at = parse_place(address.get("at"))
        place = (found.index(at) + step) % len(found) if at in found else 0
        if found:
            address.put(at=f"{found[place][0]}-{found[place][1]}", part=None)

    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="find_in_document"):
        wanted = st.text_input(
            "Find in this document", key=key, placeholder="Find in this document", label_visibility="collapsed",
            on_change=go, args=(0,), width=260,
        )  # fmt: skip
        if not wanted:
            return
        found, at = find_in_text(document.text or "", wanted), parse_place(address.get("at"))
        st.caption(
            f"{found.index(at) + 1 if at in found else 0} of {len(found):,}" if found else "No match", width="content"
        )
        st.button("Previous match", type="tertiary", on_click=go, args=(-1,), disabled=len(found) < 2)
        st.button("Next match", type="tertiary", on_click=go, args=(1,), disabled=len(found) < 2)


def close_document() -> None:
    """Remove the document from the URL."""
    address.put(doc=None, at=None, form=None, part=None)


def show_document(wb: Workbench, document: Document, index: str | None) -> None:
    """Show a document at the span of the URL."""
    source = wb.sources.get(document.source_id)
    passages = wb.documents.passages(document.id, index=index)
    facts = [
        source.title,
        document.path or document.url or "",
        document.document_type,
        f"{len(document.text or ''):,} characters",
        scan_note(document.metadata),
        left_out_note(document.metadata),
    ]
    known = " · ".join(f"{name}: {text[:MAX_METADATA_CHARS]}" for name, text in list_metadata(document).items())
    st.html(
        "".join(
            f'<p class="wb-kind" style="margin:0">{escape(line)}</p>'
            for line in (" · ".join(fact for fact in facts if fact), known)
            if line
        )
    )
    if document.text:
        _show_find(document)
    part = address.get("part")
    data = build_reader_data(
        document,
        passages,
        parse_place(address.get("at")),
        _original_url(wb, document),
        form=address.get("form"),
        wanted=int(part) if part.isdecimal() else None,
    )
    mount(
        "widgets/reader", _COMPONENT_KEY, data, form=lambda: _store_choice("form"), part=lambda: _store_choice("part")
    )


def _store_choice(name: str) -> None:
    """Put the chosen form or part into the URL; "" is the default."""
    state = st.session_state.get(_COMPONENT_KEY)
    chosen = state.get(name) if isinstance(state, Mapping) else None
    if isinstance(chosen, str):
        address.put(**{name: chosen or None})


def _original_url(wb: Workbench, document: Document) -> str | None:
    """Return the URL of a document's original, or of the found passage's page image; None if not stored."""
    if not wb.documents.file(document.id):
        return None
    place = parse_place(address.get("at"))
    page = wb.pages.find_page(document.id, place)
    if page is None:
        return add_base_path(f"/originals/{document.id}")
    return add_base_path(f"/originals/{document.id}/seen/{page}") + (f"?at={place[0]}-{place[1]}" if place else "")
