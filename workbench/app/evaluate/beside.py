"""Comparison of two experiments: both scores of each run, and which differences are significant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from evals.experiments.leaderboard import Pair, Score, check_comparable, find_shared_metrics, pair_runs
from evals.measures.metrics import metric_title
from evals.measures.significance import describe_difference
from workbench.app.evaluate.outcome import format_settings, load_outcome
from workbench.app.state import address
from workbench.app.state.shared import show_value
from workbench.app.widgets.looks import escape_markdown, get_look, strategy_title
from workbench.app.widgets.table import Column, show_table
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from evals.experiments.runs import Experiment
    from workbench.workbench import Workbench


def show_side_by_side(wb: Workbench, first_id: str, second_id: str) -> None:
    """Compare two experiments, which the URL names."""
    st.button("Experiments", icon=":material/arrow_back:", type="tertiary", on_click=_leave_view)
    first, second = load_outcome(wb, first_id, ""), load_outcome(wb, second_id, "")
    st.header(escape_markdown(f"{first.experiment.title} → {second.experiment.title}"), anchor=False)
    st.caption(
        escape_markdown(f"A: {_describe_experiment(first.experiment)}. B: {_describe_experiment(second.experiment)}.")
    )
    metrics = find_shared_metrics(first.cells, second.cells)
    if not metrics:
        st.info("The two experiments have no metric in common. Run both with the same metric to compare them.")
        return
    metric = _choose_metric(metrics)
    pairs = pair_runs(
        first.cells, second.cells, metric, paired=_check_same_questions(first.experiment, second.experiment)
    )
    show_table(
        "beside",
        _make_columns(first.experiment, second.experiment),
        [_make_row(pair, _find_range(pairs)) for pair in pairs],
        label="Runs of both experiments",
        noun="runs",
        filters=False,
        stacks=True,
    )
    with st.container(horizontal=True):
        for letter, experiment in (("A", first.experiment), ("B", second.experiment)):
            st.button(escape_markdown(f"Open {letter}: {experiment.title}"), key=f"open_{experiment.id}",
            type="tertiary",
                      on_click=_open_experiment, args=(experiment.id,))  # fmt: skip


def _check_same_questions(first: Experiment, second: Experiment) -> bool:
    """Return whether questions and judgments are the same; show a warning about any difference."""
    try:
        check_comparable(first, second)
    except WorkbenchError as error:
        st.warning(escape_markdown(str(error)))
    return first.test_set_hash == second.test_set_hash


def _describe_experiment(experiment: Experiment) -> str:
    began = experiment.created_at.astimezone().strftime("%-d %b %Y, %H:%M") if experiment.created_at else "–"
    ground = f"{experiment.test_set_title} version {experiment.test_set_version}, corpus: {experiment.over}"
    return f"{experiment.title}, {ground}, {began}"


def _choose_metric(metrics: list[str]) -> str:
    named = address.get("metric")
    show_value("beside_metric", named if named in metrics else metrics[0], metrics)
    chosen = st.segmented_control(
        "Metric", metrics, key="beside_metric", format_func=metric_title, required=True, width="content",
        on_change=lambda: address.put(metric=st.session_state["beside_metric"]),
    )  # fmt: skip
    return chosen or metrics[0]


def _make_columns(first: Experiment, second: Experiment) -> tuple[Column, ...]:
    return (
        Column("run", "Run", "strategy"),
        Column("first", f"A {first.title}", "score"),
        Column("second", f"B {second.title}", "score"),
        Column("difference", "B - A", "shown", "right"),
        Column("verdict", "Verdict", "state"),
    )


def _find_range(pairs: list[Pair]) -> list[float]:
    scores = [score for pair in pairs for score in (pair.first, pair.second) if score]
    low, high = min(score.interval[0] for score in scores), max(score.interval[1] for score in scores)
    return [low, high] if low < high else [0.0, 1.0]


def _make_row(pair: Pair, ends: list[float]) -> dict[str, object]:
    appearance = get_look(pair.strategy)
    return {
        "id": pair.label,
        "name": pair.label,
        "cells": {
            "run": {"text": strategy_title(pair.strategy), "hue": appearance.hue, "shape": appearance.shape},
            "first": _score_cell(pair.first, ends),
            "second": _score_cell(pair.second, ends),
            "difference": _difference_cell(pair),
            "verdict": _verdict_cell(pair),
        },
        "notes": {"run": format_settings(pair.label, pair.strategy)},
    }


def _score_cell(score: Score | None, ends: list[float]) -> dict[str, object] | None:
    if score is None:
        return None
    return {"value": score.mean, "low": score.interval[0], "high": score.interval[1], "ends": ends}


def _difference_cell(pair: Pair) -> dict[str, object]:
    if pair.first is None or pair.second is None or pair.difference is None:
        return {"text": "–", "order": 0}
    difference = pair.second.mean - pair.first.mean
    return {"text": f"{difference:+.3f}", "order": difference}


def _verdict_cell(pair: Pair) -> dict[str, str]:
    """Return whether B is better, as a cell."""
    if pair.first is None or pair.second is None:
        return {"state": "waiting", "text": "only in B" if pair.first is None else "only in A"}
    difference = pair.difference
    if difference is None:
        return {"state": "waiting", "text": "not comparable"}
    if not difference.significant:
        return {"state": "same", "text": describe_difference(difference)}
    return {"state": "done" if difference.difference > 0 else "failed", "text": describe_difference(difference)}


def _open_experiment(experiment_id: str) -> None:
    address.put(experiment=experiment_id, beside=None)


def _leave_view() -> None:
    address.put(experiment=None, beside=None, metric=None)
