"""The part of the System page for indexes: make one, let it be built, switch to it, drop it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.system.index_dialogs import drop_index, new_index
from workbench.app.widgets.index_offer import language_offer
from workbench.app.widgets.labels import escaped
from workbench.app.widgets.notices import act
from workbench.app.widgets.table import Column, table
from workbench.sizes import counted, size_text
from workbench.storage.jobs import Job

if TYPE_CHECKING:
    from workbench.services.health import IndexStatus
    from workbench.workbench import Workbench

COLUMNS = (
    Column("name", "Index"),
    Column("chunker", "Chunker"),
    Column("model", "Embedding model"),
    Column("documents", "Documents", "number"),
    Column("passages", "Passages", "number"),
    Column("search", "Vector search"),
    Column("size", "On disk", "shown", "right"),
    Column("status", "Status", "state"),
)


def indexes_section(workbench: Workbench, indexes: Sequence[IndexStatus]) -> None:
    """Show the indexes (as ``status`` lists them) and what can be done with the chosen one."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header("Indexes", anchor=False, width="stretch")
        if st.button("New index", icon=":material/add:", key="index_new"):
            new_index(workbench)
    language_offer(workbench)
    building = workbench.jobs.building()
    missing = {index["name"]: workbench.indexes.missing(index["name"]) for index in indexes}
    actions = st.container(key="index_actions", horizontal=True, vertical_alignment="center", gap="small")
    chosen = table(
        "indexes",
        COLUMNS,
        [row_of(index, missing[index["name"]], building.get(index["name"])) for index in indexes],
        label="Indexes",
        noun="indexes",
        filters=False,
        selectable=True,
        stacks=True,
    ).selected
    with actions:
        picked = next((index for index in indexes if (index["name"],) == chosen), None)
        if picked is None:
            st.caption("Select one index to build it, make it the default or drop it.")
        else:
            _actions(workbench, picked, missing[picked["name"]], picked["name"] in building)


def _actions(workbench: Workbench, index: IndexStatus, missing: int, building: bool) -> None:
    name = index["name"]
    st.markdown(f"**{escaped(name)}**", width="content")
    if st.button("Build", icon=":material/construction:", disabled=building or not missing, help=_why(missing)):
        act(lambda: _build(workbench, name))
    usable = index["status"] == "ready" and not index["is_default"]
    if st.button(
        "Make default", icon=":material/check:", disabled=not usable, help="Searches that name no index then use it."
    ):
        act(lambda: _make_default(workbench, name))
    if st.button(
        "Drop", icon=":material/delete:", disabled=building or index["is_default"],
        help="Not while it is built, and not the default one. Documents stay.",
    ):  # fmt: skip
        drop_index(workbench, name)


def _why(missing: int) -> str:
    return f"It lacks {counted(missing, 'document')}." if missing else "It holds every document."


def _build(workbench: Workbench, name: str) -> str:
    workbench.jobs.enqueue_index_build(name)
    return f"The index {name} is being built; searches go on meanwhile."


def _make_default(workbench: Workbench, name: str) -> str:
    workbench.indexes.set_default(name)
    return f"Searches that name no index now use {name}."


def row_of(index: IndexStatus, missing: int, job: Job | None) -> dict[str, object]:
    """Return an index as a row; ``job`` is the one that builds it."""
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
            "search": _search_of(index),
            "size": {"text": size_text(index["bytes"]), "order": index["bytes"]},
            "status": _standing(index["status"], missing, job),
        },
        "notes": notes,
    }


def _search_of(index: IndexStatus) -> str:
    """Name the way of searching in a word; a graph with the share of passages that it finds."""
    return f"graph, finds {index['graph']['recall']:.2%}" if index["has_graph"] and index["graph"] else "exact"


def _standing(status: str, missing: int, job: Job | None) -> dict[str, str]:
    if job is not None:
        return {"state": "busy", "text": "waits for a worker" if job.status == "queued" else "being built"}
    if status == "failed":
        return {"state": "failed", "text": "failed"}
    if missing or status != "ready":
        return {"state": "waiting", "text": f"lacks {counted(missing, 'document')}" if missing else "unfinished"}
    return {"state": "done", "text": "ready"}
