"""The workspace tools: conversations on disk, embedded on request and searched by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_app.arguments import Argument, Refused, make_missing_error
from mcp_app.paging import (
    FEW_RESULTS,
    MAX_TITLE_CHARS,
    TOKEN_BUDGET,
    Items,
    RankedPage,
    cut,
    find_largest_fit,
    format_next_call,
)
from mcp_app.tool import Call, Tool, dump_json, format_follow_up, job_json, make_schema, notes_json, pick
from workbench.errors import NotFound, UnreadableDocument
from workbench.services.checks import JOB_THRESHOLD_BYTES, MAX_CONVERSATIONS
from workbench.types import JsonObject

if TYPE_CHECKING:
    from workbench.services.folders import Pending
    from workbench.services.workspaces import ConversationHit, EmbeddingReport
    from workbench.storage.jobs import Job

NOTE_TOKENS = 200  # tokens reserved for the fields next to the failures
WORKSPACE_PATH = Argument("workspace_path", "string", "The workspace (default: the working directory).", "")
DEFAULT_COUNT = 10
N_RESULTS = Argument("n_results", "number", "Maximum number of results.", DEFAULT_COUNT, low=1, high=50, unset=0)
OFFSET = Argument("offset", "integer", "Results to skip.", 0, low=0)


@Tool(
    title="Embed a conversation",
    arguments=(
        Argument("path", "string", "File or folder, absolute or relative to the workspace.", required=True),
        WORKSPACE_PATH,
    ),
    read_only=False,
    output=make_schema({"job": "object"}, embedded="integer", skipped="integer"),
)
def embed_document(call: Call, path: str, workspace_path: str) -> JsonObject:
    """Embed a conversation for search; an unchanged one is skipped.

    Use it after a conversation was created or changed; for all of them, use embed_workspace.
    Example: embed_document(path="brainstorm/2025-11-17/001-new-idea")
    """
    if not path:
        raise make_missing_error("path", "path of the conversation, relative to the workspace")
    workspace = resolve_workspace(call, workspace_path)
    place = resolve_path(workspace, path)
    pending = call.wb.workspaces.find_changes(workspace, place)
    if pending.bytes > JOB_THRESHOLD_BYTES:
        return make_job_answer(call, pending, call.wb.jobs.enqueue_workspace(workspace, place))
    try:
        return report_json(call.wb.workspaces.embed(workspace, place, call.on_progress, call.should_stop))
    except UnreadableDocument as error:
        raise Refused(f"Could not embed {path}: {error}", "Add text to it, then call again") from error


@Tool(
    title="Embed a workspace",
    arguments=(WORKSPACE_PATH,),
    read_only=False,
    destructive=True,
    output=make_schema({"job": "object"}, embedded="integer", skipped="integer"),
)
def embed_workspace(call: Call, workspace_path: str) -> JsonObject:
    """Embed all new or changed conversations (TYPE/YYYY-MM-DD/NNN-slug) of a workspace, and remove deleted ones; many
    become a job; get_job follows it.

    Use it before a search after many changes; for one conversation, use embed_document.
    Example: embed_workspace(workspace_path="")
    """
    workspace = resolve_workspace(call, workspace_path)
    pending = call.wb.workspaces.find_changes(workspace)
    if pending.bytes > JOB_THRESHOLD_BYTES:
        return make_job_answer(call, pending, call.wb.jobs.enqueue_workspace(workspace))
    report = call.wb.workspaces.embed(workspace, on_progress=call.on_progress, should_stop=call.should_stop)
    answer: JsonObject = {**report_json(report), "removed": report.removed}
    if not report.total:
        answer["notes"] = f"{workspace} contains no conversation (TYPE/YYYY-MM-DD/NNN-slug)."
    if report.all_failed:
        del answer["success"]
        raise Refused(report.all_failed, "Add text to them, then call again", answer)
    return answer


def make_job_answer(call: Call, pending: Pending, job: Job) -> JsonObject:
    """Start the worker and return the answer for conversations that a job embeds."""
    call.opening.work_jobs()
    waiting = pending.new + pending.changed
    message = f"Conversations being embedded: {waiting}.{format_follow_up(call, job)}"
    counts: JsonObject = {"embedded": 0, "skipped": pending.unchanged, "total_files": waiting + pending.unchanged}
    return {"success": True, **counts, "job": job_json(job), "message": message}


@Tool(
    title="Search conversations",
    arguments=(
        Argument("query", "string", "What to search for.", required=True),
        WORKSPACE_PATH,
        N_RESULTS,
        Argument("conversation_type", "string", "Only this type, e.g. brainstorm, debug or plan.", ""),
        Argument("date_range", "string", "Only this month or day: YYYY-MM or YYYY-MM-DD.", ""),
        OFFSET,
    ),
    parts=Items("results", count="num_results"),
    advice="Past conversations of a workspace: search_semantic; after changes, call embed_workspace first.",
    reading_advice="Past conversations of a workspace: search_semantic.",
    output=make_schema(results="array"),
)
def search_semantic(
    call: Call, query: str, workspace_path: str, n_results: float, conversation_type: str, date_range: str, offset: int
) -> JsonObject:
    """Search a workspace's embedded conversations by meaning, one result each, best first.

    Use it for past discussions: best for conversations only; for those similar to a known one, use get_similar; for
    documents, search_knowledge_base.
    Example: search_semantic(query="authentication patterns", conversation_type="plan", date_range="2025-11")
    """
    wanted = int(n_results) or DEFAULT_COUNT
    page = RankedPage(offset, wanted, MAX_CONVERSATIONS, "conversations", "set conversation_type or date_range")
    hits = call.wb.workspaces.search(
        resolve_workspace(call, workspace_path),
        query,
        limit=page.limit,
        conversation_type=conversation_type,
        date_range=date_range,
    )
    if hits.nothing_close and not (n_results or offset):
        wanted = FEW_RESULTS
    found, notes = results_json(hits[offset:], wanted), notes_json(hits.nothing_close, hits.degraded)
    return {"success": True, "query": query[:MAX_TITLE_CHARS], **found, **notes, **page.end(hits)}


@Tool(
    title="Find similar conversations",
    arguments=(
        Argument("source_path", "string", "The conversation's path, as returned by search_semantic.", required=True),
        WORKSPACE_PATH,
        N_RESULTS,
        OFFSET,
    ),
    parts=Items("results", count="num_results"),
    output=make_schema(results="array"),
)
def get_similar(call: Call, source_path: str, workspace_path: str, n_results: float, offset: int) -> JsonObject:
    """Find the conversations of a workspace that are most similar to a given one.

    Use it if you have a conversation; if you have a question, use search_semantic.
    Example: get_similar(source_path="plan/2025-11-17/001-jwt-authentication")
    """
    if not source_path:
        raise make_missing_error("source_path", "path of a conversation, as returned by search_semantic")
    workspace = resolve_workspace(call, workspace_path)
    narrow = "use search_semantic with conversation_type or date_range"
    page = RankedPage(offset, int(n_results) or DEFAULT_COUNT, MAX_CONVERSATIONS, "conversations", narrow)
    try:
        hits = call.wb.workspaces.similar(workspace, source_path, page.limit)
    except NotFound:
        embed = "Embed it first with embed_document, or check the path"
        remedy = embed if call.offers("embed_document") else "Check the path; only embedded conversations are searched"
        raise Refused(f"Document not found: {source_path}", remedy) from None
    found = results_json(hits[offset:], page.count)
    return {"success": True, "source_path": source_path, **found, **page.end(hits)}


@Tool(
    title="Show embedding status",
    arguments=(WORKSPACE_PATH,),
    output=make_schema(num_documents="integer", pending="object"),
)
def get_embedding_status(call: Call, workspace_path: str) -> JsonObject:
    """Show how many conversations and passages of a workspace are embedded, and the most recent ones.

    Use it to check whether search_semantic is up to date: 'pending' counts changes on disk.
    Example: get_embedding_status(workspace_path="")
    """
    workspace = resolve_workspace(call, workspace_path)
    status = call.wb.workspaces.status(workspace)
    pending = call.wb.workspaces.find_changes(workspace)
    changes: JsonObject = {"new": pending.new, "changed": pending.changed, "vanished": pending.vanished}
    following = f" Next: {format_next_call('embed_workspace', {'workspace_path': workspace_path or None})}"
    note = f"Files changed since they were embedded.{following if call.offers('embed_workspace') else ''}"
    notes: JsonObject = {"note": note} if pending.any else {}
    return {
        "success": True,
        "total_chunks": status.total_chunks,
        "num_documents": status.num_documents,
        "db_path": status.db_path,
        "recent_embeddings": [{"source_path": path, "embedded_at": at} for path, at in status.recent],
        "pending": changes,
    } | notes


def resolve_workspace(call: Call, path_text: str) -> Path:
    """Return the workspace folder, inside the allowed folders.

    Raises:
        Refused: The folder does not exist or is not allowed.
    """
    if not path_text or path_text == ".":
        here = Path.cwd().resolve()
        if not call.files.roots:
            raise Refused("The tools have no allowed folder", "Add the workspace's folder to WORKBENCH_FILE_ROOTS")
        return here if any(here.is_relative_to(root) for root in call.files.roots) else call.files.roots[0]
    try:
        return call.files.folder(path_text, "workspace_path")
    except Refused as refused:
        if refused.error.startswith("File not found:"):
            raise Refused(f"Path not found: {path_text}", refused.suggestion) from None
        raise


def resolve_path(workspace: Path, path_text: str) -> Path:
    """Return an existing path inside a workspace, after resolving links and dots.

    Raises:
        Refused: The path does not exist, is hidden, or is outside the workspace.
    """
    refusal = Refused(f"Path not found: {path_text}", f"Give a path inside the workspace {workspace}")
    try:
        path = (workspace / path_text).resolve()
        inside = path.is_relative_to(workspace) and path.exists()
    except (OSError, RuntimeError, ValueError):
        raise refusal from None
    if not inside or any(part.startswith(".") for part in path.relative_to(workspace).parts):
        raise refusal
    return path


def report_json(report: EmbeddingReport) -> JsonObject:
    """Return the counts of conversations; ``files`` counts their files."""
    counts: JsonObject = {"success": True, **pick(report, "embedded", "skipped"), "total_files": report.total}
    answer: JsonObject = {**counts, "files": report.files}
    if report.notes:
        answer["notes"] = cut(" ".join(report.notes))
    if report.failures:
        named: list[JsonObject] = [
            {"path": failure.path, "error": cut(failure.error, 300)} for failure in report.failures
        ]
        answer["failed"] = len(named)
        shown = find_largest_fit(
            len(named), lambda count: dump_json(answer | {"failures": named[:count]}), TOKEN_BUDGET - NOTE_TOKENS
        )
        answer["failures"] = list(named[:shown])
        if shown < len(named):
            answer["note"] = f"The first {shown} are listed. Fix them and call again to see the next."
    return answer


def results_json(hits: Sequence[ConversationHit], wanted: int) -> JsonObject:
    """Return the first ``wanted`` conversations, and whether there are more."""
    names = ("conversation", "title", "score", "text", "source_path", "type", "date")
    results: list[JsonObject] = [pick(hit, *names) | {"text": cut(hit.text)} for hit in hits[:wanted]]
    return {"num_results": len(results), "results": results, "more": len(hits) > wanted}


TOOLS = (embed_document, embed_workspace, search_semantic, get_similar, get_embedding_status)
