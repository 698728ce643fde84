"""Conversations, articles and archives are separate: no list, count or search of documents includes them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_app.server import create_server
from tests.mcp_app.agent import Agent
from tests.mcp_app.processes import environment
from workbench import Workbench
from workbench.settings import Settings

WORD = "zebras"


@pytest.fixture
def wb(make_settings: Callable[..., Settings], tmp_path: Path) -> Iterator[Workbench]:
    """A workbench with a document, a conversation, an article and an archived note, each about zebras."""
    day, articles, notes = (
        tmp_path / place for place in ("plan/2025-11-17", "articles/concepts", "research-archive/2025-05-20")
    )
    for folder in (day, articles, notes):
        folder.mkdir(parents=True)
    (day / "001-talk.md").write_text(f"# Talk\n\nWe talked of {WORD}.")
    (articles / "stripes.md").write_text(
        f"---\ntitle: Stripes\ndescription: About {WORD}\nstatus: Live\nlastUpdated: 2026-01-01\n---\nOn {WORD}."
    )
    (notes / "note.md").write_text(f"# Note\n\nA study of {WORD}.")
    settings = make_settings(
        file_roots=str(tmp_path), articles_dir=tmp_path / "articles", archives_dir=tmp_path / "research-archive"
    )
    with Workbench.open(settings=settings) as workbench:
        workbench.documents.create(text=f"A herd of {WORD} grazes.", title="Herd")
        agent = Agent(create_server(workbench, toolsets=["all"]))
        assert agent("embed_workspace", workspace_path=str(tmp_path))["embedded"] == 1
        assert "Stripes" in agent.text("search_articles", query=WORD, mode="semantic")
        assert agent("searchLocalArchives", query=WORD)["results"]
        yield workbench


def test_lists_counts_and_searches_have_documents_only(wb: Workbench) -> None:
    agent = Agent(create_server(wb, toolsets=["all"]))
    assert [source["title"] for source in agent("manage_source", action="list")["sources"]] == ["Uploads"]
    assert agent("manage_source", action="list")["total_count"] == agent("rag_get_available_sources")["count"] == 1
    assert [item["title"] for item in agent("manage_document", action="list")["documents"]] == ["Herd"]
    assert agent("manage_document", action="list")["total_count"] == agent("rag_list_pages_for_source")["total"] == 1
    assert [hit["document_title"] for hit in agent("search_knowledge_base", query=WORD)["results"]] == ["Herd"]
    assert (wb.sources.count(), wb.documents.count(), len(wb.sources.ids())) == (1, 1, 1)
    assert [hit.document_title for hit in wb.search(WORD)] == ["Herd"]


def test_a_scope_that_names_their_source_finds_them(wb: Workbench) -> None:
    agent = Agent(create_server(wb, toolsets=["all"]))
    families = wb.sources.of_families()
    assert sorted(source.source_type for source in families) == ["archive", "articles", "workspace"]
    for source in families:
        assert agent("search_knowledge_base", query=WORD, source_id=source.id)["count"] == 1
        assert agent("manage_document", action="list", source_id=source.id)["total_count"] == 1


def run_command(wb: Workbench, *arguments: str) -> str:
    command = [sys.executable, "-m", "workbench.cli", *arguments]
    return subprocess.run(command, env=environment(wb.settings), capture_output=True, text=True, check=True).stdout


def test_projects_and_folders_count_them_apart_and_delete_them_with_the_others(wb: Workbench) -> None:
    project = wb.projects.create("Zoo")
    wb.projects.create_folder(project.id, "Stripes")
    for source in [*wb.sources.list(), *wb.sources.of_families()]:
        wb.sources.update(source.id, project=project.id, folder="Stripes")
    folder, shown = wb.projects.folders(project.id)[0], wb.projects.get(project.id)
    assert [(each.source_count, each.family_count) for each in (shown, folder)] == [(1, 3), (1, 3)]
    agent = Agent(create_server(wb, toolsets=["all"]))
    assert agent("find_projects")["projects"][0]["source_count"] == 1
    assert agent("rag_list_project_folders", project_id=project.id)["folders"][0]["source_count"] == 1
    assert agent("rag_get_available_sources", project_id=project.id)["count"] == 1

    def run(*arguments: str) -> str:
        return " ".join(run_command(wb, "projects", *arguments).split())

    assert "1 + 3 conversations, articles, archives" in run("list")
    assert "keeps its 1 source and 3 with conversations" in run("delete-folder", "Zoo", "Stripes")
    assert "with 1 source and 3 with conversations, articles or archives: 4 documents" in run("delete", "Zoo", "--yes")
    assert wb.sources.list() == wb.sources.of_families() == []


def test_the_command_line_counts_and_lists_them_apart(wb: Workbench) -> None:
    def told(*arguments: str) -> dict[str, object]:
        return json.loads(run_command(wb, "--json", *arguments))

    status: Any = told("status")
    assert [(index["documents_count"], index["family_count"]) for index in status["indexes"]] == [(1, 3)]
    assert status["corpus"] == {
        "projects": 0, "sources": 1, "documents": 1, "conversations": 1, "articles": 1, "archives": 1,
    }  # fmt: skip
    assert (told("sources", "list")["total"], told("documents", "list")["total"]) == (1, 1)
    assert told("sources", "list", "--type", "workspace")["total"] == 1
