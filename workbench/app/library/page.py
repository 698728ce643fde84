"""The Library page: sources and their documents, to add, organise and delete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.library.projects import (
    delete_documents,
    delete_sources,
    move_sources,
    rename_document,
    rename_source,
    show_projects,
    tag_sources,
)
from workbench.app.library.upload import ask_files, show_upload_area
from workbench.app.shell.scope_bar import read_index
from workbench.app.shell.states import show_message
from workbench.app.shell.work import JOB_VIEWS, JobView, select_for_tray, show_start_buttons
from workbench.app.state import address
from workbench.app.state.shared import OPENING, show_value
from workbench.app.widgets.looks import escape_markdown
from workbench.app.widgets.notices import run_change, show_language_offer, show_notice, store_warning
from workbench.app.widgets.reader import open_document, show_reader
from workbench.app.widgets.table import Column, make_time_cell, show_table
from workbench.errors import NotFound
from workbench.formatting import count_text
from workbench.text import AUTO, LANGUAGES, MAX_PASSAGES_STEMMED_AT_ONCE, language_title
from workbench.types import Document, Source

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# The language of a source


@st.dialog("Source language")
def ask_language(wb: Workbench, source: Source) -> None:
    """Ask for the language of a source's documents, and stem their words again."""
    now = (
        "detected for each document"
        if source.language == AUTO
        else f"{_language_choice_title(source.language)} for all documents"
    )
    st.markdown(
        "The language of each document is detected from its text. If that is wrong, set the language for all documents "
        "of this source, including future ones. Their words are stemmed again in every index, which takes as long as "
        f"adding them did. Current: {now}."
    )
    language = st.selectbox(
        "Language",
        (AUTO, *LANGUAGES),
        index=None,
        format_func=_language_choice_title,
        placeholder="Choose a language",
        key="source_language",
    )

    def change() -> str:
        is_quick = source.passages_count <= MAX_PASSAGES_STEMMED_AT_ONCE
        wb.sources.update(source.id, language=language, build=is_quick)
        documents = count_text(source.documents_count, "document")
        if not is_quick:
            wb.jobs.enqueue_stemming()
            return f"Stemming {documents} again; progress is shown below."
        if language == AUTO:
            return f"Stemmed {documents} by the detected language of each."
        return f"Stemmed {documents} as {_language_choice_title(language or '')}."

    if st.button("Set language", type="primary", disabled=language is None):
        with st.spinner("Stemming…"):
            run_change(change)


def _language_choice_title(language: str) -> str:
    return "Detect automatically" if language == AUTO else language_title(language) or "None (no stemming)"


# One source and its documents

MAX_DOCUMENTS_SHOWN = 5_000  # documents listed at once
DOCUMENT_COLUMNS = (
    Column("title", "Document"),
    Column("type", "Type", whole=True),
    Column("passages", "Passages", "number"),
    Column("updated", "Updated", "shown"),
)


def show_source(wb: Workbench, source: Source) -> None:
    """Show a source, its documents, and actions for both."""
    st.button("Library", icon=":material/arrow_back:", type="tertiary", on_click=lambda: address.put(open=None))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title(escape_markdown(source.title), anchor=False, width="stretch")
        _show_source_actions(wb, source)
    facts = [
        count_text(source.documents_count, "document"),
        count_text(source.passages_count, "passage"),
        source.source_type,
    ]
    facts += [f"#{tag}" for tag in source.tags]
    st.caption(escape_markdown(" · ".join(facts)))
    documents = wb.documents.list(source_id=source.id, limit=MAX_DOCUMENTS_SHOWN)
    actions = st.container(key="document_actions", horizontal=True, vertical_alignment="center", gap="small")
    chosen = show_table(
        f"documents_{source.id}",
        DOCUMENT_COLUMNS,
        [_make_document_row(document) for document in documents],
        label="Documents",
        noun="documents",
        empty="This source has no documents.",
        selectable=True,
        opens=True,
    )
    if chosen.opened:
        open_document(chosen.opened)
    if source.documents_count > MAX_DOCUMENTS_SHOWN:
        st.caption(f"Showing the first {MAX_DOCUMENTS_SHOWN:,}.")
    selected = [document for document in documents if document.id in chosen.selected]
    with actions:
        _show_document_actions(wb, selected)


def _show_source_actions(wb: Workbench, source: Source) -> None:
    if st.button("Add files", type="tertiary", icon=":material/upload_file:"):
        ask_files(wb, source)
    if st.button("Move", type="tertiary", icon=":material/drive_file_move:"):
        move_sources(wb, [source])
    if st.button("Tag", type="tertiary", icon=":material/sell:"):
        tag_sources(wb, [source])
    if st.button("Rename", type="tertiary", icon=":material/edit:"):
        rename_source(wb, source)
    if st.button("Language", type="tertiary", icon=":material/translate:"):
        ask_language(wb, source)
    if st.button("Delete", type="tertiary", icon=":material/delete:", key="delete_source"):
        delete_sources(wb, [source])


def _show_document_actions(wb: Workbench, selected: list[Document]) -> None:
    if not selected:
        st.caption(
            "Open a document to read it with its passages highlighted. Select documents to rename or delete them."
        )
        return
    st.markdown(f"**{len(selected)} selected**", width="content")
    if st.button("Rename document", icon=":material/edit:", disabled=len(selected) > 1):
        rename_document(wb, selected[0])
    if st.button("Delete documents", icon=":material/delete:"):
        delete_documents(wb, selected)


