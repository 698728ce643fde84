"""Crawls: start, watch, cancel, resume and repeat them, or preview one with a dry run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from workbench.crawling.options import (
    UNFETCHED_OUTCOMES,
    CrawlOptions,
    describe_held_removals,
    describe_progress,
    describe_result,
)
from workbench.crawling.urls import canonicalize
from workbench.errors import Cancelled, Conflict, CrawlRefused, InvalidInput, NotFound, WorkbenchError, list_choices
from workbench.runtime import check_extra
from workbench.services.checks import check_key, check_title
from workbench.services.corpus import Corpus
from workbench.services.documents import DocumentService, IngestOptions
from workbench.services.jobs import JobService
from workbench.services.sources import LocationNames, SourceService
from workbench.storage.crawls import CrawlPage, CrawlPlan, Crawls, PageCount
from workbench.storage.jobs import FINISHED_STATUSES, EmbeddingLease, Job, PartLost, describe_state
from workbench.types import (
    MAX_NOTES_SHOWN,
    IngestReport,
    JsonObject,
    JsonValue,
    OnProgress,
    Progress,
    ShouldStop,
    Source,
    Value,
    as_integer,
    as_texts,
)

if TYPE_CHECKING:
    from workbench.crawling.egress import Guard
    from workbench.crawling.preview import DryRun, WebPage
    from workbench.crawling.site import Site
    from workbench.ingestion.incoming import IngestItem
    from workbench.ingestion.pipeline import AfterWrite

# A crawl with its counts

PAGE_OUTCOMES = (
    "added", "changed", "unchanged", "duplicate", "redirected", "removed", "gone", "held", "failed", "forbidden",
    "not_allowed", "left_out",
)  # fmt: skip
READ_OUTCOMES = ("added", "changed", "unchanged", "duplicate")  # outcomes of pages with text
REPORTED_OUTCOMES = ("added", "changed", "unchanged", "removed", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlCounts(Value):
    """The counts of a crawl's pages at one moment, by the names that the tools use.

    ``pages_total`` is the sum of ``pages_done``, ``pages_waiting`` and ``pages_pending``.
    """

    pages_crawled: int  # fetched with text, duplicates included
    pages_failed: int
    pages_pending: int  # not fetched yet
    pages_waiting: int  # fetched, not stored yet
    pages_done: int
    pages_total: int  # all pages to fetch
    pages_found: int  # including those forbidden by the site, not allowed here, or excluded
    documents_created: int
    total_chunks: int  # passages
    bytes: int  # of main text
    outcomes: Mapping[str, int]  # pages by outcome; "held" are removals that wait to be accepted
    report: Mapping[str, int]  # changes since the previous crawl: added, changed, unchanged, removed, failed


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlJob(CrawlCounts):
    """A crawl with its settings, status and page counts."""

    id: str
    source_id: str
    url: str
    status: str
    recursive: bool
    max_pages: int
    not_fetched: Mapping[str, int]  # number of addresses that were found and not fetched, by reason
    exclude_patterns: tuple[str, ...]
    message: str
    error_message: str | None
    options: Mapping[str, JsonValue]
    created_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    updated_at: datetime | None
    stalled: str | None = None

    @property
    def is_finished(self) -> bool:
        """True if it has ended, successfully or not."""
        return self.status in FINISHED_STATUSES

    @property
    def state(self) -> str:
        """The displayed status, which may be "stalled"."""
        return describe_state(self.status, self.stalled)

    @property
    def progress(self) -> Progress:
        """The progress in pages."""
        return Progress(self.pages_done, self.pages_total, self.message)


def count_pages(rows: Sequence[PageCount]) -> CrawlCounts:
    """Return the counts of a crawl's pages."""
    outcomes = {name: sum(row.n for row in rows if row.outcome == name) for name in PAGE_OUTCOMES}
    waiting = sum(row.n for row in rows if row.state == "fetched")
    pending = sum(row.n for row in rows if row.state == "queued")
    pages = sum(row.n for row in rows)
    total = pages - sum(outcomes[name] for name in UNFETCHED_OUTCOMES)
    return CrawlCounts(
        pages_crawled=waiting + sum(outcomes[name] for name in READ_OUTCOMES),
        pages_failed=outcomes["failed"],
        pages_pending=pending,
        pages_waiting=waiting,
        pages_done=total - waiting - pending,
        pages_total=total,
        pages_found=pages,
        documents_created=outcomes["added"],
        total_chunks=sum(row.passages for row in rows),
        bytes=sum(row.bytes for row in rows),
        outcomes=outcomes,
        report={name: outcomes[name] for name in REPORTED_OUTCOMES},
    )


