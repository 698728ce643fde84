"""manage_document: create, get, list, update and delete documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_app.arguments import Argument, Refused, make_missing_error
from mcp_app.paging import Items, cut
from mcp_app.tool import Call, Tool, format_follow_up, job_json, make_action_schema, require
from mcp_app.tools.knowledge.family import (
    FAMILY,
    LIST_DOCUMENTS_HINT,
    MAX_METADATA_CHARS,
    OFFSET,
    PAGE,
    PER_PAGE,
    document_json,
    find_document,
    find_source,
    resolve_page,
)
from workbench.services.checks import JOB_THRESHOLD_BYTES, estimate_text_bytes
from workbench.types import JsonObject, JsonValue

if TYPE_CHECKING:
    from workbench.storage.jobs import Job

ACTIONS = ("create", "get", "list", "update", "delete")
_OUTCOME_MESSAGES = {
    "created": "Document ingested successfully with {chunks} chunks",
    "updated": "Document updated successfully with {chunks} chunks",
    "unchanged": "The source already has this content; nothing was changed",
}


def manage_document(call: Call, action: str, **arguments: JsonValue) -> JsonObject:
    """Run an action on documents."""
    return _ACTIONS[action](call, **arguments)


def _create(
    call: Call,
    *,
    file_path: str,
    content: str,
    source_id: str,
    title: str,
    url: str,
    metadata: Mapping[str, JsonValue] | None,
    **others: JsonValue,
) -> JsonObject:
    del others
    if bool(file_path) == bool(content):
        if content:
            raise Refused("Give either file_path or content, not both", "Remove one of them")
        raise make_missing_error("file_path", "create requires file_path (a file) or content (the text itself).")
    path = call.files.file(file_path) if file_path else None
    source = find_source(call, source_id).id if source_id else None
    if is_large(path, content):
        job = call.wb.jobs.enqueue_document(
            path=path,
            text=content or None,
            source=source,
            title=title or None,
            url=url or None,
            metadata=metadata,
        )
        return make_job_answer(call, job)
    written = call.wb.documents.create(
        path=path,
        text=content or None,
        source=source,
        title=title or None,
        url=url or None,
        metadata=metadata,
        on_progress=call.on_progress,
        should_stop=call.should_stop,
    )
    message = _OUTCOME_MESSAGES[written.outcome].format(chunks=written.document.passages_count)
    answer = document_json(written.document, "chunks_created")
    if written.offer:
        message += f". {written.offer}"
    return {"success": True, "document": answer, "message": message, "outcome": written.outcome}


def _get(call: Call, *, document_id: str, **others: JsonValue) -> JsonObject:
    del others
    document = find_document(call, require(document_id, "document_id", "get", LIST_DOCUMENTS_HINT))
    answer = document_json(document, room=MAX_METADATA_CHARS) | {
        "characters": len(document.text or ""),
        "preview": cut(document.text),
        "full_text": f"resource document://{document.id}",
    }
    return {"success": True, "document": answer}


def _list(
    call: Call, *, source_id: str, page: int, per_page: int, offset: int | None, **others: JsonValue
) -> JsonObject:
    del others
    service = call.wb.documents
    source = find_source(call, source_id).id if source_id else None
    size, skipped = resolve_page(page, per_page, offset)
    documents = service.list(source_id=source, limit=size, offset=skipped)
    return {
        "success": True,
        "documents": [document_json(document) for document in documents],
        "total_count": service.count(source_id=source),
        "count": len(documents),
        "page": page,
        "per_page": size,
    }


def _update(
    call: Call,
    *,
    document_id: str,
    file_path: str,
    content: str,
    title: str,
    url: str,
    metadata: Mapping[str, JsonValue] | None,
    **others: JsonValue,
) -> JsonObject:
    del others
    document_id = find_document(call, require(document_id, "document_id", "update", LIST_DOCUMENTS_HINT)).id
    if not any((title, url, metadata, content, file_path)):
        raise Refused("Nothing to update", "Give a new title, url, metadata, content or file_path")
    if content and file_path:
        raise Refused("Give either file_path or content, not both", "Remove one of them")
    path = call.files.file(file_path) if file_path else None
    if is_large(path, content):
        job = call.wb.jobs.enqueue_document(
            path=path,
            text=content or None,
            title=title or None,
            url=url or None,
            metadata=metadata,
            document=document_id,
        )
        return make_job_answer(call, job)
    written = call.wb.documents.update(
        document_id,
        path=path,
        text=content or None,
        title=title or None,
        url=url or None,
        metadata=metadata,
        on_progress=call.on_progress,
        should_stop=call.should_stop,
    )
    return {"success": True, "document": document_json(written.document), "message": "Document updated successfully"}


def _delete(call: Call, *, document_id: str, **others: JsonValue) -> JsonObject:
    del others
    document_id = find_document(call, require(document_id, "document_id", "delete", LIST_DOCUMENTS_HINT)).id
    deletion = call.wb.documents.delete(document_id)
    deleted: JsonObject = {
        "document_id": deletion.id,
        "title": deletion.title,
        "passages": deletion.passages,
        "citations": deletion.citations,
    }
    message = f"Document and {deletion.passages} associated chunks deleted successfully"
    return {"success": True, "message": message, "deleted": deleted}


def is_large(path: Path | None, content: str) -> bool:
    """Return whether a file or text is large enough for a job; compressed files count as several times their size."""
    return (len(content) if path is None else estimate_text_bytes(path.name, path.stat().st_size)) > JOB_THRESHOLD_BYTES


def make_job_answer(call: Call, job: Job) -> JsonObject:
    """Start the worker and return the answer for a document that a job ingests."""
    call.work_jobs()
    message = f"The document is large and is being ingested in the background.{format_follow_up(call, job)}"
    return {"success": True, "job": job_json(job), "message": message, "outcome": "queued"}


_ACTIONS: dict[str, Callable[..., JsonObject]] = {
    "create": _create,
    "get": _get,
    "list": _list,
    "update": _update,
    "delete": _delete,
}

MANAGE_DOCUMENT = Tool(
    name="manage_document",
    title="Manage documents",
    description=(
        "Create, show, list, update or delete documents. create takes file_path or content (stored once per source); "
        "a large one becomes a job; get_job follows it. delete cannot be undone.\n"
        "Use it for single documents; to read one, use rag_read_full_page; for collections, manage_source.\n"
        'Example: manage_document(action="create", file_path="notes/rag.md", source_id="src_abc123")'
    ),
    arguments=(
        Argument("action", "string", "What to do.", required=True, choices=ACTIONS),
        Argument("document_id", "string", "get, update, delete: the document.", ""),
        Argument(
            "file_path",
            "string",
            "create, update: a file in the allowed folders (PDF, HTML, Office, ...).",
            "",
            reading=False,
        ),
        Argument("source_id", "string", "create: its source (default: 'Uploads'). list: only this source.", ""),
        Argument("title", "string", "create, update: the title (default: from the file).", "", reading=False),
        Argument("url", "string", "create, update: its original URL.", "", reading=False),
        Argument("metadata", "object", "create, update: e.g. author; merged on update.", reading=False),
        PAGE,
        PER_PAGE,
        OFFSET,
        Argument("content", "string", "create, update: the text itself (Markdown).", "", reading=False),
    ),
    run=manage_document,
    family=FAMILY,
    read_only=False,
    destructive=True,
    idempotent=False,
    reading_actions=("get", "list"),
    reading_description=(
        "Show or list documents, without their texts.\n"
        "Use it to see what is stored; to read a text, use rag_read_full_page; to search, search_knowledge_base.\n"
        'Example: manage_document(action="list", source_id="src_abc123")'
    ),
    parts=Items("documents", total="total_count"),
    advice="Create, update or delete documents and sources: manage_document, manage_source.",
    reading_advice="Details of documents and sources: manage_document, manage_source.",
    output=make_action_schema(
        document="object", documents="array", total_count="integer", message="string", job="object"
    ),
)
