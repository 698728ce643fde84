"""Views of test sets: the list, the editor, and ways to add questions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

import streamlit as st

from evals.background import enqueue_import, enqueue_questions, enqueue_rating
from evals.evaluation import (
    POOL_DEPTH,
    SECONDS_PER_PAIR,
    Disagreement,
    ImportReport,
    PoolItem,
    TestSetInfo,
    TestSets,
    TestSetStore,
    find_disagreements,
    measure_raters,
)
from evals.experiments.runs import default_strategies
from evals.gateway import describe_deleted
from evals.test_set import SCALES, Judgment, Place, Question, TestSet, grade_titles
from evals.test_sets.exchange import export_folder, to_csv, to_qrels
from evals.test_sets.store import LLM_JUDGE, SAMPLE_NAME, Rating
from workbench.app.evaluate.questions import JudgedDocuments
from workbench.app.shell.scope_bar import format_scope, make_scope_changes, read_lasting_scope, show_scope_bar
from workbench.app.state import address
from workbench.app.state.shared import name_tab, note_change
from workbench.app.widgets.looks import (
    escape_markdown,
    format_measured,
    make_file_name,
    make_label_function,
    show_message,
    strategy_title,
    strip_markdown,
)
from workbench.app.widgets.notices import report_errors, run_change, show_confirmation, store_notice
from workbench.app.widgets.reader import open_document
from workbench.app.widgets.rows import Noted, make_figure, show_rows
from workbench.errors import SETUP_HINT
from workbench.formatting import count_text
from workbench.retrieval.strategies import COMPARED_STRATEGIES, STRATEGIES

if TYPE_CHECKING:
    import pandas
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from workbench.workbench import Workbench

# New test sets and more questions


def show_new_form(wb: Workbench, expanded: bool) -> None:
    """Show the ways to create a test set."""
    with st.expander("New test set", expanded=expanded, icon=":material/add:"):
        empty, folder, sample = st.tabs(["Your documents", "BEIR folder", "Sample questions"])
        with empty:
            show_scope_bar(wb, with_index=False)
            scope = read_lasting_scope()
            with st.form("new_empty", border=False):
                title = st.text_input("Title", key="new_title", placeholder="Questions about the manuals")
                st.caption(
                    f"Searches {escape_markdown(format_scope(wb, scope))}. The test set keeps this scope; judging, "
                    "experiments, tuning and training with it search only these documents."
                )
                create = st.form_submit_button("Create", type="primary", key="new_create")
            if create:
                with report_errors():
                    address.put(open=TestSetStore(wb).create(title, scope=scope).id)
                    note_change()
                    st.rerun()
        with folder:
            st.caption(
                "Needs corpus.jsonl, queries.jsonl and qrels.tsv (or qrels/test.tsv). Data sets of Hugging Face "
                "(a folder, or hf:OWNER/NAME) and ir_datasets:NAME are also read, if they are on this machine. The "
                "corpus is kept separate from your documents."
            )
            upload = st.file_uploader("Zip archive of the folder", type="zip", key="new_zip")
            path = st.text_input("Or path on this machine", key="new_path")
            if st.button("Import", type="primary", key="new_bring"):
                _start_import(wb, upload, path.strip())
        with sample:
            st.caption("Questions on the sample articles: plain, paraphrased, names and codes, misspelled.")
            if st.button("Import sample questions", type="primary", key="new_sample"):
                _start_import(wb, None, SAMPLE_NAME)


def _start_import(wb: Workbench, upload: UploadedFile | None, path: str) -> None:
    """Import in the background; the tray shows progress and a link to the test set."""
    archive = None if upload is None else (upload.name, upload.getvalue())

    def change() -> str:
        job = enqueue_import(wb, None if archive else path or None, archive=archive)
        return f"{job.title} started. A link to the test set appears below when it is ready."

    run_change(change)


def show_add_view(wb: Workbench, store: TestSetStore, info: TestSetInfo) -> None:
    """Show the ways to add questions and judgments."""
    left, right = st.columns(2, gap="large")
    with left:
        _add_typed(store, info)
        _add_csv(wb, info)
    with right:
        _add_agent_queries(wb, info)
        _add_generated(wb, store, info)
    report = st.session_state.pop("add_problems", None)
    for problem in report or ():
        st.warning(escape_markdown(problem))


def _add_typed(store: TestSetStore, info: TestSetInfo) -> None:
    st.subheader("Type questions", anchor=False)
    text = st.text_area("One question per line", key="add_typed", height=110)
    if st.button("Add questions", key="add_typed_go"):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            st.error("Enter at least one question, one per line.")
            return
        _report_added(lambda: ImportReport(len(store.add_questions(info.id, lines)), 0))


def _add_csv(wb: Workbench, info: TestSetInfo) -> None:
    st.subheader("From CSV or qrels", anchor=False)
    st.caption(
        "Required column: question. Optional: document, quote, grade, reference_answer, source, start, end, id, turns, "
        "metadata.NAME. A judged pool can be added too, and judgments in TREC's format."
    )
    types = ("csv", "qrels", "tsv", "txt", "gz")
    upload = st.file_uploader("File", type=types, key="add_csv", label_visibility="collapsed")
    rater = st.text_input("Rater", key="add_csv_rater", placeholder="Who judged it, if several people do")
    if st.button("Add from file", key="add_csv_go"):
        if upload is None:
            st.error("Choose a CSV or qrels file.")
            return
        _report_added(lambda: _import_file(wb, info, upload, rater.strip()))


def _import_file(wb: Workbench, info: TestSetInfo, upload: UploadedFile, rater: str) -> ImportReport:
    with TemporaryDirectory() as place:
        path = Path(place) / Path(upload.name).name
        path.write_bytes(upload.getvalue())
        return TestSets(wb).import_judgments(info.id, path, rater=rater)


def _add_agent_queries(wb: Workbench, info: TestSetInfo) -> None:
    st.subheader("Questions from agents", anchor=False)
    if not info.scope.is_everything:
        st.caption(f"Only queries that agents made in this scope: {escape_markdown(info.over)}.")
    st.caption(
        "What agents opened or cited becomes weak judgments, which count until a person has judged the document."
    )
    zero = st.toggle("Only queries without results", key="add_zero")
    chains = st.toggle("One question for each chain of searches", key="add_chains")
    if st.button("Add agent queries", key="add_agents"):
        _report_added(lambda: TestSets(wb).add_agent_queries(info.id, zero_only=zero, as_chains=chains))


CHAIN_COLUMNS = ("First query", "Client", "Searches", "Outcome", "Never found", "Start")


def show_chains(wb: Workbench, info: TestSetInfo, test_set: TestSet) -> None:
    """Show agents' chains of searches in the scope of a test set, each judged as one case; an opened one by search."""
    with report_errors():
        verdicts = TestSets(wb).chains(info.id)[:MAX_ROWS]
        name = JudgedDocuments(wb, test_set).name
        rows = {
            str(place): (
                one.chain.question,
                one.chain.client,
                one.hops,
                one.describe(),
                ", ".join(map(name, one.missed)),
                one.chain.searches[0].at,
            )
            for place, one in enumerate(verdicts)
        }
        chosen = show_rows(
            "chains", CHAIN_COLUMNS, rows, label="Chains", noun="chains", opens=True, filters=True,
            empty="Agents have not searched in this scope.",
        )  # fmt: skip
        if chosen.opened and int(chosen.opened) < len(verdicts):
            opened = verdicts[int(chosen.opened)]
            for hop, (search, recall) in enumerate(zip(opened.chain.searches, opened.recall, strict=True), start=1):
                used = [f"opened {name(key)}" for key in search.opened] + [f"cited {name(key)}" for key in search.cited]
                text = (
                    f"{search.query}: {count_text(len(search.found), 'document')}; {', '.join(used) or 'none opened'}"
                )
                st.markdown(f"{hop}. {escape_markdown(text)} · {recall:.0%} found so far")


