"""manage_document: documents made, shown, listed, changed and deleted."""

from __future__ import annotations

from typing import Any

from mcp_app.arguments import Argument, Refused, missing
from mcp_app.fitting import cut
from mcp_app.tool import Call, Tool, needed
from mcp_app.tools.knowledge.family import (
    FAMILY,
    LIST_DOCUMENTS,
    LONGEST_METADATA,
    PAGE,
    PER_PAGE,
    document_json,
    document_named,
    page_of,
    source_named,
)

ACTIONS = ("create", "get", "list", "update", "delete")
_DONE = {
    "created": "Document ingested successfully with {chunks} chunks",
    "updated": "Document updated successfully; it has {chunks} chunks now",
    "unchanged": "The source holds this content already; nothing was changed",
}


def manage_document(call: Call, action: str, **arguments: Any) -> dict[str, Any]:
    """Carry out one action on documents."""
    return _ACTIONS[action](call, arguments)


def _create(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    if bool(given["file_path"]) == bool(given["content"]):
        if given["content"]:
            raise Refused("Give either file_path or content, not both", "Leave one of them out")
        raise missing("file_path", "file_path (a file) or content (the text itself) is required for create.")
    source = source_named(call, given["source_id"]).id if given["source_id"] else None
    written = call.workbench.documents.create(
        path=call.files.file(given["file_path"]) if given["file_path"] else None,
        text=given["content"] or None,
        source=source,
        title=given["title"] or None,
        url=given["url"] or None,
        metadata=given["metadata"],
        on_progress=call.on_progress,
        should_stop=call.should_stop,
    )
    message = _DONE[written.outcome].format(chunks=written.document.passages_count)
    shown = document_json(written.document, "chunks_created")
    return {"success": True, "document": shown, "message": message, "outcome": written.outcome}


def _get(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    document = document_named(call, needed(given, "document_id", "get", LIST_DOCUMENTS))
    shown = document_json(document, room=LONGEST_METADATA) | {
        "characters": len(document.text or ""),
        "preview": cut(document.text),
        "full_text": f"resource document://{document.id}",
    }
    return {"success": True, "document": shown}


def _list(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    knowledge = call.workbench.knowledge
    source = source_named(call, given["source_id"]).id if given["source_id"] else None
    size, skipped = page_of(given["page"], given["per_page"])
    documents = knowledge.documents(source_id=source, limit=size, offset=skipped)
    return {
        "success": True,
        "documents": [document_json(document) for document in documents],
        "total_count": knowledge.count_documents(source_id=source),
        "count": len(documents),
        "page": given["page"],
        "per_page": size,
    }


def _update(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    document_id = document_named(call, needed(given, "document_id", "update", LIST_DOCUMENTS)).id
    if not any(given[name] for name in ("title", "url", "metadata", "content", "file_path")):
        raise Refused(
            "Nothing to update", "Give a title, url, metadata, content or file_path that is to replace the old one"
        )
    if given["content"] and given["file_path"]:
        raise Refused("Give either file_path or content, not both", "Leave one of them out")
    written = call.workbench.documents.update(
        document_id,
        path=call.files.file(given["file_path"]) if given["file_path"] else None,
        text=given["content"] or None,
        title=given["title"] or None,
        url=given["url"] or None,
        metadata=given["metadata"],
        on_progress=call.on_progress,
        should_stop=call.should_stop,
    )
    return {"success": True, "document": document_json(written.document), "message": "Document updated successfully"}


def _delete(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    document_id = document_named(call, needed(given, "document_id", "delete", LIST_DOCUMENTS)).id
    gone = call.workbench.knowledge.delete_document(document_id)
    deleted = {"document_id": gone.id, "title": gone.title, "passages": gone.passages, "citations": gone.citations}
    message = f"Document and {gone.passages} associated chunks deleted successfully"
    return {"success": True, "message": message, "deleted": deleted}


_ACTIONS = {"create": _create, "get": _get, "list": _list, "update": _update, "delete": _delete}

MANAGE_DOCUMENT = Tool(
    name="manage_document",
    title="Manage documents",
    description=(
        "Add, show, list, change or delete single documents. create takes a file (file_path) or a text (content) "
        "and indexes "
        "it for search at once; the same content twice in a source is kept once. update re-indexes only when the "
        "content changes. delete "
        "cannot be undone.\n"
        "Use it for one document; for whole collections use manage_source, for a website crawl_website, to find "
        "something in the "
        "texts search_knowledge_base.\n"
        'Example: manage_document(action="create", file_path="notes/rag.md", source_id="src_abc123")'
    ),
    arguments=(
        Argument("action", "string", "What to do.", required=True, choices=ACTIONS),
        Argument("document_id", "string", "The document, for get, update and delete.", ""),
        Argument(
            "file_path",
            "string",
            "create, update: a file in the allowed folders (PDF, HTML, Markdown, Office, ...).",
            "",
        ),
        Argument(
            "source_id", "string", "create: the source it goes to (by default 'Uploads'). list: only this source.", ""
        ),
        Argument("title", "string", "create, update: the title; by default the file's own.", ""),
        Argument("url", "string", "create, update: where it came from.", ""),
        Argument("metadata", "object", "create, update: further facts such as author or year; merged on update."),
        PAGE,
        PER_PAGE,
        Argument("content", "string", "create, update: the text itself (Markdown), in place of file_path.", ""),
    ),
    run=manage_document,
    family=FAMILY,
    read_only=False,
    destructive=True,
    idempotent=False,
    reading_actions=("get", "list"),
    rest="Ask for fewer (per_page) or for the next page.",
)
