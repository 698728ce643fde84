"""The Graph page: citations between documents, orphans, broken links, and the archive search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.graph.chart import describe_graph, make_chart, read_selection, show_archive
from workbench.app.shell.scope_bar import clear_scope, is_scoped, read_index, read_scope
from workbench.app.shell.states import show_message
from workbench.app.shell.work import show_start_buttons
from workbench.app.state import address
from workbench.app.state.shared import OPENING, current_theme, show_value
from workbench.app.widgets.reader import open_document, show_reader
from workbench.app.widgets.table import Column, show_table
from workbench.formatting import count_text
from workbench.retrieval.options import Ask
from workbench.services.citations import Graph, GraphNode, Overview

if TYPE_CHECKING:
    from workbench.workbench import Workbench

VIEWS = {"graph": "Graph", "links": "Most cited, orphans, broken", "archive": "Archive search"}
NUMBERS_HELP = {
    "Links": "Total of the other counts.",
    "Paths and empty targets": "File paths and links without a target, which may not be intended as links.",
}
MAX_RESULTS = 20  # documents found for a question
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
    view = _choose_view()
    if view == "archive":
        show_archive(wb)
    elif not wb.documents.count():
        show_message(
            "No documents yet",
            "This page shows citations between your documents, and broken links.",
        )
        show_start_buttons(wb, "library", "crawl")
    else:
        with st.spinner("Reading links…", show_time=False):
            wb.citations.catch_up()
        source_ids = wb.requests.resolve(read_scope()).source_ids
        if view == "graph":
            _show_graph(wb, source_ids)
        else:
            _show_lists(wb, source_ids)
    show_reader(wb, read_index())


def _choose_view() -> str:
    show_value("graph_view", address.get("view") if address.get("view") in VIEWS else "graph")
    chosen = st.segmented_control(
        "View", list(VIEWS), key="graph_view", format_func=VIEWS.__getitem__, required=True,
        label_visibility="collapsed", on_change=lambda: address.put(view=st.session_state["graph_view"]),
    )  # fmt: skip
    return chosen or "graph"


def _show_graph(wb: Workbench, source_ids: Sequence[str] | None) -> None:
    show_value("graph_question", address.get("about"))
    question = st.text_input(
        "Filter by question",
        key="graph_question",
        placeholder="Enter a question to see what its results cite",
        on_change=lambda: address.put(about=st.session_state["graph_question"].strip()),
    ).strip()
    chosen: list[str] = []
    if question:
        result = wb.document_search.search(question, Ask(None, MAX_RESULTS, read_scope(), read_index()))
        chosen = [hit.document_id for hit in result.documents]
    graph = wb.citations.graph(source_ids, chosen if question else None)
    if not graph.edges:
        _show_empty(wb, question)
        return
    draw_graph(graph, chosen, key=f"graph_{address.get('about')}_{len(graph.nodes)}")


def draw_graph(graph: Graph, chosen: Sequence[str], key: str) -> None:
    """Show a graph; clicking a node opens its document."""
    left_out = f", {count_text(graph.left_out, 'document')} with fewer links hidden" if graph.left_out else ""
    diamonds = " Diamonds = results." if chosen else ""
    st.caption(
        f"{count_text(len(graph.nodes), 'document')}, {_describe_edges(graph)}{left_out}. Node size = "
        f"citations.{diamonds} Scroll to zoom, drag to move, hover an edge for its sentence, click a node to open it."
    )
    state: Any = st.echarts_chart(
        make_chart(graph, current_theme(), chosen),
        key=key,
        on_select="rerun",
        height=680,
        renderer="svg",
        alt=describe_graph(graph),
    )
    node = read_selection(state, graph)
    before = st.session_state.get(f"{key}_opened")
    st.session_state[f"{key}_opened"] = node.id if node else None
    if node is not None and node.id != before:
        open_document(node.id)


def _describe_edges(graph: Graph) -> str:
    """Describe the edges of a graph, each of which may be several links."""
    links = sum(edge.links for edge in graph.edges)
    return f"{count_text(len(graph.edges), 'edge')} ({count_text(links, 'link')})"


def _show_empty(wb: Workbench, question: str) -> None:
    if question:
        show_message("These results cite nothing", "Try another question, or clear the filter.")
        st.button("Clear filter", on_click=lambda: address.put(about=None))
    elif is_scoped():
        show_message("No citations in this scope", "Widen the scope to see more.")
        st.button("Clear scope", on_click=clear_scope, icon=":material/close:")
    else:
        show_message(
            "No citations yet",
            "Links are read when documents are added, such as Markdown files and web pages that link to each other.",
        )
        show_start_buttons(wb, "library", "crawl")


def _show_lists(wb: Workbench, source_ids: Sequence[str] | None) -> None:
    overview = wb.citations.overview(source_ids, limit=100)
    _show_counts(overview)
    left, right = st.columns(2, gap="large")
    with left:
        st.header("Most cited", anchor=False)
        _show_nodes("most_cited", overview.most_cited, "No cited documents.")
    with right:
        st.header("Orphans", anchor=False, help="Documents without citations in either direction")
        _show_nodes("orphans", overview.orphans, "No orphans.")
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
    opened = show_table(
        "broken", BROKEN_COLUMNS, rows, label="Broken links", noun="links", empty="No broken links.", opens=True
    ).opened
    _open_and_rerun(opened.partition("#")[0] if opened else None)


def _show_counts(overview: Overview) -> None:
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


def _show_nodes(key: str, nodes: Sequence[GraphNode], empty: str) -> None:
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
    _open_and_rerun(show_table(key, NODE_COLUMNS, rows, label=key, noun="documents", empty=empty, opens=True).opened)


def _open_and_rerun(document_id: str | None) -> None:
    if document_id:
        open_document(document_id)
        st.rerun()
