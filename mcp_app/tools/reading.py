"""find_projects, create_project and create_folder: the places that knowledge is kept in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mcp_app.arguments import Argument, Refused, missing
from mcp_app.paging import (
    FEW,
    LONGEST_TEXT,
    LONGEST_TITLE,
    Items,
    TextPart,
    cut,
    next_call,
    text_part,
    worth_reading,
)
from mcp_app.tool import PLAIN, Call, Tool, acted, form, job_json
from mcp_app.tools.scoped import folder_json
from workbench.errors import NotFound
from workbench.marking import own_word
from workbench.retrieval.legs import leg_kind
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import DOCUMENTS_CUTOFF
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Document, Passage, Project, Scope, preference
from workbench.types.json import JsonObject

if TYPE_CHECKING:
    from workbench.retrieval.explain.explanation import Explanation
    from workbench.storage.jobs import Job

# --- The form of the reading tools, JSON, and the arguments that they have in common ---

FAMILY = PLAIN
LONGEST_PART = 24_000  # characters of a text at once; the budget may grant fewer
OFFSET = Argument("offset", "integer", "Where to begin, in characters.", 0, low=0)
LENGTH = Argument("length", "integer", "How many characters at most.", LONGEST_PART, low=1, high=LONGEST_PART)
SKIP = Argument("offset", "integer", "How many to skip.", 0, low=0)
LIMIT = Argument("limit", "integer", "How many at most.", 20, low=1, high=20)


# --- rag_search_code_examples: the code blocks around the passages that answer a question ---

DEFAULT_COUNT = 5
PROSE = ("rag_search_knowledge_base", "search_knowledge_base")
DEEPEST = 100  # passages that are looked at for code


def search_code(call: Call, query: str, language: str, source_id: str, match_count: int, offset: int) -> JsonObject:
    """Return code blocks, those of the best passages first."""
    from workbench.services.code_examples import code_near

    scope = Scope(sources=(source_id,)) if source_id else Scope()
    result = call.wb.search_service.search(query, Ask(limit=DEEPEST, scope=scope))
    examples: list[JsonObject] = []
    for example in code_near(call.wb.documents.get, _by_document(result), language):
        entry: JsonObject = {
            "page_id": example.passage.document_id,
            "chunk_id": example.passage.passage_id,
            "title": cut(example.passage.document_title, LONGEST_TITLE),
            "url": example.passage.url,
            "heading": cut(example.heading, LONGEST_TITLE),
            "language": example.language,
            "code": cut(example.code, LONGEST_TEXT),
            "start": example.start,
            "similarity_score": round(max(0.0, example.passage.similarity), 4),
        }
        examples.append(entry)
    few = FEW if not result.evidence.close and not offset else DEFAULT_COUNT
    chosen = examples[offset : offset + (match_count or few)]
    answer: JsonObject = {"success": True, "results": chosen, "count": len(chosen), "total": len(examples)}
    if chosen and not result.evidence.close:
        answer["nothing_close"] = result.evidence.reason
        answer["suggestion"] = "Use other words" + (", or drop source_id to search every source" if source_id else "")
    if result.degraded:
        answer["degraded"] = list(result.degraded)
    if len(result) == DEEPEST and offset + len(chosen) >= len(examples):
        answer["note"] = (
            f"Code is looked for near the first {DEEPEST} passages. For other code, name a source_id or ask a more "
            "specific question."
        )
    if not examples:
        wanted = f" in {language}" if language else ""
        prose = next((name for name in PROSE if call.offers(name)), "")
        answer["suggestion"] = f"No code{wanted} near the best passages; use other words{prose and f', or {prose}'}."
    return answer


def _by_document(passages: Iterable[Passage]) -> dict[str, list[Passage]]:
    groups: dict[str, list[Passage]] = {}
    for passage in passages:
        groups.setdefault(passage.document_id, []).append(passage)
    return groups


SEARCH_CODE = Tool(
    name="rag_search_code_examples",
    title="Search code examples",
    description=(
        "Find code blocks with their headings, best first; 'start' is where to read on with "
        "rag_read_full_page(offset).\n"
        "Use it for how something is written in code: best for that alone; for prose use rag_search_knowledge_base.\n"
        'Example: rag_search_code_examples(query="vector index", language="sql")'
    ),
    arguments=(
        Argument("query", "string", "What the code does.", required=True),
        Argument("language", "string", "Only this language, such as python.", ""),
        Argument("source_id", "string", "Only this source: its id, URL or exact title.", ""),
        Argument("match_count", "integer", "How many at most.", DEFAULT_COUNT, low=1, high=20, unset=0),
        SKIP,
    ),
    run=search_code,
    family=FAMILY,
    parts=Items("results", total="total"),
    advice="Code, not prose: rag_search_code_examples(query, language).",
    output=form(results="array", total="integer"),
)


# --- explain: the reasons for the rank of a passage or a page in a search, or the step where it fell out ---

MOST_WORDS = 50  # of a question; the most telling first
_FIND_PASSAGE_ID = "Searches name it as chunk_id or page_id"


def explain(call: Call, query: str, chunk_id: str, page_id: str, strategy: str) -> JsonObject:
    """Explain one passage, or one page by its best passage."""
    if bool(chunk_id) == bool(page_id):
        if chunk_id:
            raise Refused("Give either chunk_id or page_id, not both", "Leave one of them out")
        raise missing("chunk_id", f"chunk_id (a passage) or page_id (a document). {_FIND_PASSAGE_ID}.")
    try:
        why = call.wb.explaining.explain(
            query, Ask(strategy or None), passage_id=chunk_id or None, document_id=page_id or None, elsewhere=False
        )
    except NotFound:
        raise Refused(f"Not found: {chunk_id or page_id}", _FIND_PASSAGE_ID) from None
    around = call.wb.documents.around(why.passage_id, 0, 0) if why.passage_id else []
    language = str(around[0].metadata.get("language", "english")) if around else "english"
    return {"success": True, **why_json(why, language)}


def why_json(why: Explanation, language: str) -> JsonObject:
    """Return an explanation: scores and ranks by leg, matched words with their shares of the words' score, a note.

    A learned ranker's features have their shares of the score, 0..1.
    """
    words: JsonObject = {
        own_word(why.query, term.term, language): {"times": term.frequency, "share": round(term.share, 2)}
        for term in why.terms[:MOST_WORDS]
    }
    weighed: JsonObject = {view.name: round(view.share, 4) for view in why.features if view.weight}
    return {
        "strategy": why.strategy,
        "page_id": why.document_id,
        "chunk_id": why.passage_id,
        "title": cut(why.document_title, LONGEST_TITLE),
        "rank": why.rank,
        "score": None if why.score is None else round(why.score, 4),
        "fate": why.fate,
        "legs": legs_json(why),
        "words": words,
        "missing_words": [own_word(why.query, term, language) for term in why.missing_terms[:MOST_WORDS]],
        **({"features": weighed} if weighed else {}),
        "note": " ".join(filter(None, [why.reason, preference(why.preferring), *why.notes])),
    }


def legs_json(why: Explanation) -> JsonObject:
    """Return the legs that the strategy counts; ``adds`` is a leg's part of the score, ``rank`` that in the scope."""
    counted = STRATEGIES[why.strategy].legs
    legs: JsonObject = {}
    for name, leg in why.legs.items():
        if name not in counted:
            continue
        legs[name] = {
            "score": round(leg.score, 4),
            "unit": leg_kind(name).unit,
            "rank": leg.rank,
            "adds": None if leg.contribution is None else round(leg.contribution, 4),
            "vote": round(leg.vote, 2),
        }
    return legs


