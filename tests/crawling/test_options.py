"""Every option of a crawl is validated, whichever interface it comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.crawling.site import TestSite, page
from workbench import Workbench
from workbench.crawling.options import CrawlOptions
from workbench.errors import InvalidInput

WRONG: list[tuple[str, object]] = [
    ("rate", -1), ("rate", "x"), ("rate", "2"), ("rate", float("nan")), ("rate", float("inf")), ("rate", 1e-9),
    ("rate", True), ("concurrency", 0), ("concurrency", 33), ("concurrency", 1.5), ("concurrency", "8"),
    ("max_pages", 0), ("max_pages", 100_001), ("max_pages", 2.5), ("max_pages", "all"), ("max_depth", -1),
    ("max_depth", 1001), ("max_depth", []), ("timeout", 0), ("timeout", 601), ("max_bytes", 1), ("retries", -1),
    ("retries", 11), ("backoff", -0.1), ("longest_wait", 3601), ("within", "web"), ("within", 1), ("browser", True),
    ("gone", "ask"), ("recursive", "yes"), ("recursive", 1), ("sitemaps", "no"), ("include", "/docs/"),
    ("include", [1]), ("exclude", {"a": 1}), ("exclude", ["x"] * 201), ("exclude", ["x" * 501]), ("speed", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG, ids=[f"{name}={str(value)[:12]}" for name, value in WRONG])
def test_a_value_out_of_range_is_refused_in_a_sentence_that_names_it(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=name):
        CrawlOptions.read({name: value})


def test_every_option_has_a_check_and_passes_it_with_its_default() -> None:
    assert CrawlOptions.read(CrawlOptions().to_dict()) == CrawlOptions()
    read = CrawlOptions.read({"rate": 0, "max_pages": 10.0, "exclude": ["/a/", " "], "max_depth": None})
    assert (read.rate, read.max_pages, read.exclude, read.max_depth) == (0.0, 10, ("/a/",), CrawlOptions().max_depth)


def test_no_door_lets_a_wrong_option_in_and_nothing_is_left_behind(
    wb: Workbench, site: TestSite, crawl: Callable[..., Any]
) -> None:
    for door in (wb.crawls.start, wb.crawls.dry_run):
        with pytest.raises(InvalidInput, match="Invalid rate -1"):
            door(site.url, rate=-1)
    with pytest.raises(InvalidInput, match="Invalid samples -1"):
        wb.crawls.dry_run(site.url, samples=-1)
    assert (wb.sources.count(), wb.jobs.list(), site.hits()) == (0, [], {})
    site.put({"/": page("Start")})
    crawled = crawl(f"{site.url}/")
    with pytest.raises(InvalidInput, match="Invalid concurrency 0"):
        wb.crawls.recrawl(crawled["id"], concurrency=0)
    assert len(wb.jobs.list()) == 1
