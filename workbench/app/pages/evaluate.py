"""Evaluate: test sets, experiments over them, and the search for good parameters; evidence instead of opinion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app import address
from workbench.app.engine import ENGINE
from workbench.app.evaluate_build import build_form
from workbench.app.evaluate_datasets import dataset_view, datasets_view
from workbench.app.evaluate_experiment import experiment_view
from workbench.app.evaluate_tune import tune_view
from workbench.app.library_dialogs import show_notice
from workbench.app.reader import reader
from workbench.app.states import message
from workbench.app.table import Column, moment, table
from workbench.errors import NotFound

if TYPE_CHECKING:
    from evals.plan import Experiment
    from workbench.workbench import Workbench

VIEWS = {"experiments": "Experiments", "datasets": "Test sets", "tune": "Tune"}
STATES = {"running": "busy", "done": "done", "stopped": "waiting", "failed": "failed"}
COLUMNS = (
    Column("title", "Experiment"),
    Column("dataset", "Test set"),
    Column("runs", "Runs", "number"),
    Column("status", "Status", "state"),
    Column("began", "Began", "shown"),
)


def page() -> None:
    """Show what the address names: an experiment, a test set, or one of the three lists."""
    workbench = ENGINE.workbench
    show_notice()
    st.title("Evaluate", anchor=False)
    try:
        _shown(workbench)
    except NotFound:  # deleted meanwhile, in another tab
        address.put(experiment=None, open=None)
        st.rerun()
    reader(workbench)


def _shown(workbench: Workbench) -> None:
    if address.get("experiment"):
        experiment_view(workbench, address.get("experiment"))
    elif address.get("open"):
        dataset_view(workbench, address.get("open"))
    else:
        view = _view()
        if view == "datasets":
            datasets_view(workbench)
        elif view == "tune":
            tune_view(workbench)
        else:
            _experiments(workbench)


def _view() -> str:
    st.session_state["evaluate_view"] = address.get("view") if address.get("view") in VIEWS else "experiments"
    chosen = st.segmented_control(
        "View", list(VIEWS), key="evaluate_view", format_func=VIEWS.__getitem__, required=True,
        label_visibility="collapsed", on_change=_change_view,
    )  # fmt: skip
    return chosen or "experiments"


def _change_view() -> None:
    view = st.session_state["evaluate_view"]
    address.put(view=None if view == "experiments" else view)


def _experiments(workbench: Workbench) -> None:
    from evals.experiments import Experiments

    there = Experiments(workbench).list()
    if address.get("new") or not there:
        if not there:
            message(
                "Which strategy is best for your documents?",
                "Ask the same questions of each, and let the judged answers decide.",
            )
        build_form(workbench)
    else:
        st.button("New experiment", type="primary", icon=":material/add:", on_click=lambda: address.put(new="1"))
    if not there:
        return
    chosen = table(
        "experiments", COLUMNS, [row_of(one) for one in there], label="Experiments", noun="experiments", opens=True
    )
    if chosen.opened:
        address.put(experiment=chosen.opened, new=None)
        st.rerun()


def row_of(experiment: Experiment) -> dict[str, Any]:
    """Return an experiment as a row of the list."""
    return {
        "id": experiment.id,
        "name": experiment.title,
        "cells": {
            "title": experiment.title,
            "dataset": f"{experiment.dataset_title}, version {experiment.dataset_version}",
            "runs": len(experiment.cells),
            "status": {"state": STATES[experiment.status], "text": experiment.status},
            "began": moment(experiment.created_at),
        },
        "notes": {"status": experiment.message} if experiment.message else {},
    }
