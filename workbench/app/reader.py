"""The document reader: a drawer with the text, its passages in place, and the original beside it where kept."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app import address
from workbench.app.assets import component
from workbench.app.reader_data import read_place, stretches
from workbench.errors import NotFound

if TYPE_CHECKING:
    from workbench.types import Document
    from workbench.workbench import Workbench

MOST_TEXT = 400_000  # characters shown at once; beyond it the part around the found passage is


def open_document(document_id: str, start: int | None = None, end: int | None = None) -> None:
    """Let the address name a document, and the found passage's span in it; ``reader`` shows it."""
    address.put(doc=document_id, at=f"{start}-{end}" if start is not None and end is not None else None)


def reader(workbench: Workbench, index: str | None = None) -> None:
    """Show the document that the address names, if it names one; every page that opens documents ends with this."""
    document_id = address.get("doc")
    if not document_id:
        return
    try:
        document = workbench.knowledge.document(document_id)
    except NotFound:
        close()
        st.toast("That document is not there any more.")
        return
    show = st.dialog(
        document.title[:120] or "Document", width=_width(workbench, document), position="right", on_dismiss=close
    )(_show)
    show(workbench, document, index)


def close() -> None:
    """Take the document out of the address."""
    address.put(doc=None, at=None)


def _width(workbench: Workbench, document: Document) -> int:
    return 1240 if workbench.knowledge.document_file(document.id) else 820


def _show(workbench: Workbench, document: Document, index: str | None) -> None:
    source = workbench.knowledge.source(document.source_id)
    passages = workbench.knowledge.passages(document.id, index=index)
    found = read_place(address.get("at"))
    facts = [
        source.title,
        document.path or document.url or "",
        document.document_type,
        f"{len(document.text or ''):,} characters",
    ]
    st.html(f'<p class="wb-kind" style="margin:0">{escape(" · ".join(fact for fact in facts if fact))}</p>')
    component("reader")(
        key=f"reader_{document.id}", data=reader_data(document, passages, found, _original(workbench, document))
    )


def reader_data(
    document: Document, passages: Any, found: tuple[int, int] | None, original: str | None
) -> dict[str, Any]:
    """Return what the reader draws."""
    spans = [(int(passage.metadata["start"]), int(passage.metadata["end"])) for passage in passages]
    text = document.text or ""
    page = next((p.metadata.get("page") for p in passages if found and p.metadata["start"] == found[0]), None)
    first = 0
    if len(text) > MOST_TEXT:
        first = max(0, (found[0] if found else 0) - MOST_TEXT // 2)
        text = text[first : first + MOST_TEXT]
        spans = [(start - first, end - first) for start, end in spans if end > first and start < first + MOST_TEXT]
        found = (found[0] - first, found[1] - first) if found else None
    return {
        "title": document.title,
        "passages": len(passages),
        "found": bool(found),
        "stretches": stretches(text, spans, found),
        "original": original,
        "page": page,
    }


def _original(workbench: Workbench, document: Document) -> str | None:
    return f"/originals/{document.id}" if workbench.knowledge.document_file(document.id) else None