def make_message(job: Job, counts: CrawlCounts) -> str:
    """Return the status message of a crawl; if it is running or cancelled, computed from the counts."""
    if job.status not in ("running", "cancelled"):
        return job.message
    numbers = describe_progress(
        counts.pages_done,
        counts.pages_total,
        stored_next=counts.pages_waiting,
        fetched_next=counts.pages_pending,
        failed=counts.pages_failed,
    )
    return numbers if job.status == "running" else f"{numbers}. It can be resumed."


def make_crawl_job(job: Job, plan: CrawlPlan, rows: Sequence[PageCount], reasons: Mapping[str, int]) -> CrawlJob:
    """Return a crawl with its counts; ``reasons`` counts the addresses not fetched, by reason."""
    counts = count_pages(rows)
    return CrawlJob(
        id=job.id,
        source_id=plan.source_id,
        url=plan.url,
        status=job.status,
        recursive=bool(plan.options["recursive"]),
        max_pages=as_integer(plan.options["max_pages"]),
        not_fetched=dict(reasons),
        exclude_patterns=tuple(as_texts(plan.options.get("exclude"))),
        **{item.name: getattr(counts, item.name) for item in fields(counts)},
        message=make_message(job, counts),
        error_message=job.error,
        options=dict(plan.options),
        **{name: getattr(job, name) for name in ("created_at", "started_at", "completed_at", "updated_at", "stalled")},
    )


# The source that a crawl fills

MAX_NAMESAKES = 1_000  # sources with the same title and a number
MAX_NUMBERED_TITLE_CHARS = 290  # characters of a title before its number


@dataclass(frozen=True, slots=True)
class CrawlTarget(Value):
    """Where to store the documents of a crawl."""

    source: str | None = None  # id or title of a source
    title: str | None = None  # of a source to create
    project: str | None = None
    folder: str | None = None
    tags: Sequence[str] = ()
    new: bool = False  # create a source even if there is one for the host


def read_target(job: Job) -> CrawlTarget:
    """Return the target stored in a job."""
    return CrawlTarget(**cast("dict[str, Any]", job.parameters.get("target") or {}))


def find_plan_source(sources: SourceService, plan: CrawlPlan, job: Job) -> Source:
    """Return the source of a crawl; recreate it if it was removed because it was empty."""
    if plan.source_id:
        return sources.get(plan.source_id)
    return find_crawl_source(sources, plan.url, read_target(job))[0]


def find_crawl_source(sources: SourceService, url: str, target: CrawlTarget) -> tuple[Source, bool]:
    """Return the source of a crawl, and whether it was just created; if it stays empty, it is removed after the crawl.

    Raises:
        NotFound: No such source, project or folder.
        InvalidInput: The title or the tags are invalid.
        Conflict: Too many sources have this title.
    """
    place = LocationNames(project=target.project, folder=target.folder)
    if target.source:
        if target.new:
            raise InvalidInput("Give either a source or new_source, not both.")
        return sources.ensure(target.source, **place, tags=target.tags, source_type="crawl", for_ingest=True), False
    title = check_title(target.title or f"Crawled: {urlsplit(url).netloc}")
    for number in range(1, MAX_NAMESAKES if target.new else 2):
        numbered = title if number == 1 else f"{title[:MAX_NUMBERED_TITLE_CHARS]} ({number})"
        try:
            source = sources.create(numbered, source_type="crawl", url=url, **place, tags=target.tags, for_ingest=True)
        except Conflict:
            continue
        return source, True
    if target.new:
        raise Conflict(f"There are {MAX_NAMESAKES - 1} sources titled {title!r}; give another title.")
    return sources.ensure(title, **place, tags=target.tags, source_type="crawl", for_ingest=True), False


T = TypeVar("T")


