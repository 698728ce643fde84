"""The view of one crawl: progress, log, site tree, changes and actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import streamlit as st

from workbench.app.state import address
from workbench.app.state.shared import note_change
from workbench.app.widgets.looks import escaped
from workbench.app.widgets.table import Column, table
from workbench.crawling.messages import word
from workbench.errors import WorkbenchError
from workbench.formatting import counted
from workbench.storage.crawls import CrawlPage
from workbench.types import time_left

if TYPE_CHECKING:
    from workbench.services.crawls import CrawlCounts, CrawlJob
    from workbench.workbench import Workbench

# Progress, pace and time left

BEGUN = 0.02  # minimum progress for an estimate of the time left


def share(job: CrawlCounts) -> float:
    """Return the progress of a crawl, 0..1; a page that is fetched but not stored counts half."""
    return (job.pages_done + job.pages_waiting / 2) / job.pages_total if job.pages_total else 0.0


def fetched(job: CrawlCounts) -> int:
    """Return the number of fetched pages, stored or not."""
    return job.pages_done + job.pages_waiting


@dataclass(frozen=True, slots=True)
class FormerLook:
    """The progress of a crawl when this page first showed it; its pace is measured from there."""

    moment: datetime
    share: float
    fetched: int

    def seconds_left(self, job: CrawlCounts, moment: datetime) -> float | None:
        """Return the estimated seconds left; None before there is enough progress."""
        gained = share(job) - self.share
        return (moment - self.moment).total_seconds() * (1 - share(job)) / gained if gained > BEGUN else None

    def pace(self, job: CrawlCounts, moment: datetime) -> float:
        """Return the pages fetched per minute."""
        return (fetched(job) - self.fetched) / max(1.0, (moment - self.moment).total_seconds()) * 60


# The site as a tree of folders and pages

MARKS: dict[str, tuple[str, str]] = {
    "added": ("●", "good"),
    "changed": ("▲", "good"),
    "unchanged": ("○", "same"),
    "duplicate": ("◇", "same"),
    "redirected": ("→", "same"),
    "removed": ("–", "gone"),
    "held": ("?", "wait"),
    "forbidden": ("⊘", "gone"),
    "not_allowed": ("⊗", "gone"),
    "left_out": ("…", "gone"),
    "failed": ("✕", "bad"),
    "fetched": ("◐", "wait"),
    "queued": ("·", "wait"),
}
SHOWN = 800  # pages in the tree


@dataclass(slots=True)
class TreeNode:
    """A folder or a page of the tree."""

    name: str
    page: CrawlPage | None = None
    children: dict[str, TreeNode] = field(default_factory=dict)


def outcome_of(page: CrawlPage) -> str:
    """Return the outcome of a page, or its state."""
    return page.outcome or page.state


def tree_of(pages: Iterable[CrawlPage]) -> TreeNode:
    """Return the pages as a tree: hosts, then folders, then pages."""
    root = TreeNode("")
    for page in pages:
        parts = urlsplit(page.url)
        path = [segment for segment in parts.path.split("/") if segment]
        last = (path.pop() if path else "/") + (f"?{parts.query}" if parts.query else "")
        node = root
        for name in [parts.netloc, *path]:
            node = node.children.setdefault(name, TreeNode(name))
        if last in node.children:
            node.children[last].page = page
        else:
            node.children[last] = TreeNode(last, page)
    return root


def tree_html(pages: Sequence[CrawlPage]) -> str:
    """Return the tree as escaped HTML, with folders open."""
    listed = pages[:SHOWN]
    more = f"<p>and {len(pages) - SHOWN:,} more pages</p>" if len(pages) > SHOWN else ""
    items = "".join(_item(child) for child in tree_of(listed).children.values())
    return f'<div class="wb-tree" role="group" aria-label="Pages of the site"><ul>{items}</ul>{more}</div>'


def legend_html(counts: Mapping[str, int]) -> str:
    """Return the legend of the marks, with page counts."""
    parts = [
        f'<span class="{tone}"><b aria-hidden="true">{mark}</b> {counts[name]:,} {word(name)}</span>'
        for name, (mark, tone) in MARKS.items()
        if counts.get(name)
    ]
    return f'<p class="wb-legend">{"".join(parts)}</p>'


def _item(node: TreeNode) -> str:
    inside = "".join(_item(child) for child in node.children.values())
    label = _label(node)
    if not inside:
        return f"<li>{label}</li>"
    return f"<li><details open><summary>{label}</summary><ul>{inside}</ul></details></li>"


def _label(node: TreeNode) -> str:
    name = escape(unquote(node.name))
    page = node.page
    if page is None:
        return f'<span class="folder">{name}</span>'
    mark, tone = MARKS[outcome_of(page)]
    outcome = escape(word(outcome_of(page)) + (f": {page.reason}" if page.reason else ""))
    title = f" <i>{escape(page.title[:80])}</i>" if page.title else ""
    return (
        f'<span class="{tone}" title="{outcome}"><b>{mark}</b> {name}{title}<span class="said"> {outcome}</span></span>'
    )


TICK = 1.0  # seconds between refreshes of a running crawl
LOG_LINES = 14
SAID = {
    "queued": "waiting for a worker", "running": "running", "completed": "completed",
    "completed_with_errors": "completed with errors", "cancelled": "cancelled", "failed": "failed",
}  # fmt: skip
STATES = {
    "added": "done", "changed": "done", "failed": "failed", "held": "waiting", "queued": "waiting", "fetched": "busy",
}  # fmt: skip
PAGE_COLUMNS = (
    Column("outcome", "Outcome", "state"),
    Column("url", "URL"),
    Column("reason", "Reason"),
    Column("passages", "Passages", "number"),
)
REASON_COLUMNS = (Column("reason", "Reason"), Column("count", "URLs", "number"))


def job_view(wb: Workbench, job_id: str) -> None:
    """Show one crawl, refreshed while it runs in any process."""
    job = wb.crawls.get(job_id)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("All crawls", icon=":material/arrow_back:", on_click=lambda: address.put(job=None))
        st.markdown(f"**{escaped(job.url, 120)}**", width="stretch")
    if job.is_finished:
        _status(wb, job)
        _finished(wb, job)
    else:
        st.fragment(_live, run_every=TICK)(wb, job_id)


def _live(wb: Workbench, job_id: str) -> None:
    job, pages = wb.crawls.watch(job_id)
    if job.is_finished:
        note_change()
        st.rerun()
    _status(wb, job)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _tree(pages)
    with right:
        _log(wb, job_id)


def _status(wb: Workbench, job: CrawlJob) -> None:
    moment = datetime.now(UTC)
    look = _former_look(job, moment)
    left = "" if job.is_finished else time_left(look.seconds_left(job, moment))
    with st.container(key="crawl_status", border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(" · ".join(_told(job, left)), width="stretch")
            _buttons(wb, job)
        if not job.is_finished:
            st.progress(share(job))
        numbers = {
            "Pages done": f"{job.pages_done:,} of {job.pages_total:,}",
            "Queued": f"{job.pages_waiting:,}",
            "To fetch": f"{job.pages_pending:,}",
            "Failed": f"{job.pages_failed:,}",
            "Added": f"{job.documents_created:,}",
            "Passages": f"{job.total_chunks:,}",
        }
        if not job.is_finished:
            numbers["Pages/min"] = f"{look.pace(job, moment):,.0f}"
        with st.container(horizontal=True, gap="large", key="crawl_numbers"):
            for name, value in numbers.items():
                st.metric(name, value, width=120)
        if job.stalled:
            st.warning(escaped(job.stalled))
        if job.error_message:
            st.error(escaped(job.error_message))


def _told(job: CrawlJob, left: str) -> list[str]:
    """Return the status, the time left, and the message if it adds something."""
    status = SAID[job.status].capitalize()
    message = "" if job.message.rstrip(".") in ("", status) else escaped(job.message)
    return [part for part in (f"**{status}**", left, message) if part]


def _former_look(job: CrawlJob, moment: datetime) -> FormerLook:
    key = f"crawl_watched_{job.id}"
    if job.is_finished:
        st.session_state.pop(key, None)
    return st.session_state.setdefault(key, FormerLook(moment, share(job), fetched(job)))


def said_changes(job: CrawlCounts) -> str:
    """Describe the changes of a crawl; if it ended before it stored a page, what happens to the fetched ones."""
    report = [f"{counted(count, 'page')} {word(name)}" for name, count in job.outcomes.items() if count]
    if report:
        return " · ".join(report)
    if job.pages_waiting:
        return f"None yet: resume to store {counted(job.pages_waiting, 'fetched page')}."
    return "No pages fetched."


def _buttons(wb: Workbench, job: CrawlJob) -> None:
    crawls = wb.crawls
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
    _button("Crawl again in full", "sync", lambda: crawls.recrawl(job.id, refresh=True))


def _button(label: str, icon: str, act: Callable[[], CrawlJob]) -> None:
    def clicked() -> None:
        try:
            address.put(job=act().id)
        except WorkbenchError as error:
            st.toast(escaped(str(error)))

    st.button(label, key=f"crawl_{icon}", icon=f":material/{icon}:", on_click=clicked)


def _finished(wb: Workbench, job: CrawlJob) -> None:
    pages = wb.crawls.pages(job.id)
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
        _log(wb, job.id, 500)


def _not_fetched(job: CrawlJob) -> None:
    """Show the reasons why URLs were not fetched, with counts."""
    if job.not_fetched:
        with st.expander(f"Not fetched: {sum(job.not_fetched.values()):,} URLs"):
            rows = [
                {"id": reason, "name": reason, "cells": {"reason": reason, "count": count}}
                for reason, count in job.not_fetched.items()
            ]
            table("crawl_not_fetched", REASON_COLUMNS, rows, label="URLs not fetched", noun="reasons")


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


def _log(wb: Workbench, job_id: str, limit: int = LOG_LINES) -> None:
    lines = "".join(
        f'<div class="{line.level}"><time>{line.at.astimezone():%H:%M:%S}</time> {escape(line.message)}</div>'
        for line in wb.jobs.log(job_id, limit=limit)
    )
    st.html(f'<div class="wb-log" role="log" aria-label="Log" tabindex="0">{lines}</div>')
