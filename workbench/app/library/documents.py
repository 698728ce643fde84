"""One source of the Library: its documents, to open, rename and delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.library.dialogs import (
    delete_documents,
    delete_sources,
    move_sources,
    rename_document,
    rename_source,
    tag_sources,
)
from workbench.app.library.source_language import source_language
from workbench.app.library.upload import add_to_source
from workbench.app.state import address
from workbench.app.widgets.labels import escaped
from workbench.app.widgets.reader import open_document
from workbench.app.widgets.table import Column, moment, table
from workbench.sizes import counted
from workbench.types import Document, Source

if TYPE_CHECKING:
    from workbench.workbench import Workbench

MOST = 5_000  # documents listed at once
DOCUMENT_COLUMNS = (
    Column("title", "Document"),
    Column("type", "Type", whole=True),
    Column("passages", "Passages", "number"),
    Column("updated", "Changed", "shown"),
)


def source_page(workbench: Workbench, source: Source) -> None:
    """Show a source's facts, its documents, and what can be done with either."""
    st.button("Library", icon=":material/arrow_back:", type="tertiary", on_click=lambda: address.put(open=None))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title(escaped(source.title), anchor=False, width="stretch")
        _source_actions(workbench, source)
    facts = [counted(source.documents_count, "document"), counted(source.passages_count, "passage"), source.source_type]
    facts += [f"#{tag}" for tag in source.tags]
    st.caption(escaped(" · ".join(facts)))
    documents = workbench.documents.list(source_id=source.id, limit=MOST)
    actions = st.container(key="document_actions", horizontal=True, vertical_alignment="center", gap="small")
    chosen = table(
        f"documents_{source.id}",
        DOCUMENT_COLUMNS,
        [_row(document) for document in documents],
        label="Documents",
        noun="documents",
        empty="This source has no documents.",
        selectable=True,
        opens=True,
    )
    if chosen.opened:
        open_document(chosen.opened)
    if source.documents_count > MOST:
        st.caption(f"The first {MOST:,} are listed.")
    selected = [document for document in documents if document.id in chosen.selected]
    with actions:
        _document_actions(workbench, selected)


def _source_actions(workbench: Workbench, source: Source) -> None:
    if st.button("Add files", type="tertiary", icon=":material/upload_file:"):
        add_to_source(workbench, source)
    if st.button("Move", type="tertiary", icon=":material/drive_file_move:"):
        move_sources(workbench, [source])
    if st.button("Tag", type="tertiary", icon=":material/sell:"):
        tag_sources(workbench, [source])
    if st.button("Rename", type="tertiary", icon=":material/edit:"):
        rename_source(workbench, source)
    if st.button("Language", type="tertiary", icon=":material/translate:"):
        source_language(workbench, source)
    if st.button("Delete", type="tertiary", icon=":material/delete:", key="delete_source"):
        delete_sources(workbench, [source])


def _document_actions(workbench: Workbench, selected: list[Document]) -> None:
    if not selected:
        st.caption("Open a document to read it with its passages in place; select some to rename or delete them.")
        return
    st.markdown(f"**{len(selected)} selected**", width="content")
    if st.button("Rename document", icon=":material/edit:", disabled=len(selected) > 1):
        rename_document(workbench, selected[0])
    if st.button("Delete documents", icon=":material/delete:"):
        delete_documents(workbench, selected)


def _row(document: Document) -> dict[str, Any]:
    where = document.path or document.url
    return {
        "id": document.id,
        "name": document.title,
        "cells": {
            "title": document.title,
            "type": document.document_type,
            "passages": document.passages_count,
            "updated": moment(document.updated_at),
        },
        "notes": {"title": where} if where else {},
    }
