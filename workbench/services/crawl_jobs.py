"""A crawl as every face shows it: what it is to do, how far it is, and what it found different."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Protocol

from workbench.crawling.extraction import KEPT_OUT, standing
from workbench.storage.crawls import CrawlPage, CrawlPlan, PageCount
from workbench.storage.jobs import FINISHED, Job
from workbench.types import JsonValue, Progress, Value, as_texts, as_whole

OUTCOMES = (
    "added", "changed", "unchanged", "duplicate", "redirected", "removed", "held", "failed", "forbidden", "not_allowed",
    "left_out",
)  # fmt: skip
READ = ("added", "changed", "unchanged", "duplicate")  # outcomes of pages that were fetched and read
REPORTED = ("added", "changed", "unchanged", "removed", "failed")


class RunningCrawl(Protocol):
    """A crawl job in a worker's hand, as the worker gives it to ``CrawlService.run``."""

    @property
    def job(self) -> Job:
        """The job."""
        ...

    def should_stop(self) -> bool:
        """Tell whether to stop now."""
        ...

    def log(self, message: str, level: str = "info") -> None:
        """Add a line to the job's log."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlCounts(Value):
    """The counts of a crawl's pages, all of one moment, by the names that the tools use.

    Of ``pages_found`` addresses ``pages_total`` are to be fetched (the others are forbidden by the site, not allowed
    here, or left out), and each of these is in one of three states: ``pages_done``, ``pages_waiting`` (fetched, to be
    stored) or ``pages_pending`` (to be fetched). ``pages_crawled`` were fetched and read (copies included); ``report``
    says what differs from the crawl before: added, changed, unchanged, removed, failed. Removals that wait to be
    accepted are ``outcomes["held"]``. ``bytes`` of main text.
    """

    pages_crawled: int
    pages_failed: int
    pages_pending: int
    pages_waiting: int
    pages_done: int
    pages_total: int
    pages_found: int
    documents_created: int
    total_chunks: int
    bytes: int
    outcomes: Mapping[str, int]
    report: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlJob(CrawlCounts):
    """A crawl as every face shows it, with the counts of its pages."""

    id: str
    source_id: str
    url: str
    status: str
    recursive: bool
    max_pages: int
    not_fetched: Mapping[str, int]  # every address that was met and not fetched, counted by its reason
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
        """True when it has ended, well or not."""
        return self.status in FINISHED

    @property
    def progress(self) -> Progress:
        """How far it is, in pages."""
        return Progress(self.pages_done, self.pages_total, self.message)


def counts_of(rows: Sequence[PageCount]) -> CrawlCounts:
    """Return the counts of a crawl's pages."""
    outcomes = {name: sum(row.n for row in rows if row.outcome == name) for name in OUTCOMES}
    waiting = sum(row.n for row in rows if row.state == "fetched")
    pending = sum(row.n for row in rows if row.state == "queued")
    pages = sum(row.n for row in rows)
    total = pages - sum(outcomes[name] for name in KEPT_OUT)
    return CrawlCounts(
        pages_crawled=waiting + sum(outcomes[name] for name in READ),
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
        report={name: outcomes[name] for name in REPORTED},
    )


def counts_of_pages(pages: Iterable[CrawlPage]) -> list[PageCount]:
    """Return how many of these pages there are of each state and outcome."""
    groups: dict[tuple[str, str | None], list[CrawlPage]] = {}
    for page in pages:
        groups.setdefault((page.state, page.outcome), []).append(page)
    return [
        PageCount(state, outcome, len(some), sum(page.passages for page in some), sum(page.size for page in some))
        for (state, outcome), some in groups.items()
    ]


def message_of(job: Job, counts: CrawlCounts) -> str:
    """Return the sentence on a crawl; of one that runs or was cancelled it is made from the counts beside it."""
    if job.status not in ("running", "cancelled"):
        return job.message
    numbers = standing(
        counts.pages_done,
        counts.pages_total,
        stored_next=counts.pages_waiting,
        fetched_next=counts.pages_pending,
        failed=counts.pages_failed,
    )
    return numbers if job.status == "running" else f"{numbers}. It can be resumed."


def described(job: Job, plan: CrawlPlan, rows: Sequence[PageCount], reasons: Mapping[str, int]) -> CrawlJob:
    """Return a crawl with its counts; ``reasons`` counts the addresses that were not fetched."""
    counts = counts_of(rows)
    return CrawlJob(
        id=job.id,
        source_id=plan.source_id,
        url=plan.url,
        status=job.status,
        recursive=bool(plan.options["recursive"]),
        max_pages=as_whole(plan.options["max_pages"]),
        not_fetched=dict(reasons),
        exclude_patterns=tuple(as_texts(plan.options.get("exclude"))),
        **{item.name: getattr(counts, item.name) for item in fields(counts)},
        message=message_of(job, counts),
        error_message=job.error,
        options=dict(plan.options),
        created_at=job.created_at,
        started_at=job.started_at,
        completed_at=job.completed_at,
        updated_at=job.updated_at,
        stalled=job.stalled,
    )
