"""fetch_url: the text of one page of the web, without storing it."""

from __future__ import annotations

from mcp_app.arguments import Argument
from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.forms import form
from mcp_app.parts import TextPart, text_part
from mcp_app.tool import Call, Tool
from mcp_app.tools.reading.family import FAMILY, LENGTH, OFFSET
from workbench.types.json import JsonObject


def fetch_url(call: Call, url: str, offset: int, length: int) -> JsonObject:
    """Return a part of a page's main text."""
    page = call.workbench.crawls.fetch(url)
    answer: JsonObject = {"success": True, "url": page.url, "title": cut(page.title, LONGEST_TITLE)}
    return {**answer, "media_type": page.media_type, **text_part(page.text, offset, length)}


FETCH_URL = Tool(
    name="fetch_url",
    title="Fetch one URL",
    description=(
        "Return the main text of a web page or file as Markdown, without storing it; robots.txt is obeyed.\n"
        "Use it to read a page once; to keep and search it use crawl_website.\n"
        'Example: fetch_url(url="https://docs.example.com/start")'
    ),
    reading_description=(
        "Return the main text of a web page or file as Markdown, without storing it; robots.txt is obeyed.\n"
        "Use it to read a page once; to search what is stored use search_knowledge_base.\n"
        'Example: fetch_url(url="https://docs.example.com/start")'
    ),
    arguments=(Argument("url", "string", "http:// or https://.", required=True), OFFSET, LENGTH),
    run=fetch_url,
    family=FAMILY,
    open_world=True,
    parts=TextPart("content"),
    output=form(url="string", content="string", total_chars="integer"),
)
