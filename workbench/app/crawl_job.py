"""One crawl as people watch it: how it goes, its log, its site as a tree, what differs, and how to steer it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app import address
from workbench.app.engine import ENGINE
from workbench.app.labels import counted, escaped
from workbench.app.site_tree import legend_html, outcome_of, tree_html, word
from workbench.app.table import Column, table
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.services.crawl_jobs import CrawlJob
    from workbench.storage.crawls import CrawlPage
    from workbench.workbench import Workbench

TICK = 1.0  # seconds between two looks at a crawl that goes on
LOG_LINES = 14
SAID = {
    "queued": "waiting for a worker", "running": "running", "completed": "completed",
    "completed_with_errors": "completed, with errors", "cancelled": "cancelled", "failed": "failed",
}  # fmt: skip
STATES = {"added": "done", "changed": "done", "failed": "failed", "queued": "waiting", "fetched": "busy"}
PAGE_COLUMNS = (
    Column("outcome", "Outcome", "state"),
    Column("url", "Address"),
    Column("reason", "Why"),
    Column("passages", "Passages", "number"),
)


def job_view(workbench: Workbench, job_id: str) -> None:
    """Show one crawl; while it goes on it is looked at again and again, whoever started it."""
    job = workbench.crawls.get(job_id)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("All crawls", icon=":material/arrow_back:", on_click=lambda: address.put(job=None))
        st.markdown(f"**{escaped(job.url, 120)}**", width="stretch")
    if job.is_finished:
        _status(workbench, job)
        _finished(workbench, job)
    else:
        st.fragment(_live, run_every=TICK)(workbench, job_id)


def _live(workbench: Workbench, job_id: str) -> None:
    job = workbench.crawls.get(job_id)
    if job.is_finished:
        ENGINE.changed()
        st.rerun()
    _status(workbench, job)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _tree(workbench.crawls.pages(job_id))
    with right:
        _log(workbench, job_id)


def _status(workbench: Workbench, job: CrawlJob) -> None:
    with st.container(key="crawl_status", border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{SAID[job.status].capitalize()}** · {escaped(job.message)}", width="stretch")
            _buttons(workbench, job)
        if not job.is_finished:
            work = workbench.jobs.get(job.id)  # counts a page once it is stored, as the bar on the other pages does
            st.progress(min(1.0, work.done / work.total) if work.total else 0.0)
        numbers = {
            "Pages crawled": f"{job.pages_crawled:,}",
            "In the queue": f"{job.pages_pending:,}",
            "Failed": f"{job.pages_failed:,}",
            "Pages a minute": f"{_pace(job):,.0f}",
            "New documents": f"{job.documents_created:,}",
            "Passages": f"{job.total_chunks:,}",
        }
        with st.container(horizontal=True, gap="large"):
            for name, value in numbers.items():
                st.metric(name, value, width=120)
        if job.error_message:
            st.error(escaped(job.error_message))


def _pace(job: CrawlJob) -> float:
    if job.started_at is None:
        return 0.0
    until = job.completed_at or datetime.now(UTC)
    return job.pages_crawled / max(1.0, (until - job.started_at).total_seconds()) * 60


def _buttons(workbench: Workbench, job: CrawlJob) -> None:
    crawls = workbench.crawls
    if not job.is_finished:
        _button("Cancel", "stop", lambda: crawls.cancel(job.id))
        return
    if job.status in ("cancelled", "failed"):
        _button("Resume", "play_arrow", lambda: crawls.resume(job.id))
    if job.pages_failed:
        _button("Retry failed", "restart_alt", lambda: crawls.retry_failed(job.id))
    _button("Crawl again", "refresh", lambda: crawls.recrawl(job.id))


def _button(label: str, icon: str, act: Callable[[], CrawlJob]) -> None:
    def clicked() -> None:
        try:
            address.put(job=act().id)
        except WorkbenchError as error:
            st.toast(escaped(str(error)))

    st.button(label, key=f"crawl_{icon}", icon=f":material/{icon}:", on_click=clicked)


def _finished(workbench: Workbench, job: CrawlJob) -> None:
    pages = workbench.crawls.pages(job.id)
    report = [f"{counted(count, 'page')} {word(name)}" for name, count in job.report.items() if count]
    st.subheader("What is different", anchor=False)
    st.markdown(" · ".join(report) if report else "Nothing was crawled.")
    views = st.tabs(["Site", "Pages", "Log"])
    with views[0]:
        _tree(pages)
    with views[1]:
        rows = [_row(page) for page in pages]
        table("crawl_pages", PAGE_COLUMNS, rows, label="Pages of the crawl", noun="pages")
    with views[2]:
        _log(workbench, job.id, 500)


def _row(page: CrawlPage) -> dict[str, Any]:
    outcome = outcome_of(page)
    cells = {
        "outcome": {"state": STATES.get(outcome, "same"), "text": word(outcome)},
        "url": page.url,
        "reason": page.reason or "",
        "passages": page.passages,
    }
    return {"id": page.url, "name": page.url, "cells": cells, "notes": {"url": page.title} if page.title else {}}


def _tree(pages: list[CrawlPage]) -> None:
    counts: dict[str, int] = {}
    for page in pages:
        counts[outcome_of(page)] = counts.get(outcome_of(page), 0) + 1
    st.html(legend_html(counts) + tree_html(pages))


def _log(workbench: Workbench, job_id: str, limit: int = LOG_LINES) -> None:
    lines = "".join(
        f'<div class="{line.level}"><time>{line.at.astimezone():%H:%M:%S}</time> {escape(line.message)}</div>'
        for line in workbench.jobs.log(job_id, limit=limit)
    )
    st.html(f'<div class="wb-log" role="log" aria-label="Log" tabindex="0">{lines}</div>')
