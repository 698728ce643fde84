"""The three searches: any scope, one project's, everybody's."""

from __future__ import annotations

from typing import Any

from mcp_app.arguments import Argument, missing
from mcp_app.fitting import ITEMS_A_PAGE, LONGEST_TITLE, cut, one_line
from mcp_app.tool import Call, Tool
from mcp_app.tools.scoped.family import MATCH_COUNT, QUERY, as_given, family, nothing
from mcp_app.tools.scoped.results import found_chunks, found_pages, reranked
from workbench.services.tag_catalogue import spoken_catalogue
from workbench.types import Scope

SCOPES = ("all", "global", "project")
RETURN_MODES = ("pages", "chunks")
_FORMS = {"pages": found_pages, "chunks": found_chunks}


def search(
    call: Call,
    query: str,
    scope: str = "all",
    project_id: str = "",
    source_id: str = "",
    folder_name: str = "",
    tags: list[str] | None = None,
    match_count: int = 5,
    return_mode: str = "pages",
) -> dict[str, Any]:
    """Search any scope: what the three tools and POST /api/rag/query have in common."""
    if scope == "project" and not project_id:
        raise missing("project_id", "scope='project' searches one project; use scope='all' or 'global' without one.")
    wanted = Scope(
        kind=scope,  # pyright: ignore[reportArgumentType] - one of SCOPES, checked as an argument
        project=project_id or None,
        folder=folder_name or None,
        tags=clean_tags(tags),
        sources=(source_id,) if source_id else None,
    )
    results, searched = _FORMS[return_mode](call, query, wanted, match_count)
    answer: dict[str, Any] = {
        "success": True,
        "results": results,
        "count": len(results),
        "under_filled": len(results) < match_count,
        "return_mode": return_mode,
        "reranked": reranked(searched),
        "error": None,
    }
    if not results:
        answer["suggestion"] = _nothing_found(searched.scope.notes, scope)
    if searched.degraded:
        answer["degraded"] = list(searched.degraded)
    return answer


def search_knowledge_base(call: Call, **given: Any) -> dict[str, Any]:
    """Search with the scope in the caller's hand."""
    answer = search(call, **given)
    return answer | {"search_scope": given["scope"], "project_context": given["project_id"] or None}


def search_project_knowledge(
    call: Call, query: str, project_id: str, folder_name: str, match_count: int
) -> dict[str, Any]:
    """Search one project's own sources."""
    answer = search(
        call, query, scope="project", project_id=project_id, folder_name=folder_name, match_count=match_count
    )
    return answer | {"project_id": project_id, "folder_filter": folder_name or None}


def search_global_knowledge(call: Call, query: str, tags: list[str], match_count: int) -> dict[str, Any]:
    """Search the global sources, those with the most of the tags first among equals."""
    answer = search(call, query, scope="global", tags=tags, match_count=match_count)
    return answer | {"tag_filters": shown_tags(tags)}


def clean_tags(tags: list[str] | None) -> tuple[str, ...]:
    """Return the tags as sources keep them: trimmed, empty ones left out."""
    return tuple(tag.strip() for tag in tags or () if tag.strip())


def shown_tags(tags: list[str] | None) -> list[str | None] | None:
    """Return the tags that were searched by, for the answer; None where there were none."""
    return [cut(tag, LONGEST_TITLE) for tag in clean_tags(tags)[:ITEMS_A_PAGE]] or None


def _nothing_found(notes: tuple[str, ...], scope: str) -> str:
    if notes:
        return one_line(" ".join(notes))
    other = "rag_search_global_knowledge" if scope == "project" else "rag_get_available_sources"
    return f"Nothing matched; use fewer or other keywords, or try {other}."


_FAILURE = family(
    results=nothing,
    search_scope=as_given("scope", "all"),
    project_context=as_given("project_id"),
    return_mode=as_given("return_mode", "pages"),
    reranked=lambda given: False,
)
_REST = "Ask for fewer (match_count), narrow the scope, or read a whole text at document://PAGE_ID."

SEARCH_KNOWLEDGE_BASE = Tool(
    name="rag_search_knowledge_base",
    title="Search project and global knowledge",
    description=(
        "Search with full control of the scope: all (default; with project_id that project and the global "
        "sources, the project's first "
        "among equals), global, or project (needs project_id). Results are pages (one a document) or chunks "
        "(passages).\n"
        "Use it to combine project and global knowledge or to search one source. On one project only, "
        "rag_search_project_knowledge is simpler; for framework and language questions rag_search_global_knowledge.\n"
        'Example: rag_search_knowledge_base(query="API endpoints", scope="all", project_id="proj_123")'
    ),
    arguments=(
        QUERY,
        Argument("scope", "string", "all, global or project.", "all", choices=SCOPES),
        Argument("project_id", "string", "The project, for scope project, or as context for scope all.", ""),
        Argument("source_id", "string", "Only this source: its id, URL or exact title.", ""),
        MATCH_COUNT,
        Argument(
            "return_mode",
            "string",
            "pages: one entry a document; chunks: single passages.",
            "pages",
            choices=RETURN_MODES,
        ),
    ),
    run=search_knowledge_base,
    family=_FAILURE,
    rest=_REST,
)

SEARCH_PROJECT = Tool(
    name="rag_search_project_knowledge",
    title="Search a project's knowledge",
    description=(
        "Search one project's own sources, if you like in one folder.\n"
        "Use it first when you work on a known project; when it finds nothing relevant use "
        "rag_search_global_knowledge; to see the folders "
        "rag_list_project_folders.\n"
        'Example: rag_search_project_knowledge(query="login endpoint", project_id="proj_123", folder_name="API")'
    ),
    arguments=(
        QUERY,
        Argument("project_id", "string", "The project to search in: its id or exact title.", required=True),
        Argument("folder_name", "string", "Only this folder, such as 'Authentication'.", ""),
        MATCH_COUNT,
    ),
    run=search_project_knowledge,
    family=family(results=nothing, project_id=as_given("project_id"), folder_filter=as_given("folder_name")),
    rest=_REST,
)

SEARCH_GLOBAL = Tool(
    name="rag_search_global_knowledge",
    title="Search global knowledge",
    description=(
        "Search the sources that belong to no project: frameworks, languages, best practices; if you like only "
        "those with a tag.\n"
        "Use it for general questions, or when rag_search_project_knowledge finds nothing. A source matches when "
        "it has any of the tags; more matching "
        "tags rank first among equals.\n"
        f"Tags by category: {spoken_catalogue()}.\n"
        'Example: rag_search_global_knowledge(query="hooks patterns", tags=["react", "typescript"])'
    ),
    arguments=(
        QUERY,
        Argument("tags", "array", 'Only sources with any of these tags, such as ["security", "fastapi"].', []),
        MATCH_COUNT,
    ),
    run=search_global_knowledge,
    family=family(results=nothing, tag_filters=lambda given: None),
    rest=_REST,
)
