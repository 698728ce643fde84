"""The reading tools: texts, code, explanations, web pages, projects, jobs, and the tools of hosted connectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from mcp_app.arguments import Argument, Refused, make_missing_error
from mcp_app.paging import (
    FEW_RESULTS,
    MAX_TEXT_CHARS,
    MAX_TITLE_CHARS,
    Items,
    TextPart,
    count_above_cutoff,
    cut,
    format_next_call,
    slice_text,
)
from mcp_app.tool import Call, Tool, job_json, make_action_schema, make_schema, pick
from mcp_app.tools.scoped import folder_json
from workbench.errors import NotFound
from workbench.marking import find_own_word
from workbench.retrieval.legs import leg_kind
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import DOCUMENT_CUTOFF
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Document, JsonObject, Passage, Project, Scope, Value, copies_json, preference_text

if TYPE_CHECKING:
    from workbench.retrieval.explain import Explanation
    from workbench.storage.jobs import Job

# Common arguments

MAX_PART_CHARS = 24_000  # characters per part; the budget may allow fewer
TEXT_OFFSET = Argument("offset", "integer", "Start position, in characters.", 0, low=0)
TEXT_LENGTH = Argument("length", "integer", "Maximum number of characters.", MAX_PART_CHARS, low=1, high=MAX_PART_CHARS)
ITEM_OFFSET = Argument("offset", "integer", "Results to skip.", 0, low=0)
LIMIT = Argument("limit", "integer", "Maximum number of results.", 20, low=1, high=20)


# rag_search_code_examples

DEFAULT_COUNT = 5
PROSE_TOOLS = ("rag_search_knowledge_base", "search_knowledge_base")
MAX_RANKED = 100  # passages whose surroundings are searched for code


@Tool(
    title="Search code examples",
    arguments=(
        Argument("query", "string", "What the code does.", required=True),
        Argument("language", "string", "Only this language, e.g. python.", ""),
        Argument("source_id", "string", "Only this source: id, URL or exact title.", ""),
        Argument("match_count", "integer", "Maximum number of results.", DEFAULT_COUNT, low=1, high=20, unset=0),
        ITEM_OFFSET,
    ),
    parts=Items("results", total="total"),
    documents="page_id",
    advice="Code examples: rag_search_code_examples(query, language).",
    output=make_schema(results="array", total="integer"),
)
def rag_search_code_examples(
    call: Call, query: str, language: str, source_id: str, match_count: int, offset: int
) -> JsonObject:
    """Find code blocks with their headings, best first; to read on, pass 'start' as offset to rag_read_full_page.

    Use it for code examples: best for code only; for prose, use rag_search_knowledge_base.
    Example: rag_search_code_examples(query="vector index", language="sql")
    """

    scope = Scope(sources=(source_id,)) if source_id else Scope()
    result = call.wb.search_service.search(query, Ask(limit=MAX_RANKED, scope=scope))
    groups: dict[str, list[Passage]] = {}
    for passage in result:
        groups.setdefault(passage.document_id, []).append(passage)
    examples: list[JsonObject] = [
        {
            "page_id": example.passage.document_id,
            "chunk_id": example.passage.passage_id,
            "title": cut(example.passage.document_title, MAX_TITLE_CHARS),
            "url": example.passage.url,
            "heading": cut(example.heading, MAX_TITLE_CHARS),
            "language": example.language,
            "code": cut(example.code, MAX_TEXT_CHARS),
            "start": example.start,
            "similarity_score": round(max(0.0, example.passage.similarity), 4),
        }
        for example in find_code(call.wb.documents.get, groups, language)
    ]
    few = FEW_RESULTS if not result.evidence.close and not offset else DEFAULT_COUNT
    chosen = examples[offset : offset + (match_count or few)]
    answer: JsonObject = {"success": True, "results": chosen, "count": len(chosen), "total": len(examples)}
    other_words = "Use other words" + (", or drop source_id to search every source" if source_id else "")
    answer |= call.describe_search(result, is_empty=not chosen, suggestion=other_words)
    if len(result) == MAX_RANKED and offset + len(chosen) >= len(examples):
        answer["note"] = (
            f"Only code near the best {MAX_RANKED} passages is searched. For other code, set source_id or use a more "
            "specific query."
        )
    if not examples:
        wanted = f" in {language}" if language else ""
        prose = next((name for name in PROSE_TOOLS if call.offers(name)), "")
        answer["suggestion"] = (
            f"No code{wanted} found near the best passages. Use other words{prose and f', or {prose}'}."
        )
    return answer


# explain

MAX_WORDS_SHOWN = 50  # query words shown, most important first
_PASSAGE_ID_HINT = "Search results have it as chunk_id or page_id"


@Tool(
    title="Explain a hit",
    arguments=(
        Argument("query", "string", "The query of the search.", required=True),
        Argument("chunk_id", "string", "The passage.", ""),
        Argument("page_id", "string", "Or the document.", ""),
        Argument("strategy", "string", "A strategy, e.g. vector (default: the promoted one).", ""),
    ),
    output=make_schema(legs="object", words="object", note="string"),
)
def explain(call: Call, query: str, chunk_id: str, page_id: str, strategy: str) -> JsonObject:
    """Explain the rank of a passage or page, or at which step it was dropped.

    Use it when a search misses something; to search, use rag_search_knowledge_base.
    Example: explain(query="vector index", page_id="doc_123")
    """
    if bool(chunk_id) == bool(page_id):
        if chunk_id:
            raise Refused("Give either chunk_id or page_id, not both", "Leave one of them out")
        raise make_missing_error("chunk_id", f"chunk_id (a passage) or page_id (a document). {_PASSAGE_ID_HINT}.")
    try:
        why = call.wb.explaining.explain(
            query, Ask(strategy or None), passage_id=chunk_id or None, document_id=page_id or None, elsewhere=False
        )
    except NotFound:
        raise Refused(f"Not found: {chunk_id or page_id}", _PASSAGE_ID_HINT) from None
    passages = call.wb.documents.around(why.passage_id, 0, 0) if why.passage_id else []
    language = str(passages[0].metadata.get("language", "english")) if passages else "english"
    return {"success": True, **explanation_json(why, language)}


def explanation_json(why: Explanation, language: str) -> JsonObject:
    """Return an explanation.

    It has scores and ranks by leg, matched words with their shares of the keyword score, the shares (0..1) of a learned
    ranker's features, and a note.
    """
    words: JsonObject = {
        find_own_word(why.query, term.term, language): {"times": term.frequency, "share": round(term.share, 2)}
        for term in why.terms[:MAX_WORDS_SHOWN]
    }
    features: JsonObject = {view.name: round(view.share, 4) for view in why.features if view.weight}
    return {
        "strategy": why.strategy,
        "page_id": why.document_id,
        "chunk_id": why.passage_id,
        "title": cut(why.document_title, MAX_TITLE_CHARS),
        "rank": why.rank,
        "score": None if why.score is None else round(why.score, 4),
        "outcome": why.outcome,
        "legs": legs_json(why),
        "words": words,
        "missing_words": [find_own_word(why.query, term, language) for term in why.missing_terms[:MAX_WORDS_SHOWN]],
        **({"features": features} if features else {}),
        "note": " ".join(filter(None, [why.reason, preference_text(why.preferring), *why.notes])),
    }


def legs_json(why: Explanation) -> JsonObject:
    """Return the legs of the strategy.

    ``adds`` is a leg's contribution to the score, ``rank`` is the passage's rank in the scope by that leg.
    """
    counted = STRATEGIES[why.strategy].legs
    legs: JsonObject = {}
    for name, leg in why.legs.items():
        if name in counted:
            adds = None if leg.contribution is None else round(leg.contribution, 4)
            shown: JsonObject = {"score": round(leg.score, 4), "unit": leg_kind(name).unit, "rank": leg.rank}
            legs[name] = {**shown, "adds": adds, "vote": round(leg.vote, 2)}
    return legs


# fetch_url


@Tool(
    title="Fetch one URL",
    arguments=(Argument("url", "string", "http:// or https://.", required=True), TEXT_OFFSET, TEXT_LENGTH),
    open_world=True,
    parts=TextPart("content"),
    output=make_schema(url="string", content="string", total_chars="integer"),
)
def fetch_url(call: Call, url: str, offset: int, length: int) -> JsonObject:
    """Return the main text of a web page or file as Markdown, without storing it. Obeys robots.txt.

    Use it to read a page once; to store and search it, use crawl_website.
    Example: fetch_url(url="https://docs.example.com/start")
    """
    page = call.wb.crawls.fetch(url)
    answer: JsonObject = {"success": True, "url": page.url, "title": cut(page.title, MAX_TITLE_CHARS)}
    return {**answer, "media_type": page.media_type, **slice_text(page.text, offset, length)}


# rag_read_full_page

_PAGE_ID_HINT = "Search results have it as page_id or document_id; rag_list_pages_for_source lists them"


@Tool(
    title="Read a full page",
    arguments=(
        Argument("page_id", "string", "The document: page_id or document_id of a result.", ""),
        Argument("url", "string", "Or its URL.", ""),
        TEXT_OFFSET,
        TEXT_LENGTH,
    ),
    documents="page_id",
    parts=TextPart("content"),
    advice="Full text of a result: rag_read_full_page(page_id); around a passage: rag_read_neighbours(chunk_id).",
    output=make_schema(page_id="string", content="string", offset="integer", total_chars="integer"),
)
def rag_read_full_page(call: Call, page_id: str, url: str, offset: int, length: int) -> JsonObject:
    """Return the text of a stored document, in parts if it is long.

    Use it when a result's passage is not enough; for the passages around a hit, use rag_read_neighbours.
    Example: rag_read_full_page(page_id="doc_123", offset=20000)
    """
    document = find_document(call, page_id, url)
    part = slice_text(document.text or "", offset, length)
    if offset and offset >= len(document.text or ""):
        raise Refused(
            f"Invalid offset: {offset} is past the end of {part['total_chars']} characters", "Use a smaller offset"
        )
    return {"success": True, **page_json(document), **part}


def find_document(call: Call, page_id: str, url: str) -> Document:
    """Return the document of an id or a URL. Raises Refused if both are missing, or there is no such document."""
    if not page_id and not url:
        raise make_missing_error("page_id", f"page_id or url. {_PAGE_ID_HINT}.")
    try:
        return call.wb.documents.get(page_id) if page_id else call.wb.documents.at(url)
    except NotFound:
        raise Refused(f"Page not found: {page_id or url}", _PAGE_ID_HINT) from None


def page_json(document: Document) -> JsonObject:
    """Return a document without its text, as the reading tools show it."""
    return {"page_id": document.id, **pick(document, "title", "url", "source_id", "document_type")}


# search and fetch, in the form that hosted connectors require

MAX_RESULTS = 10  # documents per search


@Tool(
    title="Search",
    arguments=(Argument("query", "string", "What to look for.", required=True),),
    documents="id",
    output=make_schema(results="array"),
)
def search(call: Call, query: str) -> JsonObject:
    """Find documents, in the form that hosted connectors require.

    Use it only if a client supports no other search; rag_search_knowledge_base has filters and more detail.
    Example: search(query="vector index")
    """
    result = call.wb.document_search.search(query, Ask(limit=MAX_RESULTS, interleaves=True))
    scores, close = [hit.score for hit in result.documents], result.searched.evidence.close
    worth = count_above_cutoff(scores, result.searched.strategy, DOCUMENT_CUTOFF)
    shown = worth if close else min(FEW_RESULTS, len(scores))
    results: list[JsonObject] = [
        {
            "id": hit.document_id,
            "title": cut(hit.title, MAX_TITLE_CHARS),
            "url": hit.best.url or f"document://{hit.document_id}",
            "text": cut(hit.best.text, 300),
            **copies_json(hit.copies),
        }
        for hit in result.documents[:shown]
    ]
    notes = call.describe_search(result.searched, is_empty=not results)
    if close and shown < len(scores):
        notes["cutoff"] = f"{len(scores) - shown} more score below {DOCUMENT_CUTOFF:g} of the best and are omitted."
    return {"results": results} | notes


@Tool(
    title="Fetch a document",
    arguments=(Argument("id", "string", "The document's id.", required=True), TEXT_OFFSET, TEXT_LENGTH),
    documents="id",
    parts=TextPart("text"),
    output=make_schema(id="string", title="string", text="string", url="string"),
)
def fetch(call: Call, id: str, offset: int, length: int) -> JsonObject:
    """Return the text of a document found by search, in parts if it is long.

    Use it after search; for results of other tools, use rag_read_full_page.
    Example: fetch(id="doc_123")
    """
    document = find_document(call, id, "")
    part = slice_text(document.text or "", offset, length, "text")
    metadata: JsonObject = {"source_id": document.source_id, "document_type": document.document_type}
    url = document.url or f"document://{document.id}"
    return {"id": document.id, "title": cut(document.title, MAX_TITLE_CHARS), "url": url, "metadata": metadata, **part}


# get_job


@Tool(
    title="Follow a job",
    arguments=(Argument("job_id", "string", "The job; empty lists the newest.", ""), LIMIT, ITEM_OFFSET),
    parts=Items("jobs", total="total"),
    advice="If an answer has a job_id, work continues in the background: get_job(job_id) shows the progress.",
    output=make_action_schema(job="object", jobs="array", total="integer"),
)
def get_job(call: Call, job_id: str, limit: int, offset: int) -> JsonObject:
    """Show the progress of a background job, or list the newest jobs.

    Use it for any job; for crawls only, use manage_crawl_job.
    Example: get_job(job_id="job_123")
    """
    jobs = call.wb.jobs
    if not job_id:
        listed = [job_json(job) for job in jobs.list(limit=limit, offset=offset)]
        return {"success": True, "jobs": listed, "count": len(listed), "total": jobs.count()}
    try:
        job = jobs.get(job_id)
    except NotFound:
        raise Refused(f"Job not found: {job_id}", "List the jobs with get_job()") from None
    parts = jobs.parts(job_id).to_json()
    return {"success": True, "job": job_json(job) | parts | {"result": _result_page(job, limit, offset)}}


def _result_page(job: Job, limit: int, offset: int) -> JsonObject:
    """Return a page of each list in a job's result, and the next call."""
    longest = max((len(value) for value in job.result.values() if isinstance(value, list)), default=0)
    shown: JsonObject = {
        name: value[offset : offset + limit] if isinstance(value, list) else value for name, value in job.result.items()
    }
    if offset + limit < longest:
        following = format_next_call("get_job", {}, job_id=job.id, limit=limit, offset=offset + limit)
        shown["note"] = f"Items {offset + 1} to {offset + limit} of {longest}. Next: {following}"
    return shown


