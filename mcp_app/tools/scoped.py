"""The three searches: any scope, one project's, everybody's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from mcp_app.arguments import NAMES, Argument, missing
from mcp_app.paging import (
    ITEMS_A_PAGE,
    LONGEST_TITLE,
    Items,
    RankedPage,
    cut,
    first_page,
    next_call,
    one_line,
    past_the_end,
)
from mcp_app.tool import Call, Tool, ToolFamily, compact, form
from workbench.errors import InvalidInput, choices
from workbench.retrieval.legs import RERANKERS
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import DOCUMENTS_CUTOFF, MACHINES_CUTOFF
from workbench.services.sources import spoken_catalogue
from workbench.types import (
    Folder,
    NamesUse,
    Passage,
    ResolvedScope,
    Scope,
    ScopeKind,
    SearchResult,
    Source,
)
from workbench.types.json import JsonObject, JsonValue

if TYPE_CHECKING:
    from workbench.services.search import DocumentHit, SourcePlace

# --- The form in which the scoped tools write: an error carries the empty fields that an answer would have had ---

Empty = Callable[[Mapping[str, object]], JsonValue]

QUERY = Argument("query", "string", "2 to 5 keywords.", required=True)
OFFSET = Argument("offset", "integer", "How many to skip.", 0, low=0)
DEFAULT_COUNT = 5
MATCH_COUNT = Argument(
    "match_count",
    "integer",
    "How many at most.",
    DEFAULT_COUNT,
    low=1,
    high=50,
    unset=0,
)


def family(**empty: Empty) -> ToolFamily:
    """Return a family whose errors also hold ``empty``: each a field's value, from the arguments as they came."""

    def failure(error: str, suggestion: str, given: Mapping[str, object]) -> str:
        fields = {name: value(given) for name, value in empty.items()}
        return compact({"success": False, "error": error, "suggestion": suggestion, **fields})

    return ToolFamily(render=compact, failure=failure)


def nothing(given: Mapping[str, object]) -> list[JsonValue]:
    """Return the empty list of results."""
    del given
    return []


def as_given(name: str, default: JsonValue = None) -> Empty:
    """Return a field that repeats an argument, where it came in a form that can be repeated."""

    def value(given: Mapping[str, object]) -> JsonValue:
        text = given.get(name)
        return text[:200] if isinstance(text, str) and text else default

    return value


# --- The two forms of a result: pages (one entry a document) and chunks (single passages) ---

MOST_PAGES, MOST_CHUNKS = 100, 200  # how deep one search ranks


@dataclass(frozen=True, slots=True)
class ScopedResults:
    """Results as a client sees them, from ``offset`` on; ``more`` tells that further ones match."""

    items: list[JsonObject]
    searched: SearchResult
    under_filled: bool
    more: bool
    end: JsonObject  # a note if the page ends where the ranking has to
    past_the_end: str  # a sentence if the page begins after everything that was found
    said: JsonObject = field(default_factory=dict[str, JsonValue])  # of results below the cutoff


def pages_for(call: Call, query: str, scope: Scope, match_count: int, offset: int) -> ScopedResults:
    """Return documents and the search they come from; without a ``match_count`` (0) the default number."""
    page = RankedPage(offset, match_count or DEFAULT_COUNT, MOST_PAGES)
    result = call.wb.document_search.search(query, Ask(limit=page.asked, scope=scope))
    hits = page.of(result.documents)
    items, said, searched = [page_json(hit) for hit in hits], {}, result.searched
    if not match_count and not offset:
        scores = [hit.score for hit in hits]
        items, said = first_page(items, scores, searched.strategy, DOCUMENTS_CUTOFF, close=searched.evidence.close)
    return _results(items, searched, page, result.documents, "documents", said)


def chunks_for(call: Call, query: str, scope: Scope, match_count: int, offset: int) -> ScopedResults:
    """Return passages and the search they come from; without a ``match_count`` (0) the default number."""
    page = RankedPage(offset, match_count or DEFAULT_COUNT, MOST_CHUNKS)
    result = call.wb.search_service.search(query, Ask(limit=page.asked, scope=scope))
    places = call.wb.document_search.places(passage.source_id for passage in result)
    ranked = [passage for passage in result if passage.source_id in places]
    items, said = [chunk_json(passage, places[passage.source_id]) for passage in page.of(ranked)], {}
    if not match_count and not offset:
        scores = [passage.score for passage in page.of(ranked)]
        items, said = first_page(items, scores, result.strategy, MACHINES_CUTOFF, close=result.evidence.close)
    return _results(items, result, page, ranked, "passages", said)


def _results(
    items: list[JsonObject],
    searched: SearchResult,
    page: RankedPage,
    ranked: Sequence[object],
    kind: str,
    said: JsonObject,
) -> ScopedResults:
    more = page.offset + len(items) < len(ranked)
    under_filled = page.is_under_filled(ranked) and not more
    end = page.end(ranked, kind, "name a project, a folder, tags or a source")
    return ScopedResults(items, searched, under_filled, more, end, past_the_end(page.offset, ranked), said)


def reranked(passages: Iterable[Passage]) -> bool:
    """Tell whether the order is the reranker's: it leaves its leg at every passage it has seen."""
    return any(not RERANKERS.isdisjoint(passage.attribution) for passage in passages)