def _add_generated(wb: Workbench, store: TestSetStore, info: TestSetInfo) -> None:
    from evals.judges.generation import add_synthetic

    st.subheader("Generate from documents", anchor=False)
    st.caption(
        f"From {escape_markdown(info.over)}. Rules turn English statements and headings into questions; these reuse "
        "words of the text, which favours keyword search."
    )
    count = int(st.number_input("Number of questions", 1, 1000, 30, key="add_count", width=160))
    with st.container(horizontal=True):
        if st.button("Generate with rules", key="add_rule"):
            _report_added(lambda: add_synthetic(wb, store, info.id, count))
        llm = wb.settings.has_llm
        if st.button(
            "Generate with LLM", key="add_llm", disabled=not llm, help=None if llm else f"Needs an LLM: {SETUP_HINT}."
        ):
            run_change(lambda: f"{enqueue_questions(wb, info.id, count).title} started; its progress is shown below.")


def _report_added(change: Callable[[], ImportReport]) -> None:
    with report_errors():
        report = change()
        st.session_state["add_problems"] = report.problems[:20]
        counts = f"{count_text(report.questions, 'question')} and {count_text(report.judgments, 'judgment')}"
        store_notice(f"{counts} added.")
        st.rerun()


MAX_ROWS = 5_000  # rows in an editor
MAX_POOL_CHARS = 1_500  # of a document of a pool, from the passage that was found
MAX_TURNS_SHOWN = 6  # latest ones of a conversation
ORIGIN_TITLES = {
    "folder": "folder",
    "person": "person",
    "csv": "CSV",
    "agent": "agent",
    "synthetic": "generated with rules",
    "llm": "generated by LLM",
}

