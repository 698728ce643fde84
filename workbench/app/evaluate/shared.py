"""Parts shared by the views of Evaluate: running jobs, and the preselected test set."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.evaluate.experiment import cancel_job
from workbench.app.widgets.looks import escape_markdown

if TYPE_CHECKING:
    from evals.test_sets.store import TestSetInfo
    from workbench.workbench import Workbench

REFRESH_S = 1.0  # seconds between refreshes


def show_running_job(wb: Workbench, job_id: str) -> None:
    """Show a running job, refreshed until it ends."""
    st.fragment(_refresh_job, run_every=REFRESH_S)(wb, job_id)


def _refresh_job(wb: Workbench, job_id: str) -> None:
    job = wb.jobs.get(job_id)
    if job.is_finished:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        waiting = "Waiting for a worker" if job.status == "queued" else escape_markdown(job.message or "Starting")
        waiting = escape_markdown(job.stalled) if job.stalled else waiting
        st.markdown(f"**{escape_markdown(job.title)}** · {waiting}", width="stretch")
        st.button("Cancel", key=f"stop_{job.id}", disabled=job.cancel_requested, on_click=cancel_job, args=(wb, job.id))
    st.progress(job.share)


def dismiss_job(wb: Workbench, job_id: str) -> None:
    """Delete a finished job with its result."""
    wb.jobs.delete(job_id)


# The preselected test set

EARLIEST_TIME = datetime.min.replace(tzinfo=UTC)


def preselect_test_set(test_sets: Sequence[TestSetInfo]) -> str:
    """Return the id of the test set to preselect, or "".

    Prefer the most recently changed one on the user's own documents, else the most recently changed one of all.
    """
    best = max(test_sets, key=lambda info: (info.source_id is None, info.updated_at or EARLIEST_TIME), default=None)
    return best.id if best else ""
