"""The knowledge tools: search, documents, sources and crawls of websites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from mcp_app.arguments import METADATA_ARGUMENT, NAMES_ARGUMENT, Argument, Refused, make_missing_error
from mcp_app.paging import (
    ITEMS_PER_PAGE,
    MAX_TEXT_CHARS,
    MAX_TITLE_CHARS,
    Items,
    RankedPage,
    apply_cutoff,
    cut,
    explain_past_end,
    format_next_call,
)
from mcp_app.tool import (
    Call,
    Tool,
    dump_json,
    format_follow_up,
    job_json,
    make_action_schema,
    make_schema,
    pick,
    require,
)
from workbench.errors import NotFound
from workbench.retrieval.legs import RERANKERS
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import AGENT_CUTOFF
from workbench.retrieval.strategies import STRATEGIES, UNPROMOTED_TOOL_STRATEGY
from workbench.services.checks import JOB_THRESHOLD_BYTES, estimate_text_bytes
from workbench.text import MAX_PASSAGES_STEMMED_AT_ONCE
from workbench.types import Document, JsonObject, JsonValue, NamesUse, Passage, Scope, Source, copies_json

if TYPE_CHECKING:
    from workbench.services.crawls import CrawlJob
    from workbench.storage.jobs import Job

# Arguments, look-ups, and sources and documents as JSON

PAGE = Argument("page", "integer", "list: page number, from 1.", 1, low=1, high=1_000_000)
PER_PAGE = Argument("per_page", "integer", f"Items per page; capped at {ITEMS_PER_PAGE}.", 10, low=1, high=1_000_000)
OFFSET = Argument("offset", "integer", "list: items to skip.", low=0)
ACTIONS = ("create", "get", "list", "update", "delete")
MAX_METADATA_CHARS = 5 * MAX_TEXT_CHARS  # characters, for a single document
LIST_SOURCES_HINT = "Use manage_source(action='list') to see available sources"
LIST_DOCUMENTS_HINT = "Verify document_id or use manage_document(action='list')"


def find_source(call: Call, key: str) -> Source:
    """Return a source by id, URL or exact title. Raises Refused."""
    try:
        return call.wb.sources.get(key)
    except NotFound:
        raise Refused(f"Invalid source_id: {key} not found", LIST_SOURCES_HINT) from None


def find_document(call: Call, document_id: str) -> Document:
    """Return a document by id. Raises Refused."""
    try:
        return call.wb.documents.get(document_id)
    except NotFound:
        raise Refused(f"Document not found: {document_id}", LIST_DOCUMENTS_HINT) from None


def source_json(source: Source) -> JsonObject:
    """Return a source as the tools show it."""
    names = ("id", "title", "url", "source_type", "status", "documents_count", "passages_count", "scope", "project_id")
    names += ("folder_name", "tags", "created_at", "updated_at")
    reading = {name: value for name, value in pick(source, "encoding", "hidden").items() if value not in ("", "read")}
    return pick(source, *names) | reading


def document_json(document: Document, passages: str = "chunks_count", room: int = MAX_TEXT_CHARS) -> JsonObject:
    """Return a document without its text.

    Args:
        document: The document.
        passages: Name of the field with the number of passages.
        room: Characters of metadata; entries that do not fit are counted instead.
    """
    return {
        **pick(document, "id", "title", "source_id", "document_type", "url", "path"),
        passages: document.passages_count,
        **pick(document, "status", "created_at", "updated_at"),
        "metadata": _fit_metadata(document.metadata, room),
    }


def resolve_page(page: int, per_page: int, offset: int | None) -> tuple[int, int]:
    """Return (items per page, items to skip), with at most 20 per page; an offset overrides the page."""
    size = min(per_page, ITEMS_PER_PAGE)
    return size, (page - 1) * size if offset is None else offset


def list_json(name: str, items: list[JsonObject], total: int, page: int, size: int) -> JsonObject:
    """Return a page of items as specified, with the number of all."""
    counts: JsonObject = {"total_count": total, "count": len(items), "page": page, "per_page": size}
    return {"success": True, name: items, **counts}


def _fit_metadata(metadata: Mapping[str, JsonValue], room: int) -> JsonObject:
    """Return the entries that fit into ``room`` characters of JSON, and the number of omitted ones."""
    fitting: JsonObject = {}
    for key, value in ((key, _shorten(value)) for key, value in metadata.items()):
        size = len(dump_json({key: value}))
        if size <= room:
            fitting[key] = value
            room -= size
    missing = len(metadata) - len(fitting)
    return fitting | ({"...": f"{missing} of {len(metadata)} entries are too long to show"} if missing else {})


def _shorten(value: JsonValue) -> JsonValue:
    """Cut long texts at any level of the metadata."""
    if isinstance(value, Mapping):
        return {key: _shorten(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorten(item) for item in value]
    return cut(value, 300) if isinstance(value, str) else value


# search_knowledge_base

SEARCH_TYPES = ("vector", "hybrid", "rerank")
DEFAULT_COUNT, MIN_SIMILARITY = 10, 0.05
MAX_RANKED = 200  # passages that one search ranks, offset included


@Tool(
    title="Search the knowledge base",
    arguments=(
        Argument("query", "string", "Keywords or a question.", required=True),
        Argument("source_id", "string", "Only this source: id, URL or exact title.", ""),
        Argument("language", "string", "Only this language, e.g. de or german.", ""),
        METADATA_ARGUMENT,
        NAMES_ARGUMENT,
        Argument("match_count", "integer", "Maximum number of passages.", DEFAULT_COUNT, low=1, high=50, unset=0),
        Argument(
            "search_type",
            "string",
            "vector: by meaning. hybrid: by meaning and words. rerank: hybrid, then reranked by token similarity. "
            "Default: the strategy promoted for this scope, else hybrid; the answer names the one used.",
            UNPROMOTED_TOOL_STRATEGY,
            choices=SEARCH_TYPES,
            unset="",
        ),
        Argument(
            "similarity_threshold",
            "number",
            "Minimum cosine similarity; matches of words unknown to the model are never hidden.",
            MIN_SIMILARITY,
            low=0,
            high=1,
            unset=-1.0,
        ),
        Argument("offset", "integer", "Passages to skip.", 0, low=0),
    ),
    documents="document_id",
    parts=Items("results"),
    advice="Passages, with a choice of search type and similarity threshold: search_knowledge_base.",
    output=make_schema(results="array", more="boolean", search_type="string"),
)
def search_knowledge_base(
    call: Call,
    query: str,
    source_id: str,
    match_count: int,
    search_type: str,
    similarity_threshold: float,
    offset: int,
    language: str = "",
    metadata: Sequence[str] = (),
    names: str = "prefer",
) -> JsonObject:
    """Find the passages that answer a question, best first.

    Use it for precise questions, in all sources or one: the best choice if you know no project; to find documents, use
    rag_search_knowledge_base; for a project, rag_search_project_knowledge; for general knowledge by tags,
    rag_search_global_knowledge; for code, rag_search_code_examples.
    Example: search_knowledge_base(query="database optimization", search_type="hybrid", match_count=5)
    """
    scope = Scope(
        sources=(find_source(call, source_id).id,) if source_id else None,
        languages=(language,) if language.strip() else (),
        metadata=tuple(metadata),
        names=cast(NamesUse, names),
    )
    page = RankedPage(
        offset, match_count or DEFAULT_COUNT, MAX_RANKED, "passages", "set source_id, language or metadata"
    )
    ask = Ask(
        search_type or None,
        page.limit,
        scope,
        min_similarity=MIN_SIMILARITY if similarity_threshold < 0 else similarity_threshold,
        built_in=UNPROMOTED_TOOL_STRATEGY,
        interleaves=True,
    )
    result = call.wb.search_service.search(query, ask)
    passages = list(page.items(result.results))
    items, cutoff = [passage_json(passage) for passage in passages], {}
    if not match_count and similarity_threshold < 0 and not offset:
        scores = [hit.score for hit in passages]
        items, cutoff = apply_cutoff(items, scores, result.strategy, AGENT_CUTOFF, close=result.evidence.close)
    answer: JsonObject = {
        "success": True,
        "results": list(items),
        "count": len(items),
        "more": offset + len(items) < len(result),
        "search_type": infer_search_type(result.strategy),
        "strategy": result.strategy,
        "query": cut(query, MAX_TITLE_CHARS),
        **cutoff,
    }
    other_words = "Use other words" + (", or remove source_id to search all sources" if source_id else "")
    answer |= call.describe_search(result, is_empty=not passages, suggestion=other_words)
    answer |= page.end(result.results)
    if not passages:
        no_match = "Nothing matched. Lower similarity_threshold, remove source_id or metadata, or use other words"
        no_match = result.degraded[-1] if result.is_early else no_match
        answer["suggestion"] = explain_past_end(offset, result.results) or no_match
    return answer


def infer_search_type(strategy: str) -> str:
    """Return the search type closest to a promoted strategy, or the name of a strategy of the user's own."""
    if STRATEGIES[strategy].own is not None:
        return strategy
    legs = STRATEGIES[strategy].legs
    if not RERANKERS.isdisjoint(legs):
        return "rerank"
    return "hybrid" if STRATEGIES[strategy].uses_words else "vector"


