"""The workspace tools: conversations on disk, embedded on request and searched by meaning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_app.arguments import Argument, Refused, missing
from mcp_app.file_roots import FileRoots
from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.tool import Call, Family, Tool, compact, failure_json
from workbench.errors import NotFound

if TYPE_CHECKING:
    from workbench.services.workspaces import ConversationHit, Embedded

FAMILY = Family(render=compact, failure=failure_json)
WORKSPACE_PATH = Argument("workspace_path", "string", "The workspace's folder; by default the working directory.", "")
N_RESULTS = Argument("n_results", "number", "Most conversations.", 10, low=1, high=50)


def embed_document(call: Call, path: str, workspace_path: str) -> dict[str, Any]:
    """Embed what a path in a workspace means."""
    if not path:
        raise missing("path", "the conversation's path, relative to the workspace")
    workspace = workspace_of(call.files, workspace_path)
    found = path_in(workspace, path)
    return embedded_json(call.workbench.workspaces.embed(workspace, found, call.on_progress, call.should_stop))


def embed_workspace(call: Call, workspace_path: str) -> dict[str, Any]:
    """Bring a whole workspace up to date."""
    workspace = workspace_of(call.files, workspace_path)
    report = call.workbench.workspaces.embed(workspace, on_progress=call.on_progress, should_stop=call.should_stop)
    return {**embedded_json(report), "removed": report.removed}


def search_semantic(
    call: Call, query: str, workspace_path: str, n_results: float, conversation_type: str, date_range: str
) -> dict[str, Any]:
    """Search a workspace's conversations."""
    found = call.workbench.workspaces.search(
        workspace_of(call.files, workspace_path),
        query,
        limit=int(n_results),
        conversation_type=conversation_type,
        date_range=date_range,
    )
    return {"success": True, "query": query[:LONGEST_TITLE], **results_json(found)}


def get_similar(call: Call, source_path: str, workspace_path: str, n_results: float) -> dict[str, Any]:
    """Find conversations like one."""
    if not source_path:
        raise missing("source_path", "a conversation's path, as search_semantic returns it")
    workspace = workspace_of(call.files, workspace_path)
    try:
        found = call.workbench.workspaces.similar(workspace, source_path, int(n_results))
    except NotFound:
        raise Refused(
            f"Document not found: {source_path}", "Embed it first with embed_document, or check the path"
        ) from None
    return {"success": True, "source_path": source_path, **results_json(found)}


def get_embedding_status(call: Call, workspace_path: str) -> dict[str, Any]:
    """Say what a workspace holds."""
    status = call.workbench.workspaces.status(workspace_of(call.files, workspace_path))
    return {
        "success": True,
        "total_chunks": status.total_chunks,
        "num_documents": status.num_documents,
        "db_path": status.db_path,
        "recent_embeddings": [{"source_path": path, "embedded_at": at} for path, at in status.recent],
    }


def workspace_of(files: FileRoots, given: str) -> Path:
    """Return the workspace a call means, inside the allowed folders. Raises Refused."""
    if not given:
        here = Path.cwd().resolve()
        return here if any(here.is_relative_to(root) for root in files.roots) else files.roots[0]
    try:
        return files.folder(given, "workspace_path")
    except Refused as refused:
        if refused.error.startswith("File not found:"):
            raise Refused(f"Path not found: {given}", refused.suggestion) from None
        raise


def path_in(workspace: Path, given: str) -> Path:
    """Return a path that exists inside a workspace, wherever dots and links lead. Raises Refused."""
    refusal = Refused(f"Path not found: {given}", f"Give a path inside the workspace {workspace}")
    try:
        path = (workspace / given).resolve()
        inside = path.is_relative_to(workspace) and path.exists()
    except (OSError, RuntimeError, ValueError):
        raise refusal from None
    if not inside or any(part.startswith(".") for part in path.relative_to(workspace).parts):
        raise refusal
    return path