# rag_read_neighbours


@Tool(
    title="Read around a hit",
    arguments=(
        Argument("chunk_id", "string", "The passage: chunk_id or id of a result.", required=True),
        Argument("before", "integer", "Passages before it.", 1, low=0, high=10),
        Argument("after", "integer", "Passages after it.", 1, low=0, high=10),
        ITEM_OFFSET,
    ),
    documents="page_id",
    parts=Items("chunks"),
    output=make_schema(page_id="string", chunks="array"),
)
def rag_read_neighbours(call: Call, chunk_id: str, before: int, after: int, offset: int) -> JsonObject:
    """Return the full text of a passage and of those before and after it.

    Use it when a hit is cut off; for the full document, use rag_read_full_page.
    Example: rag_read_neighbours(chunk_id="psg_123", after=3)
    """
    try:
        around = call.wb.documents.around(chunk_id, before, after)
    except NotFound:
        raise Refused(
            f"Chunk not found: {chunk_id}", "Search results have it as chunk_id, or as id of a chunk"
        ) from None
    chunks: list[JsonObject] = [
        {
            "chunk_id": passage.node_id,
            "content": passage.text,
            "start": passage.metadata.get("start"),
            "end": passage.metadata.get("end"),
            "chunk_index": passage.metadata.get("ordinal", 0),
            "is_hit": passage.node_id == chunk_id,
        }
        for passage in around
    ]
    hit = around[0]
    return {
        "success": True,
        "page_id": hit.document_id,
        "title": cut(hit.title, MAX_TITLE_CHARS),
        "chunks": chunks[offset:],
        "count": len(chunks[offset:]),
    }


