"""crawl_website and manage_crawl_job: crawls run as background jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mcp_app.arguments import Argument, Refused
from mcp_app.paging import Items, format_next_call
from mcp_app.tool import Call, Tool, make_action_schema, make_schema, require
from mcp_app.tool import job_json as any_job_json
from mcp_app.tools.knowledge.family import FAMILY, OFFSET, PAGE, PER_PAGE, find_source, resolve_page
from workbench.errors import NotFound
from workbench.types import JsonObject

if TYPE_CHECKING:
    from workbench.services.crawls import CrawlJob

ACTIONS = ("get", "list", "cancel", "resume", "retry_failed", "accept_removals")
MAX_PAGES = 100  # pages per crawl
MAX_FAILURES_SHOWN = 10  # failed or held pages per answer
MAX_REASONS_SHOWN = 8  # reasons for URLs not fetched, most frequent first
_CONTINUING_ACTIONS = ("resume", "retry_failed", "accept_removals")
_HIDDEN_FIELDS = ("options", "outcomes", "bytes", "updated_at")
_SPECIFIED_STATUS = {
    "queued": "running",
    "completed_with_errors": "completed",
}  # the specification has fewer than the queue
_LIST_JOBS_HINT = "List the jobs with manage_crawl_job(action='list')"


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
    """Start a crawl in the background."""
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
    call.work_jobs()
    answer = job_json(job)
    message = f"Crawl job started, use manage_crawl_job(action='get', job_id='{answer['id']}') to check progress"
    return {"success": True, "crawl_job": answer, "message": message}


def manage_crawl_job(call: Call, action: str, job_id: str, page: int, per_page: int, offset: int | None) -> JsonObject:
    """Run an action on crawl jobs."""
    if action == "list":
        return _list(call, page, per_page, offset)
    job_id = require(job_id, "job_id", action, _LIST_JOBS_HINT)
    crawls = call.wb.crawls
    verbs: dict[str, Callable[[str], CrawlJob]] = {
        "get": crawls.get,
        "cancel": crawls.cancel,
        "resume": crawls.resume,
        "retry_failed": crawls.retry_failed,
        "accept_removals": crawls.accept_removals,
    }
    try:
        job = verbs[action](job_id)
    except NotFound:
        return _manage_other_job(call, action, job_id)
    if action in _CONTINUING_ACTIONS:
        call.work_jobs()
    answer = job_json(job)
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
    """Show, cancel or resume a job other than a crawl.

    Raises:
        Refused: There is no such job, or it does not support the action.
    """
    jobs = call.wb.jobs
    verbs = {"get": jobs.get, "cancel": jobs.cancel, "resume": jobs.resume}
    try:
        if action not in verbs:
            raise NotFound("job", job_id)
        job = verbs[action](job_id)
    except NotFound:
        raise Refused(f"Crawl job not found: {job_id}", _LIST_JOBS_HINT) from None
    if action in _CONTINUING_ACTIONS:
        call.work_jobs()
    return {"success": True, "job": any_job_json(job), "message": f"Job {job.status}: {job.stalled or job.message}"}


def _list(call: Call, page: int, per_page: int, offset: int | None) -> JsonObject:
    size, skipped = resolve_page(page, per_page, offset)
    jobs = [job_json(job) for job in call.wb.crawls.list(limit=size, offset=skipped)]
    total = call.wb.crawls.count()
    answer: JsonObject = {"crawl_jobs": jobs, "total_count": total, "count": len(jobs), "page": page, "per_page": size}
    return {"success": True} | answer


def job_json(job: CrawlJob) -> JsonObject:
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


CRAWL_WEBSITE = Tool(
    name="crawl_website",
    title="Crawl a website",
    description=(
        "Index a web page, with recursive=true also pages it links to. Returns a job for "
        "manage_crawl_job(action='get').\n"
        "Use it for websites; for files, use manage_document; to read a page without storing it, fetch_url.\n"
        'Example: crawl_website(url="https://docs.example.com/", recursive=true, exclude_patterns=["/archive/"])'
    ),
    arguments=(
        Argument("url", "string", "Start URL: http:// or https://.", required=True),
        Argument("recursive", "boolean", "Follow links within the site.", False),
        Argument(
            "max_pages",
            "integer",
            f"Maximum number of pages; capped at {MAX_PAGES}.",
            10,
            low=1,
            high=1_000_000,
        ),
        Argument("source_id", "string", "Add to this source (default: a new one).", ""),
        Argument("title", "string", "Title of the new source (default: the site's name).", ""),
        Argument("exclude_patterns", "array", "URLs to skip: substrings or globs.", []),
        Argument("project_id", "string", "Project of the new source (default: global).", ""),
        Argument("folder_name", "string", "Folder of the new source in the project.", ""),
        Argument("refresh", "boolean", "Also fetch unchanged pages.", False),
    ),
    run=crawl_website,
    family=FAMILY,
    read_only=False,
    idempotent=False,
    open_world=True,
    advice="Index a website: crawl_website returns a job; follow it with manage_crawl_job(action='get').",
    output=make_schema(crawl_job="object"),
)

MANAGE_CRAWL_JOB = Tool(
    name="manage_crawl_job",
    title="Manage crawls",
    description=(
        "Show, list, cancel, resume or retry crawls; get, cancel and resume also work for other jobs.\n"
        "Use it after crawl_website, which starts a crawl.\n"
        'Example: manage_crawl_job(action="get", job_id="job_abc123")'
    ),
    arguments=(
        Argument("action", "string", "What to do.", required=True, choices=ACTIONS),
        Argument("job_id", "string", "The job; not for list.", ""),
        PAGE,
        PER_PAGE,
        OFFSET,
    ),
    run=manage_crawl_job,
    family=FAMILY,
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
