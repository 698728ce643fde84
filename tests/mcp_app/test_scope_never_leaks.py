"""Two projects with the same words, a folder, a tag, a source: no caller sees other scopes or gets too few."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mcp_app.agent import Agent
from workbench import Scope, Workbench
from workbench.ingestion.incoming import text_item

WORDS = "payment refund ledger invoice"


@pytest.fixture
def crowd(wb: Workbench) -> dict[str, str]:
    """Four sources of 12 documents each, all with the same words; returns source ids by name."""
    for project in ("proj_a", "proj_b"):
        wb.projects.create(project.upper(), id=project)
        wb.projects.create_folder(project, "Payments")
    places = {
        "a": {"project": "proj_a"},
        "a folder": {"project": "proj_a", "folder": "Payments"},
        "b": {"project": "proj_b", "folder": "Payments", "tags": ["money"]},
        "global": {"tags": ["money"]},
    }
    ids = {}
    for name, place in places.items():
        ids[name] = wb.sources.create(f"Source {name}", **place).id
        items = [text_item(f"{n}", f"{WORDS} {name} {n}", title=f"{name} {n}") for n in range(12)]
        wb.documents.ingest_items(ids[name], items)
    return ids


CASES = {
    "one project": ("rag_search_project_knowledge", {"project_id": "proj_a"}, {"a", "a folder"}),
    "one folder": ("rag_search_project_knowledge", {"project_id": "proj_a", "folder_name": "Payments"}, {"a folder"}),
    "the folder of the same name": (
        "rag_search_project_knowledge", {"project_id": "proj_b", "folder_name": "Payments"}, {"b"},
    ),
    "global": ("rag_search_global_knowledge", {}, {"global"}),
    "a tag that a project's source has too": ("rag_search_global_knowledge", {"tags": ["money"]}, {"global"}),
    "project and global": ("rag_search_knowledge_base", {"project_id": "proj_b"}, {"b", "global"}),
    "scope project": ("rag_search_knowledge_base", {"scope": "project", "project_id": "proj_b"}, {"b"}),
    "one source by title": ("rag_search_knowledge_base", {"source_id": "Source a folder"}, {"a folder"}),
}  # fmt: skip


def test_every_scope_sees_its_own_and_finds_as_many_as_asked(agent: Agent, crowd: dict[str, str]) -> None:
    for case, (tool, arguments, allowed) in CASES.items():
        found = agent(tool, query=WORDS, match_count=10, **arguments)
        assert {result["source_id"] for result in found["results"]} <= {crowd[name] for name in allowed}, case
        assert (len(found["results"]), found["under_filled"]) == (10, False), case


def test_a_source_filter_is_part_of_every_search(agent: Agent, crowd: dict[str, str]) -> None:
    for search_type in ("vector", "hybrid", "rerank"):
        arguments = {"query": WORDS, "source_id": crowd["a"], "search_type": search_type, "match_count": 10}
        found = agent("search_knowledge_base", **arguments)
        assert found["count"] == 10
        assert {hit["metadata"]["source_id"] for hit in found["results"]} == {crowd["a"]}


def test_another_projects_source_is_not_reachable_through_a_project(agent: Agent, crowd: dict[str, str]) -> None:
    arguments = {"query": WORDS, "scope": "project", "project_id": "proj_a", "source_id": crowd["b"]}
    assert agent("rag_search_knowledge_base", **arguments)["results"] == []


@pytest.mark.parametrize(
    "place", [{"project_id": "shop"}, {"scope": "project", "project_id": "shop"}, {"scope": "global"}]
)
def test_a_title_or_url_outside_the_scope_is_as_unknown_as_one_that_nothing_has(
    agent: Agent, wb: Workbench, place: dict[str, str]
) -> None:
    for project in ("bank", "shop"):
        wb.projects.create(project.title(), id=project)
    foreign = wb.sources.create("Secret Papers", project="bank", url="https://bank.example.com/")
    wb.documents.create(text=WORDS, title="Ledger", source=foreign.id)
    for name in ("Secret Papers", "https://bank.example.com/", "No Such Papers"):
        failure = agent.failure("rag_search_knowledge_base", query=WORDS, source_id=name, **place)
        assert failure["error"] == f"Source not found: {name}. List the sources to see the valid ids."
    own = agent("rag_search_knowledge_base", query=WORDS, source_id="Secret Papers", project_id="bank")
    assert own["count"] == 1


def test_odd_names_are_unknown_and_nothing_else(agent: Agent, crowd: dict[str, str]) -> None:
    for odd in ("' OR '1'='1", "100%", "a\x00b", "🐈", '"', "%s"):
        assert "not found" in agent.failure("rag_search_project_knowledge", query=WORDS, project_id=odd)["error"]
        assert "not found" in agent.failure("search_knowledge_base", query=WORDS, source_id=odd)["error"]
        assert agent("rag_search_global_knowledge", query=WORDS, tags=[odd])["results"] == []


def test_a_long_document_does_not_crowd_out_the_others(agent: Agent, wb: Workbench) -> None:
    source = wb.sources.create("Crowded").id
    wb.documents.create(text="\n\n".join(f"# Part {n}\n\n{WORDS} {n} " * 30 for n in range(60)), source=source)
    others = [text_item(f"{n}", f"A {WORDS.split()[0]} {n} among other words.", title=f"{n}") for n in range(4)]
    wb.documents.ingest_items(source, others)
    found = agent("rag_search_knowledge_base", query=WORDS, source_id=source, match_count=5)
    assert len({result["page_id"] for result in found["results"]}) == 5


def test_other_searches_find_conversations_and_articles_only_if_their_source_is_named(
    agent: Agent, wb: Workbench, tmp_path: Path
) -> None:
    talk = tmp_path / "docs/plan/2025-11-17/001-zebra"
    talk.mkdir(parents=True)
    (talk / "talk.md").write_text("# Zebra\n\nZebra stripes were talked about.")
    agent("embed_workspace", workspace_path=str(tmp_path / "docs"))
    wb.documents.create(text="Zebra crossings in a document.", title="Crossings")
    (workspace,) = wb.sources.list(source_type="workspace")
    for tool in ("search_knowledge_base", "rag_search_knowledge_base", "rag_search_global_knowledge", "search"):
        text = agent.talk(lambda client, tool=tool: client.call_tool(tool, {"query": "zebra"})).content[0].text
        assert "crossings" in text.lower()
        assert "stripes" not in text
    named = agent("search_knowledge_base", query="zebra", source_id=workspace.id)
    assert "stripes" in named["results"][0]["text"]


def test_tags_match_in_any_case_and_the_suggestion_names_another_one(agent: Agent, wb: Workbench) -> None:
    source = wb.sources.create("REST", tags=["Rest-API"]).id
    wb.sources.create("Hooks", tags=["rest-hooks"])
    wb.documents.create(text="Words on endpoints.", title="T", source=source)
    assert agent("rag_search_global_knowledge", query="endpoints", tags=["rest-api"])["count"] == 1
    wb.projects.create("Shop", id="proj_1")
    wb.sources.update(source, project="proj_1")
    nothing = agent("rag_search_global_knowledge", query="endpoints", tags=["rest-api"])
    assert nothing["count"] == 0
    assert "'rest-hooks'" in nothing["suggestion"]
    assert "Rest-API" not in nothing["suggestion"]  # only a source of the project has it


def test_names_of_documents_outside_the_scope_are_not_preferred_or_reported(agent: Agent, wb: Workbench) -> None:
    for project in ("bank", "shop"):
        wb.projects.create(project.title(), id=project)
        wb.sources.create(f"{project.title()} Secret Papers", project=project)
    text = "# Layoffs in Springfield\n\nThe plant closes."
    metadata = {"company": "Globex Holding"}
    wb.documents.create(text=text, source="Bank Secret Papers", title="Layoffs in Springfield", metadata=metadata)
    for number in range(3):
        wb.documents.create(text=f"Opening hours {number}.", source="Shop Secret Papers", title=f"Hours {number}")
        wb.documents.create(text=f"Other matters {number}.", source="Bank Secret Papers", title=f"Matter {number}")
    for query in (
        "layoffs in springfield",
        "globex holding hours",
        "bank secret papers hours",
        "layofs in springfeild",
    ):
        found = agent("rag_search_project_knowledge", query=query, project_id="shop")
        assert "preferring" not in found, query
    assert agent("rag_search_project_knowledge", query="layoffs in springfield", project_id="bank")["preferring"] == [
        "Layoffs in Springfield"
    ]


def test_a_word_that_only_other_projects_have_is_corrected_like_one_that_nothing_has(wb: Workbench) -> None:
    wb.projects.create("Bank", id="bank")
    wb.projects.create("Shop", id="shop")
    for project, text in (("bank", "The pangolim sleeps."), ("shop", "The pangolin wakes.")):
        wb.documents.create(text=text, title=project, source=wb.sources.create(project, project=project).id)
    scope = Scope(kind="project", project="shop")
    assert wb.search("pangolim", scope=scope).corrections == {"pangolim": ("pangolin",)}
    assert wb.search("pangolun", scope=scope).corrections == {"pangolun": ("pangolin",)}


def test_a_title_that_two_projects_use_means_the_source_in_scope(agent: Agent, wb: Workbench) -> None:
    for project in ("bank", "shop"):
        wb.projects.create(project.title(), id=project)
        source = wb.sources.create("Handbook", project=project).id
        wb.documents.create(text=f"Words of the {project}.", title=project, source=source)
    for project in ("bank", "shop"):
        given = {"scope": "project", "project_id": project, "source_id": "Handbook"}
        found = agent("rag_search_knowledge_base", query="words", **given)
        assert [result["title"] for result in found["results"]] == [project]
