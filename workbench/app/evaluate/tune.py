"""The Tune view: search for good parameters within a time budget, and show the finalists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from evals.background import enqueue_experiment, enqueue_optimise
from evals.evaluation import DEFAULT_METRICS, Cell, Experiments, TestSetStore, explain_difference, metric_title
from evals.experiments.tuning import MIN_TUNING_QUESTIONS, Candidate, Finalist, read_tuning_result
from workbench.app.evaluate.charts import ChartPoint
from workbench.app.evaluate.experiment import show_ended_job, show_running_job
from workbench.app.evaluate.outcome import show_quality_chart
from workbench.app.evaluate.test_sets import choose_test_set, show_test_sets_button
from workbench.app.state import address
from workbench.app.widgets.looks import format_measured, show_message, strategy_title
from workbench.app.widgets.notices import report_errors
from workbench.app.widgets.rows import Figure, Noted, RowCell, make_figure, show_rows
from workbench.formatting import count_text
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import as_text, as_text_or_none

if TYPE_CHECKING:
    from evals.evaluation import TestSetInfo
    from workbench.storage.jobs import Job
    from workbench.workbench import Workbench

MAX_JOBS_SHOWN = 20  # tuning jobs in the list
TUNABLE_STRATEGIES = ("hybrid", "rerank", "keyword", "mmr", "feedback")
FINALIST_COLUMNS = ("Settings", "Held-out", "95% CI", "Tuning score", "vs. defaults", "p50 ms")


def show_tuning(wb: Workbench) -> None:
    """Show the form, and the tuning jobs with their finalists."""
    test_sets = TestSetStore(wb).list()
    ready = [info for info in test_sets if info.answerable >= MIN_TUNING_QUESTIONS]
    if not ready:
        most = max((info.answerable for info in test_sets), default=0)
        show_message(
            "Not enough judged questions",
            "Tune tries settings of the strategies, and scores the best on questions held out for that. It needs a "
            f"test set with {MIN_TUNING_QUESTIONS} judged questions; the largest has {most}.",
        )
        show_test_sets_button()
        return
    _show_form(wb, ready)
    for job in wb.jobs.list(kind="optimise", limit=MAX_JOBS_SHOWN):
        with st.container(border=True, key=f"tune_{job.id}"):
            if job.is_finished:
                _show_outcome(wb, job)
            else:
                show_running_job(job.id)


def _show_form(wb: Workbench, ready: Sequence[TestSetInfo]) -> None:
    with st.container(border=True, key="tune_form"):
        first, second, third = st.columns([4, 3, 2])
        with first:
            test_set = choose_test_set(ready, "tune_dataset")
        with second:
            metric = st.selectbox("Metric", DEFAULT_METRICS, format_func=metric_title, key="tune_metric")
        with third:
            minutes = st.number_input("Minutes", 0.1, 600.0, 2.0, step=1.0, format="%g", key="tune_minutes")
        own = [name for name, strategy in STRATEGIES.items() if strategy.own and strategy.parameters]
        offered = [*TUNABLE_STRATEGIES, *own]
        strategies = st.pills(
            "Strategies",
            offered,
            selection_mode="multi",
            default=offered[:2],
            format_func=strategy_title,
            key="tune_strategies",
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            go = st.button("Start tuning", type="primary", disabled=not strategies, key="tune_go")
            st.caption("Successive halving: bad settings are dropped early; finalists are scored on a held-out half.")
    if go:
        with report_errors():
            enqueue_optimise(wb, test_set, strategies, minutes * 60, metric)
            st.rerun()


def _show_outcome(wb: Workbench, job: Job) -> None:
    if show_ended_job(wb, job, "Compare finalists on all questions"):
        _start_experiment(wb, job)
    result = read_tuning_result(job)
    if result is not None:
        st.markdown(format_measured("", result.scope))
        tuned = count_text(result.tuning_questions, "question")
        st.caption(
            f"{metric_title(result.metric)}, tuned on {tuned}, scored on {result.held_out_questions} held out. "
            "★ = no other setting is both better and faster."
        )
        show_quality_chart([make_point(finalist) for finalist in result.finalists], f"front_{job.id}")
        rows = {str(place): _make_finalist_cells(finalist) for place, finalist in enumerate(result.finalists)}
        show_rows(f"finalists_{job.id}", FINALIST_COLUMNS, rows, label="Finalists", noun="settings")


def make_point(finalist: Finalist) -> ChartPoint:
    """Return a finalist as a point of the chart."""
    strategy = finalist.candidate.strategy
    name = strategy_title(strategy) + ("" if finalist.is_default else ", tuned")
    return ChartPoint(name, strategy, finalist.latency_ms["p50"], finalist.held_out, on_front=finalist.on_front)


def _make_finalist_cells(finalist: Finalist) -> Sequence[RowCell]:
    against = finalist.against_default
    name = strategy_title(finalist.candidate.strategy) + (", default settings" if finalist.is_default else "")
    low, high = finalist.interval
    return (
        name if finalist.is_default else Noted(name, format_changed_parameters(finalist.candidate)),
        make_figure(finalist.held_out),
        Figure(f"{low:.3f} to {high:.3f}", low),
        make_figure(finalist.tuned),
        f"{against.difference:+.3f}. {explain_difference(against)}" if against else "–",
        make_figure(finalist.latency_ms["p50"], ".1f", " ★" if finalist.on_front else ""),
    )


def format_changed_parameters(candidate: Candidate) -> str:
    """Return a candidate's non-default parameters as text."""
    defaults = {parameter.name: parameter.default for parameter in STRATEGIES[candidate.strategy].parameters}
    parameters = candidate.parameters.items()
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in parameters if value != defaults.get(name))


def _start_experiment(wb: Workbench, job: Job) -> None:
    search, index = read_tuning_result(job), as_text_or_none(job.parameters["index"])
    cells = [
        Cell(finalist.candidate.strategy, finalist.candidate.parameters, index)
        for finalist in (search.finalists if search else ())
    ]
    test_set = as_text(job.parameters["dataset"])
    experiment = Experiments(wb).create(f"Finalists of {job.title.lower()}"[:300], test_set, cells)
    enqueue_experiment(wb, experiment.id)
    address.put(experiment=experiment.id, view=None)
    st.rerun()
