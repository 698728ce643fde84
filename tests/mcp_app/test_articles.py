"""Every criterion, example and test of the articles tools' specification, driven by the SDK's client."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from mcp_app.server import create_server
from tests.mcp_app.agent import MODES, Agent
from tests.mcp_app.processes import over_stdio
from workbench import Workbench
from workbench.settings import Settings


def article(
    title: str, tags: str, description: str, day: str, status: str, body: str = "## Definition\n\nText."
) -> str:
    lines = (f"title: {title}", f"description: {description}", f"tags: [{tags}]", f"status: {status}")
    return "---\n" + "\n".join((*lines, f"lastUpdated: {day}")) + f"\n---\n\n{body}\n"


ARTICLES = {
    "concepts/context-engineering.md": article(
        "Context Engineering", "Context, Prompting", "The discipline of designing what a model sees.", "2025-01-15",
        "Live", "## Definition\n\nContext Engineering is the art of giving a model what it needs.",
    ),
    "concepts/agent.md": article("Agent", "Autonomy", "A loop in a context.", "2025-02-01", "Experimental"),
    "patterns/context-map.md": article("Map", "context", "Boundaries between teams.", "2025-03-01", "Live"),
    "patterns/context-gates.md": article("Gates", "context", "Checks on the way.", "2025-04-01", "Live"),
    "practices/living-specs.md": article("Living Specs", "Docs", "Specifications that grow.", "2025-01-01", "Live"),
    "practices/draft.md": article("Draft context", "context", "context", "2025-05-01", "Draft"),
    "practices/proposed.md": article("Proposed context", "context", "context", "2025-05-01", "Proposed"),
    "practices/deprecated.md": article("Deprecated context", "context", "context", "2025-05-01", "Deprecated"),
    "practices/README.md": "# No article\n\ncontext",
    "practices/broken.md": "---\ntitle: [unclosed\nstatus: Live\n---\n\ncontext",
    "practices/empty.md": "",
    "elsewhere/hidden.md": article("Hidden", "context", "context", "2025-05-01", "Live"),
}  # fmt: skip
SHOWN = {"context-engineering", "agent", "context-map", "context-gates", "living-specs"}


@pytest.fixture
def wb(make_settings: Callable[..., Settings], folder: Callable[..., Path]) -> Iterator[Workbench]:
    with Workbench.open(settings=make_settings(articles_dir=folder(ARTICLES, "articles"))) as workbench:
        yield workbench


@pytest.fixture
def execute_tool(wb: Workbench) -> Callable[..., Any]:
    """Call a tool as the specification's tests do: the result with its only text block."""
    agent = Agent(create_server(wb, toolsets=["articles"]))
    return lambda tool, **arguments: agent.talk(lambda client: client.call_tool(tool, arguments))


def slugs(result: Any) -> list[str]:
    assert not result.is_error
    return [article["slug"] for article in json.loads(result.content[0].text)]


class TestListArticles:
    def test_returns_all_articles_without_filters(self, execute_tool: Callable[..., Any]) -> None:
        assert set(slugs(execute_tool("list_articles"))) == SHOWN

    def test_response_format(self, execute_tool: Callable[..., Any]) -> None:
        (found,) = [
            article
            for article in json.loads(execute_tool("list_articles").content[0].text)
            if article["slug"] == "context-engineering"
        ]
        assert found == {
            "slug": "context-engineering",
            "category": "concepts",
            "title": "Context Engineering",
            "description": "The discipline of designing what a model sees.",
            "tags": ["Context", "Prompting"],
            "lastUpdated": "2025-01-15",
            "status": "Live",
        }

    def test_filters_by_category(self, execute_tool: Callable[..., Any]) -> None:
        assert set(slugs(execute_tool("list_articles", category="patterns"))) == {"context-map", "context-gates"}

    def test_a_category_outside_the_three_is_an_error_naming_them(self, execute_tool: Callable[..., Any]) -> None:
        result = execute_tool("list_articles", category="recipes")
        assert result.is_error
        assert result.content[0].text == ("Invalid category: recipes. Use 'concepts', 'patterns', or 'practices'.")

    def test_limits_results(self, execute_tool: Callable[..., Any]) -> None:
        assert len(slugs(execute_tool("list_articles", limit=3))) == 3
        assert execute_tool("list_articles", limit=0).is_error

    def test_returns_only_live_and_experimental_articles(self, execute_tool: Callable[..., Any]) -> None:
        found = json.loads(execute_tool("list_articles").content[0].text)
        assert {entry["status"] for entry in found} == {"Live", "Experimental"}


