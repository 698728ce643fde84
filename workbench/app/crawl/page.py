"""The Crawl page: start, preview, watch and repeat crawls of websites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.crawl.job import OUTCOME_STATES, STATUS_TITLES, show_job
from workbench.app.state import address
from workbench.app.state.shared import OPENING
from workbench.app.widgets.looks import escape_markdown, make_label_function
from workbench.app.widgets.notices import show_notice, store_warning
from workbench.app.widgets.table import Column, make_time_cell, show_table
from workbench.errors import NotFound, WorkbenchError
from workbench.formatting import count_text, size_text
from workbench.types import as_integer, as_number

if TYPE_CHECKING:
    from workbench.crawling.preview import DryRun, RefusedAddress, TextSample, WantedPage
    from workbench.services.crawls import CrawlJob
    from workbench.workbench import Workbench

# The form of a new crawl, and its preview

WITHIN_TITLES = {"path": "Folder of the start page", "host": "Host", "domain": "Host and subdomains"}
BROWSER_TITLES = {"auto": "If a page is empty without it", "always": "Always", "never": "Never"}
GONE_TITLES = {"remove": "Delete their documents", "keep": "Keep, marked as removed"}
DEFAULT_MAX_DEPTH = 25  # links from the start page, by default
_PREVIEW_KEY = "crawl_dry_run"
MAX_SAMPLE_CHARS = 1_500  # characters of a sample text


@dataclass(frozen=True, slots=True)
class CrawlTarget:
    """Where the pages are stored: an existing source, or a new one with its project, folder and tags."""

    source: str | None
    project: str | None
    folder: str | None
    tags: tuple[str, ...]


def show_start_form(wb: Workbench) -> None:
    """Show the form, and below it the result of a preview."""
    with st.container(border=True, key="crawl_start"):
        url = st.text_input("Start page", key="crawl_url", placeholder="https://docs.example.com/guide/").strip()
        options = _show_limits()
        target = _show_target(wb)
        with st.expander("More options"):
            options |= _show_more_options()
        with st.container(horizontal=True, vertical_alignment="center"):
            preview = st.button("Preview", key="crawl_look")
            go = st.button("Start crawl", key="crawl_go", type="primary")
            st.caption("Preview fetches a few pages without storing them.")
    if (preview or go) and not url:
        st.error("Enter a start page.")
    elif preview:
        _run_preview(wb, url, options)
    elif go:
        _start_crawl(wb, url, target, options)
    shown = st.session_state.get(_PREVIEW_KEY)
    if shown is not None and shown["asked"] == url:
        show_dry_run(shown)


def _show_limits() -> dict[str, Any]:
    """Show the limits of the crawl."""
    first, second, third, fourth = st.columns([2, 2, 2, 3], vertical_alignment="bottom")
    with first, st.container(height=40, border=False, vertical_alignment="center"):
        recursive = st.toggle("Follow links", value=True, key="crawl_recursive")
    with second:
        most = st.number_input("Max pages", 1, 100_000, 200, key="crawl_most", disabled=not recursive)
    with third:
        depth = st.number_input(
            "Max depth", 1, 100, DEFAULT_MAX_DEPTH, key="crawl_depth", disabled=not recursive,
            help="Maximum number of links from the start page.",
        )  # fmt: skip
    with fourth:
        within = st.selectbox(
            "Stay within", list(WITHIN_TITLES), format_func=WITHIN_TITLES.__getitem__, key="crawl_within"
        )
    return {"recursive": recursive, "max_pages": int(most), "max_depth": int(depth), "within": within}


def _show_target(wb: Workbench) -> CrawlTarget:
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
            "Project",
            ["", *projects],
            format_func=make_label_function(projects, "No project"),
            disabled=old,
            key="crawl_project",
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
        return CrawlTarget(source, None, None, ())
    return CrawlTarget(source, project or None, (folder or None) if project else None, tuple(tags))


def _show_more_options() -> dict[str, Any]:
    """Show URL filters, rendering and rate limits."""
    left, right = st.columns(2)
    with left:
        include = st.text_area("Include URLs containing (one per line)", key="crawl_include")
        browser = st.selectbox("Render with a browser", list(BROWSER_TITLES), format_func=BROWSER_TITLES.__getitem__)
        rate = st.number_input(
            "Rate limit per host", 0.0, 100.0, None, step=0.5, format="%g", key="crawl_rate",
            placeholder="Automatic", help="Requests per second. A crawl delay in robots.txt is also respected.",
        )  # fmt: skip
    with right:
        exclude = st.text_area("Exclude URLs containing (one per line)", key="crawl_exclude")
        gone = st.selectbox("Deleted pages", list(GONE_TITLES), format_func=GONE_TITLES.__getitem__)
        at_once = st.number_input("Concurrent requests", 1, 32, 8, key="crawl_concurrency")
        refresh = st.checkbox("Fetch every page, even if unchanged", key="crawl_refresh")
        accept = st.checkbox("Delete documents even if more than 20% would be deleted", key="crawl_accept")
    return {
        "include": _split_lines(include),
        "exclude": _split_lines(exclude),
        "browser": browser,
        "gone": gone,
        "refresh": refresh,
        "accept_removals": accept,
        "concurrency": int(at_once),
    } | ({"rate": rate} if rate else {})


def _run_preview(wb: Workbench, url: str, options: Mapping[str, Any]) -> None:
    try:
        with st.spinner("Loading preview…"):
            st.session_state[_PREVIEW_KEY] = wb.crawls.dry_run(url, **options) | {"asked": url}
    except WorkbenchError as error:
        st.session_state.pop(_PREVIEW_KEY, None)
        st.error(escape_markdown(str(error)))


def _start_crawl(wb: Workbench, url: str, target: CrawlTarget, options: Mapping[str, Any]) -> None:
    try:
        job = wb.crawls.start(
            url, source=target.source, project=target.project, folder=target.folder, tags=target.tags, **options
        )
    except WorkbenchError as error:
        st.error(escape_markdown(str(error)))
        return
    st.session_state.pop(_PREVIEW_KEY, None)
    address.put(job=job.id)
    st.rerun()


def show_dry_run(report: DryRun) -> None:
    """Show which pages a crawl would fetch or skip, sample texts, and an estimate."""
    estimate = report["estimate"]
    pages, passages = as_integer(estimate["pages"]), as_integer(estimate["passages"])
    least = "at least " if estimate["at_least"] else ""
    st.subheader(f"This crawl would fetch {least}{count_text(pages, 'page')}", anchor=False)
    st.caption(
        f"About {max(1, round(as_number(estimate['seconds']))):,} s, "
        f"{size_text(as_integer(estimate['text_bytes']))} of text, {passages:,} passages. Nothing was stored."
    )
    names = [
        "Samples",
        f"To fetch ({len(report['would_fetch'])})",
        f"Not fetched ({sum(report['not_fetched'].values())})",
    ]
    samples, wanted, refused = st.tabs(names)
    with samples:
        _show_samples(report["samples"])
    with wanted:
        columns = (Column("url", "URL"), Column("via", "Found by"), Column("depth", "Depth", "number"))
        show_table("dry_wanted", columns, _make_rows(report["would_fetch"]), label="Pages to fetch", noun="pages")
    with refused:
        for reason, count in report["not_fetched"].items():
            st.markdown(f"{count:,} × {escape_markdown(reason)}")
        columns = (Column("url", "URL"), Column("reason", "Reason"))
        rows = _make_rows([*report["would_not_fetch"], *report["failed"]])
        show_table("dry_refused", columns, rows, label="Not fetched", noun="pages", empty="No skipped pages.")


def _show_samples(samples: Sequence[TextSample]) -> None:
    for sample in samples:
        st.markdown(f"**{escape_markdown(sample['title'] or sample['url'])}** · {sample['characters']:,} characters")
        st.code(sample["text"][:MAX_SAMPLE_CHARS], language=None, wrap_lines=True, height=220)


def _make_rows(entries: Sequence[WantedPage | RefusedAddress]) -> list[dict[str, object]]:
    return [{"id": entry["url"], "name": entry["url"], "cells": dict(entry)} for entry in entries]


def _split_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


MAX_CRAWLS_SHOWN = 100  # crawls in the history
CRAWL_COLUMNS = (
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
_CELL_STATES = OUTCOME_STATES | {
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
            show_job(wb, job_id)
        except NotFound as error:
            store_warning(str(error))
            address.put(job=None)
            st.rerun()
        return
    show_start_form(wb)
    _show_history(wb)


def _show_history(wb: Workbench) -> None:
    jobs = wb.crawls.list(limit=MAX_CRAWLS_SHOWN)
    st.header("Crawl history", anchor=False)
    chosen = show_table(
        "crawls",
        CRAWL_COLUMNS,
        [make_crawl_row(job) for job in jobs],
        label="Crawls",
        noun="crawls",
        empty="No crawls yet. Enter a start page above; Preview shows which pages it would fetch.",
        opens=True,
        filters=len(jobs) > 8,
    )
    if chosen.opened:
        address.put(job=chosen.opened)
        st.rerun()


def make_crawl_row(job: CrawlJob) -> dict[str, object]:
    """Return a crawl as a row of the history."""
    return {
        "id": job.id,
        "name": job.url,
        "cells": {
            "url": job.url,
            "status": {"state": _CELL_STATES.get(job.status, "waiting"), "text": STATUS_TITLES[job.status]},
            "done": job.pages_done,
            "failed": job.pages_failed,
            "added": job.report["added"],
            "changed": job.report["changed"],
            "removed": job.report["removed"],
            "held": job.outcomes["held"],
            "began": make_time_cell(job.created_at),
        },
    }
