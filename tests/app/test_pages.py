"""The logic of the pages, run by Streamlit without a browser."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import workbench.app
from evals.test_sets.store import TestSetStore
from workbench import Scope
from workbench.app.library.page import describe_indexing, make_source_row
from workbench.app.shell.work import list_job_views
from workbench.app.state.shared import OPENING
from workbench.errors import StorageError
from workbench.opening import Opening, open_configured
from workbench.services.sample_corpus import SAMPLE_TITLE

MAIN = Path(workbench.app.__file__).parent / "frame" / "main.py"


@pytest.fixture
def visit(wb):
    """Open a page on the test's workbench: ``visit(q="tide")``, or another page by its ``page()``."""
    OPENING.use(wb)

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


def test_the_scope_bar_offers_only_what_the_chosen_project_has(visit, wb, tides, folder):
    """Tags, sources and languages of other projects, and their numbers, do not show in its choices."""
    wb.projects.create("Bank", id="bank")
    german = "# Brief\n\nDie Bank hat gestern einen Brief geschrieben, und wir haben ihn noch nicht gelesen."
    wb.ingest(folder({"brief.md": german}, "bank"), source="Letters", project="bank", tags=["merger", "sea"])

    def offered(**address):
        app = visit(**address)
        return {choice.label: choice.options for choice in app.multiselect}

    everything = offered(q="tide")
    assert everything["Tags (any of)"] == ["merger · 1", "sea · 2"] and "Letters" in everything["Sources"]
    assert everything["Languages"] == ["English · 3", "German · 1"]
    harbour = offered(q="tide", project="harbour", kind="project")
    assert harbour == {"Tags (any of)": ["sea · 1"], "Sources": ["Tides"]}
    assert offered(project="harbour")["Sources"] == ["Tides", "Bread"]
    assert offered(source="Bread")["Sources"][-1] == "Bread"


def test_the_scope_bar_names_unassigned_sources_if_they_are_searched_with_a_project(visit, wb, tides):
    def label(**address):
        return visit(q="tide", **address).get("popover")[0].proto.popover.label

    assert label() == "**Scope** everything"
    assert label(project="harbour") == "**Scope** Harbour and unassigned sources"
    assert len(wb.requests.resolve(Scope(project="harbour")).source_ids) == 2
    assert label(project="harbour", folder="Gauges") == "**Scope** Harbour / Gauges"
    assert len(wb.requests.resolve(Scope(project="harbour", folder="Gauges")).source_ids) == 1
    assert label(project="harbour", kind="project") == "**Scope** Harbour"


def texts(app):
    return " ".join([*(part.value for part in app.markdown), *(part.proto.body for part in app.get("html"))])


def library():
    from workbench.app.library.page import page

    page()


def graph():
    from workbench.app.graph.page import page

    page()


def evaluate():
    from workbench.app.evaluate.page import page

    page()


def system():
    from workbench.app.system.page import page

    page()


def test_an_empty_corpus_explains_what_to_do_first(visit):
    app = visit()
    assert not app.exception
    assert "Which search strategy works best for your documents?" in texts(app)
    assert app.get("file_uploader")
    assert {"Crawl a website", "Load sample"} <= {button.label for button in app.button}


def test_the_sample_questions_come_with_a_place_to_drop_own_files(visit, wb, folder):
    wb.ingest(folder({"codes.md": "# Codes\n\n40P01 is a deadlock."}), source=SAMPLE_TITLE)
    app = visit()
    assert not app.exception
    assert {"meaning of 40P01", "Crawl a website"} <= {button.label for button in app.button}
    assert app.get("file_uploader")


@pytest.mark.parametrize(
    ("page", "ways"), [("library", ["Crawl a website"]), ("graph", ["Add files", "Crawl a website"])]
)
def test_a_page_without_documents_leads_onward(visit, wb, page, ways):
    app = visit({"library": library, "graph": graph}[page])
    assert not app.exception and "yet" in texts(app)
    shown = [button.label for button in app.button]
    assert shown[-len(ways) - 1 :] == [*ways, "Load sample"]
    app.button(key="to_sample").click().run()
    assert [job.title for job in wb.jobs.in_view()] == ["Loading the sample"]
    disabled = [button.disabled for button in app.button if button.key == "to_sample"]
    assert disabled == ([] if page == "library" else [True])  # the Library lists the new source instead


def test_if_a_scope_finds_nothing_everything_is_one_click_away(visit, tides):
    app = visit(q="tide", tag="nowhere")
    assert "Nothing found" in texts(app)
    next(button for button in app.button if button.label == "Clear scope").click().run()
    assert "tag" not in app.query_params and "Nothing found" not in texts(app)
    scoped = visit(graph, tag="sea")
    assert "No citations in this scope" in texts(scoped)
    assert "Clear scope" in {button.label for button in scoped.button}


