"""The indexes of the System page: create, build, make default, drop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.widgets.looks import escape_markdown
from workbench.app.widgets.notices import run_change, show_language_offer
from workbench.app.widgets.table import Column, show_table
from workbench.formatting import count_text, size_text
from workbench.ingestion.chunking import CHUNKERS, DEFAULT_CHUNKER
from workbench.models.registry import MODELS, NAME_FORMS
from workbench.storage.jobs import Job
from workbench.types import Index, Parameter

if TYPE_CHECKING:
    from workbench.services.health import IndexStatus
    from workbench.workbench import Workbench

# Input of a parameter


def show_parameter_input(parameter: Parameter, key: str) -> bool | str | int | float:
    """Draw the input of a parameter and return its value."""
    label = parameter.name.replace("_", " ").capitalize()
    common: dict[str, Any] = {"key": key, "help": parameter.why}
    if parameter.kind == "bool":
        return st.toggle(label, bool(parameter.default), **common)
    if parameter.kind == "choice":
        return st.selectbox(label, parameter.choices, parameter.choices.index(parameter.default), **common)
    kind, low, high = (int, 0, None) if parameter.kind == "int" else (float, 0.0, None)
    bounds = {
        "min_value": low if parameter.low is None else kind(parameter.low),
        "max_value": high if parameter.high is None else kind(parameter.high),
    }
    return st.number_input(label, value=kind(parameter.default), **bounds, **common)


# Dialogs to create and drop an index


@st.dialog("New index", width="large")
def ask_new_index(wb: Workbench) -> None:
    """Ask for the chunker and embedding model of a new index, and queue its build."""
    name = st.text_input("Name", placeholder="Lowercase letters, digits and _", max_chars=40, key="index_name")
    chunkers = list(CHUNKERS)
    chunker = st.selectbox("Chunker", chunkers, chunkers.index(DEFAULT_CHUNKER), key="index_chunker")
    st.caption(CHUNKERS[chunker].why)
    options = {}
    parameters = CHUNKERS[chunker].parameters
    for column, parameter in zip(st.columns(len(parameters)), parameters, strict=True):
        with column:
            options[parameter.name] = show_parameter_input(parameter, f"index_{chunker}_{parameter.name}")
    models = [wb.settings.embedding_model, *(index.embedding_model for index in wb.indexes.list())]
    models += [row.name for row in MODELS if not row.for_tests]
    model = st.selectbox(
        "Embedding model", list(dict.fromkeys(models)), accept_new_options=True, key="index_model",
        help=f"{'; '.join(f'{row.name}: {row.title}' for row in MODELS)}. Other forms: {', '.join(NAME_FORMS)}.",
    )  # fmt: skip
    documents = wb.documents.count()
    st.caption(f"{count_text(documents, 'document')} to split into passages. Existing embeddings are reused.")
    if st.button("Create and build", type="primary", key="index_create"):
        run_change(lambda: _create_index(wb, name.strip(), chunker, options, model))


def _create_index(wb: Workbench, name: str, chunker: str, options: dict[str, Any], model: str | None) -> str:
    index: Index = wb.indexes.create(name, chunker=chunker, options=options, embedding_model=model)
    wb.jobs.enqueue_index_build(index.name)
    return f'Index "{index.name}" created. It is being built; searches continue to work.'


@st.dialog("Drop index")
def confirm_drop(wb: Workbench, name: str) -> None:
    """Ask for confirmation before an index is dropped."""
    index = wb.indexes.get(name)
    st.markdown(
        f"This drops **{escape_markdown(name)}** with {count_text(index.passages_count, 'passage')}. "
        f"Documents are kept, and it "
        "can be built again. Strategies promoted with it fall back to the default index."
    )
    with st.container(horizontal=True):
        if st.button(f"Drop {escape_markdown(name)}", type="primary", key="confirm_drop"):
            run_change(lambda: _drop_index(wb, name))
        if st.button("Cancel", key="keep_index"):
            st.rerun()


def _drop_index(wb: Workbench, name: str) -> str:
    wb.indexes.delete(name)
    return f'Index "{name}" dropped. Documents are kept.'


INDEX_COLUMNS = (
    Column("name", "Index"),
    Column("chunker", "Chunker"),
    Column("model", "Embedding model"),
    Column("documents", "Documents", "number"),
    Column("passages", "Passages", "number"),
    Column("search", "Vector search"),
    Column("size", "On disk", "shown", "right"),
    Column("status", "Status", "state"),
)


def show_indexes(wb: Workbench, indexes: Sequence[IndexStatus]) -> None:
    """Show the indexes and the actions for the selected one."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header("Indexes", anchor=False, width="stretch")
        if st.button("New index", icon=":material/add:", key="index_new"):
            ask_new_index(wb)
    show_language_offer(wb)
    building = wb.jobs.building()
    missing = {index["name"]: wb.indexes.missing(index["name"]) for index in indexes}
    actions = st.container(key="index_actions", horizontal=True, vertical_alignment="center", gap="small")
    chosen = show_table(
        "indexes",
        INDEX_COLUMNS,
        [make_index_row(index, missing[index["name"]], building.get(index["name"])) for index in indexes],
        label="Indexes",
        noun="indexes",
        filters=False,
        selectable=True,
        stacks=True,
    ).selected
    with actions:
        picked = next((index for index in indexes if (index["name"],) == chosen), None)
        if picked is None:
            st.caption("Select an index to build it, make it the default or drop it.")
        else:
            _show_actions(wb, picked, missing[picked["name"]], picked["name"] in building)


