"""The view of one experiment: progress, leaderboard, latency, and single questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from evals.background import enqueue_experiment, job_of
from evals.experiments.catalogue import Experiments
from evals.experiments.leaderboard import judged_outside, to_csv, weaknesses
from evals.experiments.notebook_export import to_notebook
from evals.experiments.runs import Experiment
from evals.gateway import deleted_parts
from evals.learning import training
from evals.measures.metrics import metric_title
from workbench.app.evaluate.outcome import ExperimentOutcome, outcome_of, ragas_view
from workbench.app.evaluate.questions import questions_view
from workbench.app.evaluate.standings import against_latency, standings
from workbench.app.state import address
from workbench.app.state.shared import note_change, show_value
from workbench.app.widgets.looks import escaped
from workbench.app.widgets.notices import act
from workbench.errors import WorkbenchError
from workbench.formatting import counted

if TYPE_CHECKING:
    from workbench.storage.jobs import Job
    from workbench.workbench import Workbench

TICK = 1.0  # seconds between refreshes of a running experiment


def experiment_view(wb: Workbench, experiment_id: str) -> None:
    """Show one experiment, refreshed while it runs in any process."""
    experiment = Experiments(wb).get(experiment_id)
    job = job_of(wb, experiment.id)
    st.button("Experiments", icon=":material/arrow_back:", type="tertiary", on_click=_leave)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(escaped(experiment.title), anchor=False, width="stretch")
        _actions(wb, experiment, job)
    st.caption(escaped(_ground(experiment)))
    if experiment.scope is not None and (lost := deleted_parts(wb, experiment.scope)):
        st.warning(
            escaped(
                f"Deleted since this experiment ran: {lost} (scope: {experiment.scope.text}). The results are kept, "
                "but it cannot run again, and nothing can be promoted for this scope."
            )
        )
    if job is not None and not job.is_finished:
        st.fragment(_live, run_every=TICK)(wb, experiment.id, _finished_runs(wb, experiment.id))
    elif experiment.status != "done":
        st.warning(escaped(experiment.message or "Not run yet."))
    _results(wb, experiment)


def _ground(experiment: Experiment) -> str:
    limit = f", first {experiment.limit_queries} questions" if experiment.limit_queries else ""
    return (
        f"{experiment.test_set_title}, version {experiment.test_set_version}{limit} · corpus: {experiment.over} · "
        f"{counted(len(experiment.cells), 'run')} · corpus hash {experiment.corpus_hash[:8]} · "
        f"{experiment.status}. {experiment.message}"
    )


def _finished_runs(wb: Workbench, experiment_id: str) -> int:
    return sum(state.startswith("done") for state in Experiments(wb).state(experiment_id).values())


def _live(wb: Workbench, experiment_id: str, shown: int) -> None:
    """Show the progress; redraw the page when a run ends."""
    job = job_of(wb, experiment_id)
    if job is None or job.is_finished or _finished_runs(wb, experiment_id) != shown:
        note_change()
        st.rerun()
    with st.container(key="experiment_status", border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{_progress(job)}** · {escaped(job.stalled or job.message)}", width="stretch")
            st.button(
                "Cancel",
                icon=":material/stop:",
                disabled=job.cancel_requested,
                on_click=stop,
                args=(wb, job.id),
            )
        st.progress(job.share)


def stop(wb: Workbench, job_id: str) -> None:
    """Cancel a job; show an error if it has already ended."""
    try:
        wb.jobs.cancel(job_id)
    except WorkbenchError as error:
        st.toast(escaped(str(error)))


def _progress(job: Job) -> str:
    if job.cancel_requested:
        return "Cancelling; finished queries are kept"
    if job.status == "queued":
        return "Waiting for a worker"
    return f"{job.done:,} of {job.total:,}" if job.total else "Starting"


def _actions(wb: Workbench, experiment: Experiment, job: Job | None) -> None:
    if job is not None and not job.is_finished:
        return
    if experiment.status != "done" and st.button("Resume", icon=":material/play_arrow:"):
        _again(wb, experiment)
    if st.button("Delete", icon=":material/delete:", type="tertiary"):
        _delete(wb, experiment)


def _again(wb: Workbench, experiment: Experiment) -> None:
    try:
        enqueue_experiment(wb, experiment.id)
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    st.rerun()


@st.dialog("Delete experiment")
def _delete(wb: Workbench, experiment: Experiment) -> None:
    st.markdown(f"Delete **{escaped(experiment.title)}**? Results of its runs are kept for other experiments.")

    def change() -> str:
        Experiments(wb).delete(experiment.id)
        _leave()
        return f"Deleted {experiment.title}."

    if st.button("Delete experiment", type="primary", key="confirm_delete"):
        act(change)


def _leave() -> None:
    address.put(experiment=None, ab=None, ask=None, metric=None)


def _results(wb: Workbench, experiment: Experiment) -> None:
    outcome = outcome_of(wb, experiment.id, address.get("metric", experiment.metrics[0]))
    if not outcome.lines:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="results_bar"):
        _metric(outcome)
        _downloads(outcome)
    pair = standings(wb, outcome)
    if not outcome.measured:
        return
    runs = {cell.cell.label: cell.run for cell in outcome.measured if cell.run is not None}
    test_set = Experiments(wb).test_set(experiment)
    for sentence in (*judged_outside(wb, test_set), *weaknesses(test_set, runs, outcome.metric)):
        st.caption(f":material/warning: {escaped(sentence)}")
    for ranker in training.rankers_that_saw(wb, experiment.test_set_title, runs.values()):
        st.caption(f":material/warning: {escaped(training.sentence(ranker))}")
    st.subheader("Quality vs. latency", anchor=False)
    against_latency(outcome)
    questions_view(wb, outcome, pair)
    ragas_view(outcome)


def _metric(outcome: ExperimentOutcome) -> None:
    metrics = outcome.metrics or [outcome.metric]
    show_value("metric", outcome.metric, metrics)
    st.segmented_control(
        "Metric",
        metrics,
        key="metric",
        format_func=metric_title,
        required=True,
        width="content",
        on_change=lambda: address.put(metric=st.session_state["metric"]),
    )


def _downloads(outcome: ExperimentOutcome) -> None:
    name = "".join(char if char.isalnum() else "-" for char in outcome.experiment.title)[:60].strip("-") or "experiment"
    st.download_button(
        "CSV",
        to_csv(outcome.lines, outcome.experiment.over),
        f"{name}.csv",
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
    )
    st.download_button(
        "Notebook",
        lambda: to_notebook(outcome.experiment),
        f"{name}.ipynb",
        "application/x-ipynb+json",
        icon=":material/download:",
        on_click="ignore",
        help="Notebook that reruns this experiment",
    )
