"""A read-only server offers what changes nothing, and only that."""

from __future__ import annotations

import pytest

from mcp_app.server import create_server
from tests.mcp_app.agent import Agent
from workbench import Workbench


@pytest.fixture
def reader(wb: Workbench) -> Agent:
    return Agent(create_server(wb, toolsets=["knowledge", "scoped"], read_only=True))


def test_tools_that_only_write_are_gone_and_the_others_say_they_read(reader: Agent) -> None:
    tools = reader.talk(lambda client: client.list_tools()).tools
    assert "crawl_website" not in {tool.name for tool in tools}
    assert len(tools) == 9
    assert all(tool.annotations.read_only_hint and not tool.annotations.destructive_hint for tool in tools)


@pytest.mark.parametrize("tool", ["manage_document", "manage_source", "manage_crawl_job"])
def test_only_reading_actions_are_left(reader: Agent, tool: str) -> None:
    listed = {item.name: item for item in reader.talk(lambda client: client.list_tools()).tools}
    assert listed[tool].input_schema["properties"]["action"]["enum"] == ["get", "list"]


def test_a_writing_action_is_unknown_and_changes_nothing(reader: Agent, wb: Workbench) -> None:
    source = wb.knowledge.create_source("Keep").id
    found = reader.failure("manage_source", action="delete", source_id=source)
    assert (found["error"], found["suggestion"]) == ("Unknown action: delete", "Use 'get' or 'list'")
    assert wb.knowledge.source(source).title == "Keep"


def test_reading_still_works(reader: Agent, wb: Workbench) -> None:
    wb.documents.create(text="Some words.", title="T")
    assert reader("manage_document", action="list")["count"] == 1
    assert reader("search_knowledge_base", query="words")["count"] == 1
