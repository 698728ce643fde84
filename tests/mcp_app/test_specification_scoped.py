"""Every example and workflow of the scoped tools' specification, under its own name."""

from __future__ import annotations

import pytest

from mcp_app.paging import tokens
from mcp_app.tools.scoped import rag_search_global_knowledge
from tests.mcp_app.agent import MODES, Agent
from workbench import Workbench
from workbench.types import TAG_CATALOGUE

PROJECT = "proj_123"


@pytest.fixture
def knowledge(wb: Workbench) -> Workbench:
    """One project with folders and sources, and global sources with tags."""
    wb.projects.create("Shop", id=PROJECT)
    wb.projects.create_folder(PROJECT, "Authentication", "Auth system documentation", "#6366f1", "lock")
    wb.projects.create_folder(PROJECT, "API", "Endpoints")
    places = {
        "Login": {"project": PROJECT, "folder": "Authentication"},
        "Endpoints": {"project": PROJECT, "folder": "API"},
        "React docs": {"tags": ["react", "typescript"]},
        "FastAPI docs": {"tags": ["fastapi", "security"]},
    }
    texts = {
        "Login": "# Login\n\nThe OAuth flow of our authentication: tokens from the login endpoint.",
        "Endpoints": "# Endpoints\n\nThe login endpoint is POST /login. API endpoints use the database schema.",
        "React docs": "# Hooks\n\nReact hooks patterns: state and effects.",
        "FastAPI docs": "# Dependencies\n\nFastAPI authentication by dependencies. REST API design and endpoints.",
    }
    for title, place in places.items():
        source = wb.sources.create(title, **place)
        wb.documents.create(text=texts[title], source=source.id)
    return wb


def titles(found: dict) -> list[str]:
    return [result["title"] for result in found["results"]]


@pytest.mark.parametrize("mode", MODES)
def test_get_all_global_and_project_sources(agent: Agent, knowledge: Workbench, mode: str) -> None:
    agent = Agent(agent.server, mode)
    everything = agent("rag_get_available_sources")
    assert (everything["count"], everything["scope_filter"], everything["project_filter"]) == (4, None, None)
    assert agent("rag_get_available_sources", scope="global")["count"] == 2
    own = agent("rag_get_available_sources", scope="project", project_id=PROJECT)
    assert [(source["title"], source["folder_name"]) for source in own["sources"]] == [
        ("Login", "Authentication"),
        ("Endpoints", "API"),
    ]
    assert set(own["sources"][0]) >= {"source_id", "scope", "project_id", "folder_name", "tags"}


def test_search_only_global_knowledge(agent: Agent, knowledge: Workbench) -> None:
    found = agent("rag_search_knowledge_base", query="React hooks", scope="global")
    assert titles(found)[0] == "Hooks"
    assert {result["scope"] for result in found["results"]} == {"global"}
    assert (found["search_scope"], found["project_context"], found["error"]) == ("global", None, None)


def test_search_project_specific_knowledge(agent: Agent, knowledge: Workbench) -> None:
    found = agent("rag_search_knowledge_base", query="authentication flow", scope="project", project_id=PROJECT)
    assert {result["project_id"] for result in found["results"]} == {PROJECT}
    assert (found["return_mode"], found["reranked"]) == ("pages", True)


def test_search_all_with_project_context_prioritizes_project_sources(agent: Agent, knowledge: Workbench) -> None:
    same = "# Same\n\nExactly the same words on caching."
    for title, place in {"Ours": {"project": PROJECT}, "Everybody's": {}}.items():
        knowledge.documents.create(text=same, source=knowledge.sources.create(title, **place).id)
    for mode in ("pages", "chunks"):
        arguments = {"query": "caching words", "scope": "all", "project_id": PROJECT, "return_mode": mode}
        found = agent("rag_search_knowledge_base", **arguments)["results"][:2]
        assert [result["scope"] for result in found] == ["project", "global"]


def test_pages_have_the_promised_fields(agent: Agent, knowledge: Workbench) -> None:
    page = agent("rag_search_project_knowledge", query="login endpoint", project_id=PROJECT)["results"][0]
    assert set(page) == {
        "page_id", "url", "title", "section_title", "word_count", "chunk_matches", "aggregate_similarity",
        "average_similarity", "source_id", "scope", "project_id", "folder_name", "tags", "preview",
    }  # fmt: skip
    assert page["section_title"] == page["title"]
    assert page["word_count"] == len(knowledge.documents.get(page["page_id"]).text.split())
    assert 0 < page["average_similarity"] <= 1


def test_chunks_have_the_promised_fields(agent: Agent, knowledge: Workbench) -> None:
    found = agent("rag_search_knowledge_base", query="login endpoint", return_mode="chunks")
    assert set(found["results"][0]) >= {"id", "content", "metadata", "similarity_score", "rerank_score"}
    assert found["reranked"] is True


def test_search_within_specific_folder(agent: Agent, knowledge: Workbench) -> None:
    found = agent("rag_search_project_knowledge", query="login endpoint", project_id=PROJECT, folder_name="API")
    assert titles(found) == ["Endpoints"]
    assert (found["project_id"], found["folder_filter"]) == (PROJECT, "API")


