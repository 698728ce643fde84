"""The tools' names, parameters, defaults, ranges and hints, compared with the contract."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import llama_index.core
import pytest
import tiktoken
from mcp import Client
from mcp.types import CallToolResult

from mcp_app.__main__ import TOOLSETS_HELP
from mcp_app.paging import TextPart
from mcp_app.server import create_server, to_listed_tool
from mcp_app.tool import Tool
from mcp_app.tools import DEFAULT_TOOLS, TOOLSETS, select_tools
from tests.mcp_app.agent import MODES, Agent
from workbench.errors import InvalidInput

REQUIRED = object()
LIST = {"page": 1, "per_page": 10, "offset": None}
NEXT = {"offset": 0}
# name -> (parameter -> default, (read-only, destructive, idempotent, open world))
CONTRACT: dict[str, tuple[dict[str, Any], tuple[bool, bool, bool, bool]]] = {
    "search_knowledge_base": (
        {"query": REQUIRED, "source_id": "", "language": "", "metadata": [], "names": "prefer",
         "match_count": 10, "search_type": "hybrid", "similarity_threshold": 0.05, **NEXT},
        (True, False, True, False),
    ),
    "manage_document": (
        {"action": REQUIRED, "document_id": "", "file_path": "", "source_id": "", "title": "", "url": "",
         "metadata": None, **LIST, "content": ""},
        (False, True, False, False),
    ),
    "manage_source": (
        {"action": REQUIRED, "source_id": "", "title": "", "url": "", "source_type": "upload", **LIST,
         "project_id": "", "folder_name": "", "tags": [], "language": "", "encoding": "", "hidden": None},
        (False, True, False, False),
    ),
    "crawl_website": (
        {"url": REQUIRED, "recursive": False, "max_pages": 10, "source_id": "", "title": "", "exclude_patterns": [],
         "project_id": "", "folder_name": "", "refresh": False},
        (False, False, False, True),
    ),
    "manage_crawl_job": ({"action": REQUIRED, "job_id": "", **LIST}, (False, False, True, True)),
    "rag_get_available_sources": ({"scope": None, "project_id": "", **NEXT}, (True, False, True, False)),
    "rag_search_knowledge_base": (
        {"query": REQUIRED, "scope": "all", "project_id": "", "source_id": "", "language": "", "metadata": [],
         "names": "prefer",
         "match_count": 5, "return_mode": "pages", **NEXT},
        (True, False, True, False),
    ),
    "rag_search_project_knowledge": (
        {"query": REQUIRED, "project_id": REQUIRED, "folder_name": "", "match_count": 5, **NEXT},
        (True, False, True, False),
    ),
    "rag_search_global_knowledge": (
        {"query": REQUIRED, "tags": [], "match_count": 5, **NEXT}, (True, False, True, False)
    ),
    "rag_list_project_folders": ({"project_id": REQUIRED, **NEXT}, (True, False, True, False)),
}  # fmt: skip
RANGES = {
    ("search_knowledge_base", "match_count"): (1, 50),
    ("search_knowledge_base", "similarity_threshold"): (0, 1),
    ("rag_search_knowledge_base", "match_count"): (1, 50),
}
CHOICES = {
    ("search_knowledge_base", "search_type"): ["vector", "hybrid", "rerank"],
    ("search_knowledge_base", "names"): ["prefer", "only", "ignore"],
    ("rag_search_knowledge_base", "names"): ["prefer", "only", "ignore"],
    ("manage_document", "action"): ["create", "get", "list", "update", "delete"],
    ("manage_source", "action"): ["create", "get", "list", "update", "delete"],
    ("manage_source", "source_type"): ["upload", "crawl", "api"],
    ("manage_source", "hidden"): ["read", "skip"],
    ("manage_crawl_job", "action"): ["get", "list", "cancel", "resume", "retry_failed", "accept_removals"],
    ("rag_search_knowledge_base", "scope"): ["all", "global", "project"],
    ("rag_search_knowledge_base", "return_mode"): ["pages", "chunks"],
}
TOOLS = {tool.name: tool for tool in select_tools(["knowledge", "scoped"])}


def test_the_two_toolsets_offer_exactly_the_contracts_ten_tools() -> None:
    assert list(TOOLS) == list(CONTRACT)


@pytest.mark.parametrize("name", CONTRACT)
def test_parameters_and_defaults_are_the_contracts(name: str) -> None:
    schema = to_listed_tool(TOOLS[name]).input_schema
    wanted, _ = CONTRACT[name]
    assert set(schema["properties"]) == set(wanted)
    assert schema.get("required", []) == [key for key, default in wanted.items() if default is REQUIRED]
    for key, default in wanted.items():
        assert schema["properties"][key].get("default") == (None if default is REQUIRED else default), key


@pytest.mark.parametrize(("tool", "name"), RANGES)
def test_numbers_have_the_contracts_ranges(tool: str, name: str) -> None:
    schema = to_listed_tool(TOOLS[tool]).input_schema["properties"][name]
    assert (schema["minimum"], schema["maximum"]) == RANGES[tool, name]


@pytest.mark.parametrize(("tool", "name"), CHOICES)
def test_choices_are_the_contracts(tool: str, name: str) -> None:
    assert to_listed_tool(TOOLS[tool]).input_schema["properties"][name]["enum"] == CHOICES[tool, name]


@pytest.mark.parametrize("name", CONTRACT)
def test_every_tool_reports_what_it_does_to_the_world(name: str) -> None:
    hints = to_listed_tool(TOOLS[name]).annotations
    assert hints is not None
    values = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    assert values == CONTRACT[name][1]


@pytest.mark.parametrize("tool", select_tools(["all"]), ids=lambda tool: tool.name)
def test_a_description_names_when_a_neighbour_and_one_call(tool: Tool) -> None:
    others = {other.name for other in select_tools(["all"])} - {tool.name}
    assert "Use it" in tool.description
    assert any(other in tool.description for other in others)
    assert f"Example: {tool.name}(" in tool.description


@pytest.mark.parametrize("tool", select_tools(["all"]), ids=lambda tool: tool.name)
def test_a_schema_is_lean_and_takes_nothing_unknown(tool: Tool) -> None:
    schema = to_listed_tool(tool).input_schema
    assert schema["additionalProperties"] is False
    assert all(set(part) <= ALLOWED and part["description"] for part in schema["properties"].values())


ALLOWED = {"type", "description", "enum", "items", "minimum", "maximum", "default"}


@pytest.mark.parametrize("mode", MODES)
def test_a_failure_of_any_tool_is_a_text_that_keeps_to_no_form(agent: Agent, mode: str) -> None:
    async def script(client: Client) -> list[CallToolResult]:
        await client.list_tools()  # from here on, the client validates every answer against the tool's schema
        return [await client.call_tool(tool.name, {"nonsense": 1}) for tool in select_tools(["all"])]

    for result in Agent(agent.server, mode).talk(script):
        assert result.is_error and result.structured_content is None
        assert "Unknown argument: nonsense" in result.content[0].text


@pytest.mark.parametrize("mode", MODES)
def test_clients_of_both_eras_see_the_same_tools(agent: Agent, mode: str) -> None:
    seen = Agent(agent.server, mode).talk(lambda client: client.list_tools())
    assert [tool.name for tool in seen.tools] == [tool.name for tool in select_tools(["all"])]
    assert [tool.output_schema for tool in seen.tools] == [tool.output for tool in select_tools(["all"])]


def test_the_help_names_the_toolsets_there_are() -> None:
    assert f"toolsets to offer: {', '.join(TOOLSETS)}, all or default (default), evaluation" == TOOLSETS_HELP


def test_an_unknown_toolset_is_refused_and_the_known_ones_named() -> None:
    with pytest.raises(InvalidInput, match=r"Unknown toolset: 'nope'\. Use one or more of 'knowledge', 'scoped'"):
        select_tools(["nope"])


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize(("toolset", "most"), [("default", 5_000), ("all", 10_600)])
def test_the_tools_with_their_schemas_and_the_instructions_stay_under_a_number_of_tokens(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, toolset: str, most: int, encoding: str
) -> None:
    shipped = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(shipped))  # else the encoding would be fetched
    server = create_server(agent.server.opening, toolsets=None if toolset == "default" else [toolset])
    tools = [tool.model_dump(by_alias=True, exclude_none=True) for tool in asyncio.run(server.list_tools())]
    written = json.dumps({"tools": tools}) + (server.instructions or "")
    size = len(tiktoken.get_encoding(encoding).encode(written))
    assert size < most, f"the tools take {size} tokens of {most}: shorten the descriptions of some by the difference"


def test_without_a_choice_twelve_tools_are_offered_and_three_of_the_nine_searches() -> None:
    names = [tool.name for tool in select_tools(None)]
    assert names == [tool.name for tool in select_tools(["default"])] == [tool.name for tool in DEFAULT_TOOLS]
    assert len(names) == 12 and len([name for name in names if "search" in name]) == 3
    assert [tool.name for tool in select_tools(["default", "articles"])] == [
        *names, "list_articles", "get_article", "search_articles",
    ]  # fmt: skip
    assert {tool.name for tool in select_tools(["all"])} == {tool.name for row in TOOLSETS.values() for tool in row}


def test_every_search_describes_its_best_use() -> None:
    searches = [tool for tool in select_tools(["all"]) if "search" in tool.name.lower()]
    assert len(searches) == 9
    assert [tool.name for tool in searches if not re.search(r"best|only if|first", tool.description)] == []


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("toolset", [*TOOLSETS, "default"])
def test_no_text_names_a_tool_that_is_not_offered(agent: Agent, toolset: str, read_only: bool) -> None:
    server = create_server(agent.server.opening, toolsets=[toolset], read_only=read_only)
    offered = set(server.tools)
    others = {tool.name for tool in select_tools(["all"])} - offered - {"search", "fetch", "explain"}  # plain words

    async def script(client: Client) -> list[str]:
        tools = (await client.list_tools()).tools
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        told = [str(await client.get_prompt(name, {"question": "q"})) for name in prompts]
        resources = [str((await client.list_resources()).resources), str(await client.list_resource_templates())]
        wrong: tuple[dict[str, Any], ...] = (
            *({}, {"nonsense": 1}, {"query": "zebra"}, {"query": "zebra", "source_id": "none"}, {"path": "none"}),
            *({"action": action} for action in ("get", "delete", "update", "create")),
            *({"action": "get", name: "none"} for name in ("source_id", "document_id", "job_id")),
            *({name: "none"} for name in ("page_id", "source_path", "job_id", "chunk_id", "slug")),
            *({"query": "zebra", name: "none"} for name in ("project_id", "chunk_id")),
        )
        called = [await client.call_tool(tool.name, arguments) for tool in tools for arguments in wrong]
        answers = [str(result.content) for result in called]
        return [*map(str, tools), *told, *resources, *answers, server.instructions or ""]

    texts = Agent(server).talk(script)
    named = {name: text for text in texts for name in others & set(re.findall(r"\w+", text))}
    assert named == {}


def test_what_a_read_only_server_describes_offers_no_writing() -> None:
    for tool in (each.to_read_only() for each in select_tools(["all"])):
        if tool is not None and tool.reading_actions:
            assert tool.description, f"{tool.name} needs a reading_description for a read-only server"
            assert not re.search(r"create|delete|update|rename|cancel|resume|retry", tool.description), tool.name


@pytest.mark.parametrize("tool", select_tools(["all"]), ids=lambda tool: tool.name)
def test_every_tool_can_be_read_by_every_client(tool: Tool) -> None:
    shown = to_listed_tool(tool)
    hints = shown.annotations
    assert hints is not None and shown.title
    flags = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    assert all(isinstance(flag, bool) for flag in flags)
    assert not (hints.read_only_hint and hints.destructive_hint)
    form = shown.output_schema
    assert form is not None and form["type"] == "object" and form["required"], f"{tool.name} needs output=form(...)"
    assert set(form["required"]) <= set(form["properties"])
    assert all(set(field) == {"type"} for field in form["properties"].values())


def test_a_list_in_an_answer_is_declared_by_its_tool_so_that_it_comes_in_parts() -> None:
    for tool in select_tools(["all"]):
        if isinstance(tool.parts, TextPart):
            continue
        properties = tool.output["properties"]
        assert isinstance(properties, dict)
        lists = [name for name, part in properties.items() if part == {"type": "array"}]
        declared = tool.parts.key if tool.parts is not None else None
        assert lists in ([], [declared]) or tool.name == "search", f"{tool.name}: declare {lists} as parts=Items(...)"
