"""rag_read_neighbours: the passages before and after a hit."""

from __future__ import annotations

from mcp_app.arguments import Argument, Refused
from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.forms import form
from mcp_app.parts import Items
from mcp_app.tool import Call, Tool
from mcp_app.tools.reading.family import FAMILY, SKIP
from workbench.errors import NotFound
from workbench.types.json import JsonObject


def read_neighbours(call: Call, chunk_id: str, before: int, after: int, offset: int) -> JsonObject:
    """Return a passage with those around it, in reading order."""
    try:
        around = call.workbench.documents.around(chunk_id, before, after)
    except NotFound:
        raise Refused(f"Chunk not found: {chunk_id}", "Searches name it as chunk_id, or as id of a chunk") from None
    chunks: list[JsonObject] = [
        {
            "chunk_id": passage.node_id,
            "content": passage.text,
            "start": passage.metadata.get("start"),
            "end": passage.metadata.get("end"),
            "chunk_index": passage.metadata.get("ordinal", 0),
            "is_hit": passage.node_id == chunk_id,
        }
        for passage in around
    ]
    hit = around[0]
    return {
        "success": True,
        "page_id": hit.document_id,
        "title": cut(hit.title, LONGEST_TITLE),
        "chunks": chunks[offset:],
        "count": len(chunks[offset:]),
    }


READ_NEIGHBOURS = Tool(
    name="rag_read_neighbours",
    title="Read around a hit",
    description=(
        "Return a passage whole, with those before and after it.\n"
        "Use it when a hit breaks off; for the whole text use rag_read_full_page.\n"
        'Example: rag_read_neighbours(chunk_id="psg_123", after=3)'
    ),
    arguments=(
        Argument("chunk_id", "string", "The passage: chunk_id or id of a result.", required=True),
        Argument("before", "integer", "Passages before it.", 1, low=0, high=10),
        Argument("after", "integer", "Passages after it.", 1, low=0, high=10),
        SKIP,
    ),
    run=read_neighbours,
    family=FAMILY,
    parts=Items("chunks"),
    output=form(page_id="string", chunks="array"),
)
