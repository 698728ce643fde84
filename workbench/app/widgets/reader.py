"""The document reader: a drawer with the text, its passages in place, and the original beside it where kept."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.state import address
from workbench.app.state.base_path import rooted
from workbench.app.state.shared import note_change
from workbench.app.widgets.assets import component
from workbench.app.widgets.labels import escaped
from workbench.app.widgets.reader_data import read_place, reader_data
from workbench.errors import NotFound
from workbench.ingestion.metadata import scan_note

if TYPE_CHECKING:
    from workbench.types import Document
    from workbench.workbench import Workbench

_KEY = "reader_sent"


def open_document(document_id: str, start: int | None = None, end: int | None = None) -> None:
    """Let the address name a document, and the found passage's span in it; ``reader`` shows it."""
    at = f"{start}-{end}" if start is not None and end is not None else None
    address.put(doc=document_id, at=at, form=None, part=None)


def reader(workbench: Workbench, index: str | None = None) -> None:
    """Show the document that the address names, if it names one; every page that opens documents ends with this."""
    document_id = address.get("doc")
    if not document_id:
        return
    try:
        document = workbench.documents.get(document_id)
    except NotFound:
        close()
        note_change()  # the hits are asked anew when the page is drawn next
        st.toast("That document no longer exists.")
        return
    title, width = escaped(document.title, 120) or "Document", _width(workbench, document)
    st.dialog(title, width=width, position="right", on_dismiss=close)(_show)(workbench, document, index)


def close() -> None:
    """Take the document out of the address."""
    address.put(doc=None, at=None, form=None, part=None)


def _width(workbench: Workbench, document: Document) -> int:
    return 1240 if workbench.documents.file(document.id) else 980


def _show(workbench: Workbench, document: Document, index: str | None) -> None:
    source = workbench.sources.get(document.source_id)
    passages = workbench.documents.passages(document.id, index=index)
    facts = [
        source.title,
        document.path or document.url or "",
        document.document_type,
        f"{len(document.text or ''):,} characters",
        scan_note(document.metadata),
    ]
    st.html(f'<p class="wb-kind" style="margin:0">{escape(" · ".join(fact for fact in facts if fact))}</p>')
    part = address.get("part")
    component("widgets/reader")(
        key=_KEY,
        data=reader_data(
            document,
            passages,
            read_place(address.get("at")),
            _original(workbench, document),
            form=address.get("form"),
            wanted=int(part) if part.isdecimal() else None,
        ),
        on_form_change=lambda: _put("form"),
        on_part_change=lambda: _put("part"),
    )


def _put(name: str) -> None:
    """Let the address name the form, or the part, that was chosen; "" is the one it begins with."""
    state = st.session_state.get(_KEY)
    chosen = state.get(name) if isinstance(state, Mapping) else None
    if isinstance(chosen, str):
        address.put(**{name: chosen or None})


def _original(workbench: Workbench, document: Document) -> str | None:
    """Return the address of a document's original; for a found passage it is the picture of its page, marked."""
    if not workbench.documents.file(document.id):
        return None
    place = read_place(address.get("at"))
    page = workbench.pages.page_of(document.id, place)
    if page is None:
        return rooted(f"/originals/{document.id}")
    return rooted(f"/originals/{document.id}/seen/{page}") + (f"?at={place[0]}-{place[1]}" if place else "")
