"""The scoped tools: search in projects and global sources, and lists of sources and folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

from mcp_app.arguments import METADATA_ARGUMENT, NAMES_ARGUMENT, Argument, make_missing_error
from mcp_app.paging import (
    ITEMS_PER_PAGE,
    MAX_TITLE_CHARS,
    Items,
    RankedPage,
    apply_cutoff,
    cut,
    explain_past_end,
    format_next_call,
    to_one_line,
)
from mcp_app.tool import Call, Tool, make_family, make_schema, pick
from workbench.errors import InvalidInput, list_choices
from workbench.retrieval.legs import RERANKERS
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import AGENT_CUTOFF, DOCUMENT_CUTOFF
from workbench.types import (
    Folder,
    JsonObject,
    JsonValue,
    NamesUse,
    Passage,
    ResolvedScope,
    Scope,
    ScopeKind,
    SearchResult,
    Source,
    copies_json,
    format_catalogue,
)

if TYPE_CHECKING:
    from workbench.services.search import DocumentHit, SourcePlace

# Common arguments

QUERY = Argument("query", "string", "2 to 5 keywords.", required=True)
OFFSET = Argument("offset", "integer", "Results to skip.", 0, low=0)
DEFAULT_COUNT = 5
MATCH_COUNT = Argument("match_count", "integer", "Maximum number of results.", DEFAULT_COUNT, low=1, high=50, unset=0)

# Results as pages (documents) and chunks (passages)

MAX_PAGES, MAX_CHUNKS = 100, 200  # results that one search ranks
NARROW = "narrow the search to a project, folder, tags or source"


def _find(
    call: Call, query: str, scope: Scope, match_count: int, offset: int, return_mode: str
) -> tuple[list[JsonObject], JsonObject, SearchResult, RankedPage, Sequence[DocumentHit | Passage]]:
    """Return the results of a page, a note on those below the cutoff, the search, the page, and the whole ranking."""
    ranked: Sequence[DocumentHit | Passage]
    if return_mode == "pages":
        page, share = RankedPage(offset, match_count or DEFAULT_COUNT, MAX_PAGES, "documents", NARROW), DOCUMENT_CUTOFF
        found = call.wb.document_search.search(query, Ask(limit=page.limit, scope=scope, interleaves=True))
        searched, ranked = found.searched, found.documents
        items = [page_json(hit) for hit in page.items(found.documents)]
    else:
        page, share = RankedPage(offset, match_count or DEFAULT_COUNT, MAX_CHUNKS, "passages", NARROW), AGENT_CUTOFF
        searched = call.wb.search_service.search(query, Ask(limit=page.limit, scope=scope, interleaves=True))
        places = call.wb.document_search.places(passage.source_id for passage in searched)
        ranked = passages = [passage for passage in searched if passage.source_id in places]
        items = [chunk_json(passage, places[passage.source_id]) for passage in page.items(passages)]
    if match_count or offset:
        return items, {}, searched, page, ranked
    scores = [hit.score for hit in page.items(ranked)]
    items, cutoff = apply_cutoff(items, scores, searched.strategy, share, close=searched.evidence.close)
    return items, cutoff, searched, page, ranked


def is_reranked(passages: Iterable[Passage]) -> bool:
    """Return whether a reranker ordered the passages, in which case they have its leg."""
    return any(not RERANKERS.isdisjoint(passage.attribution) for passage in passages)


def page_json(hit: DocumentHit) -> JsonObject:
    """Return a document found; ``aggregate_similarity`` (0..1) decreases with rank."""
    return {
        "page_id": hit.document_id,
        "url": hit.best.url,
        "title": cut(hit.title, MAX_TITLE_CHARS),
        "section_title": _get_section(hit.best),
        "word_count": hit.word_count,
        "chunk_matches": len(hit.passages),
        "aggregate_similarity": round(hit.score, 4),
        "average_similarity": round(max(0.0, hit.average_similarity), 4),
        **place_json(hit.place),
        "preview": cut(hit.best.text),
        **copies_json(hit.copies),
    }


def chunk_json(passage: Passage, place: SourcePlace) -> JsonObject:
    """Return a passage found."""
    answer: JsonObject = {
        "id": passage.passage_id,
        "content": cut(passage.text),
        "metadata": {
            "document_id": passage.document_id,
            "title": cut(passage.document_title, MAX_TITLE_CHARS),
            "section_title": _get_section(passage),
            "url": passage.url,
            "chunk_index": passage.metadata.get("ordinal", 0),
            "language": passage.metadata.get("language"),
        },
        "similarity_score": round(max(0.0, passage.similarity), 4),
        **place_json(place),
        **copies_json(passage.copies),
    }
    return answer | ({"rerank_score": round(passage.score, 4)} if is_reranked([passage]) else {})


def place_json(place: SourcePlace) -> JsonObject:
    """Return the scope fields of a result."""
    return pick(place, "source_id", "scope", "project_id", "folder_name", "tags")


def _get_section(passage: Passage) -> str | None:
    return cut(passage.headings[-1], MAX_TITLE_CHARS) if passage.headings else None


SCOPES = ("all", "global", "project")
RETURN_MODES = ("pages", "chunks")


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
    metadata: Sequence[str] = (),
    names: str = "prefer",
) -> JsonObject:
    """Search any scope; used by the three tools and by POST /api/rag/query."""
    if scope == "project" and not project_id:
        raise make_missing_error(
            "project_id", "scope='project' requires a project; without one use scope='all' or 'global'."
        )
    wanted = Scope(
        kind=cast(ScopeKind, scope),  # validated as one of SCOPES
        project=project_id or None,
        folder=folder_name or None,
        tags=clean_tags(tags),
        sources=(source_id,) if source_id else None,
        languages=(language,) if language.strip() else (),
        metadata=tuple(metadata),
        names=cast(NamesUse, names),
    )
    items, cutoff, searched, page, ranked = _find(call, query, wanted, match_count, offset, return_mode)
    more = offset + len(items) < len(ranked)
    answer: JsonObject = {
        "success": True,
        "results": list(items),
        "count": len(items),
        "more": more,
        "under_filled": page.is_under_filled(ranked) and not more,
        "return_mode": return_mode,
        "reranked": is_reranked(searched),
        **cutoff,
        "error": None,
    }
    answer |= page.end(ranked)
    if not items:
        no_match = _explain_no_match(call, searched.scope, scope, query)
        answer["suggestion"] = explain_past_end(offset, ranked) or no_match
    other_words = _suggest_other_search(call, "Use fewer or other keywords.", scope, query)
    return answer | call.describe_search(searched, is_empty=not items, suggestion=other_words)


_search: Callable[..., JsonObject] = search  # with arguments that were validated by their declarations


@Tool(
    title="Search project and global knowledge",
    arguments=(
        QUERY,
        Argument(
            "scope",
            "string",
            "all: global sources and, with project_id, that project, which ranks first among equals.",
            "all",
            choices=SCOPES,
        ),
        Argument("project_id", "string", "The project, for scope project or all.", ""),
        Argument("source_id", "string", "Only this source: id, URL or exact title.", ""),
        Argument("language", "string", "Only this language, e.g. de or german.", ""),
        METADATA_ARGUMENT,
        NAMES_ARGUMENT,
        MATCH_COUNT,
        Argument(
            "return_mode", "string", "pages: one result per document; chunks: passages.", "pages", choices=RETURN_MODES
        ),
        OFFSET,
    ),
    documents="page_id",
    family=make_family(
        {"results": [], "search_scope": "all", "project_context": None, "return_mode": "pages", "reranked": False},
        search_scope="scope",
        project_context="project_id",
        return_mode="return_mode",
    ),
    parts=Items("results"),
    advice=(
        "Project and global knowledge together, or "
        "passages: rag_search_knowledge_base(query, scope, project_id, return_mode)."
    ),
    output=make_schema(results="array", more="boolean"),
)
def rag_search_knowledge_base(call: Call, scope: str, project_id: str, **others: JsonValue) -> JsonObject:
    """Find documents (one result each) or passages in any scope.

    Use it to find documents to read: best for project and global knowledge together; for one project only, use
    rag_search_project_knowledge; for general knowledge, rag_search_global_knowledge; for passages,
    search_knowledge_base.
    Example: rag_search_knowledge_base(query="API endpoints", scope="all", project_id="proj_123")
    """
    answer = _search(call, scope=scope, project_id=project_id, **others)
    return answer | {"search_scope": scope, "project_context": project_id or None}


@Tool(
    title="Search a project's knowledge",
    arguments=(
        QUERY,
        Argument("project_id", "string", "The project: id or exact title.", required=True),
        Argument("folder_name", "string", "Only this folder, e.g. 'Authentication'.", ""),
        MATCH_COUNT,
        OFFSET,
    ),
    documents="page_id",
    family=make_family(
        {"results": [], "project_id": None, "folder_filter": None}, project_id="project_id", folder_filter="folder_name"
    ),
    parts=Items("results"),
    advice=(
        "Known project: rag_search_project_knowledge(query, project_id), with folder_name if you know the folder; "
        "if nothing is relevant: rag_search_global_knowledge(query)."
    ),
    output=make_schema(results="array", more="boolean"),
)
def rag_search_project_knowledge(call: Call, project_id: str, folder_name: str, **others: JsonValue) -> JsonObject:
    """Search one project's own sources.

    Use it first when you work on a known project: best for knowledge specific to it; if it finds nothing relevant, use
    rag_search_global_knowledge; to list the folders, rag_list_project_folders.
    Example: rag_search_project_knowledge(query="login endpoint", project_id="proj_123", folder_name="API")
    """
    answer = _search(call, scope="project", project_id=project_id, folder_name=folder_name, **others)
    return answer | {"project_id": project_id, "folder_filter": folder_name or None}


@Tool(
    title="Search global knowledge",
    description=(
        "Search global sources, which belong to no project: frameworks, languages, best practices. With tags, only "
        "sources that have any of them (most matches first).\n"
        "Use it for general questions: best with tags; for project knowledge, use rag_search_project_knowledge "
        "first.\n"
        f"Tags by category: {format_catalogue()}.\n"
        'Example: rag_search_global_knowledge(query="hooks patterns", tags=["react", "typescript"])'
    ),
    arguments=(QUERY, Argument("tags", "array", "Only sources with any of these tags.", []), MATCH_COUNT, OFFSET),
    documents="page_id",
    family=make_family({"results": [], "tag_filters": None}),
    parts=Items("results"),
    advice="Frameworks, languages, best practices: rag_search_global_knowledge(query, tags=[...]).",
    output=make_schema(results="array", more="boolean"),
)
def rag_search_global_knowledge(call: Call, tags: list[str], **others: JsonValue) -> JsonObject:
    """Search the global sources; more matching tags rank higher among equals."""
    answer = _search(call, scope="global", tags=tags, **others)
    return answer | {"tag_filters": cap_tags(tags)}


def clean_tags(tags: list[str] | None) -> tuple[str, ...]:
    """Return the tags trimmed, without empty ones."""
    return tuple(tag.strip() for tag in tags or () if tag.strip())


def cap_tags(tags: list[str] | None) -> list[JsonValue] | None:
    """Return a search's tags for its answer; None if there are none."""
    return [cut(tag, MAX_TITLE_CHARS) for tag in clean_tags(tags)[:ITEMS_PER_PAGE]] or None


