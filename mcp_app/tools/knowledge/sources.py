"""manage_source: the collections that documents come in."""

from __future__ import annotations

from typing import Any

from mcp_app.arguments import Argument, Refused
from mcp_app.tool import Call, Tool, needed
from mcp_app.tools.knowledge.family import FAMILY, LIST_SOURCES, PAGE, PER_PAGE, page_of, source_json, source_named

ACTIONS = ("create", "get", "list", "update", "delete")
SOURCE_TYPES = ("upload", "crawl", "api")


def manage_source(call: Call, action: str, **arguments: Any) -> dict[str, Any]:
    """Carry out one action on sources."""
    return _ACTIONS[action](call, arguments)


def _create(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    title = needed(given, "title", "create", "It names the source.")
    source = call.workbench.knowledge.create_source(title, source_type=given["source_type"], url=given["url"] or None)
    return {"success": True, "source": source_json(source), "message": "Source created successfully"}


def _get(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    source = source_named(call, needed(given, "source_id", "get", LIST_SOURCES))
    return {"success": True, "source": source_json(source)}


def _list(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    size, skipped = page_of(given["page"], given["per_page"])
    sources = call.workbench.knowledge.sources(limit=size, offset=skipped)
    return {
        "success": True,
        "sources": [source_json(source) for source in sources],
        "total_count": call.workbench.knowledge.count_sources(),
        "count": len(sources),
        "page": given["page"],
        "per_page": size,
    }


def _update(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    source = source_named(call, needed(given, "source_id", "update", LIST_SOURCES))
    if not given["title"] and not given["url"]:
        raise Refused("Nothing to update", "Give a title or a url")
    changed = call.workbench.knowledge.update_source(source.id, title=given["title"] or None, url=given["url"] or None)
    return {"success": True, "source": source_json(changed), "message": "Source updated successfully"}


def _delete(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    source = source_named(call, needed(given, "source_id", "delete", LIST_SOURCES))
    gone = call.workbench.knowledge.delete_source(source.id)
    deleted = {"source_id": gone.id, "title": gone.title, "documents": gone.documents, "passages": gone.passages}
    deleted["citations"] = gone.citations
    message = (
        f"Source and all associated documents deleted successfully ({gone.documents} documents, {gone.passages} chunks)"
    )
    return {"success": True, "message": message, "deleted": deleted}


_ACTIONS = {"create": _create, "get": _get, "list": _list, "update": _update, "delete": _delete}

MANAGE_SOURCE = Tool(
    name="manage_source",
    title="Manage sources",
    description=(
        "Make, show, list, rename or delete sources, the collections that documents belong to. get includes the "
        "counts of documents "
        "and passages. delete takes all documents of the source along and cannot be undone.\n"
        "Use it to organise; for single documents use manage_document, to see sources by project "
        "rag_get_available_sources, "
        "to fill a source from a website crawl_website.\n"
        'Example: manage_source(action="create", title="Research Papers", source_type="upload")'
    ),
    arguments=(
        Argument("action", "string", "What to do.", required=True, choices=ACTIONS),
        Argument("source_id", "string", "The source, for get, update and delete: its id, URL or exact title.", ""),
        Argument("title", "string", "create, update: its name.", ""),
        Argument("url", "string", "create, update: the base URL of a crawl or api source.", ""),
        Argument(
            "source_type", "string", "create: upload (files), crawl (a website) or api.", "upload", choices=SOURCE_TYPES
        ),
        PAGE,
        PER_PAGE,
    ),
    run=manage_source,
    family=FAMILY,
    read_only=False,
    destructive=True,
    idempotent=False,
    reading_actions=("get", "list"),
    rest="Ask for fewer (per_page) or for the next page.",
)
