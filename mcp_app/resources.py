"""Resources: a source as a list of its documents, a document as its text, the page of a passage as a picture."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Awaitable, Callable
from datetime import UTC
from typing import TYPE_CHECKING, Protocol, TypeVar

import anyio.to_thread
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, ListResourcesResult, Resource

from mcp_app.paging import LONGEST_TITLE, cut
from mcp_app.tool import compact
from workbench.errors import NotFound, WorkbenchError
from workbench.services.sources import TAG_CATALOGUE
from workbench.types import Document, Source
from workbench.types.json import JsonObject

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from workbench.opening import Opening
    from workbench.workbench import Workbench

PAGE_CHARS = 16_000  # about 4,000 tokens
PAGE_DOCUMENTS = 50
LISTED_SOURCES = 100


Content = TypeVar("Content", str, bytes)


class Read(Protocol):
    """The reading of one resource, in a thread and with the workbench's errors as the protocol's."""

    def __call__(self, work: Callable[[Workbench], Content], /) -> Awaitable[Content]:
        """Return what ``work`` makes of the workbench."""
        ...


def add_resources(server: MCPServer[dict[str, object]], opening: Opening) -> None:
    """Offer the templates ``source://`` and ``document://`` and the tag catalogue."""

    async def read(work: Callable[[Workbench], Content]) -> Content:
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


def _add_documents(server: MCPServer[dict[str, object]], read: Read) -> None:
    @server.resource(
        "document://{document_id}",
        name="document",
        title="A document's text",
        description="The whole text, in pages of 16,000 characters; this is the first, document://ID/2 the next.",
        mime_type="text/markdown",
    )
    async def document(document_id: str) -> str:
        return await read(lambda wb: document_page(wb, document_id, 1))

    @server.resource(
        "document://{document_id}/{page}",
        name="document-page",
        title="A page of a document's text",
        description="The given page (from 1) of a document's text.",
        mime_type="text/markdown",
    )
    async def document_at(document_id: str, page: str) -> str:
        number = _page_number(page)
        return await read(lambda wb: document_page(wb, document_id, number))


def _add_pictures(server: MCPServer[dict[str, object]], read: Read) -> None:
    @server.resource(
        "passage://{chunk_id}/page",
        name="passage-page",
        title="The page of a passage",
        description="The picture (PNG) of the PDF page that a found passage (chunk_id) begins on, its lines marked.",
        mime_type="image/png",
    )
    async def passage_page(chunk_id: str) -> bytes:
        return await read(lambda wb: _png(wb, chunk_id))


def _png(wb: Workbench, chunk_id: str) -> bytes:
    target = io.BytesIO()
    wb.pages.of_passage(chunk_id).save(target, "PNG", optimize=True)
    return target.getvalue()


def _add_sources(server: MCPServer[dict[str, object]], read: Read) -> None:
    @server.resource(
        "source://{source_id}",
        name="source",
        title="A source and its documents",
        description="A source and its first 50 documents (JSON); source://ID/2 has the next 50.",
        mime_type="application/json",
    )
    async def source(source_id: str) -> str:
        return await read(lambda wb: source_page(wb, source_id, 1))

    @server.resource(
        "source://{source_id}/{page}",
        name="source-page",
        title="A page of a source's documents",
        description="The given page (from 1) of a source's documents (JSON).",
        mime_type="application/json",
    )
    async def source_at(source_id: str, page: str) -> str:
        number = _page_number(page)
        return await read(lambda wb: source_page(wb, source_id, number))

    @server.resource(
        "tags://catalogue",
        name="tags",
        title="Tags by category",
        description="The usual tags by category, and those in use with the number of their sources (JSON).",
        mime_type="application/json",
    )
    async def tags() -> str:
        return await read(lambda wb: compact({"catalogue": TAG_CATALOGUE, "in_use": wb.sources.tags()}))


def source_resources(wb: Workbench, cursor: str | None = None) -> ListResourcesResult:
    """Return the sources as resources that can be listed, newest first, 100 at a time.

    A cursor is the place of the last one listed, so that sources that come and go meanwhile move none of the others.
    Raises MCPError for a cursor that this server does not give.
    """
    sources = sorted(wb.sources.list(), key=_place, reverse=True)
    before = _read_cursor(cursor) if cursor is not None else None
    left = [source for source in sources if before is None or _place(source) < before]
    shown = left[:LISTED_SOURCES]
    resources = [
        Resource(
            uri=f"source://{source.id}",
            name=source.id,
            title=cut(source.title, LONGEST_TITLE),
            mime_type="application/json",
        )
        for source in shown
    ]
    following = _cursor(shown[-1]) if len(left) > len(shown) else None
    return ListResourcesResult(resources=resources, next_cursor=following)


def _place(source: Source) -> tuple[str, str]:
    assert source.created_at is not None  # of every source that is stored
    return source.created_at.astimezone(UTC).isoformat(timespec="microseconds"), source.id


def _cursor(source: Source) -> str:
    return base64.urlsafe_b64encode(json.dumps(_place(source)).encode()).decode()


def _read_cursor(cursor: str) -> tuple[str, str]:
    try:
        made_at, source_id = json.loads(base64.urlsafe_b64decode(cursor))
    except (ValueError, TypeError):
        raise MCPError(
            code=INVALID_PARAMS, message="There is no such cursor; list the resources from the start without one."
        ) from None
    return str(made_at), str(source_id)


def document_page(wb: Workbench, document_id: str, page: int) -> str:
    """Return one page of a document's text, with a last line that says where the next one is."""
    document = wb.documents.get(document_id)
    text = document.text or ""
    pages = max(1, -(-len(text) // PAGE_CHARS))
    if page > pages:
        raise ResourceNotFoundError(f"Document {document_id} has {pages} pages; there is no page {page}.")
    part = text[(page - 1) * PAGE_CHARS : page * PAGE_CHARS]
    more = f"\n\n[Page {page} of {pages}. Next: document://{document_id}/{page + 1}]" if page < pages else ""
    return part + more


def source_page(wb: Workbench, source_id: str, page: int) -> str:
    """Return a source and one page of its documents."""
    source = wb.sources.get(source_id)
    total = wb.documents.count(source_id=source.id)
    pages = max(1, -(-total // PAGE_DOCUMENTS))
    if page > pages:
        raise ResourceNotFoundError(f"Source {source_id} has {pages} pages; there is no page {page}.")
    skipped = (page - 1) * PAGE_DOCUMENTS
    documents = wb.documents.list(source_id=source.id, limit=PAGE_DOCUMENTS, offset=skipped)
    following = f"source://{source.id}/{page + 1}" if page < pages else None
    answer: JsonObject = {"source": source.to_dict(), "documents": [_document(item) for item in documents]}
    return compact(answer | {"total_count": total, "page": page, "pages": pages, "next": following})


def _page_number(page: str) -> int:
    if not page.isascii() or not page.isdigit() or int(page[:9]) < 1:
        raise ResourceNotFoundError(f"There is no page {page!r}; pages count from 1.")
    return int(page[:9])


def _document(document: Document) -> JsonObject:
    names = ("id", "title", "document_type", "url", "path", "passages_count")
    answer = document.to_dict()
    return {name: answer[name] for name in names} | {"text": f"document://{document.id}"}
