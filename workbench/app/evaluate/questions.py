"""Single questions: a heat map of all runs, the changes between two runs, and their rankings for one question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from evals.evaluation import Experiments, find_changes, metric_title
from evals.experiments.leaderboard import Change, scores_by_question
from evals.experiments.runs import CellResult, Ranking
from evals.gateway import map_document_ids
from evals.test_set import Question, StoredCorpus, TestSet, grade_titles
from workbench.app.evaluate.charts import make_heat_map, read_selection
from workbench.app.evaluate.outcome import ExperimentOutcome, format_run_title
from workbench.app.shell.scope_bar import make_scope_changes
from workbench.app.state import address
from workbench.app.state.shared import current_theme
from workbench.app.widgets.looks import escape_markdown, render_mark, strip_markdown
from workbench.app.widgets.reader import open_document
from workbench.app.widgets.rows import Noted, Press, RowCell, make_figure, show_rows
from workbench.errors import NotFound
from workbench.formatting import count_text

if TYPE_CHECKING:
    from workbench.types import Document
    from workbench.workbench import Workbench

# Rankings of one question by two runs

MAX_HITS_SHOWN = 10
MAX_SNIPPET_CHARS = 260  # characters of a passage

RANKING_COLUMNS = ("Document", "Judged", "In the other")


def show_rankings(wb: Workbench, test_set: TestSet, question_id: str, pair: Sequence[CellResult], metric: str) -> None:
    """Show the rankings of one or two runs; a document's title opens it at the found passage."""
    documents = JudgedDocuments(wb, test_set)
    answers = [cell.run.answers.get(question_id) if cell.run else None for cell in pair]
    others = reversed(answers) if len(pair) > 1 else [None]
    for side, letter, cell, answer, other in zip(
        st.columns(len(pair), gap="large"), "AB", pair, answers, others, strict=False
    ):
        with side:
            title = escape(format_run_title(cell))
            st.html(f'<h3 style="font-size:15px;margin:0">{render_mark(cell.cell.strategy)} {letter} {title}</h3>')
            elsewhere = (other.documents if other else ()) if len(pair) > 1 else None
            _show_ranking(letter, answer, elsewhere, test_set, question_id, documents)
            value = cell.run.values[metric].get(question_id, 0.0) if cell.run else 0.0
            st.caption(f"{metric_title(metric)} {value:.3f}")


def _show_ranking(
    letter: str,
    answer: Ranking | None,
    elsewhere: Sequence[str] | None,
    test_set: TestSet,
    question_id: str,
    documents: JudgedDocuments,
) -> None:
    """Show a ranking, with the ranks of its documents ``elsewhere`` if it is one of two."""
    grades = test_set.qrels.get(question_id, {})
    is_binary = max(grades.values(), default=0) <= 1
    titles = grade_titles(2 if is_binary else test_set.grades)
    ranked = list(answer.documents) if answer else []
    passages = {hit.document: hit for hit in reversed(answer.passages)} if answer else {}
    rows: dict[str, Sequence[RowCell]] = {}
    for rank, key in enumerate(ranked[:MAX_HITS_SHOWN], start=1):
        document, passage = documents.get(key), passages.get(key)
        text = (document.text or "")[passage.start : passage.end] if document and passage else ""
        found = Noted(f"{rank} {documents.title(key)}", strip_markdown(text)[:MAX_SNIPPET_CHARS])
        moved = [] if elsewhere is None else [_describe_move(key, elsewhere)]
        rows[key] = (found, _grade_cell(grades.get(key), titles), *moved)
    opened = show_rows(
        f"ranking_{letter}", RANKING_COLUMNS[: 2 if elsewhere is None else 3], rows, label=f"Ranking {letter}",
        noun="documents", empty="No results.", opens=True,
    ).opened  # fmt: skip
    if opened and (document := documents.get(opened)):
        passage = passages.get(opened)
        open_document(document.id, passage.start if passage else 0, passage.end if passage else 0)
    missed = [
        f"{documents.title(key)} "
        + (f"(rank {ranked.index(key) + 1})" if key in ranked else f"(not in its top {len(ranked)})")
        for key, grade in grades.items()
        if grade > 0 and key not in rows
    ]
    if missed:
        st.caption(f"**Relevant but not shown:** {escape_markdown(', '.join(missed))}")


