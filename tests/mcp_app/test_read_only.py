"""A read-only server offers only tools and actions that change nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mcp import Client
from mcp.types import GetPromptResult

from mcp_app.server import create_server
from mcp_app.tools import select_tools
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.settings import Settings


@pytest.fixture
def reader(wb: Workbench) -> Agent:
    return Agent(create_server(wb, toolsets=["knowledge", "scoped"], read_only=True))


def test_tools_that_only_write_are_gone_and_the_others_report_they_read(reader: Agent) -> None:
    tools = reader.talk(lambda client: client.list_tools()).tools
    assert "crawl_website" not in {tool.name for tool in tools}
    assert len(tools) == 9
    assert all(tool.annotations.read_only_hint and not tool.annotations.destructive_hint for tool in tools)


@pytest.mark.parametrize("tool", ["manage_document", "manage_source", "manage_crawl_job"])
def test_only_reading_actions_are_left(reader: Agent, tool: str) -> None:
    listed = {item.name: item for item in reader.talk(lambda client: client.list_tools()).tools}
    assert listed[tool].input_schema["properties"]["action"]["enum"] == ["get", "list"]


def test_a_writing_action_is_unknown_and_changes_nothing(reader: Agent, wb: Workbench) -> None:
    source = wb.sources.create("Keep").id
    found = reader.failure("manage_source", action="delete", source_id=source)
    assert (found["error"], found["suggestion"]) == ("Unknown action: delete", "Use 'get' or 'list'")
    assert wb.sources.get(source).title == "Keep"


def test_reading_still_works(reader: Agent, wb: Workbench) -> None:
    wb.documents.create(text="Some words.", title="T")
    assert reader("manage_document", action="list")["count"] == 1
    assert reader("search_knowledge_base", query="words")["count"] == 1


def test_no_text_of_a_read_only_server_offers_a_tool_that_it_lacks(wb: Workbench) -> None:
    agent = Agent(server := create_server(wb, toolsets=["all"], read_only=True))
    tools = agent.talk(lambda client: client.list_tools()).tools
    missing = {tool.name for tool in select_tools(["all"])} - {tool.name for tool in tools}
    texts = {tool.name: f"{tool.description} {tool.input_schema}" for tool in tools}
    texts |= {"instructions": server.instructions or "", "prompt": str(agent.talk(_prompt))}
    told = {where: sorted(names) for where, text in texts.items() if (names := missing & set(re.findall(r"\w+", text)))}
    assert "create_project" in missing
    assert told == {}


def test_the_instructions_of_a_read_only_server_speak_of_no_change(wb: Workbench) -> None:
    words = re.findall(r"\w+", (create_server(wb, toolsets=["all"], read_only=True).instructions or "").lower())
    assert not set(words) & {"add", "delete", "create", "embed", "crawl"}


@pytest.fixture
def workspace_reader(make_settings: Callable[..., Settings], tmp_path: Path) -> Iterator[Agent]:
    folder = tmp_path / "work" / "plan" / "2025-11-17" / "001-talk"
    folder.mkdir(parents=True)
    (folder / "conversation.md").write_text("# Talk\n\nWords that nobody has embedded.")
    with Workbench.open(settings=make_settings(file_roots=str(tmp_path / "work"))) as workbench:
        yield Agent(create_server(workbench, toolsets=["all"], read_only=True))


CALLS: dict[str, dict[str, object]] = {
    "get_embedding_status": {},
    "get_similar": {"source_path": "plan/2025-11-17/001-talk"},
    "search_semantic": {"query": "words"},
    "search_knowledge_base": {"query": "words"},
    "rag_search_knowledge_base": {"query": "words"},
    "rag_search_global_knowledge": {"query": "words", "tags": ["none"]},
    "rag_search_project_knowledge": {"query": "words", "project_id": "none"},
    "rag_search_code_examples": {"query": "words"},
    "rag_get_available_sources": {},
    "rag_list_project_folders": {"project_id": "none"},
    "rag_list_pages_for_source": {"source_id": "none"},
    "rag_read_full_page": {"page_id": "none"},
    "rag_read_neighbours": {"chunk_id": "none"},
    "manage_document": {"action": "get", "document_id": "none"},
    "manage_source": {"action": "get", "source_id": "none"},
    "manage_crawl_job": {"action": "get", "job_id": "none"},
    "get_job": {"job_id": "none"},
    "find_projects": {"query": "none"},
    "fetch": {"id": "none"},
    "search": {"query": "words"},
    "explain": {"query": "words", "chunk_id": "none"},
    "list_articles": {},
    "get_article": {"slug": "none"},
    "search_articles": {"query": "words"},
    "fetch_url": {"url": "http://localhost/"},
    "searchLocalArchives": {"query": "words"},
}


def test_no_answer_of_a_read_only_server_names_a_tool_that_it_lacks(workspace_reader: Agent) -> None:
    offered = {tool.name for tool in workspace_reader.talk(lambda client: client.list_tools()).tools}
    assert set(CALLS) == offered, "a further tool needs a call here whose answer has little to say but advice"
    missing = {tool.name for tool in select_tools(["all"])} - offered
    texts = {name: _said(workspace_reader, name, arguments) for name, arguments in CALLS.items()}
    assert "Files changed since they were embedded" in texts["get_embedding_status"]
    assert "Document not found: plan/2025-11-17/001-talk" in texts["get_similar"]
    told = {name: sorted(names) for name, text in texts.items() if (names := missing & set(re.findall(r"\w+", text)))}
    assert told == {}


def _said(agent: Agent, name: str, arguments: dict[str, object]) -> str:
    return agent.talk(lambda client: client.call_tool(name, arguments)).content[0].text


async def _prompt(client: Client) -> GetPromptResult:
    return await client.get_prompt("search_strategy", {"question": "how is it measured?"})
