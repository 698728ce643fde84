"""rag_list_pages_for_source: the documents of a source, without their texts."""

from __future__ import annotations

from mcp_app.arguments import Argument
from mcp_app.forms import form
from mcp_app.parts import Items
from mcp_app.tool import Call, Tool
from mcp_app.tools.reading.family import FAMILY, LIMIT, SKIP
from mcp_app.tools.reading.full_page import page_json
from workbench.types.json import JsonObject


def list_pages(call: Call, source_id: str, title: str, limit: int, offset: int) -> JsonObject:
    """Return a page of documents and how many there are."""
    source = call.workbench.sources.get(source_id).id if source_id else None
    documents = call.workbench.documents.list(source_id=source, contains=title or None, limit=limit, offset=offset)
    pages = [{**page_json(document), "chunks_count": document.passages_count} for document in documents]
    total = call.workbench.documents.count(source_id=source, contains=title or None)
    return {"success": True, "pages": pages, "count": len(pages), "total": total, "offset": offset}


LIST_PAGES = Tool(
    name="rag_list_pages_for_source",
    title="List a source's pages",
    description=(
        "List the documents of a source (or of all), oldest first.\n"
        "Use it to see what a source holds; to read one use rag_read_full_page; for the sources "
        "rag_get_available_sources.\n"
        'Example: rag_list_pages_for_source(source_id="src_123", title="login")'
    ),
    arguments=(
        Argument("source_id", "string", "The source: its id, URL or exact title; by default all.", ""),
        Argument("title", "string", "Only titles with these letters.", ""),
        LIMIT,
        SKIP,
    ),
    run=list_pages,
    family=FAMILY,
    parts=Items("pages", total="total"),
    output=form(pages="array", total="integer"),
)