def _grade_cell(grade: int | None, titles: Sequence[str]) -> dict[str, str]:
    if grade is None:
        return {"state": "same", "text": "not judged"}
    place = min(max(grade, 0), len(titles) - 1)  # imported grades may be outside the scale
    state = "failed" if not place else "done" if 2 * place >= len(titles) else "waiting"
    return {"state": state, "text": titles[place]}


def _explain_on_compare(
    wb: Workbench, test_set_id: str, test_set: TestSet, question: Question, pair: Sequence[CellResult], metric: str
) -> None:
    """Open Compare with a question of a test set, its scope and judgments, and the runs' strategies.

    Why shows the document that the worse run lost.

    Rankings from files are left out, because Compare cannot repeat them.
    """
    cells = [cell for cell in pair if not cell.cell.file_hash]
    lost = min(cells, key=lambda cell: cell.run.values[metric].get(question.id, 0.0) if cell.run else 0.0)
    answer = lost.run.answers.get(question.id) if lost.run else None
    ranks = {key: rank for rank, key in enumerate(answer.documents if answer else ())}
    grades = test_set.qrels.get(question.id, {})
    wanted = [key for key, grade in grades.items() if grade > 0]
    worst = max(wanted, key=lambda key: (ranks.get(key, len(ranks)), grades[key]), default="")
    document = JudgedDocuments(wb, test_set).get(worst)
    own = test_set.corpus is not None  # a corpus of its own is searched in an index of its own
    indexes = list(dict.fromkeys(cell.index_name if own else cell.cell.index or "" for cell in cells))
    columns = indexes if len(indexes) > 1 or not own else []
    address.store_for_next_visit(
        "compare",
        **make_scope_changes(test_set.scope),
        q=question.text,
        case=test_set.name if question.turns else "",
        judge=test_set_id,
        s=list(dict.fromkeys(cell.cell.strategy for cell in cells)),
        set=[f"{one.cell.strategy}.{name}={value}" for one in cells for name, value in one.cell.parameters.items()],
        index=indexes[:1] if own else [],
        on=[name for name in columns if name],
        look="why",
        by=lost.cell.strategy + (f"@{lost.index_name}" if any(columns) else ""),
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


def _describe_move(key: str, elsewhere: Sequence[str]) -> str:
    """Return the rank of a document in the other ranking, as text."""
    if key in elsewhere:
        return f"rank {elsewhere.index(key) + 1}"
    return f"not in top {len(elsewhere)}" if elsewhere else "no results"


ROW_HEIGHT_PX = 26  # pixels per run in the heat map
LIST_HEIGHT_PX = 420  # height in pixels of the list of questions
MAX_QUESTIONS_DRAWN = 400  # questions drawn: those on which runs differ most


def show_questions(wb: Workbench, outcome: ExperimentOutcome, picks: Sequence[str]) -> None:
    """Show the heat map, then the questions of the picked runs, one or two."""
    test_set = Experiments(wb).test_set(outcome.experiment)
    texts = {question.id: question.text for question in test_set.questions}
    ids, values = make_grid(outcome)
    named = address.get("ask")
    chosen = named if named in texts else ids[0]
    _show_heat_map(outcome, texts, ids, values, chosen, picks)
    pair = [cell for cell in map(outcome.cell, picks) if cell is not None]
    if len(pair) < min(2, len(outcome.done_cells)):
        st.caption("Pick runs A and B in the leaderboard to compare them.")
        return
    if len(pair) == 2:
        st.subheader("A and B by question", anchor=False)
    asked = _show_scores(outcome, pair, texts, chosen)
    st.subheader("One question, two rankings" if len(pair) > 1 else "One question", anchor=False)
    st.markdown(f"**{escape_markdown(texts[chosen])}**")
    if any(not cell.cell.file_hash for cell in pair) and st.button(
        "Explain on Compare", icon=":material/help_center:", key="explain_on_compare", type="tertiary"
    ):
        asked = chosen
    if asked in texts:
        question = next(question for question in test_set.questions if question.id == asked)
        _explain_on_compare(wb, outcome.experiment.test_set_id, test_set, question, pair, outcome.metric)
    show_rankings(wb, test_set, chosen, pair, outcome.metric)


def _show_heat_map(
    outcome: ExperimentOutcome,
    texts: Mapping[str, str],
    ids: Sequence[str],
    values: Sequence[tuple[int, int, float]],
    chosen: str,
    picks: Sequence[str],
) -> None:
    st.subheader(f"{metric_title(outcome.metric)} by question", anchor=False)
    st.caption(
        "Each column is a question, hardest on the left. Click a cell to compare its run with the best one, or pick "
        "the runs in the leaderboard and the question in the list below."
    )
    cells = outcome.done_cells
    place = ids.index(chosen) if chosen in ids else None
    names = [format_run_title(cell) for cell in cells]
    state: Any = st.echarts_chart(
        make_heat_map([texts.get(key, key) for key in ids], names, values, current_theme(), place),
        key=f"heat_{outcome.experiment.id}_{outcome.metric}",
        on_select="rerun",
        height=96 + ROW_HEIGHT_PX * len(names),
        alt=f"{metric_title(outcome.metric)} of {len(ids)} questions by {len(names)} runs",
    )
    clicked = read_selection(state)
    if clicked is None or clicked >= len(values):
        return
    column, row, _ = values[clicked]
    # a chart keeps its selection, so a repeated one is ignored
    if st.session_state.get("clicked_cell") != (outcome.experiment.id, outcome.metric, clicked):
        st.session_state["clicked_cell"] = (outcome.experiment.id, outcome.metric, clicked)
        runs = [cell.run_id for cell in cells]
        best = runs[0] if row else runs[min(1, len(runs) - 1)]
        pair = picks if runs[row] in picks else [runs[row], best] if row else [best, runs[row]]
        address.put(ask=ids[column], ab=list(dict.fromkeys(pair)))
        st.rerun()


def make_grid(outcome: ExperimentOutcome) -> tuple[list[str], list[tuple[int, int, float]]]:
    """Return the questions from hard to easy, and (question, run, value) for every cell of the heat map."""
    rows = scores_by_question(outcome.done_cells, outcome.metric)
    spread = {key: max(values.values()) - min(values.values()) for key, values in rows.items()}
    columns = sorted(rows, key=lambda key: -spread[key])[:MAX_QUESTIONS_DRAWN]
    ids = sorted(columns, key=lambda key: (sum(rows[key].values()), key))
    labels = [cell.cell.label for cell in outcome.done_cells]
    return ids, [(x, y, rows[key].get(label, 0.0)) for x, key in enumerate(ids) for y, label in enumerate(labels)]


def _show_scores(
    outcome: ExperimentOutcome, pair: Sequence[CellResult], texts: Mapping[str, str], chosen: str
) -> str | None:
    """Show the questions with the scores of one or two runs; return the question to explain on Compare, if any."""
    differ = find_changes(pair[0], pair[-1], outcome.metric)
    values = pair[0].run.values[outcome.metric] if pair[0].run else {}
    ids = {change.question_id for change in differ}
    explains = any(not cell.cell.file_hash for cell in pair)
    same = sorted((Change(key, value, value) for key, value in values.items() if key not in ids), key=lambda c: c.first)
    if len(pair) > 1:
        won = sum(change.difference > 0 for change in differ)
        first, second = (escape_markdown(format_run_title(cell)) for cell in pair)
        st.markdown(
            f"**A {first}** → **B {second}**: {count_text(won, 'question')} better, {len(differ) - won} worse, "
            f"{len(same)} the same."
        )
    with st.container(height=LIST_HEIGHT_PX, border=False):
        rows: dict[str, Sequence[RowCell]] = {}
        for change in (*differ, *same):
            second = [make_figure(change.second), make_figure(change.difference, "+.3f")] if len(pair) > 1 else []
            scores = [make_figure(change.first), *second, *([Press("Why")] if explains else [])]
            rows[change.question_id] = (texts.get(change.question_id, change.question_id), *scores)
        table = show_rows(
            "changed",
            ("Question", "A", *(("B", "B - A") if len(pair) > 1 else ()), *(("On Compare",) if explains else ())),
            rows,
            label="Questions of A and B" if len(pair) > 1 else "Questions",
            noun="questions",
            opens=True,
            filters=True,
            current=chosen,
        )
    if table.opened:
        address.put(ask=table.opened)
        st.rerun()
    return table.acted