EXPLAIN = Tool(
    name="explain",
    title="Explain a hit",
    description=(
        "Say why a passage or page has its rank, or where it fell out.\n"
        "Use it when a search misses something; to search use rag_search_knowledge_base.\n"
        'Example: explain(query="vector index", page_id="doc_123")'
    ),
    arguments=(
        Argument("query", "string", "The search's query.", required=True),
        Argument("chunk_id", "string", "The passage.", ""),
        Argument("page_id", "string", "Or the document.", ""),
        Argument("strategy", "string", "Such as vector; by default the promoted one.", ""),
    ),
    run=explain,
    family=FAMILY,
    output=form(legs="object", words="object", note="string"),
)


# --- fetch_url: the text of one page of the web, without storing it ---


def fetch_url(call: Call, url: str, offset: int, length: int) -> JsonObject:
    """Return a part of a page's main text."""
    page = call.wb.crawls.fetch(url)
    answer: JsonObject = {"success": True, "url": page.url, "title": cut(page.title, LONGEST_TITLE)}
    return {**answer, "media_type": page.media_type, **text_part(page.text, offset, length)}


FETCH_URL = Tool(
    name="fetch_url",
    title="Fetch one URL",
    description=(
        "Return the main text of a web page or file as Markdown, without storing it; robots.txt is obeyed.\n"
        "Use it to read a page once; to keep and search it use crawl_website.\n"
        'Example: fetch_url(url="https://docs.example.com/start")'
    ),
    reading_description=(
        "Return the main text of a web page or file as Markdown, without storing it; robots.txt is obeyed.\n"
        "Use it to read a page once; to search what is stored use search_knowledge_base.\n"
        'Example: fetch_url(url="https://docs.example.com/start")'
    ),
    arguments=(Argument("url", "string", "http:// or https://.", required=True), OFFSET, LENGTH),
    run=fetch_url,
    family=FAMILY,
    open_world=True,
    parts=TextPart("content"),
    output=form(url="string", content="string", total_chars="integer"),
)


