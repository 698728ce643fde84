"""Long work as people see it: what is happening, how far, how long still, how to stop; on every page until put away."""

from __future__ import annotations

import streamlit as st

from workbench.app.labels import escaped
from workbench.app.table import Column, table
from workbench.app.work import WORKS, Work

SETTLED_SHOWN = 8  # rows of a long list that stay in sight without scrolling


def work_bar(page: str) -> None:
    """Show this process's work; once it has ended the page is drawn anew, with what changed."""
    works = WORKS.all()
    if works:
        running = any(work.running for work in works.values())
        st.fragment(_bar, run_every=0.5 if running else None)(page, running)


def _bar(page: str, was_running: bool) -> None:
    works = WORKS.all()
    for key, work in works.items():
        with st.container(key=f"workbar_{key}", border=True):
            _one(key, work, detailed=page == "Library")
    if was_running and not any(work.running for work in works.values()):
        st.rerun()


def _one(key: str, work: Work, detailed: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{escaped(work.title)}** · {escaped(_sentence(work))}", width="stretch")
        if work.running:
            st.button("Stop", key=f"stop_{key}", on_click=work.stop, disabled=work.stopping())
        else:
            st.button("Put away", key=f"away_{key}", on_click=WORKS.put_away, args=(key,))
    if work.running:
        st.progress(work.share)
    if work.error:
        st.error(work.error)
    if work.rows and detailed:
        _rows(key, work)


def _rows(key: str, work: Work) -> None:
    columns = (Column("file", "File"), Column("state", "Outcome", "state"))
    rows = [
        {
            "id": str(place),
            "name": row.name,
            "cells": {"file": row.name, "state": {"state": row.state, "text": row.text}},
        }
        for place, row in enumerate(work.rows)
    ]
    table(f"rows_{key}", columns, rows, label=work.title, noun="files", filters=len(rows) > SETTLED_SHOWN)


def _sentence(work: Work) -> str:
    if not work.running:
        return work.outcome or ("failed" if work.error else "done")
    if work.stopping():
        return "stopping; what is finished stays"
    settled = sum(row.state in ("done", "same", "failed") for row in work.rows)
    parts = [f"{settled} of {len(work.rows)}"] if work.rows else [f"{work.share:.0%}"]
    left = work.seconds_left
    parts.append("starting" if left is None else f"about {_duration(left)} left")
    return " · ".join([*parts, work.message] if work.message else parts)


def _duration(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"