def test_discovery_workflow(agent: Agent, knowledge: Workbench) -> None:
    folders = agent("rag_list_project_folders", project_id=PROJECT)
    assert (folders["project_title"], folders["total"]) == ("Shop", 2)
    names = [folder["name"] for folder in folders["folders"]]
    assert names == ["API", "Authentication"]
    assert folders["folders"][1] | {"id": ""} == {
        "id": "", "name": "Authentication", "description": "Auth system documentation", "source_count": 1,
        "color": "#6366f1", "icon_name": "lock",
    }  # fmt: skip
    found = agent("rag_search_project_knowledge", query="OAuth flow", project_id=PROJECT, folder_name=names[1])
    assert titles(found) == ["Login"]


def test_agent_decision_pattern(agent: Agent, knowledge: Workbench) -> None:
    knowledge.projects.create("Empty", id="proj_empty")
    first = agent("rag_search_project_knowledge", query="React hooks", project_id="proj_empty")
    assert (first["results"], first["under_filled"]) == ([], True)
    fallback = 'Fall back to rag_search_global_knowledge(query="React hooks")'
    assert first["suggestion"] == f"The scope has no sources. {fallback}"
    second = agent("rag_search_global_knowledge", query="React hooks")
    assert titles(second)[0] == "Hooks"


def test_search_global_knowledge_with_specific_tags(agent: Agent, knowledge: Workbench) -> None:
    found = agent("rag_search_global_knowledge", query="authentication", tags=["security", "fastapi"])
    assert titles(found) == ["Dependencies"]
    assert found["tag_filters"] == ["security", "fastapi"]
    assert set(found["results"][0]["tags"]) == {"security", "fastapi"}
    assert agent("rag_search_global_knowledge", query="REST API design")["tag_filters"] is None


def test_a_source_matches_with_any_tag_and_more_tags_come_first(agent: Agent, knowledge: Workbench) -> None:
    same = "# Same\n\nExactly the same words on testing."
    for title, tags in {"One tag": ["react"], "Both tags": ["react", "jest"]}.items():
        knowledge.documents.create(text=same, source=knowledge.sources.create(title, tags=tags).id)
    found = agent("rag_search_global_knowledge", query="same words testing", tags=["jest", "react"])
    assert [result["tags"] for result in found["results"][:2]] == [["react", "jest"], ["react"]]


def test_tags_are_read_as_sources_keep_them_and_a_long_one_is_not_repeated(agent: Agent, knowledge: Workbench) -> None:
    assert agent("rag_search_global_knowledge", query="hooks", tags=[" react ", ""])["tag_filters"] == ["react"]
    assert agent("rag_search_global_knowledge", query="hooks", tags=[" "])["tag_filters"] is None
    assert tokens(agent.text("rag_search_global_knowledge", query="hooks", tags=["x" * 200_000])) < 8000
    assert tokens(agent.text("search_knowledge_base", query="知" * 9_999)) < 8000


def test_an_unknown_tag_finds_nothing_and_the_nearest_are_suggested(agent: Agent, knowledge: Workbench) -> None:
    found = agent("rag_search_global_knowledge", query="hooks", tags=["raect"])
    assert found["results"] == []
    assert "'react'" in found["suggestion"]


def test_a_source_may_be_named_by_url_or_title(agent: Agent, knowledge: Workbench) -> None:
    knowledge.sources.update("React docs", url="https://react.example/")
    for key in ("React docs", "https://react.example/"):
        assert titles(agent("rag_search_knowledge_base", query="hooks", source_id=key)) == ["Hooks"]


def test_the_tag_categories_are_reported_to_agents(agent: Agent) -> None:
    assert len(TAG_CATALOGUE) == 10
    for category, tags in TAG_CATALOGUE.items():
        assert f"{category}: {', '.join(tags)}" in rag_search_global_knowledge.description


ERRORS = {
    "project without project_id": (
        "rag_search_knowledge_base", {"query": "q", "scope": "project"},
        "Missing required parameter: project_id", "results",
    ),
    "invalid scope": ("rag_search_knowledge_base", {"query": "q", "scope": "here"}, "Invalid scope: here", "results"),
    "unknown project": (
        "rag_search_project_knowledge", {"query": "q", "project_id": "proj_x"}, "Project not found: proj_x", "results",
    ),
    "unknown folder": (
        "rag_search_project_knowledge", {"query": "q", "project_id": PROJECT, "folder_name": "Nope"},
        "Folder not found: Nope. Folders of this project: 'API', 'Authentication'.", "results",
    ),
    "unknown source": (
        "rag_search_knowledge_base", {"query": "q", "source_id": "src_x"}, "Source not found: src_x", "results",
    ),
    "no query": ("rag_search_global_knowledge", {}, "Missing required parameter: query", "results"),
    "folders of an unknown project": (
        "rag_list_project_folders", {"project_id": "proj_x"}, "Project not found: proj_x", "folders",
    ),
    "sources of an unknown project": (
        "rag_get_available_sources", {"project_id": "proj_x"}, "Project not found: proj_x", "sources",
    ),
}  # fmt: skip


def test_every_error_has_its_sentence_and_the_empty_list(agent: Agent, knowledge: Workbench) -> None:
    for case, (tool, arguments, error, empty) in ERRORS.items():
        found = agent.failure(tool, **arguments)
        assert found["error"].startswith(error), case
        assert found[empty] == [], case


def test_sources_that_are_still_empty_are_reported_as_such(agent: Agent, knowledge: Workbench) -> None:
    knowledge.sources.create("Planned", tags=["rest-api-next"])
    answer = agent("rag_search_global_knowledge", query="hooks", tags=["REST-API-next"])
    assert answer["suggestion"] == "The sources in scope ('Planned') have no documents yet."