SheetRow: TypeAlias = Mapping[str, str | int | None]  # cells by column


def edit_questions(store: TestSetStore, info: TestSetInfo, test_set: TestSet) -> None:
    """Show the questions in an editor; rows can be changed, added and removed."""
    relevant_counts = {key: sum(grade > 0 for grade in grades.values()) for key, grades in test_set.qrels.items()}
    turns = ["Earlier turns"] if any(q.turns for q in test_set.questions) else []
    rows = [
        {
            "id": q.id,
            "Question": q.text,
            **dict.fromkeys(turns, " · ".join(q.turns)),
            "Reference answer": q.reference_answer,
            "Relevant": relevant_counts.get(q.id, 0),
            "No answer": q.has_no_answer,
            "Origin": ORIGIN_TITLES.get(q.origin, q.origin),
        }
        for q in test_set.questions[:MAX_ROWS]
    ]
    sheet = st.data_editor(
        _make_frame(rows, ("id", "Question", *turns, "Reference answer", "Origin"), ("Relevant",), ("No answer",)),
        key=f"questions_{info.id}_{info.version}",
        num_rows="dynamic",
        hide_index=True,
        height=520 if len(rows) > 12 else "auto",
        column_order=("Question", *turns, "Reference answer", "Relevant", "No answer", "Origin"),
        disabled=(*turns, "Relevant", "Origin"),
        column_config={
            "Question": st.column_config.TextColumn(required=True, width="large"),
            "Relevant": st.column_config.NumberColumn(help="Documents or passages judged relevant", width="small"),
            "No answer": st.column_config.CheckboxColumn(help="The documents do not answer it", width="small"),
        },
    )
    if len(test_set.questions) > MAX_ROWS:
        st.caption(f"Showing the first {MAX_ROWS:,}; export the test set to edit the rest.")
    if st.button("Save questions", type="primary", key="save_questions"):
        run_change(lambda: save_questions(store, info.id, test_set, _read_rows(sheet)))


def save_questions(store: TestSetStore, key: str, test_set: TestSet, rows: Sequence[SheetRow]) -> str:
    """Store the changed rows of the editor; return a summary.

    Raises:
        InvalidInput: A question is invalid.
    """
    before = {question.id: question for question in test_set.questions[:MAX_ROWS]}
    ids = {row["id"] for row in rows if row.get("id")}
    removed_ids = [question_id for question_id in before if question_id not in ids]
    given: list[Question] = []
    for row in rows:
        old = before.get(str(row.get("id") or ""), Question("", "", origin="person"))
        text, answer = str(row.get("Question") or "").strip(), str(row.get("Reference answer") or "")
        is_marked = bool(row.get("No answer")) != old.has_no_answer
        metadata = {**old.metadata, "answerable": old.has_no_answer} if is_marked else old.metadata
        question = replace(old, text=text, reference_answer=answer, metadata=metadata)
        if question != old:
            given.append(question)
    changed = sum(bool(question.id) for question in given)
    added = len(store.add_questions(key, given)) - changed
    if removed_ids:
        store.remove_questions(key, removed_ids)
    return f"{count_text(added, 'question')} added, {changed} changed, {len(removed_ids)} removed."


