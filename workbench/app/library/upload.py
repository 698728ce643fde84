"""The upload area of the Library: the drop zone and the destination of the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.state import address
from workbench.app.widgets.looks import describe_unsupported, escape_markdown, make_label_function
from workbench.errors import UnreadableDocument, WorkbenchError
from workbench.formatting import count_text
from workbench.ingestion.readers.formats import MAX_BYTES, list_format_titles
from workbench.services.sources import UPLOADS_TITLE, LocationNames
from workbench.types import Source

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# Sorting and queueing uploaded files

Files = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class DroppedFiles:
    """Dropped files, sorted.

    Attributes:
        files: Name and content of the files to add; an archive is one file.
        title: Default title of a new source for them.
        count: Number of documents in them.
        left_out: Names of the files of unsupported types.
    """

    files: Files
    title: str
    count: int
    left_out: tuple[str, ...] = ()


def sort_files(files: Files) -> DroppedFiles:
    """Sort dropped files; an archive counts as its readable files. A damaged one is rejected when it is added."""
    from workbench.ingestion.incoming import is_zip, name_below
    from workbench.ingestion.readers import is_wanted

    archives = {name: _inspect_archive(data) for name, data in files if is_zip(name)}
    others = [name for name, _ in files if name not in archives and not is_wanted(name)]
    others += [name_below(archive, name) for archive, (_, unread) in archives.items() for name in unread]
    kept = [(name, data) for name, data in files if (archives[name][0] if name in archives else is_wanted(name))]
    count = sum(archives[name][0] if name in archives else 1 for name, _ in kept)
    title = PurePath(kept[0][0]).stem if len(kept) == 1 and kept[0][0] in archives else UPLOADS_TITLE
    return DroppedFiles(kept, title, count, tuple(others))


def _inspect_archive(data: bytes) -> tuple[int, list[str]]:
    """Return the number of readable files in an archive and the names of the others; a damaged one counts as 1."""
    from workbench.ingestion.incoming import list_zip_members

    try:
        members, others = list_zip_members(data)
    except UnreadableDocument:
        return 1, []
    return len(members) if members or others else 1, others


def sort_folder(files: Files) -> DroppedFiles:
    """Sort the files of an uploaded folder; hidden ones are ignored.

    Browsers name them "folder/below/a.md". The folder's own name is removed, so that documents keep their identity if
    it is renamed, as with ``workbench ingest``.
    """
    from workbench.ingestion.readers import is_skipped, is_wanted

    parted = [(name.partition("/"), data) for name, data in files]
    title = next((top for (top, separator, _), _ in parted if separator), "")
    inside = [(rest if separator else top, data) for (top, separator, rest), data in parted]
    kept = [(name, data) for name, data in inside if is_wanted(name)]
    others = [name for name, _ in inside if not is_wanted(name) and not is_skipped(name)]
    return DroppedFiles(kept, title or UPLOADS_TITLE, len(kept), tuple(others))


def start_upload(
    wb: Workbench,
    files: Files,
    *,
    source: str,
    project: str | None = None,
    folder: str | None = None,
    tags: Sequence[str] = (),
    index: str | None = None,
    left_out: Sequence[str] = (),
) -> str:
    """Queue files for a source and return the job's id.

    Args:
        wb: The workbench.
        files: Name and content of each file.
        source: Id or title of an existing source, or title of a new one.
        project: Project of a new source.
        folder: Folder of a new source.
        tags: Tags of the source.
        index: Name of the index; by default the default one.
        left_out: Names of files of unsupported types; those in archives are added.

    Raises:
        WorkbenchError: The project or folder does not exist, or unpacking an archive failed.
    """
    from workbench.ingestion.incoming import unpack_uploads

    uploads = unpack_uploads(files)
    place = LocationNames(project=project, folder=folder)
    target = wb.sources.ensure(source, **place, tags=tags, for_ingest=True)
    title = f"Adding {count_text(len(uploads.files), 'file')} to {target.title}"
    job = wb.jobs.enqueue_ingest(
        files=uploads.files,
        source=source,
        **place,
        tags=tags,
        index=index,
        title=title,
        source_id=target.id,
        left_out=[*dict.fromkeys([*left_out, *uploads.left_out])],
    )
    return job.id


FILES_LABEL = f"Drop files or a zip archive here: {', '.join(list_format_titles())}"
FOLDER_LABEL = "Drop a folder here; subfolders are included"
_DROP_ZONE_KEY = "upload_number"  # a new key empties the drop zone after its files are queued


def show_upload_area(wb: Workbench, sources: Sequence[Source]) -> None:
    """Show the drop zone, and the destination once it has files."""
    with st.container(border=True, key="upload"):
        drop = _show_drop_zone()
        if drop is not None and drop.files:
            _show_destination(wb, sources, drop)


def ask_files(wb: Workbench, source: Source) -> None:
    """Ask for files to add to a source."""

    @st.dialog(f"Add files to {escape_markdown(source.title, 80)}")
    def ask() -> None:
        drop = _show_drop_zone()
        if drop is not None and drop.files and _show_add_button(drop):
            _start_and_rerun(wb, drop, source.id, None, None, ())

    ask()


def _show_drop_zone() -> DroppedFiles | None:
    """Show the drop zone and the files of unsupported types; return None while it is empty."""
    number = st.session_state.setdefault(_DROP_ZONE_KEY, 0)
    whole = st.segmented_control(
        "What to add", ["Files", "Folder"], default="Files", required=True, key="upload_kind",
        label_visibility="collapsed",
    ) == "Folder"  # fmt: skip
    uploads = st.file_uploader(
        FOLDER_LABEL if whole else FILES_LABEL,
        accept_multiple_files="directory" if whole else True,
        max_upload_size=-(-MAX_BYTES // 10**6),  # in MB, rounded up
        key=f"upload_files_{number}_{'folder' if whole else 'files'}",
    )
    if not uploads:
        return None
    files = [(file.name, file.getvalue()) for file in uploads]
    drop = sort_folder(files) if whole else sort_files(files)
    if drop.left_out:
        st.caption(escape_markdown(describe_unsupported(drop.left_out)))
    return drop


def _show_add_button(drop: DroppedFiles) -> bool:
    return st.button(f"Add {count_text(drop.count, 'file')}", type="primary", key="upload_go")


def _show_destination(wb: Workbench, sources: Sequence[Source], drop: DroppedFiles) -> None:
    titles = {source.id: source.title for source in sources}
    projects = {project.id: project.title for project in wb.projects.list()}
    preferred = address.get("project") if address.get("project") in projects else ""
    first, second, third, fourth = st.columns([3, 2, 2, 3])
    with first:
        source = st.selectbox(
            "Into source", list(titles), index=None, format_func=make_label_function(titles),
            accept_new_options=True, placeholder=f"{drop.title}, or enter a new name", key="upload_source",
        )  # fmt: skip
    existing = source in titles
    with second:
        project = st.selectbox(
            "Project", ["", *projects], format_func=make_label_function(projects,
            "No project (visible in every scope)"),
            index=["", *projects].index(preferred), disabled=existing, key="upload_project",
        )  # fmt: skip
    folders = [folder.name for folder in wb.projects.folders(project)] if project and not existing else []
    with third:
        folder = st.selectbox(
            "Folder", ["", *folders], format_func=lambda name: name or "None", disabled=not folders, key="upload_folder"
        )
    with fourth:
        tags = st.multiselect(
            "Tags", list(wb.sources.tags()), accept_new_options=True, placeholder="None", key="upload_tags"
        )
    if _show_add_button(drop):
        _start_and_rerun(wb, drop, source or drop.title, None if existing else project or None, folder or None, tags)


def _start_and_rerun(
    wb: Workbench, drop: DroppedFiles, source: str, project: str | None, folder: str | None, tags: Sequence[str]
) -> None:
    try:
        start_upload(
            wb,
            drop.files,
            source=source,
            project=project,
            folder=folder if project else None,
            tags=tags,
            index=address.get("index") or None,
            left_out=drop.left_out,
        )
    except WorkbenchError as error:
        st.error(escape_markdown(str(error)))
        return
    st.session_state[_DROP_ZONE_KEY] += 1
    st.rerun()