class TestGetArticle:
    def test_returns_article_with_full_content_for_valid_slug(self, execute_tool: Callable[..., Any]) -> None:
        found = json.loads(execute_tool("get_article", slug="context-engineering").content[0].text)
        assert found["content"].startswith("## Definition\n\nContext Engineering is")
        assert (found["category"], found["lastUpdated"]) == ("concepts", "2025-01-15")

    def test_returns_error_for_non_existent_article(self, execute_tool: Callable[..., Any]) -> None:
        for slug in ("nonexistent-123", "draft", "hidden", "README", "../concepts/agent", "a\x00b"):
            result = execute_tool("get_article", slug=slug)
            assert result.is_error
            assert result.content[0].text == f"Article '{slug}' not found"

    def test_returns_error_for_missing_slug_parameter(self, execute_tool: Callable[..., Any]) -> None:
        for arguments in ({}, {"slug": ""}, {"slug": None}):
            result = execute_tool("get_article", **arguments)
            assert result.is_error
            assert result.content[0].text == "Missing required parameter: slug"


class TestSearchArticles:
    def test_finds_articles_by_search_query(self, execute_tool: Callable[..., Any]) -> None:
        assert slugs(execute_tool("search_articles", query="ENGINEER")) == ["context-engineering"]

    def test_results_are_sorted_by_score_then_by_date(self, execute_tool: Callable[..., Any]) -> None:
        found = slugs(execute_tool("search_articles", query="context"))
        assert found == ["context-engineering", "context-gates", "context-map", "agent"]  # 5, 2 newer, 2 older, 1

    def test_returns_metadata_only_by_default(self, execute_tool: Callable[..., Any]) -> None:
        found = json.loads(execute_tool("search_articles", query="context").content[0].text)
        assert all("content" not in entry for entry in found)

    def test_includes_content_when_requested(self, execute_tool: Callable[..., Any]) -> None:
        found = json.loads(execute_tool("search_articles", query="context", include_content=True).content[0].text)
        assert all(entry["content"].startswith("## Definition") for entry in found)

    def test_returns_error_for_missing_query_parameter(self, execute_tool: Callable[..., Any]) -> None:
        result = execute_tool("search_articles")
        assert result.is_error
        assert result.content[0].text == "Missing required parameter: query"

    def test_only_returns_live_and_experimental_articles_and_an_empty_query_matches_all(
        self, execute_tool: Callable[..., Any]
    ) -> None:
        assert set(slugs(execute_tool("search_articles", query=""))) == SHOWN

    def test_no_match_is_an_empty_list(self, execute_tool: Callable[..., Any]) -> None:
        assert slugs(execute_tool("search_articles", query="no such words")) == []

    def test_semantic_mode_answers_by_the_query_engine(self, execute_tool: Callable[..., Any]) -> None:
        found = slugs(execute_tool("search_articles", query="what does a model need to see?", mode="semantic"))
        assert found[0] == "context-engineering"
        assert set(found) <= SHOWN


class TestErrorHandling:
    def test_returns_error_for_unknown_tool(self, execute_tool: Callable[..., Any]) -> None:
        result = execute_tool("unknown_tool")
        assert result.is_error
        assert result.content[0].text == "Unknown tool: unknown_tool"


class TestResponseFormat:
    def test_uses_mcp_content_format_for_all_responses(self, execute_tool: Callable[..., Any]) -> None:
        for result in (execute_tool("list_articles"), execute_tool("get_article"), execute_tool("nope")):
            assert [block.type for block in result.content] == ["text"]

    def test_serializes_responses_as_pretty_json(self, execute_tool: Callable[..., Any]) -> None:
        text = execute_tool("list_articles", limit=1).content[0].text
        assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False)


@pytest.mark.parametrize("mode", MODES)
def test_clients_of_both_eras_are_answered_alike(wb: Workbench, mode: str) -> None:
    agent = Agent(create_server(wb, toolsets=["all"]), mode)
    assert [entry["slug"] for entry in json.loads(agent.text("search_articles", query="spec"))] == ["living-specs"]


def test_the_list_is_fresh_without_a_restart_when_files_change(wb: Workbench, tmp_path: Path) -> None:
    agent = Agent(create_server(wb, toolsets=["all"]))
    before = json.loads(agent.text("search_articles", query="new things", mode="semantic"))
    (tmp_path / "articles/concepts/agent.md").unlink()
    new = article("New Things", "new", "All new things.", "2026-01-01", "Live", "About new things.")
    (tmp_path / "articles/patterns/new-things.md").write_text(new)
    assert [entry["slug"] for entry in json.loads(agent.text("search_articles", query="new things"))] == ["new-things"]
    after = json.loads(agent.text("search_articles", query="new things", mode="semantic"))
    assert (after[0]["slug"], "new-things" in [entry["slug"] for entry in before]) == ("new-things", False)
    assert "agent" not in {entry["slug"] for entry in json.loads(agent.text("list_articles"))}


