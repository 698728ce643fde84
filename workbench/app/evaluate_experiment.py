"""One experiment as people watch and read it: how it goes, who leads, at what price, where and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from evals.experiments import Experiments
from evals.jobs import enqueue_experiment, job_of
from evals.leaderboard import to_csv
from evals.notebook import to_notebook
from evals.plan import Experiment
from workbench.app import address
from workbench.app.engine import ENGINE
from workbench.app.evaluate_questions import questions_view
from workbench.app.evaluate_ragas import ragas_view
from workbench.app.evaluate_results import Found, found, metric_name
from workbench.app.evaluate_standings import against_latency, standings
from workbench.app.labels import counted, escaped
from workbench.app.library_dialogs import act
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.storage.jobs import Job
    from workbench.workbench import Workbench

TICK = 1.0  # seconds between two looks at an experiment that goes on


def experiment_view(workbench: Workbench, experiment_id: str) -> None:
    """Show one experiment; while it runs it is looked at again and again, whoever started it."""
    experiment = Experiments(workbench).get(experiment_id)
    job = job_of(workbench, experiment.id)
    st.button("Experiments", icon=":material/arrow_back:", type="tertiary", on_click=_leave)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(escaped(experiment.title), anchor=False, width="stretch")
        _actions(workbench, experiment, job)
    st.caption(escaped(_ground(experiment)))
    if job is not None and not job.is_finished:
        st.fragment(_live, run_every=TICK)(workbench, experiment.id, _finished_runs(workbench, experiment.id))
    elif experiment.status != "done":
        st.warning(escaped(experiment.message or "It has not been run yet."))
    _results(workbench, experiment)


def _ground(experiment: Experiment) -> str:
    asked = f", its first {experiment.limit_queries} questions" if experiment.limit_queries else ""
    return (
        f"{experiment.dataset_title}, version {experiment.dataset_version}{asked} · "
        f"{counted(len(experiment.cells), 'run')} · corpus {experiment.corpus_hash[:8]} · "
        f"{experiment.status}. {experiment.message}"
    )


def _finished_runs(workbench: Workbench, experiment_id: str) -> int:
    return sum(state.startswith("done") for state in Experiments(workbench).state(experiment_id).values())


def _live(workbench: Workbench, experiment_id: str, shown: int) -> None:
    """Show how far it is; a run that has just ended draws the page anew."""
    job = job_of(workbench, experiment_id)
    if job is None or job.is_finished or _finished_runs(workbench, experiment_id) != shown:
        ENGINE.changed()
        st.rerun()
    with st.container(key="experiment_status", border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{_progress(job)}** · {escaped(job.message)}", width="stretch")
            st.button(
                "Stop",
                icon=":material/stop:",
                disabled=job.cancel_requested,
                on_click=stop,
                args=(workbench, job.id),
            )
        st.progress(min(1.0, job.done / job.total) if job.total else 0.0)


def stop(workbench: Workbench, job_id: str) -> None:
    """Ask a job to stop; one that ended meanwhile says so."""
    try:
        workbench.jobs.cancel(job_id)
    except WorkbenchError as error:
        st.toast(escaped(str(error)))


def _progress(job: Job) -> str:
    if job.cancel_requested:
        return "Stopping; what is answered stays"
    if job.status == "queued":
        return "Waiting for a worker"
    return f"{job.done:,} of {job.total:,}" if job.total else "Starting"


def _actions(workbench: Workbench, experiment: Experiment, job: Job | None) -> None:
    if job is not None and not job.is_finished:
        return
    if experiment.status != "done" and st.button("Go on", icon=":material/play_arrow:"):
        _again(workbench, experiment)
    if st.button("Delete", icon=":material/delete:", type="tertiary"):
        _delete(workbench, experiment)


def _again(workbench: Workbench, experiment: Experiment) -> None:
    try:
        enqueue_experiment(workbench, experiment.id)
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    st.rerun()


@st.dialog("Delete experiment")
def _delete(workbench: Workbench, experiment: Experiment) -> None:
    st.markdown(f"**{escaped(experiment.title)}** goes; what its runs found stays for other experiments.")

    def change() -> str:
        Experiments(workbench).delete(experiment.id)
        _leave()
        return f"Deleted {experiment.title}."

    if st.button("Delete experiment", type="primary", key="confirm_delete"):
        act(change)


def _leave() -> None:
    address.put(experiment=None, ab=None, ask=None, metric=None)


def _results(workbench: Workbench, experiment: Experiment) -> None:
    seen = found(workbench, experiment.id, address.get("metric", experiment.metrics[0]))
    if not seen.lines:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="results_bar"):
        _metric(seen)
        _downloads(seen)
    pair = standings(workbench, seen)
    if not seen.measured:
        return
    st.subheader("Quality against time", anchor=False)
    against_latency(seen)
    questions_view(workbench, seen, pair)
    ragas_view(seen)


def _metric(seen: Found) -> None:
    metrics = seen.metrics or [seen.metric]
    st.session_state["metric"] = seen.metric
    st.segmented_control(
        "Measured by",
        metrics,
        key="metric",
        format_func=metric_name,
        required=True,
        width="content",
        on_change=lambda: address.put(metric=st.session_state["metric"]),
    )


def _downloads(seen: Found) -> None:
    name = "".join(char if char.isalnum() else "-" for char in seen.experiment.title)[:60].strip("-") or "experiment"
    st.download_button(
        "CSV", to_csv(seen.lines), f"{name}.csv", "text/csv", icon=":material/download:", on_click="ignore"
    )
    st.download_button(
        "Notebook",
        lambda: to_notebook(seen.experiment),
        f"{name}.ipynb",
        "application/x-ipynb+json",
        icon=":material/download:",
        on_click="ignore",
        help="A notebook that runs this experiment again",
    )
