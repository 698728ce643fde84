"""The board of a comparison on a page: its columns, and what a person does in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app import address
from workbench.app.assets import component
from workbench.app.board_data import board_data
from workbench.app.judging import Judging, read_marks, same_places
from workbench.app.likeness import Likes, likeness
from workbench.app.promoting import Serving, promote, serving_columns
from workbench.app.reader import open_document
from workbench.errors import WorkbenchError
from workbench.types import Comparison, Scope

if TYPE_CHECKING:
    from workbench.workbench import Workbench

_MARKED = "marks_kept"  # the number of the last mark of this session that was written down
_FAILED = "marks_failed"


@dataclass(frozen=True, slots=True)
class Asking:
    """What a comparison was asked with: what a promotion would make the default."""

    scope: Scope
    index: str | None
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison with the words of its hits that are to be underlined."""

    comparison: Comparison
    likes: Likes


def compare(workbench: Workbench, question: str, columns: Sequence[str], limit: int, asking: Asking) -> Compared:
    """Ask the columns' strategies. Raises what ``Workbench.compare`` raises."""
    found = workbench.compare(
        question,
        strategies=columns,
        limit=limit,
        scope=asking.scope,
        index=asking.index,
        parameters=asking.parameters,
    )
    return Compared(found, likeness(workbench, found))


@st.fragment
def board(workbench: Workbench, compared: Compared, asking: Asking, serving: Serving, judging: Judging | None) -> None:
    """Show the columns; judging draws only this part of the page anew."""
    if _FAILED in st.session_state:
        st.toast(st.session_state.pop(_FAILED))
    comparison = compared.comparison
    data = board_data(comparison, compared.likes)
    if judging is not None:
        grades = _grades(judging)
        data["judging"] = {
            "about": judging.about,
            "title": judging.dataset.title,
            "grades": grades,
            "same": same_places(comparison, grades),
            "kept": st.session_state.get(_MARKED, 0),
        }

    columns = serving_columns(serving, comparison, asking.parameters)
    data["serving"] = {"columns": columns, "reason": serving.reason}

    def keep() -> None:
        _keep(comparison, judging)

    result = component("board")(
        key="board", data=data, on_open_change=_nothing, on_marks_change=keep, on_promote_change=_nothing
    )
    if result.open:
        address.put(cut=result.open["cut"])
        open_document(result.open["document"], int(result.open["start"]), int(result.open["end"]))
        st.rerun()
    if result.promote and result.promote not in columns:
        _promote(workbench, comparison, asking, str(result.promote))


def _promote(workbench: Workbench, comparison: Comparison, asking: Asking, name: str) -> None:
    if name not in comparison.strategies:
        return
    try:
        st.toast(promote(workbench, asking.scope, name, asking.index, asking.parameters))
    except WorkbenchError as error:
        st.toast(str(error))
        return
    st.rerun()


def _grades(judging: Judging) -> dict[str, int]:
    try:
        return judging.grades()
    except WorkbenchError:  # said where marks are kept, and by the control on the next visit
        return {}


def _keep(comparison: Comparison, judging: Judging | None) -> None:
    """Write down what the browser has marked since; where that fails the board shows again what is kept."""
    marks = read_marks(st.session_state.get("board"), st.session_state.get(_MARKED, 0))
    if not marks or judging is None:
        return
    try:
        judging.keep(comparison, marks)
    except WorkbenchError as error:
        st.session_state[_FAILED] = str(error)  # a callback shows nothing itself
    st.session_state[_MARKED] = max(number for number, _, _ in marks)


def _nothing() -> None:
    """The trigger is read from the result; Streamlit wants a callback."""
