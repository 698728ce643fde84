"""The completions that clients get while an argument is typed."""

from __future__ import annotations

import re
from typing import Any

from mcp import Client
from mcp.types import PromptReference, ResourceTemplateReference

from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.ingestion.incoming import text_item


def complete(agent: Agent, reference: Any, name: str, typed: str, **known: str) -> list[str]:
    return agent.talk(
        lambda client: client.complete(reference, {"name": name, "value": typed}, context_arguments=known or None)
    ).completion.values


def places(agent: Agent) -> dict[str, list[Any]]:
    """Return every argument that clients can see and complete, with its location."""

    async def script(client: Client) -> dict[str, list[Any]]:
        values: dict[str, list[Any]] = {}
        for prompt in (await client.list_prompts()).prompts:
            for argument in prompt.arguments or ():
                values.setdefault(argument.name, []).append(PromptReference(type="ref/prompt", name=prompt.name))
        for template in (await client.list_resource_templates()).resource_templates:
            for name in re.findall(r"{(\w+)}", template.uri_template):
                reference = ResourceTemplateReference(type="ref/resource", uri=template.uri_template)
                values.setdefault(name, []).append(reference)
        return values

    return agent.talk(script)


def test_ids_titles_folders_and_tags_are_completed_where_clients_see_them(agent: Agent, wb: Workbench) -> None:
    wb.projects.create("Shop", id="proj_1")
    wb.projects.create_folder("proj_1", "Authentication")
    source = wb.sources.create("Papers", tags=["rag"]).id
    document = wb.documents.create(text="Words.", title="Attention", source=source).document.id
    at = places(agent)
    assert all(complete(agent, place, "source_id", "pap") == [source] for place in at["source_id"])
    assert all(complete(agent, place, "document_id", "atten") == [document] for place in at["document_id"])
    assert all(complete(agent, place, "document_id", document[:8]) == [document] for place in at["document_id"])
    (prompt,) = at["project_id"]
    assert at["folder_name"] == at["tags"] == [prompt]
    assert complete(agent, prompt, "project_id", "sho") == ["proj_1"]
    assert complete(agent, prompt, "folder_name", "au", project_id="proj_1") == ["Authentication"]
    assert complete(agent, prompt, "folder_name", "au") == []
    assert complete(agent, prompt, "tags", "ra")[:2] == ["rag", "graphql"]
    assert complete(agent, prompt, "tags", "react, ra")[0] == "react, rag"
    assert complete(agent, prompt, "question", "x") == []


def test_completions_report_how_many_there_are_and_find_a_document_by_its_id_among_all(
    agent: Agent, wb: Workbench
) -> None:
    papers = [text_item(f"{number}", f"Words {number}.", title=f"Paper {number}") for number in range(130)]
    wb.documents.ingest_items(wb.sources.create("Papers").id, papers)
    last = wb.documents.list()[-1].id
    reference = ResourceTemplateReference(type="ref/resource", uri="document://{document_id}")

    def completion(typed: str) -> Any:
        return agent.talk(lambda client: client.complete(reference, {"name": "document_id", "value": typed})).completion

    for typed, total in (("paper", 130), ("", 130), ("paper 12", 11)):
        told = completion(typed)
        assert (len(told.values), told.total, told.has_more) == (min(100, total), total, total > 100)
    assert completion(last).values == [last]


def test_documents_of_other_projects_are_not_completed_once_a_project_is_known(agent: Agent, wb: Workbench) -> None:
    made: dict[str | None, str] = {}
    for project in ("shop", "bank", None):
        if project:
            wb.projects.create(project.title(), id=project)
        source = wb.sources.create(f"Reports of {project}", project=project).id
        made[project] = wb.documents.create(text=f"Words of {project}.", title="Report", source=source).document.id
    at = places(agent)["document_id"]
    assert all(complete(agent, place, "document_id", "rep") == list(made.values()) for place in at)
    for place in at:
        assert complete(agent, place, "document_id", "rep", project_id="shop") == [made["shop"], made[None]]
        assert complete(agent, place, "document_id", "", project_id="unknown") == []