def edit_judgments(wb: Workbench, store: TestSetStore, info: TestSetInfo, test_set: TestSet) -> None:
    """Show the judgments in an editor; grades can be changed and rows removed, but not added."""
    if not test_set.judgments:
        st.caption("No judgments yet. Turn on Judge in Compare and judge results, or add a CSV with quotes.")
        return
    texts = {question.id: question.text for question in test_set.questions}
    documents = JudgedDocuments(wb, test_set)
    listed = list(test_set.judgments[:MAX_ROWS])
    names = {grade: name for name, grade in _list_grade_names(info, listed).items()}
    given: dict[Place, list[Rating]] = {}
    for rating in store.ratings(info.id, test_set.version):
        given.setdefault(rating.judgment.place, []).append(rating)
    rows = [
        {
            "place": place,
            "Question": texts.get(j.question_id, j.question_id),
            "Document": documents.name(j.document),
            "Grade": names[j.grade],
            "Part": (j.quote or f"characters {j.start} to {j.end}") if j.is_span else "whole document",
            **_describe_ratings(given[j.place], is_weak=j.place in test_set.by_agents),
        }
        for place, j in enumerate(listed)
    ]
    columns = ("Question", "Document", "Grade", "Part", "By", "When", "Why")
    sheet = st.data_editor(
        _make_frame(rows, columns, ("place",)),
        key=f"judgments_{info.id}_{info.version}",
        num_rows="delete",
        hide_index=True,
        height=520 if len(rows) > 12 else "auto",
        column_order=columns,
        disabled=[name for name in columns if name != "Grade"],
        column_config={
            "Grade": st.column_config.SelectboxColumn(
                options=list(names.values()), required=True, width=100, pinned=True
            ),
        },
    )
    if len(test_set.judgments) > MAX_ROWS:
        st.caption(f"Showing the first {MAX_ROWS:,}; export the test set to edit the rest.")
    if st.button("Save judgments", type="primary", key="save_judgments"):
        run_change(lambda: save_judgments(store, info, listed, _read_rows(sheet)))


def save_judgments(store: TestSetStore, info: TestSetInfo, listed: Sequence[Judgment], rows: Sequence[SheetRow]) -> str:
    """Store the changed grades and remove the missing rows, of all raters; return a summary."""
    names = _list_grade_names(info, listed)
    grades = {int(row["place"] or 0): names[str(row["Grade"])] for row in rows}
    removals = {judgment.place for place, judgment in enumerate(listed) if place not in grades}
    changed = [
        replace(judgment, grade=grades[place])
        for place, judgment in enumerate(listed)
        if place in grades and grades[place] != judgment.grade
    ]
    if changed:
        store.judge_all(info.id, changed)
    for one in [one for one in store.ratings(info.id) if one.judgment.place in removals]:
        question_id, document, start, end = one.judgment.place
        store.judge(info.id, question_id, document, None, start=start, end=end, judge=one.judge, rater=one.rater)
    return f"{count_text(len(changed), 'judgment')} changed, {len(removals)} removed."


def _list_grade_names(info: TestSetInfo, listed: Sequence[Judgment]) -> dict[str, int]:
    """Return {name: grade} for the scale of a test set, and for other grades that it has by their number."""
    names = {label.lower(): info.grades - place for place, (_, label, _) in enumerate(_list_grades(info), start=1)}
    return names | {str(one.grade): one.grade for one in listed if one.grade not in range(info.grades)}


def _describe_ratings(ratings: Sequence[Rating], *, is_weak: bool) -> dict[str, str]:
    """Return whose grades of a place count, when it was judged last, and why."""
    names = ", ".join(one.rater or one.judge for one in ratings if one.judge != LLM_JUDGE)
    last = max((one.at for one in ratings if one.at), default=None)
    when = f"{last.astimezone():%-d %b %Y, %H:%M}" if last else "–"
    why = "; ".join(f"{one.rater}: {one.reason}".removeprefix(": ") for one in ratings if one.reason)
    return {"By": f"{names} (weak)" if is_weak else names, "When": when, "Why": why}


def _make_frame(
    rows: Sequence[SheetRow], texts: Sequence[str], numbers: Sequence[str], marks: Sequence[str] = ()
) -> pandas.DataFrame:
    """Return rows as a data frame whose columns keep their types even if there are no rows."""
    import pandas as pd

    kinds = dict.fromkeys(texts, "string") | dict.fromkeys(numbers, "Int64") | dict.fromkeys(marks, "boolean")
    return pd.DataFrame(rows, columns=pd.Index(kinds)).astype(kinds)


def _read_rows(sheet: pandas.DataFrame) -> list[SheetRow]:
    """Return the rows of an editor; empty cells are None."""
    return list(map(dict[str, str | int | None], sheet.astype(object).where(sheet.notna(), None).to_dict("records")))


# Pools: what several strategies find, judged one by one without their names


@dataclass
class PoolQueue:
    """A pool while it is judged, in the session of a visitor."""

    waiting: list[PoolItem]
    csv: str  # for other raters
    rater: str = ""
    judged: list[PoolItem] = field(default_factory=list)


