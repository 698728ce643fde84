"""Resources: documents as text, sources as lists of documents, and passages' PDF pages as images."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Awaitable, Callable
from datetime import UTC
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import anyio.to_thread
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, ListResourcesResult, Resource

from mcp_app.paging import MAX_TITLE_CHARS, cut, fits
from mcp_app.tool import dump_json, pick
from workbench.errors import NotFound, WorkbenchError
from workbench.types import TAG_CATALOGUE, JsonObject, JsonValue, Source

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from workbench.opening import Opening
    from workbench.workbench import Workbench

CHARS_PER_PAGE = 16_000  # about 4,000 tokens of English; fewer if a page of the document exceeds the budget
DOCUMENTS_PER_PAGE = 50  # documents per page of a source
SOURCES_PER_PAGE = 100  # sources per page of the resource list


Content: TypeAlias = str | bytes
ResourceReader: TypeAlias = "Callable[[Callable[[Workbench], Content]], Awaitable[Content]]"


def add_resources(server: MCPServer[dict[str, object]], opening: Opening) -> None:
    """Add the templates ``document://``, ``passage://`` and ``source://``, and the tag catalogue."""

    async def read(work: Callable[[Workbench], Content]) -> Content:
        """Read in a thread, and convert the workbench's errors to protocol errors."""
        try:
            wb = await opening.ready()
            return await anyio.to_thread.run_sync(work, wb)
        except NotFound as error:
            raise ResourceNotFoundError(str(error)) from error
        except WorkbenchError as error:
            raise ResourceError(str(error)) from error

    _add_documents(server, read)
    _add_pictures(server, read)
    _add_sources(server, read)


def _add_documents(server: MCPServer[dict[str, object]], read: ResourceReader) -> None:
    @server.resource(
        "document://{document_id}",
        name="document",
        title="Document text",
        description="A document's text, in pages of up to 16,000 characters: the first; document://ID/2 is the second.",
        mime_type="text/markdown",
    )
    async def document(document_id: str) -> Content:
        return await read(lambda wb: render_document_page(wb, document_id, 1))

    @server.resource(
        "document://{document_id}/{page}",
        name="document-page",
        title="Page of a document's text",
        description="A page of a document's text, counted from 1.",
        mime_type="text/markdown",
    )
    async def read_document_page(document_id: str, page: str) -> Content:
        number = _parse_page_number(page)
        return await read(lambda wb: render_document_page(wb, document_id, number))


def _add_pictures(server: MCPServer[dict[str, object]], read: ResourceReader) -> None:
    @server.resource(
        "passage://{chunk_id}/page",
        name="passage-page",
        title="PDF page of a passage",
        description="Image (PNG) of the PDF page on which a passage (chunk_id) starts, with its lines highlighted.",
        mime_type="image/png",
    )
    async def passage_page(chunk_id: str) -> Content:
        def render(wb: Workbench) -> bytes:
            target = io.BytesIO()
            wb.pages.of_passage(chunk_id).save(target, "PNG", optimize=True)
            return target.getvalue()

        return await read(render)


def _add_sources(server: MCPServer[dict[str, object]], read: ResourceReader) -> None:
    @server.resource(
        "source://{source_id}",
        name="source",
        title="Source and its documents",
        description="A source and its first 50 documents (JSON); source://ID/2 has the next 50.",
        mime_type="application/json",
    )
    async def source(source_id: str) -> Content:
        return await read(lambda wb: render_source_page(wb, source_id, 1))

    @server.resource(
        "source://{source_id}/{page}",
        name="source-page",
        title="Page of a source's documents",
        description="A page of a source's documents (JSON), counted from 1.",
        mime_type="application/json",
    )
    async def read_source_page(source_id: str, page: str) -> Content:
        number = _parse_page_number(page)
        return await read(lambda wb: render_source_page(wb, source_id, number))

    @server.resource(
        "tags://catalogue",
        name="tags",
        title="Tags by category",
        description="Suggested tags by category, and the tags in use with their number of sources (JSON).",
        mime_type="application/json",
    )
    async def tags() -> Content:
        return await read(lambda wb: dump_json({"catalogue": TAG_CATALOGUE, "in_use": wb.sources.tags()}))


