"""The Graph page: citations between documents, orphans, broken links, and the archive search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.graph.chart import archive_view, chart, chosen_node, spoken
from workbench.app.shell.scope_bar import clear_scope, current_index, current_scope, is_scoped
from workbench.app.shell.states import message
from workbench.app.shell.work import ways_on
from workbench.app.state import address
from workbench.app.state.shared import OPENING, show_value, theme_of_run
from workbench.app.widgets.reader import open_document, reader
from workbench.app.widgets.table import Column, table
from workbench.formatting import counted
from workbench.retrieval.options import Ask
from workbench.services.citations import Graph, GraphNode, Overview

if TYPE_CHECKING:
    from workbench.workbench import Workbench

VIEWS = {"graph": "Graph", "links": "Most cited, orphans, broken", "archive": "Archive search"}
NUMBERS_HELP = {
    "Links": "Total of the other counts.",
    "Paths and empty targets": "File paths and links without a target, which may not be intended as links.",
}
RESULTS = 20  # documents found for a question
NODE_COLUMNS = (
    Column("title", "Document"),
    Column("source", "Source"),
    Column("cited", "Cited by", "number"),
    Column("cites", "Cites", "number"),
)
BROKEN_COLUMNS = (Column("title", "Document"), Column("target", "Target"), Column("context", "Sentence"))


def page() -> None:
    """Show the view that the URL names."""
    wb = OPENING.workbench
    st.title("Graph", anchor=False)
    view = _view()
    if view == "archive":
        archive_view(wb)
    elif not wb.documents.count():
        message(
            "No documents yet",
            "This page shows citations between your documents, and broken links.",
        )
        ways_on(wb, "library", "crawl")
    else:
        with st.spinner("Reading links…", show_time=False):
            wb.citations.catch_up()
        source_ids = wb.requests.resolve(current_scope()).source_ids
        if view == "graph":
            _picture(wb, source_ids)
        else:
            _lists(wb, source_ids)
    reader(wb, current_index())


def _view() -> str:
    show_value("graph_view", address.get("view") if address.get("view") in VIEWS else "graph")
    chosen = st.segmented_control(
        "View", list(VIEWS), key="graph_view", format_func=VIEWS.__getitem__, required=True,
        label_visibility="collapsed", on_change=lambda: address.put(view=st.session_state["graph_view"]),
    )  # fmt: skip
    return chosen or "graph"


def _picture(wb: Workbench, source_ids: Sequence[str] | None) -> None:
    show_value("graph_question", address.get("about"))
    question = st.text_input(
        "Filter by question",
        key="graph_question",
        placeholder="Enter a question to see what its results cite",
        on_change=lambda: address.put(about=st.session_state["graph_question"].strip()),
    ).strip()
    chosen: list[str] = []
    if question:
        result = wb.document_search.search(question, Ask(None, RESULTS, current_scope(), current_index()))
        chosen = [hit.document_id for hit in result.documents]
    graph = wb.citations.graph(source_ids, chosen if question else None)
    if not graph.edges:
        _nothing(wb, question)
        return
    draw(graph, chosen, key=f"graph_{address.get('about')}_{len(graph.nodes)}")


def draw(graph: Graph, chosen: Sequence[str], key: str) -> None:
    """Show a graph; clicking a node opens its document."""
    left_out = f", {counted(graph.left_out, 'document')} with fewer links hidden" if graph.left_out else ""
    diamonds = " Diamonds = results." if chosen else ""
    st.caption(
        f"{counted(len(graph.nodes), 'document')}, {_link_counts(graph)}{left_out}. Node size = "
        f"citations.{diamonds} Scroll to zoom, drag to move, hover an edge for its sentence, click a node to open it."
    )
    state: Any = st.echarts_chart(
        chart(graph, theme_of_run(), chosen), key=key, on_select="rerun", height=680, renderer="svg", alt=spoken(graph)
    )
    node = chosen_node(state, graph)
    before = st.session_state.get(f"{key}_opened")
    st.session_state[f"{key}_opened"] = node.id if node else None
    if node is not None and node.id != before:
        open_document(node.id)


def _link_counts(graph: Graph) -> str:
    """Describe the edges of a graph, each of which may be several links."""
    links = sum(edge.links for edge in graph.edges)
    return f"{counted(len(graph.edges), 'edge')} ({counted(links, 'link')})"


def _nothing(wb: Workbench, question: str) -> None:
    if question:
        message("These results cite nothing", "Try another question, or clear the filter.")
        st.button("Clear filter", on_click=lambda: address.put(about=None))
    elif is_scoped():
        message("No citations in this scope", "Widen the scope to see more.")
        st.button("Clear scope", on_click=clear_scope, icon=":material/close:")
    else:
        message(
            "No citations yet",
            "Links are read when documents are added, such as Markdown files and web pages that link to each other.",
        )
        ways_on(wb, "library", "crawl")


def _lists(wb: Workbench, source_ids: Sequence[str] | None) -> None:
    overview = wb.citations.overview(source_ids, limit=100)
    _numbers(overview)
    left, right = st.columns(2, gap="large")
    with left:
        st.header("Most cited", anchor=False)
        _nodes("most_cited", overview.most_cited, "No cited documents.")
    with right:
        st.header("Orphans", anchor=False, help="Documents without citations in either direction")
        _nodes("orphans", overview.orphans, "No orphans.")
    st.header("Broken links", anchor=False)
    broken = wb.citations.broken(source_ids)
    rows = [
        {
            "id": f"{link.document_id}#{place}",
            "name": link.title,
            "cells": {"title": link.title, "target": link.target, "context": link.context},
        }
        for place, link in enumerate(broken)
    ]
    opened = table(
        "broken", BROKEN_COLUMNS, rows, label="Broken links", noun="links", empty="No broken links.", opens=True
    ).opened
    _open(opened.partition("#")[0] if opened else None)


def _numbers(overview: Overview) -> None:
    values = {
        "Links": overview.links,
        "Between documents": overview.resolved,
        "Within a document": overview.within,
        "To the web": overview.external,
        "Broken": overview.broken,
        "Paths and empty targets": overview.unjudged,
    }
    for column, (name, value) in zip(st.columns(len(values)), values.items(), strict=True):
        column.metric(name, f"{value:,}", help=NUMBERS_HELP.get(name))


def _nodes(key: str, nodes: Sequence[GraphNode], empty: str) -> None:
    rows = [
        {
            "id": node.id,
            "name": node.title,
            "cells": {
                "title": node.title, "source": node.source_title, "cited": node.cited_by, "cites": node.cites,
            },
        }
        for node in nodes
    ]  # fmt: skip
    _open(table(key, NODE_COLUMNS, rows, label=key, noun="documents", empty=empty, opens=True).opened)


def _open(document_id: str | None) -> None:
    if document_id:
        open_document(document_id)
        st.rerun()
