"""rag_read_full_page: the whole text of one document, in parts."""

from __future__ import annotations

from mcp_app.arguments import Argument, Refused, missing
from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.forms import form
from mcp_app.parts import TextPart, text_part
from mcp_app.tool import Call, Tool
from mcp_app.tools.reading.family import FAMILY, LENGTH, OFFSET
from workbench.errors import NotFound
from workbench.types import Document
from workbench.types.json import JsonObject

_FIND_PAGE_ID = "Searches name it as page_id or document_id; rag_list_pages_for_source lists them"


def read_full_page(call: Call, page_id: str, url: str, offset: int, length: int) -> JsonObject:
    """Return a part of a document's text with where it stands."""
    document = document_of(call, page_id, url)
    part = text_part(document.text or "", offset, length)
    if offset and offset >= len(document.text or ""):
        raise Refused(f"Invalid offset: {offset} lies beyond the {part['total_chars']} characters", "Use a smaller one")
    return {"success": True, **page_json(document), **part}


def document_of(call: Call, page_id: str, url: str) -> Document:
    """Return the document of an id or an address. Raises Refused."""
    if not page_id and not url:
        raise missing("page_id", f"page_id or url. {_FIND_PAGE_ID}.")
    try:
        return call.workbench.documents.get(page_id) if page_id else call.workbench.documents.at(url)
    except NotFound:
        raise Refused(f"Page not found: {page_id or url}", _FIND_PAGE_ID) from None


def page_json(document: Document) -> JsonObject:
    """Return a document without its text, as the reading tools show it."""
    return {
        "page_id": document.id,
        "title": cut(document.title, LONGEST_TITLE),
        "url": document.url,
        "source_id": document.source_id,
        "document_type": document.document_type,
    }


READ_FULL_PAGE = Tool(
    name="rag_read_full_page",
    title="Read a page whole",
    description=(
        "Return a stored document's text, a long one in parts.\n"
        "Use it when a result's passage is not enough; for the passages around a hit use rag_read_neighbours.\n"
        'Example: rag_read_full_page(page_id="doc_123", offset=20000)'
    ),
    arguments=(
        Argument("page_id", "string", "The document: page_id or document_id of a result.", ""),
        Argument("url", "string", "Or the address it came from.", ""),
        OFFSET,
        LENGTH,
    ),
    run=read_full_page,
    family=FAMILY,
    parts=TextPart("content"),
    advice="The whole text of a result: rag_read_full_page(page_id); around a passage: rag_read_neighbours(chunk_id).",
    output=form(page_id="string", content="string", offset="integer", total_chars="integer"),
)
