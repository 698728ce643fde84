"""A crawl of what was crawled before: cheap, and exact about what is different."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.crawling.site import TestSite, finish, outcomes, page, reason, reply
from workbench import Workbench
from workbench.errors import Conflict

Crawl = Callable[..., dict[str, Any]]
NAMES = ("/a", "/b", "/c", "/d")


def tagged(title: str, tag: str, **more: Any) -> dict[str, Any]:
    """Return a page with an ETag."""
    return reply(page(title, **more), headers={"ETag": f'"{tag}"'})


@pytest.fixture
def crawled(site: TestSite, crawl: Crawl) -> dict[str, Any]:
    """A crawl of five pages."""
    site.put({"/": page("Start", links=list(NAMES))} | {name: tagged(f"Page {name}", "1") for name in NAMES})
    return crawl(f"{site.url}/")


def test_what_did_not_change_is_asked_for_and_not_sent(wb: Workbench, site: TestSite, crawled: dict[str, Any]) -> None:
    before = [(d.id, d.updated_at) for d in wb.documents.list()]
    again = finish(wb, wb.crawls.recrawl(crawled["id"]).id)
    assert again["report"] == {"added": 0, "changed": 0, "unchanged": 5, "removed": 0, "failed": 0}
    assert again["total_chunks"] == 0
    assert [p.status_code for p in wb.crawls.pages(again["id"])] == [200, 304, 304, 304, 304]
    assert [(d.id, d.updated_at) for d in wb.documents.list()] == before


def test_the_report_tells_added_changed_removed_and_failed(
    wb: Workbench, site: TestSite, crawled: dict[str, Any]
) -> None:
    site.put({
        "/": page("Start", links=["/a", "/b", "/d", "/new"]), "/new": page("New"),
        "/a": tagged("Page /a", "2", text="Walrus."),
        "/b": reply("", 410), "/d": reply("", 500), "/c": reply("", 404),
    })  # fmt: skip
    again = finish(wb, wb.crawls.recrawl(crawled["id"], retries=0).id)
    assert outcomes(wb, again) == {
        "": "changed", "a": "changed", "b": "removed", "c": "removed", "d": "failed", "new": "added",
    }  # fmt: skip
    assert {d.title for d in wb.documents.list()} == {"Start", "Page /a", "Page /d", "New"}
    assert len(wb.search("walrus", strategy="keyword", limit=1)) == 1


def test_pages_that_are_gone_can_be_kept_and_marked(wb: Workbench, site: TestSite, crawled: dict[str, Any]) -> None:
    site.put({"/b": reply("", 404)})
    again = finish(wb, wb.crawls.recrawl(crawled["id"], gone="keep").id)
    assert "marked as gone" in reason(wb, again, "/b")
    marked = [d.title for d in wb.documents.list() if d.metadata.get("gone")]
    assert marked == ["Page /b"]


def test_a_page_nothing_links_to_any_more_stays_while_it_answers(
    wb: Workbench, site: TestSite, crawled: dict[str, Any]
) -> None:
    site.put({"/": page("Start", links=["/a"])})
    again = finish(wb, wb.crawls.recrawl(crawled["id"]).id)
    assert again["outcomes"]["unchanged"] == 4
    assert wb.documents.count() == 5


def test_a_sitemaps_date_saves_even_the_question(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    def sitemap(date: str) -> str:
        return f"<urlset><url><loc>{site.url}/a</loc><lastmod>{date}</lastmod></url></urlset>"

    site.put({"/": page("Start"), "/a": page("A"), "/sitemap.xml": sitemap("2026-01-01")})
    first = crawl(f"{site.url}/")
    again = finish(wb, wb.crawls.recrawl(first["id"]).id)
    assert (site.hits("/a"), again["outcomes"]["unchanged"]) == (1, 2)
    site.put({"/sitemap.xml": sitemap("2026-02-02"), "/a": page("A", "Now it says something else.")})
    third = finish(wb, wb.crawls.recrawl(again["id"]).id)
    assert (site.hits("/a"), outcomes(wb, third)["a"]) == (2, "changed")


def test_failed_pages_and_only_they_are_tried_again(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({"/": page("Start", links=["/a", "/bad"]), "/a": page("A"), "/bad": reply("", 500)})
    crawled = crawl(f"{site.url}/", retries=0)
    assert crawled["status"] == "completed_with_errors"
    site.put({"/bad": page("Good now", links=["/behind"]), "/behind": page("Behind")})
    wb.crawls.retry_failed(crawled["id"])
    retried = finish(wb, crawled["id"])
    assert (retried["status"], retried["pages_failed"], retried["documents_created"]) == ("completed", 0, 4)
    assert (site.hits("/a"), site.hits("/bad"), site.hits("/behind")) == (1, 2, 1)
    with pytest.raises(Conflict, match="no failed pages"):
        wb.crawls.retry_failed(crawled["id"])


def test_a_dry_run_tells_and_stores_nothing(wb: Workbench, site: TestSite) -> None:
    site.put({
        "/": page("Start", links=["/a", "/private/b", "/archive/c", *[f"/p{n}" for n in range(30)]]), "/a": page("A"),
        "/robots.txt": "User-agent: *\nDisallow: /private/",
    } | {f"/p{n}": page(f"P{n}") for n in range(30)})  # fmt: skip
    seen = wb.crawls.dry_run(f"{site.url}/", exclude=["/archive/"], browser="never")
    assert {(entry["url"].removeprefix(site.url), entry["reason"]) for entry in seen["would_not_fetch"]} == {
        ("/private/b", "robots.txt forbids /private/"),
        ("/archive/c", "excluded by the pattern '/archive/'"),
    }
    assert [sample["title"] for sample in seen["samples"]] == ["Start", "A", "P0"]
    assert (seen["estimate"]["pages"], seen["estimate"]["at_least"]) == (32, True)
    assert sum(site.hits(f"/p{n}") for n in range(30)) < 15
    assert (wb.sources.count(), wb.crawls.list()) == (0, [])
