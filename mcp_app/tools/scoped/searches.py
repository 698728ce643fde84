"""The three searches: any scope, one project's, everybody's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from mcp_app.arguments import NAMES, Argument, missing
from mcp_app.fitting import LONGEST_TITLE, cut, one_line
from mcp_app.forms import form
from mcp_app.parts import ITEMS_A_PAGE, Items, next_call
from mcp_app.tool import Call, Tool
from mcp_app.tools.scoped.family import MATCH_COUNT, OFFSET, QUERY, as_given, family, nothing
from mcp_app.tools.scoped.results import ScopedResults, chunks_for, pages_for, reranked
from workbench.errors import choices
from workbench.services.sources import spoken_catalogue
from workbench.types import NamesUse, ResolvedScope, Scope, ScopeKind
from workbench.types.json import JsonObject, JsonValue

SCOPES = ("all", "global", "project")
RETURN_MODES = ("pages", "chunks")
_FORMS: Mapping[str, Callable[[Call, str, Scope, int, int], ScopedResults]] = {"pages": pages_for, "chunks": chunks_for}


def search(
    call: Call,
    query: str,
    scope: str = "all",
    project_id: str = "",
    source_id: str = "",
    folder_name: str = "",
    tags: list[str] | None = None,
    match_count: int = 0,
    return_mode: str = "pages",
    offset: int = 0,
    language: str = "",
    names: str = "prefer",
) -> JsonObject:
    """Search any scope: the common part of the three tools and POST /api/rag/query."""
    if scope == "project" and not project_id:
        raise missing("project_id", "scope='project' searches one project; use scope='all' or 'global' without one.")
    wanted = Scope(
        kind=cast(ScopeKind, scope),  # one of SCOPES, checked as an argument
        project=project_id or None,
        folder=folder_name or None,
        tags=clean_tags(tags),
        sources=(source_id,) if source_id else None,
        languages=(language,) if language.strip() else (),
        names=cast(NamesUse, names),
    )
    results = _FORMS[return_mode](call, query, wanted, match_count, offset)
    answer: JsonObject = {
        "success": True,
        "results": results.items,
        "count": len(results.items),
        "more": results.more,
        "under_filled": results.under_filled,
        "return_mode": return_mode,
        "reranked": reranked(results.searched),
        **results.said,
        "error": None,
    }
    answer |= results.end
    if not results.items:
        nothing = results.past_the_end or _nothing_matched(call, results.searched.scope, scope, query)
        answer["suggestion"] = nothing
    if results.items and not results.searched.evidence.close:
        answer["nothing_close"] = results.searched.evidence.reason
        answer["suggestion"] = _elsewhere(call, "Use fewer or other keywords.", scope, query)
    if results.searched.preferring:
        answer["preferring"] = [name.text for name in results.searched.preferring]
    if results.searched.degraded:
        answer["degraded"] = list(results.searched.degraded)
    return answer


def search_knowledge_base(
    call: Call,
    query: str,
    scope: str,
    project_id: str,
    source_id: str,
    match_count: int,
    return_mode: str,
    offset: int,
    language: str = "",
    names: str = "prefer",
) -> JsonObject:
    """Search with the scope in the caller's hand."""
    answer = search(
        call,
        query,
        scope=scope,
        project_id=project_id,
        source_id=source_id,
        match_count=match_count,
        return_mode=return_mode,
        offset=offset,
        language=language,
        names=names,
    )
    return answer | {"search_scope": scope, "project_context": project_id or None}


def search_project_knowledge(
    call: Call, query: str, project_id: str, folder_name: str, match_count: int, offset: int
) -> JsonObject:
    """Search one project's own sources."""
    answer = search(
        call,
        query,
        scope="project",
        project_id=project_id,
        folder_name=folder_name,
        match_count=match_count,
        offset=offset,
    )
    return answer | {"project_id": project_id, "folder_filter": folder_name or None}


def search_global_knowledge(call: Call, query: str, tags: list[str], match_count: int, offset: int) -> JsonObject:
    """Search the global sources, those with the most of the tags first among equals."""
    answer = search(call, query, scope="global", tags=tags, match_count=match_count, offset=offset)
    return answer | {"tag_filters": shown_tags(tags)}


def clean_tags(tags: list[str] | None) -> tuple[str, ...]:
    """Return the tags as sources keep them: trimmed, empty ones left out."""
    return tuple(tag.strip() for tag in tags or () if tag.strip())


def shown_tags(tags: list[str] | None) -> list[JsonValue] | None:
    """Return the tags that were searched by, for the answer; None where there were none."""
    return [cut(tag, LONGEST_TITLE) for tag in clean_tags(tags)[:ITEMS_A_PAGE]] or None