def _make_document_row(document: Document) -> dict[str, Any]:
    where = document.path or document.url
    return {
        "id": document.id,
        "name": document.title,
        "cells": {
            "title": document.title,
            "type": document.document_type,
            "passages": document.passages_count,
            "updated": make_time_cell(document.updated_at),
        },
        "notes": {"title": where} if where else {},
    }


REFRESH_S = 1.5  # seconds between refreshes while sources are indexed
_SELECTION_KEY = "selected_sources"
VIEWS = {"sources": "Sources", "projects": "Projects and folders"}
SOURCE_COLUMNS = (
    Column("title", "Source"),
    Column("place", "Project", whole=True),
    Column("tags", "Tags", "tags"),
    Column("type", "Type", whole=True),
    Column("documents", "Documents", "number"),
    Column("passages", "Passages", "number"),
    Column("updated", "Updated", "shown"),
)


def page() -> None:
    """Show the source that the URL names, or else the list of sources or projects."""
    wb = OPENING.workbench
    show_notice()
    opened = address.get("open")
    if opened:
        _show_opened(wb, opened)
    else:
        st.title("Library", anchor=False)
        _show_views(wb)
    show_reader(wb, read_index())


def _show_opened(wb: Workbench, source_id: str) -> None:
    try:
        source = wb.sources.get(source_id)
    except NotFound as error:
        store_warning(str(error))
        address.put(open=None)
        st.rerun()
    show_source(wb, source)


def _show_views(wb: Workbench) -> None:
    show_value("library_view", address.get("view") or "sources")
    view = st.segmented_control(
        "View", list(VIEWS), key="library_view", format_func=VIEWS.__getitem__, required=True,
        label_visibility="collapsed", on_change=lambda: address.put(view=_read_view()),
    )  # fmt: skip
    if view == "projects":
        show_projects(wb)
        return
    sources = wb.sources.list()
    show_upload_area(wb, sources)
    sources += wb.sources.of_families()  # after the others; distinguished by their type
    if any(work.job.kind == "ingest" and not work.is_running for work in select_for_tray(JOB_VIEWS.all()).values()):
        show_language_offer(wb)
    _show_sources(wb, sources)


def _read_view() -> str | None:
    view = st.session_state["library_view"]
    return None if view == "sources" else view


def _show_sources(wb: Workbench, sources: Sequence[Source]) -> None:
    if not sources:
        show_message(
            "No sources yet", "Drop files above, or start another way. Each upload, website or sample is a source."
        )
        show_start_buttons(wb, "crawl")
        return
    actions = st.container(key="source_actions", horizontal=True, vertical_alignment="center", gap="small")
    if describe_indexing(JOB_VIEWS.all().values()):
        chosen = st.fragment(_refresh_table, run_every=REFRESH_S)(wb)
    else:
        chosen = _show_table(wb, sources)
    selected = [source for source in sources if source.id in chosen]
    with actions:
        _show_actions(wb, selected)


def _refresh_table(wb: Workbench) -> tuple[str, ...]:
    """Show the current sources; redraw the page if the selection changes, for its buttons."""
    before = st.session_state.get(_SELECTION_KEY)
    chosen = _show_table(wb, [*wb.sources.list(), *wb.sources.of_families()])
    st.session_state[_SELECTION_KEY] = chosen
    if before is not None and chosen != before:
        st.rerun()
    return chosen


def _show_table(wb: Workbench, sources: Sequence[Source]) -> tuple[str, ...]:
    """Show sources, with the progress of those being indexed; return the ids of the selected ones."""
    filling = describe_indexing(JOB_VIEWS.all().values())
    projects = {project.id: project.title for project in wb.projects.list()}
    chosen = show_table(
        "sources",
        SOURCE_COLUMNS,
        [
            make_source_row(source, projects, filling.get(source.id, ""))
            for source in sorted(sources, key=_update_time_key, reverse=True)
        ],
        label="Sources",
        noun="sources",
        selectable=True,
        opens=True,
    )
    if chosen.opened:
        address.put(open=chosen.opened)
        st.rerun()
    return chosen.selected


def describe_indexing(works: Iterable[JobView]) -> dict[str, str]:
    """Return the progress of sources that are being indexed, by id."""
    return {
        work.job.source_id: f"Indexing, {work.share:.0%}" if work.share else "Indexing"
        for work in works
        if work.is_running and work.job.source_id
    }


def _update_time_key(source: Source) -> str:
    return source.updated_at.isoformat() if source.updated_at else ""


def _show_actions(wb: Workbench, selected: Sequence[Source]) -> None:
    if not selected:
        st.caption("Select sources to move, tag, rename or delete them.")
        return
    st.markdown(f"**{len(selected)} selected**", width="content")
    if st.button("Move", icon=":material/drive_file_move:"):
        move_sources(wb, selected)
    if st.button("Tag", icon=":material/sell:"):
        tag_sources(wb, selected)
    if st.button("Rename", icon=":material/edit:", disabled=len(selected) > 1):
        rename_source(wb, selected[0])
    if st.button("Delete", icon=":material/delete:"):
        delete_sources(wb, selected)


def make_source_row(source: Source, projects: dict[str, str], filling: str = "") -> dict[str, object]:
    """Return a source as a row of the table; ``filling`` is the progress of indexing."""
    about = " · ".join(part for part in (source.url, filling) if part)
    place = projects.get(source.project_id or "", "") + (f" / {source.folder_name}" if source.folder_name else "")
    return {
        "id": source.id,
        "name": source.title,
        "cells": {
            "title": source.title,
            "place": place or "None (all scopes)",
            "tags": list(source.tags),
            "type": source.source_type,
            "documents": source.documents_count,
            "passages": source.passages_count,
            "updated": make_time_cell(source.updated_at),
        },
        "notes": {"title": about} if about else {},
    }
