"""The Library page: the sources there are, new ones brought in, put in order, taken out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.library.dialogs import delete_sources, move_sources, rename_source, tag_sources
from workbench.app.library.documents import source_page
from workbench.app.library.projects import projects_view
from workbench.app.library.upload import upload_area
from workbench.app.shell.scope_bar import current_index
from workbench.app.shell.states import message
from workbench.app.shell.ways_on import ways_on
from workbench.app.shell.work import WORKS, Work
from workbench.app.shell.work_view import in_tray
from workbench.app.state import address
from workbench.app.state.controlled import show_value
from workbench.app.state.shared import OPENING
from workbench.app.widgets.index_offer import language_offer
from workbench.app.widgets.notices import leave_warning, show_notice
from workbench.app.widgets.reader import reader
from workbench.app.widgets.table import Column, moment, table
from workbench.errors import NotFound
from workbench.types import Source

if TYPE_CHECKING:
    from workbench.workbench import Workbench

FILLING = 1.5  # seconds between two looks at sources that are filled
_SELECTED = "selected_sources"
VIEWS = {"sources": "Sources", "projects": "Projects and folders"}
SOURCE_COLUMNS = (
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
    workbench = OPENING.workbench
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
        source = workbench.sources.get(source_id)
    except NotFound as error:
        leave_warning(str(error))
        address.put(open=None)
        st.rerun()
    source_page(workbench, source)


def _views(workbench: Workbench) -> None:
    show_value("library_view", address.get("view") or "sources")
    view = st.segmented_control(
        "View", list(VIEWS), key="library_view", format_func=VIEWS.__getitem__, required=True,
        label_visibility="collapsed", on_change=lambda: address.put(view=_view_value()),
    )  # fmt: skip
    if view == "projects":
        projects_view(workbench)
        return
    sources = workbench.sources.list()
    upload_area(workbench, sources)
    sources += workbench.sources.of_families()  # below the others; their type tells them apart
    if any(work.job.kind == "ingest" and not work.running for work in in_tray(WORKS.all()).values()):
        language_offer(workbench)
    _sources(workbench, sources)


def _view_value() -> str | None:
    view = st.session_state["library_view"]
    return None if view == "sources" else view


def _sources(workbench: Workbench, sources: Sequence[Source]) -> None:
    if not sources:
        message(
            "No sources yet", "Drop your files above, or begin in another way. Each upload, site or sample is a source."
        )
        ways_on(workbench, "crawl")
        return
    actions = st.container(key="source_actions", horizontal=True, vertical_alignment="center", gap="small")
    if filled_now(WORKS.all().values()):
        chosen = st.fragment(_filling_table, run_every=FILLING)(workbench)
    else:
        chosen = _table(workbench, sources)
    selected = [source for source in sources if source.id in chosen]
    with actions:
        _actions(workbench, selected)


def _filling_table(workbench: Workbench) -> tuple[str, ...]:
    """Show the sources as they are by now; the page is drawn anew for a choice, whose buttons are not in the table."""
    before = st.session_state.get(_SELECTED)
    chosen = _table(workbench, [*workbench.sources.list(), *workbench.sources.of_families()])
    st.session_state[_SELECTED] = chosen
    if before is not None and chosen != before:
        st.rerun()
    return chosen


def _table(workbench: Workbench, sources: Sequence[Source]) -> tuple[str, ...]:
    """Show sources, with what is told of those that are filled just now; returns the ids of those selected."""
    filling = filled_now(WORKS.all().values())
    projects = {project.id: project.title for project in workbench.projects.list()}
    chosen = table(
        "sources",
        SOURCE_COLUMNS,
        [
            row_of(source, projects, filling.get(source.id, ""))
            for source in sorted(sources, key=_changed, reverse=True)
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


def filled_now(works: Iterable[Work]) -> dict[str, str]:
    """Return what is told of the sources that work fills just now, by their ids."""
    return {
        work.job.source_id: f"being filled, {work.share:.0%}" if work.share else "being filled"
        for work in works
        if work.running and work.job.source_id
    }


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


def row_of(source: Source, projects: dict[str, str], filling: str = "") -> dict[str, object]:
    """Return a source as a row of the table; ``filling`` says how far work is that fills it."""
    about = " · ".join(part for part in (source.url, filling) if part)
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
        "notes": {"title": about} if about else {},
    }
