"""One crawl as people watch it: how it goes, its log, its site as a tree, what differs, and how to steer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.crawl.pace import FormerLook, fetched, share
from workbench.app.crawl.site_tree import legend_html, outcome_of, tree_html
from workbench.app.state import address
from workbench.app.state.shared import note_change
from workbench.app.widgets.labels import escaped
from workbench.app.widgets.table import Column, table
from workbench.crawling.extraction import word
from workbench.errors import WorkbenchError
from workbench.sizes import counted
from workbench.types import time_left

if TYPE_CHECKING:
    from workbench.services.crawls import CrawlCounts, CrawlJob
    from workbench.storage.crawls import CrawlPage
    from workbench.workbench import Workbench

TICK = 1.0  # seconds between two looks at a crawl that goes on
LOG_LINES = 14
SAID = {
    "queued": "waiting for a worker", "running": "running", "completed": "completed",
    "completed_with_errors": "completed, with errors", "cancelled": "cancelled", "failed": "failed",
}  # fmt: skip
STATES = {
    "added": "done", "changed": "done", "failed": "failed", "held": "waiting", "queued": "waiting", "fetched": "busy",
}  # fmt: skip
PAGE_COLUMNS = (
    Column("outcome", "Outcome", "state"),
    Column("url", "Address"),
    Column("reason", "Why"),
    Column("passages", "Passages", "number"),
)
REASON_COLUMNS = (Column("reason", "Not fetched, because"), Column("count", "Addresses", "number"))


def job_view(workbench: Workbench, job_id: str) -> None:
    """Show one crawl; while it goes on it is looked at again and again, also when another process started it."""
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
    job, pages = workbench.crawls.watch(job_id)
    if job.is_finished:
        note_change()
        st.rerun()
    _status(workbench, job)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _tree(pages)
    with right:
        _log(workbench, job_id)


def _status(workbench: Workbench, job: CrawlJob) -> None:
    moment = datetime.now(UTC)
    look = _former_look(job, moment)
    left = "" if job.is_finished else time_left(look.seconds_left(job, moment))
    with st.container(key="crawl_status", border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(" · ".join(_told(job, left)), width="stretch")
            _buttons(workbench, job)
        if not job.is_finished:
            st.progress(share(job))
        numbers = {
            "Pages done": f"{job.pages_done:,} of {job.pages_total:,}",
            "To be stored": f"{job.pages_waiting:,}",
            "To be fetched": f"{job.pages_pending:,}",
            "Failed": f"{job.pages_failed:,}",
            "Added": f"{job.documents_created:,}",
            "Passages": f"{job.total_chunks:,}",
        }
        if not job.is_finished:
            numbers["Pages a minute"] = f"{look.pace(job, moment):,.0f}"
        with st.container(horizontal=True, gap="large", key="crawl_numbers"):
            for name, value in numbers.items():
                st.metric(name, value, width=120)
        if job.stalled:
            st.warning(escaped(job.stalled))
        if job.error_message:
            st.error(escaped(job.error_message))


def _told(job: CrawlJob, left: str) -> list[str]:
    """Return the status, the time left, and the message where it says more."""
    status = SAID[job.status].capitalize()
    message = "" if job.message.rstrip(".") in ("", status) else escaped(job.message)
    return [part for part in (f"**{status}**", left, message) if part]


def _former_look(job: CrawlJob, moment: datetime) -> FormerLook:
    key = f"crawl_watched_{job.id}"
    if job.is_finished:
        st.session_state.pop(key, None)
    return st.session_state.setdefault(key, FormerLook(moment, share(job), fetched(job)))


def said_changes(job: CrawlCounts) -> str:
    """Say what a crawl that ended changed; where it was stopped before it stored a page, what became of those."""
    report = [f"{counted(count, 'page')} {word(name)}" for name, count in job.outcomes.items() if count]
    if report:
        return " · ".join(report)
    if job.pages_waiting:
        return f"Nothing yet: {counted(job.pages_waiting, 'fetched page')} will be stored when it is resumed."
    return "No page was fetched."


def _buttons(workbench: Workbench, job: CrawlJob) -> None:
    crawls = workbench.crawls
    if not job.is_finished:
        _button("Cancel", "stop", lambda: crawls.cancel(job.id))
        return
    if job.status in ("cancelled", "failed"):
        _button("Resume", "play_arrow", lambda: crawls.resume(job.id))
    if job.pages_failed:
        _button("Retry failed", "restart_alt", lambda: crawls.retry_failed(job.id))
    if job.outcomes["held"]:
        _button("Accept removals", "delete_sweep", lambda: crawls.accept_removals(job.id))
    _button("Crawl again", "refresh", lambda: crawls.recrawl(job.id))
    _button("Crawl all in full", "sync", lambda: crawls.recrawl(job.id, refresh=True))


def _button(label: str, icon: str, act: Callable[[], CrawlJob]) -> None:
    def clicked() -> None:
        try:
            address.put(job=act().id)
        except WorkbenchError as error:
            st.toast(escaped(str(error)))

    st.button(label, key=f"crawl_{icon}", icon=f":material/{icon}:", on_click=clicked)


def _finished(workbench: Workbench, job: CrawlJob) -> None:
    pages = workbench.crawls.pages(job.id)
    st.subheader("Changes", anchor=False)
    st.markdown(said_changes(job))
    _not_fetched(job)
    views = st.tabs(["Site", "Pages", "Log"])
    with views[0]:
        _tree(pages)
    with views[1]:
        rows = [_row(page) for page in pages]
        table("crawl_pages", PAGE_COLUMNS, rows, label="Pages of the crawl", noun="pages")
    with views[2]:
        _log(workbench, job.id, 500)


def _not_fetched(job: CrawlJob) -> None:
    """Show every reason why addresses were not fetched, with their count."""
    if job.not_fetched:
        with st.expander(f"Not fetched, by reason: {sum(job.not_fetched.values()):,}"):
            rows = [
                {"id": reason, "name": reason, "cells": {"reason": reason, "count": count}}
                for reason, count in job.not_fetched.items()
            ]
            table("crawl_not_fetched", REASON_COLUMNS, rows, label="Addresses not fetched", noun="reasons")


def _row(page: CrawlPage) -> dict[str, Any]:
    outcome = outcome_of(page)
    cells = {
        "outcome": {"state": STATES.get(outcome, "same"), "text": word(outcome)},
        "url": page.url,
        "reason": page.reason or "",
        "passages": page.passages,
    }
    return {"id": page.url, "name": page.url, "cells": cells, "notes": {"url": page.title} if page.title else {}}


def _tree(pages: Sequence[CrawlPage]) -> None:
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
