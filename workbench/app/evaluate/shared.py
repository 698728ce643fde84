"""Parts shared by the views of Evaluate: running jobs, and the preselected test set."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.evaluate.experiment import stop
from workbench.app.widgets.looks import escaped

if TYPE_CHECKING:
    from evals.test_sets.store import TestSetInfo
    from workbench.workbench import Workbench

TICK = 1.0  # seconds between refreshes


def live_job(wb: Workbench, job_id: str) -> None:
    """Show a running job, refreshed until it ends."""
    st.fragment(_look, run_every=TICK)(wb, job_id)


def _look(wb: Workbench, job_id: str) -> None:
    job = wb.jobs.get(job_id)
    if job.is_finished:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        waiting = "Waiting for a worker" if job.status == "queued" else escaped(job.message or "Starting")
        waiting = escaped(job.stalled) if job.stalled else waiting
        st.markdown(f"**{escaped(job.title)}** · {waiting}", width="stretch")
        st.button("Cancel", key=f"stop_{job.id}", disabled=job.cancel_requested, on_click=stop, args=(wb, job.id))
    st.progress(job.share)


# The preselected test set

NEVER = datetime.min.replace(tzinfo=UTC)


def preselected(test_sets: Sequence[TestSetInfo]) -> str:
    """Return the id of the test set to preselect, or "".

    It is the last changed one on the user's own documents, or else the last changed one.
    """
    best = max(test_sets, key=lambda info: (info.source_id is None, info.updated_at or NEVER), default=None)
    return best.id if best else ""
