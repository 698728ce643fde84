"""Texts that an agent reads whole, lists of them, and prompts that teach it."""

from __future__ import annotations

import asyncio
import json

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from mcp_app.resources import CHARS_PER_PAGE
from tests.mcp_app.agent import MODES, Agent
from workbench import Workbench
from workbench.ingestion.incoming import text_item


def read(agent: Agent, uri: str) -> str:
    return agent.talk(lambda client: client.read_resource(uri)).contents[0].text


@pytest.mark.parametrize("mode", MODES)
def test_a_long_document_is_read_page_by_page(agent: Agent, wb: Workbench, mode: str) -> None:
    agent = Agent(agent.server, mode)
    text = "".join(f"Line {number}.\n" for number in range(4000)).rstrip("\n")
    document = wb.documents.create(text=text, title="Long").document.id
    first = read(agent, f"document://{document}")
    assert first.endswith(f"Next: document://{document}/2]")
    pages = -(-len(text) // CHARS_PER_PAGE)
    parts = [read(agent, f"document://{document}/{page}") for page in range(1, pages + 1)]
    assert parts[0] == first
    assert "".join(part.split("\n\n[Page ")[0] for part in parts) == text


def test_a_source_lists_its_documents_in_pages(agent: Agent, wb: Workbench) -> None:
    source = wb.sources.create("Many").id
    wb.documents.ingest_items(source, [text_item(f"{n}", f"Text {n}.", title=f"T{n}") for n in range(51)])
    first = json.loads(read(agent, f"source://{source}"))
    assert (first["source"]["title"], first["total_count"], len(first["documents"])) == ("Many", 51, 50)
    second = json.loads(read(agent, first["next"]))
    assert (len(second["documents"]), second["next"]) == (1, None)


@pytest.mark.parametrize("uri", ["document://doc_none", "source://src_none", "document://doc_none/0", "source://x/y"])
def test_what_does_not_exist_is_an_error_that_names_it(agent: Agent, uri: str) -> None:
    with pytest.raises(MCPError, match=r"not found: (doc_none|src_none)|Invalid page"):
        read(agent, uri)


def test_the_templates_and_the_tag_catalogue_are_offered(agent: Agent) -> None:
    templates = agent.talk(lambda client: client.list_resource_templates()).resource_templates
    assert {"source://{source_id}", "document://{document_id}"} <= {item.uri_template for item in templates}
    catalogue = json.loads(read(agent, "tags://catalogue"))
    assert catalogue["catalogue"]["UI"] == ["tailwind", "radix-ui", "design-system"]


def test_the_prompt_teaches_the_decision_tree(agent: Agent) -> None:
    arguments = {"question": "How do refunds work?", "project_id": "proj_9"}
    text = agent.talk(lambda client: client.get_prompt("search_strategy", arguments)).messages[0].content.text
    assert 'rag_search_project_knowledge(query, project_id="proj_9")' in text
    assert "None: rag_search_global_knowledge(query)" in text
    assert "How do refunds work?" in text


def test_a_prompt_takes_the_completed_folder_and_tags(agent: Agent) -> None:
    arguments = {"project_id": "proj_1", "folder_name": "API", "tags": "rag, go"}
    text = agent.talk(lambda client: client.get_prompt("search_strategy", arguments)).messages[0].content.text
    assert 'folder_name="API"' in text
    assert 'tags=["rag", "go"]' in text


def test_an_unknown_prompt_is_refused_with_a_sentence_and_no_traceback(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(MCPError, match=r"Unknown prompt: nope\. Use 'search_strategy'"):
        agent.talk(lambda client: client.get_prompt("nope"))
    assert "Traceback" not in caplog.text


def test_changes_are_not_announced_so_that_no_client_has_the_database_polled(agent: Agent) -> None:
    resources = agent.talk(lambda client: asyncio.sleep(0, client.server_capabilities.resources))
    assert resources is not None
    assert not resources.subscribe
    assert not resources.list_changed


def test_sources_are_listed_as_resources(agent: Agent, wb: Workbench) -> None:
    source = wb.sources.create("Papers").id
    resources = agent.talk(lambda client: client.list_resources()).resources
    assert {"tags://catalogue", f"source://{source}"} <= {str(resource.uri) for resource in resources}


@pytest.mark.parametrize("mode", MODES)
def test_every_source_is_reached_by_cursor_also_while_others_come_and_go(
    agent: Agent, wb: Workbench, mode: str
) -> None:
    made = [wb.sources.create(f"Source {number}").id for number in range(250)]

    async def script(client: Client) -> list[list[str]]:
        pages = [await client.list_resources()]
        wb.sources.create("Further")
        wb.sources.delete(str(pages[0].resources[-1].uri).removeprefix("source://"))
        while pages[-1].next_cursor is not None:
            pages.append(await client.list_resources(cursor=pages[-1].next_cursor))
        return [[str(resource.uri) for resource in page.resources] for page in pages]

    first, *others = Agent(agent.server, mode).talk(script)
    assert first[0] == "tags://catalogue"
    assert [len(page) for page in (first, *others)] == [101, 100, 50]
    assert [*first[1:], *others[0], *others[1]] == [f"source://{source}" for source in reversed(made)]
    with pytest.raises(MCPError, match="Invalid cursor"):
        Agent(agent.server, mode).talk(lambda client: client.list_resources(cursor="nonsense"))


def test_the_instructions_name_only_tools_that_are_offered(agent: Agent) -> None:
    told = agent.server.instructions or ""
    assert "rag_search_project_knowledge" in told
    for line in told.splitlines():
        if line.startswith("- "):
            assert any(name in line for name in agent.server.tools)
