"""Crawls: start, watch, stop, go on with, repeat cheaply; and the dry run that shows what one would do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from workbench.crawling.options import CrawlOptions
from workbench.crawling.urls import canonical
from workbench.errors import Conflict, CrawlRefused, InvalidInput, NotFound, choices
from workbench.services.corpus import Corpus
from workbench.services.crawl_jobs import OUTCOMES, CrawlJob, counts_of, described
from workbench.services.jobs import JobService
from workbench.services.knowledge import KnowledgeService
from workbench.services.naming import check_title
from workbench.storage.crawls import CrawlPage, Crawls
from workbench.storage.jobs import Job
from workbench.types import Source

ACTIONS = ("get", "list", "cancel", "resume", "retry_failed", "recrawl")


class CrawlService:
    """The verbs over crawls."""

    def __init__(
        self,
        corpus: Corpus,
        knowledge: KnowledgeService,
        jobs: JobService,
        *,
        allow_hosts: Sequence[str] = (),
        browser_url: str = "",
    ) -> None:
        """``allow_hosts`` may be private or loopback; ``browser_url`` is a given browser's CDP address."""
        self._corpus, self._knowledge, self._jobs = corpus, knowledge, jobs
        self._allow_hosts, self._browser_url = tuple(allow_hosts), browser_url
        self.table = Crawls(corpus.database)

    # --- starting ---------------------------------------------------------------------------------------------------

    def start(
        self,
        url: str,
        *,
        source: str | None = None,
        title: str | None = None,
        project: str | None = None,
        folder: str | None = None,
        tags: Sequence[str] = (),
        **options: Any,
    ) -> CrawlJob:
        """Start a crawl and return it (``CrawlService.get``); ``options`` are those of ``CrawlOptions``.

        Without a source it goes into the one of its host, made when there is none.

        Raises:
            InvalidInput: no web address, or an option out of range. CrawlRefused: a literal address that is private.
        """
        address = self.checked(url)
        checked = CrawlOptions.read(options)
        target = self._source(address, source, title, project, folder, tags)
        return self._enqueue(address, target, checked)

    def recrawl(self, job_id: str, **changes: Any) -> CrawlJob:
        """Crawl the same again as a new job: what did not change costs a question each. ``changes`` to its options."""
        plan = self.table.plan(job_id)
        options = CrawlOptions.read(dict(plan.options) | changes)
        return self._enqueue(plan.url, self._corpus.sources.get(plan.source_id), options)

    def dry_run(self, url: str, *, samples: int = 3, **options: Any) -> dict[str, Any]:
        """Look at a site without storing anything: what would be fetched, what not and why, samples, an estimate."""
        from workbench.crawling.dry_run import dry_run
        from workbench.crawling.site import Site

        address, checked = self.checked(url), CrawlOptions.read(options)

        async def look() -> dict[str, Any]:
            site = Site(self.guard(), checked, browser_url=self._browser_url)
            try:
                return await dry_run(site, address, checked, samples)
            finally:
                await site.close()

        return _in_new_loop(look)

    def checked(self, url: str) -> str:
        """Return the canonical form of an address that may be crawled. Raises InvalidInput or CrawlRefused."""
        text = url.strip()
        if "://" not in text and not text.lower().startswith(("mailto:", "javascript:", "data:", "file:")):
            text = f"https://{text}"
        if not text.lower().startswith(("http://", "https://")):
            raise InvalidInput(f"Invalid URL {url[:100]!r}: must start with http:// or https://.")
        found = canonical(text)
        if found is None:
            raise InvalidInput(f"Invalid URL {url[:100]!r}: it names no web page.")
        self.guard().check(found)
        return found

    # --- watching ---------------------------------------------------------------------------------------------------

    def get(self, job_id: str) -> CrawlJob:
        """Return a crawl with its counts. Raises NotFound."""
        return self._described(self._crawl_job(job_id))

    def list(
        self, *, source: str | None = None, status: str | None = None, limit: int = 20, offset: int = 0
    ) -> Sequence[CrawlJob]:
        """Return crawls with their counts, newest first."""
        jobs = self._jobs.list(kind="crawl", source=source, status=status, limit=limit, offset=offset)
        return [self._described(job) for job in jobs]

    def pages(
        self, job_id: str, *, outcome: str | None = None, limit: int | None = None, offset: int = 0
    ) -> list[CrawlPage]:
        """Return the pages of a crawl in the order they were met; ``outcome`` narrows. Raises NotFound."""
        if outcome is not None and outcome not in OUTCOMES:
            raise InvalidInput(f"outcome cannot be {outcome!r}; use one of {choices(OUTCOMES, 20)}.")
        self._crawl_job(job_id)
        return self.table.pages(job_id, outcome=outcome, limit=limit, offset=offset)

    def failures(self, job_id: str) -> list[dict[str, Any]]:
        """Return every failed address with its reason."""
        return [{"url": page.url, "reason": page.reason} for page in self.pages(job_id, outcome="failed")]

    # --- steering ---------------------------------------------------------------------------------------------------

    def cancel(self, job_id: str) -> CrawlJob:
        """Stop a crawl; what it stored stays. Raises NotFound or Conflict."""
        self._crawl_job(job_id)
        return self._described(self._jobs.cancel(job_id))

    def resume(self, job_id: str) -> CrawlJob:
        """Let a stopped or failed crawl go on from where it was. Raises NotFound or Conflict."""
        self._crawl_job(job_id)
        return self._described(self._jobs.resume(job_id))

    def retry_failed(self, job_id: str) -> CrawlJob:
        """Fetch the failed pages of a finished crawl again, and nothing else. Raises NotFound or Conflict."""
        job = self._crawl_job(job_id)
        if not job.is_finished:
            raise Conflict(f"Crawl {job_id} is {job.status}; wait until it has ended, or cancel it.")
        if not self.table.retry_failed(job_id):
            raise Conflict(f"Crawl {job_id} has no failed pages to try again.")
        self._jobs.table.requeue(job_id)
        return self.get(job_id)

    def manage(self, action: str, job_id: str | None = None, **more: Any) -> Any:
        """Do one of ``ACTIONS``; every one but "list" needs a job. Raises InvalidInput and what the action raises."""
        verbs: dict[str, Callable[..., Any]] = {name: getattr(self, name) for name in ACTIONS}
        if action not in verbs:
            raise InvalidInput(f"action cannot be {action!r}; use one of {choices(ACTIONS)}.")
        if action == "list":
            return self.list(**more)
        if not job_id:
            raise InvalidInput(f"The action {action!r} needs job_id; action 'list' shows the jobs.")
        return verbs[action](job_id, **more)

    # --- running (the worker calls this) ----------------------------------------------------------------------------

    def run(self, running: Any) -> tuple[str, dict[str, Any], str]:
        """Run a crawl job to its end; returns (status, result, message). Raises Cancelled or CrawlRefused."""
        from workbench.crawling.crawl import Crawl
        from workbench.crawling.site import Site
        from workbench.crawling.storing import Storing

        job_id = running.job.id
        plan = self.table.plan(job_id)
        index = self._corpus.index().name
        storing = Storing(self.table, job_id, plan.source_id, index, self._knowledge.ingest_items)
        memory = self.table.memory(plan.source_id, job_id, index)

        async def crawl() -> None:
            site = Site(self.guard(), CrawlOptions.read(plan.options), browser_url=self._browser_url)
            try:
                await Crawl(
                    job_id,
                    self.table,
                    site,
                    storing,
                    memory,
                    remove=self._remove,
                    should_stop=running.should_stop,
                    on_progress=running.progress,
                    log=running.log,
                ).run()
            finally:
                await site.close()
                if site.browser_trouble:
                    running.log(f"Some pages may need a browser: {site.browser_trouble}", "warning")

        _in_new_loop(crawl)
        return self._ended(job_id)

    def guard(self) -> Any:
        """Return a new guard over the allowed hosts."""
        from workbench.crawling.egress import Guard

        return Guard(self._allow_hosts)

    def _ended(self, job_id: str) -> tuple[str, dict[str, Any], str]:
        counts = counts_of(self.table.counts(job_id))
        if not counts["pages_crawled"] and not counts["outcomes"]["removed"]:
            bad = [page for page in self.table.pages(job_id) if page.outcome in ("failed", "forbidden")]
            reason = f"{bad[0].url}: {bad[0].reason}" if bad else "The start page leads nowhere."
            raise CrawlRefused(f"Nothing could be crawled. {reason}")
        status = "completed_with_errors" if counts["pages_failed"] else "completed"
        report = ", ".join(f"{number} {name}" for name, number in counts["report"].items() if number)
        return status, counts, f"{counts['pages_crawled']} pages crawled: {report or 'nothing new'}."

    # --- the ground -------------------------------------------------------------------------------------------------

    def _described(self, job: Job) -> CrawlJob:
        return described(job, self.table.plan(job.id), self.table.counts(job.id))

    def _crawl_job(self, job_id: str) -> Job:
        job = self._jobs.get(job_id)
        if job.kind != "crawl":
            raise NotFound("crawl job", job_id, "List the crawl jobs to see the valid ids.")
        return job

    def _enqueue(self, url: str, source: Source, options: CrawlOptions) -> CrawlJob:
        with self._jobs.table.transaction() as connection:
            values = {"url": url, "options": options.to_dict()}
            job_id = self._jobs.table.create(connection, "crawl", f"Crawl {url}", values, source_id=source.id)
            self.table.create(connection, job_id, source.id, url, options.to_dict())
        return self.get(job_id)

    def _source(
        self,
        url: str,
        source: str | None,
        title: str | None,
        project: str | None,
        folder: str | None,
        tags: Sequence[str],
    ) -> Source:
        if source:
            return self._knowledge.source_for(source, project=project, folder=folder, tags=tags, source_type="crawl")
        name = check_title(title or f"Crawled: {urlsplit(url).netloc}")
        place = {"project": project, "folder": folder, "tags": tags}
        try:
            return self._knowledge.create_source(name, source_type="crawl", url=url, **place)
        except Conflict:
            return self._knowledge.source_for(name, source_type="crawl", **place)

    def _remove(self, document_id: str, keep: bool) -> None:
        if keep:
            self._knowledge.update_document(document_id, metadata={"gone": True})
        else:
            self._corpus.documents.delete([document_id])


def _in_new_loop(start: Callable[[], Any]) -> Any:
    """Run a coroutine in a loop of its own, also where the caller's thread runs one (a notebook)."""
    with ThreadPoolExecutor(1, thread_name_prefix="crawl") as pool:
        return pool.submit(lambda: asyncio.run(start())).result()