# rag_list_pages_for_source


@Tool(
    title="List a source's pages",
    arguments=(
        Argument("source_id", "string", "The source: id, URL or exact title (default: all).", ""),
        Argument("title", "string", "Only titles that contain this text.", ""),
        LIMIT,
        ITEM_OFFSET,
    ),
    parts=Items("pages", total="total"),
    output=make_schema(pages="array", total="integer"),
)
def rag_list_pages_for_source(call: Call, source_id: str, title: str, limit: int, offset: int) -> JsonObject:
    """List the documents of one or all sources, oldest first.

    Use it to see what a source contains; to read a document, use rag_read_full_page; for sources,
    rag_get_available_sources.
    Example: rag_list_pages_for_source(source_id="src_123", title="login")
    """
    source = call.wb.sources.get(source_id).id if source_id else None
    documents = call.wb.documents.list(source_id=source, contains=title or None, limit=limit, offset=offset)
    pages = [{**page_json(document), "chunks_count": document.passages_count} for document in documents]
    total = call.wb.documents.count(source_id=source, contains=title or None)
    return {"success": True, "pages": pages, "count": len(pages), "total": total, "offset": offset}


# find_projects, create_project and create_folder


@Tool(
    title="Find projects",
    arguments=(Argument("query", "string", "Words; empty lists all projects.", ""), LIMIT, ITEM_OFFSET),
    parts=Items("projects", total="total"),
    advice="Projects: find_projects; new ones: create_project, create_folder.",
    reading_advice="Projects: find_projects.",
    output=make_schema(projects="array", total="integer"),
)
def find_projects(call: Call, query: str, limit: int, offset: int) -> JsonObject:
    """Find projects by words in their title and description.

    Use it to get a project_id; for a project's folders, use rag_list_project_folders.
    Example: find_projects(query="shop")
    """
    words = query.casefold().split()
    projects = [project for project in call.wb.projects.list() if _matches(project, words)]
    listed = [project_json(project) for project in projects[offset : offset + limit]]
    return {"success": True, "projects": listed, "count": len(listed), "total": len(projects)}


