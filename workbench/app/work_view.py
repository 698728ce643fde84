"""Long work as people see it: what is happening, how far, how long still, how to stop; on every page until put away.

It is read from the database each time: a reload, another tab or another process shows the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from workbench.app import address
from workbench.app.engine import ENGINE
from workbench.app.labels import counted, escaped
from workbench.app.table import Column, table
from workbench.app.work import WORKS, Work
from workbench.errors import StorageError, WorkbenchError
from workbench.storage.job_files import SETTLED, JobFile

TICK, IDLE = 0.7, 2.0  # seconds between two looks, while something goes on and while nothing does
FILTERED = 8  # rows from which on a list has a filter, and scrolls in a room of its own
ROOM = 380  # pixels
OWN_PAGE = {"crawl": "Crawl", "experiment": "Evaluate", "optimise": "Evaluate"}  # where a kind shows itself
ENDED = {
    "completed": "done", "completed_with_errors": "done, with errors", "cancelled": "stopped", "failed": "failed",
}  # fmt: skip
READABLE = ("added", "changed", "unchanged")  # of a file that is in its source now
STATES = {"added": "done", "changed": "done", "unchanged": "same"}


def work_bar(page: str) -> None:
    """Show the work in view; whenever some begins or ends the page is drawn anew, with what changed."""
    drawn = _standing(_works(page))
    going_on = any(running for _, running in drawn)
    st.fragment(_bar, run_every=TICK if going_on else IDLE)(page, drawn)


def _works(page: str) -> dict[str, Work]:
    return {key: work for key, work in WORKS.all().items() if OWN_PAGE.get(work.job.kind) != page}


def _standing(works: Mapping[str, Work]) -> tuple[tuple[str, bool], ...]:
    return tuple((key, work.running) for key, work in works.items())


def _bar(page: str, drawn: tuple[tuple[str, bool], ...]) -> None:
    try:
        works = _works(page)
    except StorageError as error:
        st.error(escaped(str(error)))
        return
    if _standing(works) != drawn:
        ENGINE.changed()
        st.rerun()
    for key, work in works.items():
        with st.container(key=f"workbar_{key}", border=True):
            _one(key, work, detailed=page == "Library")


def _one(key: str, work: Work, detailed: bool) -> None:
    jobs = ENGINE.workbench.jobs
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{escaped(work.job.title, 120)}** · {escaped(sentence(work), 200)}", width="stretch")
        if work.job.source_id and any(work.tally.files.get(state) for state in READABLE):
            st.html(f'<a href="library?{source_address(work.job.source_id)}">Open its source</a>', width="content")
        if work.running:
            stopping = work.job.cancel_requested
            _button("Stop", f"stop_{key}", lambda: jobs.cancel(key), disabled=stopping)
        else:
            if work.job.status in ("cancelled", "failed"):
                _button("Go on", f"resume_{key}", lambda: jobs.resume(key))
            _button("Put away", f"away_{key}", lambda: jobs.put_away(key))
    if work.running:
        st.progress(work.share)
    if work.job.error:
        st.error(escaped(work.job.error))
    if detailed and work.tally.total:
        _files(key, work)


def source_address(source_id: str) -> str:
    """Return the address of a source's page after its "?", as HTML; the scope and the index stay."""
    kept = {name: address.get_all(name) for name in address.EVERYWHERE}
    return escape(urlencode({**kept, "open": source_id}, doseq=True))


def _button(label: str, key: str, act: Callable[[], Any], disabled: bool = False) -> None:
    def clicked() -> None:
        try:
            act()
        except WorkbenchError as error:
            st.toast(escaped(str(error)))

    st.button(label, key=key, on_click=clicked, disabled=disabled)


def _files(key: str, work: Work) -> None:
    files = ENGINE.workbench.jobs.files(key)
    columns = (Column("file", "File"), Column("state", "Outcome", "state"))
    rows = [_row(file, work.running) for file in files]
    long = len(rows) > FILTERED
    with st.container(height=ROOM if long else "content", border=False, key=f"files_{key}"):
        table(f"rows_{key}", columns, rows, label=work.job.title, noun="files", filters=long)
    if work.tally.total > len(files):
        st.caption(f"{len(files):,} of {work.tally.total:,} files: those that failed, those under way, and the latest.")


def _row(file: JobFile, running: bool) -> dict[str, Any]:
    state, text = outcome(file, running)
    return {
        "id": str(file.position),
        "name": file.name,
        "cells": {"file": file.name, "state": {"state": state, "text": text}},
    }


def outcome(file: JobFile, running: bool) -> tuple[str, str]:
    """Return a file's state for the table, and what became of it in words."""
    if file.state in ("added", "changed"):
        return STATES[file.state], f"{file.state}, {counted(file.passages, 'passage')}"
    if file.state == "failed":
        return "failed", file.error or "It could not be read."
    if file.state == "unchanged":
        return "same", "unchanged"
    if not running:
        return "waiting", "not added: stopped before"
    return ("busy", "embedding") if file.state == "busy" else ("waiting", "waiting")


def sentence(work: Work) -> str:
    """Say how work stands in one line."""
    job = work.job
    if not work.running:
        said = "" if job.error else _counts(work) or job.message
        return ENDED[job.status] + (f": {said}" if said else "")
    if job.cancel_requested:
        return "stopping; what is finished stays"
    if job.status == "queued":
        return "waiting for a worker" + ("" if ENGINE.workbench.settings.run_worker else ": start 'workbench worker'")
    if work.quiet_for:
        return f"no word from its worker for {work.quiet_for:.0f} s; if it died, another one goes on"
    left = work.seconds_left
    parts = [_far(work), "" if left is None else f"about {_duration(left)} left", job.message]
    return " · ".join(part for part in parts if part)


def _counts(work: Work) -> str:
    """Say how many files ended how; counted by what this job did, however often it was taken up."""
    words = {state: state for state in SETTLED} | {"busy": "not added", "waiting": "not added"}
    counts: dict[str, int] = {}
    for state, word in words.items():
        counts[word] = counts.get(word, 0) + work.tally.files.get(state, 0)
    return ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)


def _far(work: Work) -> str:
    if work.tally.total:
        return f"{work.tally.settled_files:,} of {work.tally.total:,}"
    return f"{work.share:.0%}" if work.job.total else ""


def _duration(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"
