"""A round of judging: the test set's questions as a list with progress, the next and the previous one by key."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.judging.judgments import Judging
from workbench.app.shell.navigation import switch
from workbench.app.state import address
from workbench.app.widgets.table import Column, table
from workbench.errors import NotFound
from workbench.sizes import counted

if TYPE_CHECKING:
    from evals.test_set import TestSet

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
