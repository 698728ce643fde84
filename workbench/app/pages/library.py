"""Library: what there is to search, bringing more in, putting it in order, taking it out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app import address
from workbench.app.engine import ENGINE
from workbench.app.library_dialogs import delete_sources, move_sources, rename_source, show_notice, tag_sources
from workbench.app.library_documents import source_page
from workbench.app.library_projects import projects_view
from workbench.app.library_upload import upload_area
from workbench.app.reader import reader
from workbench.app.scope_bar import current_index
from workbench.app.table import Column, moment, table
from workbench.errors import NotFound
from workbench.types import Source

if TYPE_CHECKING:
    from workbench.workbench import Workbench

VIEWS = {"sources": "Sources", "projects": "Projects and folders"}
COLUMNS = (
    Column("title", "Source"),
    Column("place", "Place", whole=True),
    Column("tags", "Tags", "tags"),
    Column("type", "Type", whole=True),
    Column("documents", "Documents", "number"),
    Column("passages", "Passages", "number"),
    Column("updated", "Changed", "shown"),
)


def page() -> None:
    """Show one source where the address names one, else the sources or the projects."""
    workbench = ENGINE.workbench
    show_notice()
    opened = address.get("open")
    if opened:
        _opened(workbench, opened)
    else:
        st.title("Library", anchor=False)
        _views(workbench)
    reader(workbench, current_index())


def _opened(workbench: Workbench, source_id: str) -> None:
    try:
        source = workbench.knowledge.source(source_id)
    except NotFound:
        address.put(open=None)
        st.rerun()
    source_page(workbench, source)


def _views(workbench: Workbench) -> None:
    st.session_state["library_view"] = address.get("view") or "sources"
    view = st.segmented_control(
        "View", list(VIEWS), key="library_view", format_func=VIEWS.__getitem__, required=True,
        label_visibility="collapsed", on_change=lambda: address.put(view=_view_value()),
    )  # fmt: skip
    if view == "projects":
        projects_view(workbench)
        return
    sources = workbench.knowledge.sources()
    upload_area(workbench, sources)
    _sources(workbench, sources)


def _view_value() -> str | None:
    view = st.session_state["library_view"]
    return None if view == "sources" else view


def _sources(workbench: Workbench, sources: Sequence[Source]) -> None:
    projects = {project.id: project.title for project in workbench.projects.list()}
    actions = st.container(key="source_actions", horizontal=True, vertical_alignment="center", gap="small")
    chosen = table(
        "sources",
        COLUMNS,
        [row_of(source, projects) for source in sorted(sources, key=_changed, reverse=True)],
        label="Sources",
        noun="sources",
        empty="No sources yet: drop some files above.",
        selectable=True,
        opens=True,
    )
    if chosen.opened:
        address.put(open=chosen.opened)
        st.rerun()
    selected = [source for source in sources if source.id in chosen.selected]
    with actions:
        _actions(workbench, selected)


def _changed(source: Source) -> str:
    return source.updated_at.isoformat() if source.updated_at else ""


def _actions(workbench: Workbench, selected: Sequence[Source]) -> None:
    if not selected:
        st.caption("Select sources to move, tag, rename or delete them.")
        return
    st.markdown(f"**{len(selected)} selected**", width="content")
    if st.button("Move", icon=":material/drive_file_move:"):
        move_sources(workbench, selected)
    if st.button("Tag", icon=":material/sell:"):
        tag_sources(workbench, selected)
    if st.button("Rename", icon=":material/edit:", disabled=len(selected) > 1):
        rename_source(workbench, selected[0])
    if st.button("Delete", icon=":material/delete:"):
        delete_sources(workbench, selected)


def row_of(source: Source, projects: dict[str, str]) -> dict[str, Any]:
    """Return a source as a row of the table."""
    place = projects.get(source.project_id or "", "") + (f" / {source.folder_name}" if source.folder_name else "")
    return {
        "id": source.id,
        "name": source.title,
        "cells": {
            "title": source.title,
            "place": place or "Everywhere",
            "tags": list(source.tags),
            "type": source.source_type,
            "documents": source.documents_count,
            "passages": source.passages_count,
            "updated": moment(source.updated_at),
        },
        "notes": {"title": source.url} if source.url else {},
    }