@Tool(
    title="Create a project",
    arguments=(
        Argument("title", "string", "The project's name.", required=True),
        Argument("description", "string", "Its purpose.", ""),
    ),
    read_only=False,
    idempotent=False,
    output=make_schema(project="object"),
)
def create_project(call: Call, title: str, description: str) -> JsonObject:
    """Create a project for sources.

    Use it if find_projects returns no suitable project.
    Example: create_project(title="Shop")
    """
    project = call.wb.projects.create(title, description)
    return {"success": True, "project": project_json(project), "message": "Project created successfully"}


@Tool(
    title="Create a folder",
    arguments=(
        Argument("project_id", "string", "The project: id or exact title.", required=True),
        Argument("name", "string", "The folder's name.", required=True),
        Argument("description", "string", "Its purpose.", ""),
    ),
    read_only=False,
    idempotent=False,
    output=make_schema(folder="object"),
)
def create_folder(call: Call, project_id: str, name: str, description: str) -> JsonObject:
    """Create a folder in a project.

    Use it to group a project's sources; then call crawl_website or manage_source(action='create') with folder_name.
    Example: create_folder(project_id="proj_123", name="API")
    """
    folder = call.wb.projects.create_folder(project_id, name, description)
    return {"success": True, "folder": folder_json(folder), "message": "Folder created successfully"}


