"""The part of the Library where files come in: the drop zone and where they go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app import address
from workbench.app.labels import counted, escaped, labelled
from workbench.app.uploads import Files, of_folder, start_upload
from workbench.errors import WorkbenchError
from workbench.services.knowledge import UPLOADS
from workbench.types import Source

if TYPE_CHECKING:
    from workbench.workbench import Workbench

FILES_LABEL = "Drop files here: PDF, Markdown, text, HTML, Word, PowerPoint, Excel, EPUB, CSV, JSON, notebooks, code"
FOLDER_LABEL = "Drop a folder here; everything in it that can be read is added, whatever lies how deep"
_NUMBER = "upload_number"  # a new key empties the drop zone once its files are on their way


def upload_area(workbench: Workbench, sources: Sequence[Source]) -> None:
    """Show the drop zone, and once files are in it, where they are to go."""
    number = st.session_state.setdefault(_NUMBER, 0)
    with st.container(border=True, key="upload"):
        whole = st.segmented_control(
            "What to add", ["Files", "A folder"], default="Files", required=True, key="upload_kind",
            label_visibility="collapsed",
        ) == "A folder"  # fmt: skip
        given = st.file_uploader(
            FOLDER_LABEL if whole else FILES_LABEL,
            accept_multiple_files="directory" if whole else True,
            key=f"upload_files_{number}_{'folder' if whole else 'files'}",
        )
        if not given:
            return
        title, files = "", [(file.name, file.getvalue()) for file in given]
        if whole:
            title, files = of_folder(files)
            if len(files) < len(given):
                st.caption(f"{len(given) - len(files):,} of {len(given):,} left out: hidden, or no kind that is read.")
        if files:
            _destination(workbench, sources, files, title or UPLOADS)


def _destination(workbench: Workbench, sources: Sequence[Source], files: Files, title: str) -> None:
    titles = {source.id: source.title for source in sources}
    projects = {project.id: project.title for project in workbench.projects.list()}
    preferred = address.get("project") if address.get("project") in projects else ""
    first, second, third, fourth = st.columns([3, 2, 2, 3])
    with first:
        source = st.selectbox(
            "Into source", list(titles), index=None, format_func=labelled(titles),
            accept_new_options=True, placeholder=f"{title}, or type a new name", key="upload_source",
        )  # fmt: skip
    existing = source in titles
    with second:
        project = st.selectbox(
            "Project", ["", *projects], format_func=labelled(projects, "None: found everywhere"),
            index=["", *projects].index(preferred), disabled=existing, key="upload_project",
        )  # fmt: skip
    folders = [folder.name for folder in workbench.projects.folders(project)] if project and not existing else []
    with third:
        folder = st.selectbox(
            "Folder", ["", *folders], format_func=lambda name: name or "None", disabled=not folders, key="upload_folder"
        )
    with fourth:
        tags = st.multiselect(
            "Tags", list(workbench.knowledge.tags()), accept_new_options=True, placeholder="None", key="upload_tags"
        )
    if st.button(f"Add {counted(len(files), 'file')}", type="primary", key="upload_go"):
        _start(workbench, files, source or title, None if existing else project or None, folder or None, tags)


def _start(
    workbench: Workbench, files: Files, source: str, project: str | None, folder: str | None, tags: Sequence[str]
) -> None:
    try:
        start_upload(
            workbench,
            files,
            source=source,
            project=project,
            folder=folder if project else None,
            tags=tags,
            index=address.get("index") or None,
        )
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    st.session_state[_NUMBER] += 1
    st.rerun()
