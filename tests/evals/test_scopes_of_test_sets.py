"""A test set keeps its scope: its experiments, generated questions, tuning and promotion use only that."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from evals.background import enqueue_optimise, make_runners
from evals.command import add_arguments, evaluate
from evals.evaluation import add_judgments
from evals.experiments.catalogue import Experiments, make_cells
from evals.experiments.leaderboard import describe_judged_outside, make_leaderboard, to_csv
from evals.experiments.report import to_notebook
from evals.judges.generation import add_synthetic
from evals.learning.training import learn
from evals.test_set import Question
from evals.test_sets.exchange import import_csv
from evals.test_sets.folders import list_sample_documents, load_test_set
from evals.test_sets.store import TestSetStore
from evals.test_sets.traffic import add_agent_queries
from mcp_app.server import create_server
from tests.evals.conftest import WriteTestSet
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.app.widgets.promoting import list_measured_places
from workbench.errors import InvalidInput, ScopeError
from workbench.types import Scope

ANIMALS = ("heron", "otter", "badger", "beaver", "kestrel", "marten", "weasel", "plover", "osprey", "lapwing")
TOPICS = ("nests", "meals", "winters", "voices")


def text(animal: str, topic: str, place: str) -> str:
    return f"# How does the {animal} of {place} manage its {topic}?\n\nThe {animal} is a resident of {place}.\n"


@pytest.fixture
def two_projects(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """The projects Shop and Bank, with documents on the same subjects, so that an unscoped search finds both."""
    for place in ("Shop", "Bank"):
        wb.projects.create(place)
        files = {f"{a}-{t}.md": text(a, t, place) for a in ANIMALS for t in TOPICS}
        wb.ingest(folder(files, place), source=f"{place} notes", project=place)
    return wb


def made(wb: Workbench, scope: Scope | None) -> str:
    """Create a test set of 40 questions, each answered by one document of Shop; returns its id."""
    store = TestSetStore(wb)
    key = store.create("Asked in the shop", scope=scope).id
    shop = {d.path: d.id for d in wb.documents.list(source_id=wb.sources.get("Shop notes").id)}
    pairs = [(a, t) for a in ANIMALS for t in TOPICS]
    store.add_questions(key, [Question(f"{a} {t}", f"{a} {t}") for a, t in pairs])
    for animal, topic in pairs:
        document = next(key for path, key in shop.items() if path and path.endswith(f"{animal}-{topic}.md"))
        store.judge(key, f"{animal} {topic}", document, "relevant")
    return key


def documents_found(wb: Workbench, experiments: Experiments, experiment_id: str) -> set[str]:
    """Return the sources of everything that an experiment's runs found."""
    runs = [result.run for result in experiments.results(experiment_id) if result.run]
    found = {key for run in runs for answer in run.answers.values() for key in answer.documents}
    return {wb.documents.get(key).source_id for key in found}


def test_an_experiment_searches_the_scope_of_its_test_set_and_reports_which(two_projects: Workbench) -> None:
    wb, experiments = two_projects, Experiments(two_projects)
    key = made(wb, Scope(kind="project", project="Shop"))
    experiment = experiments.run(experiments.create("", key, make_cells(["keyword", "hybrid"])).id)
    assert documents_found(wb, experiments, experiment.id) == {wb.sources.get("Shop notes").id}
    assert (experiment.over, TestSetStore(wb).info(key).over) == ("only project Shop",) * 2
    lines = make_leaderboard(experiments.results(experiment.id), "recall@10")
    assert lines[0].metrics["recall@10"] == 1.0
    assert {row["scope"] for row in csv.DictReader(io.StringIO(to_csv(lines, experiment.over)))} == {
        "only project Shop"
    }
    assert "over only project Shop" in to_notebook(experiment)


