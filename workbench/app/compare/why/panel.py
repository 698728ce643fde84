"""The why panel: a passage taken apart, and the course of a document that one expected; the address opens it.

``why`` names the passage, ``by`` the column, ``missed`` the expected document.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.columns import Asking
from workbench.app.compare.why.panel_data import expected_data, frame_data, panel_data
from workbench.app.state import address
from workbench.app.state.shared import changes, note_change
from workbench.app.widgets.assets import component
from workbench.app.widgets.reader import open_document
from workbench.errors import ModelError, NotFound, WorkbenchError
from workbench.retrieval.options import named
from workbench.retrieval.strategies import DEFAULT_STRATEGY

if TYPE_CHECKING:
    from workbench.retrieval.explain.explanation import Explanation
    from workbench.types import Comparison, Passage
    from workbench.types.json import JsonObject
    from workbench.workbench import Workbench

WIDTH = 900
_EXPLAINED = "why_explained"  # this session's last explanations, by their question
_KEPT = 8
EXPECTED = "expected"  # in place of a passage: only the search for a document that one expected
GONE = (
    "This passage is no longer in the index: its document was changed or deleted. Close this and look at the hits anew."
)
_SKELETON_HEIGHTS = (56, 120, 190, 150)


@dataclass(frozen=True, slots=True)
class Explaining:
    """A question as the board asked it, and the comparison that answered (its other hits stand beside a score)."""

    question: str
    limit: int
    asking: Asking
    comparison: Comparison


def open_why(column: str, passage_id: str = EXPECTED) -> None:
    """Let the address name a passage and the column it is a hit of; ``why_panel`` shows it."""
    address.put(why=passage_id, by=column, missed=None)


def close() -> None:
    """Take the panel out of the address."""
    address.put(why=None, by=None, missed=None)


def why_panel(workbench: Workbench, explaining: Explaining) -> None:
    """Show the panel if the address names a passage; nothing is explained before. An opened document lies over it."""
    if not address.get("why") or address.get("doc"):
        return
    st.dialog("Why it ranks where it does", width=WIDTH, position="right", on_dismiss=close)(_show)(
        workbench, explaining
    )


def _show(workbench: Workbench, explaining: Explaining) -> None:
    place = st.empty()
    with place.container():
        st.html('<p class="wb-kind" role="status" style="margin:0">Asking every strategy about this passage…</p>')
        for height in _SKELETON_HEIGHTS:
            st.skeleton(height=height)
    data = _data(workbench, explaining)
    place.empty()
    result = component("compare/why")(
        key="why",
        data=data,
        on_expect_change=_expect,
        on_turn_change=_turn,
        on_column_change=_column,
        on_open_change=_nothing,
    )
    if result.open:
        address.put(cut=result.open["cut"])
        open_document(str(result.open["document"]), int(result.open["start"]), int(result.open["end"]))
        st.rerun()


def _data(workbench: Workbench, explaining: Explaining) -> JsonObject:
    """Return what the panel draws; a failure is a sentence in its place."""
    column = address.get("by") or next(iter(explaining.comparison.strategies), DEFAULT_STRATEGY)
    passage, missed = address.get("why"), address.get("missed")
    data = frame_data(explaining.comparison, column) | {"passage": None if passage == EXPECTED else passage}
    key = (explaining.question, column, passage, explaining.limit, repr(explaining.asking), changes())
    try:
        if data["passage"]:
            data |= _once(key, lambda: _passage(workbench, explaining, column, passage))
    except NotFound as error:
        if _hit(explaining, passage) is None:
            return data | {"error": str(error)}
        note_change()  # the board is asked anew when it is drawn next
        return data | {"error": GONE}
    except WorkbenchError as error:
        return data | {"error": str(error)}
    if missed:
        data["expected"] = _expected(workbench, explaining, column, missed)
    return data


def _hit(explaining: Explaining, passage_id: str) -> Passage | None:
    results = explaining.comparison.strategies.values()
    return next((hit for result in results for hit in result if hit.passage_id == passage_id), None)


def _passage(workbench: Workbench, explaining: Explaining, column: str, passage_id: str) -> JsonObject:
    why = _explain(workbench, explaining, column, passage_id=passage_id)
    try:
        compared = workbench.explaining.word_by_word(explaining.question, passage_id, why.index)
    except ModelError:  # the explanation's notes say so; the texts are shown without likes
        compared = None
    neighbours = explaining.comparison.strategies.get(column)
    document_type = workbench.documents.get(why.document_id).document_type
    header = _table_header(workbench, explaining, passage_id, why.index)
    return panel_data(why, compared, column, neighbours, document_type, header)


def _table_header(workbench: Workbench, explaining: Explaining, passage_id: str, index: str) -> str:
    """Return the names of the columns of a table that goes on in a passage of the board, "" where there are none."""
    hit = _hit(explaining, passage_id)
    if hit is None or not hit.metadata.get("table_header"):
        return ""
    return workbench.answers.table_headers([hit], index).get(passage_id, "")


def _expected(workbench: Workbench, explaining: Explaining, column: str, document_id: str) -> JsonObject:
    def explained() -> JsonObject:
        why = _explain(workbench, explaining, column, document_id=document_id)
        document = workbench.documents.get(document_id)
        return expected_data(why, document.path or document.url or "")

    key = (explaining.question, column, document_id, explaining.limit, repr(explaining.asking), changes())
    try:
        return _once(key, explained)
    except WorkbenchError as error:
        return {"document": document_id, "error": str(error)}


def _explain(
    workbench: Workbench,
    explaining: Explaining,
    column: str,
    passage_id: str | None = None,
    document_id: str | None = None,
) -> Explanation:
    strategy, own_index = named(column, None)
    asking = explaining.asking
    return workbench.explain(
        explaining.question,
        passage_id,
        document_id,
        strategy=strategy,
        limit=explaining.limit,
        scope=asking.scope,
        index=own_index or asking.index,
        parameters=asking.parameters.get(column, asking.parameters.get(strategy)),
        elsewhere=document_id is None,
    )


def _once(key: Hashable, explain: Callable[[], JsonObject]) -> JsonObject:
    """Return the explanation that this session has for a key, or explain it now; errors are not kept."""
    explanations: dict[Hashable, JsonObject] = st.session_state.setdefault(_EXPLAINED, {})
    if key not in explanations:
        explanations[key] = explain()
        for old in list(explanations)[:-_KEPT]:
            del explanations[old]
    return explanations[key]


def _expect() -> None:
    """Let the address name the document that a person expected; "" takes it out."""
    chosen = _sent("expect")
    if isinstance(chosen, str):
        address.put(missed=chosen or None)


def _turn() -> None:
    """Turn the panel to another passage."""
    passage = _sent("turn")
    if isinstance(passage, str) and passage:
        address.put(why=passage)


def _column() -> None:
    """Turn the panel to another column's view of the passage."""
    column = _sent("column")
    if isinstance(column, str) and column:
        address.put(by=column)


def _sent(name: str) -> object:
    state = st.session_state.get("why")
    return state.get(name) if isinstance(state, Mapping) else None


def _nothing() -> None:
    """Do nothing: Streamlit wants a callback, and the trigger is read from the result."""
