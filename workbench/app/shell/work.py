"""Jobs in the app: the buttons and the upload area that add documents, and the tray."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from workbench.app.shell.navigation import PageEntry
from workbench.app.state import address
from workbench.app.state.shared import OPENING, name_tab, note_change
from workbench.app.widgets.looks import describe_unsupported, escape_markdown, make_label_function
from workbench.app.widgets.notices import report_errors
from workbench.app.widgets.rows import RowCell, show_rows
from workbench.errors import StorageError, UnreadableDocument
from workbench.formatting import count_text
from workbench.ingestion.readers.formats import MAX_BYTES, list_format_titles
from workbench.services.sources import UPLOADS_TITLE, LocationNames
from workbench.storage.jobs import SETTLED_STATES, FileTally, Job, JobFile
from workbench.types import MAX_NOTES_SHOWN, JsonValue, Source, as_texts, progress_text, time_left_text

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# Loading the sample as a job

SAMPLE_JOB_TITLE = "Loading the sample"


def start_sample(wb: Workbench) -> str:
    """Queue the sample articles, unless they are queued already, and return the job's id."""
    from workbench.services.sample_corpus import SAMPLE_TAGS, SAMPLE_TITLE, read_sample_files

    for job in wb.jobs.in_view():
        if job.title == SAMPLE_JOB_TITLE and not job.is_finished:
            return job.id
    files = read_sample_files()
    return wb.jobs.enqueue_ingest(files=files, source=SAMPLE_TITLE, tags=SAMPLE_TAGS, title=SAMPLE_JOB_TITLE).id


@dataclass(frozen=True, slots=True)
class JobView:
    """A job at a point in time."""

    job: Job  # the job
    tally: FileTally  # counts of its files
    moment: datetime  # when the job was read

    @property
    def is_running(self) -> bool:
        """True until it has finished or was cancelled."""
        return not self.job.is_finished


def list_job_views() -> dict[str, JobView]:
    """Return the jobs in view by id, oldest first: running ones, and finished ones until they are dismissed.

    Raises:
        StorageError: The database is not available.
    """
    jobs, moment = OPENING.workbench.jobs, datetime.now(UTC)
    return {
        job.id: JobView(job, jobs.tally(job.id) if job.kind == "ingest" else FileTally(), moment)
        for job in jobs.in_view()
    }


def read_job_view(job_id: str) -> JobView:
    """Return a job, however many others are in view. Raises NotFound."""
    return JobView(OPENING.workbench.jobs.get(job_id), FileTally(), datetime.now(UTC))


# Buttons to add documents

START_PAGES = {
    "library": ("Add files", ":material/upload_file:"),
    "crawl": ("Crawl a website", ":material/travel_explore:"),
}


def show_add_button(page: str, *, is_chief: bool = False) -> None:
    """Show the button that opens a page for adding documents."""
    label, icon = START_PAGES[page]
    if st.button(label, icon=icon, type="primary" if is_chief else "secondary", key=f"to_{page}"):
        address.switch_page(page)


def show_sample_button(wb: Workbench) -> None:
    """Show the button that loads the sample; it is disabled while jobs are running."""
    loading = any(work.is_running for work in list_job_views().values())
    why = "Available when the running jobs have finished." if loading else None
    if st.button("Load sample", icon=":material/auto_stories:", disabled=loading, help=why, key="to_sample"):
        start_sample(wb)
        st.rerun()


def show_start_buttons(wb: Workbench, *pages: str) -> None:
    """Show a row of buttons: links to these pages, with the one for files as primary, and loading the sample."""
    with st.container(horizontal=True, key="ways_on"):
        for page in pages:
            show_add_button(page, is_chief=page == "library")
        show_sample_button(wb)


