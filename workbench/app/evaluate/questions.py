"""Single questions: a heat map of all runs, the changes between two runs, and their rankings for one question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from evals.experiments.catalogue import Experiments
from evals.experiments.leaderboard import Change, check_comparable, find_changes, scores_by_question
from evals.experiments.runs import CellResult, RankedPassage
from evals.gateway import map_document_ids
from evals.measures.metrics import metric_title
from evals.test_set import StoredCorpus, TestSet
from workbench.app.evaluate.charts import make_changes_chart, make_heat_map, read_selection
from workbench.app.evaluate.outcome import ExperimentOutcome, format_run_title, load_outcome
from workbench.app.state import address
from workbench.app.state.shared import current_theme, show_value
from workbench.app.widgets.looks import escape_markdown, make_label_function, render_mark, strip_markdown
from workbench.app.widgets.reader import open_document
from workbench.app.widgets.table import Column, show_table
from workbench.errors import NotFound, WorkbenchError
from workbench.formatting import count_text

if TYPE_CHECKING:
    from workbench.types import Document
    from workbench.workbench import Workbench

# Rankings of one question by two runs

MAX_HITS_SHOWN = 10
MAX_SNIPPET_CHARS = 260  # characters of a passage


RANKING_COLUMNS = (Column("document", "Document"), Column("grade", "Judged", "state"), Column("other", "In the other"))
_GRADES = {0: ("failed", "not relevant"), 1: ("waiting", "partly")}  # above: relevant, as for binary grades


def show_rankings(wb: Workbench, test_set: TestSet, question_id: str, pair: Sequence[CellResult], metric: str) -> None:
    """Show both rankings; a document's title opens it at the found passage."""
    documents = JudgedDocuments(wb, test_set)
    grades = test_set.qrels.get(question_id, {})
    binary = max(grades.values(), default=0) <= 1
    for side, letter, cell, other in zip(st.columns(2, gap="large"), "AB", pair, reversed(pair), strict=True):
        with side:
            _show_ranking(letter, _build_column(cell, other, question_id, grades, documents), cell, binary)
            value = cell.run.values[metric].get(question_id, 0.0) if cell.run else 0.0
            st.caption(f"{metric_title(metric)} {value:.3f}")


def _show_ranking(letter: str, column: Mapping[str, Any], cell: CellResult, binary: bool) -> None:
    title = escape(format_run_title(cell))
    st.html(f'<h3 style="font-size:15px;margin:0">{render_mark(cell.cell.strategy)} {letter} {title}</h3>')
    hits: list[dict[str, Any]] = column["hits"]
    rows = [
        {
            "id": str(hit["rank"]),
            "name": hit["title"],
            "notes": {"document": hit["text"]},
            "cells": {
                "document": f"{hit['rank']} {hit['title']}",
                "grade": _grade_cell(hit["grade"], binary),
                "other": hit["moved"],
            },
        }
        for hit in hits
    ]
    label, key = f"Ranking {letter}", f"ranking_{letter}"
    empty = "No results."
    opened = show_table(
        key, RANKING_COLUMNS, rows, label=label, noun="documents", empty=empty, opens=True, filters=False, stacks=True
    ).opened
    hit = next((hit for hit in hits if str(hit["rank"]) == opened), None)
    if hit is not None and hit["id"]:
        open_document(hit["id"], hit["start"], hit["end"])
    if column["missed"]:
        st.caption(f"**Relevant but not shown:** {escape_markdown(', '.join(column['missed']))}")


def _grade_cell(grade: int | None, binary: bool) -> dict[str, str]:
    if grade is None:
        return {"state": "same", "text": "not judged"}
    state, text = ("done", "relevant") if binary and grade > 0 else _GRADES.get(grade, ("done", "relevant"))
    return {"state": state, "text": text}


