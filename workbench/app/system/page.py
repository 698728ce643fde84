"""The System page: health, jobs, indexes, sizes and versions."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.state.shared import OPENING
from workbench.app.system.indexes import show_indexes
from workbench.app.widgets.looks import escape_markdown
from workbench.app.widgets.notices import show_notice
from workbench.app.widgets.table import Column, show_table
from workbench.formatting import size_text
from workbench.types import duration_text, progress_text

if TYPE_CHECKING:
    from workbench.services.health import Status
    from workbench.storage.jobs import JobLoad
    from workbench.storage.replica import ReplicaState
    from workbench.workbench import Workbench

# Workers and jobs

REFRESH_S = 2.0  # seconds between refreshes
JOB_COLUMNS = (
    Column("title", "Job"),
    Column("progress", "Progress", "shown", "right"),
    Column("parts", "Parts", "shown", "right"),
    Column("hands", "Workers", "number"),
    Column("left", "Time left"),
    Column("status", "Status", "state"),
)
STATUS_STATES = {"running": "running", "queued": "waiting"}


def show_jobs(wb: Workbench, stalled: int) -> None:
    """Show workers and jobs; run as a fragment that refreshes itself.

    If the number of stalled jobs is not ``stalled``, redraw the page, whose checks depend on it.
    """
    work = wb.health.work()
    if len(work.stalled) != stalled:
        st.rerun()
    st.header("Jobs", anchor=False)
    st.markdown(work.sentence)
    if work.jobs:
        rows = [_make_row(job) for job in work.jobs]
        for job in work.stalled:
            st.warning(f"**{escape_markdown(job.title, 120)}** · {escape_markdown(job.stalled or '')}")
        show_table("work", JOB_COLUMNS, rows, label="Queued and running jobs", noun="jobs", filters=False, stacks=True)


def _make_row(job: JobLoad) -> dict[str, object]:
    progress = progress_text(job.share, job.done, job.total)
    cells = {
        "title": job.title,
        "status": {"state": "failed", "text": "stalled"}
        if job.stalled
        else {"state": STATUS_STATES.get(job.status, job.status), "text": job.state},
        "progress": {"text": progress, "order": job.done},
        "parts": {"text": f"{job.parts_done} of {job.parts}" if job.parts else "–", "order": job.parts},
        "hands": job.workers,
        "left": duration_text(job.seconds_left) or "–",
    }
    return {"id": job.id, "name": job.title, "cells": cells}


CHECK_COLUMNS = (
    Column("name", "Check", narrow=True),
    Column("outcome", "Outcome", "state", narrow=True),
    Column("detail", "Detail"),
)


def page() -> None:
    """Show health first, then jobs, indexes and facts."""
    wb = OPENING.workbench
    st.title("System", anchor=False)
    show_notice()
    replica = wb.health.replica()
    _show_health(wb, replica)
    work = wb.health.work()
    st.fragment(show_jobs, run_every=REFRESH_S)(wb, len(work.stalled))
    status = wb.health.status(replica, work)
    show_indexes(wb, status["indexes"])
    left, right = st.columns(2, gap="large")
    with left:
        st.header("Database and disk", anchor=False)
        show_facts(_list_database_facts(status))
        st.header("Models", anchor=False)
        show_facts(_list_model_facts(wb))
    with right:
        st.header("Corpus", anchor=False)
        show_facts({name.capitalize(): f"{count:,}" for name, count in status["corpus"].items()})
        st.header("Versions", anchor=False)
        show_facts({"RAG Workbench": status["version"], "Python": status["python"], **status["packages"]})


def _show_health(wb: Workbench, replica: ReplicaState | None) -> None:
    checks = wb.health.doctor(replica)
    bad = [check for check in checks if not check.ok]
    with st.container(horizontal=True, vertical_alignment="center"):
        summary = "All systems OK" if not bad else f"{len(bad)} of {len(checks)} checks failed. Details are below."
        st.markdown(f"**{summary}**", width="stretch")
        st.button("Check again", icon=":material/refresh:")
    rows = [
        {
            "id": check.name,
            "name": check.name,
            "cells": {
                "name": check.name.capitalize(),
                "outcome": {"state": "done", "text": "OK"} if check.ok else {"state": "failed", "text": "failed"},
                "detail": check.detail,
            },
        }
        for check in checks
    ]
    show_table("checks", CHECK_COLUMNS, rows, label="Health checks", noun="checks", filters=False, stacks=True)


def _list_database_facts(status: Status) -> dict[str, str]:
    """Return facts about the database; the checks report the state of the replica."""
    database = status["database"]
    return {
        "Postgres": database["postgres"],
        "pgvector": str(database["pgvector"]),
        "Server": "Embedded, in the data folder" if database["embedded"] else "Server of WORKBENCH_DATABASE_URL",
        "Size": size_text(database["bytes"]),
        "Data folder": status["home"],
        "Free disk space": size_text(status["disk_free_bytes"]),
    }


def _list_model_facts(wb: Workbench) -> dict[str, str]:
    settings = wb.settings
    answers = settings.llm_model or "None (answers are cited extracts)"
    if settings.has_llm:
        answers += f" at {settings.llm_base_url}" if settings.llm_base_url else ", on this machine"
    return {
        "Embedding": settings.embedding_model,
        **({"Precision": tried.sentence.capitalize()} if (tried := wb.health.passages()) else {}),
        "Threads": str(settings.embedding_threads or "One per core"),
        "Reranker": settings.reranker,
        "Language model": answers,
        "State": "Loaded" if OPENING.is_warm else "Loading",
    }


def show_facts(values: Mapping[str, str]) -> None:
    """Show names and values as a definition list."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in values.items())
    st.html(f'<dl class="wb-facts">{items}</dl>')
