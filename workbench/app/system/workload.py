"""The part of the System page for work: the workers on any machine, and the jobs in their hands with their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.widgets.table import Column, table
from workbench.types import span_text

if TYPE_CHECKING:
    from workbench.storage.workload import JobLoad
    from workbench.workbench import Workbench

TICK = 2.0  # seconds between two looks
COLUMNS = (
    Column("title", "Job"),
    Column("progress", "Done", "shown", "right"),
    Column("parts", "Parts", "shown", "right"),
    Column("hands", "Workers", "number"),
    Column("left", "Time left"),
    Column("status", "Status", "state"),
)
STATES = {"running": "running", "queued": "waiting"}


def work_section(workbench: Workbench) -> None:
    """Show who works and at what; run as a fragment, so that it looks again by itself."""
    work = workbench.health.work()
    st.header("Work", anchor=False)
    st.markdown(work.sentence)
    if work.jobs:
        rows = [_row(job) for job in work.jobs]
        table("work", COLUMNS, rows, label="Jobs that wait or run", noun="jobs", filters=False, stacks=True)


def _row(job: JobLoad) -> dict[str, object]:
    progress = f"{job.done:,} of {job.total:,}" if job.total else f"{job.done:,}"
    cells = {
        "title": job.title,
        "status": {"state": STATES.get(job.status, job.status), "text": job.status},
        "progress": {"text": progress, "order": job.done},
        "parts": {"text": f"{job.parts_done} of {job.parts}" if job.parts else "–", "order": job.parts},
        "hands": job.workers,
        "left": span_text(job.seconds_left) or "–",
    }
    return {"id": job.id, "name": job.title, "cells": cells}
