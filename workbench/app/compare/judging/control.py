"""The control that turns judging on: it chooses the test set, or makes one; the address keeps the choice."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.judging.judgments import Judging, own_test_sets
from workbench.app.shell.scope_bar import place_scope
from workbench.app.state import address
from workbench.app.widgets.labels import escaped, labelled
from workbench.errors import Conflict, WorkbenchError

if TYPE_CHECKING:
    from evals.test_sets.store import TestSetInfo
    from workbench.workbench import Workbench

POPOVER = "judge_popover"


def judge_control(workbench: Workbench, question: str) -> Judging | None:
    """Show the control; returns the judging of the question, None while judging is off."""
    _keep_what_was_made()
    sets = {info.id: info for info in own_test_sets(workbench)}
    chosen = sets.get(address.get("judge"))
    label = "**Judging**" if chosen else "Judge"  # as long alike: a title here would push a strategy to a second line
    # with the popover's state on this side a new test set can close it, and nothing in it is drawn anew
    with st.popover(label, type="tertiary", icon=":material/fact_check:", key=POPOVER, on_change="rerun"):
        _choices(workbench, sets)
    return Judging(workbench, chosen, question) if chosen else None


def _choices(workbench: Workbench, sets: dict[str, TestSetInfo]) -> None:
    value = address.get("judge")
    # without counts: Streamlit tells options by their labels, so a label must not change between two clicks
    titles = {"": "Not judging"} | {key: info.label for key, info in sets.items()}
    if value not in titles:
        titles[value] = "A test set that no longer exists"
    key = f"judge_set_{value}"  # one for each value: a list that closes before it is told a new value sends the old one
    st.selectbox(
        "Test set",
        list(titles),
        list(titles).index(value),
        format_func=labelled(titles),
        key=key,
        on_change=_choose,
        args=(key,),
        help="Your verdict on a passage goes into this test set, with the question. Evaluate scores strategies by it.",
    )
    if value not in sets:
        st.caption("Choose a test set or make one; the keys 1, 2 and 3 judge from then on.")
    with st.form("judge_new", border=False):
        st.text_input(
            "Or a new test set",
            key="judge_title",
            placeholder="Its title, or none: named by the day",
            autocomplete="off",
        )
        st.form_submit_button("Create and judge", on_click=_make, args=(workbench,))


def _choose(key: str) -> None:
    st.session_state.pop("judge_made", None)
    st.session_state[POPOVER] = False
    address.put(judge=st.session_state[key])


def _keep_what_was_made() -> None:
    """Stay with the set just made until the browser names it: its earlier requests do not."""
    test_set_id, is_new = st.session_state.get("judge_made", ("", False))
    if is_new:  # the run that made it
        st.session_state["judge_made"] = (test_set_id, False)
    elif address.get("judge"):
        st.session_state.pop("judge_made", None)
    elif test_set_id:
        address.put(judge=test_set_id)


def _make(workbench: Workbench) -> None:
    """Make a test set, named by the day without a title, and judge into it; one of that title is gone on with."""
    title = str(st.session_state["judge_title"]).strip() or datetime.now().astimezone().strftime("Judged on %-d %B %Y")
    try:
        test_set_id = _created_or_found(workbench, title)
        st.session_state["judge_made"] = (test_set_id, True)
        st.session_state[POPOVER] = False  # it covers a part of the board, and nobody wants it any more
        address.put(judge=test_set_id)
    except WorkbenchError as error:
        st.toast(escaped(str(error)))


def _created_or_found(workbench: Workbench, title: str) -> str:
    from evals.test_sets.store import TestSetStore

    try:
        return TestSetStore(workbench).create(title, scope=place_scope()).id
    except Conflict:  # also where two clicks or two tabs create it at once
        existing = next((info.id for info in own_test_sets(workbench) if info.title == title), None)
        if existing is None:
            raise
        return existing