def show_pool(wb: Workbench, info: TestSetInfo, test_set: TestSet) -> None:
    """Show the queue of a pool, or the form that makes one."""
    key = f"pool_{info.id}"
    queue: PoolQueue | None = st.session_state.get(key)
    if queue is None:
        _show_pool_form(wb, info, key)
        return
    done, total = len(queue.judged), len(queue.judged) + len(queue.waiting)
    minutes = round(len(queue.waiting) * SECONDS_PER_PAIR / 60)
    st.progress(
        done / total if total else 1.0,
        text=f"{done:,} of {total:,} judged" + (f", about {minutes:,} min left" if minutes else ""),
    )
    if queue.waiting:
        _show_pool_item(wb, info, test_set, queue)
    else:
        st.success(
            "Nothing left to judge." if total else "All documents that these strategies find are judged already."
        )
    with st.container(horizontal=True):
        st.button(
            "Undo", key="pool_undo", icon=":material/undo:", type="tertiary", disabled=not queue.judged,
            on_click=_judge_pool_item, args=(wb, info.id, queue, None),
        )  # fmt: skip
        st.download_button(
            "CSV", queue.csv, f"{make_file_name(info.title, 'pool')}-pool.csv", "text/csv", type="tertiary",
            icon=":material/download:", on_click="ignore",
            help="To judge elsewhere: fill in the column grade, then add the file under Add",
        )  # fmt: skip
        st.button("New pool", key="pool_close", type="tertiary", on_click=lambda: st.session_state.pop(key))


def _show_pool_form(wb: Workbench, info: TestSetInfo, key: str) -> None:
    st.caption(
        "Judge what several strategies find, each document once and without the strategy's name. Those that can still "
        "change which strategy is best come first."
    )
    strategies = choose_strategies(wb, "pool_strategies")
    left, middle, right = st.columns(3)
    depth = left.number_input("Documents per strategy", 1, 200, POOL_DEPTH, key="pool_depth")
    minutes = middle.number_input("Minutes to judge", 1, 600, None, key="pool_minutes", placeholder="No limit")
    rater = right.text_input("Rater", key="pool_rater", placeholder="Your name, if several people judge")
    if st.button("Collect documents", type="primary", key="pool_go", disabled=not (strategies and info.questions)):
        with report_errors():
            bar = st.progress(0.0, text="Searching")
            pool, text = TestSets(wb).pool(
                info, strategies, depth=depth, minutes=minutes, rater=rater.strip(),
                on_progress=lambda done: bar.progress(done.done_share, text=f"Searching: {done.message}") and None,
            )  # fmt: skip
            st.session_state[key] = PoolQueue(list(pool.items), text, rater.strip())
            st.rerun()


def _show_pool_item(wb: Workbench, info: TestSetInfo, test_set: TestSet, queue: PoolQueue) -> None:
    item = queue.waiting[0]
    document = JudgedDocuments(wb, test_set).get(item.document)
    text = (document.text or "")[item.start : item.start + MAX_POOL_CHARS] if document else "This document was deleted."
    with st.container(border=True, key="pool_item", width=820):
        removed = Question(item.question_id, item.question)
        _show_question(next((one for one in test_set.questions if one.id == item.question_id), removed))
        with st.container(horizontal=True):
            for number, (grade, label, meaning) in enumerate(_list_grades(info), start=1):
                st.button(
                    label, key=f"pool_{grade}", shortcut=str(number), help=meaning,
                    on_click=_judge_pool_item, args=(wb, info.id, queue, grade),
                )  # fmt: skip
            st.button("Skip", key="pool_skip", type="tertiary", on_click=_skip_pool_item, args=(queue,))
        st.text_input("Why", key="pool_why", placeholder="Why (optional)", label_visibility="collapsed", max_chars=1000)
        st.markdown(f"**{escape_markdown(document.title if document else item.document, 200)}**")
        st.text(strip_markdown(text) + ("…" if len(text) == MAX_POOL_CHARS else ""))
        if document and st.button("Open document", key="pool_open", icon=":material/article:", type="tertiary"):
            open_document(document.id, item.start, item.start + len(text))


def _show_question(question: Question) -> None:
    """Show a question below the earlier turns of its conversation."""
    for turn in question.turns[-MAX_TURNS_SHOWN:]:
        st.caption(escape_markdown(turn, 300))
    st.subheader(escape_markdown(question.text, MAX_POOL_CHARS), anchor=False)


def _list_grades(info: TestSetInfo) -> list[tuple[str, str, str]]:
    """Return the name, label and meaning of each grade of a test set, the best first."""
    titles = grade_titles(info.grades)
    return [
        (grade, title.capitalize(), meaning.capitalize())
        for title, (grade, meaning) in reversed([*zip(titles, SCALES[info.grades].items(), strict=True)])
    ]


def _skip_pool_item(queue: PoolQueue) -> None:
    queue.waiting.append(queue.waiting.pop(0))


