"""The promotion of a scope serves agents that name no search type; a named type is used as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mcp_app.agent import MODES, Agent
from workbench import Scope, Workbench

# Names of the strategies in an answer, in the words of the tool's schema.
TYPES = {"vector": "vector", "keyword": "hybrid", "hybrid": "hybrid", "rerank": "rerank", "mmr": "rerank"}


@pytest.fixture
def places(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Two sources that contain the same word."""
    wb.ingest(folder({"a.md": "The login needs a token."}, "one"), source="One")
    wb.ingest(folder({"b.md": "A token opens the gate."}, "two"), source="Two")
    return wb


def served(agent: Agent, **given: Any) -> str:
    answer = agent("search_knowledge_base", query="token", **given)
    assert answer["search_type"] == TYPES[answer["strategy"]]
    return answer["strategy"]


@pytest.mark.parametrize("mode", MODES)
def test_without_a_search_type_what_is_promoted_serves(agent: Agent, places: Workbench, mode: str) -> None:
    agent = Agent(agent.server, mode)
    assert served(agent) == "hybrid"
    places.promotions.promote("mmr")
    places.promotions.promote("keyword", scope=Scope(sources=("Two",)))
    assert (served(agent), served(agent, source_id="One"), served(agent, source_id="Two")) == ("mmr", "mmr", "keyword")
    assert served(agent, search_type=None) == "mmr"
    places.promotions.undo()
    assert served(agent) == "hybrid"


@pytest.mark.parametrize("search_type", ["vector", "hybrid", "rerank"])
def test_a_search_type_that_was_given_is_not_replaced(agent: Agent, places: Workbench, search_type: str) -> None:
    places.promotions.promote("mmr")
    assert served(agent, search_type=search_type) == search_type


def test_a_promoted_index_and_parameters_come_along(agent: Agent, places: Workbench) -> None:
    places.indexes.create("sentences", chunker="sentence")
    places.indexes.build("sentences")
    places.promotions.promote("hybrid@sentences")
    (chunk, *_) = agent("search_knowledge_base", query="token")["results"]
    passage_ids = {hit.passage_id for hit in places.search("token", "hybrid", index="sentences")}
    assert chunk["chunk_id"] in passage_ids
    assert chunk["chunk_id"] not in {hit.passage_id for hit in places.search("token", "hybrid", index="main")}
    (chunk, *_) = agent("search_knowledge_base", query="token", search_type="hybrid")["results"]
    assert chunk["chunk_id"] not in passage_ids


def test_the_scoped_tools_serve_what_is_promoted_too(agent: Agent, places: Workbench) -> None:
    assert agent("rag_search_global_knowledge", query="token")["reranked"]
    places.promotions.promote("hybrid")
    assert not agent("rag_search_global_knowledge", query="token")["reranked"]


def test_the_schema_keeps_the_contracts_default_and_reports_what_serves(agent: Agent) -> None:
    tools = agent.talk(lambda client: client.list_tools()).tools
    (tool,) = [tool for tool in tools if tool.name == "search_knowledge_base"]
    offered = tool.input_schema["properties"]["search_type"]
    assert offered["default"] == "hybrid"
    assert "the strategy promoted for this scope, else hybrid" in offered["description"]


def test_an_answer_reports_that_nothing_close_was_found_and_why(agent: Agent, places: Workbench) -> None:
    assert "nothing_close" not in agent("search_knowledge_base", query="which gate does a token open?")
    for tool in ("search_knowledge_base", "rag_search_global_knowledge"):
        answer = agent(
            tool, query="token zyxwv qponm lkjih", **({"similarity_threshold": 0.0} if "base" in tool else {})
        )
        assert answer["results"] and answer["nothing_close"].startswith("Nothing close was found:")
    places.documents.create(text="# Gate\n\nA token opens it.\n\n```py\nopen_gate(token)\n```", title="Gate")
    answer = agent("rag_search_code_examples", query="token zyxwv qponm lkjih")
    assert answer["results"] and answer["nothing_close"].startswith("Nothing close was found:")


def test_a_promoted_strategy_of_ones_own_serves_agents(agent: Agent, places: Workbench) -> None:
    places.strategies.add("mine", lambda question, limit: [{"text": "A token opens the gate.", "score": 7}])
    try:
        places.promotions.promote("mine")
        answer = agent("search_knowledge_base", query="token")
        assert (answer["strategy"], answer["search_type"]) == ("mine", "mine")
        assert [hit["text"] for hit in answer["results"]] == ["A token opens the gate."]
    finally:
        places.strategies.remove("mine")
    failed = agent.failure("search_knowledge_base", query="token")  # as by a process that has not added it
    assert "'mine' is not registered in this process" in failed["error"]