def _explain_on_compare(
    test_set: TestSet, question_id: str, text: str, pair: Sequence[CellResult], metric: str, wb: Workbench
) -> None:
    """Open Compare with the strategies of both runs, and with Why for the document that the worse one lost."""
    lost = min(pair, key=lambda cell: cell.run.values[metric].get(question_id, 0.0) if cell.run else 0.0)
    answer = lost.run.answers.get(question_id) if lost.run else None
    ranks = {key: rank for rank, key in enumerate(answer.documents if answer else ())}
    grades = test_set.qrels.get(question_id, {})
    wanted = [key for key, grade in grades.items() if grade > 0]
    worst = max(wanted, key=lambda key: (ranks.get(key, len(ranks)), grades[key]), default="")
    document = JudgedDocuments(wb, test_set).get(worst)
    cells = [cell.cell for cell in pair]
    address.store_for_next_visit(
        "compare",
        q=text,
        s=list(dict.fromkeys(cell.strategy for cell in cells)),
        set=[f"{cell.strategy}.{name}={value}" for cell in cells for name, value in cell.parameters.items()],
        on=list(dict.fromkeys(cell.index for cell in cells if cell.index)),
        look="why",
        by=lost.cell.strategy + (f"@{lost.cell.index}" if lost.cell.index else ""),
        missed=document.id if document else "",
    )
    address.switch_page("compare")


class JudgedDocuments:
    """Documents by their keys in judgments; each is read once."""

    def __init__(self, wb: Workbench, test_set: TestSet) -> None:
        self._workbench, self._test_set = wb, test_set
        self._ids = map_document_ids(wb, test_set)
        self._documents: dict[str, Document | None] = {}
        self._titles: dict[str, str] = {}

    def get(self, key: str) -> Document | None:
        """Return a document, or None if it was deleted."""
        if key not in self._documents:
            try:
                self._documents[key] = self._workbench.documents.get(self._ids.get(key, key))
            except NotFound:
                self._documents[key] = None
        return self._documents[key]

    def name(self, key: str) -> str:
        """Return a document's title without reading its text."""
        if not self._titles:
            source = self._test_set.corpus.source_id if isinstance(self._test_set.corpus, StoredCorpus) else None
            self._titles = {
                document.id: document.title for document in self._workbench.documents.list(source_id=source)
            }
        return self._titles.get(self._ids.get(key, key), "").strip() or key

    def title(self, key: str) -> str:
        """Return a document's title, else its first words, or its key if it was deleted."""
        document = self.get(key)
        if document is None:
            return key
        return document.title.strip() or " ".join((document.text or key)[:70].split())


def _build_column(
    cell: CellResult,
    other: CellResult,
    question_id: str,
    grades: Mapping[str, int],
    documents: JudgedDocuments,
) -> dict[str, Any]:
    answer = cell.run.answers[question_id] if cell.run and question_id in cell.run.answers else None
    keys = answer.documents[:MAX_HITS_SHOWN] if answer else ()
    elsewhere = other.run.answers[question_id].documents if other.run and question_id in other.run.answers else ()
    passages = {hit.document: hit for hit in reversed(answer.passages)} if answer else {}
    deep = list(answer.documents) if answer else []
    wanted = [key for key, grade in grades.items() if grade > 0]
    return {
        "hits": [
            _build_hit(rank, key, passages.get(key), grades.get(key), list(elsewhere), documents)
            for rank, key in enumerate(keys, start=1)
        ],
        "missed": [_describe_missed(documents.title(key), key, deep) for key in wanted if key not in keys],
    }


def _describe_missed(title: str, key: str, deep: Sequence[str]) -> str:
    return f"{title} (rank {deep.index(key) + 1})" if key in deep else f"{title} (not in its top {len(deep)})"


