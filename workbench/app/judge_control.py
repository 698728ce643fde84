"""The control that turns judging on: it chooses the test set, or makes one; the address keeps the choice."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app import address
from workbench.app.judging import Judging, own_test_sets
from workbench.app.labels import escaped, labelled
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from evals.store import DatasetInfo
    from workbench.workbench import Workbench

JUST = 2.0  # seconds


def judge_control(workbench: Workbench, question: str) -> Judging | None:
    """Show the control; returns what the question is judged in, None while judging is off."""
    _keep_what_was_made()
    sets = {info.id: info for info in own_test_sets(workbench)}
    chosen = sets.get(address.get("judge"))
    label = f"**Judging** {escaped(chosen.title, 32)}" if chosen else "Judge"
    with st.popover(label, type="tertiary", icon=":material/fact_check:", key="judge_popover"):
        _choices(workbench, sets)
    return Judging(workbench, chosen, question) if chosen else None


def _choices(workbench: Workbench, sets: dict[str, DatasetInfo]) -> None:
    value = address.get("judge")
    # without counts: Streamlit tells options by their labels, so a label must not change between two clicks
    shown = {"": "Not judging"} | {key: info.title for key, info in sets.items()}
    if value not in shown:
        shown[value] = "A test set that is not there"
    st.session_state["judge_set"] = value
    st.selectbox(
        "Test set",
        list(shown),
        format_func=labelled(shown),
        key="judge_set",
        on_change=_choose,
        help="What you say of a passage goes into this test set, with the question. Evaluate scores strategies by it.",
    )
    if value not in sets:
        st.caption("Choose a test set or make one; the keys 1, 2 and 3 judge from then on.")
    with st.form("judge_new", border=False):
        st.text_input("Or a new one", key="judge_title", placeholder="Its title", autocomplete="off")
        st.form_submit_button("Make it and judge", on_click=_make, args=(workbench,))


def _choose() -> None:
    st.session_state.pop("judge_made", None)
    address.put(judge=st.session_state["judge_set"])


def _keep_what_was_made() -> None:
    """Stay with the set just made: a rerun that the browser sent before its address changed knows nothing of it."""
    made, when = st.session_state.get("judge_made", ("", 0.0))
    if made and not address.get("judge") and time.monotonic() - when < JUST:
        address.put(judge=made)


def _make(workbench: Workbench) -> None:
    """Make a test set and judge into it; of a title that is taken (a second click) the one there is."""
    from evals.store import DatasetStore

    title = str(st.session_state["judge_title"]).strip()
    there = next((info for info in own_test_sets(workbench) if info.title == title), None)
    try:
        made = (there or DatasetStore(workbench).create(title)).id
        st.session_state["judge_made"] = (made, time.monotonic())
        address.put(judge=made)
    except WorkbenchError as error:
        st.toast(str(error))