def _judge_pool_item(wb: Workbench, test_set_id: str, queue: PoolQueue, grade: str | None) -> None:
    """Store the grade of the first document that waits; None clears the last one, which waits again."""
    item = queue.judged[-1] if grade is None else queue.waiting[0]
    with report_errors(st.toast):
        why = str(st.session_state.get("pool_why", ""))
        TestSetStore(wb).judge(test_set_id, item.question_id, item.document, grade, rater=queue.rater, reason=why)
        st.session_state["pool_why"] = ""
        if grade is None:
            queue.waiting.insert(0, queue.judged.pop())
        else:
            queue.judged.append(queue.waiting.pop(0))


# Raters: how far they agree, and what is to settle

RATER_COLUMNS = ("Rater", "Kind", "Judgments", "Relevant", "Same in a second round")
PAIR_COLUMNS = ("Raters", "Scale", "Judged by both", "Equal", "Cohen's kappa", "Weighted by distance")
DISAGREEMENT_COLUMNS = ("Question", "Document", "Grades", "Counts")


def show_raters(wb: Workbench, info: TestSetInfo, test_set: TestSet) -> None:
    """Show how far the named raters of a test set agree, and their disagreements; an opened one can be settled."""
    ratings = TestSetStore(wb).ratings(info.id, test_set.version)  # others may have judged since
    found = measure_raters(info.title, info.grades, ratings)
    about = "As a rater of its own, whose grades never count; twice, to show how consistent it is"
    if wb.settings.has_llm and test_set.judgments and st.button("Judge the same with the LLM", help=about):
        run_change(lambda: f"{enqueue_rating(wb, info.id).title} started; its progress is shown below.")
    if not found.raters:
        show_message(
            "No named raters yet",
            "If several people judge, each enters a name under Judge on Compare. Their agreement, and the judgments on "
            "which they differ, are shown here.",
        )
        return
    st.caption(escape_markdown(found.describe()))
    raters = {
        one.rater: (one.rater, one.kind, one.judgments, make_figure(one.base_rate, ".0%"),
                    make_figure(one.consistency, ".2f"))
        for one in found.raters
    }  # fmt: skip
    pairs = {
        f"{one.a}|{one.b}|{one.scale}": (
            f"{one.a}, {one.b}", one.scale, one.places, make_figure(one.agreement, ".0%"),
            make_figure(one.kappa, ".2f"), make_figure(one.weighted_kappa, ".2f"),
        )
        for one in found.pairs
    }  # fmt: skip
    show_rows("raters", RATER_COLUMNS, raters, label="Raters", noun="raters")
    show_rows("rater_pairs", PAIR_COLUMNS, pairs, label="Agreement of each two raters", noun="pairs")
    open_ones = {f"{one.question_id}|{one.document}|{one.start}": one for one in find_disagreements(ratings)}
    if not open_ones:
        return
    st.subheader("To settle", anchor=False)
    questions, documents = {one.id: one for one in test_set.questions}, JudgedDocuments(wb, test_set)
    rows = {
        key: (questions[one.question_id].text, documents.name(one.document), *_describe_grades(info, one))
        for key, one in list(open_ones.items())[:MAX_ROWS]
    }
    opened = show_rows(
        "disagreements", DISAGREEMENT_COLUMNS, rows, label="Disagreements", noun="disagreements", opens=True
    ).opened
    if opened and (chosen := open_ones.get(opened)):
        _settle(wb, info, chosen, questions[chosen.question_id], documents)


def _describe_grades(info: TestSetInfo, one: Disagreement) -> tuple[str, str]:
    """Return the grades of all raters, and the one that counts until it is settled."""
    names = dict(enumerate(grade_titles(info.grades)))  # imported grades may be outside the scale
    grades = [f"{rater}: {names.get(grade, grade)}" for rater, grade in one.grades.items()]
    return ", ".join(grades), str(names.get(one.counts, one.counts))


@st.dialog("Settle a disagreement", width="large")
def _settle(
    wb: Workbench, info: TestSetInfo, one: Disagreement, question: Question, documents: JudgedDocuments
) -> None:
    document = documents.get(one.document)
    start = one.start or 0
    text = (document.text or "")[start : one.end or start + MAX_POOL_CHARS] if document else "It was deleted."
    _show_question(question)
    st.markdown(escape_markdown("{}. Until it is settled, {} counts.".format(*_describe_grades(info, one))))
    for rater, reason in one.reasons.items():
        st.caption(escape_markdown(f"{rater}: {reason}"))
    why = st.text_input("Why", key="settle_why", placeholder="Optional", max_chars=1000)
    with st.container(horizontal=True):
        for grade, label, meaning in _list_grades(info):
            if st.button(label, key=f"settle_{grade}", help=meaning):
                run_change(lambda grade=grade: _store_settled(wb, info, one, grade, why))
    st.markdown(f"**{escape_markdown(documents.name(one.document), 200)}**")
    st.text(strip_markdown(text))


