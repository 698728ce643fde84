"""A round of judging: the test set's questions as a list with progress, the next and the previous one by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.matches import key_of, place_key
from workbench.app.shell.navigation import switch
from workbench.app.shell.scope_bar import place_scope
from workbench.app.state import address
from workbench.app.widgets.looks import escaped, labelled
from workbench.app.widgets.table import Column, table
from workbench.errors import Conflict, NotFound, WorkbenchError
from workbench.formatting import counted
from workbench.types import Comparison

if TYPE_CHECKING:
    from evals.test_set import Question, TestSet
    from evals.test_sets.store import TestSetInfo, TestSetStore
    from workbench.workbench import Workbench

# --- Judgments of hits: stored in a test set by the passage's span, so that every chunker can be scored ---

Mark = tuple[int, str, int | None]  # its number in the session, the place that is judged, the grade (None: taken back)


def own_test_sets(wb: Workbench) -> list[TestSetInfo]:
    """Return the test sets over the person's own sources; the others judge a corpus of their own."""
    from evals.test_sets.store import TestSetStore

    return [info for info in TestSetStore(wb).list() if info.source_id is None]


@dataclass(frozen=True, slots=True)
class Judging:
    """One question's judgments in one test set."""

    wb: Workbench
    test_set: TestSetInfo
    question: str

    @property
    def about(self) -> str:
        """A key that is equal where the same question is judged in the same test set."""
        return f"{self.test_set.id} {self.question}"

    def grades(self) -> dict[str, int]:
        """Return place -> grade of every span that a person judged for the question."""
        test_set = self.load()
        question = _same(test_set, self.question)
        return {
            key_of(judgment.document, judgment.start or 0, judgment.end or 0): judgment.grade
            for judgment in test_set.judgments
            if question is not None and judgment.question_id == question.id and judgment.is_span
        }

    def load(self) -> TestSet:
        """Return the test set as it is now. Raises NotFound where it is gone."""
        return self._store.load(self.test_set.id)

    def keep(self, comparison: Comparison, marks: Sequence[Mark]) -> None:
        """Write marks down, the question too where it is new; a place that the board does not show is left out.

        Raises:
            NotFound: the test set is gone. InvalidInput: a grade that is none.
        """
        hits = {place_key(hit): hit for result in comparison.strategies.values() for hit in result}
        last = {place: grade for _, place, grade in marks if place in hits}
        if not last:
            return
        stored = self._stored_question()
        for place, grade in last.items():
            hit = hits[place]
            self._store.judge(
                self.test_set.id,
                stored.id,
                hit.document_id,
                grade,
                start=hit.start,
                end=hit.end,
                quote=hit.text,
            )

    def _stored_question(self) -> Question:
        """Return the question as the test set has it, added if need be."""
        stored = _same(self.load(), self.question)
        return stored or self._store.add_questions(self.test_set.id, [self.question])[0]

    @property
    def _store(self) -> TestSetStore:
        from evals.test_sets.store import TestSetStore

        return TestSetStore(self.wb)


def _same(test_set: TestSet, question: str) -> Question | None:
    """Return the test set's question of the same words."""
    wanted = " ".join(question.replace("\x00", "").split()).casefold()
    return next((entry for entry in test_set.questions if entry.text.casefold() == wanted), None)


def read_marks(payload: object, after: int) -> list[Mark]:
    """Return the marks that the browser sent and that are numbered beyond ``after``."""
    rows = payload.get("marks") if isinstance(payload, Mapping) else None
    marks = [(int(number), str(place), grade) for number, place, grade in rows or ()]
    return [mark for mark in marks if mark[0] > after]


# --- The control that turns judging on: it chooses the test set, or makes one; the address keeps the choice ---

POPOVER = "judge_popover"


def judge_control(wb: Workbench, question: str) -> Judging | None:
    """Show the control; returns the judging of the question, None while judging is off."""
    _keep_what_was_made()
    sets = {info.id: info for info in own_test_sets(wb)}
    chosen = sets.get(address.get("judge"))
    label = "**Judging**" if chosen else "Judge"  # as long alike: a title here would push a strategy to a second line
    # with the popover's state on this side a new test set can close it, and nothing in it is drawn anew
    with st.popover(label, type="tertiary", icon=":material/fact_check:", key=POPOVER, on_change="rerun"):
        _choices(wb, sets)
    return Judging(wb, chosen, question) if chosen else None


def _choices(wb: Workbench, sets: dict[str, TestSetInfo]) -> None:
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
        st.form_submit_button("Create and judge", on_click=_make, args=(wb,))


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