def _build_hit(
    rank: int,
    key: str,
    passage: RankedPassage | None,
    grade: int | None,
    elsewhere: Sequence[str],
    documents: JudgedDocuments,
) -> dict[str, Any]:
    document = documents.get(key)
    text = (document.text or "")[passage.start : passage.end] if document and passage else ""
    other_rank = elsewhere.index(key) + 1 if key in elsewhere else None
    absent = f"not in the other's top {len(elsewhere)}" if elsewhere else "no results from the other"
    return {
        "rank": rank,
        "id": document.id if document else None,
        "title": documents.title(key),
        "grade": grade,
        "text": strip_markdown(text)[:MAX_SNIPPET_CHARS],
        "start": passage.start if passage else 0,
        "end": passage.end if passage else 0,
        "moved": absent if other_rank is None else f"rank {other_rank} in the other",
    }


CHANGE_COLUMNS = (
    Column("question", "Question"),
    Column("first", "A", "shown", "right"),
    Column("second", "B", "shown", "right"),
    Column("difference", "B - A", "shown", "right"),
)
ROW_HEIGHT_PX = 26  # pixels per run in the heat map
LIST_HEIGHT_PX = 420  # height in pixels of the list of changed questions
MAX_QUESTIONS_DRAWN = 400  # questions drawn: those on which runs differ most


def show_questions(wb: Workbench, outcome: ExperimentOutcome, pair: tuple[str, str] | None) -> None:
    """Show the heat map, then the comparison of the two picked runs."""
    test_set = Experiments(wb).test_set(outcome.experiment)
    texts = {question.id: question.text for question in test_set.questions}
    _show_heat_map(outcome, texts)
    first = outcome.cell(pair[0]) if pair else None
    if pair is None or first is None:
        st.caption("Pick runs A and B in the leaderboard to compare them.")
        return
    st.subheader("Changes between A and B", anchor=False)
    other = _choose_other_experiment(wb, outcome)
    second = outcome.cell(pair[1]) if other is outcome else _find_same_run(other, first)
    if second is not None:
        _show_changes(outcome, first, second, texts)
        _show_question(wb, outcome, test_set, [first, second], texts)


def _show_heat_map(outcome: ExperimentOutcome, texts: Mapping[str, str]) -> None:
    st.subheader(f"{metric_title(outcome.metric)} by question", anchor=False)
    st.caption("Each column is a question, hardest on the left. Click one to see its rankings below.")
    names = [format_run_title(cell) for cell in outcome.done_cells]
    ids, values = make_grid(outcome)
    state: Any = st.echarts_chart(
        make_heat_map([texts.get(key, key) for key in ids], names, values, current_theme()),
        key=f"heat_{outcome.experiment.id}_{outcome.metric}",
        on_select="rerun",
        height=96 + ROW_HEIGHT_PX * len(names),
        alt=f"{outcome.metric} of {len(ids)} questions by {len(names)} runs",
    )
    place = read_selection(state)
    if place is not None and place < len(values):
        _choose_question(ids[values[place][0]], "heat")


def make_grid(outcome: ExperimentOutcome) -> tuple[list[str], list[tuple[int, int, float]]]:
    """Return the questions from hard to easy, and (question, run, value) for every cell of the heat map."""
    rows = scores_by_question(outcome.done_cells, outcome.metric)
    spread = {key: max(values.values()) - min(values.values()) for key, values in rows.items()}
    columns = sorted(rows, key=lambda key: -spread[key])[:MAX_QUESTIONS_DRAWN]
    ids = sorted(columns, key=lambda key: (sum(rows[key].values()), key))
    labels = [cell.cell.label for cell in outcome.done_cells]
    return ids, [(x, y, rows[key].get(label, 0.0)) for x, key in enumerate(ids) for y, label in enumerate(labels)]


def _choose_other_experiment(wb: Workbench, outcome: ExperimentOutcome) -> ExperimentOutcome:
    """Ask for B's experiment, to compare A with the same run in it."""
    others = {
        experiment.id: experiment.title
        for experiment in Experiments(wb).list(outcome.experiment.test_set_id)
        if experiment.id != outcome.experiment.id
    }
    if not others:
        return outcome
    here = {"": "this experiment"}
    chosen = st.selectbox(
        "Take B from", ["", *others], format_func=make_label_function(here | others), key="other_experiment", width=420
    )
    if not chosen:
        return outcome
    other = load_outcome(wb, chosen, outcome.metric)
    try:
        check_comparable(outcome.experiment, other.experiment)
    except WorkbenchError as error:
        st.warning(escape_markdown(str(error)))
        return outcome
    return other