# --- rag_read_full_page: the whole text of one document, in parts ---

_FIND_PAGE_ID = "Searches name it as page_id or document_id; rag_list_pages_for_source lists them"


def read_full_page(call: Call, page_id: str, url: str, offset: int, length: int) -> JsonObject:
    """Return a part of a document's text with where it stands."""
    document = document_of(call, page_id, url)
    part = text_part(document.text or "", offset, length)
    if offset and offset >= len(document.text or ""):
        raise Refused(f"Invalid offset: {offset} lies beyond the {part['total_chars']} characters", "Use a smaller one")
    return {"success": True, **page_json(document), **part}


def document_of(call: Call, page_id: str, url: str) -> Document:
    """Return the document of an id or an address. Raises Refused."""
    if not page_id and not url:
        raise missing("page_id", f"page_id or url. {_FIND_PAGE_ID}.")
    try:
        return call.wb.documents.get(page_id) if page_id else call.wb.documents.at(url)
    except NotFound:
        raise Refused(f"Page not found: {page_id or url}", _FIND_PAGE_ID) from None


def page_json(document: Document) -> JsonObject:
    """Return a document without its text, as the reading tools show it."""
    return {
        "page_id": document.id,
        "title": cut(document.title, LONGEST_TITLE),
        "url": document.url,
        "source_id": document.source_id,
        "document_type": document.document_type,
    }


READ_FULL_PAGE = Tool(
    name="rag_read_full_page",
    title="Read a page whole",
    description=(
        "Return a stored document's text, a long one in parts.\n"
        "Use it when a result's passage is not enough; for the passages around a hit use rag_read_neighbours.\n"
        'Example: rag_read_full_page(page_id="doc_123", offset=20000)'
    ),
    arguments=(
        Argument("page_id", "string", "The document: page_id or document_id of a result.", ""),
        Argument("url", "string", "Or the address it came from.", ""),
        OFFSET,
        LENGTH,
    ),
    run=read_full_page,
    family=FAMILY,
    parts=TextPart("content"),
    advice="The whole text of a result: rag_read_full_page(page_id); around a passage: rag_read_neighbours(chunk_id).",
    output=form(page_id="string", content="string", offset="integer", total_chars="integer"),
)


# --- search and fetch: the two tools that hosted connectors expect, in exactly their form ---

RESULTS = 10


def search(call: Call, query: str) -> JsonObject:
    """Return the best documents as id, title and url, those that score far below the first left out."""
    result = call.wb.document_search.search(query, Ask(limit=RESULTS))
    scores, close = [hit.score for hit in result.documents], result.searched.evidence.close
    worth = worth_reading(scores, result.searched.strategy, DOCUMENTS_CUTOFF)
    shown = worth if close else min(FEW, len(scores))
    results: list[JsonObject] = [
        {
            "id": hit.document_id,
            "title": cut(hit.title, LONGEST_TITLE),
            "url": hit.best.url or f"document://{hit.document_id}",
            "text": cut(hit.best.text, 300),
        }
        for hit in result.documents[:shown]
    ]
    noted: JsonObject = {"degraded": list(result.searched.degraded)} if result.searched.degraded else {}
    if results and not close:
        noted |= {"nothing_close": result.searched.evidence.reason, "suggestion": "Use other words"}
    elif shown < len(scores):
        noted["cutoff"] = f"{len(scores) - shown} more score below {DOCUMENTS_CUTOFF:g} of the best and are left out."
    return {"results": results} | noted


def fetch(call: Call, id: str, offset: int, length: int) -> JsonObject:
    """Return a document's text."""
    document = document_of(call, id, "")
    part = text_part(document.text or "", offset, length, "text")
    metadata: JsonObject = {"source_id": document.source_id, "document_type": document.document_type}
    url = document.url or f"document://{document.id}"
    return {"id": document.id, "title": cut(document.title, LONGEST_TITLE), "url": url, "metadata": metadata, **part}


SEARCH = Tool(
    name="search",
    title="Search",
    description=(
        "Find documents; the form that hosted connectors ask for.\n"
        "Use it only if a client knows no other search; rag_search_knowledge_base says and narrows more.\n"
        'Example: search(query="vector index")'
    ),
    arguments=(Argument("query", "string", "What to look for.", required=True),),
    run=search,
    family=FAMILY,
    output=form(results="array"),
)

