"""crawl_website and manage_crawl_job: a website comes in by a job that answers at once and is followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_app.arguments import Argument, Refused
from mcp_app.tool import Call, Tool, needed
from mcp_app.tools.knowledge.family import FAMILY, PAGE, PER_PAGE, page_of, source_named
from workbench.errors import NotFound

if TYPE_CHECKING:
    from workbench.services.crawl_jobs import CrawlJob

ACTIONS = ("get", "list", "cancel", "resume", "retry_failed")
MOST_PAGES = 100
SHOWN_FAILURES = 10
_GOES_ON = ("resume", "retry_failed")
_LEFT_OUT = ("options", "outcomes", "bytes", "updated_at")
_STATUS = {"queued": "running", "completed_with_errors": "completed"}  # the specification knows fewer than the queue
_LIST_JOBS = "Use manage_crawl_job(action='list') to see the jobs"


def crawl_website(
    call: Call,
    url: str,
    recursive: bool,
    max_pages: int,
    source_id: str,
    title: str,
    exclude_patterns: list[str],
) -> dict[str, Any]:
    """Start a crawl; it goes on after the answer."""
    if not url.lower().startswith(("http://", "https://")):
        raise Refused("Invalid URL: must start with http:// or https://", "Provide fully qualified URL")
    job = call.workbench.crawls.start(
        url,
        recursive=recursive,
        max_pages=min(max_pages, MOST_PAGES),
        source=source_named(call, source_id).id if source_id else None,
        title=title or None,
        exclude=tuple(exclude_patterns),
    )
    call.work_jobs()
    shown = job_json(job)
    message = f"Crawl job started, use manage_crawl_job(action='get', job_id='{shown['id']}') to check progress"
    return {"success": True, "crawl_job": shown, "message": message}


def manage_crawl_job(call: Call, action: str, **arguments: Any) -> dict[str, Any]:
    """Carry out one action on crawl jobs."""
    if action == "list":
        return _list(call, arguments)
    job_id = needed(arguments, "job_id", action, _LIST_JOBS)
    crawls = call.workbench.crawls
    verbs = {"get": crawls.get, "cancel": crawls.cancel, "resume": crawls.resume, "retry_failed": crawls.retry_failed}
    try:
        job = verbs[action](job_id)
    except NotFound:
        raise Refused(f"Crawl job not found: {job_id}", _LIST_JOBS) from None
    if action in _GOES_ON:
        call.work_jobs()
    shown = job_json(job)
    if job.pages_failed:
        shown["failures"] = crawls.failures(job_id)[:SHOWN_FAILURES]
    return {"success": True, "crawl_job": shown, "message": _state(shown)}


def _list(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    size, skipped = page_of(given["page"], given["per_page"])
    jobs = [job_json(job) for job in call.workbench.crawls.list(limit=size, offset=skipped)]
    return {"success": True, "crawl_jobs": jobs, "count": len(jobs), "page": given["page"], "per_page": size}


def job_json(job: CrawlJob) -> dict[str, Any]:
    """Return a crawl as the specification shows it: running until it has ended; ``state`` says it exactly."""
    shown = {name: value for name, value in job.to_dict().items() if name not in _LEFT_OUT}
    return shown | {"status": _STATUS.get(job.status, job.status), "state": job.status}


def _state(job: dict[str, Any]) -> str:
    crawled, documents = job.get("pages_crawled", 0), job.get("documents_created", 0)
    return f"Crawl {job['status']}: {crawled} pages crawled, {documents} documents created"


CRAWL_WEBSITE = Tool(
    name="crawl_website",
    title="Crawl a website",
    description=(
        "Fetch a page, or with recursive=true the pages it links to on the same site, and index their text. "
        "Answers at once with a running job; "
        "follow it with manage_crawl_job(action='get').\n"
        "Use it for public websites; for files and texts you have use manage_document(action='create'). Addresses "
        "on private networks are refused.\n"
        'Example: crawl_website(url="https://docs.example.com/", recursive=true, max_pages=50, '
        'exclude_patterns=["/archive/"])'
    ),
    arguments=(
        Argument("url", "string", "Where to start: http:// or https://.", required=True),
        Argument("recursive", "boolean", "Follow links to further pages of the site.", False),
        Argument(
            "max_pages",
            "integer",
            f"Most pages to fetch; more than {MOST_PAGES} becomes {MOST_PAGES}.",
            10,
            low=1,
            high=1_000_000,
        ),
        Argument("source_id", "string", "An existing source to add to; by default a new one is made.", ""),
        Argument("title", "string", "Title of the new source; by default the site's name.", ""),
        Argument("exclude_patterns", "array", "Addresses to skip: parts of a URL or globs.", []),
    ),
    run=crawl_website,
    family=FAMILY,
    read_only=False,
    idempotent=False,
    open_world=True,
)

MANAGE_CRAWL_JOB = Tool(
    name="manage_crawl_job",
    title="Follow a crawl",
    description=(
        "See how a crawl is going, list crawls, stop one, go on with a stopped or broken one, or try its failed "
        "pages again.\n"
        "Use it after crawl_website, which starts a crawl.\n"
        'Example: manage_crawl_job(action="get", job_id="job_abc123")'
    ),
    arguments=(
        Argument("action", "string", "What to do.", required=True, choices=ACTIONS),
        Argument("job_id", "string", "The job, for every action but list.", ""),
        PAGE,
        PER_PAGE,
    ),
    run=manage_crawl_job,
    family=FAMILY,
    read_only=False,
    idempotent=True,
    open_world=True,
    reading_actions=("get", "list"),
)
