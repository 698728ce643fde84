"""Judging hits: the control, stored marks, and the list of a test set's questions with progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.matches import format_place_key, place_key
from workbench.app.shell.navigation import switch_page
from workbench.app.shell.scope_bar import read_lasting_scope
from workbench.app.state import address
from workbench.app.widgets.looks import make_label_function
from workbench.app.widgets.notices import report_errors
from workbench.app.widgets.table import Column, show_table
from workbench.errors import Conflict, NotFound
from workbench.formatting import count_text
from workbench.types import Comparison

if TYPE_CHECKING:
    from evals.test_set import Question, TestSet
    from evals.test_sets.store import TestSetInfo, TestSetStore
    from workbench.workbench import Workbench

# Judgments, stored by span so that they apply to any chunker

Mark = tuple[int, str, int | None]  # number in the session, judged place, grade (None clears it)


def list_own_test_sets(wb: Workbench) -> list[TestSetInfo]:
    """Return the test sets over the user's own sources, not those over a separate corpus."""
    from evals.test_sets.store import TestSetStore

    return [info for info in TestSetStore(wb).list() if info.source_id is None]


@dataclass(frozen=True, slots=True)
class QuestionJudging:
    """One question's judgments in one test set."""

    wb: Workbench
    test_set: TestSetInfo
    question: str

    @property
    def about(self) -> str:
        """A key for the question and the test set."""
        return f"{self.test_set.id} {self.question}"

    def grades(self) -> dict[str, int]:
        """Return {place: grade} for every judged span of the question."""
        test_set = self.load()
        question = _find_question(test_set, self.question)
        return {
            format_place_key(judgment.document, judgment.start or 0, judgment.end or 0): judgment.grade
            for judgment in test_set.judgments
            if question is not None and judgment.question_id == question.id and judgment.is_span
        }

    def load(self) -> TestSet:
        """Return the current test set.

        Raises:
            NotFound: It has been deleted.
        """
        return self._store.load(self.test_set.id)

    def keep(self, comparison: Comparison, marks: Sequence[Mark]) -> None:
        """Store marks, and the question if it is new; skip places that the board does not show.

        Raises:
            NotFound: The test set has been deleted.
            InvalidInput: A grade is invalid.
        """
        hits = {place_key(hit): hit for result in comparison.strategies.values() for hit in result}
        last = {place: grade for _, place, grade in marks if place in hits}
        if not last:
            return
        stored = self._ensure_question()
        for place, grade in last.items():
            hit = hits[place]
            self._store.judge(
                self.test_set.id, stored.id, hit.document_id, grade, start=hit.start, end=hit.end, quote=hit.text
            )

    def _ensure_question(self) -> Question:
        """Return the question of the test set, added if necessary."""
        stored = _find_question(self.load(), self.question)
        return stored or self._store.add_questions(self.test_set.id, [self.question])[0]

    @property
    def _store(self) -> TestSetStore:
        from evals.test_sets.store import TestSetStore

        return TestSetStore(self.wb)


def _find_question(test_set: TestSet, question: str) -> Question | None:
    """Return the test set's question with the same text."""
    wanted = " ".join(question.replace("\x00", "").split()).casefold()
    return next((entry for entry in test_set.questions if entry.text.casefold() == wanted), None)


def read_marks(payload: object, after: int) -> list[Mark]:
    """Return the marks sent by the browser whose number is above ``after``."""
    rows = payload.get("marks") if isinstance(payload, Mapping) else None
    marks = [(int(number), str(place), grade) for number, place, grade in rows or ()]
    return [mark for mark in marks if mark[0] > after]


# The control that chooses or creates the test set

POPOVER_KEY = "judge_popover"


def show_judge_control(wb: Workbench, question: str) -> QuestionJudging | None:
    """Show the control; return the judging of the question, or None if judging is off."""
    _keep_new_test_set()
    sets = {info.id: info for info in list_own_test_sets(wb)}
    chosen = sets.get(address.get("judge"))
    label = "**Judging**" if chosen else "Judge"  # a title here would push a strategy to a second line
    # state kept on the server, so that creating a test set can close the popover
    with st.popover(label, type="tertiary", icon=":material/fact_check:", key=POPOVER_KEY, on_change="rerun"):
        _show_choices(wb, sets)
    return QuestionJudging(wb, chosen, question) if chosen else None


def _show_choices(wb: Workbench, sets: dict[str, TestSetInfo]) -> None:
    value = address.get("judge")
    # without counts: Streamlit identifies options by label, so labels must not change between clicks
    titles = {"": "Off"} | {key: info.label for key, info in sets.items()}
    if value not in titles:
        titles[value] = "Deleted test set"
    key = f"judge_set_{value}"  # one per value: a closing list may otherwise send the former value
    st.selectbox(
        "Test set",
        list(titles),
        list(titles).index(value),
        format_func=make_label_function(titles),
        key=key,
        on_change=_choose_test_set,
        args=(key,),
        help="Your judgments are stored in this test set with the question. Evaluate uses them to score strategies.",
    )
    if value not in sets:
        st.caption("Pick or create a test set, then judge results with 1, 2, 3.")
    with st.form("judge_new", border=False):
        st.text_input(
            "New test set",
            key="judge_title",
            placeholder="Title (optional, defaults to today's date)",
            autocomplete="off",
        )
        st.form_submit_button("Create and judge", on_click=_create_test_set, args=(wb,))


