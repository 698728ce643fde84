"""The Crawl page: start, preview, watch and repeat crawls of websites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.crawl.job import SAID, STATES, job_view
from workbench.app.state import address
from workbench.app.state.shared import OPENING
from workbench.app.widgets.looks import escaped, labelled
from workbench.app.widgets.notices import leave_warning, show_notice
from workbench.app.widgets.table import Column, moment, table
from workbench.errors import NotFound, WorkbenchError
from workbench.formatting import counted, size_text
from workbench.types import as_number, as_whole

if TYPE_CHECKING:
    from workbench.crawling.preview import DryRun, RefusedAddress, TextSample, WantedPage
    from workbench.services.crawls import CrawlJob
    from workbench.workbench import Workbench

# The form of a new crawl, and its preview

WITHIN = {"path": "Folder of the start page", "host": "Host", "domain": "Host and subdomains"}
BROWSER = {"auto": "If a page is empty without it", "always": "Always", "never": "Never"}
GONE = {"remove": "Delete their documents", "keep": "Keep, marked as removed"}
DEEPEST = 25  # links from the start page, by default
_SEEN = "crawl_dry_run"
SAMPLE = 1_500  # characters of a sample text


@dataclass(frozen=True, slots=True)
class Target:
    """Where the pages are stored: an existing source, or a new one with its project, folder and tags."""

    source: str | None
    project: str | None
    folder: str | None
    tags: tuple[str, ...]


def start_form(wb: Workbench) -> None:
    """Show the form, and below it the result of a preview."""
    with st.container(border=True, key="crawl_start"):
        url = st.text_input("Start page", key="crawl_url", placeholder="https://docs.example.com/guide/").strip()
        options = _reach()
        target = _target(wb)
        with st.expander("More options"):
            options |= _manners()
        with st.container(horizontal=True, vertical_alignment="center"):
            preview = st.button("Preview", key="crawl_look")
            go = st.button("Start crawl", key="crawl_go", type="primary")
            st.caption("Preview fetches a few pages without storing them.")
    if (preview or go) and not url:
        st.error("Enter a start page.")
    elif preview:
        _look(wb, url, options)
    elif go:
        _start(wb, url, target, options)
    shown = st.session_state.get(_SEEN)
    if shown is not None and shown["asked"] == url:
        show_dry_run(shown)


def _reach() -> dict[str, Any]:
    """Show the limits of the crawl."""
    first, second, third, fourth = st.columns([2, 2, 2, 3], vertical_alignment="bottom")
    with first, st.container(height=40, border=False, vertical_alignment="center"):
        recursive = st.toggle("Follow links", value=True, key="crawl_recursive")
    with second:
        most = st.number_input("Max pages", 1, 100_000, 200, key="crawl_most", disabled=not recursive)
    with third:
        depth = st.number_input(
            "Max depth", 1, 100, DEEPEST, key="crawl_depth", disabled=not recursive,
            help="Maximum number of links from the start page.",
        )  # fmt: skip
    with fourth:
        within = st.selectbox("Stay within", list(WITHIN), format_func=WITHIN.__getitem__, key="crawl_within")
    return {"recursive": recursive, "max_pages": int(most), "max_depth": int(depth), "within": within}


def _target(wb: Workbench) -> Target:
    """Show the destination; project, folder and tags apply to a new source."""
    titles = [source.title for source in wb.sources.list(source_type="crawl")]
    projects = {project.id: project.title for project in wb.projects.list()}
    first, second, third, fourth = st.columns([3, 2, 2, 3])
    with first:
        source = st.selectbox(
            "Into source", titles, index=None, accept_new_options=True, key="crawl_source",
            placeholder="New source, or enter a name",
        )  # fmt: skip
    old = source in titles
    with second:
        project = st.selectbox(
            "Project", ["", *projects], format_func=labelled(projects, "No project"), disabled=old, key="crawl_project"
        )
    folders = [folder.name for folder in wb.projects.folders(project)] if project and not old else []
    with third:
        folder = st.selectbox(
            "Folder", ["", *folders], format_func=lambda name: name or "None", disabled=not folders, key="crawl_folder"
        )
    with fourth:
        tags = st.multiselect(
            "Tags", list(wb.sources.tags()), accept_new_options=True, placeholder="None", key="crawl_tags",
            disabled=old,
        )  # fmt: skip
    if old:
        return Target(source, None, None, ())
    return Target(source, project or None, (folder or None) if project else None, tuple(tags))


def _manners() -> dict[str, Any]:
    """Show URL filters, rendering and rate limits."""
    left, right = st.columns(2)
    with left:
        include = st.text_area("Include URLs containing (one per line)", key="crawl_include")
        browser = st.selectbox("Render with a browser", list(BROWSER), format_func=BROWSER.__getitem__)
        rate = st.number_input(
            "Rate limit per host", 0.0, 100.0, None, step=0.5, format="%g", key="crawl_rate",
            placeholder="Automatic", help="Requests per second. A crawl delay in robots.txt is also respected.",
        )  # fmt: skip
    with right:
        exclude = st.text_area("Exclude URLs containing (one per line)", key="crawl_exclude")
        gone = st.selectbox("Deleted pages", list(GONE), format_func=GONE.__getitem__)
        at_once = st.number_input("Concurrent requests", 1, 32, 8, key="crawl_concurrency")
        refresh = st.checkbox("Fetch every page, even if unchanged", key="crawl_refresh")
        accept = st.checkbox("Delete documents even if more than 20% would be deleted", key="crawl_accept")
    return {
        "include": _lines(include),
        "exclude": _lines(exclude),
        "browser": browser,
        "gone": gone,
        "refresh": refresh,
        "accept_removals": accept,
        "concurrency": int(at_once),
    } | ({"rate": rate} if rate else {})


def _look(wb: Workbench, url: str, options: Mapping[str, Any]) -> None:
    try:
        with st.spinner("Loading preview…"):
            st.session_state[_SEEN] = wb.crawls.dry_run(url, **options) | {"asked": url}
    except WorkbenchError as error:
        st.session_state.pop(_SEEN, None)
        st.error(escaped(str(error)))


def _start(wb: Workbench, url: str, target: Target, options: Mapping[str, Any]) -> None:
    try:
        job = wb.crawls.start(
            url, source=target.source, project=target.project, folder=target.folder, tags=target.tags, **options
        )
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    st.session_state.pop(_SEEN, None)
    address.put(job=job.id)
    st.rerun()


def show_dry_run(report: DryRun) -> None:
    """Show which pages a crawl would fetch or skip, sample texts, and an estimate."""
    estimate = report["estimate"]
    pages, passages = as_whole(estimate["pages"]), as_whole(estimate["passages"])
    least = "at least " if estimate["at_least"] else ""
    st.subheader(f"This crawl would fetch {least}{counted(pages, 'page')}", anchor=False)
    st.caption(
        f"About {max(1, round(as_number(estimate['seconds']))):,} s, "
        f"{size_text(as_whole(estimate['text_bytes']))} of text, {passages:,} passages. Nothing was stored."
    )
    names = ["Samples", f"To fetch ({len(report['would_fetch'])})", f"Not fetched ({len(report['would_not_fetch'])})"]
    samples, wanted, refused = st.tabs(names)
    with samples:
        _samples(report["samples"])
    with wanted:
        columns = (Column("url", "URL"), Column("via", "Found by"), Column("depth", "Depth", "number"))
        table("dry_wanted", columns, _rows(report["would_fetch"]), label="Pages to fetch", noun="pages")
    with refused:
        columns = (Column("url", "URL"), Column("reason", "Reason"))
        rows = _rows([*report["would_not_fetch"], *report["failed"]])
        table("dry_refused", columns, rows, label="Not fetched", noun="pages", empty="No skipped pages.")


def _samples(samples: Sequence[TextSample]) -> None:
    for sample in samples:
        st.markdown(f"**{escaped(sample['title'] or sample['url'])}** · {sample['characters']:,} characters")
        st.code(sample["text"][:SAMPLE], language=None, wrap_lines=True, height=220)


def _rows(entries: Sequence[WantedPage | RefusedAddress]) -> list[dict[str, object]]:
    return [{"id": entry["url"], "name": entry["url"], "cells": dict(entry)} for entry in entries]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


SHOWN = 100  # crawls in the history
COLUMNS = (
    Column("url", "Start URL"),
    Column("status", "Status", "state"),
    Column("done", "Pages done", "number"),
    Column("failed", "Failed", "number"),
    Column("added", "Added", "number"),
    Column("changed", "Changed", "number"),
    Column("removed", "Removed", "number"),
    Column("held", "Pending removals", "number"),
    Column("began", "Started", "shown"),
)
_STATES = STATES | {
    "running": "busy", "completed": "done", "completed_with_errors": "failed", "failed": "failed",
}  # fmt: skip


def page() -> None:
    """Show the crawl that the URL names, or else the form and the history."""
    wb = OPENING.workbench
    st.title("Crawl", anchor=False)
    show_notice()
    job_id = address.get("job")
    if job_id:
        try:
            job_view(wb, job_id)
        except NotFound as error:
            leave_warning(str(error))
            address.put(job=None)
            st.rerun()
        return
    start_form(wb)
    _history(wb)


def _history(wb: Workbench) -> None:
    jobs = wb.crawls.list(limit=SHOWN)
    st.header("Crawl history", anchor=False)
    chosen = table(
        "crawls",
        COLUMNS,
        [row_of(job) for job in jobs],
        label="Crawls",
        noun="crawls",
        empty="No crawls yet. Enter a start page above; Preview shows which pages it would fetch.",
        opens=True,
        filters=len(jobs) > 8,
    )
    if chosen.opened:
        address.put(job=chosen.opened)
        st.rerun()


def row_of(job: CrawlJob) -> dict[str, object]:
    """Return a crawl as a row of the history."""
    return {
        "id": job.id,
        "name": job.url,
        "cells": {
            "url": job.url,
            "status": {"state": _STATES.get(job.status, "waiting"), "text": SAID[job.status]},
            "done": job.pages_done,
            "failed": job.pages_failed,
            "added": job.report["added"],
            "changed": job.report["changed"],
            "removed": job.report["removed"],
            "held": job.outcomes["held"],
            "began": moment(job.created_at),
        },
    }
