"""The queue of questions next to the board, and the judgments of a test set."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import compress, count, islice
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode

import streamlit as st

from workbench.app.compare.matches import format_place_key, place_key
from workbench.app.shell.scope_bar import format_scope, is_same_scope, make_scope_changes, read_lasting_scope
from workbench.app.state import address
from workbench.app.widgets.looks import escape_markdown, format_measured, make_label_function, strategy_title
from workbench.app.widgets.notices import report_errors
from workbench.app.widgets.table import Column, show_table
from workbench.errors import Conflict, NotFound, WorkbenchError
from workbench.formatting import count_text
from workbench.types import Comparison

if TYPE_CHECKING:
    from evals.test_set import Question, TestSet
    from evals.test_sets.store import Rating, TestSetInfo, TestSetStore
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
    rater: str = ""  # name of the person, if several judge

    @property
    def about(self) -> str:
        """A key for the question, the test set and the rater."""
        return f"{self.test_set.id} {self.rater} {self.question}"

    @property
    def scale(self) -> list[tuple[str, int]]:
        """The titles of the grades, best first."""
        from evals.test_set import grade_titles

        return [(title, grade) for grade, title in enumerate(grade_titles(self.test_set.grades))][::-1]

    def grades(self) -> dict[str, int]:
        """Return {place: grade} for every judged span of the question: the rater's own, or those that count."""
        test_set = self.load()
        question = _find_question(test_set, self.question)
        return {
            format_place_key(judgment.document, judgment.start or 0, judgment.end or 0): judgment.grade
            for judgment in test_set.judgments
            if question is not None and judgment.question_id == question.id and judgment.is_span
        }

    def load(self) -> TestSet:
        """Return the current test set, with the judgments of the rater only if there is one: raters judge blind.

        Raises:
            NotFound: It has been deleted.
        """
        test_set = self._store.load(self.test_set.id)
        if not self.rater:
            return test_set
        own = tuple(rating.judgment for rating in self.ratings() if rating.rater == self.rater)
        return replace(test_set, judgments=own)

    def ratings(self) -> list[Rating]:
        """Return the judgments of all raters. Raises NotFound."""
        return self._store.ratings(self.test_set.id)

    def keep(
        self, comparison: Comparison, marks: Sequence[Mark], shown: Mapping[str, int | None] | None = None
    ) -> list[str]:
        """Store marks, and the question if it is new; skip places that the board does not show.

        Args:
            comparison: The comparison on the board.
            marks: The new marks.
            shown: The grades that the board showed before, by place; None if unknown.

        Returns:
            What each mark replaced that the board did not show: a grade stored by someone else in the meantime.

        Raises:
            NotFound: The test set has been deleted.
            InvalidInput: A grade is invalid.
        """
        hits = {place_key(hit): hit for result in comparison.strategies.values() for hit in result}
        last = {place: grade for _, place, grade in marks if place in hits}
        if not last:
            return []
        before, titles = self.grades(), {grade: title for title, grade in self.scale}
        stored = self._ensure_question()
        for place, grade in last.items():
            hit = hits[place]
            self._store.judge(
                self.test_set.id, stored.id, hit.document_id, grade,
                start=hit.start, end=hit.end, quote=hit.text, rater=self.rater,
            )  # fmt: skip
        return [
            f'"{hits[place].document_title}" was {titles.get(before[place], before[place])}'
            for place, grade in last.items()
            if shown is not None and before.get(place) not in (None, grade, shown.get(place))
        ]

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


def find_turns(wb: Workbench, question: str) -> tuple[str, ...]:
    """Return the earlier turns of the question in the test set of the URL; () if it is not a part of a conversation."""
    from evals.test_sets.store import TestSetStore

    key, found = address.get("case") or address.get("judge"), None
    if key and question.strip():
        with suppress(NotFound):  # deleted
            found = _find_question(TestSetStore(wb).load(key), question)
    return found.turns if found else ()


def read_marks(payload: object, after: int) -> list[Mark]:
    """Return the marks sent by the browser whose number is above ``after``."""
    rows = payload.get("marks") if isinstance(payload, Mapping) else None
    marks = [(int(number), str(place), grade) for number, place, grade in rows or ()]
    return [mark for mark in marks if mark[0] > after]


# The queue: questions to ask next