FETCH = Tool(
    name="fetch",
    title="Fetch a document",
    description=(
        "Return a document's text by an id that search gave, a long one in parts.\n"
        "Use it after search; rag_read_full_page does the same for other results.\n"
        'Example: fetch(id="doc_123")'
    ),
    arguments=(Argument("id", "string", "The document's id.", required=True), OFFSET, LENGTH),
    run=fetch,
    family=FAMILY,
    parts=TextPart("text"),
    output=form(id="string", title="string", text="string", url="string"),
)


# --- get_job: how work in the background is going ---


def get_job(call: Call, job_id: str, limit: int, offset: int) -> JsonObject:
    """Return one job, or the newest jobs."""
    jobs = call.wb.jobs
    if not job_id:
        listed = [job_json(job) for job in jobs.list(limit=limit, offset=offset)]
        return {"success": True, "jobs": listed, "count": len(listed), "total": jobs.count()}
    try:
        job = jobs.get(job_id)
    except NotFound:
        raise Refused(f"Job not found: {job_id}", "get_job() lists the jobs") from None
    parts = jobs.parts(job_id).to_json()
    return {"success": True, "job": job_json(job) | parts | {"result": _result(job, limit, offset)}}


def _result(job: Job, limit: int, offset: int) -> JsonObject:
    """Return a job's result; of each list in it as many items as are asked for, and the call that goes on."""
    longest = max((len(value) for value in job.result.values() if isinstance(value, list)), default=0)
    shown: JsonObject = {
        name: value[offset : offset + limit] if isinstance(value, list) else value for name, value in job.result.items()
    }
    if offset + limit < longest:
        going_on = next_call("get_job", {}, job_id=job.id, limit=limit, offset=offset + limit)
        shown["note"] = f"Items {offset + 1} to {offset + limit} of {longest}. Next: {going_on}"
    return shown


GET_JOB = Tool(
    name="get_job",
    title="Follow a job",
    description=(
        "Show how work in the background is going, or list the newest jobs.\n"
        "Use it after a tool answered with a job; crawls are steered by manage_crawl_job.\n"
        'Example: get_job(job_id="job_123")'
    ),
    reading_description=(
        "Show how work in the background is going, or list the newest jobs.\n"
        "Use it for work of every kind; for crawls alone use manage_crawl_job.\n"
        'Example: get_job(job_id="job_123")'
    ),
    arguments=(Argument("job_id", "string", "The job; empty lists all, newest first.", ""), LIMIT, SKIP),
    run=get_job,
    family=FAMILY,
    parts=Items("jobs", total="total"),
    advice="An answer with a job_id is still being worked on: get_job(job_id) tells how far.",
    output=acted(job="object", jobs="array", total="integer"),
)


# --- rag_read_neighbours: the passages before and after a hit ---


def read_neighbours(call: Call, chunk_id: str, before: int, after: int, offset: int) -> JsonObject:
    """Return a passage with those around it, in reading order."""
    try:
        around = call.wb.documents.around(chunk_id, before, after)
    except NotFound:
        raise Refused(f"Chunk not found: {chunk_id}", "Searches name it as chunk_id, or as id of a chunk") from None
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
        "title": cut(hit.title, LONGEST_TITLE),
        "chunks": chunks[offset:],
        "count": len(chunks[offset:]),
    }


READ_NEIGHBOURS = Tool(
    name="rag_read_neighbours",
    title="Read around a hit",
    description=(
        "Return a passage whole, with those before and after it.\n"
        "Use it when a hit breaks off; for the whole text use rag_read_full_page.\n"
        'Example: rag_read_neighbours(chunk_id="psg_123", after=3)'
    ),
    arguments=(
        Argument("chunk_id", "string", "The passage: chunk_id or id of a result.", required=True),
        Argument("before", "integer", "Passages before it.", 1, low=0, high=10),
        Argument("after", "integer", "Passages after it.", 1, low=0, high=10),
        SKIP,
    ),
    run=read_neighbours,
    family=FAMILY,
    parts=Items("chunks"),
    output=form(page_id="string", chunks="array"),
)


# --- rag_list_pages_for_source: the documents of a source, without their texts ---


def list_pages(call: Call, source_id: str, title: str, limit: int, offset: int) -> JsonObject:
    """Return a page of documents and how many there are."""
    source = call.wb.sources.get(source_id).id if source_id else None
    documents = call.wb.documents.list(source_id=source, contains=title or None, limit=limit, offset=offset)
    pages = [{**page_json(document), "chunks_count": document.passages_count} for document in documents]
    total = call.wb.documents.count(source_id=source, contains=title or None)
    return {"success": True, "pages": pages, "count": len(pages), "total": total, "offset": offset}


