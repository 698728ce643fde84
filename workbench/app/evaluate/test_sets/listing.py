"""Test sets: the list of them, and one opened: its questions and judgments to correct, to add to, to take along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from evals.gateway import deleted_parts
from evals.test_set import TestSet
from evals.test_sets.exchange import to_csv
from evals.test_sets.store import TestSetInfo, TestSetStore
from workbench.app.evaluate.test_sets.add import add_view, new_form
from workbench.app.evaluate.test_sets.edit import edit_judgments, edit_questions
from workbench.app.shell.states import message
from workbench.app.state import address
from workbench.app.widgets.labels import escaped
from workbench.app.widgets.notices import act
from workbench.app.widgets.table import Column, moment, table
from workbench.sizes import counted

if TYPE_CHECKING:
    from workbench.workbench import Workbench

COLUMNS = (
    Column("title", "Test set"),
    Column("over", "Over"),
    Column("questions", "Questions", "number"),
    Column("judgments", "Judgments", "number"),
    Column("version", "Version", "number"),
    Column("changed", "Changed", "shown"),
)


def test_sets_view(workbench: Workbench) -> None:
    """Show the test sets, and how to get more."""
    test_sets = TestSetStore(workbench).list()
    if not test_sets:
        message(
            "No test set yet",
            "A test set holds questions and the passages that answer them. Judge hits in Compare, import a folder or a "
            "CSV, take the questions that agents asked, or begin with the sample questions.",
        )
    new_form(workbench, expanded=not test_sets)
    if test_sets:
        rows = [row_of(info) for info in test_sets]
        chosen = table(
            "datasets", COLUMNS, rows, label="Test sets", noun="test sets", opens=True, filters=len(rows) > 8
        )
        if chosen.opened:
            address.put(open=chosen.opened)
            st.rerun()


def row_of(info: TestSetInfo) -> dict[str, object]:
    """Return a test set as a row of the list."""
    return {
        "id": info.id,
        "name": info.title,
        "cells": {
            "title": info.title,
            "over": info.over,
            "questions": info.questions,
            "judgments": info.judgments,
            "version": info.version,
            "changed": moment(info.updated_at),
        },
        "notes": {"title": info.description} if info.description else {},
    }


def test_set_view(workbench: Workbench, test_set_id: str) -> None:
    """Show one test set."""
    store = TestSetStore(workbench)
    info = store.info(test_set_id)
    test_set = store.load(info.id)
    st.button("Test sets", icon=":material/arrow_back:", type="tertiary", on_click=lambda: address.put(open=None))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(escaped(info.title), anchor=False, width="stretch")
        if st.button("Run an experiment", type="primary", disabled=not test_set.answerable):
            address.put(open=None, view=None, new="1", dataset=info.id)
            st.rerun()
        if st.button("Rename", icon=":material/edit:", type="tertiary"):
            _rename(store, info)
        if st.button("Delete", icon=":material/delete:", type="tertiary"):
            _delete(store, info)
    if info.description:
        st.markdown(escaped(info.description))
    st.caption(
        f"Version {info.version}, over {escaped(info.over)}: {counted(info.questions, 'question')}, "
        f"{len(test_set.answerable)} of them with something relevant; {counted(info.judgments, 'judgment')}."
    )
    if lost := deleted_parts(workbench, info.scope):
        st.warning(escaped(f"The scope of this test set has lost {lost}, so no experiment can be run on it any more."))
    questions, judgments, more, out = st.tabs(["Questions", "Judgments", "Add", "Export and versions"])
    with questions:
        edit_questions(store, info, test_set)
    with judgments:
        edit_judgments(workbench, store, info, test_set)
    with more:
        add_view(workbench, store, info)
    with out:
        _export(workbench, store, info)


def _export(workbench: Workbench, store: TestSetStore, info: TestSetInfo) -> None:
    st.caption("Every change makes a new version, and every version can be exported.")
    version = st.number_input(
        "Version", 1, info.version, info.version, key=f"version_{info.id}_{info.version}", width=160
    )
    test_set = store.load(info.id, int(version))
    name = f"{''.join(c if c.isalnum() else '-' for c in info.title)[:60].strip('-') or 'test_set'}-v{test_set.version}"
    st.markdown(f"{counted(len(test_set.questions), 'question')}, {counted(len(test_set.judgments), 'judgment')}.")
    with st.container(horizontal=True):
        st.download_button(
            "CSV", to_csv(test_set), f"{name}.csv", "text/csv", icon=":material/download:", on_click="ignore"
        )
        st.download_button(
            "BEIR folder",
            lambda: folder_zip(workbench, test_set, name),
            f"{name}.zip",
            "application/zip",
            icon=":material/download:",
            on_click="ignore",
            help="corpus.jsonl, queries.jsonl, qrels/test.tsv and, for judged parts of documents, spans.jsonl",
        )


def folder_zip(workbench: Workbench, test_set: TestSet, name: str) -> bytes:
    """Return the test set as a zipped folder in BEIR's form."""
    import shutil
    import tempfile
    from pathlib import Path

    from evals.test_sets.exchange import export_folder

    with tempfile.TemporaryDirectory() as place:
        export_folder(workbench, test_set, Path(place) / "out" / name)
        return Path(shutil.make_archive(str(Path(place) / "made"), "zip", Path(place) / "out")).read_bytes()


@st.dialog("Rename test set")
def _rename(store: TestSetStore, info: TestSetInfo) -> None:
    title = st.text_input("Title", info.title, max_chars=300)
    description = st.text_area("Description", info.description, max_chars=2000)
    if st.button("Save", type="primary", key="confirm_rename"):
        act(lambda: f"Saved as {store.update(info.id, title=title, description=description).title}.")


@st.dialog("Delete test set")
def _delete(store: TestSetStore, info: TestSetInfo) -> None:
    corpus = " and its corpus" if info.source_id else ""
    st.markdown(
        f"**{escaped(info.title)}** is deleted for good, with {counted(info.questions, 'question')}, "
        f"{counted(info.judgments, 'judgment')}, all versions and experiments{corpus}. Your documents stay."
    )

    def change() -> str:
        gone = store.delete(info.id)
        address.put(open=None)
        return f"Deleted {gone.title}."

    if st.button("Delete test set", type="primary", key="confirm_delete"):
        act(change)
