"""An ambiguous title or URL is rejected with the ids that have it, in every interface; an id is unambiguous."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_app.server import create_server
from tests.mcp_app.agent import Agent
from tests.mcp_app.processes import environment
from workbench import Workbench
from workbench.errors import Ambiguous, ScopeError
from workbench.services.article_files import ArticleFolder
from workbench.types import Scope

TITLE, URL = "Handbook", "https://docs.example.com/"


@pytest.fixture
def twins(wb: Workbench) -> dict[str, str]:
    """Return the ids of four sources with the same title, two of them with the same URL, by location."""
    projects = {name: wb.projects.create(name).id for name in ("Shop", "Bank")}
    return {
        "upload": wb.sources.create(TITLE).id,
        "crawl": wb.sources.create(TITLE, source_type="crawl", url=URL).id,
        "Shop": wb.sources.create(TITLE, project=projects["Shop"], url=URL).id,
        "Bank": wb.sources.create(TITLE, project=projects["Bank"]).id,
    }


CALLS = [
    ("manage_source", {"action": "delete", "source_id": TITLE}),
    ("manage_source", {"action": "get", "source_id": TITLE}),
    ("manage_source", {"action": "update", "source_id": TITLE, "title": "New"}),
    ("manage_document", {"action": "create", "content": "Words.", "source_id": TITLE}),
    ("manage_document", {"action": "list", "source_id": TITLE}),
    ("crawl_website", {"url": URL, "source_id": TITLE}),
    ("search_knowledge_base", {"query": "words", "source_id": TITLE}),
    ("rag_search_knowledge_base", {"query": "words", "source_id": TITLE}),
    ("rag_search_code_examples", {"query": "words", "source_id": TITLE}),
    ("rag_list_pages_for_source", {"source_id": TITLE}),
]


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_tools_refuse_a_title_of_several_sources(
    wb: Workbench, twins: dict[str, str], tool: str, arguments: dict[str, str]
) -> None:
    failure = Agent(create_server(wb, toolsets=["all"])).failure(tool, **arguments)
    assert failure["error"].startswith("4 sources are called 'Handbook': ")
    assert all(key in failure["error"] for key in twins.values())
    assert wb.sources.count() == 4


def test_a_url_of_several_sources_is_refused_and_an_id_deletes_the_one(wb: Workbench, twins: dict[str, str]) -> None:
    with pytest.raises(Ambiguous) as refused:
        wb.sources.delete(URL)
    message = str(refused.value)
    assert (twins["crawl"] in message, twins["Shop"] in message, twins["upload"] in message) == (True, True, False)
    assert wb.sources.delete(twins["Shop"]).id == twins["Shop"]
    assert wb.sources.get(URL).id == twins["crawl"]


def test_within_a_project_only_its_own_source_is_meant(wb: Workbench, twins: dict[str, str]) -> None:
    result = wb.search("words", scope=Scope(kind="project", project="Shop", sources=(TITLE,)))
    assert result.scope.source_ids == (twins["Shop"],)
    with pytest.raises(ScopeError) as refused:
        wb.search("words", scope=Scope(kind="global", sources=(TITLE,)))
    assert twins["upload"] in str(refused.value) and twins["Bank"] not in str(refused.value)


def test_a_document_without_a_source_goes_to_the_global_uploads(wb: Workbench) -> None:
    wb.projects.create("Shop")
    wb.sources.create("Uploads", project="Shop")
    first, second = (wb.documents.create(text=f"Words {number}.").document.source_id for number in (1, 2))
    assert first == second and wb.sources.get(first).project_id is None


def test_an_address_of_several_documents_is_refused(wb: Workbench) -> None:
    agent = Agent(create_server(wb, toolsets=["all"]))
    ids = [
        wb.documents.create(text=f"Page {name}.", url=f"{URL}a", source=wb.sources.create(name).id).document.id
        for name in ("One", "Two")
    ]
    failure = agent.failure("rag_read_full_page", url=f"{URL}a")
    assert all(key in failure["error"] for key in ids)
    assert agent("rag_read_full_page", page_id=ids[0])["content"] == "Page One."


def test_a_slug_of_several_articles_is_refused_and_its_category_decides(tmp_path: Path) -> None:
    for category in ("concepts", "patterns"):
        (tmp_path / category).mkdir()
        text = f"---\ntitle: On {category}\nstatus: Live\nlastUpdated: 2026-01-01\n---\nWords."
        (tmp_path / category / "cache.md").write_text(text)
    articles = ArticleFolder(tmp_path)
    with pytest.raises(Ambiguous, match=r"concepts/cache .*patterns/cache"):
        articles.get("cache")
    assert articles.get("patterns/cache").title == "On patterns"


def test_the_command_line_refuses_to_delete_one_of_several(wb: Workbench, twins: dict[str, str]) -> None:
    command = [sys.executable, "-m", "workbench.cli", "--json", "sources", "delete", TITLE, "--yes"]
    env = {**os.environ, **environment(wb.settings)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and all(key in done.stdout + done.stderr for key in twins.values())
    assert wb.sources.count() == 4
