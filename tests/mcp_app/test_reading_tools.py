"""The reading toolset: whole texts in parts, code, neighbours, places, jobs, and the hosted connectors' tools."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.mcp_app.agent import Agent
from workbench import Workbench

GUIDE = """# Guide

Words on connecting.

## Connecting

Open a connection to the server first.

```python
connection = connect("localhost")
```

## Dropping

Drop the table at the end.

```sql
DROP TABLE words;
```
"""


def following(note: str) -> int:
    found = re.search(r"offset=(\d+)\)$", note)
    assert found, note
    return int(found.group(1))


def test_a_document_is_read_whole_by_following_the_notes(agent: Agent, wb: Workbench) -> None:
    text = "".join(f"Line {number} of many.\n" for number in range(6000)).rstrip("\n")
    document = wb.documents.create(text=text, title="Long", url="https://docs.example.com/long").document.id
    parts: list[str] = []
    answer = agent("rag_read_full_page", url="https://docs.example.com/long")
    while True:
        parts.append(answer["content"])
        assert (answer["page_id"], answer["total_chars"]) == (document, len(text))
        if "note" not in answer:
            break
        answer = agent("rag_read_full_page", page_id=document, offset=following(answer["note"]))
    assert len(parts) > 3
    assert "".join(parts) == text
    beyond = agent.failure("rag_read_full_page", page_id=document, offset=len(text))
    assert beyond["error"].startswith(f"Invalid offset: {len(text)} is past the end")


def test_a_sources_pages_are_all_reached(agent: Agent, wb: Workbench) -> None:
    source = wb.sources.create("Many").id
    for number in range(23):
        wb.documents.create(text=f"Text {number}.", title=f"T{number}", source=source)
    first = agent("rag_list_pages_for_source", source_id="Many")
    assert (first["count"], first["total"], first["note"].split(". ")[0]) == (20, 23, "Items 1 to 20 of 23")
    rest = agent("rag_list_pages_for_source", source_id="Many", offset=following(first["note"]))
    assert [page["title"] for page in first["pages"] + rest["pages"]] == [f"T{number}" for number in range(23)]
    assert agent("rag_list_pages_for_source", title="T22")["total"] == 1


def test_code_is_found_with_its_language_and_heading(agent: Agent, wb: Workbench) -> None:
    document = wb.documents.create(text=GUIDE, title="Guide").document
    answer = agent("rag_search_code_examples", query="drop the table", language="SQL")
    (example,) = answer["results"]
    assert (example["code"], example["language"], example["heading"]) == (
        "DROP TABLE words;",
        "sql",
        "Guide > Dropping",
    )
    assert (document.text or "")[example["start"] :].startswith("```sql")
    both = agent("rag_search_code_examples", query="connection")["results"]
    assert {example["language"] for example in both} == {"python", "sql"}
    assert "No code in rust" in agent("rag_search_code_examples", query="connection", language="rust")["suggestion"]


def test_the_passages_around_a_hit_are_read_in_order(agent: Agent, wb: Workbench) -> None:
    text = "\n\n".join(f"## Part {number}\n\n{f'Words of part {number}. ' * 60}" for number in range(6))
    document = wb.documents.create(text=text, title="Parts").document.id
    passages = wb.documents.passages(document)
    middle = passages[3]
    answer = agent("rag_read_neighbours", chunk_id=middle.node_id, before=2)
    assert [chunk["chunk_id"] for chunk in answer["chunks"]] == [passage.node_id for passage in passages[1:5]]
    assert [chunk["is_hit"] for chunk in answer["chunks"]] == [False, False, True, False]
    assert answer["chunks"][2]["content"] == middle.text
    assert agent.failure("rag_read_neighbours", chunk_id="psg_none")["error"] == "Chunk not found: psg_none"


def test_an_agent_builds_a_project_and_fills_a_folder_of_it(agent: Agent) -> None:
    project = agent("create_project", title="Shop", description="The web shop")["project"]["project_id"]
    agent("create_folder", project_id=project, name="API")
    made = agent(
        "manage_source", action="create", title="Endpoints", project_id="Shop", folder_name="API", tags=["REST"]
    )
    agent("manage_document", action="create", content="The login endpoint.", source_id=made["source"]["id"])
    found = agent("rag_search_project_knowledge", query="login", project_id=project, folder_name="API")
    assert (found["results"][0]["folder_name"], found["results"][0]["tags"]) == ("API", ["REST"])
    assert agent("find_projects", query="web")["projects"][0]["project_id"] == project
    assert agent("find_projects", query="nothing")["total"] == 0
    assert "Use the existing one" in agent.failure("create_project", title="Shop")["suggestion"]


def test_hosted_connectors_search_and_fetch_with_structured_answers(agent: Agent, wb: Workbench) -> None:
    document = wb.documents.create(text="Words on refunds.", title="Refunds").document.id

    async def script(client: Client) -> Any:
        found = await client.call_tool("search", {"query": "refunds"})
        return found, await client.call_tool("fetch", {"id": found.structured_content["results"][0]["id"]})

    found, fetched = agent.talk(script)
    assert {"id", "title", "url"} <= set(found.structured_content["results"][0])
    assert (fetched.structured_content["id"], fetched.structured_content["text"]) == (document, "Words on refunds.")
    assert fetched.structured_content["url"] == f"document://{document}"


def test_reading_tools_are_apart_from_those_that_change_something(agent: Agent) -> None:
    tools = asyncio.run(agent.server.list_tools())
    reading = {tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint}
    wanted = {"rag_read_full_page", "rag_list_pages_for_source", "rag_get_available_sources", "get_job", "fetch_url"}
    assert wanted | {"find_projects", "search", "fetch"} <= reading
    assert not {"create_project", "create_folder", "manage_document"} & reading


def test_a_page_of_the_web_is_read_without_being_kept(agent: Agent, wb: Workbench, tmp_path: Path) -> None:
    refused = agent.failure("fetch_url", url="http://localhost:9/secret")
    assert "loopback" in refused["error"] or "private" in refused["error"] or "this machine" in refused["error"]
    assert wb.sources.list() == []


def test_a_hit_is_explained_as_the_app_explains_it(agent: Agent, wb: Workbench) -> None:
    document = wb.documents.create(text="Tokens authenticate a login at the gate.", title="Gate").document.id
    wb.documents.create(text="Boats lie in the harbour.", title="Harbour")
    hit = agent("rag_search_knowledge_base", query="authenticating login owls", return_mode="chunks")["results"][0]
    answer = agent("explain", query="authenticating login owls", chunk_id=hit["id"])
    why = wb.explain("authenticating login owls", passage_id=hit["id"], elsewhere=False)
    assert (answer["page_id"], answer["rank"], answer["outcome"]) == (document, 1, "found")
    assert (answer["score"], answer["strategy"]) == (round(why.score or 0, 4), why.strategy)
    assert {name: leg["rank"] for name, leg in answer["legs"].items()} == {
        name: leg.rank for name, leg in why.legs.items()
    }
    assert sum(leg["adds"] or 0 for leg in answer["legs"].values()) == pytest.approx(answer["score"], abs=0.001)
    words = {word: said["share"] for word, said in answer["words"].items()}  # as typed, not stemmed
    assert set(words) == {"authenticating", "login"} and sum(words.values()) == pytest.approx(1, abs=0.02)
    assert answer["note"].startswith("It has rank 1.")


def test_a_page_that_was_dropped_is_reported_where(agent: Agent, wb: Workbench) -> None:
    for number in range(15):
        wb.documents.create(text=f"Login {number} at the gate. " * 3, title=f"Gate {number}")
    far = wb.documents.create(text="Boats lie in the harbour.", title="Harbour").document.id
    answer = agent("explain", query="login gate", page_id=far, strategy="hybrid")
    assert (answer["rank"], answer["words"], answer["strategy"]) == (None, {}, "hybrid")
    assert set(answer["missing_words"]) == {"login", "gate"} and answer["outcome"] != "found" and answer["note"]
    assert agent.failure("explain", query="login")["error"] == "Missing required parameter: chunk_id"
    assert agent.failure("explain", query="login", chunk_id="psg_none")["error"] == "Not found: psg_none"
    both = agent.failure("explain", query="login", chunk_id="psg_none", page_id=far)
    assert both["error"] == "Give either chunk_id or page_id, not both"
    assert "There is no strategy" in agent.failure("explain", query="login", page_id=far, strategy="none")["error"]


def test_agents_are_informed_what_a_ranker_weighed(agent: Agent, wb: Workbench) -> None:
    wb.documents.create(text="Tokens authenticate a login at the gate.", title="Gate")
    wb.documents.create(text="The gate is shut at night, and a login too.", title="Harbour")
    hit = wb.search("authenticating login", "learned")[0]
    told = agent("explain", query="authenticating login", chunk_id=hit.passage_id, strategy="learned")["features"]
    why = wb.explain("authenticating login", hit.passage_id, strategy="learned")
    assert told == {view.name: round(view.share, 4) for view in why.features if view.weight}
    assert sum(told.values()) == pytest.approx(1, abs=0.001) and told["before"] > 0
    assert "features" not in agent("explain", query="authenticating login", chunk_id=hit.passage_id, strategy="rerank")
