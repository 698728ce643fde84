"""The articles tools: Markdown articles on concepts, patterns and practices, read from disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mcp_app.arguments import Argument, Refused, make_missing_error
from mcp_app.paging import (
    FEW_RESULTS,
    MAX_TEXT_CHARS,
    MAX_TITLE_CHARS,
    Items,
    RankedPage,
    TextPart,
    cut,
    format_next_call,
    slice_text,
)
from mcp_app.tool import Call, Tool, ToolFamily, delegate_to_job, make_schema, notes_json
from workbench.errors import NotFound
from workbench.services.article_files import Article, ArticleFolder
from workbench.types import ARTICLE_CATEGORIES, JsonObject, JsonValue

MAX_RANKED = 100  # articles that one semantic search ranks
MAX_ARTICLES = 100_000  # more than a folder written by hand contains
MAX_PART_CHARS = 24_000  # characters per part; the budget may allow fewer
MAX_LISTED_CONTENT_CHARS = 6_000  # characters of each article in a list
_FIXED_MESSAGES = ("Missing required parameter: ", "Article '")  # messages whose wording the specification fixes


def _render_indented(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _failure(error: str, suggestion: str, given: Mapping[str, object]) -> str:
    """Return an error as a plain sentence."""
    return error if error.startswith(_FIXED_MESSAGES) or not suggestion else f"{error.rstrip('.')}. {suggestion}."


FAMILY = ToolFamily(render=_render_indented, failure=_failure)
DEFAULT_LIMIT = 50
LIMIT = Argument("limit", "integer", "Maximum number of articles.", DEFAULT_LIMIT, low=1, high=1000)
OFFSET = Argument("offset", "integer", "Articles to skip.", 0, low=0)


@Tool(
    title="List articles",
    arguments=(Argument("category", "string", "Only this category.", choices=ARTICLE_CATEGORIES), LIMIT, OFFSET),
    family=FAMILY,
    from_files=True,
    parts=Items("articles", total="total", bare=True),
    output=make_schema(articles="array"),
)
def list_articles(call: Call, category: str | None, limit: int, offset: int) -> JsonObject:
    """List articles without their content.

    Use it for an overview; to find articles on a topic, use search_articles; to read one, get_article.
    Example: list_articles(category="patterns", limit=10)
    """
    return page_json(call.articles.list(category, MAX_ARTICLES), limit, offset)


@Tool(
    title="Read an article",
    arguments=(
        Argument("slug", "string", "The article's slug (its file name).", required=True),
        Argument("offset", "integer", "Start position, in characters.", 0, low=0),
        Argument("length", "integer", "Maximum number of characters.", MAX_PART_CHARS, low=1, high=MAX_PART_CHARS),
    ),
    family=FAMILY,
    from_files=True,
    parts=TextPart("content"),
    output=make_schema(slug="string", content="string", total_chars="integer"),
)
def get_article(call: Call, slug: str, offset: int, length: int) -> JsonObject:
    """Return an article as Markdown, in parts if it is long.

    Use it if you know the slug, from list_articles or search_articles.
    Example: get_article(slug="hyde")
    """
    if not slug:
        raise make_missing_error("slug", "list_articles returns the slugs")
    try:
        article = call.articles.get(slug)
    except NotFound:
        raise Refused(f"Article '{slug}' not found") from None
    return article_json(article.without_content()) | slice_text(article.content or "", offset, length)


@Tool(
    title="Search articles",
    arguments=(
        Argument("query", "string", "Text to find; empty matches every article.", required=True),
        Argument("include_content", "boolean", "Include the articles' Markdown.", False),
        Argument("mode", "string", "How to match.", "text", choices=("text", "semantic")),
        replace(LIMIT, unset=0),
        OFFSET,
    ),
    family=FAMILY,
    from_files=True,
    parts=Items("articles", total="total", bare=True),
    advice="Articles on concepts, patterns and practices: search_articles, then get_article(slug).",
    output=make_schema(articles="array"),
)
def search_articles(call: Call, query: str, include_content: bool, mode: str, limit: int, offset: int) -> JsonObject:
    """Find articles whose title, tags or description contain the query; mode='semantic' searches by meaning.

    Use it for articles: best for the name of a topic; to read one, use get_article; to search everything else,
    search_knowledge_base.
    Example: search_articles(query="chunking")
    """
    wanted, limit = limit, limit or DEFAULT_LIMIT
    if mode != "semantic":
        return page_json(call.articles.search(query, content=include_content), limit, offset)
    articles = call.wb.articles
    page = RankedPage(offset, limit, MAX_RANKED, "articles", "use words specific to the article")
    left = delegate_to_job(call, articles)
    found = articles.search_by_meaning(
        query, content=include_content, limit=page.limit, should_stop=call.should_stop, bring_in=not left
    )
    if left and not found:
        return _search_words(articles, query, include_content, left, limit, offset)
    if found.nothing_close and not (wanted or offset):
        limit = FEW_RESULTS
    answer = page_json(found, limit, offset, left | notes_json(found.nothing_close, found.degraded))
    del answer["total"]  # unknown to a search
    return answer | {"more": page.has_more(found)} | page.end(found)


def _search_words(
    articles: ArticleFolder, query: str, content: bool, left: JsonObject, limit: int, offset: int
) -> JsonObject:
    """Search by words only, as long as no article is embedded.

    Raises:
        Refused: No article contains a word of the query.
    """
    found = articles.search_by_words(query, content=content)
    if not found:
        raise Refused(
            f"No article is embedded yet, and none contains a word of the query. {left['message']}",
            "Try again when the job has finished",
        )
    message = f"No article is embedded yet; these contain words of the query. {left['message']}"
    return page_json(found, limit, offset, left | {"message": message})


def page_json(
    articles: Sequence[Article], limit: int, offset: int, of_all: Mapping[str, JsonValue] | None = None
) -> JsonObject:
    """Return a page of articles and their total.

    The first article has the fields ``of_all``, which are about the whole answer, because the answer is an array.
    """
    shown = [article_json(article) for article in articles[offset : offset + limit]]
    if shown and of_all:
        shown[0] |= of_all
    return {"articles": list(shown), "total": len(articles)}


def article_json(article: Article) -> JsonObject:
    """Return an article as specified; long content is cut, with a note on how to get the rest."""
    answer = article.to_dict() | {
        "title": cut(article.title, MAX_TITLE_CHARS),
        "description": cut(article.description, MAX_TEXT_CHARS),
    }
    if len(article.content or "") > MAX_LISTED_CONTENT_CHARS:
        rest = format_next_call("get_article", {"slug": article.slug}, offset=MAX_LISTED_CONTENT_CHARS)
        answer["content"] = (article.content or "")[:MAX_LISTED_CONTENT_CHARS]
        answer |= {"total_chars": len(article.content or ""), "note": f"The content continues. Next: {rest}"}
    return answer


TOOLS = (list_articles, get_article, search_articles)