def test_a_link_that_leads_out_of_the_articles_is_not_followed(wb: Workbench, tmp_path: Path) -> None:
    agent = Agent(create_server(wb, toolsets=["all"]))
    (tmp_path / "private.md").write_text(article("Private", "x", "Not for agents.", "2026-01-01", "Live", "Mine."))
    (tmp_path / "articles/patterns/private.md").symlink_to(tmp_path / "private.md")
    (tmp_path / "articles/patterns/alias.md").symlink_to(tmp_path / "articles/concepts/agent.md")
    slugs = {entry["slug"] for entry in json.loads(agent.text("list_articles"))}
    assert "alias" in slugs and "private" not in slugs
    assert json.loads(agent.text("search_articles", query="private")) == []


def test_the_samples_articles_are_served_if_no_folder_is_set(make_settings: Callable[..., Settings]) -> None:
    with Workbench.open(settings=make_settings()) as workbench:
        agent = Agent(create_server(workbench, toolsets=["all"]))
        assert "hyde" in {entry["slug"] for entry in json.loads(agent.text("list_articles", category="patterns"))}


def test_a_folder_that_is_missing_is_reported_in_a_sentence(
    make_settings: Callable[..., Settings], tmp_path: Path
) -> None:
    with Workbench.open(settings=make_settings(articles_dir=tmp_path / "none")) as workbench:
        result = Agent(create_server(workbench, toolsets=["all"])).talk(
            lambda client: client.call_tool("list_articles", {})
        )
        assert result.is_error
        assert "correct WORKBENCH_ARTICLES_DIR" in result.content[0].text


def test_articles_are_listed_read_and_searched_without_a_database(
    make_settings: Callable[..., Settings], folder: Callable[..., Path]
) -> None:
    away = make_settings(database_url="postgresql://nobody@127.0.0.1:1/none")

    async def script() -> list[Any]:
        server = over_stdio(away, "--toolsets", "articles", WORKBENCH_ARTICLES_DIR=str(folder(ARTICLES, "articles")))
        async with Client(server) as client:
            return [
                await client.call_tool("list_articles", {}),
                await client.call_tool("search_articles", {"query": ""}),
                await client.call_tool("get_article", {"slug": "agent"}),
                await client.call_tool("search_articles", {"query": "words", "mode": "semantic"}),
            ]

    *from_files, by_meaning = asyncio.run(script())
    assert [answer.is_error for answer in from_files] == [False] * 3
    assert set(slugs(from_files[0])) == set(slugs(from_files[1])) == SHOWN
    assert by_meaning.is_error
    assert "is unreachable" in by_meaning.content[0].text


def test_more_articles_than_a_search_once_ranked_are_reached_by_meaning_too(wb: Workbench) -> None:
    for number in range(25):
        text = article(f"Lighthouse {number}", "sea", "On lighthouses.", "2025-01-01", "Live", f"Lighthouse {number}.")
        (wb.articles.place() / f"concepts/lighthouse-{number}.md").write_text(text)
    agent = Agent(create_server(wb, toolsets=["all"]))
    first = json.loads(agent.text("search_articles", query="lighthouse", mode="semantic", limit=22))
    assert "and more match" in first[-1]["note"] and "offset=22" in first[-1]["note"]
    rest = json.loads(agent.text("search_articles", query="lighthouse", mode="semantic", limit=22, offset=22))
    slugs = [entry["slug"] for entry in first + rest]
    assert len(set(slugs)) == len(slugs) and sum(slug.startswith("lighthouse-") for slug in slugs) == 25


def test_the_next_call_repeats_an_empty_query_and_omits_other_empty_arguments(wb: Workbench) -> None:
    agent = Agent(create_server(wb, toolsets=["all"]))
    seen: list[str] = []
    call = {"query": "", "limit": 2, "mode": ""}
    while call:
        entries = json.loads(agent.text("search_articles", **call))
        seen += [entry["slug"] for entry in entries]
        note = entries[-1].get("note", "")
        call = dict(re.findall(r'(\w+)="?([^",)]*)', note.partition("search_articles(")[2]))
        assert not call or set(call) == {"query", "limit", "offset"}, note
    assert len(seen) == len(SHOWN) and set(seen) == SHOWN