def _make(wb: Workbench) -> None:
    """Make a test set, named by the day without a title, and judge into it; one of that title is gone on with."""
    title = str(st.session_state["judge_title"]).strip() or datetime.now().astimezone().strftime("Judged on %-d %B %Y")
    try:
        test_set_id = _created_or_found(wb, title)
        st.session_state["judge_made"] = (test_set_id, True)
        st.session_state[POPOVER] = False  # it covers a part of the board, and nobody wants it any more
        address.put(judge=test_set_id)
    except WorkbenchError as error:
        st.toast(escaped(str(error)))


def _created_or_found(wb: Workbench, title: str) -> str:
    from evals.test_sets.store import TestSetStore

    try:
        return TestSetStore(wb).create(title, scope=place_scope()).id
    except Conflict:  # also where two clicks or two tabs create it at once
        existing = next((info.id for info in own_test_sets(wb) if info.title == title), None)
        if existing is None:
            raise
        return existing


COLUMNS = (Column("question", "Question"), Column("judged", "Judged passages", "number"))
MANY = 8  # questions from which on the list has a filter, and scrolls in a room of its own
ROOM = 360  # pixels


@dataclass(frozen=True, slots=True)
class Round:
    """The questions of a test set in order, how many passages of each are judged, and the place of the present one.

    ``place`` is None where the present question is not (yet) in the test set.
    """

    questions: tuple[str, ...]
    judged: tuple[int, ...]
    place: int | None

    @property
    def done(self) -> int:
        """The number of questions that have a judgment."""
        return sum(count > 0 for count in self.judged)

    @property
    def next(self) -> str | None:
        """The next question without a judgment, around the end of the list; None where every other one has some."""
        start = 0 if self.place is None else self.place + 1
        order = [*range(start, len(self.questions)), *range(start)]
        return next((self.questions[n] for n in order if not self.judged[n] and n != self.place), None)

    @property
    def previous(self) -> str | None:
        """The question before the present one; None at the first one."""
        place = len(self.questions) if self.place is None else self.place
        return self.questions[place - 1] if place > 0 else None


def round_of(test_set: TestSet, question: str) -> Round:
    """Return the round over a test set while ``question`` is on the page."""
    counts = Counter(judgment.question_id for judgment in test_set.judgments)
    texts = [entry.text for entry in test_set.questions]
    wanted = " ".join(question.split()).casefold()
    place = next((n for n, text in enumerate(texts) if text.casefold() == wanted), None)
    return Round(tuple(texts), tuple(counts[entry.id] for entry in test_set.questions), place)


def judging_round(judging: Judging) -> None:
    """Show how far the round is, and lead through it; a finished one leads to an experiment."""
    try:
        going = round_of(judging.load(), judging.question)
    except NotFound:  # deleted in another tab; the control says so
        return
    total = len(going.questions)
    progress = (
        f"{going.done:,} of {counted(total, 'question')} judged" if total else "The first judgment adds this question."
    )
    with st.container(key="judging_round", horizontal=True, vertical_alignment="center"):
        bar = f'<progress max="{max(total, 1)}" value="{going.done}"></progress>'
        title = "" if judging.question.strip() else f"<b>{escape(judging.test_set.title)}</b>"  # else the board says it
        st.html(f'<p class="wb-round">{title} {bar} {progress}</p>', width="content")
        _step("Previous", "P", going.previous)
        _step("Next unjudged", "N", going.next)
        with st.popover("Questions", type="tertiary", icon=":material/list:"):
            _list(going)
        finished = 0 < going.done == total
        kind = "primary" if finished else "tertiary"
        if st.button("Run an experiment", type=kind, icon=":material/science:", disabled=not going.done):
            address.leave_for("evaluate", new="1", dataset=judging.test_set.id)
            switch("evaluate")


def _step(label: str, key: str, question: str | None) -> None:
    if st.button(label, key=f"round_{key}", type="tertiary", shortcut=key, disabled=question is None):
        address.put(q=question)
        st.rerun()


def _list(going: Round) -> None:
    rows = [
        {"id": str(n), "name": text, "cells": {"question": text, "judged": count}}
        for n, (text, count) in enumerate(zip(going.questions, going.judged, strict=True))
    ]
    many = len(rows) > MANY
    with st.container(height=ROOM if many else "content", border=False):
        chosen = table(
            "round_questions", COLUMNS, rows, label="Questions of the round", noun="questions", opens=True, filters=many
        )
    if chosen.opened:
        address.put(q=going.questions[int(chosen.opened)])
        st.rerun()