QUEUE_TITLES = {"judge": "Judge", "history": "History", "agents": "Agents", "saved": "Saved"}
MAX_QUEUED = 100  # questions in each list
# Of a comparison: these are stored with it in the history. The rest of the URL is about panes and panels.
COMPARISON_KEYS = ("q", "s", "n", "set", "on", "without", "names", "case", *address.SCOPE_KEYS)
_SELECTION_KEYS = ("why", "by", "missed", "doc", "at", "cut", "form", "part")  # of the passage in the inspector


@dataclass(frozen=True, slots=True)
class QueuedQuestion:
    """A question in the queue."""

    id: str  # key of its row
    text: str  # the question
    count: int | None = None  # judged passages, or calls
    note: str = ""  # a second line
    changes: Mapping[str, Sequence[str] | None] = field(default_factory=dict)  # further values of its URL


def show_queue(wb: Workbench, question: str, part: str) -> QuestionJudging | None:
    """Show a part of the queue; return the judging of the current question, or None if judging is off."""
    _keep_new_test_set()
    sets = {info.id: info for info in list_own_test_sets(wb)}
    chosen = sets.get(address.get("judge"))
    judging = QuestionJudging(wb, chosen, question, address.get("rater")) if chosen else None
    if part == "judge":
        _show_test_set(wb, sets, judging)
    elif part == "history":
        _show_list(question, _list_history(wb), "Questions that you ask are listed here.", place=_current_address())
        st.button("Clear history", key="clear_history", type="tertiary", on_click=wb.history.clear)
    elif part == "agents":
        _show_list(question, _list_agent_questions(wb), "No search of an agent came back empty yet.", counted="Calls")
    else:
        _show_saved(wb, question)
    return judging


def store_in_history(wb: Workbench, question: str) -> None:
    """Store the comparison of the URL in the history, once per visit and comparison."""
    shown = _current_address()
    if st.session_state.get("history_stored") != shown:
        st.session_state["history_stored"] = shown
        with suppress(WorkbenchError):  # the comparison is shown even if its history is read-only
            wb.history.add(question, shown)


def _current_address() -> str:
    return urlencode([(name, value) for name in COMPARISON_KEYS for value in address.get_all(name)])


def _list_history(wb: Workbench, *, saved_only: bool = False) -> list[QueuedQuestion]:
    past = wb.history.list(saved_only=saved_only, limit=MAX_QUEUED)
    return [
        QueuedQuestion(one.address, one.question, note=_describe(parse_qs(one.address)), changes=_parse(one.address))
        for one in past
    ]


def _parse(stored: str) -> dict[str, Sequence[str] | None]:
    """Return the changes of the URL that restore a comparison."""
    return {**dict.fromkeys(COMPARISON_KEYS), **parse_qs(stored)}


def _describe(values: Mapping[str, Sequence[str]]) -> str:
    """Return how a comparison differs from the default one."""
    strategies = ", ".join(strategy_title(name) for name in values.get("s", ()))
    scoped = any(name in address.SCOPE_KEYS for name in values)
    settings = count_text(len(values["set"]), "setting") if "set" in values else ""
    return " · ".join(part for part in (strategies, settings, "scoped" if scoped else "") if part)


def _list_agent_questions(wb: Workbench) -> list[QueuedQuestion]:
    """Return the questions of agents that found nothing in the current scope, the newest first."""
    calls = wb.tool_calls.list(zero_only=True, queries_only=True, limit=None)
    within = wb.requests.are_within([call.scope for call in calls], read_lasting_scope())
    counts = Counter(call.query for call in compress(calls, within) if call.query)
    return [QueuedQuestion(text, text, count) for text, count in islice(counts.items(), MAX_QUEUED)]


def _show_saved(wb: Workbench, question: str) -> None:
    """Show the saved comparisons, and the button that saves or removes the current one."""
    saved, shown = _list_history(wb, saved_only=True), _current_address()
    if question.strip():
        is_saved = any(past.id == shown for past in saved)
        st.button(
            "Remove from saved" if is_saved else "Save this comparison",
            key="save_comparison",
            icon=":material/bookmark_remove:" if is_saved else ":material/bookmark_add:",
            on_click=_save_comparison,
            args=(wb, question, shown, not is_saved),
        )
    _show_list(question, saved, "Save a comparison to find it here.", place=shown)


def _save_comparison(wb: Workbench, question: str, shown: str, saved: bool) -> None:
    """Save a comparison or remove it; one whose search is not complete is not in the history yet."""
    with report_errors(st.toast):
        wb.history.add(question, shown)
        wb.history.save([shown], saved=saved)


