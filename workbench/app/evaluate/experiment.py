"""The view of one experiment: progress, leaderboard, latency, and single questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from evals.background import enqueue_experiment, find_job
from evals.experiments.catalogue import Experiments
from evals.experiments.leaderboard import describe_judged_outside, describe_weaknesses, to_csv
from evals.experiments.notebook_export import to_notebook
from evals.experiments.runs import Experiment
from evals.gateway import describe_deleted
from evals.learning import training
from evals.measures.metrics import metric_title
from workbench.app.evaluate.outcome import ExperimentOutcome, load_outcome, show_ragas
from workbench.app.evaluate.questions import show_questions
from workbench.app.evaluate.standings import show_leaderboard, show_quality_against_latency
from workbench.app.state import address
from workbench.app.state.shared import note_change, show_value
from workbench.app.widgets.looks import escape_markdown
from workbench.app.widgets.notices import run_change
from workbench.errors import WorkbenchError
from workbench.formatting import count_text

if TYPE_CHECKING:
    from workbench.storage.jobs import Job
    from workbench.workbench import Workbench

REFRESH_S = 1.0  # seconds between refreshes of a running experiment


def show_experiment(wb: Workbench, experiment_id: str) -> None:
    """Show one experiment, refreshed while it runs in any process."""
    experiment = Experiments(wb).get(experiment_id)
    job = find_job(wb, experiment.id)
    st.button("Experiments", icon=":material/arrow_back:", type="tertiary", on_click=_leave_view)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(escape_markdown(experiment.title), anchor=False, width="stretch")
        _show_actions(wb, experiment, job)
    st.caption(escape_markdown(_describe_corpus(experiment)))
    if experiment.scope is not None and (lost := describe_deleted(wb, experiment.scope)):
        st.warning(
            escape_markdown(
                f"Deleted since this experiment ran: {lost} (scope: {experiment.scope.text}). The results are kept, "
                "but it cannot run again, and nothing can be promoted for this scope."
            )
        )
    if job is not None and not job.is_finished:
        st.fragment(_show_running, run_every=REFRESH_S)(wb, experiment.id, _count_finished_runs(wb, experiment.id))
    elif experiment.status != "done":
        st.warning(escape_markdown(experiment.message or "Not run yet."))
    _show_results(wb, experiment)


def _describe_corpus(experiment: Experiment) -> str:
    limit = f", first {experiment.limit_queries} questions" if experiment.limit_queries else ""
    return (
        f"{experiment.test_set_title}, version {experiment.test_set_version}{limit} · corpus: {experiment.over} · "
        f"{count_text(len(experiment.cells), 'run')} · corpus hash {experiment.corpus_hash[:8]} · "
        f"{experiment.status}. {experiment.message}"
    )


def _count_finished_runs(wb: Workbench, experiment_id: str) -> int:
    return sum(state.startswith("done") for state in Experiments(wb).state(experiment_id).values())


def _show_running(wb: Workbench, experiment_id: str, shown: int) -> None:
    """Show the progress; redraw the page when a run ends."""
    job = find_job(wb, experiment_id)
    if job is None or job.is_finished or _count_finished_runs(wb, experiment_id) != shown:
        note_change()
        st.rerun()
    with st.container(key="experiment_status", border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"**{_describe_progress(job)}** · {escape_markdown(job.stalled or job.message)}", width="stretch"
            )
            st.button(
                "Cancel",
                icon=":material/stop:",
                disabled=job.cancel_requested,
                on_click=cancel_job,
                args=(wb, job.id),
            )
        st.progress(job.share)


def cancel_job(wb: Workbench, job_id: str) -> None:
    """Cancel a job; show an error if it has already ended."""
    try:
        wb.jobs.cancel(job_id)
    except WorkbenchError as error:
        st.toast(escape_markdown(str(error)))


def _describe_progress(job: Job) -> str:
    if job.cancel_requested:
        return "Cancelling; finished queries are kept"
    if job.status == "queued":
        return "Waiting for a worker"
    return f"{job.done:,} of {job.total:,}" if job.total else "Starting"


def _show_actions(wb: Workbench, experiment: Experiment, job: Job | None) -> None:
    if job is not None and not job.is_finished:
        return
    if experiment.status != "done" and st.button("Resume", icon=":material/play_arrow:"):
        _resume(wb, experiment)
    if st.button("Delete", icon=":material/delete:", type="tertiary"):
        _delete(wb, experiment)


def _resume(wb: Workbench, experiment: Experiment) -> None:
    try:
        enqueue_experiment(wb, experiment.id)
    except WorkbenchError as error:
        st.error(escape_markdown(str(error)))
        return
    st.rerun()


@st.dialog("Delete experiment")
def _delete(wb: Workbench, experiment: Experiment) -> None:
    st.markdown(f"Delete **{escape_markdown(experiment.title)}**? Results of its runs are kept for other experiments.")

    def change() -> str:
        Experiments(wb).delete(experiment.id)
        _leave_view()
        return f"Deleted {experiment.title}."

    if st.button("Delete experiment", type="primary", key="confirm_delete"):
        run_change(change)


def _leave_view() -> None:
    address.put(experiment=None, ab=None, ask=None, metric=None)


def _show_results(wb: Workbench, experiment: Experiment) -> None:
    outcome = load_outcome(wb, experiment.id, address.get("metric", experiment.metrics[0]))
    if not outcome.lines:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="results_bar"):
        _choose_metric(outcome)
        _show_downloads(outcome)
    pair = show_leaderboard(wb, outcome)
    if not outcome.done_cells:
        return
    runs = {cell.cell.label: cell.run for cell in outcome.done_cells if cell.run is not None}
    test_set = Experiments(wb).test_set(experiment)
    for sentence in (*describe_judged_outside(wb, test_set), *describe_weaknesses(test_set, runs, outcome.metric)):
        st.caption(f":material/warning: {escape_markdown(sentence)}")
    for ranker in training.find_trained_rankers(wb, experiment.test_set_title, runs.values()):
        st.caption(f":material/warning: {escape_markdown(training.describe_seen_ranker(ranker))}")
    st.subheader("Quality vs. latency", anchor=False)
    show_quality_against_latency(outcome)
    show_questions(wb, outcome, pair)
    show_ragas(outcome)


def _choose_metric(outcome: ExperimentOutcome) -> None:
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


def _show_downloads(outcome: ExperimentOutcome) -> None:
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