def test_without_a_scope_everything_is_searched_and_another_scope_is_another_ground(two_projects: Workbench) -> None:
    wb, experiments = two_projects, Experiments(two_projects)
    key = made(wb, None)
    experiment = experiments.run(experiments.create("", key, make_cells(["keyword"])).id)
    both = {wb.sources.get(f"{place} notes").id for place in ("Shop", "Bank")}
    assert documents_found(wb, experiments, experiment.id) == both
    assert experiment.over == "all your documents"
    store = TestSetStore(wb)
    narrow = store.create("Narrow", scope=Scope(project="Shop"))
    store.add_questions(narrow.id, store.load(key).questions)
    store.judge_all(narrow.id, store.load(key).judgments)
    other = experiments.create("", narrow.id, make_cells(["keyword"]))
    assert other.corpus_hash != experiment.corpus_hash


def test_generated_questions_and_quotes_come_from_the_scope_alone(
    two_projects: Workbench, folder: Callable[..., Path]
) -> None:
    wb, store = two_projects, TestSetStore(two_projects)
    for place, items in (("Shop", list_sample_documents()[:20]), ("Bank", list_sample_documents()[20:40])):
        files = {f"{item.key}.md": item.load() for item in items}
        wb.ingest(folder(files, f"more-{place}"), source=f"{place} notes", project=place)
    key = store.create("Generated", scope=Scope(sources=("Shop notes",))).id
    assert add_synthetic(wb, store, key, 30).questions >= 5
    documents = {judgment.document for judgment in store.load(key).judgments}
    assert {wb.documents.get(document).source_id for document in documents} == {wb.sources.get("Shop notes").id}
    quote = import_csv(wb, store, key, "question,quote\nwho is where?,The heron is a resident of Bank\n")
    assert quote.problems == ("Row 2: The quote 'The heron is a resident of Bank' is in none of the documents.",)
    empty = wb.sources.create("Nothing yet").id
    bare = store.create("Bare", scope=Scope(sources=(empty,))).id
    with pytest.raises(InvalidInput, match="no documents in the scope of this test set \\(source Nothing yet\\)"):
        add_synthetic(wb, store, bare, 3)


def test_learning_and_tuning_keep_the_scope(two_projects: Workbench) -> None:
    wb = two_projects
    key = made(wb, Scope(project="Shop"))
    learned = learn(wb, key, "here")
    assert learned.scope == "project Shop"
    job = enqueue_optimise(wb, key, ["keyword"], 1, "ndcg@10")
    wb.work(make_runners(wb))
    assert wb.jobs.wait(job.id, timeout=60).result["scope"] == "project Shop"


def test_the_command_searches_the_scope_of_its_options(two_projects: Workbench, beir: WriteTestSet) -> None:
    wb, said = two_projects, list[str]()
    key = made(wb, None)
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = ["--strategies", "keyword", "--metrics", "recall@10", "--ragas", "none"]
    arguments = parser.parse_args([key, *options])
    shop, _ = evaluate(wb, arguments, say=said.append, scope=Scope(project="Shop"))
    bank, _ = evaluate(wb, arguments, say=said.append, scope=Scope(kind="project", project="Bank"))
    assert (shop["scope"] or {})["text"] == "project Shop"
    assert (shop["corpus"], bank["corpus"]) == (40, 40)
    assert [run["strategies"]["keyword"]["recall@10"] for run in (shop, bank)] == [1.0, 0.0]
    assert any(
        "40 documents judged relevant are outside the scope of this test set (only project Bank)" in line
        for line in said
    )
    with pytest.raises(InvalidInput, match="has its own corpus, which a scope does not narrow"):
        evaluate(wb, parser.parse_args([str(beir()), *options]), say=said.append, scope=Scope(project="Shop"))
    assert load_test_set(beir()).over == "its own corpus"


def test_a_promotion_is_offered_for_the_measured_scope_first(two_projects: Workbench) -> None:
    wb, store = two_projects, TestSetStore(two_projects)
    measured = store.create("One project", scope=Scope(project="Shop")).scope
    first, bar, everywhere = list_measured_places(wb, measured, Scope(project="Bank"))
    assert (first.title, first.note) == ("Measured scope: project Shop", "")
    assert wb.promotions.key(first.scope) == f"project:{wb.projects.get('Shop').id}"
    assert (bar.title, everywhere.title) == ("Current scope: project Bank", "All documents")
    assert bar.note == everywhere.note and bar.note.startswith("This run was measured on project Shop, so")
    everything = list_measured_places(wb, store.create("All").scope, Scope(project="Bank"))
    assert [place.note == "" for place in everything] == [True, False]
    tagged = store.create("Tagged", scope=Scope(tags=("x",))).scope
    [only] = list_measured_places(wb, tagged, Scope())
    assert only.title == "All documents" and "measured on tag x, which cannot have its own promotion" in only.note


