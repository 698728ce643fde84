"""The pace of a crawl that goes on: the share that is done, and by what happened since a former look the time left."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.services.crawls import CrawlCounts

BEGUN = 0.02  # share below which nothing is said about the time left


def share(job: CrawlCounts) -> float:
    """Return the share of a crawl that is done, 0..1: a page that is fetched and not stored yet is half done."""
    return (job.pages_done + job.pages_waiting / 2) / job.pages_total if job.pages_total else 0.0


def fetched(job: CrawlCounts) -> int:
    """Return how many pages are fetched, stored or not."""
    return job.pages_done + job.pages_waiting


@dataclass(frozen=True, slots=True)
class FormerLook:
    """A crawl as it stood when this page began to watch it; its pace goes by that, for it may have been stopped."""

    moment: datetime
    share: float
    fetched: int

    def seconds_left(self, job: CrawlCounts, moment: datetime) -> float | None:
        """Return the seconds that are likely left; None while that is too little to say."""
        gained = share(job) - self.share
        return (moment - self.moment).total_seconds() * (1 - share(job)) / gained if gained > BEGUN else None

    def pace(self, job: CrawlCounts, moment: datetime) -> float:
        """Return how many pages were fetched a minute."""
        return (fetched(job) - self.fetched) / max(1.0, (moment - self.moment).total_seconds()) * 60
