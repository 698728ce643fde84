"""The pages' logic, run by Streamlit itself without a browser."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import workbench.app
from workbench.app.engine import ENGINE, Engine
from workbench.errors import StorageError

MAIN = Path(workbench.app.__file__).parent / "frame" / "main.py"


@pytest.fixture
def visit(wb):
    """Open a page on the test's workbench: ``visit(q="tide")``, or another page by its ``page()``."""
    ENGINE.use(wb)

    def go(page=None, **address):
        script = AppTest.from_function(page) if page else AppTest.from_file(MAIN)
        script.default_timeout = 30
        for name, value in address.items():
            script.query_params[name] = value
        return script.run()

    return go


@pytest.fixture
def tides(wb, folder):
    """A source of two documents in a project's folder, and a source elsewhere."""
    wb.projects.create("Harbour", id="harbour")
    wb.projects.create_folder("harbour", "Gauges")
    files = {"gauge.md": "# Gauge\n\nThe tide gauge records the sea.", "well.md": "# Well\n\nA stilling well."}
    wb.ingest(folder(files), source="Tides", project="harbour", folder="Gauges", tags=["sea"])
    wb.ingest(folder({"bread.md": "# Bread\n\nKnead the dough."}, "more"), source="Bread")


def texts(app):
    return " ".join([*(one.value for one in app.markdown), *(one.proto.body for one in app.get("html"))])


def library():
    from workbench.app.pages.library import page

    page()


def system():
    from workbench.app.pages.system import page

    page()


def test_an_empty_corpus_says_what_to_do_first(visit):
    app = visit()
    assert not app.exception
    assert "Nothing to search yet" in texts(app)
    assert {"Add documents", "Load the sample"} <= {button.label for button in app.button}


def test_a_question_goes_into_the_address_and_its_answer_comes_without_error(visit, tides):
    app = visit()
    app.text_input(key="question").set_value("tide gauge").run()
    assert app.query_params["q"] == "tide gauge"
    assert not app.exception
    assert "Nothing found" not in texts(app)


def test_a_shared_address_brings_back_question_strategies_scope_and_parameters(visit, tides):
    app = visit(
        q="tide", s=["vector", "hybrid"], project="harbour", folder="Gauges", tag="sea", set="hybrid.fusion=rrf"
    )
    assert app.text_input(key="question").value == "tide"
    assert app.session_state["strategies"] == ["vector", "hybrid"]
    assert app.session_state["scope_project"] == "harbour"
    assert app.session_state["scope_folder"] == "Gauges"
    assert app.session_state["set_hybrid_fusion"] == "rrf"


@pytest.mark.parametrize("value", ["nowhere", "' OR '1'='1", "100%", "🌊"])
def test_an_unknown_scope_in_the_address_finds_nothing_and_says_so(visit, tides, value):
    app = visit(q="tide", project=value)
    assert not app.exception
    assert "The scope does not fit" in texts(app)
    assert app.session_state["scope_project"] == value


def test_a_fifth_strategy_takes_the_place_of_one(visit, tides):
    app = visit(q="tide")
    app.get("button_group")[0].set_value(["vector", "keyword", "hybrid", "rerank", "mmr"]).run()
    assert app.query_params["s"] == ["vector", "keyword", "hybrid", "mmr"]


def test_a_parameter_out_of_its_range_is_explained(visit, tides):
    app = visit(q="tide", set="rerank.candidates=9999")
    assert "candidates cannot be" in texts(app)


def test_a_document_in_the_address_that_is_gone_is_let_go(visit, tides):
    app = visit(doc="doc_gone", at="0-5")
    assert not app.exception
    assert "doc" not in app.query_params


def test_the_library_asks_what_a_source_is_in_and_shows_its_documents(visit, tides, wb):
    app = visit(library, open=wb.knowledge.source("Tides").id)
    assert not app.exception
    assert app.title[0].value == "Tides"
    assert "2 documents" in app.caption[0].value


def test_deleting_says_what_will_go_before_and_what_went_after(visit, tides, wb):
    def dialog():
        import streamlit as st

        from workbench.app.engine import ENGINE
        from workbench.app.library_dialogs import delete_sources, show_notice

        show_notice()
        left = ENGINE.workbench.knowledge.sources()
        if len(left) == 2 and not st.session_state.get("kept"):
            delete_sources(ENGINE.workbench, [source for source in left if source.title == "Tides"])

    app = visit(dialog)
    assert "removes 1 source with 2 documents and 2 passages" in texts(app)
    assert wb.knowledge.count_documents() == 3
    app.button(key="confirm_delete").click().run()
    assert wb.knowledge.count_documents() == 1
    assert app.success[0].value == "Removed 1 source, 2 documents, 2 passages."


def test_projects_and_folders_are_shown_as_they_are_named(visit, wb):
    wb.projects.create("Harbour <b>", id="harbour")
    wb.projects.create_folder("harbour", "<i>Gauges</i>", color="red;position:fixed")
    shown = texts(visit(library, view="projects"))
    assert "Harbour &lt;b&gt;" in shown
    assert "&lt;i&gt;Gauges&lt;/i&gt;" in shown
    assert "position:fixed" not in shown


def test_the_system_page_says_that_everything_is_well(visit, tides):
    app = visit(system)
    assert not app.exception
    assert "Everything is well." in texts(app)
    assert "pgvector" in texts(app)


def test_a_database_that_is_down_gives_one_sentence_and_can_be_tried_again():
    engine = Engine()
    engine.configure(database_url="postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(StorageError, match="cannot be reached; start it or correct WORKBENCH_DATABASE_URL"):
        engine.wait(30)
    engine.again()
    with pytest.raises(StorageError):
        engine.wait(30)
