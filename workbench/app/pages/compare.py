"""Compare, the home page: one question, two to four strategies side by side, and what tells them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app import address
from workbench.app.answer_panel import answer_button, answer_panel
from workbench.app.asking import Asked, ask, forget
from workbench.app.board import Asking, Compared, board, compare
from workbench.app.engine import ENGINE
from workbench.app.judge_control import judge_control
from workbench.app.judging import Judging
from workbench.app.promoting import serving_in, serving_line
from workbench.app.reader import reader
from workbench.app.sample_questions import sample_questions
from workbench.app.scope_bar import current_index, current_scope
from workbench.app.states import board_skeleton, failed, message
from workbench.app.strategy_bar import chosen_indexes, chosen_limit, chosen_parameters, strategy_bar
from workbench.app.why import why_panel
from workbench.app.work import WORKS
from workbench.errors import WorkbenchError
from workbench.services.search import across

if TYPE_CHECKING:
    from workbench.workbench import Workbench

BUILT_IN_RERANKER = "late-interaction"


def page() -> None:
    """Show the question, and under it the answers, or what to do when there is nothing to ask or to find."""
    workbench = ENGINE.workbench
    question = _question()
    with st.container(key="strategybar", horizontal=True, wrap=False, gap="small", vertical_alignment="center"):
        strategies = strategy_bar(
            with_llm=bool(workbench.settings.llm_base_url),
            with_reranker=workbench.settings.reranker != BUILT_IN_RERANKER,
            indexes=[index.name for index in workbench.indexes.list() if index.status == "ready"],
        )
        judging = judge_control(workbench, question)
        answer_button()
    if not workbench.knowledge.count_documents():
        _empty(workbench)
    elif not question.strip():
        sample_questions(workbench)
    else:
        _answers(workbench, question, strategies, judging)
    reader(workbench, address.get("cut") or current_index())


def _question() -> str:
    st.session_state["question"] = address.get("q")
    return (
        st.text_input(
            "Question",
            key="question",
            placeholder="Ask your documents a question",
            label_visibility="collapsed",
            autocomplete="off",
            on_change=lambda: address.put(q=st.session_state["question"]),
        )
        or ""
    )


def _answers(workbench: Workbench, question: str, strategies: tuple[str, ...], judging: Judging | None) -> None:
    limit, columns = chosen_limit(), tuple(across(strategies, chosen_indexes()))
    asking = Asking(current_scope(), current_index(), chosen_parameters(strategies))
    key = (question, columns, limit, asking.scope, asking.index, repr(asking.parameters), ENGINE.changes)
    try:
        asked = ask(key, lambda: compare(workbench, question, columns, limit, asking))
    except WorkbenchError as error:
        failed(error, retry=forget)
        return
    if asked.settled.is_set():
        _board(workbench, asked.answer, asking, judging)
        asked_with = {"scope": asking.scope, "index": asking.index, "parameters": asking.parameters}
        why_panel(workbench, asked.answer.comparison, {"limit": limit, **asked_with})
    else:
        _slow(asked, len(columns))


def _board(workbench: Workbench, compared: Compared, asking: Asking, judging: Judging | None) -> None:
    comparison = compared.comparison
    if not any(len(result) for result in comparison.strategies.values()):
        notes = {note for result in comparison.strategies.values() for note in result.scope.notes}
        message("Nothing found", *notes, "Ask in other words, or widen the scope above.")
        return
    serving = serving_in(workbench, asking.scope)
    serving_line(workbench, serving, asking.scope)
    above = st.container(key="answer_place")
    board(workbench, compared, asking, serving, judging)
    with above:
        answer_panel(workbench, comparison, asking, serving)


def _slow(asked: Asked, columns: int) -> None:
    with st.container(key="slow", horizontal=True, vertical_alignment="center"):
        why = "The model is still loading." if not ENGINE.warm else "A large corpus or a busy machine takes longer."
        st.html(f'<p class="wb-lead" role="status">Still searching. {why}</p>', width="content")
        st.button("Stop", on_click=_stop)
    board_skeleton(columns)
    st.fragment(_return_when_settled, run_every=0.3)(asked)


def _return_when_settled(asked: Asked) -> None:
    if asked.settled.is_set():
        st.rerun()


def _stop() -> None:
    forget()
    address.put(q=None)


def _empty(workbench: Workbench) -> None:
    message(
        "Nothing to search yet",
        "Bring in your own documents: PDF, Markdown, Word, HTML and nine other forms. Or look around first with the "
        "sample, some fifty articles on retrieval that come with the workbench.",
    )
    with st.container(horizontal=True):
        if st.button("Add documents", type="primary"):
            from workbench.app.navigation import switch

            switch("library")
        loading = any(work.running for work in WORKS.all().values())
        if st.button("Load the sample", disabled=loading):
            from workbench.app.sample_work import start_sample

            start_sample(workbench)
            st.rerun()
