"""How the knowledge tools write, and what they say of sources and documents."""

from __future__ import annotations

from typing import Any

from mcp_app.arguments import Argument, Refused
from mcp_app.fitting import ITEMS_A_PAGE, LONGEST_TEXT, LONGEST_TITLE, cut
from mcp_app.tool import Call, Family, compact, failure_json
from workbench.errors import NotFound
from workbench.types import Document, Source, plain

FAMILY = Family(render=compact, failure=failure_json)

PAGE = Argument("page", "integer", "Page of a list, from 1.", 1, low=1, high=1_000_000)
PER_PAGE = Argument(
    "per_page",
    "integer",
    f"Items a page of a list; more than {ITEMS_A_PAGE} becomes {ITEMS_A_PAGE}.",
    10,
    low=1,
    high=1_000_000,
)
LONGEST_METADATA = 5 * LONGEST_TEXT  # characters, where one document is shown
LIST_SOURCES = "Use manage_source(action='list') to see available sources"
LIST_DOCUMENTS = "Verify document_id or use manage_document(action='list')"


def source_named(call: Call, key: str) -> Source:
    """Return a source by id, URL or exact title. Raises Refused in the specification's words."""
    try:
        return call.workbench.knowledge.source(key)
    except NotFound:
        raise Refused(f"Invalid source_id: {key} not found", LIST_SOURCES) from None


def document_named(call: Call, document_id: str) -> Document:
    """Return a document by id. Raises Refused in the specification's words."""
    try:
        return call.workbench.knowledge.document(document_id)
    except NotFound:
        raise Refused(f"Document not found: {document_id}", LIST_DOCUMENTS) from None


def source_json(source: Source) -> dict[str, Any]:
    """Return a source as the tools show it."""
    shown = plain(source)
    names = ("id", "title", "url", "source_type", "status", "documents_count", "passages_count", "scope", "project_id")
    more = ("folder_name", "tags", "created_at", "updated_at")
    return {name: shown[name] for name in names + more} | {"title": cut(source.title, LONGEST_TITLE)}


def document_json(document: Document, passages: str = "chunks_count", room: int = LONGEST_TEXT) -> dict[str, Any]:
    """Return a document without its text; the number of passages is called ``passages``.

    ``room`` is for how many characters of metadata; what has no place is counted.
    """
    shown = plain(document)
    return {
        "id": document.id,
        "title": cut(document.title, LONGEST_TITLE),
        "source_id": document.source_id,
        "document_type": document.document_type,
        "url": document.url,
        "path": document.path,
        passages: document.passages_count,
        "status": document.status,
        "created_at": shown["created_at"],
        "updated_at": shown["updated_at"],
        "metadata": _within(_short(shown["metadata"]), room),
    }


def page_of(page: int, per_page: int) -> tuple[int, int]:
    """Return (items a page, items to skip), at most 20 a page."""
    size = min(per_page, ITEMS_A_PAGE)
    return size, (page - 1) * size


def _within(metadata: dict[str, Any], room: int) -> dict[str, Any]:
    """Leave out what has no room, and say how much that is."""
    kept: dict[str, Any] = {}
    for key, value in metadata.items():
        size = len(compact({key: value}))
        if size <= room:
            kept[key] = value
            room -= size
    left = len(metadata) - len(kept)
    return kept | ({"...": f"{left} of {len(metadata)} entries are too long to be shown"} if left else {})


def _short(value: Any) -> Any:
    """Cut long texts in metadata wherever they are."""
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    return cut(value, 300) if isinstance(value, str) else value