def _explain_no_match(call: Call, searched: ResolvedScope, scope: str, query: str) -> str:
    """Explain why nothing matched; for a project, suggest global knowledge as the specification requires."""
    known = to_one_line(" ".join(searched.notes)) or _find_empty_sources(call, searched)
    reason = known or "Nothing matched. Use fewer or other keywords."
    return reason if known and scope != "project" else _suggest_other_search(call, reason, scope, query)


def _suggest_other_search(call: Call, reason: str, scope: str, query: str) -> str:
    """Return a reason followed by a call that may find more, if such a tool is offered."""
    if scope == "project" and call.offers("rag_search_global_knowledge"):
        return f"{reason} Fall back to {format_next_call('rag_search_global_knowledge', {'query': query})}"
    if scope != "project" and call.offers("rag_get_available_sources"):
        return f"{reason} List the sources with rag_get_available_sources()."
    return reason


def _find_empty_sources(call: Call, searched: ResolvedScope) -> str:
    """Return a message if all sources in scope are empty, "" otherwise; other keywords would not help."""
    sources = [source for source in call.wb.sources.list() if source.id in (searched.source_ids or ())]
    if not sources or any(source.documents_count for source in sources):
        return ""
    return f"The sources in scope ({list_choices(source.title for source in sources)}) have no documents yet."