def _show_actions(wb: Workbench, index: IndexStatus, missing: int, building: bool) -> None:
    name = index["name"]
    st.markdown(f"**{escape_markdown(name)}**", width="content")
    if st.button(
        "Build", icon=":material/construction:", disabled=building or not missing, help=_describe_missing(missing)
    ):
        run_change(lambda: _build_index(wb, name))
    usable = index["status"] == "ready" and not index["is_default"]
    if st.button(
        "Make default", icon=":material/check:", disabled=not usable, help="Use it for searches that name no index."
    ):
        run_change(lambda: _make_default(wb, name))
    if st.button(
        "Drop", icon=":material/delete:", disabled=building or index["is_default"],
        help="Documents are kept. The default index and one being built cannot be dropped.",
    ):  # fmt: skip
        confirm_drop(wb, name)


def _describe_missing(missing: int) -> str:
    return f"{count_text(missing, 'document')} missing." if missing else "It has every document."


def _build_index(wb: Workbench, name: str) -> str:
    wb.jobs.enqueue_index_build(name)
    return f'Building index "{name}"; searches continue to work.'


def _make_default(wb: Workbench, name: str) -> str:
    wb.indexes.set_default(name)
    return f'"{name}" is now the default index.'


def make_index_row(index: IndexStatus, missing: int, job: Job | None) -> dict[str, object]:
    """Return an index as a row; ``job`` is the job that builds it."""
    options = ", ".join(f"{name} {value}" for name, value in index["chunker_options"].items())
    notes = {"model": f"{index['dimensions']:,} dimensions"} | ({"chunker": options} if options else {})
    if index["is_default"]:
        notes["name"] = "default"
    if index["graph"]:
        notes["search"] = index["vector_search"]
    return {
        "id": index["name"],
        "name": index["name"],
        "cells": {
            "name": index["name"],
            "chunker": index["chunker"],
            "model": index["embedding_model"],
            "documents": index["documents_count"],
            "passages": index["passages_count"],
            "search": _describe_search(index),
            "size": {"text": size_text(index["bytes"]), "order": index["bytes"]},
            "status": _status_cell(index["status"], missing, job),
        },
        "notes": notes,
    }


def _describe_search(index: IndexStatus) -> str:
    """Return "exact" or "graph", with the recall of the graph."""
    graph = index["graph"]
    if index["vector_search"] == "exact":
        return "exact"
    recall = f"recall {graph['recall']:.2%}" if graph else "not built yet"
    return f"graph, {recall}" if index["has_graph"] else f"exact (graph: {recall})"


def _status_cell(status: str, missing: int, job: Job | None) -> dict[str, str]:
    if job is not None:
        return {
            "state": "failed" if job.stalled else "busy",
            "text": "building" if job.state == "running" else job.state,
        }
    if status == "failed":
        return {"state": "failed", "text": "failed"}
    if missing or status != "ready":
        return {"state": "waiting", "text": f"{count_text(missing, 'document')} missing" if missing else "incomplete"}
    return {"state": "done", "text": "ready"}