NO_PROJECT = "None (all scopes)"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where new documents are stored: a source (None for a new one without a title), and what a new one gets."""

    source: str | None
    project: str | None = None
    folder: str | None = None
    tags: tuple[str, ...] = ()


def choose_destination(
    wb: Workbench, sources: Mapping[str, str], key: str, placeholder: str, *, project: str = "", adds_tags: bool = False
) -> Destination:
    """Ask for the source of new documents.

    Args:
        wb: The workbench.
        sources: Titles of the existing sources.
        key: Prefix of the widgets' keys.
        placeholder: Text shown while no source is chosen.
        project: Project that is preselected, if it exists.
        adds_tags: True if the tags are also added to an existing source.
    """
    projects = {"": NO_PROJECT} | {project.id: project.title for project in wb.projects.list()}
    first, second, third, fourth = st.columns([3, 2, 2, 3])
    source = first.selectbox(
        "Into source", list(sources), index=None, format_func=make_label_function(sources), key=f"{key}_source",
        accept_new_options=True, placeholder=placeholder,
    )  # fmt: skip
    is_old = source in sources
    chosen = second.selectbox(
        "Project", list(projects), list(projects).index(project if project in projects else ""), key=f"{key}_project",
        format_func=make_label_function(projects), disabled=is_old, accept_new_options=True,
        help="Select a project, or enter the name of a new one",
    )  # fmt: skip
    is_known = bool(chosen) and chosen in projects and not is_old
    folders = [folder.name for folder in wb.projects.folders(chosen)] if is_known else []
    third.selectbox(
        "Folder", ["", *folders], key=f"{key}_folder", format_func=lambda name: name or "None", disabled=not folders
    )
    fourth.multiselect(
        "Tags", list(wb.sources.tags()), key=f"{key}_tags", accept_new_options=True, placeholder="None",
        disabled=is_old and not adds_tags,
    )  # fmt: skip
    return read_destination(sources, key, adds_tags=adds_tags)


def read_destination(sources: Mapping[str, str], key: str, *, adds_tags: bool = False) -> Destination:
    """Return what ``choose_destination`` asks for, in a callback as of the click."""
    source, project, folder, tags = (
        st.session_state[f"{key}_{name}"] for name in ("source", "project", "folder", "tags")
    )
    if source in sources:
        return Destination(source, tags=tuple(tags) if adds_tags else ())
    return Destination(source, project or None, folder if project and folder else None, tuple(tags))


def create_project(wb: Workbench, target: Destination) -> Destination:
    """Return the destination with the id of its project, which is created if it is a new name.

    Raises:
        InvalidInput: The name is not valid.
    """
    if not target.project or target.project in {project.id for project in wb.projects.list()}:
        return target
    named = next((one for one in wb.projects.list() if one.title == target.project), None)
    return replace(target, project=(named or wb.projects.create(target.project)).id)


# Sorting and queueing uploaded files

Files = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class DroppedFiles:
    """Dropped files, sorted by what to do with them."""

    files: Files  # name and content of the files to add; an archive is one file
    title: str  # default title of a new source for them
    count: int  # number of documents in them
    left_out: tuple[str, ...] = ()  # names of the files of unsupported types


def sort_files(files: Files) -> DroppedFiles:
    """Sort dropped files; an archive counts as its readable files. A damaged one is rejected when it is added."""
    from workbench.ingestion.incoming import is_zip, name_below
    from workbench.ingestion.readers.formats import is_wanted

    archives = {name: _inspect_archive(data) for name, data in files if is_zip(name)}
    others = [name for name, _ in files if name not in archives and not is_wanted(name)]
    others += [name_below(archive, name) for archive, (_, unread) in archives.items() for name in unread]
    kept = [(name, data) for name, data in files if (archives[name][0] if name in archives else is_wanted(name))]
    count = sum(archives[name][0] if name in archives else 1 for name, _ in kept)
    title = PurePath(kept[0][0]).stem if len(kept) == 1 and kept[0][0] in archives else UPLOADS_TITLE
    return DroppedFiles(kept, title, count, tuple(others))


def _inspect_archive(data: bytes) -> tuple[int, list[str]]:
    """Return an archive's number of readable files, and the names of the others; a damaged archive counts as 1."""
    from workbench.ingestion.incoming import list_zip_members
    from workbench.ingestion.readers.formats import is_skipped

    try:
        members, others = list_zip_members(data)
    except UnreadableDocument:
        return 1, []
    return len(members) if members or others else 1, [name for name in others if not is_skipped(name)]


def sort_folder(files: Files) -> DroppedFiles:
    """Sort the files of an uploaded folder; hidden ones are ignored.

    Browsers name them "folder/below/a.md". The folder's own name is removed, so that documents keep their identity if
    it is renamed, as with ``workbench ingest``.
    """
    from workbench.ingestion.readers.formats import is_skipped, is_wanted

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
        source: Id or title of an existing source, or the title of a new one.
        project: Project of a new source.
        folder: Folder of a new source.
        tags: Tags of the source.
        index: Name of the index; by default the default one.
        left_out: Names of files with unsupported types; those found in archives are appended.

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

    number = st.session_state.setdefault(_DROP_ZONE_KEY, 0)

    @st.dialog(f"Add files to {escape_markdown(source.title, 80)}")
    def ask() -> None:
        if st.session_state[_DROP_ZONE_KEY] != number:  # added
            st.rerun()
        drop = _show_drop_zone()
        if drop is not None and drop.files:
            _show_add_button(wb, drop, lambda: Destination(source.id))

    ask()