# Sources of a scope and folders of a project


@Tool(
    title="List available sources",
    arguments=(
        Argument("scope", "string", "Only global or only project sources (default: all).", choices=SCOPES),
        Argument("project_id", "string", "Only this project's sources (and global ones, unless scope is project).", ""),
        OFFSET,
    ),
    family=make_family(
        {"sources": [], "count": 0, "scope_filter": None, "project_filter": None},
        scope_filter="scope",
        project_filter="project_id",
    ),
    parts=Items("sources", count="", total="count"),
    advice="Available sources: rag_get_available_sources; a project's folders: rag_list_project_folders.",
    output=make_schema(sources="array", count="integer"),
)
def rag_get_available_sources(call: Call, scope: str | None, project_id: str, offset: int) -> JsonObject:
    """List sources with their scope, project, folder and tags.

    Use it before a targeted search; to list a source's documents, use rag_list_pages_for_source.
    Example: rag_get_available_sources(scope="project", project_id="proj_123")
    """
    if scope == "global" and project_id:
        raise InvalidInput("scope='global' does not allow project_id. Remove it, or use scope='project'.")
    project = call.wb.projects.get(project_id).id if project_id else None
    kind = None if scope in (None, "all") else scope
    sources = call.wb.sources.list(scope=kind)
    chosen = [source for source in sources if project is None or source.project_id in (None, project)]
    return {
        "success": True,
        "sources": [source_json(source) for source in chosen[offset:]],
        "count": len(chosen),
        "scope_filter": scope,
        "project_filter": project_id or None,
        "error": None,
    }