def list_source_resources(wb: Workbench, cursor: str | None = None) -> ListResourcesResult:
    """Return a page of 100 sources as resources, newest first.

    A cursor is the position of the last source listed, so sources added or deleted in between do not shift the others.

    Raises:
        MCPError: The cursor is invalid.
    """
    sources = sorted(wb.sources.list(), key=_sort_key, reverse=True)
    before = _parse_cursor(cursor) if cursor is not None else None
    remaining = [source for source in sources if before is None or _sort_key(source) < before]
    shown = remaining[:SOURCES_PER_PAGE]
    resources = [
        Resource(
            uri=f"source://{source.id}",
            name=source.id,
            title=cut(source.title, MAX_TITLE_CHARS),
            mime_type="application/json",
        )
        for source in shown
    ]
    following = None
    if len(remaining) > len(shown):
        following = base64.urlsafe_b64encode(json.dumps(_sort_key(shown[-1])).encode()).decode()
    return ListResourcesResult(resources=resources, next_cursor=following)


def _sort_key(source: Source) -> tuple[str, str]:
    assert source.created_at is not None  # stored sources have one
    return source.created_at.astimezone(UTC).isoformat(timespec="microseconds"), source.id


def _parse_cursor(cursor: str) -> tuple[str, str]:
    try:
        made_at, source_id = json.loads(base64.urlsafe_b64decode(cursor))
    except (ValueError, TypeError):
        raise MCPError(
            code=INVALID_PARAMS, message="Invalid cursor. List the resources from the start, without a cursor."
        ) from None
    return str(made_at), str(source_id)


def render_document_page(wb: Workbench, document_id: str, page: int) -> str:
    """Return a page of a document's text; its last line names the next page."""
    document = wb.documents.get(document_id)
    text = document.text or ""
    size = _page_size(text)
    pages = max(1, -(-len(text) // size))
    if page > pages:
        raise ResourceNotFoundError(f"No page {page}: document {document_id} has {pages}.")
    part = text[(page - 1) * size : page * size]
    more = f"\n\n[Page {page} of {pages}. Next: document://{document_id}/{page + 1}]" if page < pages else ""
    return part + more


@lru_cache(maxsize=4)  # a document is read page by page
def _page_size(text: str) -> int:
    """Return the characters per page with which each page of a text is within the token budget."""
    size = CHARS_PER_PAGE
    while not all(fits(text[start : start + size]) for start in range(0, len(text), size)):
        size //= 2
    return size


def render_source_page(wb: Workbench, source_id: str, page: int) -> str:
    """Return a source and one page of its documents."""
    source = wb.sources.get(source_id)
    total = wb.documents.count(source_id=source.id)
    pages = max(1, -(-total // DOCUMENTS_PER_PAGE))
    if page > pages:
        raise ResourceNotFoundError(f"No page {page}: source {source_id} has {pages}.")
    skipped = (page - 1) * DOCUMENTS_PER_PAGE
    documents = wb.documents.list(source_id=source.id, limit=DOCUMENTS_PER_PAGE, offset=skipped)
    following = f"source://{source.id}/{page + 1}" if page < pages else None
    counts: JsonObject = {"total_count": total, "page": page, "pages": pages, "next": following}
    answer = ""
    for room in (MAX_TITLE_CHARS, 100, 50, 20):  # characters of a title, URL or path
        listed: list[JsonValue] = [
            pick(item, "id", "document_type", "passages_count")
            | {"title": cut(item.title, room), "url": cut(item.url, room), "path": cut(item.path, room)}
            | {"text": f"document://{item.id}"}
            for item in documents
        ]
        answer = dump_json({"source": source.to_dict(), "documents": listed, **counts})
        if fits(answer):
            break
    return answer


def _parse_page_number(page: str) -> int:
    if not page.isascii() or not page.isdigit() or int(page[:9]) < 1:
        raise ResourceNotFoundError(f"Invalid page {page!r}: pages are counted from 1.")
    return int(page[:9])
