"""The part of the System page for work: the workers on any machine, and the jobs in their hands with their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.widgets.labels import escaped
from workbench.app.widgets.table import Column, table
from workbench.types import far_text, span_text

if TYPE_CHECKING:
    from workbench.storage.jobs import JobLoad
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


def work_section(workbench: Workbench, stalled: int) -> None:
    """Show who works and at what; run as a fragment, so that it looks again by itself.

    When another number of jobs than ``stalled`` is stalled, the page is drawn again, for its checks say so.
    """
    work = workbench.health.work()
    if len(work.stalled) != stalled:
        st.rerun()
    st.header("Work", anchor=False)
    st.markdown(work.sentence)
    if work.jobs:
        rows = [_row(job) for job in work.jobs]
        for job in work.stalled:
            st.warning(f"**{escaped(job.title, 120)}** · {escaped(job.stalled or '')}")
        table("work", COLUMNS, rows, label="Jobs that wait or run", noun="jobs", filters=False, stacks=True)


def _row(job: JobLoad) -> dict[str, object]:
    progress = far_text(job.share, job.done, job.total)
    cells = {
        "title": job.title,
        "status": {"state": "failed", "text": "stalled"}
        if job.stalled
        else {"state": STATES.get(job.status, job.status), "text": job.status},
        "progress": {"text": progress, "order": job.done},
        "parts": {"text": f"{job.parts_done} of {job.parts}" if job.parts else "–", "order": job.parts},
        "hands": job.workers,
        "left": span_text(job.seconds_left) or "–",
    }
    return {"id": job.id, "name": job.title, "cells": cells}