def _show_drop_zone() -> DroppedFiles | None:
    """Show the drop zone and the files of unsupported types; return None while it is empty."""
    whole = st.segmented_control(
        "What to add", ["Files", "Folder"], default="Files", required=True, key="upload_kind",
        label_visibility="collapsed",
    ) == "Folder"  # fmt: skip
    st.file_uploader(
        FOLDER_LABEL if whole else FILES_LABEL,
        accept_multiple_files="directory" if whole else True,
        max_upload_size=-(-MAX_BYTES // 10**6),  # in MB, rounded up
        key=_name_drop_zone(is_folder=whole),
    )
    drop = _read_drop_zone()
    if drop is not None and drop.left_out:
        st.caption(escape_markdown(describe_unsupported(drop.left_out)))
    return drop


def _name_drop_zone(*, is_folder: bool) -> str:
    return f"upload_files_{st.session_state.setdefault(_DROP_ZONE_KEY, 0)}_{'folder' if is_folder else 'files'}"


def _read_drop_zone() -> DroppedFiles | None:
    is_folder = st.session_state["upload_kind"] == "Folder"
    uploads = st.session_state.get(_name_drop_zone(is_folder=is_folder))  # none at the second of two clicks
    files = [(file.name, file.getvalue()) for file in uploads or ()]
    return (sort_folder(files) if is_folder else sort_files(files)) if files else None


def _show_destination(wb: Workbench, sources: Sequence[Source], drop: DroppedFiles) -> None:
    titles = {source.id: source.title for source in sources}
    placeholder = f"{drop.title}, or enter a new name"
    choose_destination(wb, titles, "upload", placeholder, project=address.get("project"), adds_tags=True)
    _show_add_button(wb, drop, lambda: read_destination(titles, "upload", adds_tags=True))


def _show_add_button(wb: Workbench, drop: DroppedFiles, read: Callable[[], Destination]) -> None:
    """Show the button that adds the files; a callback does it before the page is drawn, which a reload would stop."""
    label = f"Add {count_text(drop.count, 'file')}"
    st.button(label, type="primary", key="upload_go", on_click=_start_upload, args=(wb, read))


def _start_upload(wb: Workbench, read: Callable[[], Destination]) -> None:
    drop = _read_drop_zone()
    if drop is None:
        return
    with report_errors(lambda text: st.toast(text, icon=":material/error:", duration="infinite")):
        target = create_project(wb, read())
        start_upload(
            wb,
            drop.files,
            source=target.source or drop.title,
            project=target.project,
            folder=target.folder,
            tags=target.tags,
            index=address.get("index") or None,
            left_out=drop.left_out,
        )
        st.session_state[_DROP_ZONE_KEY] += 1


# The tray of jobs

COMPLETED_SHOWN_S = 60.0  # seconds for which a completed job with notes or unsupported files stays in the tray
CLEAN_SHOWN_S = 15.0  # seconds for which any other completed job stays, as one line; a toast announces it too
BUSY_REFRESH_S, IDLE_REFRESH_S = 0.7, 2.0  # seconds between refreshes with and without running jobs
MIN_ROWS_SCROLLED, MIN_ROWS_FILTERED = 3, 30  # rows from which a list scrolls, and has a filter
LIST_HEIGHT_PX = 140  # pixels
STORED_OUTCOMES = ("added", "changed", "unchanged")  # outcomes of a file that is in its source
_RUNNING_KEY = "running_jobs"  # in the session: ids of the jobs that ran when the page was drawn last

TrayState = tuple[tuple[str, bool, bool], ...]  # of each job: id, is running, has stored files


def show_tray(page: PageEntry) -> None:
    """Show the tray; redraw the page when a job starts, stores its first files or ends."""
    works = list_job_views()
    done = "done" if _announce_completed(works) else ""
    name_tab(state=tab_state(works.values()) or done)
    drawn = _tray_state(_select_for_page(works, page))
    going_on = any(running for _, running, _ in drawn)
    st.fragment(_refresh_tray, run_every=BUSY_REFRESH_S if going_on else IDLE_REFRESH_S)(page, drawn, done)


def _announce_completed(works: Mapping[str, JobView]) -> bool:
    """Show a toast for each job that completed since the last run of the page; return whether there is one."""
    running: set[str] = st.session_state.get(_RUNNING_KEY, set())
    completed = [work for key, work in works.items() if key in running and work.job.status == "completed"]
    for work in completed:
        st.toast(f"Done: {escape_markdown(work.job.title, 120)}", icon=":material/check:", duration="long")
    st.session_state[_RUNNING_KEY] = {key for key, work in works.items() if work.is_running}
    return bool(completed)


def _select_for_page(works: Mapping[str, JobView], page: PageEntry) -> dict[str, JobView]:
    return {key: work for key, work in works.items() if work.job.kind not in page.jobs}


def tab_state(works: Iterable[JobView]) -> str:
    """Return the jobs' state for the tab's title: "failed", "stalled", "12%" of the slowest, or last "with errors"."""
    shown = [work for work in works if not _is_hidden(work)]
    if any(work.job.status == "failed" for work in shown):
        return "failed"
    running = [work.job for work in shown if work.is_running]
    if any(job.stalled for job in running):
        return "stalled"
    shares = [job.share for job in running if job.status == "running"]
    if shares:
        return f"{int(min(shares) * 100)}%" if min(shares) else "starting"
    return "queued" if running else "with errors" if any(_sort_key(work) == 0 for work in shown) else ""


def _tray_state(works: Mapping[str, JobView]) -> TrayState:
    return tuple((key, work.is_running, _has_stored_files(work)) for key, work in works.items())


def _has_stored_files(work: JobView) -> bool:
    """Return whether any of a job's files have been stored in their source."""
    return any(work.tally.files.get(state) for state in STORED_OUTCOMES)


def _refresh_tray(page: PageEntry, drawn: TrayState, done: str) -> None:
    try:
        works = list_job_views()
    except StorageError as error:
        st.error(escape_markdown(str(error)))
        return
    name_tab(state=tab_state(works.values()) or done)
    works = _select_for_page(works, page)
    if _tray_state(works) != drawn:
        note_change()
        st.rerun()
    shown = select_for_tray(works)
    if not shown:
        return
    is_plain = all(work.is_running or _is_clean(work) for work in shown.values())  # then its lines need no title
    with (
        st.container(key="tray"),
        st.container() if is_plain else st.expander(tray_title(shown.values()), expanded=True),
    ):
        for key, work in shown.items():
            with st.container(key=f"workbar_{key}"):
                show_job(key, work, detailed=page.lists_files)


def select_for_tray(works: Mapping[str, JobView]) -> dict[str, JobView]:
    """Return the jobs to show: failed, running, then finished ones, except those completed long ago."""
    unfolded = {key: work for key, work in works.items() if not _is_hidden(work)}
    return dict(sorted(unfolded.items(), key=lambda item: _sort_key(item[1])))


def _is_hidden(work: JobView) -> bool:
    ended = work.job.completed_at
    if work.job.status != "completed" or ended is None:
        return False
    shown_s = CLEAN_SHOWN_S if _is_clean(work) else COMPLETED_SHOWN_S
    return (work.moment - ended).total_seconds() > shown_s


def _is_clean(work: JobView) -> bool:
    """Return whether a job completed and has nothing to report but its counts."""
    return (
        work.job.status == "completed" and not work.job.parameters.get("left_out") and not work.job.result.get("notes")
    )


def _sort_key(work: JobView) -> int:
    if work.job.status in ("failed", "completed_with_errors"):
        return 0
    return 1 if work.is_running else 2


def tray_title(works: Iterable[JobView]) -> str:
    """Return the tray's title: "1 failed · 2 running · 1 completed"."""
    counts: dict[str, int] = {}
    for work in works:
        counts[work.job.state] = counts.get(work.job.state, 0) + 1
    return " · ".join(f"{count} {state}" for state, count in counts.items())


def show_job(key: str, work: JobView, detailed: bool = False) -> None:
    """Show a job in a line, with its progress, links and buttons; if detailed, also its files."""
    jobs = OPENING.workbench.jobs
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**{escape_markdown(work.job.title, 120)}** · {escape_markdown(describe_job(work), 200)}", width="stretch"
        )
        if work.job.source_id and _has_stored_files(work):
            show_source_links(work.job.source_id)
        if link := _result_link(work.job.result):
            st.html(link, width="content")
        if work.is_running:
            stopping = work.job.cancel_requested
            show_button("Cancel", f"stop_{key}", lambda: jobs.cancel(key), disabled=stopping)
        else:
            if work.job.status in ("cancelled", "failed", "completed_with_errors"):
                show_button(
                    "Retry failed" if work.job.status == "completed_with_errors" else "Resume",
                    f"resume_{key}",
                    lambda: jobs.resume(key),
                )
            show_button("Dismiss", f"away_{key}", lambda: jobs.put_away(key))
    if work.is_running:
        st.progress(work.job.share)
    if unread := as_texts(work.job.parameters.get("left_out")):
        st.html(f'<p class="wb-kind">{escape(describe_unsupported(unread))}</p>')
    for note in as_texts(work.job.result.get("notes"))[:MAX_NOTES_SHOWN]:
        st.html(f'<p class="wb-kind">{escape(note)}</p>')
    if work.job.error:
        st.html(f'<p class="wb-work-error" role="alert">{escape(work.job.error)}</p>')
    if detailed and work.tally.total and work.job.status != "completed":
        _show_files(key, work)