def embedded_json(report: Embedded) -> dict[str, Any]:
    """Return the counts, by conversation; ``files`` counts the files they are made of."""
    shown: dict[str, Any] = {
        "success": True,
        "embedded": report.embedded,
        "skipped": report.skipped,
        "total_files": report.total,
        "files": report.files,
    }
    if report.failures:
        shown["failed"] = len(report.failures)
        shown["failures"] = [{"path": one.path, "error": cut(one.error, 300)} for one in report.failures[:20]]
    return shown


def results_json(found: list[ConversationHit]) -> dict[str, Any]:
    """Return conversations, best first."""
    results = [
        {
            "conversation": hit.conversation,
            "title": cut(hit.title, LONGEST_TITLE),
            "score": hit.score,
            "text": cut(hit.text),
            "source_path": hit.source_path,
            "type": hit.type,
            "date": hit.date,
        }
        for hit in found
    ]
    return {"num_results": len(results), "results": results}


EMBED_DOCUMENT = Tool(
    name="embed_document",
    title="Embed a conversation",
    description=(
        "Embed a specific document or conversation for semantic search; unchanged ones are skipped.\n"
        "Use it after one conversation was written or changed; for all of them use embed_workspace.\n"
        'Example: embed_document(path="brainstorm/2025-11-17/001-new-idea")'
    ),
    arguments=(
        Argument("path", "string", "Path to a file or folder, relative to the workspace or absolute.", required=True),
        WORKSPACE_PATH,
    ),
    run=embed_document,
    family=FAMILY,
    read_only=False,
)

EMBED_WORKSPACE = Tool(
    name="embed_workspace",
    title="Embed a workspace",
    description=(
        "Embed every new or changed conversation (TYPE/YYYY-MM-DD/NNN-slug) of a workspace, and remove those that "
        "have vanished from disk.\n"
        "Use it before a search after many changes; for one conversation use embed_document.\n"
        'Example: embed_workspace(workspace_path="")'
    ),
    arguments=(WORKSPACE_PATH,),
    run=embed_workspace,
    family=FAMILY,
    read_only=False,
    destructive=True,
)

SEARCH_SEMANTIC = Tool(
    name="search_semantic",
    title="Search conversations",
    description=(
        "Semantic search across a workspace's embedded conversations, one entry each, best first.\n"
        "Use it for what was talked about; for conversations like a known one use get_similar, for documents "
        "search_knowledge_base.\n"
        'Example: search_semantic(query="authentication patterns", conversation_type="plan", date_range="2025-11")'
    ),
    arguments=(
        Argument("query", "string", "What to look for.", required=True),
        WORKSPACE_PATH,
        N_RESULTS,
        Argument("conversation_type", "string", "Only this type, such as brainstorm, debug or plan.", ""),
        Argument("date_range", "string", "Only this month or day: YYYY-MM or YYYY-MM-DD.", ""),
    ),
    run=search_semantic,
    family=FAMILY,
    rest="Ask for fewer, or narrow by conversation_type or date_range.",
)

GET_SIMILAR = Tool(
    name="get_similar",
    title="Find similar conversations",
    description=(
        "Find the conversations of a workspace that are most like a given one as a whole.\n"
        "Use it when you have a conversation; when you have a question use search_semantic.\n"
        'Example: get_similar(source_path="plan/2025-11-17/001-jwt-authentication")'
    ),
    arguments=(
        Argument("source_path", "string", "The conversation's path, as search_semantic returns it.", required=True),
        WORKSPACE_PATH,
        N_RESULTS,
    ),
    run=get_similar,
    family=FAMILY,
    rest="Ask for fewer.",
)

GET_EMBEDDING_STATUS = Tool(
    name="get_embedding_status",
    title="See what is embedded",
    description=(
        "Say how many conversations and passages of a workspace are embedded, and which last.\n"
        "Use it to find out whether embed_workspace is needed.\n"
        'Example: get_embedding_status(workspace_path="")'
    ),
    arguments=(WORKSPACE_PATH,),
    run=get_embedding_status,
    family=FAMILY,
)

TOOLS = (EMBED_DOCUMENT, EMBED_WORKSPACE, SEARCH_SEMANTIC, GET_SIMILAR, GET_EMBEDDING_STATUS)