def _find_same_run(other: ExperimentOutcome, first: CellResult) -> CellResult | None:
    same = next((cell for cell in other.done_cells if cell.cell.label == first.cell.label), None)
    if same is None:
        st.caption("The other experiment does not have this run.")
    return same


def _show_changes(outcome: ExperimentOutcome, first: CellResult, second: CellResult, texts: Mapping[str, str]) -> None:
    differ = find_changes(first, second, outcome.metric)
    won = sum(change.difference > 0 for change in differ)
    same = len(first.run.values[outcome.metric]) - len(differ) if first.run else 0
    st.markdown(
        f"**A {escape_markdown(format_run_title(first))}** → **B {escape_markdown(format_run_title(second))}**: "
        f"{count_text(won, 'question')} better, {len(differ) - won} worse, {same} the same."
    )
    if not differ:
        return
    left, right = st.columns([4, 7], gap="large")
    with left:
        state: Any = st.echarts_chart(
            make_changes_chart(differ, texts, current_theme()),
            key=f"changes_{first.run_id}_{second.run_id}",
            on_select="rerun",
            height=300,
            alt=f"{won} questions better, {len(differ) - won} worse",
        )
        place = read_selection(state)
        if place is not None and place < len(differ):
            _choose_question(differ[place].question_id, "changes")
    with right, st.container(height=LIST_HEIGHT_PX, border=False):
        opened = show_table(
            "changed",
            CHANGE_COLUMNS,
            _make_rows(differ, texts),
            label="Changed questions",
            noun="questions",
            opens=True,
        ).opened
        if opened:
            _choose_question(opened, None)


def _make_rows(differ: Sequence[Change], texts: Mapping[str, str]) -> list[dict[str, Any]]:
    def score_cell(value: float, form: str = ".3f") -> dict[str, Any]:
        return {"text": f"{value:{form}}", "order": value}

    return [
        {
            "id": change.question_id,
            "name": texts.get(change.question_id, change.question_id),
            "cells": {
                "question": texts.get(change.question_id, change.question_id),
                "first": score_cell(change.first),
                "second": score_cell(change.second),
                "difference": score_cell(change.difference, "+.3f"),
            },
        }
        for change in differ
    ]


def _choose_question(question_id: str, chart: str | None) -> None:
    """Put a question in the URL; a chart keeps its selection, so a repeated one is ignored."""
    if chart is not None and st.session_state.get(f"chosen_by_{chart}") == question_id:
        return
    if chart is not None:
        st.session_state[f"chosen_by_{chart}"] = question_id
    address.put(ask=question_id)


def _show_question(
    wb: Workbench, outcome: ExperimentOutcome, test_set: TestSet, pair: Sequence[CellResult], texts: Mapping[str, str]
) -> None:
    ids, _ = make_grid(outcome)
    named = address.get("ask")
    show_value("asked", named if named in texts else ids[0], texts.values())
    st.subheader("One question, two rankings", anchor=False)
    chosen = st.selectbox(
        "Question",
        ids if named in ids or not named else [named, *ids],
        format_func=make_label_function(texts),
        key="asked",
        on_change=lambda: address.put(ask=st.session_state["asked"]),
        label_visibility="collapsed",
    )
    if chosen:
        if all(not cell.cell.file_hash for cell in pair) and st.button(
            "Explain on Compare", icon=":material/help_center:", key="explain_on_compare", type="tertiary"
        ):
            _explain_on_compare(test_set, chosen, texts[chosen], pair, outcome.metric, wb)
        show_rankings(wb, test_set, chosen, pair, outcome.metric)
