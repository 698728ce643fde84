"""A crawl as every face shows it: what it is to do, how far it is, and what it found different."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workbench.storage.crawls import CrawlPlan, PageCount
from workbench.storage.jobs import FINISHED, Job
from workbench.types import Value

OUTCOMES = (
    "added", "changed", "unchanged", "duplicate", "redirected", "removed", "failed", "forbidden", "left_out",
)  # fmt: skip
READ = ("added", "changed", "unchanged", "duplicate")  # outcomes of pages that were fetched and read
REPORTED = ("added", "changed", "unchanged", "removed", "failed")


@dataclass(frozen=True, slots=True)
class CrawlJob(Value):
    """A crawl as every face shows it; the counts are by the names that the tools use.

    ``pages_crawled`` were fetched and read (copies included); ``report`` says what differs from the crawl before:
    added, changed, unchanged, removed, failed. ``bytes`` of main text.
    """

    id: str
    source_id: str
    url: str
    status: str
    recursive: bool
    max_pages: int
    exclude_patterns: tuple[str, ...]
    pages_crawled: int
    pages_failed: int
    pages_pending: int
    pages_found: int
    documents_created: int
    total_chunks: int
    bytes: int
    outcomes: Mapping[str, int]
    report: Mapping[str, int]
    message: str
    error_message: str | None
    options: Mapping[str, Any]
    created_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    updated_at: datetime | None

    @property
    def is_finished(self) -> bool:
        """True when it has ended, well or not."""
        return self.status in FINISHED


def counts_of(rows: Sequence[PageCount]) -> dict[str, Any]:
    """Return the counts of a crawl's pages, by the names of ``CrawlJob``."""
    outcomes = {name: sum(row.n for row in rows if row.outcome == name) for name in OUTCOMES}
    waiting = sum(row.n for row in rows if row.state == "fetched")
    return {
        "pages_crawled": waiting + sum(outcomes[name] for name in READ),
        "pages_failed": outcomes["failed"],
        "pages_pending": sum(row.n for row in rows if row.state == "queued"),
        "pages_found": sum(row.n for row in rows),
        "documents_created": outcomes["added"],
        "total_chunks": sum(row.passages for row in rows),
        "bytes": sum(row.bytes for row in rows),
        "outcomes": outcomes,
        "report": {name: outcomes[name] for name in REPORTED},
    }


def described(job: Job, plan: CrawlPlan, rows: Sequence[PageCount]) -> CrawlJob:
    """Return a crawl with its counts."""
    return CrawlJob(
        id=job.id,
        source_id=plan.source_id,
        url=plan.url,
        status=job.status,
        recursive=plan.options["recursive"],
        max_pages=plan.options["max_pages"],
        exclude_patterns=tuple(plan.options.get("exclude", ())),
        **counts_of(rows),
        message=job.message,
        error_message=job.error,
        options=dict(plan.options),
        created_at=job.created_at,
        started_at=job.started_at,
        completed_at=job.completed_at,
        updated_at=job.updated_at,
    )
