"""Getting questions: new test sets, CSV, typed ones, what agents asked, and those made from the documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from evals.test_sets.exchange import ImportReport, add_agent_queries, import_csv
from evals.test_sets.folders import SAMPLE
from evals.test_sets.import_job import enqueue_import
from evals.test_sets.store import TestSetInfo, TestSetStore
from workbench.app.shell.scope_bar import measured_text, place_scope
from workbench.app.state import address
from workbench.app.state.shared import note_change
from workbench.app.widgets.labels import escaped
from workbench.app.widgets.notices import leave_notice
from workbench.errors import InvalidInput, WorkbenchError
from workbench.models.llm import HOW_TO_SET
from workbench.sizes import counted

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from workbench.workbench import Workbench


def new_form(workbench: Workbench, expanded: bool) -> None:
    """Show the ways to a new test set."""
    with st.expander("New test set", expanded=expanded, icon=":material/add:"):
        empty, folder, sample = st.tabs(["Over your documents", "BEIR folder", "Sample questions"])
        with empty:
            scope = place_scope()
            over = measured_text(workbench, scope)
            with st.form("new_empty", border=False):
                title = st.text_input("Title", key="new_title", placeholder="What people ask about the manuals")
                st.caption(
                    f"It measures {escaped(over)}: the scope chosen above, which the test set keeps. Its experiments "
                    "search nothing else, and questions are generated from nothing else."
                )
                create = st.form_submit_button("Create", type="primary", key="new_create")
            if create:
                _open(lambda: TestSetStore(workbench).create(title, scope=scope))
        with folder:
            st.caption(
                "corpus.jsonl, queries.jsonl and qrels.tsv (or qrels/test.tsv); its corpus is kept apart from your own "
                "documents."
            )
            upload = st.file_uploader("The folder as a zip", type="zip", key="new_zip")
            path = st.text_input("Or its path on this machine", key="new_path")
            if st.button("Import", type="primary", key="new_bring"):
                _import(workbench, upload, path.strip())
        with sample:
            st.caption(
                "Questions over the sample's articles: plain ones, other words than the text, names and codes, "
                "misspelt ones."
            )
            if st.button("Import the sample's questions", type="primary", key="new_sample"):
                _import(workbench, None, SAMPLE)


def _import(workbench: Workbench, upload: UploadedFile | None, path: str) -> None:
    """Import in the background; the tray tells how it goes and leads to the test set."""
    try:
        if upload is not None:
            job = enqueue_import(workbench, archive=(upload.name, upload.getvalue()))
        else:
            job = enqueue_import(workbench, path or None)
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    leave_notice(f"{job.title} began; its line below leads to the test set when it is there.")
    st.rerun()


def _open(make: Callable[[], TestSetInfo]) -> None:
    try:
        test_set = make()
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    note_change()
    address.put(open=test_set.id)
    st.rerun()


def add_view(workbench: Workbench, store: TestSetStore, info: TestSetInfo) -> None:
    """Show the ways to more questions and judgments."""
    left, right = st.columns(2, gap="large")
    with left:
        _typed(store, info)
        _csv(workbench, store, info)
    with right:
        _asked_by_agents(workbench, store, info)
        _generated(workbench, store, info)
    report = st.session_state.pop("add_problems", None)
    for problem in report or ():
        st.warning(escaped(problem))


def _typed(store: TestSetStore, info: TestSetInfo) -> None:
    st.subheader("Type questions", anchor=False)
    text = st.text_area("One question per line", key="add_typed", height=110)
    if st.button("Add questions", key="add_typed_go"):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            st.error("Type at least one question, each on a line of its own.")
            return
        _report(lambda: ImportReport(len(store.add_questions(info.id, lines)), 0))


def _csv(workbench: Workbench, store: TestSetStore, info: TestSetInfo) -> None:
    st.subheader("From CSV", anchor=False)
    st.caption("A column question, and any of document, quote, grade, reference_answer, source, start, end, id.")
    upload = st.file_uploader("CSV file", type="csv", key="add_csv", label_visibility="collapsed")
    if st.button("Add from CSV", key="add_csv_go"):
        if upload is None:
            st.error("Choose a CSV file first.")
            return
        _report(lambda: import_csv(workbench, store, info.id, _decoded(upload.getvalue())))


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("The CSV is not UTF-8 text; save it as UTF-8.") from None


def _asked_by_agents(workbench: Workbench, store: TestSetStore, info: TestSetInfo) -> None:
    st.subheader("Questions agents asked", anchor=False)
    zero = st.toggle("Only questions without results", key="add_zero")
    if st.button("Add agents' queries", key="add_agents"):
        _report(lambda: add_agent_queries(workbench, store, info.id, zero_only=zero))


def _generated(workbench: Workbench, store: TestSetStore, info: TestSetInfo) -> None:
    from evals.judges.endpoint import Endpoint
    from evals.judges.generation import add_synthetic, add_written

    st.subheader("Generate from the documents", anchor=False)
    st.caption(
        f"From {escaped(info.over)}. By rule, from statements in English that answer a question and from headings that "
        "ask one: they repeat the text's words, which favours keyword search."
    )
    count = int(st.number_input("How many", 1, 1000, 30, key="add_count", width=160))
    with st.container(horizontal=True):
        if st.button("Generate by rule", key="add_rule"):
            _report(lambda: add_synthetic(workbench, store, info.id, count))
        llm = workbench.settings.has_llm
        if st.button(
            "Generate with the language model",
            key="add_llm",
            disabled=not llm,
            help=None if llm else f"It needs an LLM: {HOW_TO_SET}.",
        ):
            with st.spinner("Writing questions…"):
                _report(lambda: add_written(workbench, store, info.id, count, Endpoint.of(workbench)))


def _report(change: Callable[[], ImportReport]) -> None:
    try:
        report = change()
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    st.session_state["add_problems"] = report.problems[:20]
    leave_notice(f"{counted(report.questions, 'question')} and {counted(report.judgments, 'judgment')} added.")
    st.rerun()