def _show_list(
    question: str, rows: Sequence[QueuedQuestion], empty: str, *, counted: str = "", place: str | None = None
) -> None:
    """Show questions as a table with a filter; opening one asks it.

    Args:
        question: The current question.
        rows: The questions.
        empty: Text shown if there are none.
        counted: Heading of the counts; "" without them.
        place: Id of the current row; by default the one with the current question.
    """
    wanted = " ".join(question.split()).casefold()
    current = next((row.id for row in rows if (row.id == place if place else row.text.casefold() == wanted)), None)
    chosen = show_table(
        f"queue_{address.get('queue', 'judge')}",
        (Column("question", "Question"), *([Column("count", counted, "number", narrow=True)] if counted else [])),
        [
            {"id": row.id, "name": row.text, "current": row.id == current}
            | {"cells": {"question": row.text, "count": row.count}, "notes": {"question": row.note}}
            for row in rows
        ],
        label="Queue",
        noun="questions",
        empty=empty,
        opens=True,
        filters=len(rows) >= MIN_ROWS_FILTERED,
    )
    opened = next((row for row in rows if row.id == chosen.opened), None)
    if opened is not None:
        ask_question(opened.text, opened.changes)
        st.rerun()


def ask_question(text: str, changes: Mapping[str, Sequence[str] | None] = MappingProxyType({})) -> None:
    """Put another question into the URL; the inspector keeps its tab, and a phone shows the results."""
    pane = "results" if address.get("pane") else None
    fresh = dict.fromkeys(("without", "names", *_SELECTION_KEYS))
    address.put(**{**fresh, "q": text, "pane": pane, **changes})


# The test set that is judged


def _show_test_set(wb: Workbench, sets: dict[str, TestSetInfo], judging: QuestionJudging | None) -> None:
    """Show the test set with its progress and questions, or the form that creates one."""
    value = address.get("judge")
    # without counts: Streamlit identifies options by label, so labels must not change between clicks
    titles = {key: info.title for key, info in sets.items()}
    if value and value not in titles:
        titles[value] = "Deleted test set"
    if titles:
        key = f"judge_set_{value}"  # one per value: a closing list may otherwise send the former value
        st.selectbox(
            "Test set",
            list(titles),
            list(titles).index(value) if value else None,
            placeholder="Choose a test set",
            format_func=make_label_function(titles),
            key=key,
            on_change=_choose_test_set,
            args=(key, sets),
            help="Stores your judgments with the question. Evaluate uses them to score strategies.",
        )
    if judging is not None:
        _show_judged_scope(wb, judging.test_set)
    elif value:
        _show_stop_button()
    if judging is not None:
        _show_rater(judging)
        _show_progress(judging)
        return
    st.caption("Pick or create a test set, then judge results with 1, 2, 3. Evaluate scores the strategies on it.")
    with st.form("judge_new", border=False):
        st.text_input(
            "New test set",
            key="judge_title",
            placeholder="Title (defaults to today's date)",
            autocomplete="off",
        )
        st.form_submit_button("Create and judge", on_click=_create_test_set, args=(wb,))


def _show_rater(judging: QuestionJudging) -> None:
    """Ask for the name of the rater, and show how far the raters agree."""
    from evals.test_sets.raters import measure_raters

    key = f"judge_rater_{judging.rater}"
    st.text_input(
        "Your name",
        judging.rater,
        key=key,
        max_chars=60,
        placeholder="Only if several people judge",
        autocomplete="name",
        on_change=_choose_rater,
        args=(key,),
        help="Stores your judgments under this name and shows only these. Without a name, your grades are final.",
    )
    with suppress(NotFound):  # deleted in another tab
        ratings = judging.ratings()
        if any(rating.rater for rating in ratings):
            found = measure_raters(judging.test_set.title, judging.test_set.grades, ratings)
            st.caption(escape_markdown(found.describe()))


def _choose_rater(key: str) -> None:
    address.put(rater=" ".join(str(st.session_state[key]).split()))


NEW_SET_S = 30.0  # seconds in which requests that were in flight may still lack a new test set


def _recent_test_set() -> str:
    """Return the test set that this session has just created, else ""."""
    made, at = st.session_state.get("judge_made", ("", 0.0))
    return made if time.monotonic() - at < NEW_SET_S else ""


