"""The parts of a call that are logged, and those that are not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mcp import Client

from mcp_app.boundary import count_results
from mcp_app.server import create_server
from mcp_app.tools import TOOLSETS
from tests.mcp_app.agent import Agent
from tests.mcp_app.processes import over_http, over_stdio
from workbench import Workbench
from workbench.settings import Settings
from workbench.types import JsonObject


def test_a_search_is_kept_with_question_scope_time_and_count(agent: Agent, wb: Workbench) -> None:
    wb.documents.create(text="Some words.", title="T")
    text = agent.text("search_knowledge_base", query="words", match_count=3)
    (call,) = wb.tool_calls.list()
    assert (call.tool, call.query, call.results, call.zero_result, call.error) == (
        "search_knowledge_base", "words", 1, False, None,
    )  # fmt: skip
    assert call.argument_sizes == {"query": 7, "match_count": 1}
    assert call.answer_chars == len(text)
    assert call.duration_ms > 0


def test_searches_without_results_can_be_listed(agent: Agent, wb: Workbench) -> None:
    wb.documents.create(text="Some words.", title="T")
    agent("search_knowledge_base", query="words")
    agent("rag_search_global_knowledge", query="nothing here", tags=["none"])
    (call,) = wb.tool_calls.list(zero_only=True)
    assert (call.query, call.scope) == ("nothing here", {"scope": "global", "tags": ["none"]})


def test_an_answer_with_nothing_close_counts_as_one_without_results() -> None:
    answer: JsonObject = {"results": [{"document_title": "T"}]}
    tool = next(tool for tools in TOOLSETS.values() for tool in tools if tool.name == "search_knowledge_base")
    assert (count_results(answer, tool), count_results(answer | {"nothing_close": "Nothing close."}, tool)) == (1, 0)


def test_a_failed_call_is_kept_with_its_error(agent: Agent, wb: Workbench) -> None:
    agent.failure("search_knowledge_base", query="q", search_type="odd")
    assert wb.tool_calls.list()[0].error == "Invalid search_type: odd"


def test_half_a_character_in_a_call_does_not_end_the_log(agent: Agent, wb: Workbench) -> None:
    agent.failure("search_knowledge_base", query="cut \ud83d", search_type="odd \ud83d")
    agent("rag_get_available_sources")
    assert [call.query for call in wb.tool_calls.list()] == [None, "cut \ufffd"]


def test_a_documents_text_is_kept_by_size_only(agent: Agent, wb: Workbench) -> None:
    agent("manage_document", action="create", content="A secret text.", title="T")
    (call,) = wb.tool_calls.list()
    assert call.argument_sizes["content"] == len('"A secret text."')
    assert "secret" not in str(call.to_dict())
    assert wb.tool_calls.list(queries_only=True) == []


def test_the_log_is_off_by_the_setting(make_settings: Callable[..., Settings]) -> None:
    with Workbench.open(settings=make_settings(mcp_log_calls=False)) as workbench:
        Agent(create_server(workbench, toolsets=["all"]))("rag_get_available_sources")
        assert workbench.tool_calls.count() == 0


def test_a_call_right_before_the_end_of_a_server_is_kept(wb: Workbench) -> None:
    async def ask(server: Any, query: str) -> None:
        async with Client(server) as client:
            await client.call_tool("search_knowledge_base", {"query": query})

    asyncio.run(ask(over_stdio(wb.settings), "over stdio"))  # the client closes the server's stdin at once
    with over_http(wb.settings) as base:
        asyncio.run(ask(f"{base}/mcp", "over HTTP"))  # and here the server is asked to stop
    assert [call.query for call in wb.tool_calls.list()] == ["over HTTP", "over stdio"]


def test_calls_are_newest_first_counted_and_forgotten(agent: Agent, wb: Workbench) -> None:
    for query in ("one", "two"):
        agent("search_knowledge_base", query=query)
    assert [call.query for call in wb.tool_calls.list()] == ["two", "one"]
    assert wb.tool_calls.count(tool="search_knowledge_base") == 2
    wb.tool_calls.clear()
    assert wb.tool_calls.count() == 0