def _store_settled(wb: Workbench, info: TestSetInfo, one: Disagreement, grade: str, why: str) -> str:
    TestSets(wb).settle_one(info.id, one.question_id, one.document, grade, reason=why)
    return "Settled."


# A choice of strategies, and of test sets


def choose_strategies(wb: Workbench, key: str) -> list[str]:
    """Ask for some of the strategies that can be used with the models that are set."""
    usable = [name for name in default_strategies() if name in STRATEGIES]
    if wb.settings.has_llm:
        usable += [name for name, strategy in STRATEGIES.items() if strategy.needs_llm]
    if wb.settings.reranker != "late-interaction":
        usable += [name for name, strategy in STRATEGIES.items() if strategy.needs_reranker and name not in usable]
    default = [name for name in COMPARED_STRATEGIES if name in usable]
    return list(
        st.pills(
            "Strategies",
            usable,
            selection_mode="multi",
            default=default,
            format_func=strategy_title,
            key=key,
            wrap=True,
        )
    )


EARLIEST_TIME = datetime.min.replace(tzinfo=UTC)


def preselect_test_set(test_sets: Sequence[TestSetInfo]) -> str:
    """Return the id of the test set to preselect, or "".

    Prefer the most recently changed one on the user's own documents, else the most recently changed one of all.
    """
    best = max(test_sets, key=lambda info: (info.source_id is None, info.updated_at or EARLIEST_TIME), default=None)
    return best.id if best else ""


def choose_test_set(test_sets: Sequence[TestSetInfo], key: str, others: Mapping[str, str] | None = None) -> str:
    """Ask for a test set, and show its scope.

    Args:
        test_sets: The choices; at least one, unless there are others.
        key: Key of the widget.
        others: Titles of further choices.
    """
    infos = {info.id: info for info in test_sets}
    titles = {info.id: info.title for info in test_sets} | dict(others or {})
    wanted = address.get("dataset")
    first = wanted if wanted in titles else preselect_test_set(test_sets) or next(iter(titles))
    show = make_label_function(titles)
    chosen = st.selectbox("Test set", list(titles), list(titles).index(first), format_func=show, key=key)
    over = infos[chosen].over if chosen in infos else "the sample articles"
    st.markdown(format_measured("", over))
    return chosen


# The list of test sets, and one of them

TEST_SET_COLUMNS = ("Test set", "Scope", "Questions", "Judgments", "Version", "Changed")


def show_test_sets(wb: Workbench) -> None:
    """Show the test sets, and the ways to create one."""
    test_sets = TestSetStore(wb).list()
    if not test_sets:
        show_message(
            "No test sets yet",
            "A test set has questions and the passages that answer them. Judge results in Compare, import a folder or "
            "CSV, add agents' queries, or start with the sample questions.",
        )
    show_new_form(wb, expanded=not test_sets)
    if test_sets:
        rows = {
            info.id: (Noted(info.title, info.description), info.over, info.questions, info.judgments, info.version,
                      info.updated_at)
            for info in test_sets
        }  # fmt: skip
        chosen = show_rows(
            "datasets", TEST_SET_COLUMNS, rows, label="Test sets", noun="test sets", opens=True, filters=len(rows) > 8
        )
        if chosen.opened:
            address.put(open=chosen.opened)
            st.rerun()


def show_test_sets_button() -> None:
    """Show the button that leads to the test sets."""
    st.button("Go to test sets", key="to_test_sets", on_click=address.put, kwargs={"view": "datasets"})


def judge_on_compare(info: TestSetInfo) -> None:
    """Open Compare to judge for a test set, in its scope."""
    address.store_for_next_visit("compare", judge=info.id, **make_scope_changes(info.scope))
    address.switch_page("compare")


