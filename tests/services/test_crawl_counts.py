"""The counts of a crawl agree with each other at every moment: while it runs, after a stop, and at its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.crawling.conftest import site  # noqa: F401 - the fixture
from tests.crawling.site import QUICK, TestSite, page, reply
from workbench import Workbench
from workbench.crawling.options import UNFETCHED_OUTCOMES
from workbench.jobs.worker import run_job
from workbench.services.crawls import CrawlJob
from workbench.settings import Settings


@pytest.fixture
def wb(make_settings: Callable[..., Settings]) -> Iterator[Workbench]:
    """A workbench that may crawl this machine."""
    with Workbench.open(settings=make_settings(crawl_allow_hosts="127.0.0.1")) as workbench:
        yield workbench


def check(wb: Workbench, job_id: str) -> CrawlJob:
    """Check the counts of a crawl against its pages and against each other."""
    job, pages = wb.crawls.watch(job_id)
    kept_out = sum(page.outcome in UNFETCHED_OUTCOMES for page in pages)
    assert job.pages_found == len(pages) == job.pages_total + kept_out
    assert job.pages_done + job.pages_waiting + job.pages_pending == job.pages_total
    assert job.pages_waiting == sum(page.state == "fetched" for page in pages)
    assert sum(job.outcomes.values()) + job.pages_waiting + job.pages_pending == job.pages_found
    assert job.documents_created == sum(page.outcome == "added" for page in pages)
    if job.status in ("running", "cancelled"):
        assert f"{job.pages_done} of {job.pages_total} pages done, {job.pages_waiting} to be stored" in job.message
        assert f"{job.pages_pending} to be fetched, {job.pages_failed} failed" in job.message
    return job


def test_counts_agree_while_a_crawl_runs_after_a_stop_and_at_its_end(wb: Workbench, site: TestSite) -> None:  # noqa: F811
    names = [f"/p{number}" for number in range(60)]
    site.put({"/": page("Start", links=[*names, "/gone", "/x.cgi"])})
    site.put({name: reply(page(f"Page {name}"), delay=0.25) for name in names})
    options: dict[str, Any] = QUICK | {"browser": "never", "exclude": [".cgi"], "concurrency": 2, "sitemaps": False}
    job_id = wb.crawls.start(f"{site.url}/", **options).id
    stopped = threading.Event()

    def run() -> None:
        run_job(wb.jobs.table, wb.runners(), job_id, "test", threading.Event())
        stopped.set()

    worker = threading.Thread(target=run)
    worker.start()
    looks = 0
    while check(wb, job_id).pages_waiting < 5:
        assert not stopped.is_set()
        looks += 1
    assert looks > 1
    wb.crawls.cancel(job_id)
    worker.join()
    cancelled = check(wb, job_id)
    assert (cancelled.status, cancelled.pages_pending > 0) == ("cancelled", True)
    work = wb.jobs.get(job_id)
    assert (work.done, work.total) == (cancelled.pages_done, cancelled.pages_total)

    wb.crawls.resume(job_id)
    run_job(wb.jobs.table, wb.runners(), job_id, "test", threading.Event())
    ended = check(wb, job_id)
    assert (ended.pages_done, ended.pages_total, ended.pages_found) == (62, 62, 63)
    assert (ended.pages_crawled, ended.pages_failed, ended.documents_created) == (61, 1, 61)
    assert ended.message == (
        "62 of 62 pages done: 61 added, 1 failed. Not fetched: 1 left out. The first failure: /gone: It answered 404."
    )
