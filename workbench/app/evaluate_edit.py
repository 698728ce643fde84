"""Editing a test set in place: its questions and its judgments as sheets; saving makes a version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from evals.dataset import GRADES, Dataset, Judgment, Question
from evals.store import DatasetInfo, DatasetStore
from workbench.app.evaluate_rankings import Documents
from workbench.app.labels import counted, escaped
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    import pandas

    from workbench.workbench import Workbench

MOST = 5_000  # rows of a sheet
GRADE_NAMES = {0: "not", 1: "partly", 2: "relevant", 3: "highly relevant"}
ORIGINS = {
    "folder": "a folder",
    "person": "a person",
    "csv": "CSV",
    "agent": "an agent",
    "synthetic": "made by rule",
    "llm": "made by an LLM",
}


def edit_questions(store: DatasetStore, info: DatasetInfo, dataset: Dataset) -> None:
    """Show the questions as a sheet; rows can be changed, added and taken out."""
    judged = {key: sum(grade > 0 for grade in grades.values()) for key, grades in dataset.qrels.items()}
    rows = [
        {
            "id": q.id,
            "Question": q.text,
            "Reference answer": q.reference_answer,
            "Relevant": judged.get(q.id, 0),
            "From": ORIGINS.get(q.origin, q.origin),
        }
        for q in dataset.questions[:MOST]
    ]
    sheet = st.data_editor(
        _frame(rows, ("id", "Question", "Reference answer", "From"), ("Relevant",)),
        key=f"questions_{info.id}_{info.version}",
        num_rows="dynamic",
        hide_index=True,
        height=520 if len(rows) > 12 else "auto",
        column_order=("Question", "Reference answer", "Relevant", "From"),
        disabled=("Relevant", "From"),
        column_config={
            "Question": st.column_config.TextColumn(required=True, width="large"),
            "Relevant": st.column_config.NumberColumn(help="Documents or passages judged relevant", width="small"),
        },
    )
    if len(dataset.questions) > MOST:
        st.caption(f"The first {MOST:,} are listed; export the test set to change others.")
    if st.button("Save questions", type="primary", key="save_questions"):
        _save(lambda: save_questions(store, info.id, dataset, _records(sheet)))


def save_questions(store: DatasetStore, key: str, dataset: Dataset, rows: Sequence[Mapping[str, Any]]) -> str:
    """Store what differs from the sheet's rows; returns what was done. Raises InvalidInput."""
    before = {question.id: question for question in dataset.questions[:MOST]}
    kept = {row["id"] for row in rows if row.get("id")}
    gone = [question_id for question_id in before if question_id not in kept]
    changed, added = [], []
    for row in rows:
        text, answer = str(row.get("Question") or "").strip(), str(row.get("Reference answer") or "")
        old = before.get(row.get("id") or "")
        if old is None and text:
            added.append(text)
        elif old is not None and (text, answer) != (old.text, old.reference_answer):
            changed.append(Question(old.id, text, answer, old.origin, old.metadata))
    if changed:
        store.add_questions(key, changed)
    new = store.add_questions(key, added)
    if gone:
        store.remove_questions(key, gone)
    return f"{counted(len(new), 'question')} added, {len(changed)} changed, {len(gone)} taken out."


def edit_judgments(workbench: Workbench, store: DatasetStore, info: DatasetInfo, dataset: Dataset) -> None:
    """Show the judgments as a sheet; grades can be changed and rows taken out. New ones come from Compare or a CSV."""
    if not dataset.judgments:
        st.caption(
            "Nothing is judged yet. Turn on Judge in Compare and press a key on each hit, or add a CSV with quotes."
        )
        return
    texts = {question.id: question.text for question in dataset.questions}
    documents = Documents(workbench, dataset)
    listed = list(dataset.judgments[:MOST])
    rows = [
        {
            "place": place,
            "Question": texts.get(j.question_id, j.question_id),
            "Document": documents.name(j.document),
            "Grade": _grade_name(j.grade),
            "Part": _part(j),
        }
        for place, j in enumerate(listed)
    ]
    sheet = st.data_editor(
        _frame(rows, ("Question", "Document", "Grade", "Part"), ("place",)),
        key=f"judgments_{info.id}_{info.version}",
        num_rows="delete",
        hide_index=True,
        height=520 if len(rows) > 12 else "auto",
        column_order=("Question", "Document", "Grade", "Part"),
        disabled=("Question", "Document", "Part"),
        column_config={
            "Grade": st.column_config.SelectboxColumn(options=list(GRADE_NAMES.values()), required=True, width="small"),
            "Question": st.column_config.TextColumn(width="large"),
        },
    )
    if len(dataset.judgments) > MOST:
        st.caption(f"The first {MOST:,} are listed; export the test set to change others.")
    if st.button("Save judgments", type="primary", key="save_judgments"):
        _save(lambda: save_judgments(store, info.id, listed, _records(sheet)))


def save_judgments(store: DatasetStore, key: str, listed: Sequence[Judgment], rows: Sequence[Mapping[str, Any]]) -> str:
    """Store the grades that differ and take out the rows that are gone; returns what was done."""
    grades = {int(row["place"]): _grade(row["Grade"]) for row in rows}
    gone = [judgment for place, judgment in enumerate(listed) if place not in grades]
    changed = [
        Judgment(j.question_id, j.document, grades[place], j.start, j.end, j.quote)
        for place, j in enumerate(listed)
        if place in grades and grades[place] != _grade(_grade_name(j.grade))  # others than these four stay
    ]
    if changed:
        store.judge_all(key, changed)
    for judgment in gone:
        store.judge(key, judgment.question_id, judgment.document, None, start=judgment.start, end=judgment.end)
    return f"{counted(len(changed), 'judgment')} changed, {len(gone)} taken out."


def _grade_name(grade: int) -> str:
    return GRADE_NAMES[min(3, max(0, grade))]


def _grade(name: str) -> int:
    return next((grade for grade, known in GRADE_NAMES.items() if known == name), GRADES["relevant"])


def _part(judgment: Judgment) -> str:
    if not judgment.is_span:
        return "the whole"
    return judgment.quote or f"characters {judgment.start} to {judgment.end}"


def _frame(rows: Sequence[Mapping[str, Any]], texts: Sequence[str], numbers: Sequence[str]) -> pandas.DataFrame:
    """Return rows as a frame whose columns have their kinds even where there is no row."""
    import pandas as pd

    kinds = dict.fromkeys(texts, "string") | dict.fromkeys(numbers, "Int64")
    return pd.DataFrame(rows, columns=pd.Index(kinds)).astype(kinds)


def _records(sheet: pandas.DataFrame) -> list[dict[str, Any]]:
    """Return a sheet's rows; empty cells are None."""
    return sheet.astype(object).where(sheet.notna(), None).to_dict("records")


def _save(change: Callable[[], str]) -> None:
    try:
        st.session_state["notice"] = change()
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    st.rerun()
