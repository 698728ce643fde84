"""Code shared by the knowledge tools: arguments, look-ups, and sources and documents as JSON."""

from __future__ import annotations

from collections.abc import Mapping

from mcp_app.arguments import Argument, Refused
from mcp_app.paging import ITEMS_PER_PAGE, MAX_TEXT_CHARS, MAX_TITLE_CHARS, cut
from mcp_app.tool import Call, ToolFamily, dump_json, failure_json
from workbench.errors import NotFound
from workbench.types import Document, JsonObject, JsonValue, Source, as_object

FAMILY = ToolFamily(render=dump_json, failure=failure_json)

PAGE = Argument("page", "integer", "list: page number, from 1.", 1, low=1, high=1_000_000)
PER_PAGE = Argument(
    "per_page",
    "integer",
    f"Items per page; capped at {ITEMS_PER_PAGE}.",
    10,
    low=1,
    high=1_000_000,
)
OFFSET = Argument("offset", "integer", "list: items to skip.", low=0)
MAX_METADATA_CHARS = 5 * MAX_TEXT_CHARS  # characters, for a single document
LIST_SOURCES_HINT = "Use manage_source(action='list') to see available sources"
LIST_DOCUMENTS_HINT = "Verify document_id or use manage_document(action='list')"


def find_source(call: Call, key: str) -> Source:
    """Return a source by id, URL or exact title.

    Raises:
        Refused: There is no such source; the message is worded as in the specification.
    """
    try:
        return call.wb.sources.get(key)
    except NotFound:
        raise Refused(f"Invalid source_id: {key} not found", LIST_SOURCES_HINT) from None


def find_document(call: Call, document_id: str) -> Document:
    """Return a document by id.

    Raises:
        Refused: There is no such document; the message is worded as in the specification.
    """
    try:
        return call.wb.documents.get(document_id)
    except NotFound:
        raise Refused(f"Document not found: {document_id}", LIST_DOCUMENTS_HINT) from None


def source_json(source: Source) -> JsonObject:
    """Return a source as the tools show it."""
    answer = source.to_dict()
    names = ("id", "title", "url", "source_type", "status", "documents_count", "passages_count", "scope", "project_id")
    more = ("folder_name", "tags", "created_at", "updated_at")
    reading = {name: answer[name] for name in ("encoding", "hidden") if answer[name] not in ("", "read")}
    return {name: answer[name] for name in names + more} | {"title": cut(source.title, MAX_TITLE_CHARS)} | reading


def document_json(document: Document, passages: str = "chunks_count", room: int = MAX_TEXT_CHARS) -> JsonObject:
    """Return a document without its text.

    Args:
        document: The document.
        passages: Name of the field with the number of passages.
        room: Characters of metadata; entries that do not fit are counted instead.
    """
    answer = document.to_dict()
    return {
        "id": document.id,
        "title": cut(document.title, MAX_TITLE_CHARS),
        "source_id": document.source_id,
        "document_type": document.document_type,
        "url": document.url,
        "path": document.path,
        passages: document.passages_count,
        "status": document.status,
        "created_at": answer["created_at"],
        "updated_at": answer["updated_at"],
        "metadata": _fit_metadata(as_object(answer["metadata"]), room),
    }


def resolve_page(page: int, per_page: int, offset: int | None) -> tuple[int, int]:
    """Return (items per page, items to skip), with at most 20 per page; an offset overrides the page."""
    size = min(per_page, ITEMS_PER_PAGE)
    return size, (page - 1) * size if offset is None else offset


def _fit_metadata(metadata: Mapping[str, JsonValue], room: int) -> JsonObject:
    """Return the entries that fit into ``room`` characters of JSON, and the number of omitted ones."""
    fitting: JsonObject = {}
    for key, value in ((key, _shorten(value)) for key, value in metadata.items()):
        size = len(dump_json({key: value}))
        if size <= room:
            fitting[key] = value
            room -= size
    missing = len(metadata) - len(fitting)
    return fitting | ({"...": f"{missing} of {len(metadata)} entries are too long to show"} if missing else {})


def _shorten(value: JsonValue) -> JsonValue:
    """Cut long texts at any level of the metadata."""
    if isinstance(value, Mapping):
        return {key: _shorten(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorten(item) for item in value]
    return cut(value, 300) if isinstance(value, str) else value
