"""The Graph page's logic and its archive search, run by Streamlit without a browser."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from workbench import Workbench
from workbench.app.graph.page import describe_graph, make_chart, read_selection, render_citations, render_hit
from workbench.app.state.shared import OPENING
from workbench.services.archives import ArchiveHit, Highlight
from workbench.services.citations import DocumentCitation, Edge, Graph, GraphNode

NOTES = {
    "a.md": "# Alpha\n\nSee [beta](b.md) and [gone](gone.md).",
    "b.md": "# Beta\n\nText of beta.",
    "c.md": "# Lone\n\nText of nobody.",
}
ARCHIVES = {"research-archive/2025-01-01/okapi.md": "# The <b>okapi</b>\n\nThe okapi <script>alert(1)</script> eats."}


def graph_page():
    from workbench.app.graph.page import page

    page()


@pytest.fixture
def visit(make_settings, folder):
    with Workbench.open(settings=make_settings(archives_dir=folder(ARCHIVES, "archives"))) as workbench:
        workbench.ingest(folder(NOTES), source="Notes")
        OPENING.use(workbench)

        def go(**address):
            script = AppTest.from_function(graph_page, default_timeout=60)
            for name, value in address.items():
                script.query_params[name] = value
            return script.run()

        yield go


def texts(app):
    captions = [element.value for element in (*app.caption, *app.markdown)]
    return " ".join([*captions, *(element.proto.body for element in app.get("html"))])


def test_the_graph_reports_how_many_documents_and_links_it_shows(visit):
    app = visit()
    assert not app.exception
    assert "2 documents, 1 edge (1 link)" in texts(app)


def test_a_question_shows_what_its_answers_cite(visit):
    app = visit(about="text of nobody", source="Notes")
    assert not app.exception
    assert "Diamonds = results" in texts(app)


def test_the_lists_count_links_and_name_what_is_broken(visit):
    app = visit(view="links")
    assert not app.exception
    assert {metric.label: metric.value for metric in app.metric} == {
        "Links": "2", "Between documents": "1", "Within a document": "0", "To the web": "0",
        "Paths and empty targets": "0", "Broken": "1",
    }  # fmt: skip


def test_archive_search_understands_a_misspelled_word_and_shows_script_as_text(visit):
    app = visit(view="archive", q="okpai")
    assert not app.exception
    shown = texts(app)
    assert "No results for “okpai”; showing results for “okapi”." in shown
    assert "<mark>okapi</mark>" in shown
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown


def test_archive_search_with_only_typed_words_finds_no_misspelled_one(visit):
    assert "No results" in texts(visit(view="archive", q="okpai", exact="1"))


def test_without_a_folder_of_archives_the_page_reports_it_before_anything_is_asked(wb):
    OPENING.use(wb)
    script = AppTest.from_function(graph_page, default_timeout=60)
    script.query_params["view"] = "archive"
    app = script.run()
    assert not app.exception
    assert "No archives folder is set; set WORKBENCH_ARCHIVES_DIR." in texts(app)
    assert list(app.text_input) == []


NODES = (GraphNode("d1", "One <i>", "s", "Source", 1, 0), GraphNode("d2", "Two", "s", "Source", 0, 1))
GRAPH = Graph(NODES, (Edge("d1", "d2", 1.0, 1, "See [two](2.md)."),))


def test_the_picture_holds_a_dot_a_document_and_a_line_a_link():
    (series,) = make_chart(GRAPH, "light", ["d1"])["series"]
    assert [(dot["id"], dot["symbol"]) for dot in series["data"]] == [("d1", "diamond"), ("d2", "circle")]
    assert [(line["source"], line["target"], line["value"]) for line in series["links"]] == [
        ("d1", "d2", "See [two](2.md).")
    ]
    assert "2 documents and 1 link." in describe_graph(GRAPH)


def test_types_of_documents_differ_in_hue_and_shape_and_a_legend_names_them():
    assert make_chart(GRAPH, "light")["legend"] == []
    nodes = [replace(GRAPH.nodes[0], id=f"m{n}", document_type="markdown") for n in range(2)]
    picture = make_chart(replace(GRAPH, nodes=(replace(GRAPH.nodes[1], document_type="pdf"), *nodes)), "dark")
    assert [entry["name"] for entry in picture["legend"][0]["data"]] == ["Markdown", "PDF"]
    (series,) = picture["series"]
    assert [(dot["category"], dot["symbol"]) for dot in series["data"]] == [(1, "rect"), (0, "circle"), (0, "circle")]
    assert len({category["itemStyle"]["color"] for category in series["categories"]}) == 2


def test_the_rarest_of_many_types_are_drawn_as_one():
    kinds = ("text", "markdown", "pdf", "html", "code", "csv", "json")
    picture = make_chart(
        replace(GRAPH, nodes=tuple(replace(NODES[0], id=kind, document_type=kind) for kind in kinds)), "light"
    )
    assert [entry["name"] for entry in picture["legend"][0]["data"]][-2:] == ["Code", "Other"]
    assert [dot["category"] for dot in picture["series"][0]["data"]] == [0, 1, 2, 3, 4, 5, 5]


def test_only_a_selected_dot_opens_a_document():
    def selected(kind, *places):
        return {"selection": {"selected": [{"data_type": kind, "data_indices": list(places)}]}}

    assert read_selection(selected("node", 1), GRAPH) == NODES[1]
    assert read_selection(selected("edge", 0), GRAPH) is None
    assert read_selection(selected("node", 9), GRAPH) is None
    assert read_selection({}, GRAPH) is None


def test_results_and_citations_are_escaped():
    hit = ArchiveHit(
        "d", "<b>", "a/<i>.md", "research", None, 1.0, (Highlight("content", ("&lt;x&gt; <mark>y</mark>",)),)
    )
    assert "<b>" not in render_hit(hit)
    assert "a/&lt;i&gt;.md" in render_hit(hit)
    one = DocumentCitation("d", "e", "u", "<script>", 1.0, "link", 2)
    assert "&lt;script&gt;" in render_citations("Cites", (one,), {"e": "<T>"}, outward=True)
