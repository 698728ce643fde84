"""The part of the Library where files come in: the drop zone and where they go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.library.uploads import Drop, of_files, of_folder, start_upload
from workbench.app.state import address
from workbench.app.widgets.labels import escaped, labelled, unread_sentence
from workbench.errors import WorkbenchError
from workbench.ingestion.readers.formats import MAX_BYTES, format_titles
from workbench.sizes import counted
from workbench.types import Source

if TYPE_CHECKING:
    from workbench.workbench import Workbench

FILES_LABEL = f"Drop files here, or a zip archive of them: {', '.join(format_titles())}"
FOLDER_LABEL = "Drop a folder here; every readable file in it is added, subfolders included"
_NUMBER = "upload_number"  # a new key empties the drop zone once its files are on their way


def upload_area(workbench: Workbench, sources: Sequence[Source]) -> None:
    """Show the drop zone, and once files are in it, where they are to go."""
    with st.container(border=True, key="upload"):
        drop = _drop_zone()
        if drop is not None and drop.files:
            _destination(workbench, sources, drop)


def add_to_source(workbench: Workbench, source: Source) -> None:
    """Ask in a dialog for the files that are to go into a source."""

    @st.dialog(f"Add files to {escaped(source.title, 80)}")
    def ask() -> None:
        drop = _drop_zone()
        if drop is not None and drop.files and _add_button(drop):
            _start(workbench, drop, source.id, None, None, ())

    ask()


def _drop_zone() -> Drop | None:
    """Show where files are dropped, and name those that cannot be read; None while there is nothing in it."""
    number = st.session_state.setdefault(_NUMBER, 0)
    whole = st.segmented_control(
        "What to add", ["Files", "A folder"], default="Files", required=True, key="upload_kind",
        label_visibility="collapsed",
    ) == "A folder"  # fmt: skip
    uploads = st.file_uploader(
        FOLDER_LABEL if whole else FILES_LABEL,
        accept_multiple_files="directory" if whole else True,
        max_upload_size=-(-MAX_BYTES // 10**6),  # its megabyte is a million bytes; rounded up
        key=f"upload_files_{number}_{'folder' if whole else 'files'}",
    )
    if not uploads:
        return None
    files = [(file.name, file.getvalue()) for file in uploads]
    drop = of_folder(files) if whole else of_files(files)
    if drop.left_out:
        st.caption(escaped(unread_sentence(drop.left_out)))
    return drop


def _add_button(drop: Drop) -> bool:
    return st.button(f"Add {counted(drop.count, 'file')}", type="primary", key="upload_go")


def _destination(workbench: Workbench, sources: Sequence[Source], drop: Drop) -> None:
    titles = {source.id: source.title for source in sources}
    projects = {project.id: project.title for project in workbench.projects.list()}
    preferred = address.get("project") if address.get("project") in projects else ""
    first, second, third, fourth = st.columns([3, 2, 2, 3])
    with first:
        source = st.selectbox(
            "Into source", list(titles), index=None, format_func=labelled(titles),
            accept_new_options=True, placeholder=f"{drop.title}, or type a new name", key="upload_source",
        )  # fmt: skip
    existing = source in titles
    with second:
        project = st.selectbox(
            "Project", ["", *projects], format_func=labelled(projects, "No project: found in every scope"),
            index=["", *projects].index(preferred), disabled=existing, key="upload_project",
        )  # fmt: skip
    folders = [folder.name for folder in workbench.projects.folders(project)] if project and not existing else []
    with third:
        folder = st.selectbox(
            "Folder", ["", *folders], format_func=lambda name: name or "None", disabled=not folders, key="upload_folder"
        )
    with fourth:
        tags = st.multiselect(
            "Tags", list(workbench.sources.tags()), accept_new_options=True, placeholder="None", key="upload_tags"
        )
    if _add_button(drop):
        _start(workbench, drop, source or drop.title, None if existing else project or None, folder or None, tags)


def _start(
    workbench: Workbench, drop: Drop, source: str, project: str | None, folder: str | None, tags: Sequence[str]
) -> None:
    try:
        start_upload(
            workbench,
            drop.files,
            source=source,
            project=project,
            folder=folder if project else None,
            tags=tags,
            index=address.get("index") or None,
            left_out=drop.left_out,
        )
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    st.session_state[_NUMBER] += 1
    st.rerun()