class CrawlService:
    """Operations on crawls."""

    def __init__(
        self,
        corpus: Corpus,
        sources: SourceService,
        documents: DocumentService,
        jobs: JobService,
        *,
        allow_hosts: Sequence[str] = (),
        browser_url: str = "",
    ) -> None:
        """Create the service; ``allow_hosts`` may be in a private network.

        ``browser_url`` is the CDP address of a running browser, or "" to start one if needed.
        """
        self._corpus, self._sources, self._documents, self._jobs = corpus, sources, documents, jobs
        self._allow_hosts, self._browser_url = tuple(allow_hosts), browser_url
        self.table = Crawls(corpus.database)

    # Start a crawl

    def start(
        self,
        url: str,
        *,
        source: str | None = None,
        title: str | None = None,
        project: str | None = None,
        folder: str | None = None,
        tags: Sequence[str] = (),
        new_source: bool = False,
        **options: object,
    ) -> CrawlJob:
        """Start a crawl and return it.

        A refused crawl leaves no source and no job.

        Args:
            url: Page to start from.
            source: Id or title of the source; by default the one for the host, created if there is none.
            title: Title of a new source.
            project: Project of a new source.
            folder: Folder of a new source, in the project.
            tags: Tags of the source.
            new_source: Always create a source, with a number if its title is taken.
            options: Fields of ``CrawlOptions``.

        Raises:
            InvalidInput: The URL is invalid, or an option is out of range.
            CrawlRefused: The address is in a private network.
            NotFound: No such source, project or folder.
        """
        options_read = CrawlOptions.read(options)
        address = self.check_url(url)
        target = CrawlTarget(source, title, project, folder, tags, new_source)
        chosen, is_made = find_crawl_source(self._sources, address, target)
        try:
            return self._enqueue(address, chosen, options_read, target)
        except WorkbenchError:
            if is_made:
                self._sources.delete(chosen.id)
            raise

    def recrawl(self, job_id: str, **changes: object) -> CrawlJob:
        """Repeat a crawl as a new job, with ``changes`` to its options; unchanged pages are not downloaded again."""
        plan = self.table.plan(job_id)
        once = {"refresh": False, "accept_removals": False}  # options for a single crawl
        options = CrawlOptions.read(dict(plan.options) | once | changes)
        job = self._crawl_job(job_id)
        return self._enqueue(plan.url, find_plan_source(self._sources, plan, job), options, read_target(job))

    def dry_run(self, url: str, *, samples: int = 3, **options: object) -> DryRun:
        """Preview a crawl without storing anything: pages to fetch or skip with reasons, samples, an estimate."""
        from workbench.crawling.preview import MAX_FETCHED_PAGES, run_dry

        options_read = CrawlOptions.read(options)
        if type(samples) is not int or not 0 <= samples <= MAX_FETCHED_PAGES:
            raise InvalidInput(f"Invalid samples {samples!r}: use a whole number from 0 to {MAX_FETCHED_PAGES}.")
        address = self.check_url(url)

        return self._visit(options_read, lambda site: run_dry(site, address, options_read, samples))

    def fetch(self, url: str) -> WebPage:
        """Return the text of one page without storing it.

        Raises:
            InvalidInput: The URL is invalid.
            CrawlRefused: The address is in a private network.
            UnreadableDocument: The page has no readable text.
        """
        from workbench.crawling.preview import read_page

        address = self.check_url(url)
        return self._visit(CrawlOptions(), lambda site: read_page(site, address))

    def check_url(self, url: str) -> str:
        """Return the canonical form of an address.

        Raises:
            InvalidInput: The URL is invalid.
            CrawlRefused: The address is in a private network.
            ConfigurationError: The extra ``crawl`` is not installed.
        """
        check_extra("crawl")
        check_key("url", url)
        text = url.strip()
        host = text.partition("/")[0]
        is_bare = "://" not in text and ("." in host or host.startswith("localhost"))
        if is_bare and not text.lower().startswith(("mailto:", "javascript:", "data:", "file:")):
            text = f"https://{text}"
        if not text.lower().startswith(("http://", "https://")):
            raise InvalidInput(f"Invalid URL {url[:100]!r}: must start with http:// or https://.")
        address = canonicalize(text, keeps_sessions=True)  # the caller asks for this page
        if address is None:
            raise InvalidInput(f"Invalid URL {url[:100]!r}: it names no web page.")
        guard = self.guard()
        guard.check(address)
        guard.check_name(address)
        return address

    # Watch crawls

    def get(self, job_id: str) -> CrawlJob:
        """Return a crawl with its counts. Raises NotFound."""
        return self._with_counts(self._crawl_job(job_id))

    def watch(self, job_id: str) -> tuple[CrawlJob, Sequence[CrawlPage]]:
        """Return a crawl and all its pages from the same snapshot, so that the counts match the pages.

        Raises:
            NotFound: No such crawl.
        """
        job = self._crawl_job(job_id)
        pages = self.table.pages(job_id)
        rows = [PageCount(page.state, page.outcome, 1, page.passages, page.size) for page in pages]
        return make_crawl_job(job, self.table.plan(job_id), rows, self.table.reasons(job_id)), pages

    def list(
        self, *, source: str | None = None, status: str | None = None, limit: int = 20, offset: int = 0
    ) -> Sequence[CrawlJob]:
        """Return crawls with their counts, newest first."""
        jobs = self._jobs.list(kind="crawl", source=source, status=status, limit=limit, offset=offset)
        return [self._with_counts(job) for job in jobs]

    def count(self) -> int:
        """Return how many crawls there are."""
        return self._jobs.count(kind="crawl")

    def pages(
        self, job_id: str, *, outcome: str | None = None, limit: int | None = None, offset: int = 0
    ) -> list[CrawlPage]:
        """Return the pages of a crawl in the order they were found, all or those with an outcome.

        Raises:
            NotFound: No such crawl.
            InvalidInput: No such outcome.
        """
        if outcome is not None and outcome not in PAGE_OUTCOMES:
            raise InvalidInput(f"Invalid outcome {outcome!r}: use one of {list_choices(PAGE_OUTCOMES, 20)}.")
        self._crawl_job(job_id)
        return self.table.pages(job_id, outcome=outcome, limit=limit, offset=offset)

    def failures(self, job_id: str) -> list[dict[str, str | None]]:
        """Return every failed address with its reason."""
        return [{"url": page.url, "reason": page.reason} for page in self.pages(job_id, outcome="failed")]

    # Control crawls

    def cancel(self, job_id: str) -> CrawlJob:
        """Stop a crawl; stored pages are kept. Raises NotFound, or Conflict if it has already ended."""
        self._crawl_job(job_id)
        return self._with_counts(self._jobs.cancel(job_id))

    def resume(self, job_id: str) -> CrawlJob:
        """Resume a cancelled or failed crawl. Raises NotFound, or Conflict if it is running, or completed."""
        self._crawl_job(job_id)
        return self._with_counts(self._jobs.resume(job_id))

    def retry_failed(self, job_id: str) -> CrawlJob:
        """Fetch only the failed pages of a finished crawl again.

        Raises:
            NotFound: No such crawl.
            Conflict: It is running, or no page failed.
        """
        return self._revisit(job_id, self.table.retry_failed, "has no failed pages to retry")

    def accept_removals(self, job_id: str) -> CrawlJob:
        """Revisit the pages with held removals, and remove the documents of those still gone or forbidden.

        Raises:
            NotFound: No such crawl.
            Conflict: It is running, or has no held removals.
        """
        return self._revisit(job_id, self.table.accept_held, "has no held removals to accept")

    def _revisit(self, job_id: str, queue: Callable[[str], int], refusal: str) -> CrawlJob:
        job = self._crawl_job(job_id)
        if not job.is_finished:
            raise Conflict(f"Crawl {job_id} is {job.status}; wait until it ends, or cancel it.")
        if not queue(job_id):
            raise Conflict(f"Crawl {job_id} {refusal}.")
        self._jobs.table.requeue(job_id)
        return self.get(job_id)

    # Run a crawl in a worker

    def run(
        self,
        job: Job,
        hands: EmbeddingLease,
        *,
        should_stop: ShouldStop,
        log: Callable[[str, str], None],
        on_progress: OnProgress,
    ) -> tuple[str, JsonObject, str]:
        """Run a crawl job and return its status, result and message.

        Args:
            hands: Lets other workers help to embed its pages.
            log: Adds a line to the job's log, given (line, level).

        Raises:
            Cancelled: The job was asked to stop.
            PartLost: Another worker took over.
            CrawlRefused: No page could be crawled.
        """
        check_extra("crawl")
        from workbench.crawling.crawl import Crawl
        from workbench.crawling.fetch_page import PageWriter

        job_id, plan = job.id, self.table.plan(job.id)
        if not plan.source_id:
            self.table.fills(job_id, find_plan_source(self._sources, plan, job).id)
            plan = self.table.plan(job_id)
        index = self._corpus.index().name

        def ingest(
            source_id: str, items: Sequence[IngestItem], *, should_stop: ShouldStop, after_write: AfterWrite
        ) -> IngestReport:
            options = IngestOptions(should_stop=should_stop, after_write=after_write, hands=hands)
            return self._documents.ingest_items(source_id, items, options)

        storing = PageWriter(self.table, job_id, plan.source_id, index, ingest, log)
        memory = self.table.memory(plan.source_id, job_id, index)

        async def crawl(site: Site) -> None:
            await Crawl(
                job_id,
                self.table,
                site,
                storing,
                memory,
                remove=self._remove,
                should_stop=should_stop,
                on_progress=on_progress,
                log=log,
            ).run()

        unless = (Cancelled, PartLost)  # then it will resume into the same source
        with self._sources.fill(plan.source_id, unless=unless):
            try:
                self._visit(CrawlOptions.read(plan.options), crawl)
            except Cancelled:
                self._jobs.table.progress(job_id, self.get(job_id).progress)
                raise
            return self._summarise_end(job_id, storing.notes)

    def _visit(self, options: CrawlOptions, use: Callable[[Site], Coroutine[None, None, T]]) -> T:
        """Use a site in a new event loop, even if the caller's thread already runs one (in a notebook)."""
        from workbench.crawling.site import Site

        async def visit() -> T:
            site = Site(self.guard(), options, browser_url=self._browser_url)
            try:
                return await use(site)
            finally:
                await site.close()

        with ThreadPoolExecutor(1, thread_name_prefix="crawl") as pool:
            return pool.submit(copy_context().run, lambda: asyncio.run(visit())).result()

    def guard(self) -> Guard:
        """Return a new guard against requests to private networks, except to the allowed hosts."""
        from workbench.crawling.egress import Guard

        return Guard(self._allow_hosts)

    def _summarise_end(self, job_id: str, notes: Sequence[str]) -> tuple[str, JsonObject, str]:
        counts = count_pages(self.table.counts(job_id))
        held = counts.outcomes["held"]
        if not counts.pages_crawled and not any(counts.outcomes[name] for name in ("removed", "gone", "held")):
            not_fetched = ("failed", "forbidden", "not_allowed", "left_out")
            bad = [page for page in self.table.pages(job_id) if page.outcome in not_fetched]
            # The target of a moved start has its own cause.
            is_moved = bool(bad) and bad[0].final_url not in (None, bad[0].url)
            causes = [f"{page.url}: {_describe_reason(page)}" for page in bad[: 2 if is_moved else 1]]
            reason = "; ".join(causes) or "The start page has no content and no links."
            raise CrawlRefused(f"Nothing could be crawled. {reason}")
        status = "completed_with_errors" if counts.pages_failed or held else "completed"
        kept_out = counts.outcomes["forbidden"] + counts.outcomes["not_allowed"]
        left_out = sum(self.table.reasons(job_id).values()) - kept_out  # with those that have no page
        outcomes = {**counts.outcomes, "left_out": left_out}
        message = describe_result(counts.pages_done, counts.pages_total, outcomes)
        if counts.pages_failed:
            (first,) = self.table.pages(job_id, outcome="failed", limit=1)
            message = f"{message} The first failure: /{first.url.split('/', 3)[-1]}: {_describe_reason(first)}"
        if held:
            documents = self.table.count_documents(self.table.plan(job_id).source_id)
            message = f"{message} {describe_held_removals(held, documents)}"
        message = " ".join([message, *notes[:MAX_NOTES_SHOWN]])
        return status, counts.to_dict(), message

    # Rows and jobs

    def _with_counts(self, job: Job) -> CrawlJob:
        return make_crawl_job(job, self.table.plan(job.id), self.table.counts(job.id), self.table.reasons(job.id))

    def _crawl_job(self, job_id: str) -> Job:
        job = self._jobs.get(job_id)
        if job.kind != "crawl":
            raise NotFound("crawl job", job_id, "List the crawl jobs to see the valid ids.")
        return job

    def _enqueue(self, url: str, source: Source, options: CrawlOptions, target: CrawlTarget) -> CrawlJob:
        with self._jobs.table.transaction() as connection:
            values = {"url": url, "options": options.to_dict(), "target": target.to_dict()}
            job_id = self._jobs.table.create(connection, "crawl", f"Crawl {url}", values, source_id=source.id)
            self.table.create(connection, job_id, source.id, url, options.to_dict())
        return self.get(job_id)

    def _remove(self, document_id: str, keep: bool) -> None:
        if keep:
            self._documents.update(document_id, metadata={"gone": True})
        else:
            self._corpus.documents.delete([document_id])


def _describe_reason(page: CrawlPage) -> str:
    reason = page.reason or "unknown"
    return f"It redirects {reason}" if reason.startswith("to ") else reason