def page_json(hit: DocumentHit) -> JsonObject:
    """Return a document that was found; aggregate_similarity falls down the list and lies in 0..1."""
    return {
        "page_id": hit.document_id,
        "url": hit.best.url,
        "title": cut(hit.title, LONGEST_TITLE),
        "section_title": _section(hit.best),
        "word_count": hit.word_count,
        "chunk_matches": len(hit.passages),
        "aggregate_similarity": round(hit.score, 4),
        "average_similarity": round(max(0.0, hit.average_similarity), 4),
        **place_json(hit.place),
        "preview": cut(hit.best.text),
    }


def chunk_json(passage: Passage, place: SourcePlace) -> JsonObject:
    """Return a passage that was found."""
    answer: JsonObject = {
        "id": passage.passage_id,
        "content": cut(passage.text),
        "metadata": {
            "document_id": passage.document_id,
            "title": cut(passage.document_title, LONGEST_TITLE),
            "section_title": _section(passage),
            "url": passage.url,
            "chunk_index": passage.metadata.get("ordinal", 0),
            "language": passage.metadata.get("language"),
        },
        "similarity_score": round(max(0.0, passage.similarity), 4),
        **place_json(place),
    }
    return answer | ({"rerank_score": round(passage.score, 4)} if reranked([passage]) else {})


def place_json(place: SourcePlace) -> JsonObject:
    """Return where a result stands."""
    return {
        "source_id": place.source_id,
        "scope": place.scope,
        "project_id": place.project_id,
        "folder_name": place.folder_name,
        "tags": list(place.tags),
    }


def _section(passage: Passage) -> str | None:
    return cut(passage.headings[-1], LONGEST_TITLE) if passage.headings else None


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
    inside = [source for source in call.wb.sources.list() if source.id in (searched.source_ids or ())]
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


# --- Places to search: the sources of a scope, the folders of a project ---


def available_sources(call: Call, scope: str | None, project_id: str, offset: int) -> JsonObject:
    """List the sources of a scope; with a project and no scope that project's and the global ones."""
    if scope == "global" and project_id:
        raise InvalidInput("The scope 'global' cannot have a project; drop project_id, or use scope='project'.")
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


def list_project_folders(call: Call, project_id: str, offset: int) -> JsonObject:
    """List the folders of a project."""
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
    """Return a source with where it stands."""
    answer = source.to_dict()
    return {
        "source_id": source.id,
        "title": cut(source.title, LONGEST_TITLE),
        "url": source.url,
        "source_type": source.source_type,
        "scope": source.scope,
        "project_id": source.project_id,
        "folder_name": source.folder_name,
        "tags": list(source.tags),
        "documents_count": source.documents_count,
        "status": source.status,
        "updated_at": answer["updated_at"],
    }


def folder_json(folder: Folder) -> JsonObject:
    """Return a folder as the specification shows it."""
    return {
        "id": folder.id,
        "name": folder.name,
        "description": cut(folder.description),
        "source_count": folder.source_count,
        "color": folder.color,
        "icon_name": folder.icon_name,
    }


GET_AVAILABLE_SOURCES = Tool(
    name="rag_get_available_sources",
    title="See what can be searched",
    description=(
        "List the sources with their scope, project, folder and tags.\n"
        "Use it before a targeted search; to see a source's documents use rag_list_pages_for_source.\n"
        'Example: rag_get_available_sources(scope="project", project_id="proj_123")'
    ),
    arguments=(
        Argument("scope", "string", "Only global or only project sources; by default all.", choices=SCOPES),
        Argument(
            "project_id", "string", "Only this project's sources (and, unless scope is project, the global ones).", ""
        ),
        OFFSET,
    ),
    run=available_sources,
    family=family(
        sources=nothing, count=lambda given: 0, scope_filter=as_given("scope"), project_filter=as_given("project_id")
    ),
    parts=Items("sources", count="", total="count"),
    advice="What there is: rag_get_available_sources; a project's folders: rag_list_project_folders.",
    output=form(sources="array", count="integer"),
)

LIST_PROJECT_FOLDERS = Tool(
    name="rag_list_project_folders",
    title="List a project's folders",
    description=(
        "List a project's folders with what each is for and how many sources it has.\n"
        "Use it when you start on a project, before rag_search_project_knowledge with folder_name; for the sources "
        "use rag_get_available_sources.\n"
        'Example: rag_list_project_folders(project_id="proj_123")'
    ),
    arguments=(Argument("project_id", "string", "The project: its id or exact title.", required=True), OFFSET),
    run=list_project_folders,
    family=family(
        folders=nothing, project_id=as_given("project_id"), project_title=lambda given: None, total=lambda given: 0
    ),
    parts=Items("folders", count="", total="total"),
    output=form(folders="array", total="integer"),
)


# --- The scoped tools: what a project knows, what everybody knows, and both together ---

ESSENTIAL = (GET_AVAILABLE_SOURCES, SEARCH_PROJECT, SEARCH_GLOBAL, LIST_PROJECT_FOLDERS)
TOOLS = (GET_AVAILABLE_SOURCES, SEARCH_KNOWLEDGE_BASE, SEARCH_PROJECT, SEARCH_GLOBAL, LIST_PROJECT_FOLDERS)