LIST_PAGES = Tool(
    name="rag_list_pages_for_source",
    title="List a source's pages",
    description=(
        "List the documents of a source (or of all), oldest first.\n"
        "Use it to see what a source holds; to read one use rag_read_full_page; for the sources "
        "rag_get_available_sources.\n"
        'Example: rag_list_pages_for_source(source_id="src_123", title="login")'
    ),
    arguments=(
        Argument("source_id", "string", "The source: its id, URL or exact title; by default all.", ""),
        Argument("title", "string", "Only titles with these letters.", ""),
        LIMIT,
        SKIP,
    ),
    run=list_pages,
    family=FAMILY,
    parts=Items("pages", total="total"),
    output=form(pages="array", total="integer"),
)


def find_projects(call: Call, query: str, limit: int, offset: int) -> JsonObject:
    """List the projects whose title or description holds the query's words."""
    words = query.casefold().split()
    projects = [project for project in call.wb.projects.list() if _holds(project, words)]
    listed = [project_json(project) for project in projects[offset : offset + limit]]
    return {"success": True, "projects": listed, "count": len(listed), "total": len(projects)}


def create_project(call: Call, title: str, description: str) -> JsonObject:
    """Make a project."""
    project = call.wb.projects.create(title, description)
    return {"success": True, "project": project_json(project), "message": "Project created successfully"}


def create_folder(call: Call, project_id: str, name: str, description: str) -> JsonObject:
    """Make a folder in a project."""
    folder = call.wb.projects.create_folder(project_id, name, description)
    return {"success": True, "folder": folder_json(folder), "message": "Folder created successfully"}


def project_json(project: Project) -> JsonObject:
    """Return a project as the tools show it."""
    return {
        "project_id": project.id,
        "title": cut(project.title, LONGEST_TITLE),
        "description": cut(project.description),
        "source_count": project.source_count,
    }


def _holds(project: Project, words: list[str]) -> bool:
    text = f"{project.title} {project.description}".casefold()
    return all(word in text for word in words)


FIND_PROJECTS = Tool(
    name="find_projects",
    title="Find projects",
    description=(
        "List projects by the words of their title and description.\n"
        "Use it to get a project_id; for a project's folders use rag_list_project_folders.\n"
        'Example: find_projects(query="shop")'
    ),
    arguments=(Argument("query", "string", "Words; empty lists all.", ""), LIMIT, SKIP),
    run=find_projects,
    family=FAMILY,
    parts=Items("projects", total="total"),
    advice="Which projects there are: find_projects; new ones: create_project, create_folder.",
    reading_advice="Which projects there are: find_projects.",
    output=form(projects="array", total="integer"),
)

CREATE_PROJECT = Tool(
    name="create_project",
    title="Create a project",
    description=(
        "Make a project that sources can belong to.\n"
        "Use it when find_projects shows none that fits.\n"
        'Example: create_project(title="Shop")'
    ),
    arguments=(
        Argument("title", "string", "Its name.", required=True),
        Argument("description", "string", "What it is for.", ""),
    ),
    run=create_project,
    family=FAMILY,
    read_only=False,
    idempotent=False,
    output=form(project="object"),
)

CREATE_FOLDER = Tool(
    name="create_folder",
    title="Create a folder",
    description=(
        "Make a folder in a project.\n"
        "Use it to keep a project's sources apart; then crawl_website or manage_source(action='create') with "
        "folder_name.\n"
        'Example: create_folder(project_id="proj_123", name="API")'
    ),
    arguments=(
        Argument("project_id", "string", "The project: its id or exact title.", required=True),
        Argument("name", "string", "The folder's name.", required=True),
        Argument("description", "string", "What it is for.", ""),
    ),
    run=create_folder,
    family=FAMILY,
    read_only=False,
    idempotent=False,
    output=form(folder="object"),
)


# --- The reading tools: texts in parts, code, neighbours, why, jobs, pages of the web, and what hosted ---

ESSENTIAL = (READ_FULL_PAGE, FIND_PROJECTS, GET_JOB)
TOOLS = (
    READ_FULL_PAGE,
    LIST_PAGES,
    SEARCH_CODE,
    READ_NEIGHBOURS,
    EXPLAIN,
    FETCH_URL,
    FIND_PROJECTS,
    CREATE_PROJECT,
    CREATE_FOLDER,
    GET_JOB,
    SEARCH,
    FETCH,
)