def _choose_test_set(key: str) -> None:
    st.session_state.pop("judge_made", None)
    st.session_state[POPOVER_KEY] = False
    address.put(judge=st.session_state[key])


def _keep_new_test_set() -> None:
    """Keep the new test set selected until the browser sends it; requests already in flight do not name it."""
    test_set_id, is_new = st.session_state.get("judge_made", ("", False))
    if is_new:  # the run that created it
        st.session_state["judge_made"] = (test_set_id, False)
    elif address.get("judge"):
        st.session_state.pop("judge_made", None)
    elif test_set_id:
        address.put(judge=test_set_id)


def _create_test_set(wb: Workbench) -> None:
    """Create a test set (the date is the default title) and select it; an existing one of that title is reused."""
    title = str(st.session_state["judge_title"]).strip() or datetime.now().astimezone().strftime("Judged on %-d %B %Y")
    with report_errors(st.toast):
        test_set_id = _create_or_find(wb, title)
        st.session_state["judge_made"] = (test_set_id, True)
        st.session_state[POPOVER_KEY] = False  # it covers a part of the board
        address.put(judge=test_set_id)


def _create_or_find(wb: Workbench, title: str) -> str:
    from evals.test_sets.store import TestSetStore

    try:
        return TestSetStore(wb).create(title, scope=read_lasting_scope()).id
    except Conflict:  # also if two clicks or tabs create it at the same time
        existing = next((info.id for info in list_own_test_sets(wb) if info.title == title), None)
        if existing is None:
            raise
        return existing


QUESTION_COLUMNS = (Column("question", "Question"), Column("judged", "Judged passages", "number"))
MIN_ROWS_FILTERED = 8  # from this number of questions, the list has a filter and scrolls
LIST_HEIGHT_PX = 360  # pixels


@dataclass(frozen=True, slots=True)
class JudgingProgress:
    """The progress of judging a test set."""

    questions: tuple[str, ...]  # its questions, in order
    judged: tuple[int, ...]  # the number of judged passages per question
    place: int | None  # position of the current question; None if it is not in the test set

    @property
    def done(self) -> int:
        """The number of questions with a judgment."""
        return sum(count > 0 for count in self.judged)

    @property
    def next(self) -> str | None:
        """The next question without a judgment, wrapping around; None if all others have one."""
        start = 0 if self.place is None else self.place + 1
        order = [*range(start, len(self.questions)), *range(start)]
        return next((self.questions[n] for n in order if not self.judged[n] and n != self.place), None)

    @property
    def previous(self) -> str | None:
        """The question before the current one; None at the first."""
        place = len(self.questions) if self.place is None else self.place
        return self.questions[place - 1] if place > 0 else None


def measure_progress(test_set: TestSet, question: str) -> JudgingProgress:
    """Return the progress of a test set, with ``question`` as the current one."""
    counts = Counter(judgment.question_id for judgment in test_set.judgments)
    texts = [entry.text for entry in test_set.questions]
    wanted = " ".join(question.split()).casefold()
    place = next((n for n, text in enumerate(texts) if text.casefold() == wanted), None)
    return JudgingProgress(tuple(texts), tuple(counts[entry.id] for entry in test_set.questions), place)


def show_progress(judging: QuestionJudging) -> None:
    """Show progress and navigation; when all questions are judged, emphasise running an experiment."""
    try:
        going = measure_progress(judging.load(), judging.question)
    except NotFound:  # deleted in another tab, which the control shows
        return
    total = len(going.questions)
    progress = (
        f"{going.done:,} of {count_text(total, 'question')} judged"
        if total
        else "Your first judgment adds this question."
    )
    with st.container(key="judging_round", horizontal=True, vertical_alignment="center"):
        bar = f'<progress max="{max(total, 1)}" value="{going.done}"></progress>'
        title = (
            "" if judging.question.strip() else f"<b>{escape(judging.test_set.title)}</b>"
        )  # else the board shows it
        st.html(f'<p class="wb-round">{title} {bar} {progress}</p>', width="content")
        _show_step("Previous", "P", going.previous)
        _show_step("Next unjudged", "N", going.next)
        with st.popover("Questions", type="tertiary", icon=":material/list:"):
            _list_questions(going)
        finished = 0 < going.done == total
        kind = "primary" if finished else "tertiary"
        if st.button("Run experiment", type=kind, icon=":material/science:", disabled=not going.done):
            address.store_for_next_visit("evaluate", new="1", dataset=judging.test_set.id)
            switch_page("evaluate")


def _show_step(label: str, key: str, question: str | None) -> None:
    if st.button(label, key=f"round_{key}", type="tertiary", shortcut=key, disabled=question is None):
        address.put(q=question)
        st.rerun()


def _list_questions(going: JudgingProgress) -> None:
    rows = [
        {"id": str(n), "name": text, "cells": {"question": text, "judged": count}}
        for n, (text, count) in enumerate(zip(going.questions, going.judged, strict=True))
    ]
    many = len(rows) > MIN_ROWS_FILTERED
    with st.container(height=LIST_HEIGHT_PX if many else "content", border=False):
        chosen = show_table(
            "round_questions",
            QUESTION_COLUMNS,
            rows,
            label="Questions to judge",
            noun="questions",
            opens=True,
            filters=many,
        )
    if chosen.opened:
        address.put(q=going.questions[int(chosen.opened)])
        st.rerun()
