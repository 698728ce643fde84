"""Names in an agent's query: reported in the answer; an argument ignores them or makes them a filter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mcp_app.agent import MODES, Agent

SAYS = "Receipts of the harbour rose by a tenth, and its cranes were painted."
QUERY = "harbour receipts, Alpine 2022"


@pytest.fixture
def named(agent: Agent, tmp_path: Path) -> Agent:
    for name in ("ALPINE_2022_10K", "ALPINE_2023_10K", "NORTHWIND_2022_10K", "NORTHWIND_2023_10K"):
        path = tmp_path / "docs" / f"{name}.md"
        path.write_text(f"{SAYS} Signed: {name[::-1]}.")
        assert agent("manage_document", action="create", file_path=str(path))["success"]
    return agent


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tool", ["search_knowledge_base", "rag_search_knowledge_base"])
def test_an_answer_reports_what_is_preferred_and_an_argument_turns_it_off(named: Agent, mode: str, tool: str) -> None:
    named = Agent(named.server, mode)
    form = {"match_count": 4} | ({"return_mode": "chunks"} if tool.startswith("rag") else {})
    preferred = named(tool, query=QUERY, **form)
    assert preferred["preferring"] == ["Alpine", "2022"]
    assert preferred["count"] == 4
    ignored = named(tool, query=QUERY, names="ignore", **form)
    assert "preferring" not in ignored
    assert ignored["count"] == 4
    only = named(tool, query=QUERY, names="only", **form)
    assert only["count"] == 1
    assert "ALPINE_2022" in str(only["results"])


def test_explain_reports_agents_what_is_preferred(named: Agent) -> None:
    [hit, *_] = named("search_knowledge_base", query=QUERY)["results"]
    why = named("explain", query=QUERY, chunk_id=hit["chunk_id"])
    assert "Preferring: Alpine · 2022." in why["note"]
    assert why["legs"]["document"]["adds"] > 0
