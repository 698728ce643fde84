"""Sources created by a crawl that stored nothing are removed, and the crawl keeps its record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.crawling.conftest import crawl, site, wb  # noqa: F401 - fixtures # pyright: ignore[reportUnusedImport]
from tests.crawling.site import QUICK, TestSite, finish, page, reply
from workbench import Workbench

# ruff: noqa: F811

Crawl = Callable[..., dict[str, Any]]


def titles(wb: Workbench) -> list[str]:
    return [source.title for source in wb.sources.list()]


def test_a_crawl_that_stores_nothing_leaves_its_record_and_no_source(
    wb: Workbench, site: TestSite, crawl: Crawl
) -> None:
    site.put({"/": reply("", 500)})
    crawled = crawl(f"{site.url}/")
    assert (crawled["status"], crawled["source_id"], titles(wb)) == ("failed", "", [])
    assert crawled["pages_failed"] == 1
    assert [job.id for job in wb.crawls.list()] == [crawled["id"]]


def test_a_source_that_someone_made_stays_without_documents(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({"/": reply("", 500)})
    made = wb.sources.create("Mine", source_type="crawl")
    assert crawl(f"{site.url}/", source="Mine")["source_id"] == made.id
    assert titles(wb) == ["Mine"]


def test_a_failed_crawl_makes_its_source_again_when_it_is_tried_again(
    wb: Workbench, site: TestSite, crawl: Crawl
) -> None:
    site.put({"/": reply("", 500)})
    failed = crawl(f"{site.url}/", source="Port", tags=["sea"])
    site.put({"/": page("Harbour")})
    wb.crawls.retry_failed(failed["id"])
    done = finish(wb, failed["id"])
    source = wb.sources.get("Port")
    assert (done["status"], done["source_id"]) == ("completed", source.id)
    assert (source.tags, source.documents_count, source.source_type) == (("sea",), 1, "crawl")
    assert wb.jobs.get(failed["id"]).source_id == source.id


def test_a_failed_crawl_that_is_crawled_again_gets_a_source_like_the_first(
    wb: Workbench, site: TestSite, crawl: Crawl
) -> None:
    site.put({"/": reply("", 500)})
    failed = crawl(f"{site.url}/", title="Harbour", new_source=True)
    site.put({"/": page("Harbour")})
    again = finish(wb, wb.crawls.recrawl(failed["id"]).id)
    assert (again["status"], titles(wb)) == ("completed", ["Harbour"])


def test_a_crawl_that_was_cancelled_keeps_its_source_until_it_is_forgotten(wb: Workbench, site: TestSite) -> None:
    options: dict[str, Any] = QUICK | {"browser": "never"}
    job = wb.crawls.start(f"{site.url}/", **options).id
    wb.crawls.cancel(job)
    assert len(titles(wb)) == 1
    wb.jobs.delete(job)
    assert titles(wb) == []
