"""The estimate of a crawl's duration, from measured fetches and expected waits."""

from __future__ import annotations

import pytest

from tests.crawling.site import TestSite, page, reply
from workbench import Workbench
from workbench.crawling.preview import HostLoad, estimate_fetch_seconds
from workbench.types import as_integer


def test_the_time_is_that_of_the_slowest_host_or_of_all_the_work() -> None:
    polite = HostLoad(386, 0.5, 2)
    assert estimate_fetch_seconds([polite], 8, 0.01) == 386 * 0.5  # politeness is waited for
    assert estimate_fetch_seconds([polite], 8, 3.0) == 386 * 3.0 / 2  # slow answers, two at once
    assert estimate_fetch_seconds([HostLoad(100, 0.0, 8)], 8, 0.4) == 100 * 0.4 / 8  # no politeness
    assert estimate_fetch_seconds([HostLoad(10, 20.0, 1), polite], 8, 0.01) == 10 * 20.0  # the slower of two hosts
    assert (
        estimate_fetch_seconds([HostLoad(100, 0.0, 2)] * 8, 4, 1.0) == 800 * 1.0 / 4
    )  # more hosts than requests at once
    assert estimate_fetch_seconds([], 8, 1.0) == 0.0


@pytest.mark.parametrize(("robots", "options", "interval"), [("", {"rate": 20}, 1 / 20), ("0.05", {}, 0.05)])
def test_a_dry_run_reports_the_time_that_rate_and_crawl_delay_will_take(
    wb: Workbench, site: TestSite, robots: str, options: dict[str, float], interval: float
) -> None:
    names = [f"/p{number}" for number in range(400)]
    rules = f"User-agent: *\nCrawl-delay: {robots}" if robots else ""
    site.put({"/": page("Start", links=names), "/robots.txt": reply(rules, headers={"Content-Type": "text/plain"})})
    site.put({name: page(name) for name in names[:20]})
    told = wb.crawls.dry_run(f"{site.url}/", browser="never", **options)["estimate"]
    beside = sum(site.hits(path) for path in ("/robots.txt", "/sitemap.xml", "/llms.txt"))
    assert (told["pages"], told["at_least"], beside) == (401, True, 3)
    assert told["passages"] == pytest.approx(as_integer(told["text_bytes"]) / 800, abs=1)
    assert told["seconds"] == pytest.approx((401 + beside) * interval, rel=0.02)


def test_a_host_that_is_not_ours_is_asked_at_the_polite_rate(wb: Workbench) -> None:
    from workbench.crawling.egress import Guard
    from workbench.crawling.options import CrawlOptions
    from workbench.crawling.site import POLITE_CONCURRENCY, POLITE_INTERVAL_S, Site

    site = Site(Guard(["ours.test"]), CrawlOptions())
    theirs, ours = site.limiter("http://theirs.test/"), site.limiter("http://ours.test/")
    assert (theirs.interval, theirs.concurrency) == (POLITE_INTERVAL_S, POLITE_CONCURRENCY)
    assert (ours.interval, ours.concurrency) == (0.0, CrawlOptions().concurrency)
