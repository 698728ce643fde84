"""Getting questions: new test sets, CSV, typed ones, what agents asked, and those made from the documents."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from evals.datasets import SAMPLE, load_dataset
from evals.exchange import ImportReport, add_agent_queries, import_csv
from evals.store import DatasetInfo, DatasetStore
from workbench.app import address
from workbench.app.engine import ENGINE
from workbench.app.labels import counted, escaped
from workbench.errors import InvalidInput, WorkbenchError

if TYPE_CHECKING:
    from workbench.workbench import Workbench

LARGEST = 2**30  # bytes that a zip may hold when unpacked


def new_form(workbench: Workbench, expanded: bool) -> None:
    """Show the ways to a new test set."""
    with st.expander("New test set", expanded=expanded, icon=":material/add:"):
        empty, folder, sample = st.tabs(["Over your documents", "A folder in BEIR's form", "The sample's"])
        with empty:
            title = st.text_input("Title", key="new_title", placeholder="What people ask about the manuals")
            if st.button("Create", type="primary", key="new_create", disabled=not title.strip()):
                _open(lambda: DatasetStore(workbench).create(title))
        with folder:
            st.caption(
                "corpus.jsonl, queries.jsonl and qrels.tsv (or qrels/test.tsv); its corpus is kept apart from your own "
                "documents."
            )
            given = st.file_uploader("The folder as a zip", type="zip", key="new_zip")
            path = st.text_input("Or its path on this machine", key="new_path")
            if st.button("Bring in", type="primary", key="new_bring", disabled=not (given or path.strip())):
                with st.spinner("Indexing its corpus…"):
                    _open(lambda: _bring(workbench, given, path.strip()))
        with sample:
            st.caption(
                "Questions over the sample's articles: plain ones, other words than the text, names and codes, "
                "misspelt ones."
            )
            if st.button("Bring in the sample's", type="primary", key="new_sample"):
                with st.spinner("Indexing its corpus…"):
                    _open(lambda: DatasetStore(workbench).add(load_dataset(SAMPLE)))


def _bring(workbench: Workbench, given: Any, path: str) -> DatasetInfo:
    store = DatasetStore(workbench)
    if given is None:
        return store.add(load_dataset(Path(path).expanduser()))
    with tempfile.TemporaryDirectory() as place:
        return store.add(load_dataset(unpacked(given.getvalue(), Path(place))), title=Path(given.name).stem)


def unpacked(content: bytes, place: Path) -> Path:
    """Unpack a zip and return the folder in it that holds queries.jsonl. Raises InvalidInput."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            if sum(item.file_size for item in archive.infolist()) > LARGEST:
                raise InvalidInput("The zip holds more than 1 GB; give the folder's path instead.")
            archive.extractall(place)  # paths that lead out of the place are made to stay in it
    except (zipfile.BadZipFile, OSError, RuntimeError) as error:
        raise InvalidInput(f"The zip cannot be read ({error}); pack the folder anew.") from None
    found = sorted(place.rglob("queries.jsonl"), key=lambda path: len(path.parts))
    if not found:
        raise InvalidInput("The zip holds no queries.jsonl; pack the folder that has it.")
    return found[0].parent


def _open(make: Callable[[], DatasetInfo]) -> None:
    try:
        made = make()
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    ENGINE.changed()
    address.put(open=made.id)
    st.rerun()


def add_view(workbench: Workbench, store: DatasetStore, info: DatasetInfo) -> None:
    """Show the ways to more questions and judgments."""
    left, right = st.columns(2, gap="large")
    with left:
        _typed(store, info)
        _csv(workbench, store, info)
    with right:
        _asked_by_agents(workbench, store, info)
        _made(workbench, store, info)
    report = st.session_state.pop("add_problems", None)
    for problem in report or ():
        st.warning(escaped(problem))


def _typed(store: DatasetStore, info: DatasetInfo) -> None:
    st.subheader("Type them", anchor=False)
    text = st.text_area("Questions, one a line", key="add_typed", height=110)
    if st.button("Add questions", key="add_typed_go", disabled=not text.strip()):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        _report(lambda: ImportReport(len(store.add_questions(info.id, lines)), 0))


def _csv(workbench: Workbench, store: DatasetStore, info: DatasetInfo) -> None:
    st.subheader("From CSV", anchor=False)
    st.caption("A column question, and any of document, quote, grade, reference_answer, source, start, end, id.")
    given = st.file_uploader("CSV file", type="csv", key="add_csv", label_visibility="collapsed")
    if st.button("Add from CSV", key="add_csv_go", disabled=given is None) and given is not None:
        _report(lambda: import_csv(workbench, store, info.id, _decoded(given.getvalue())))


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("The CSV is not UTF-8 text; save it as UTF-8.") from None


def _asked_by_agents(workbench: Workbench, store: DatasetStore, info: DatasetInfo) -> None:
    st.subheader("What agents asked", anchor=False)
    zero = st.toggle("Only what found nothing", key="add_zero")
    if st.button("Add agents' queries", key="add_agents"):
        _report(lambda: add_agent_queries(workbench, store, info.id, zero_only=zero))


def _made(workbench: Workbench, store: DatasetStore, info: DatasetInfo) -> None:
    from evals.endpoint import Endpoint
    from evals.generate import add_synthetic, add_written

    st.subheader("Made from the documents", anchor=False)
    st.caption(
        "By rule, from headings, definitions and distinctive sentences: they repeat the text's words, which favours "
        "keyword search."
    )
    count = int(st.number_input("How many", 1, 1000, 30, key="add_count", width=160))
    with st.container(horizontal=True):
        if st.button("Make by rule", key="add_rule"):
            _report(lambda: add_synthetic(workbench, store, info.id, count))
        llm = bool(workbench.settings.llm_base_url)
        if st.button(
            "Let the language model write",
            key="add_llm",
            disabled=not llm,
            help=None if llm else "Set WORKBENCH_LLM_BASE_URL first",
        ):
            with st.spinner("Writing questions…"):
                _report(
                    lambda: add_written(workbench, store, info.id, count, Endpoint.from_settings(workbench.settings))
                )


def _report(change: Callable[[], ImportReport]) -> None:
    try:
        report = change()
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    st.session_state["add_problems"] = report.problems[:20]
    st.session_state["notice"] = (
        f"{counted(report.questions, 'question')} and {counted(report.judgments, 'judgment')} added."
    )
    st.rerun()
