"""manage_source: create, get, list, update and delete sources."""

from __future__ import annotations

from collections.abc import Callable

from mcp_app.arguments import Argument, Refused
from mcp_app.paging import Items
from mcp_app.tool import Call, Tool, format_follow_up, make_action_schema, require
from mcp_app.tools.knowledge.family import (
    FAMILY,
    LIST_SOURCES_HINT,
    OFFSET,
    PAGE,
    PER_PAGE,
    find_source,
    resolve_page,
    source_json,
)
from workbench.text import MAX_PASSAGES_STEMMED_AT_ONCE
from workbench.types import JsonObject, JsonValue

ACTIONS = ("create", "get", "list", "update", "delete")
SOURCE_TYPES = ("upload", "crawl", "api")


def manage_source(call: Call, action: str, **arguments: JsonValue) -> JsonObject:
    """Run an action on sources."""
    return _ACTIONS[action](call, **arguments)


def _create(
    call: Call,
    *,
    title: str,
    url: str,
    source_type: str,
    project_id: str,
    folder_name: str,
    tags: list[str],
    **others: JsonValue,
) -> JsonObject:
    del others
    source = call.wb.sources.create(
        require(title, "title", "create", "It names the source."),
        source_type=source_type,
        url=url or None,
        project=project_id or None,
        folder=folder_name or None,
        tags=tags,
    )
    return {"success": True, "source": source_json(source), "message": "Source created successfully"}


def _get(call: Call, *, source_id: str, **others: JsonValue) -> JsonObject:
    del others
    source = find_source(call, require(source_id, "source_id", "get", LIST_SOURCES_HINT))
    return {"success": True, "source": source_json(source)}


def _list(call: Call, *, page: int, per_page: int, offset: int | None, **others: JsonValue) -> JsonObject:
    del others
    size, skipped = resolve_page(page, per_page, offset)
    sources = call.wb.sources.list(limit=size, offset=skipped)
    return {
        "success": True,
        "sources": [source_json(source) for source in sources],
        "total_count": call.wb.sources.count(),
        "count": len(sources),
        "page": page,
        "per_page": size,
    }


def _update(
    call: Call,
    *,
    source_id: str,
    title: str,
    url: str,
    project_id: str,
    folder_name: str,
    tags: list[str],
    language: str,
    **others: JsonValue,
) -> JsonObject:
    del others
    source = find_source(call, require(source_id, "source_id", "update", LIST_SOURCES_HINT))
    if not any((title, url, project_id, folder_name, tags, language)):
        raise Refused("Nothing to update", "Give a title, url, project_id, folder_name, tags or language")
    changed = call.wb.sources.update(
        source.id,
        title=title or None,
        url=url or None,
        project=project_id or None,
        folder=folder_name or None,
        tags=tags or None,
        language=language or None,
        build=source.passages_count <= MAX_PASSAGES_STEMMED_AT_ONCE,
    )
    answer: JsonObject = {"success": True, "source": source_json(changed), "message": "Source updated successfully"}
    if language and source.passages_count > MAX_PASSAGES_STEMMED_AT_ONCE:
        jobs = call.wb.jobs.enqueue_stemming()
        call.work_jobs()
        next_step = "".join(format_follow_up(call, job) for job in jobs[:1])
        answer["message"] = f"Source updated; its passages are being stemmed again in the background.{next_step}"
    return answer


def _delete(call: Call, *, source_id: str, **others: JsonValue) -> JsonObject:
    del others
    source = find_source(call, require(source_id, "source_id", "delete", LIST_SOURCES_HINT))
    deletion = call.wb.sources.delete(source.id)
    deleted: JsonObject = {
        "source_id": deletion.id,
        "title": deletion.title,
        "documents": deletion.documents,
        "passages": deletion.passages,
        "citations": deletion.citations,
    }
    counts = f"{deletion.documents} documents, {deletion.passages} chunks"
    message = f"Source and all associated documents deleted successfully ({counts})"
    return {"success": True, "message": message, "deleted": deleted}


_ACTIONS: dict[str, Callable[..., JsonObject]] = {
    "create": _create,
    "get": _get,
    "list": _list,
    "update": _update,
    "delete": _delete,
}

MANAGE_SOURCE = Tool(
    name="manage_source",
    title="Manage sources",
    description=(
        "Create, show, list, update or delete sources (collections of documents). delete also deletes their documents "
        "and cannot be undone.\n"
        "Use it to organise; for single documents, use manage_document; to list sources by project, "
        "rag_get_available_sources.\n"
        'Example: manage_source(action="create", title="Research Papers", source_type="upload")'
    ),
    arguments=(
        Argument("action", "string", "What to do.", required=True, choices=ACTIONS),
        Argument("source_id", "string", "The source: id, URL or exact title; not for create.", ""),
        Argument("title", "string", "create, update: its name.", "", reading=False),
        Argument("url", "string", "create, update: the base URL.", "", reading=False),
        Argument(
            "source_type",
            "string",
            "create: the origin of its documents.",
            "upload",
            choices=SOURCE_TYPES,
            reading=False,
        ),
        PAGE,
        PER_PAGE,
        OFFSET,
        Argument("project_id", "string", "create, update: its project.", "", reading=False),
        Argument("folder_name", "string", "create, update: its folder there.", "", reading=False),
        Argument("tags", "array", "create, update: its tags.", [], reading=False),
        Argument("language", "string", "update: its language, or auto.", "", reading=False),
    ),
    run=manage_source,
    family=FAMILY,
    read_only=False,
    destructive=True,
    idempotent=False,
    reading_actions=("get", "list"),
    reading_description=(
        "Show or list sources (collections of documents) with their counts.\n"
        "Use it for single sources; to list sources by project, use rag_get_available_sources.\n"
        'Example: manage_source(action="get", source_id="src_abc123")'
    ),
    parts=Items("sources", total="total_count"),
    output=make_action_schema(source="object", sources="array", total_count="integer", message="string"),
)
