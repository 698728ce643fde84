"""The articles tools: written articles on concepts, patterns and practices, as they are on disk now."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mcp_app.arguments import Argument, Refused, missing
from mcp_app.paging import (
    FEW,
    LONGEST_TEXT,
    LONGEST_TITLE,
    Items,
    RankedPage,
    TextPart,
    cut,
    next_call,
    text_part,
)
from mcp_app.tool import Call, Tool, ToolFamily, form, left_to_job
from workbench.errors import NotFound
from workbench.services.articles import Article, ArticleFolder
from workbench.types import ARTICLE_CATEGORIES
from workbench.types.json import JsonObject, JsonValue

MOST_BY_MEANING = 100  # articles that one search ranks
MOST_ARTICLES = 100_000  # of a folder that a person writes
LONGEST_PART = 24_000  # characters of an article at once; the budget may grant fewer
LONGEST_WITH_CONTENT = 6_000  # characters of an article among others
_EXACT = ("Missing required parameter: ", "Article '")  # sentences that the specification writes to the letter


def _pretty(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _failure(error: str, suggestion: str, given: Mapping[str, object]) -> str:
    """Write an error as a plain sentence."""
    del given
    return error if error.startswith(_EXACT) or not suggestion else f"{error.rstrip('.')}. {suggestion}."


FAMILY = ToolFamily(render=_pretty, failure=_failure)


def list_articles(call: Call, category: str | None, limit: int, offset: int) -> JsonObject:
    """List articles without their content."""
    return page_json(call.articles.list(category, MOST_ARTICLES), limit, offset)


def get_article(call: Call, slug: str, offset: int, length: int) -> JsonObject:
    """Return one article with its content, a long one in parts."""
    if not slug:
        raise missing("slug", "list_articles shows the slugs")
    try:
        article = call.articles.get(slug)
    except NotFound:
        raise Refused(f"Article '{slug}' not found") from None
    return article_json(article.without_content()) | text_part(article.content or "", offset, length)


def search_articles(call: Call, query: str, include_content: bool, mode: str, limit: int, offset: int) -> JsonObject:
    """Search articles by the words of their description, or by meaning."""
    wanted, limit = limit, limit or DEFAULT_LIMIT
    if mode != "semantic":
        return page_json(call.articles.search(query, content=include_content), limit, offset)
    articles, page = call.wb.articles, RankedPage(offset, limit, MOST_BY_MEANING)
    left = left_to_job(call, articles)
    found = articles.search_by_meaning(
        query,
        content=include_content,
        limit=page.asked,
        should_stop=call.should_stop,
        bring_in=not left,
    )
    if left and not found:
        return _found_by_words(articles, query, include_content, left, limit, offset)
    beside: JsonObject = {}
    if found.nothing_close:
        beside |= {"nothing_close": found.nothing_close, "suggestion": "Use other words"}
        limit = limit if wanted or offset else FEW
    if found.degraded:
        beside["degraded"] = list(found.degraded)
    for note in page.end(found, "articles", "use words that only the article wanted has").values():
        beside["limit_reached"] = note  # an article's own note says where its content goes on
    answer = page_json(found, limit, offset, left | beside)
    del answer["total"]  # a search does not know it
    return answer | {"more": page.has_more(found)}


def _found_by_words(
    articles: ArticleFolder, query: str, content: bool, left: JsonObject, limit: int, offset: int
) -> JsonObject:
    """Return what words alone find in the files while none of them is embedded. Refuses where they find nothing."""
    found = articles.search_by_words(query, content=content)
    if not found:
        raise Refused(
            f"No article is embedded yet, and none has a word of the query. {left['message']}",
            "Ask again when the job has ended",
        )
    told = f"No article is embedded yet: these are the ones that have words of the query. {left['message']}"
    return page_json(found, limit, offset, left | {"message": told})


def page_json(
    articles: Sequence[Article], limit: int, offset: int, of_all: Mapping[str, JsonValue] | None = None
) -> JsonObject:
    """Return some of the articles, and how many there are.

    ``of_all`` is what holds for the whole answer. It stands in the first article, because the answer is an array.
    """
    shown = [article_json(article) for article in articles[offset : offset + limit]]
    if shown and of_all:
        shown[0] |= of_all
    return {"articles": list(shown), "total": len(articles)}


def article_json(article: Article) -> JsonObject:
    """Return an article as the specification shows it; among others a long content ends with how to go on."""
    answer = article.to_dict() | {
        "title": cut(article.title, LONGEST_TITLE),
        "description": cut(article.description, LONGEST_TEXT),
    }
    if len(article.content or "") > LONGEST_WITH_CONTENT:
        rest = next_call("get_article", {"slug": article.slug}, offset=LONGEST_WITH_CONTENT)
        answer["content"] = (article.content or "")[:LONGEST_WITH_CONTENT]
        answer |= {"total_chars": len(article.content or ""), "note": f"The content goes on. Next: {rest}"}
    return answer


DEFAULT_LIMIT = 50
LIMIT = Argument("limit", "integer", "How many at most.", DEFAULT_LIMIT, low=1, high=1000)
OFFSET = Argument("offset", "integer", "How many to skip.", 0, low=0)

LIST_ARTICLES = Tool(
    name="list_articles",
    title="List the articles",
    description=(
        "List the articles without their content.\n"
        "Use it to see what there is; to find articles on a subject use search_articles, to read one get_article.\n"
        'Example: list_articles(category="patterns", limit=10)'
    ),
    arguments=(
        Argument("category", "string", "Only this category.", choices=ARTICLE_CATEGORIES),
        LIMIT,
        OFFSET,
    ),
    run=list_articles,
    family=FAMILY,
    from_files=True,
    parts=Items("articles", total="total", bare=True),
    output=form(articles="array"),
)

GET_ARTICLE = Tool(
    name="get_article",
    title="Read an article",
    description=(
        "Return one article as Markdown, a long one in parts.\n"
        "Use it when you know the slug, from list_articles or search_articles.\n"
        'Example: get_article(slug="hyde")'
    ),
    arguments=(
        Argument("slug", "string", "The article's slug: its file's name.", required=True),
        Argument("offset", "integer", "Where to begin, in characters.", 0, low=0),
        Argument("length", "integer", "How many characters at most.", LONGEST_PART, low=1, high=LONGEST_PART),
    ),
    run=get_article,
    family=FAMILY,
    from_files=True,
    parts=TextPart("content"),
    output=form(slug="string", content="string", total_chars="integer"),
)

SEARCH_ARTICLES = Tool(
    name="search_articles",
    title="Search the articles",
    description=(
        "Find articles whose title, tags or description hold the query as it is; mode='semantic' finds by meaning.\n"
        "Use it for the written articles: best for a subject's name; to read one use get_article; to search everything "
        "else search_knowledge_base.\n"
        'Example: search_articles(query="chunking")'
    ),
    arguments=(
        Argument("query", "string", "What to look for; empty matches every article.", required=True),
        Argument("include_content", "boolean", "Also return the articles' Markdown.", False),
        Argument("mode", "string", "How to match.", "text", choices=("text", "semantic")),
        replace(LIMIT, unset=0),
        OFFSET,
    ),
    run=search_articles,
    family=FAMILY,
    from_files=True,
    parts=Items("articles", total="total", bare=True),
    advice="Written articles on concepts, patterns and practices: search_articles, then get_article(slug).",
    output=form(articles="array"),
)

TOOLS = (LIST_ARTICLES, GET_ARTICLE, SEARCH_ARTICLES)
