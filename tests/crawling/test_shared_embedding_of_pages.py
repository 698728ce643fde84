"""One worker fetches the pages of a crawl and all embed them; a dead worker costs at most one part."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from tests.crawling.site import QUICK, TestSite, page
from tests.crawling.test_killed_workers import PATIENCE, corpus, hatch, told
from tests.jobs.shared_work import embedded_log, embedding_held, embedding_parts
from workbench import Workbench

__all__ = ["hatch"]  # a fixture
PAGES, PARAGRAPHS = 24, 40


def make_site(site: TestSite) -> None:
    """Pages of about forty passages each, all linked from the first."""
    bodies = {f"/p{n}": "</p><p>".join(f"page{n} line{line} " * 60 for line in range(PARAGRAPHS)) for n in range(PAGES)}
    links = [f"/p{n}" for n in range(1, PAGES)]
    site.put({path: page(f"Page {path}", body, links if path == "/p0" else ()) for path, body in bodies.items()})


@pytest.mark.parametrize("dies", ["helper", "leader"])
def test_a_worker_that_is_killed_while_pages_are_embedded_leaves_no_trace(
    dies: str,
    wb: Workbench,
    site: TestSite,
    hatch: Callable[[], int],
    database_url: str,
) -> None:
    make_site(site)
    options = QUICK | {"browser": "never", "within": "host", "max_pages": PAGES}
    with embedding_held(database_url, 1):
        job = wb.crawls.start(f"{site.url}/p0", title="Shared", **options).id
        leader = hatch()
        hands = wb.jobs.table.embedding.tally
        while not embedded_log(database_url) or hands(job).holders < 1:
            assert not wb.jobs.get(job).is_finished
            time.sleep(0.05)
        helper = hatch()
        while hands(job).holders < 2:
            assert not wb.jobs.get(job).is_finished
            time.sleep(0.05)
        assert wb.documents.count() == 0
        os.kill(leader if dies == "leader" else helper, signal.SIGKILL)
        hits = site.hits()
    done = wb.jobs.wait(job, timeout=PATIENCE)
    assert done.status == "completed"
    parts = [part for part, _, _ in embedded_log(database_url)]
    assert len(parts) == len(set(parts)) >= 5  # none was embedded twice to its end
    assert sum(times - 1 for _, _, times in embedded_log(database_url)) <= 1
    assert (embedding_parts(database_url), site.hits()) == (0, hits)  # and none was fetched again
    calm = wb.jobs.wait(wb.crawls.start(f"{site.url}/p0", title="Calm", **options).id, timeout=PATIENCE)
    assert told(wb, job) == told(wb, calm.id)
    assert corpus(wb, done.source_id or "") == corpus(wb, calm.source_id or "")
