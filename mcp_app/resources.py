"""What an agent can read whole: a source as a list of its documents, a document as its text, page by page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from mcp_app.tool import compact
from workbench.errors import NotFound, WorkbenchError
from workbench.services.tag_catalogue import TAG_CATALOGUE
from workbench.types import Document, Source, plain

if TYPE_CHECKING:
    from mcp_app.server import WorkbenchServer
    from workbench.workbench import Workbench

PAGE_CHARS = 16_000  # about 4,000 tokens
PAGE_DOCUMENTS = 50


def add_resources(server: WorkbenchServer) -> None:
    """Offer the templates ``source://`` and ``document://`` and the tag catalogue."""

    async def read(work: Callable[[Workbench], str]) -> str:
        try:
            workbench = await server.engine.ready()
            return await anyio.to_thread.run_sync(work, workbench)
        except NotFound as error:
            raise ResourceNotFoundError(str(error)) from error
        except WorkbenchError as error:
            raise ResourceError(str(error)) from error

    @server.resource(
        "document://{document_id}",
        name="document",
        title="A document's text",
        description="The whole text, in pages of 16,000 characters; this is the first, document://ID/2 the next.",
        mime_type="text/markdown",
    )
    async def document(document_id: str) -> str:
        return await read(lambda workbench: document_page(workbench, document_id, 1))

    @server.resource(
        "document://{document_id}/{page}",
        name="document-page",
        title="A page of a document's text",
        description="The given page (from 1) of a document's text.",
        mime_type="text/markdown",
    )
    async def document_at(document_id: str, page: str) -> str:
        number = _page_number(page)
        return await read(lambda workbench: document_page(workbench, document_id, number))

    @server.resource(
        "source://{source_id}",
        name="source",
        title="A source and its documents",
        description="What a source is and its first 50 documents (JSON); source://ID/2 has the next 50.",
        mime_type="application/json",
    )
    async def source(source_id: str) -> str:
        return await read(lambda workbench: source_page(workbench, source_id, 1))

    @server.resource(
        "source://{source_id}/{page}",
        name="source-page",
        title="A page of a source's documents",
        description="The given page (from 1) of a source's documents (JSON).",
        mime_type="application/json",
    )
    async def source_at(source_id: str, page: str) -> str:
        number = _page_number(page)
        return await read(lambda workbench: source_page(workbench, source_id, number))

    @server.resource(
        "tags://catalogue",
        name="tags",
        title="Tags by category",
        description="The usual tags by category, and those in use with the number of their sources (JSON).",
        mime_type="application/json",
    )
    async def tags() -> str:
        return await read(lambda workbench: compact({"catalogue": TAG_CATALOGUE, "in_use": workbench.knowledge.tags()}))


def document_page(workbench: Workbench, document_id: str, page: int) -> str:
    """Return one page of a document's text, with a last line that says where the next one is."""
    document = workbench.knowledge.document(document_id)
    text = document.text or ""
    pages = max(1, -(-len(text) // PAGE_CHARS))
    if page > pages:
        raise ResourceNotFoundError(f"Document {document_id} has {pages} pages; there is no page {page}.")
    part = text[(page - 1) * PAGE_CHARS : page * PAGE_CHARS]
    more = f"\n\n[Page {page} of {pages}. Next: document://{document_id}/{page + 1}]" if page < pages else ""
    return part + more


def source_page(workbench: Workbench, source_id: str, page: int) -> str:
    """Return a source and one page of its documents."""
    source = workbench.knowledge.source(source_id)
    total = workbench.knowledge.count_documents(source_id=source.id)
    pages = max(1, -(-total // PAGE_DOCUMENTS))
    if page > pages:
        raise ResourceNotFoundError(f"Source {source_id} has {pages} pages; there is no page {page}.")
    skipped = (page - 1) * PAGE_DOCUMENTS
    documents = workbench.knowledge.documents(source_id=source.id, limit=PAGE_DOCUMENTS, offset=skipped)
    following = f"source://{source.id}/{page + 1}" if page < pages else None
    shown = {"source": _source(source), "documents": [_document(item) for item in documents]}
    return compact(shown | {"total_count": total, "page": page, "pages": pages, "next": following})


def _page_number(page: str) -> int:
    if not page.isascii() or not page.isdigit() or int(page[:9]) < 1:
        raise ResourceNotFoundError(f"There is no page {page!r}; pages count from 1.")
    return int(page[:9])


def _source(source: Source) -> dict[str, Any]:
    return plain(source)


def _document(document: Document) -> dict[str, Any]:
    names = ("id", "title", "document_type", "url", "path", "passages_count")
    shown = plain(document)
    return {name: shown[name] for name in names} | {"text": f"document://{document.id}"}