def test_a_question_goes_into_the_address_and_its_answer_comes_without_error(visit, tides):
    app = visit()
    app.text_input(key="question").set_value("tide gauge").run()
    assert app.query_params["q"] == "tide gauge"
    assert not app.exception
    assert "Nothing found" not in texts(app)


def test_a_shared_address_brings_back_question_strategies_scope_and_parameters(visit, tides):
    app = visit(
        q="tide",
        s=["vector", "hybrid"],
        project="harbour",
        folder="Gauges",
        tag="sea",
        set="hybrid.fusion=rrf",
        look="settings",
    )
    assert app.text_input(key="question").value == "tide"
    assert app.session_state["strategies"] == ["vector", "hybrid"]
    assert app.session_state["scope_project"] == "harbour"
    assert app.session_state["scope_folder"] == "Gauges"
    assert app.session_state["set_hybrid_fusion"] == "rrf"


def test_what_of_an_address_is_not_understood_is_reported_with_what_is_shown_instead(visit, tides):
    app = visit(q="tide", n="-3", k="9999", set=["nonsense", "nosuch.weight=1", "mmr.lambda=0.3"], s=["vector", "mmr"])
    said = texts(app).replace("\\", "")
    assert "n=-3 (must be 5, 10, 20 or 50; showing 10)" in said
    assert "k=9999 (unknown parameter)" in said
    assert "set=nonsense (expected strategy.parameter=value" in said and "set=nosuch.weight=1 (" in said
    assert "lambda=0.3 (" not in said
    app.button(key="clean_address").click().run()
    assert dict(app.query_params) == {"q": "tide", "set": "mmr.lambda=0.3", "s": ["vector", "mmr"]}
    assert "Ignored in the URL" not in texts(app)


def test_the_row_of_a_source_reports_that_it_is_filled_while_work_continues(wb, folder, tides):
    OPENING.use(wb)
    source = next(source for source in wb.sources.list() if source.title == "Tides")
    job = wb.jobs.enqueue_ingest(files=[("new.md", b"# New\n\nA new one.")], source=source.id, source_id=source.id)
    assert describe_indexing(list_job_views().values()) == {source.id: "Indexing"}
    assert make_source_row(source, {}, "Indexing")["notes"] == {"title": "Indexing"}
    wb.jobs.cancel(job.id)
    wb.jobs.wait(job.id, timeout=30)
    assert describe_indexing(list_job_views().values()) == {} and make_source_row(source, {})["notes"] == {}


@pytest.mark.parametrize("view", ["", "tune"])
def test_evaluate_offers_the_next_step_if_it_is_empty(visit, view):
    app = visit(evaluate, **({"view": view} if view else {}))
    assert not app.exception
    shown = {button.label for button in app.button}
    assert shown >= ({"Go to test sets"} if view else {"Add files", "Crawl a website", "Run experiment"})


def test_a_test_set_without_judgments_leads_to_judging(visit, tides, wb):
    made = TestSetStore(wb).create("Tide questions")
    TestSetStore(wb).add_questions(made.id, ["What records the sea?"])
    app = visit(evaluate, new="1", dataset=made.id)
    assert app.button(key="experiment_go").disabled
    assert "Judge on Compare" in {button.label for button in app.button}


def test_columns_beyond_the_limit_are_reported(visit, tides):
    app = visit(q="tide", s=["vector", "keyword", "hybrid", "rerank", "mmr"])
    assert "s=mmr (limit is 4 columns)" in texts(app).replace("\\", "")


@pytest.mark.parametrize("value", ["nowhere", "' OR '1'='1", "100%", "🌊"])
def test_an_unknown_scope_in_the_address_finds_nothing_and_reports_it(visit, tides, value):
    app = visit(q="tide", project=value)
    assert not app.exception
    assert "Invalid scope" in texts(app)
    assert app.session_state["scope_project"] == value


def test_a_fifth_strategy_takes_the_place_of_one(visit, tides):
    app = visit(q="tide")
    app.get("button_group")[0].set_value(["vector", "keyword", "hybrid", "rerank", "mmr"]).run()
    assert app.query_params["s"] == ["vector", "keyword", "rerank", "mmr"]


def test_a_document_in_the_address_that_is_gone_is_let_go(visit, tides):
    app = visit(doc="doc_gone", at="0-5")
    assert not app.exception
    assert "doc" not in app.query_params


def test_the_library_asks_what_a_source_is_in_and_shows_its_documents(visit, tides, wb):
    app = visit(library, open=wb.sources.get("Tides").id)
    assert not app.exception
    assert app.title[0].value == "Tides"
    assert "2 documents" in app.caption[0].value