def _nothing_matched(call: Call, searched: ResolvedScope, scope: str, query: str) -> str:
    """Say why nothing matched; from a project the way leads on to what everybody knows, as the specification asks."""
    known = one_line(" ".join(searched.notes)) or _holding_nothing(call, searched)
    reason = known or "Nothing matched; use fewer or other keywords."
    return reason if known and scope != "project" else _elsewhere(call, reason, scope, query)


def _elsewhere(call: Call, reason: str, scope: str, query: str) -> str:
    """Return a sentence followed by the call that may find more, if such a tool is offered."""
    if scope == "project" and call.offers("rag_search_global_knowledge"):
        return f"{reason} Fall back to {next_call('rag_search_global_knowledge', {'query': query})}"
    if scope != "project" and call.offers("rag_get_available_sources"):
        return f"{reason} See rag_get_available_sources() for what there is."
    return reason


def _holding_nothing(call: Call, searched: ResolvedScope) -> str:
    """Say that the sources of a scope are still empty, where they are; no other keywords would help then."""
    inside = [source for source in call.workbench.sources.list() if source.id in (searched.source_ids or ())]
    if not inside or any(source.documents_count for source in inside):
        return ""
    return f"The sources in scope ({choices(source.title for source in inside)}) hold no documents yet."


_FAILURE = family(
    results=nothing,
    search_scope=as_given("scope", "all"),
    project_context=as_given("project_id"),
    return_mode=as_given("return_mode", "pages"),
    reranked=lambda given: False,
)
SEARCH_KNOWLEDGE_BASE = Tool(
    name="rag_search_knowledge_base",
    title="Search project and global knowledge",
    description=(
        "Find the documents, one entry each, or passages, of any scope.\n"
        "Use it for which documents to read: best for a project's and global knowledge together; for one project alone "
        "use rag_search_project_knowledge; for general knowledge rag_search_global_knowledge; for passages by search "
        "type search_knowledge_base.\n"
        'Example: rag_search_knowledge_base(query="API endpoints", scope="all", project_id="proj_123")'
    ),
    arguments=(
        QUERY,
        Argument(
            "scope",
            "string",
            "all: with project_id that project, first among equals, and the global sources.",
            "all",
            choices=SCOPES,
        ),
        Argument("project_id", "string", "The project, for scope project or all.", ""),
        Argument("source_id", "string", "Only this source: its id, URL or exact title.", ""),
        Argument("language", "string", "Only this language: de or german.", ""),
        NAMES,
        MATCH_COUNT,
        Argument(
            "return_mode",
            "string",
            "pages: one a document; chunks: passages.",
            "pages",
            choices=RETURN_MODES,
        ),
        OFFSET,
    ),
    run=search_knowledge_base,
    family=_FAILURE,
    parts=Items("results"),
    advice=(
        "Project and global together, or "
        "single passages: rag_search_knowledge_base(query, scope, project_id, return_mode)."
    ),
    output=form(results="array", more="boolean"),
)

SEARCH_PROJECT = Tool(
    name="rag_search_project_knowledge",
    title="Search a project's knowledge",
    description=(
        "Search one project's own sources.\n"
        "Use it first when you work on a known project: best for what only that project knows; when it finds nothing "
        "relevant use rag_search_global_knowledge; to see the folders rag_list_project_folders.\n"
        'Example: rag_search_project_knowledge(query="login endpoint", project_id="proj_123", folder_name="API")'
    ),
    arguments=(
        QUERY,
        Argument("project_id", "string", "The project to search in: its id or exact title.", required=True),
        Argument("folder_name", "string", "Only this folder, such as 'Authentication'.", ""),
        MATCH_COUNT,
        OFFSET,
    ),
    run=search_project_knowledge,
    family=family(results=nothing, project_id=as_given("project_id"), folder_filter=as_given("folder_name")),
    parts=Items("results"),
    advice=(
        "Working on a known project: rag_search_project_knowledge(query, project_id), with folder_name "
        "when you know the folder; nothing relevant there: rag_search_global_knowledge(query)."
    ),
    output=form(results="array", more="boolean"),
)

SEARCH_GLOBAL = Tool(
    name="rag_search_global_knowledge",
    title="Search global knowledge",
    description=(
        "Search the sources that belong to no project: frameworks, languages, best practices; with tags "
        "those that have any of them (most first).\n"
        "Use it for general questions: best with tags; for what a project knows use rag_search_project_knowledge "
        "first.\n"
        f"Tags by category: {spoken_catalogue()}.\n"
        'Example: rag_search_global_knowledge(query="hooks patterns", tags=["react", "typescript"])'
    ),
    arguments=(
        QUERY,
        Argument("tags", "array", "Only sources with any of these tags.", []),
        MATCH_COUNT,
        OFFSET,
    ),
    run=search_global_knowledge,
    family=family(results=nothing, tag_filters=lambda given: None),
    parts=Items("results"),
    advice=("Frameworks, languages, general practice: rag_search_global_knowledge(query, tags=[...])."),
    output=form(results="array", more="boolean"),
)