def show_test_set(wb: Workbench, test_set_id: str) -> None:
    """Show one test set."""
    store = TestSetStore(wb)
    info = store.info(test_set_id)
    test_set = store.load(info.id)
    name_tab(part=info.title)
    st.button("Test sets", icon=":material/arrow_back:", type="tertiary", on_click=lambda: address.put(open=None))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(escape_markdown(info.title), anchor=False, width="stretch")
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            if st.button("Run experiment", type="primary", disabled=not test_set.answerable):
                address.put(open=None, view=None, new="1", dataset=info.id)
                st.rerun()
            if info.source_id is None and st.button("Judge on Compare", icon=":material/rule:", type="tertiary"):
                judge_on_compare(info)
            if st.button("Edit", icon=":material/edit:", type="tertiary"):
                _edit(store, info)
            if st.button("Delete", icon=":material/delete:", type="tertiary"):
                _delete(store, info)
    if info.description:
        st.markdown(escape_markdown(info.description))
    st.markdown(format_measured("", info.over))
    without = f", {len(test_set.unanswerable)} without an answer" if test_set.unanswerable else ""
    st.caption(
        f"Version {info.version} · {count_text(info.questions, 'question')} "
        f"({len(test_set.answerable)} with relevant results{without}) · {count_text(info.judgments, 'judgment')}"
    )
    if lost := describe_deleted(wb, info.scope):
        st.warning(
            escape_markdown(
                f"Deleted from the scope of this test set: {lost}. It can no longer be used for experiments."
            )
        )
    views: dict[str, Callable[[], None]] = {
        "Questions": lambda: edit_questions(store, info, test_set),
        "Judgments": lambda: edit_judgments(wb, store, info, test_set),
        "Judge a pool": lambda: show_pool(wb, info, test_set),
        "Raters": lambda: show_raters(wb, info, test_set),
        "Agents' searches": lambda: show_chains(wb, info, test_set),
        "Add": lambda: show_add_view(wb, store, info),
        "Export and versions": lambda: _show_export(wb, store, info),
    }
    for tab, draw in zip(st.tabs(list(views), key="test_set_view", on_change="rerun"), views.values(), strict=True):
        if tab.open:
            with tab:
                draw()


BEIR_FILES = "corpus.jsonl, queries.jsonl, qrels/test.tsv, and spans.jsonl for judged passages"


def _show_export(wb: Workbench, store: TestSetStore, info: TestSetInfo) -> None:
    st.caption("Each change creates a version. Any version can be exported.")
    version = st.number_input(
        "Version", 1, info.version, info.version, key=f"version_{info.id}_{info.version}", width=160
    )
    test_set = store.load(info.id, int(version))
    name = f"{make_file_name(info.title, 'test_set')}-v{test_set.version}"
    st.markdown(
        f"{count_text(len(test_set.questions), 'question')}, {count_text(len(test_set.judgments), 'judgment')}."
    )
    with st.container(horizontal=True):
        for label, write, ending, kind, about in (
            ("CSV", lambda: to_csv(test_set, store.ratings(info.id, test_set.version)), "csv", "text/csv", None),
            ("TREC qrels", lambda: to_qrels(test_set.judgments), "qrels", "text/plain", "The grades that count"),
            ("BEIR folder", lambda: zip_folder(wb, test_set, name), "zip", "application/zip", BEIR_FILES),
        ):
            st.download_button(
                label, write, f"{name}.{ending}", kind, icon=":material/download:", on_click="ignore", help=about
            )


def zip_folder(wb: Workbench, test_set: TestSet, name: str) -> bytes:
    """Return the test set as a zip archive in BEIR format."""
    with TemporaryDirectory() as place:
        export_folder(wb, test_set, Path(place) / "out" / name)
        return Path(shutil.make_archive(str(Path(place) / "made"), "zip", Path(place) / "out")).read_bytes()


@st.dialog("Edit test set")
def _edit(store: TestSetStore, info: TestSetInfo) -> None:
    title = st.text_input("Title", info.title, max_chars=300)
    description = st.text_area("Description", info.description, max_chars=2000)
    grades = st.selectbox(
        "Grades", list(SCALES), list(SCALES).index(info.grades), help="Judgments keep the number of a grade, from 0.",
        format_func=lambda count: ", ".join(grade_titles(count)),
    )  # fmt: skip
    if st.button("Save", type="primary", key="confirm_rename"):
        run_change(
            lambda: f'Saved "{store.update(info.id, title=title, description=description, grades=grades).title}".'
        )


@st.dialog("Delete test set")
def _delete(store: TestSetStore, info: TestSetInfo) -> None:
    corpus = " and its corpus" if info.source_id else ""
    st.markdown(
        f"This permanently deletes **{escape_markdown(info.title)}** with {count_text(info.questions, 'question')}, "
        f"{count_text(info.judgments, 'judgment')}, all versions and experiments{corpus}. Your documents are kept."
    )

    def change() -> str:
        gone = store.delete(info.id)
        address.put(open=None)
        return f"Deleted {gone.title}."

    show_confirmation("Delete test set", change)
