"""Every tool of the table is called with the example in its description."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_app.paging import Items
from mcp_app.server import WorkbenchServer, create_server
from mcp_app.tool import Tool
from mcp_app.tools import select_tools
from tests.crawling.conftest import site  # noqa: F401 - the fixture
from tests.crawling.site import TestSite, page
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.settings import Settings

PLAN = "plan/2025-11-17/001-jwt-authentication"
IDEA = "brainstorm/2025-11-17/001-new-idea"
TEXT = "Words on a vector index, a login endpoint and hooks patterns for a database. " * 5
GUIDE = f"# Guide\n\n{TEXT}\n\n```sql\nCREATE INDEX vectors ON passages USING hnsw (embedding);\n```\n"
# as long as the question makes them, of a fixed length, or a few sentences
SHORT = {"degraded", "missing_words", "preferring", "recent_embeddings", "tag_filters", "tags"}
CONNECTOR = "search"  # its form is that of hosted connectors: ten results, no offset


@pytest.fixture
def wb(make_settings: Callable[..., Settings], folder: Callable[..., Path]) -> Iterator[Workbench]:
    """A workbench with every kind of object that the examples mention."""
    root = folder({f"{name}/conversation.md": TEXT for name in (PLAN, IDEA)} | {"notes/rag.md": GUIDE})
    archives = folder({"research/2025-05-20/one.md": f"# One\n\nmachine learning {TEXT}"}, "archives")
    chosen = make_settings(file_roots=str(root), archives_dir=archives, crawl_allow_hosts="127.0.0.1", run_worker=False)
    with Workbench.open(settings=chosen) as workbench:
        yield workbench


@pytest.fixture
def stand_ins(wb: Workbench, site: TestSite) -> dict[str, str]:  # noqa: F811
    """Return the values that replace the ids and addresses in the examples."""
    site.put({"/": page("Start", TEXT, ["/next"]), "/next": page("Next", TEXT)})
    wb.projects.create("Harbour", id="proj_123")
    wb.projects.create_folder("proj_123", "API")
    wb.sources.create("Endpoints", project="proj_123", folder="API")
    wb.sources.create("Hooks", tags=["react"])
    for source in ("Endpoints", "Hooks"):
        wb.documents.create(text=GUIDE, title="Guide", source=source)
    wb.workspaces.embed(Path(wb.settings.file_roots))
    document = wb.documents.list(limit=1)[0]
    passage = wb.search("vector index").results[0].passage_id
    job = wb.crawls.start(site.url, browser="never").id
    return {
        "src_abc123": document.source_id, "src_123": document.source_id, "doc_123": document.id,
        "name=API": "Screens", "psg_123": passage, "job_abc123": job, "job_123": job,
        "https://docs.example.com/": site.url, "https://docs.example.com/start": site.url,
    }  # fmt: skip


def example(tool: Tool) -> dict[str, Any]:
    """Return the arguments of the call at the end of a tool's description."""
    written = tool.description.rpartition("Example: ")[2]
    call = ast.parse(re.sub(r"\b(true|false)\b", lambda word: word.group().title(), written), mode="eval").body
    assert isinstance(call, ast.Call), f"end the description of {tool.name} with Example: {tool.name}(...)"
    return {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}


def answer(server: WorkbenchServer, tool: Tool, stand_ins: dict[str, str]) -> Any:
    """Call a tool with its example; a failure fails the test."""
    arguments = example(tool)
    for name, value in arguments.items():
        arguments[name] = stand_ins.get(f"{name}={value}", stand_ins.get(str(value), value))
    if "offset" in arguments:
        arguments["offset"] = 0  # the text that is in is a short one
    result = Agent(server).talk(lambda client: client.call_tool(tool.name, arguments))  # validates the schema
    assert not result.is_error, f"the example of {tool.name} fails: {result.content[0].text}"
    read = json.loads(result.content[0].text)
    declared = {tool.parts.key: read} if isinstance(read, list) and isinstance(tool.parts, Items) else read
    assert result.structured_content == declared, f"{tool.name} says one thing as text and another in its form"
    return read


def test_every_example_works_and_its_lists_are_given_in_parts(wb: Workbench, stand_ins: dict[str, str]) -> None:
    server = create_server(wb, toolsets=["all"])
    for tool in select_tools(["all"]):
        given = answer(server, tool, stand_ins)
        declared = {tool.parts.key} if isinstance(tool.parts, Items) else set()
        lists = {key for key, value in given.items() if isinstance(value, list)} if isinstance(given, dict) else set()
        undeclared = lists - declared - SHORT if tool.name != CONNECTOR else set()
        assert not undeclared, f"{tool.name} would never shorten {undeclared}: declare parts=Items(...) in its row"


@pytest.mark.parametrize("tool", select_tools(["all"]), ids=lambda tool: tool.name)
def test_an_answer_in_parts_can_be_continued(tool: Tool) -> None:
    names = {argument.name for argument in tool.arguments}
    assert tool.parts is None or "offset" in names, f"{tool.name} answers in parts: give it an argument 'offset'"