def passage_json(passage: Passage) -> JsonObject:
    """Return a passage as specified."""
    metadata: JsonObject = {
        "source_id": passage.source_id,
        "chunk_index": passage.metadata.get("ordinal", 0),
        "url": passage.url,
        "similarity": round(max(0.0, passage.similarity), 4),
    }
    further: JsonObject = {
        "language": passage.metadata.get("language"),
        "path": cut(passage.path, MAX_TITLE_CHARS),
        "section": cut(" > ".join(passage.headings), MAX_TITLE_CHARS),
        **{name: passage.metadata.get(name) for name in ("page", "page_label")},
    }
    metadata |= {name: value for name, value in further.items() if value}
    return {
        "chunk_id": passage.passage_id,
        "document_id": passage.document_id,
        "document_title": cut(passage.document_title, MAX_TITLE_CHARS),
        "text": cut(passage.text),
        "score": round(passage.score, 4),
        "match_type": passage.match_type,
        "metadata": metadata,
        **copies_json(passage.copies),
    }


# manage_document

_OUTCOME_MESSAGES = {
    "created": "Document ingested successfully with {chunks} chunks",
    "updated": "Document updated successfully with {chunks} chunks",
    "unchanged": "The source already has this content; nothing was changed",
}


@Tool(
    title="Manage documents",
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
def manage_document(call: Call, action: str, **arguments: JsonValue) -> JsonObject:
    """Create, show, list, update or delete documents. create takes file_path or content (stored once per source); a
    large one becomes a job; get_job follows it. delete is permanent.

    Use it for single documents; to read one, use rag_read_full_page; for collections, manage_source.
    Example: manage_document(action="create", file_path="notes/rag.md", source_id="src_abc123")
    """
    return _DOCUMENT_ACTIONS[action](call, SimpleNamespace(**arguments))


def _create_document(call: Call, given: SimpleNamespace) -> JsonObject:
    if not given.file_path and not given.content:
        raise make_missing_error("file_path", "create requires file_path (a file) or content (the text itself).")
    content = _read_content(call, given)
    source = find_source(call, given.source_id).id if given.source_id else None
    if is_large(content["path"], given.content):
        return make_job_answer(call, call.wb.jobs.enqueue_document(**content, source=source))
    written = call.wb.documents.create(
        **content, source=source, on_progress=call.on_progress, should_stop=call.should_stop
    )
    message = _OUTCOME_MESSAGES[written.outcome].format(chunks=written.document.passages_count)
    answer = document_json(written.document, "chunks_created")
    notes = " ".join(filter(None, [written.offer, *written.notes]))
    message = f"{message}. {notes}" if notes else message
    return {"success": True, "document": answer, "message": message, "outcome": written.outcome}


def _get_document(call: Call, given: SimpleNamespace) -> JsonObject:
    document = find_document(call, require(given.document_id, "document_id", "get", LIST_DOCUMENTS_HINT))
    answer = document_json(document, room=MAX_METADATA_CHARS) | {
        "characters": len(document.text or ""),
        "preview": cut(document.text),
        "full_text": f"resource document://{document.id}",
    }
    return {"success": True, "document": answer}


def _list_documents(call: Call, given: SimpleNamespace) -> JsonObject:
    source = find_source(call, given.source_id).id if given.source_id else None
    size, skipped = resolve_page(given.page, given.per_page, given.offset)
    documents = call.wb.documents.list(source_id=source, limit=size, offset=skipped)
    total = call.wb.documents.count(source_id=source)
    return list_json("documents", [document_json(document) for document in documents], total, given.page, size)


def _update_document(call: Call, given: SimpleNamespace) -> JsonObject:
    key = find_document(call, require(given.document_id, "document_id", "update", LIST_DOCUMENTS_HINT)).id
    if not any((given.title, given.url, given.metadata, given.content, given.file_path)):
        raise Refused("Nothing to update", "Give a new title, url, metadata, content or file_path")
    content = _read_content(call, given)
    if is_large(content["path"], given.content):
        return make_job_answer(call, call.wb.jobs.enqueue_document(**content, document=key))
    written = call.wb.documents.update(key, **content, on_progress=call.on_progress, should_stop=call.should_stop)
    message = ". ".join(["Document updated successfully", *written.notes])
    return {"success": True, "document": document_json(written.document), "message": message}


def _delete_document(call: Call, given: SimpleNamespace) -> JsonObject:
    key = find_document(call, require(given.document_id, "document_id", "delete", LIST_DOCUMENTS_HINT)).id
    deletion = call.wb.documents.delete(key)
    deleted: JsonObject = {"document_id": deletion.id, **pick(deletion, "title", "passages", "citations")}
    message = f"Document and {deletion.passages} associated chunks deleted successfully"
    return {"success": True, "message": message, "deleted": deleted}


def _read_content(call: Call, given: SimpleNamespace) -> dict[str, Any]:
    """Return the content of a document and its other fields as keyword arguments."""
    if given.content and given.file_path:
        raise Refused("Give either file_path or content, not both", "Remove one of them")
    path = call.files.file(given.file_path) if given.file_path else None
    about = {"title": given.title or None, "url": given.url or None, "metadata": given.metadata}
    return {"path": path, "text": given.content or None, **about}


def is_large(path: Path | None, content: str) -> bool:
    """Return whether a file or text is large enough for a job; compressed files count as several times their size."""
    return (len(content) if path is None else estimate_text_bytes(path.name, path.stat().st_size)) > JOB_THRESHOLD_BYTES


def make_job_answer(call: Call, job: Job) -> JsonObject:
    """Start the worker and return the answer for a document that a job ingests."""
    call.opening.work_jobs()
    message = f"The document is large and is being ingested in the background.{format_follow_up(call, job)}"
    return {"success": True, "job": job_json(job), "message": message, "outcome": "queued"}


_RUNS_ON_DOCUMENTS = (_create_document, _get_document, _list_documents, _update_document, _delete_document)
_DOCUMENT_ACTIONS: dict[str, Callable[..., JsonObject]] = dict(zip(ACTIONS, _RUNS_ON_DOCUMENTS, strict=True))

# manage_source

SOURCE_TYPES = ("upload", "crawl", "api")


@Tool(
    title="Manage sources",
    arguments=(
        Argument("action", "string", "What to do.", required=True, choices=ACTIONS),
        Argument("source_id", "string", "The source: id, URL or exact title; not for create.", ""),
        Argument("title", "string", "create, update: its name.", "", reading=False),
        Argument("url", "string", "create, update: the base URL.", "", reading=False),
        Argument(
            "source_type",
            "string",
            "create: the origin of its documents.",
            "upload",
            choices=SOURCE_TYPES,
            reading=False,
        ),
        PAGE,
        PER_PAGE,
        OFFSET,
        Argument("project_id", "string", "create, update: its project.", "", reading=False),
        Argument("folder_name", "string", "create, update: its folder there.", "", reading=False),
        Argument("tags", "array", "create, update: its tags.", [], reading=False),
        Argument("language", "string", "update: its language, or auto.", "", reading=False),
        Argument("encoding", "string", "update: encoding of its texts, or auto.", "", reading=False),
        Argument("hidden", "string", "update: comments and hidden parts.", choices=("read", "skip"), reading=False),
    ),
    read_only=False,
    destructive=True,
    idempotent=False,
    reading_actions=("get", "list"),
    reading_description=(
        "Show or list sources (collections of documents) with their counts.\n"
        "Use it for single sources; to list sources by project, use rag_get_available_sources.\n"
        'Example: manage_source(action="get", source_id="src_abc123")'
    ),
    parts=Items("sources", total="total_count"),
    output=make_action_schema(source="object", sources="array", total_count="integer", message="string"),
)
def manage_source(call: Call, action: str, **arguments: JsonValue) -> JsonObject:
    """Create, show, list, update or delete sources (collections of documents). delete also deletes their documents and
    is permanent.

    Use it to organise; for single documents, use manage_document; to list sources by project,
    rag_get_available_sources.
    Example: manage_source(action="create", title="Research Papers", source_type="upload")
    """
    return _SOURCE_ACTIONS[action](call, SimpleNamespace(**arguments))


def _create_source(call: Call, given: SimpleNamespace) -> JsonObject:
    source = call.wb.sources.create(
        require(given.title, "title", "create", "It names the source."),
        source_type=given.source_type,
        url=given.url or None,
        project=given.project_id or None,
        folder=given.folder_name or None,
        tags=given.tags,
    )
    return {"success": True, "source": source_json(source), "message": "Source created successfully"}


def _get_source(call: Call, given: SimpleNamespace) -> JsonObject:
    source = find_source(call, require(given.source_id, "source_id", "get", LIST_SOURCES_HINT))
    return {"success": True, "source": source_json(source)}


def _list_sources(call: Call, given: SimpleNamespace) -> JsonObject:
    size, skipped = resolve_page(given.page, given.per_page, given.offset)
    sources = call.wb.sources.list(limit=size, offset=skipped)
    return list_json("sources", [source_json(source) for source in sources], call.wb.sources.count(), given.page, size)


def _update_source(call: Call, given: SimpleNamespace) -> JsonObject:
    source = find_source(call, require(given.source_id, "source_id", "update", LIST_SOURCES_HINT))
    changes: dict[str, Any] = {"project": given.project_id, "folder": given.folder_name}
    changes |= {name: getattr(given, name) for name in ("title", "url", "tags", "language", "encoding", "hidden")}
    wanted = {name: value for name, value in changes.items() if value}
    if not wanted:
        names = "title, url, project_id, folder_name, tags, language, encoding or hidden"
        raise Refused("Nothing to update", f"Give a {names}")
    build = source.passages_count <= MAX_PASSAGES_STEMMED_AT_ONCE
    changed = call.wb.sources.update(source.id, **wanted, build=build)
    answer: JsonObject = {"success": True, "source": source_json(changed), "message": "Source updated successfully"}
    if given.language and source.passages_count > MAX_PASSAGES_STEMMED_AT_ONCE:
        jobs = call.wb.jobs.enqueue_stemming()
        call.opening.work_jobs()
        next_step = "".join(format_follow_up(call, job) for job in jobs[:1])
        answer["message"] = f"Source updated; its passages are being stemmed again in the background.{next_step}"
    return answer


def _delete_source(call: Call, given: SimpleNamespace) -> JsonObject:
    source = find_source(call, require(given.source_id, "source_id", "delete", LIST_SOURCES_HINT))
    deletion = call.wb.sources.delete(source.id)
    deleted: JsonObject = {"source_id": deletion.id, **pick(deletion, "title", "documents", "passages", "citations")}
    counts = f"{deletion.documents} documents, {deletion.passages} chunks"
    message = f"Source and all associated documents deleted successfully ({counts})"
    return {"success": True, "message": message, "deleted": deleted}


_RUNS_ON_SOURCES = (_create_source, _get_source, _list_sources, _update_source, _delete_source)
_SOURCE_ACTIONS: dict[str, Callable[..., JsonObject]] = dict(zip(ACTIONS, _RUNS_ON_SOURCES, strict=True))

# crawl_website and manage_crawl_job

CRAWL_ACTIONS = ("get", "list", "cancel", "resume", "retry_failed", "accept_removals")
MAX_PAGES = 100  # pages per crawl
MAX_FAILURES_SHOWN = 10  # failed or held pages per answer
MAX_REASONS_SHOWN = 8  # reasons for URLs not fetched, most frequent first
_CONTINUING_ACTIONS = ("resume", "retry_failed", "accept_removals")
_HIDDEN_FIELDS = ("options", "outcomes", "bytes", "updated_at")
# the specification has fewer than the queue
_SPECIFIED_STATUS = {"queued": "running", "completed_with_errors": "completed"}
_LIST_JOBS_HINT = "List the jobs with manage_crawl_job(action='list')"


@Tool(
    title="Crawl a website",
    arguments=(
        Argument("url", "string", "Start URL: http:// or https://.", required=True),
        Argument("recursive", "boolean", "Follow links within the site.", False),
        Argument("max_pages", "integer", f"Maximum number of pages; capped at {MAX_PAGES}.", 10, low=1, high=1_000_000),
        Argument("source_id", "string", "Add to this source (default: a new one).", ""),
        Argument("title", "string", "Title of the new source (default: the site's name).", ""),
        Argument("exclude_patterns", "array", "URLs to skip: substrings or globs.", []),
        Argument("project_id", "string", "Project of the new source (default: global).", ""),
        Argument("folder_name", "string", "Folder of the new source in the project.", ""),
        Argument("refresh", "boolean", "Also fetch unchanged pages.", False),
    ),
    read_only=False,
    idempotent=False,
    open_world=True,
    advice="Index a website: crawl_website returns a job; follow it with manage_crawl_job(action='get').",
    output=make_schema(crawl_job="object"),
)
def crawl_website(
    call: Call,
    url: str,
    recursive: bool,
    max_pages: int,
    source_id: str,
    title: str,
    exclude_patterns: list[str],
    project_id: str,
    folder_name: str,
    refresh: bool,
) -> JsonObject:
    """Index a web page, with recursive=true also pages it links to. Returns a job for manage_crawl_job(action='get').

    Use it for websites; for files, use manage_document; to read a page without storing it, fetch_url.
    Example: crawl_website(url="https://docs.example.com/", recursive=true, exclude_patterns=["/archive/"])
    """
    if not url.lower().startswith(("http://", "https://")):
        raise Refused("Invalid URL: must start with http:// or https://", "Provide fully qualified URL")
    job = call.wb.crawls.start(
        url,
        recursive=recursive,
        max_pages=min(max_pages, MAX_PAGES),
        source=find_source(call, source_id).id if source_id else None,
        new_source=not source_id,
        title=title or None,
        project=project_id or None,
        folder=folder_name or None,
        exclude=tuple(exclude_patterns),
        refresh=refresh,
    )
    call.opening.work_jobs()
    answer = crawl_json(job)
    message = f"Crawl job started, use manage_crawl_job(action='get', job_id='{answer['id']}') to check progress"
    return {"success": True, "crawl_job": answer, "message": message}


@Tool(
    title="Manage crawls",
    arguments=(
        Argument("action", "string", "What to do.", required=True, choices=CRAWL_ACTIONS),
        Argument("job_id", "string", "The job; not for list.", ""),
        PAGE,
        PER_PAGE,
        OFFSET,
    ),
    read_only=False,
    idempotent=True,
    open_world=True,
    reading_actions=("get", "list"),
    reading_description=(
        "Show the progress of a crawl, or list crawls.\n"
        "Use it for crawls; for any job, use get_job.\n"
        'Example: manage_crawl_job(action="get", job_id="job_abc123")'
    ),
    parts=Items("crawl_jobs", total="total_count"),
    output=make_action_schema(crawl_job="object", crawl_jobs="array", total_count="integer", job="object"),
)
def manage_crawl_job(call: Call, action: str, job_id: str, page: int, per_page: int, offset: int | None) -> JsonObject:
    """Show, list, cancel, resume or retry crawls; get, cancel and resume also work for other jobs.

    Use it after crawl_website, which starts a crawl.
    Example: manage_crawl_job(action="get", job_id="job_abc123")
    """
    if action == "list":
        return _list_crawls(call, page, per_page, offset)
    job_id = require(job_id, "job_id", action, _LIST_JOBS_HINT)
    crawls = call.wb.crawls
    run: Callable[[str], CrawlJob] = getattr(crawls, action)  # one of CRAWL_ACTIONS
    try:
        job = run(job_id)
    except NotFound:
        return _manage_other_job(call, action, job_id)
    if action in _CONTINUING_ACTIONS:
        call.opening.work_jobs()
    answer = crawl_json(job)
    if job.pages_failed:
        _, first = resolve_page(page, per_page, offset)
        failures = crawls.failures(job_id)
        answer["failures"] = failures[first : first + MAX_FAILURES_SHOWN]
        if (last := first + MAX_FAILURES_SHOWN) < len(failures):
            following = format_next_call("manage_crawl_job", {}, action="get", job_id=job_id, offset=last)
            answer["failures_note"] = f"Failed pages {first + 1} to {last} of {len(failures)}. Next: {following}"
    if job.outcomes["held"]:
        held = crawls.pages(job_id, outcome="held", limit=MAX_FAILURES_SHOWN)
        answer["held"] = [{"url": page.url, "reason": page.reason} for page in held]
        accepting = format_next_call("manage_crawl_job", {}, action="accept_removals", job_id=job_id)
        answer["held_note"] = f"{job.outcomes['held']} removals are held. If the pages are really gone: {accepting}"
    return {"success": True, "crawl_job": answer, "message": _describe_progress(answer)}


def _manage_other_job(call: Call, action: str, job_id: str) -> JsonObject:
    """Show, cancel or resume a job other than a crawl. Raises Refused."""
    jobs = call.wb.jobs
    verbs = {"get": jobs.get, "cancel": jobs.cancel, "resume": jobs.resume}
    try:
        if action not in verbs:
            raise NotFound("job", job_id)
        job = verbs[action](job_id)
    except NotFound:
        raise Refused(f"Crawl job not found: {job_id}", _LIST_JOBS_HINT) from None
    if action in _CONTINUING_ACTIONS:
        call.opening.work_jobs()
    shown = job_json(job)
    return {"success": True, "job": shown, "message": f"Job {job.status}: {job.stalled or shown['message']}"}


def _list_crawls(call: Call, page: int, per_page: int, offset: int | None) -> JsonObject:
    size, skipped = resolve_page(page, per_page, offset)
    jobs = [crawl_json(job) for job in call.wb.crawls.list(limit=size, offset=skipped)]
    return list_json("crawl_jobs", jobs, call.wb.crawls.count(), page, size)


def crawl_json(job: CrawlJob) -> JsonObject:
    """Return a crawl as specified; ``state`` is its exact status."""
    answer = {name: value for name, value in job.to_dict().items() if name not in _HIDDEN_FIELDS}
    if not job.stalled:
        del answer["stalled"]
    reasons = list(job.not_fetched.items())
    rest = sum(count for _, count in reasons[MAX_REASONS_SHOWN:])
    answer["not_fetched"] = dict(reasons[:MAX_REASONS_SHOWN]) | ({"other reasons": rest} if rest else {})
    return answer | {"status": _SPECIFIED_STATUS.get(job.status, job.status), "state": job.status}


def _describe_progress(job: JsonObject) -> str:
    crawled, documents = job.get("pages_crawled", 0), job.get("documents_created", 0)
    stalled = f". {job['stalled']}" if job.get("stalled") else ""
    return f"Crawl {job['status']}: {crawled} pages crawled, {documents} documents created{stalled}"


TOOLS = (search_knowledge_base, manage_document, manage_source, crawl_website, manage_crawl_job)
