"""search and fetch: the two tools that hosted connectors expect, in exactly their form."""

from __future__ import annotations

from mcp_app.arguments import Argument
from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.forms import form
from mcp_app.parts import TextPart, text_part
from mcp_app.tool import Call, Tool
from mcp_app.tools.reading.family import FAMILY, LENGTH, OFFSET
from mcp_app.tools.reading.full_page import document_of
from mcp_app.worth import FEW, worth_reading
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import DOCUMENTS_CUTOFF
from workbench.types.json import JsonObject

RESULTS = 10


def search(call: Call, query: str) -> JsonObject:
    """Return the best documents as id, title and url, those that score far below the first left out."""
    result = call.workbench.document_search.search(query, Ask(limit=RESULTS))
    scores, close = [hit.score for hit in result.documents], result.searched.evidence.close
    worth = worth_reading(scores, result.searched.strategy, DOCUMENTS_CUTOFF)
    shown = worth if close else min(FEW, len(scores))
    results: list[JsonObject] = [
        {
            "id": hit.document_id,
            "title": cut(hit.title, LONGEST_TITLE),
            "url": hit.best.url or f"document://{hit.document_id}",
            "text": cut(hit.best.text, 300),
        }
        for hit in result.documents[:shown]
    ]
    noted: JsonObject = {"degraded": list(result.searched.degraded)} if result.searched.degraded else {}
    if results and not close:
        noted |= {"nothing_close": result.searched.evidence.reason, "suggestion": "Use other words"}
    elif shown < len(scores):
        noted["cutoff"] = f"{len(scores) - shown} more score below {DOCUMENTS_CUTOFF:g} of the best and are left out."
    return {"results": results} | noted


def fetch(call: Call, id: str, offset: int, length: int) -> JsonObject:
    """Return a document's text."""
    document = document_of(call, id, "")
    part = text_part(document.text or "", offset, length, "text")
    metadata: JsonObject = {"source_id": document.source_id, "document_type": document.document_type}
    url = document.url or f"document://{document.id}"
    return {"id": document.id, "title": cut(document.title, LONGEST_TITLE), "url": url, "metadata": metadata, **part}


SEARCH = Tool(
    name="search",
    title="Search",
    description=(
        "Find documents; the form that hosted connectors ask for.\n"
        "Use it only if a client knows no other search; rag_search_knowledge_base says and narrows more.\n"
        'Example: search(query="vector index")'
    ),
    arguments=(Argument("query", "string", "What to look for.", required=True),),
    run=search,
    family=FAMILY,
    output=form(results="array"),
)

FETCH = Tool(
    name="fetch",
    title="Fetch a document",
    description=(
        "Return a document's text by an id that search gave, a long one in parts.\n"
        "Use it after search; rag_read_full_page does the same for other results.\n"
        'Example: fetch(id="doc_123")'
    ),
    arguments=(Argument("id", "string", "The document's id.", required=True), OFFSET, LENGTH),
    run=fetch,
    family=FAMILY,
    parts=TextPart("text"),
    output=form(id="string", title="string", text="string", url="string"),
)