def show_source_links(source_id: str) -> None:
    """Show where to go from new documents: their source, and a question."""
    source = f'<a href="library?{scope_query(open=source_id)}">Open source</a>'
    st.html(f'{source} · <a href="./?{scope_query()}">Ask a question</a>', width="content")


def _result_link(result: Mapping[str, JsonValue]) -> str:
    """Return a link to the experiment or test set that a job made, or ""."""
    for name, parameter, label in (
        ("experiment", "experiment", "Open experiment"),
        ("test_set", "open", "Open test set"),
    ):
        if name in result:
            return f'<a href="evaluate?{escape(urlencode({parameter: result[name]}))}">{label}</a>'
    return ""


def scope_query(**others: str) -> str:
    """Return the query of a URL as HTML, with the current scope and index, and others."""
    scope = {name: address.get_all(name) for name in address.SCOPE_KEYS}
    return escape(urlencode({**scope, **others}, doseq=True))


def show_button(label: str, key: str, act: Callable[[], object], disabled: bool = False) -> None:
    """Show a button whose errors are toasts."""

    def handle_click() -> None:
        with report_errors(st.toast):
            act()

    st.button(label, key=key, type="tertiary", on_click=handle_click, disabled=disabled)


def _show_files(key: str, work: JobView) -> None:
    files = OPENING.workbench.jobs.files(key)
    rows: dict[str, Sequence[RowCell]] = {}
    for file in sorted(files, key=lambda file: file.state != "failed"):
        state, text = describe_file(file, work.is_running)
        rows[str(file.position)] = (file.name, {"state": state, "text": text})
    room = LIST_HEIGHT_PX if len(rows) > MIN_ROWS_SCROLLED else "content"
    with st.container(height=room, border=False, key=f"files_{key}"):
        filters = len(rows) > MIN_ROWS_FILTERED
        show_rows(f"rows_{key}", ("File", "Outcome"), rows, label=work.job.title, noun="files", filters=filters)
    if work.tally.total > len(files):
        st.caption(f"{len(files):,} of {work.tally.total:,} files: failed, in progress and latest ones.")


