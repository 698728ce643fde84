"""The board of a comparison on a page: its columns, and what a person does in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.board.board_data import board_data, failures_data
from workbench.app.compare.columns import Asking, ComparedHits
from workbench.app.compare.judging.judging_round import judging_round
from workbench.app.compare.judging.judgments import Judging, read_marks
from workbench.app.compare.same_text import same_places
from workbench.app.compare.why.panel import open_why
from workbench.app.state import address
from workbench.app.widgets.assets import component
from workbench.app.widgets.labels import escaped
from workbench.app.widgets.promoting import PromotionCandidate, Serving, places_of_bar, promote_dialog, serving_columns
from workbench.app.widgets.promotion_evidence import measured_together
from workbench.app.widgets.reader import open_document
from workbench.errors import WorkbenchError
from workbench.services.search import named
from workbench.types import Comparison

if TYPE_CHECKING:
    from workbench.workbench import Workbench

_MARKED = "marks_kept"  # the number of the last mark of this session that was written down
_FAILED = "marks_failed"


@st.fragment
def board(workbench: Workbench, hits: ComparedHits, asking: Asking, serving: Serving, judging: Judging | None) -> None:
    """Show the columns; judging draws only this part of the page anew."""
    if _FAILED in st.session_state:
        st.toast(escaped(st.session_state.pop(_FAILED)))
    with st.container():  # also without a round: the board keeps its place, and so what the browser holds
        if judging is not None:
            judging_round(judging)
    comparison = hits.comparison
    data = board_data(comparison, hits.likes, _spoken(workbench, comparison), hits.headers) | {
        "failures": failures_data(workbench, hits.failures)
    }
    if judging is not None:
        grades = _grades(judging)
        data["judging"] = {
            "about": judging.about,
            "title": judging.test_set.title,
            "grades": grades,
            "same": same_places(comparison, grades),
            "kept": st.session_state.get(_MARKED, 0),
        }

    columns = serving_columns(serving, comparison, asking.parameters)
    data["serving"] = {"columns": columns, "reason": serving.reason}

    def keep() -> None:
        _keep(comparison, judging)

    result = component("compare/board")(
        key="board", data=data, on_open_change=_nothing, on_marks_change=keep, on_promote_change=_nothing,
        on_scope_change=_nothing, on_reset_change=_nothing, on_why_change=_nothing,
    )  # fmt: skip
    _remedy(result.scope, result.reset)
    if result.open:
        address.put(cut=result.open["cut"])
        open_document(result.open["document"], int(result.open["start"]), int(result.open["end"]))
        st.rerun()
    if result.why:
        open_why(str(result.why["column"]), str(result.why["passage"]))
        st.rerun()
    if result.promote and result.promote in comparison.strategies and result.promote not in columns:
        _promote(workbench, asking, str(result.promote), serving)


def _spoken(workbench: Workbench, comparison: Comparison) -> set[str]:
    """Return the compared indexes that hold passages in several languages."""
    names = {result.index for result in comparison.strategies.values()}
    return {name for name in names if len(workbench.indexes.languages(name)) > 1}


def _promote(workbench: Workbench, asking: Asking, name: str, serving: Serving) -> None:
    """Open the dialog that promotes a column; a second click on its button finds it open."""
    strategy, own_index = named(name, None)
    parameters = asking.parameters.get(name, asking.parameters.get(strategy)) or {}
    candidate = PromotionCandidate(strategy, parameters, own_index or asking.index)
    promote_dialog(
        workbench, candidate, places_of_bar(workbench, asking.scope), [measured_together(workbench, candidate, serving)]
    )


def _remedy(scope: Mapping[str, str] | None, reset: str | None) -> None:
    """Follow a person who chose, in a column that failed, a scope or the defaults."""
    if scope and scope.get("kind") in ("project", "source"):
        address.put(**{str(scope["kind"]): str(scope["id"])})
        st.rerun()
    if reset:
        names = [name for name in address.get_all("s") if name != reset]
        address.put(s=names or None, set=[item for item in address.get_all("set") if not item.startswith(f"{reset}.")])
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
    """Do nothing: Streamlit wants a callback, and the trigger is read from the result."""