def _choose_test_set(key: str, sets: Mapping[str, TestSetInfo]) -> None:
    """Judge for the chosen test set, in its scope; a closing list may send no choice, which changes nothing."""
    if chosen := st.session_state[key]:
        st.session_state.pop("judge_made", None)
        address.put(judge=chosen, **(make_scope_changes(sets[chosen].scope) if chosen in sets else {}))


def _show_judged_scope(wb: Workbench, info: TestSetInfo) -> None:
    """Show the scope of a test set, and offer it if another one is searched."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(format_measured("", info.over), width="content")
        _show_stop_button()
    searched = read_lasting_scope()
    if not is_same_scope(wb, info.scope, searched):
        st.caption(
            f":material/warning: These results are from {escape_markdown(format_scope(wb, searched))}, but "
            "experiments with this test set search its own scope."
        )
        changes = make_scope_changes(info.scope)
        st.button("Use its scope", key="use_scope", type="tertiary", on_click=address.put, kwargs=changes)


def _show_stop_button() -> None:
    st.button("Stop judging", key="stop_judging", type="tertiary", on_click=_stop_judging)


def _stop_judging() -> None:
    st.session_state.pop("judge_made", None)
    address.put(judge=None)


def _keep_new_test_set() -> None:
    """Keep the new test set selected, even if a request that was in flight does not name it."""
    if _recent_test_set() and not address.get("judge"):
        address.put(judge=_recent_test_set())


def _create_test_set(wb: Workbench) -> None:
    """Create a test set (the date is the default title) and select it.

    An existing one of that title is reused if it has the same scope; otherwise the new one gets a number.
    """
    title = str(st.session_state["judge_title"]).strip() or datetime.now().astimezone().strftime("Judged on %-d %B %Y")
    with report_errors(st.toast):
        test_set_id = _create_or_find(wb, title)
        st.session_state["judge_made"] = (test_set_id, time.monotonic())
        address.put(judge=test_set_id)


def _create_or_find(wb: Workbench, title: str) -> str:
    from evals.test_sets.store import TestSetStore

    scope, numbered = read_lasting_scope(), title
    for number in count(2):
        try:
            return TestSetStore(wb).create(numbered, scope=scope).id
        except Conflict:  # also if two clicks or tabs create it at the same time
            existing = next((info for info in list_own_test_sets(wb) if info.title == numbered), None)
            if existing is None:
                raise
            if is_same_scope(wb, existing.scope, scope):
                return existing.id
        numbered = f"{title} ({number})"
    raise AssertionError


MIN_ROWS_FILTERED = 12  # from this number of questions, a list has a filter


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


def _show_progress(judging: QuestionJudging) -> None:
    """Show progress, navigation and the questions; if all are judged, emphasise running an experiment."""
    try:
        test_set = judging.load()
    except NotFound:  # deleted in another tab, which the choice shows
        return
    going = measure_progress(test_set, judging.question)
    changes = make_scope_changes(judging.test_set.scope)  # a question of a test set is asked in its scope
    total = len(going.questions)
    progress = "Your first judgment adds this question."
    if total:
        progress = f"{going.done:,} of {count_text(total, 'question')} judged"
    if not judging.rater and going.done > (runs := len(test_set.answerable)):
        progress += f". An experiment runs the {runs:,} with a relevant result."
    bar = f'<progress max="{max(total, 1)}" value="{going.done}" aria-label="Judged questions"></progress>'
    st.html(f'<p class="wb-round">{bar} {progress}</p>')
    with st.container(key="judging_round", horizontal=True, vertical_alignment="center", gap="small"):
        _show_step("Previous", "P", going.previous, changes)
        _show_step("Next unjudged", "N", going.next, changes)
    finished = 0 < going.done == total
    kind = "primary" if finished else "tertiary"
    if st.button("Run experiment", type=kind, icon=":material/science:", disabled=not going.done):
        address.store_for_next_visit("evaluate", new="1", dataset=judging.test_set.id)
        address.switch_page("evaluate")
    rows = [
        QueuedQuestion(str(place), text, count, changes=changes)
        for place, (text, count) in enumerate(zip(going.questions, going.judged, strict=True))
    ]
    _show_list(judging.question, rows, "The questions that you judge are listed here.", counted="Judged")


def _show_step(label: str, key: str, question: str | None, changes: Mapping[str, Sequence[str]]) -> None:
    if st.button(label, key=f"round_{key}", type="tertiary", shortcut=key, disabled=question is None):
        ask_question(question or "", changes)
        st.rerun()