def describe_file(file: JobFile, running: bool) -> tuple[str, str]:
    """Return the state of a file for the table, and its outcome as text."""
    if file.state in ("added", "changed"):
        return "done", f"{file.state}, {count_text(file.passages, 'passage')}"
    if file.state == "failed":
        return "failed", file.error or "Could not be read."
    if file.state == "unchanged":
        return "same", "unchanged"
    if not running:
        return "waiting", "not added (cancelled)"
    return ("busy", "embedding") if file.state == "busy" else ("waiting", "waiting")


def describe_job(work: JobView) -> str:
    """Describe the state of a job in one line."""
    job = work.job
    if not work.is_running:
        detail = "" if job.error else _describe_counts(work) or job.message
        return job.state + (f": {detail}" if detail else "")
    if job.cancel_requested:
        return "cancelling; finished parts are kept"
    if job.stalled:
        return job.stalled
    if job.status == "queued" and not OPENING.workbench.settings.run_worker:
        return "waiting for a worker; start one with 'workbench worker'"
    parts = [job.message]
    if job.share:  # until then the message alone names the step that runs
        parts = [_describe_progress(work), time_left_text(job.seconds_left), job.message]
    return " · ".join(part for part in parts if part)


def _describe_counts(work: JobView) -> str:
    """Return the counts of file outcomes as text."""
    words = {state: state for state in SETTLED_STATES} | {"busy": "not added", "waiting": "not added"}
    counts: dict[str, int] = {}
    for state, word in words.items():
        counts[word] = counts.get(word, 0) + work.tally.files.get(state, 0)
    return ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)


def _describe_progress(work: JobView) -> str:
    if work.tally.total and f" of {work.tally.total:,} " not in work.job.message:  # several workers report the count
        return progress_text(work.job.share, work.tally.settled_files, work.tally.total)
    return f"{work.job.share:.0%}" if work.job.total else ""