@Tool(
    title="List a project's folders",
    arguments=(Argument("project_id", "string", "The project: id or exact title.", required=True), OFFSET),
    family=make_family({"folders": [], "project_id": None, "project_title": None, "total": 0}, project_id="project_id"),
    parts=Items("folders", count="", total="total"),
    output=make_schema(folders="array", total="integer"),
)
def rag_list_project_folders(call: Call, project_id: str, offset: int) -> JsonObject:
    """List a project's folders with descriptions and source counts.

    Use it when you start on a project, before rag_search_project_knowledge with folder_name; for sources, use
    rag_get_available_sources.
    Example: rag_list_project_folders(project_id="proj_123")
    """
    project = call.wb.projects.get(project_id)
    folders = call.wb.projects.folders(project.id)
    return {
        "success": True,
        "project_id": project.id,
        "project_title": project.title,
        "folders": [folder_json(folder) for folder in folders[offset:]],
        "total": len(folders),
        "error": None,
    }


def source_json(source: Source) -> JsonObject:
    """Return a source with its scope."""
    names = ("title", "url", "source_type", "scope", "project_id", "folder_name", "tags", "documents_count", "status")
    return {"source_id": source.id, **pick(source, *names, "updated_at")}


def folder_json(folder: Folder) -> JsonObject:
    """Return a folder as the specification shows it."""
    names = ("id", "name", "description", "source_count", "color", "icon_name")
    return pick(folder, *names) | {"description": cut(folder.description)}


# Table of the scoped tools

ESSENTIAL_TOOLS = (
    rag_get_available_sources,
    rag_search_project_knowledge,
    rag_search_global_knowledge,
    rag_list_project_folders,
)
TOOLS = (
    rag_get_available_sources,
    rag_search_knowledge_base,
    rag_search_project_knowledge,
    rag_search_global_knowledge,
    rag_list_project_folders,
)
