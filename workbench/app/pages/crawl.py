"""Crawl: bring a website in, watch it come, and bring it up to date again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app import address
from workbench.app.crawl_job import SAID, STATES, job_view
from workbench.app.crawl_start import start_form
from workbench.app.engine import ENGINE
from workbench.app.table import Column, moment, table
from workbench.errors import NotFound

if TYPE_CHECKING:
    from workbench.services.crawl_jobs import CrawlJob
    from workbench.workbench import Workbench

SHOWN = 100  # crawls in the history
COLUMNS = (
    Column("url", "Crawl of"),
    Column("status", "Status", "state"),
    Column("crawled", "Pages", "number"),
    Column("failed", "Failed", "number"),
    Column("added", "Added", "number"),
    Column("changed", "Changed", "number"),
    Column("removed", "Removed", "number"),
    Column("began", "Began", "shown"),
)
_STATES = STATES | {
    "running": "busy", "completed": "done", "completed_with_errors": "failed", "failed": "failed",
}  # fmt: skip


def page() -> None:
    """Show one crawl where the address names one, else the form and the history."""
    workbench = ENGINE.workbench
    st.title("Crawl", anchor=False)
    job_id = address.get("job")
    if job_id:
        try:
            job_view(workbench, job_id)
        except NotFound:
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
        empty="No crawls yet. Name a start page above; a look first shows what it would bring.",
        opens=True,
        filters=len(jobs) > 8,
    )
    if chosen.opened:
        address.put(job=chosen.opened)
        st.rerun()


def row_of(job: CrawlJob) -> dict[str, Any]:
    """Return a crawl as a row of the history."""
    return {
        "id": job.id,
        "name": job.url,
        "cells": {
            "url": job.url,
            "status": {"state": _STATES.get(job.status, "waiting"), "text": SAID[job.status]},
            "crawled": job.pages_crawled,
            "failed": job.pages_failed,
            "added": job.report["added"],
            "changed": job.report["changed"],
            "removed": job.report["removed"],
            "began": moment(job.created_at),
        },
    }
