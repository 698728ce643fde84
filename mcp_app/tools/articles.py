"""The articles tools: written articles on concepts, patterns and practices, as they are on disk now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp_app.arguments import Argument, Refused, missing
from mcp_app.tool import Call, Family, Tool
from workbench.errors import NotFound
from workbench.types import ARTICLE_CATEGORIES

_EXACT = ("Missing required parameter: ", "Article '")  # sentences that the specification writes to the letter


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _failure(error: str, suggestion: str, given: Mapping[str, Any]) -> str:
    """Write an error as a plain sentence."""
    del given
    return error if error.startswith(_EXACT) or not suggestion else f"{error.rstrip('.')}. {suggestion}."


FAMILY = Family(render=_pretty, failure=_failure)


def list_articles(call: Call, category: str | None, limit: int) -> list[dict[str, Any]]:
    """List articles without their content."""
    return [article.to_dict() for article in call.workbench.articles.list(category, limit)]


def get_article(call: Call, slug: str) -> dict[str, Any]:
    """Return one article with its content."""
    if not slug:
        raise missing("slug", "list_articles shows the slugs")
    try:
        return call.workbench.articles.get(slug).to_dict()
    except NotFound:
        raise Refused(f"Article '{slug}' not found") from None


def search_articles(call: Call, query: str, include_content: bool, mode: str) -> list[dict[str, Any]]:
    """Search articles by the words of their description, or by meaning."""
    articles = call.workbench.articles
    find = articles.search_by_meaning if mode == "semantic" else articles.search
    return [article.to_dict() for article in find(query, content=include_content)]


LIST_ARTICLES = Tool(
    name="list_articles",
    title="List the articles",
    description=(
        "List the articles with title, description, tags, status and date, without their content.\n"
        "Use it to see what there is; to find articles on a subject use search_articles, to read one get_article.\n"
        'Example: list_articles(category="patterns", limit=10)'
    ),
    arguments=(
        Argument("category", "string", "Only this category.", choices=ARTICLE_CATEGORIES),
        Argument("limit", "integer", "Most articles.", 50, low=1, high=1000),
    ),
    run=list_articles,
    family=FAMILY,
    rest="Narrow by category, or search_articles.",
)

GET_ARTICLE = Tool(
    name="get_article",
    title="Read an article",
    description=(
        "Return one article, whole, as Markdown.\n"
        "Use it when you know the slug, from list_articles or search_articles.\n"
        'Example: get_article(slug="hyde")'
    ),
    arguments=(Argument("slug", "string", "The article's slug: its file's name.", required=True),),
    run=get_article,
    family=FAMILY,
)

SEARCH_ARTICLES = Tool(
    name="search_articles",
    title="Search the articles",
    description=(
        "Find articles whose title, tags or description hold the query as it is; mode='semantic' finds what answers "
        "a question, whatever its words.\n"
        "Use it for a subject; to see all articles use list_articles, to read one get_article, to search everything "
        "else search_knowledge_base.\n"
        'Example: search_articles(query="chunking")'
    ),
    arguments=(
        Argument("query", "string", "What to look for; empty matches every article.", required=True),
        Argument("include_content", "boolean", "Also return the articles' Markdown.", False),
        Argument("mode", "string", "How to match.", "text", choices=("text", "semantic")),
    ),
    run=search_articles,
    family=FAMILY,
    rest="Read single articles by get_article(slug).",
)

TOOLS = (LIST_ARTICLES, GET_ARTICLE, SEARCH_ARTICLES)