def test_deleting_reports_what_will_be_and_what_was_deleted(visit, tides, wb):
    def dialog():
        import streamlit as st

        from workbench.app.library.page import delete_sources
        from workbench.app.state.shared import OPENING
        from workbench.app.widgets.notices import show_notice

        show_notice()
        left = OPENING.workbench.sources.list()
        if len(left) == 2 and not st.session_state.get("kept"):
            delete_sources(OPENING.workbench, [source for source in left if source.title == "Tides"])

    app = visit(dialog)
    assert "deletes 1 source with 2 documents and 2 passages" in texts(app)
    assert wb.documents.count() == 3
    app.button(key="confirm_delete").click().run()
    assert wb.documents.count() == 1
    assert app.toast[0].value == "Deleted 1 source, 2 documents, 2 passages."


def test_moving_a_source_starts_from_its_project_and_folder(visit, tides, wb):
    def dialog():
        from workbench.app.library.page import move_sources
        from workbench.app.state.shared import OPENING

        move_sources(OPENING.workbench, [OPENING.workbench.sources.get("Tides")])

    wb.projects.create("Quay", id="quay")
    wb.projects.create_folder("quay", "Gauges")
    wb.sources.update(wb.sources.get("Tides").id, project="quay", folder="Gauges")
    assert [choice.value for choice in visit(dialog).selectbox] == ["quay", "Gauges"]


def test_projects_and_folders_are_shown_as_they_are_named(visit, wb):
    wb.projects.create("Harbour <b>", id="harbour")
    wb.projects.create_folder("harbour", "<i>Gauges</i>", color="red;position:fixed")
    shown = texts(visit(library, view="projects"))
    assert "Harbour &lt;b&gt;" in shown
    assert "&lt;i&gt;Gauges&lt;/i&gt;" in shown
    assert "position:fixed" not in shown


def table_form():
    from workbench.app.state.shared import OPENING
    from workbench.app.system.page import ask_table

    ask_table(OPENING.workbench)


def test_the_system_page_reports_that_everything_is_well(visit, tides):
    app = visit(system)
    assert not app.exception
    assert "All systems OK" in texts(app)
    [checks] = [part.proto for part in app.get("bidi_component") if "Health checks" in str(part.proto)]
    assert "pgvector" in str(checks)


def test_a_page_that_is_drawn_lets_the_model_load(visit):
    assert not OPENING.may_warm
    assert not visit().exception
    assert OPENING.may_warm


def test_a_database_that_is_down_gives_one_sentence_and_can_be_tried_again():
    opening = Opening()
    opening.configure(lambda: open_configured(database_url="postgresql://nobody@127.0.0.1:1/nothing"))
    with pytest.raises(StorageError, match="is unreachable; start it or correct WORKBENCH_DATABASE_URL"):
        opening.wait(30)
    opening.again()
    with pytest.raises(StorageError):
        opening.wait(30)


def test_a_table_is_attached_in_a_form_and_synced_by_a_job(visit, wb):
    vector = wb.corpus.encoder().encode(["A heron waits by the water."]).vectors[0].tolist()
    wb.corpus.database.rows("CREATE TABLE birds (id int PRIMARY KEY, body text, v vector)")
    values = {"v": str(vector)}
    wb.corpus.database.rows("INSERT INTO birds VALUES (1, 'A heron waits by the water.', %(v)s::vector)", values)
    assert "Attach table" in [button.label for button in visit(system).button]
    app = visit(table_form)
    app.text_input(key="table_name").input("birds")
    app.text_input(key="table_table").input("birds")
    app = app.button(key="table_attach").click().run()

    [job] = wb.jobs.list_builds().values()
    assert job.parameters == {"index": "birds"}
    assert wb.indexes.build("birds").passages_count == 1
    assert wb.search("heron", "rerank@birds").results[0].text == "A heron waits by the water."


def test_each_comparison_is_in_the_history_once_and_a_saved_one_stays(visit, wb, tides):
    for address in ({"q": "tide"}, {"q": "tide", "s": ["vector", "hybrid"], "tag": "sea"}, {"q": "tide"}):
        assert not visit(**address, look="figures").exception
    past = wb.history.list()
    assert [one.address for one in past] == ["q=tide", "q=tide&s=vector&s=hybrid&tag=sea"]
    wb.history.save([past[1].address])
    wb.history.clear()
    assert [(one.address, one.saved) for one in wb.history.list(saved_only=True)] == [(past[1].address, True)]
    assert len(wb.history.list()) == 1


def test_each_part_of_the_set_up_has_what_it_changes_what_it_costs_and_a_test(visit):
    app = visit(system, view="setup")
    assert texts(app).count("<dt>Changes</dt>") == texts(app).count("<dt>Costs</dt>") == 4
    assert [button.label for button in app.button].count("Test") == 4
