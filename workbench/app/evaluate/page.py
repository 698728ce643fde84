"""The Evaluate page: experiments, test sets, tuning and learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from evals.experiments.catalogue import Experiments
from evals.experiments.leaderboard import Winner, winner_trend
from evals.measures.metrics import metric_title
from workbench.app.evaluate.beside import show_side_by_side
from workbench.app.evaluate.experiment import show_experiment
from workbench.app.evaluate.learning import show_learning
from workbench.app.evaluate.outcome import format_settings
from workbench.app.evaluate.plan_form import show_plan_form, show_planned
from workbench.app.evaluate.test_sets import show_test_set, show_test_sets
from workbench.app.evaluate.tune import show_tuning
from workbench.app.shell.states import show_message
from workbench.app.shell.work import show_add_button
from workbench.app.state import address
from workbench.app.state.shared import OPENING, show_value
from workbench.app.widgets.looks import get_look, strategy_title
from workbench.app.widgets.notices import show_notice, store_warning
from workbench.app.widgets.reader import show_reader
from workbench.app.widgets.table import Column, make_time_cell, show_table
from workbench.errors import NotFound
from workbench.formatting import count_text

if TYPE_CHECKING:
    from evals.experiments.runs import Experiment
    from workbench.workbench import Workbench

# The list of experiments

STATUS_STATES = {"running": "busy", "done": "done", "stopped": "waiting", "failed": "failed"}
EXPERIMENT_COLUMNS = (
    Column("title", "Experiment"),
    Column("winner", "Best", "strategy"),
    Column("score", "Score", "score"),
    Column("trend", "Over time", "trend"),
    Column("status", "Status", "state"),
    Column("began", "Started", "shown"),
)
COMPARED_EXPERIMENTS = 2  # experiments in a comparison


def show_experiments(wb: Workbench) -> None:
    """Show the experiments, newest first, and the form for a new one if requested or if there are none."""
    catalogue = Experiments(wb)
    experiments = catalogue.list()
    planned = address.get("planned")
    if planned:
        show_planned(wb, planned)
    elif address.get("new") or not experiments:
        if not experiments:
            show_message(
                "Which strategy works best for your documents?",
                "Run the same questions on each strategy and compare the scores.",
            )
            _show_sample_note(wb)
        show_plan_form(wb)
    if not experiments:
        return
    above = st.container(horizontal=True, vertical_alignment="center")
    winners = catalogue.winners(experiments)
    chosen = show_table(
        "experiments",
        EXPERIMENT_COLUMNS,
        make_rows(experiments, winners),
        label="Experiments",
        noun="experiments",
        opens=True,
        selectable=len(experiments) > 1,
    )
    with above:
        _show_buttons([experiment.id for experiment in reversed(experiments) if experiment.id in chosen.selected])
    if chosen.opened:
        address.put(experiment=chosen.opened, new=None)
        st.rerun()


def _show_sample_note(wb: Workbench) -> None:
    """Explain that the sample is measured if there are no documents yet, and offer to add some."""
    if wb.documents.count():
        return
    with st.container(horizontal=True, vertical_alignment="center", key="evaluate_ways"):
        st.caption("You have no documents yet, so this experiment uses the sample articles and questions.")
        show_add_button("library")
        show_add_button("crawl")


def _show_buttons(selected: Sequence[str]) -> None:
    """Offer a new experiment, and a comparison of the two selected ones; the older one is A."""
    if not address.get("new"):
        st.button("New experiment", type="primary", icon=":material/add:", on_click=lambda: address.put(new="1"))
    if len(selected) == COMPARED_EXPERIMENTS and st.button("Compare selected", icon=":material/compare_arrows:"):
        address.put(experiment=selected[0], beside=selected[1], new=None)
        st.rerun()


def make_rows(experiments: Sequence[Experiment], winners: Mapping[str, Winner]) -> list[dict[str, object]]:
    """Return the experiments as rows, with all scores on one scale."""
    lows = [winner.interval[0] for winner in winners.values()]
    highs = [winner.interval[1] for winner in winners.values()]
    ends = (min(lows), max(highs)) if lows and min(lows) < max(highs) else (0.0, 1.0)
    return [_make_row(experiment, winners, ends) for experiment in experiments]


def _make_row(experiment: Experiment, winners: Mapping[str, Winner], ends: tuple[float, float]) -> dict[str, object]:
    winner = winners.get(experiment.id)
    about = f"{experiment.test_set_title}, version {experiment.test_set_version} · corpus: {experiment.over} · "
    notes = {"title": about + count_text(len(experiment.cells), "run")}
    if experiment.message and experiment.status != "done":
        notes["status"] = experiment.message
    if winner is not None:
        notes["score"] = metric_title(winner.metric)
        notes["winner"] = format_settings(winner.label, winner.strategy)
        if winner.tied > 1:
            notes["winner"] = "All have the same score."
    return {
        "id": experiment.id,
        "name": experiment.title,
        "cells": {
            "title": experiment.title,
            "winner": _strategy_cell(winner),
            "score": _score_cell(winner, ends),
            "trend": _trend_cell(winner, winners),
            "status": {"state": STATUS_STATES[experiment.status], "text": experiment.status},
            "began": make_time_cell(experiment.created_at),
        },
        "notes": notes,
    }


def _strategy_cell(winner: Winner | None) -> dict[str, str] | None:
    if winner is None:
        return None
    if winner.tied > 1:
        return {"text": f"Tie of {winner.tied} runs"}
    appearance = get_look(winner.strategy)
    return {"text": strategy_title(winner.strategy), "hue": appearance.hue, "shape": appearance.shape}


def _score_cell(winner: Winner | None, ends: tuple[float, float]) -> dict[str, object] | None:
    if winner is None:
        return None
    return {"value": winner.score, "low": winner.interval[0], "high": winner.interval[1], "ends": list(ends)}


def _trend_cell(winner: Winner | None, winners: Mapping[str, Winner]) -> dict[str, object] | None:
    """Return the winners of the same test set over time, with the position of this one."""
    if winner is None:
        return None
    over_time = winner_trend(winners.values(), winner.test_set_id)
    ids = [one.experiment_id for one in over_time]
    if winner.experiment_id not in ids:  # another metric than that of the newest
        return None
    values = [one.score for one in over_time]
    text = f"Best {metric_title(winner.metric)} of this test set over time: " + ", ".join(f"{v:.3f}" for v in values)
    return {"values": values, "at": ids.index(winner.experiment_id), "text": text}


VIEWS = {"experiments": "Experiments", "datasets": "Test sets", "tune": "Tune", "learn": "Learn"}


def page() -> None:
    """Show what the URL names: an experiment, a comparison of two, a test set, or one of the four lists."""
    wb = OPENING.workbench
    show_notice()
    st.title("Evaluate", anchor=False)
    try:
        _show_view(wb)
    except NotFound as error:  # a wrong URL, or deleted in another tab
        store_warning(str(error))
        address.put(experiment=None, beside=None, open=None, planned=None)
        st.rerun()
    show_reader(wb)


def _show_view(wb: Workbench) -> None:
    if address.get("experiment") and address.get("beside"):
        show_side_by_side(wb, address.get("experiment"), address.get("beside"))
    elif address.get("experiment"):
        show_experiment(wb, address.get("experiment"))
    elif address.get("open"):
        show_test_set(wb, address.get("open"))
    else:
        view = _choose_view()
        if view == "datasets":
            show_test_sets(wb)
        elif view == "tune":
            show_tuning(wb)
        elif view == "learn":
            show_learning(wb)
        else:
            show_experiments(wb)


def _choose_view() -> str:
    show_value("evaluate_view", address.get("view") if address.get("view") in VIEWS else "experiments")
    chosen = st.segmented_control(
        "View", list(VIEWS), key="evaluate_view", format_func=VIEWS.__getitem__, required=True,
        label_visibility="collapsed", on_change=_change_view,
    )  # fmt: skip
    return chosen or "experiments"


def _change_view() -> None:
    view = st.session_state["evaluate_view"]
    address.put(view=None if view == "experiments" else view)
