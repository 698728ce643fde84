"""The Evaluate page: test sets, experiments over them, the search for good parameters, and learning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.evaluate.beside import beside_view
from workbench.app.evaluate.experiment import experiment_view
from workbench.app.evaluate.learning import learning_view
from workbench.app.evaluate.listing import experiments_view
from workbench.app.evaluate.test_sets.listing import test_set_view, test_sets_view
from workbench.app.evaluate.tune import tune_view
from workbench.app.state import address
from workbench.app.state.controlled import show_value
from workbench.app.state.shared import OPENING
from workbench.app.widgets.notices import leave_warning, show_notice
from workbench.app.widgets.reader import reader
from workbench.errors import NotFound

if TYPE_CHECKING:
    from workbench.workbench import Workbench

VIEWS = {"experiments": "Experiments", "datasets": "Test sets", "tune": "Tune", "learn": "Learn"}


def page() -> None:
    """Show what the address names: an experiment, two beside each other, a test set, or one of the four lists."""
    workbench = OPENING.workbench
    show_notice()
    st.title("Evaluate", anchor=False)
    try:
        _shown(workbench)
    except NotFound as error:  # a wrong address, or deleted in another tab
        leave_warning(str(error))
        address.put(experiment=None, beside=None, open=None, planned=None)
        st.rerun()
    reader(workbench)


def _shown(workbench: Workbench) -> None:
    if address.get("experiment") and address.get("beside"):
        beside_view(workbench, address.get("experiment"), address.get("beside"))
    elif address.get("experiment"):
        experiment_view(workbench, address.get("experiment"))
    elif address.get("open"):
        test_set_view(workbench, address.get("open"))
    else:
        view = _view()
        if view == "datasets":
            test_sets_view(workbench)
        elif view == "tune":
            tune_view(workbench)
        elif view == "learn":
            learning_view(workbench)
        else:
            experiments_view(workbench)


def _view() -> str:
    show_value("evaluate_view", address.get("view") if address.get("view") in VIEWS else "experiments")
    chosen = st.segmented_control(
        "View", list(VIEWS), key="evaluate_view", format_func=VIEWS.__getitem__, required=True,
        label_visibility="collapsed", on_change=_change_view,
    )  # fmt: skip
    return chosen or "experiments"


def _change_view() -> None:
    view = st.session_state["evaluate_view"]
    address.put(view=None if view == "experiments" else view)