def test_a_deleted_project_is_named_and_the_figures_are_kept(two_projects: Workbench) -> None:
    wb, experiments, store = two_projects, Experiments(two_projects), TestSetStore(two_projects)
    key = made(wb, Scope(project="Shop"))
    experiment = experiments.run(experiments.create("", key, make_cells(["keyword"])).id)
    wb.projects.delete("Shop")
    lost = "The scope of this test set included the project Shop, now deleted"
    with pytest.raises(ScopeError, match=lost):
        experiments.create("", key, make_cells(["keyword"]))
    with pytest.raises(ScopeError, match=lost):
        add_synthetic(wb, store, key, 3)
    assert experiments.get(experiment.id).over == "project Shop"
    assert experiments.results(experiment.id)[0].run is not None
    assert describe_judged_outside(wb, store.load(key)) == ()
    assert list_measured_places(wb, experiment.scope, Scope())[0].title == "All documents"


def test_agents_questions_come_from_calls_in_the_scope_only(two_projects: Workbench) -> None:
    wb, store = two_projects, TestSetStore(two_projects)
    shop, bank = wb.projects.get("Shop").id, wb.projects.get("Bank").id
    wb.sources.create("Everyone's")
    wb.documents.create(text="The otter is everywhere.", title="Otters", source="Everyone's")
    agent = Agent(create_server(wb, toolsets=["all"]))
    agent("rag_search_project_knowledge", query="otter of the shop", project_id=shop)
    agent("rag_search_project_knowledge", query="layoffs at the bank", project_id=bank)
    agent("rag_search_knowledge_base", query="shop and everyone", scope="all", project_id=shop)
    agent("rag_search_knowledge_base", query="a source of the shop", source_id="Shop notes")
    agent("rag_search_global_knowledge", query="everyone only")
    agent("search_knowledge_base", query="all of it")
    expected = {
        Scope(kind="project", project="Shop"): {"otter of the shop", "shop and everyone", "a source of the shop"},
        Scope(kind="project", project="Bank"): {"layoffs at the bank"},
        Scope(kind="global"): {"everyone only"},
    }
    for scope, asked in expected.items():
        key = store.create(f"Asked in {scope.project or scope.kind}", scope=scope).id
        assert add_agent_queries(wb, store, key).questions == len(asked)
        assert {question.text for question in store.load(key).questions} == asked
    everything = store.create("Asked anywhere").id
    assert add_agent_queries(wb, store, everything).questions == 6


def test_judgments_of_a_pool_neither_index_nor_depend_on_the_scope(two_projects: Workbench, beir: WriteTestSet) -> None:
    wb, store = two_projects, TestSetStore(two_projects)
    key = made(wb, None)
    bank = wb.documents.list(source_id=wb.sources.get("Bank notes").id)[0].id
    narrow = wb.test_sets.read(key, Scope(project="Shop"))
    _, read = add_judgments(wb, narrow, key, f"id,document,grade\notter nests,{bank},not\n")
    assert not read.problems and store.load(key).qrels["otter nests"][bank] == 0
    animals = wb.test_sets.from_folder(beir(), "Animals")
    wb.indexes.create("other", chunker="sentence")
    wb.indexes.build("other")
    wb.corpus.indexes.set_default("other")
    before = wb.corpus.indexes.list(dataset=store.info(animals.id).source_id)
    read = wb.test_sets.import_pool(animals.id, "id,document,grade\nq1,cats,not\nq1,nope,1\n")
    assert read.list_left_out() == ["The test set does not search a document 'nope'."]
    assert wb.corpus.indexes.list(dataset=store.info(animals.id).source_id) == before
