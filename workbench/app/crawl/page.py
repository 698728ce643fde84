"""The Crawl page: websites brought in, watched as they come, and brought up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.crawl.job_view import SAID, STATES, job_view
from workbench.app.crawl.start import start_form
from workbench.app.state import address
from workbench.app.state.shared import OPENING
from workbench.app.widgets.notices import leave_warning, show_notice
from workbench.app.widgets.table import Column, moment, table
from workbench.errors import NotFound

if TYPE_CHECKING:
    from workbench.services.crawls import CrawlJob
    from workbench.workbench import Workbench

SHOWN = 100  # crawls in the history
COLUMNS = (
    Column("url", "Crawl of"),
    Column("status", "Status", "state"),
    Column("done", "Pages done", "number"),
    Column("failed", "Failed", "number"),
    Column("added", "Added", "number"),
    Column("changed", "Changed", "number"),
    Column("removed", "Removed", "number"),
    Column("held", "Removals held", "number"),
    Column("began", "Began", "shown"),
)
_STATES = STATES | {
    "running": "busy", "completed": "done", "completed_with_errors": "failed", "failed": "failed",
}  # fmt: skip


def page() -> None:
    """Show one crawl where the address names one, else the form and the history."""
    workbench = OPENING.workbench
    st.title("Crawl", anchor=False)
    show_notice()
    job_id = address.get("job")
    if job_id:
        try:
            job_view(workbench, job_id)
        except NotFound as error:
            leave_warning(str(error))
            address.put(job=None)
            st.rerun()
        return
    start_form(workbench)
    _history(workbench)


def _history(workbench: Workbench) -> None:
    jobs = workbench.crawls.list(limit=SHOWN)
    st.header("Crawls so far", anchor=False)
    chosen = table(
        "crawls",
        COLUMNS,
        [row_of(job) for job in jobs],
        label="Crawls",
        noun="crawls",
        empty="No crawls yet. Type a start page above; Preview shows which pages it would fetch.",
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
