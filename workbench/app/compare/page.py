"""Compare, the home page: one question, two to four strategies side by side, and what tells them apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.answer.panel import answer_button, answer_panel
from workbench.app.compare.asking import PendingAnswer, ask, forget
from workbench.app.compare.board.board import board
from workbench.app.compare.columns import Asking, ComparedHits, compare
from workbench.app.compare.export_button import export_button
from workbench.app.compare.judging.control import judge_control
from workbench.app.compare.judging.judging_round import judging_round
from workbench.app.compare.judging.judgments import Judging
from workbench.app.compare.odd_values import tell_odd_values
from workbench.app.compare.preferred_names import preferred_names
from workbench.app.compare.start.sample_questions import sample_questions
from workbench.app.compare.start.ways_in import empty_home, next_step
from workbench.app.compare.strategy_bar import chosen_indexes, chosen_limit, chosen_parameters, strategy_bar
from workbench.app.compare.why.panel import Explaining, open_why, why_panel
from workbench.app.shell.scope_bar import clear_scope, current_index, current_scope, is_scoped
from workbench.app.shell.states import board_skeleton, failed, message
from workbench.app.state import address
from workbench.app.state.controlled import show_value
from workbench.app.state.one_run import indexes_of_run
from workbench.app.state.shared import OPENING, changes
from workbench.app.widgets.promoting import serving_in, serving_line
from workbench.app.widgets.reader import reader
from workbench.errors import ConfigurationError, InvalidInput, NotFound, WorkbenchError
from workbench.opened_corpus import BUILT_IN_RERANKER
from workbench.retrieval.options import across

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from workbench.workbench import Workbench


def page() -> None:
    """Show the question, and under it the answers, or what to do when there is nothing to ask or to find."""
    workbench = OPENING.workbench
    question = _question()
    if question.strip():
        st.html('<a class="wb-skip" href="#passages">Skip to the passages</a>')
    with st.container(key="strategybar", horizontal=True, wrap=False, gap="small", vertical_alignment="center"):
        strategies = strategy_bar(
            with_llm=workbench.settings.has_llm,
            with_reranker=workbench.settings.reranker != BUILT_IN_RERANKER,
            indexes=[index.name for index in indexes_of_run(workbench) if index.status == "ready"],
        )
        judging = judge_control(workbench, question)
        answer_button()
    tell_odd_values()
    if not workbench.documents.count():
        empty_home(workbench)
    elif not question.strip():
        if judging is not None:
            judging_round(judging)
        sample_questions(workbench)
    else:
        _answers(workbench, question, strategies, judging)
    reader(workbench, address.get("cut") or current_index())


def _question() -> str:
    show_value("question", address.get("q"))
    return (
        st.text_input(
            "Question",
            key="question",
            placeholder="Ask your documents a question",
            label_visibility="collapsed",
            autocomplete="off",
            on_change=lambda: address.put(q=st.session_state["question"], without=None, names=None),
        )
        or ""
    )


def _answers(workbench: Workbench, question: str, strategies: tuple[str, ...], judging: Judging | None) -> None:
    limit, columns = chosen_limit(), tuple(across(strategies, chosen_indexes()))
    asking = Asking(current_scope(), current_index(), chosen_parameters(strategies))
    key = (question, columns, limit, asking.scope, asking.index, repr(asking.parameters), changes())
    in_the_meantime = st.empty()  # a place of its own, which the board to come clears at once and does not take over
    try:
        pending = ask(key, lambda: compare(workbench, question, columns, limit, asking))
    except WorkbenchError as error:
        failed(error, _remedies(error) or {"Try again": forget})
        return
    if pending.settled.is_set() and pending.answer is not None:
        _board(workbench, pending.answer, asking, judging)
        why_panel(workbench, Explaining(question, limit, asking, pending.answer.comparison))
    else:
        _slow(pending, len(columns), in_the_meantime)


def _remedies(error: WorkbenchError) -> dict[str, Callable[[], None]]:
    """Return the remedies for a name or a value of the address that does not work."""
    if not isinstance(error, InvalidInput | NotFound | ConfigurationError):
        return {}
    remedies: dict[str, Callable[[], None]] = {}
    if address.get("index") or address.get("on"):
        remedies["Use the default index"] = lambda: address.put(index=None, on=None)
    if address.get("set"):
        remedies["Use the default settings"] = lambda: address.put(set=None)
    if address.get("s"):
        remedies["Compare the default strategies"] = lambda: address.put(s=None)
    return remedies


def _board(workbench: Workbench, compared: ComparedHits, asking: Asking, judging: Judging | None) -> None:
    comparison = compared.comparison
    if not compared.failures and not any(len(result) for result in comparison.strategies.values()):
        notes = {note for result in comparison.strategies.values() for note in result.scope.notes}
        if judging is not None:
            judging_round(judging)
        message("Nothing found", *notes, "Ask in other words" + (", or widen the scope." if is_scoped() else "."))
        with st.container(horizontal=True):
            if is_scoped():
                st.button("Search everything", on_click=clear_scope, icon=":material/close:")
            if comparison.strategies:
                column = next(iter(comparison.strategies))
                st.button("I expected a document", key="expected", type="tertiary", on_click=open_why, args=(column,))
        return
    preferred_names(comparison, asking.scope)
    serving = serving_in(workbench, asking.scope)
    with st.container(horizontal=True, vertical_alignment="top", wrap=False, key="above_board"):
        with st.container(gap=None):
            serving_line(workbench, serving, asking.scope)
            next_step(workbench, judging is not None)
        if comparison.strategies:
            export_button(comparison, asking, chosen_limit())
    above = st.container(key="answer_place")
    board(workbench, compared, asking, serving, judging)
    with above:
        if comparison.strategies:
            answer_panel(workbench, comparison, asking, serving)


def _slow(pending: PendingAnswer[ComparedHits], columns: int, place: DeltaGenerator) -> None:
    with place.container():
        with st.container(key="slow", horizontal=True, vertical_alignment="center"):
            why = "A large corpus or a busy machine takes longer." if OPENING.is_warm else "The model is still loading."
            st.html(f'<p class="wb-lead" role="status">Still searching. {why}</p>', width="content")
            st.button("Cancel", on_click=_stop)
        board_skeleton(columns)
    st.fragment(_return_when_settled, run_every=0.3)(pending)


def _return_when_settled(pending: PendingAnswer[ComparedHits]) -> None:
    if pending.settled.is_set():
        st.rerun()


def _stop() -> None:
    forget()
    address.put(q=None)
