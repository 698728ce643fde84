"""What an agent reads whole, what it is taught, and what is completed while it types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import PromptReference, ResourceTemplateReference

from mcp_app.resources import PAGE_CHARS
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
    pages = -(-len(text) // PAGE_CHARS)
    parts = [read(agent, f"document://{document}/{page}") for page in range(1, pages + 1)]
    assert parts[0] == first
    assert "".join(part.split("\n\n[Page ")[0] for part in parts) == text


def test_a_source_lists_its_documents_in_pages(agent: Agent, wb: Workbench) -> None:
    source = wb.knowledge.create_source("Many").id
    wb.knowledge.ingest_items(source, [text_item(f"{n}", f"Text {n}.", title=f"T{n}") for n in range(51)])
    first = json.loads(read(agent, f"source://{source}"))
    assert (first["source"]["title"], first["total_count"], len(first["documents"])) == ("Many", 51, 50)
    second = json.loads(read(agent, first["next"]))
    assert (len(second["documents"]), second["next"]) == (1, None)


@pytest.mark.parametrize("uri", ["document://doc_none", "source://src_none", "document://doc_none/0", "source://x/y"])
def test_what_does_not_exist_is_an_error_that_names_it(agent: Agent, uri: str) -> None:
    with pytest.raises(MCPError, match=r"not found: (doc_none|src_none)|There is no page"):
        read(agent, uri)


def test_the_templates_and_the_tag_catalogue_are_offered(agent: Agent) -> None:
    templates = agent.talk(lambda client: client.list_resource_templates()).resource_templates
    assert {"source://{source_id}", "document://{document_id}"} <= {item.uri_template for item in templates}
    catalogue = json.loads(read(agent, "tags://catalogue"))
    assert catalogue["catalogue"]["UI"] == ["tailwind", "radix-ui", "design-system"]


def test_the_prompt_teaches_the_decision_tree(agent: Agent) -> None:
    asked = {"question": "How do refunds work?", "project_id": "proj_9"}
    text = agent.talk(lambda client: client.get_prompt("search_strategy", asked)).messages[0].content.text
    assert 'rag_search_project_knowledge(query, project_id="proj_9")' in text
    assert "None: rag_search_global_knowledge(query)" in text
    assert "How do refunds work?" in text


def complete(agent: Agent, name: str, typed: str, **known: str) -> list[str]:
    reference: Any = ResourceTemplateReference(type="ref/resource", uri="document://{document_id}")
    if name == "project_id":
        reference = PromptReference(type="ref/prompt", name="search_strategy")
    return agent.talk(
        lambda client: client.complete(reference, {"name": name, "value": typed}, context_arguments=known or None)
    ).completion.values


def test_ids_titles_folders_and_tags_are_completed(agent: Agent, wb: Workbench) -> None:
    wb.projects.create("Shop", id="proj_1")
    wb.projects.create_folder("proj_1", "Authentication")
    source = wb.knowledge.create_source("Papers", tags=["rag"]).id
    document = wb.documents.create(text="Words.", title="Attention", source=source).document.id
    assert complete(agent, "source_id", "pap") == [source]
    assert complete(agent, "document_id", "atten") == complete(agent, "document_id", document[:8]) == [document]
    assert complete(agent, "project_id", "sho") == ["proj_1"]
    assert complete(agent, "folder_name", "au", project_id="proj_1") == ["Authentication"]
    assert complete(agent, "tags", "ra")[:2] == ["rag", "graphql"]
    assert complete(agent, "unheard_of", "x") == []


def test_the_instructions_name_only_tools_that_are_offered(agent: Agent) -> None:
    told = agent.server.instructions or ""
    assert "rag_search_project_knowledge" in told
    for line in told.splitlines():
        if line.startswith("- "):
            assert any(name in line for name in agent.server.tools)