def project_json(project: Project) -> JsonObject:
    """Return a project as the tools show it."""
    return {
        "project_id": project.id,
        **pick(project, "title", "description", "source_count"),
        "description": cut(project.description),
    }


def _matches(project: Project, words: list[str]) -> bool:
    text = f"{project.title} {project.description}".casefold()
    return all(word in text for word in words)


# Table of the reading tools

ESSENTIAL_TOOLS = (rag_read_full_page, find_projects, get_job)
TOOLS = (
    rag_read_full_page,
    rag_list_pages_for_source,
    rag_search_code_examples,
    rag_read_neighbours,
    explain,
    fetch_url,
    find_projects,
    create_project,
    create_folder,
    get_job,
    search,
    fetch,
)


# --- Code in documents: fenced blocks of Markdown and passages of source files, with their heading ---

MAX_DISTANCE_CHARS = 1_500  # characters between a passage and a block that may belong to it
_FENCE = re.compile(r" {0,3}(?:`{3,}|~{3,})[ \t]*\{?\.?([\w+#.-]*)")
_LANGUAGE_ALIASES = {  # aliases and file suffixes of languages
    "py": "python", "js": "javascript", "ts": "typescript", "sh": "bash", "shell": "bash", "yml": "yaml",
    "rb": "ruby", "rs": "rust", "golang": "go", "c++": "cpp", "md": "markdown",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodeExample(Value):
    """A block of code and the passage it was found by."""

    passage: Passage
    code: str
    language: str  # lower case; "" if not stated
    heading: str  # path of headings above it, joined by " > "
    start: int  # in the document's text, in characters


def find_code(
    read: Callable[[str], Document], passages: Mapping[str, Sequence[Passage]], language: str = ""
) -> Iterator[CodeExample]:
    """Yield code in or near passages: by document in the given order, nearest first, without duplicates.

    Args:
        read: Returns a document with its text; may raise NotFound.
        passages: Passages found, by document id.
        language: Only code in this language; "" for all.
    """
    wanted = canonical_language(language)
    for document_id, group in passages.items():
        try:
            document = read(document_id)
        except NotFound:  # deleted since the search
            continue
        ranks = {passage.passage_id: passage.rank for passage in group}
        examples = [one for one in _find_examples(document, group) if wanted in ("", one.language)]
        yield from sorted(examples, key=lambda one: (ranks[one.passage.passage_id], one.start))


def canonical_language(language: str) -> str:
    """Return the canonical name of a language: "python" for "py" and "Python"."""
    word = language.strip().lower().removeprefix(".")
    return _LANGUAGE_ALIASES.get(word, word)


def _find_examples(document: Document, passages: Sequence[Passage]) -> Iterator[CodeExample]:
    from workbench.ingestion.chunking.blocks import parse_blocks

    text = document.text or ""
    if document.document_type == "code":
        language = canonical_language(PurePath(document.path or document.title).suffix)
        for passage in passages:
            yield CodeExample(passage, passage.text, language, " > ".join(passage.headings), passage.start)
        return
    for block in parse_blocks(text):
        if block.kind != "code":
            continue
        near = [
            passage
            for passage in passages
            if passage.start - MAX_DISTANCE_CHARS <= block.start and block.end <= passage.end + MAX_DISTANCE_CHARS
        ]
        if near:
            nearest = min(near, key=lambda passage: abs(passage.start - block.start))
            mark = _FENCE.match(text[block.start : block.end])
            code = text[block.start : block.end]
            if mark is not None:
                code = code.partition("\n")[2].rsplit("\n", 1)[0]
            language = canonical_language(mark.group(1)) if mark else ""
            yield CodeExample(nearest, code, language, " > ".join(block.path), block.start)
