"""A worker may die at any moment: another one resumes its crawl, and the corpus is the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crawling.site import QUICK, TestSite, page, redirect
from workbench import Workbench
from workbench.crawling.urls import url_path

PAGES, KILLS, AT_ONCE = 200, 6, 2  # two requests under way when a worker dies
PATIENCE = 240  # seconds; only a failure takes that long


@pytest.fixture
def hatch(database_url: str, test_home: Path) -> Iterator[Callable[[], int]]:
    """Start worker processes; returns the id of each."""
    settings = {"HOME": test_home, "DATABASE_URL": database_url, "EMBEDDING_MODEL": "hash"}
    environment = os.environ | {f"WORKBENCH_{name}": str(value) for name, value in settings.items()}
    environment |= {"WORKBENCH_CRAWL_ALLOW_HOSTS": "127.0.0.1", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, str(Path(__file__).with_name("worker_nest.py"))]
    hatched = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as nest:
        assert nest.stdin is not None and nest.stdout is not None

        def one() -> int:
            nest.stdin.write(b"\n")
            nest.stdin.flush()
            hatched.append(int(nest.stdout.readline()))
            return hatched[-1]

        yield one
        for worker in hatched:  # the dead ones among them are not reaped before the nest ends
            os.kill(worker, signal.SIGKILL)
        nest.stdin.close()


def make_site(site: TestSite) -> None:
    """Two hundred pages with copies, moved pages, dead links and a page that holds a dozen others."""
    pages: dict[str, Any] = {}
    for n in range(PAGES):
        links = [f"/p{2 * n + 1}", f"/p{2 * n + 2}", f"/p{n * 7 % PAGES}", "/gone" if n % 50 == 3 else "/p0"]
        pages[f"/p{n}"] = page(f"Page {n}", links=[link for link in links if link[2:].isdigit() or link == "/gone"])
    pages["/p150"], pages["/p77"] = pages["/p10"], redirect("/p5")
    site.put({path: content for path, content in pages.items() if int(path[2:]) < PAGES})


def corpus(wb: Workbench, source_id: str) -> dict[str, Any]:
    """Return the contents of a source's documents, by address."""
    texts = {}
    for listed in wb.documents.list(source_id=source_id):
        whole = wb.documents.get(listed.id)
        told = ("start", "end", "ordinal", "kind", "context", "language", "heading_path")
        stored = wb.documents.passages(listed.id)
        passages = [(passage.text, [passage.metadata.get(name) for name in told]) for passage in stored]
        texts[listed.url] = (whole.title, whole.text, whole.content_hash, passages)
    return texts


def told(wb: Workbench, job_id: str) -> list[tuple[Any, ...]]:
    """Return the crawl's record of every page, in order."""
    return [(p.position, p.url, p.parent, p.depth, p.outcome, p.reason) for p in wb.crawls.pages(job_id)]


def steps(wb: Workbench, job_id: str) -> int:
    """Return the progress of a crawl: the number of pages fetched plus the number settled."""
    rows = wb.crawls.table.counts(job_id)
    return sum(row.n * (1 if row.state == "fetched" else 2) for row in rows if row.state != "queued")


def test_kills_at_random_moments_leave_no_trace(
    wb: Workbench, site: TestSite, crawl: Callable[..., Any], hatch: Callable[[], int]
) -> None:
    make_site(site)
    calm = crawl(f"{site.url}/p0", within="host", title="Calm", max_pages=PAGES)
    hits = site.hits()
    options = QUICK | {"browser": "never", "within": "host", "max_pages": PAGES, "concurrency": AT_ONCE}
    job = wb.crawls.start(f"{site.url}/p0", title="Killed", **options).id
    moments = sorted(random.sample(range(3, 2 * PAGES - 20), KILLS))
    answered: dict[str, int] = {}
    for moment in moments:
        worker = hatch()
        until = time.monotonic() + PATIENCE
        while steps(wb, job) < moment:
            assert time.monotonic() < until
            time.sleep(0.01)
        os.kill(worker, signal.SIGKILL)
        assert wb.jobs.get(job).status == "running"
        hits_now = site.hits()
        paths = [url_path(p.url) for p in wb.crawls.pages(job) if p.state != "queued"]
        answered |= {path: hits_now.get(path, 0) for path in paths if path not in answered}
    hatch()
    survived = wb.jobs.wait(job, timeout=PATIENCE)
    assert survived.status == calm["status"] == "completed_with_errors"
    assert told(wb, job) == told(wb, calm["id"])
    assert corpus(wb, survived.source_id or "") == corpus(wb, calm["source_id"])
    hits_after = site.hits()
    again = [path for path, count in answered.items() if hits_after.get(path, 0) > count]
    assert again == [], f"killed at {moments}: an answer that was kept is never asked for again"
    twice = [path for path, count in hits_after.items() if count > 2 * hits.get(path, 0) and path.startswith("/p")]
    assert len(twice) <= KILLS * AT_ONCE, f"killed at {moments}: only what was under way may be fetched again"
