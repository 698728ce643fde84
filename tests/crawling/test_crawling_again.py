"""A repeated crawl is cheap and detects exactly what has changed."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.crawling.site import TestSite, finish, outcomes, page, reason, redirect, reply
from workbench import Workbench
from workbench.crawling.fetch_page import is_unchanged_by_sitemap
from workbench.errors import Conflict, CrawlRefused
from workbench.ingestion import incoming
from workbench.settings import Settings
from workbench.storage.crawls import PageMemory

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


def test_the_report_reports_added_changed_removed_and_failed(
    wb: Workbench, site: TestSite, crawled: dict[str, Any]
) -> None:
    site.put({
        "/": page("Start", links=["/a", "/b", "/d", "/new"]), "/new": page("New"),
        "/a": tagged("Page /a", "2", text="Walrus."),
        "/b": reply("", 410), "/d": reply("", 500), "/c": reply("", 404),
    })  # fmt: skip
    again = finish(wb, wb.crawls.recrawl(crawled["id"], retries=0, accept_removals=True).id)
    assert outcomes(wb, again) == {
        "": "changed", "a": "changed", "b": "removed", "c": "removed", "d": "failed", "new": "added",
    }  # fmt: skip
    assert {d.title for d in wb.documents.list()} == {"Start", "Page /a", "Page /d", "New"}
    assert len(wb.search("walrus", strategy="keyword", limit=1)) == 1


def test_documents_that_a_crawl_did_not_visit_are_counted(
    wb: Workbench, site: TestSite, crawled: dict[str, Any]
) -> None:
    """A start page that redirects to a login narrows the crawl to the login's folder."""
    site.put({"/": redirect("/login"), "/login": page("Log in")})
    again = finish(wb, wb.crawls.recrawl(crawled["id"]).id)
    place = f"127.0.0.1:{site.port}/login/"
    assert again["not_fetched"][f"documents of earlier crawls outside {place}, not visited and kept"] == 4
    assert {d.title for d in wb.documents.list()} >= {f"Page {name}" for name in NAMES}


def test_pages_that_are_gone_can_be_kept_and_marked(wb: Workbench, site: TestSite, crawled: dict[str, Any]) -> None:
    site.put({"/b": reply("", 404)})
    again = finish(wb, wb.crawls.recrawl(crawled["id"], gone="keep").id)
    assert "marked as gone" in reason(wb, again, "/b")
    marked = [d.title for d in wb.documents.list() if d.metadata.get("gone")]
    assert marked == ["Page /b"]
    assert again["message"] == "5 of 5 pages done: 4 unchanged, 1 gone."
    assert (again["outcomes"]["gone"], again["outcomes"]["removed"]) == (1, 0)
    site.put({"/b": tagged("Page /b", "1")})
    back = finish(wb, wb.crawls.recrawl(again["id"]).id)
    assert back["outcomes"]["unchanged"] == 5
    assert not any("gone" in d.metadata for d in wb.documents.list())


def test_pages_that_are_read_again_with_the_same_text_are_unchanged(
    wb: Workbench, site: TestSite, crawled: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an update of the readers; of pages that changed and changed back, the last text counts."""
    for version, animals in (("next", "Herons"), ("one more", "Eels"), ("last", "Herons")):
        monkeypatch.setattr(incoming, "READER_VERSION", version)
        site.put({"/b": page("Page /b", text=f"{animals} live in the reeds by the old mill. " * 20)})
        crawled = finish(wb, wb.crawls.recrawl(crawled["id"], refresh=True).id)
        assert (crawled["outcomes"]["unchanged"], outcomes(wb, crawled)["b"]) == (4, "changed")


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


PLAIN = {"Content-Type": "text/plain"}
TEN = [f"/docs/p{number}" for number in range(9)]


def pages_of_ten() -> dict[str, Any]:
    """Return a folder of ten pages."""
    return {"/docs/": page("Start", links=TEN)} | {name: page(f"Page {name}") for name in TEN}


def read_texts(wb: Workbench) -> dict[str, str]:
    """Return {address: text} of every document."""
    return {document.url or "": wb.documents.get(document.id).text or "" for document in wb.documents.list()}


@pytest.mark.parametrize("gone", ["remove", "keep"])
@pytest.mark.parametrize(
    ("robots", "answer"),
    [
        (reply("busy", 503), None),
        (reply("slow", 429), None),
        (reply("", 404), reply("busy", 503)),
        (reply("", 404), reply("blocked", 403)),
        (reply("", 404), reply("", 302, headers={"Location": "/login?next=/docs/"})),
        (reply("", 404), reply(page("Maintenance", "We are down for maintenance and back in an hour."))),
        (reply("User-agent: *\nDisallow: /", headers=PLAIN), None),
    ],
    ids=["robots 503", "robots 429", "503", "403", "login", "maintenance", "all forbidden"],
)
def test_a_site_that_cannot_be_asked_loses_no_document(
    wb: Workbench, site: TestSite, crawl: Crawl, robots: dict[str, Any], answer: dict[str, Any] | None, gone: str
) -> None:
    site.put(pages_of_ten())
    crawled = crawl(f"{site.url}/docs/")
    before = read_texts(wb)
    assert len(before) == 10
    site.put({"/robots.txt": robots} | (dict.fromkeys(pages_of_ten(), answer) if answer else {}))
    finish(wb, wb.crawls.recrawl(crawled["id"], retries=0, gone=gone).id)
    assert read_texts(wb) == before


@pytest.mark.parametrize("word", ["abcdefgh", "quince orchard"])
def test_stand_ins_that_differ_in_a_few_words_replace_no_document(
    wb: Workbench, site: TestSite, crawl: Crawl, word: str
) -> None:
    site.put(pages_of_ten())
    crawled = crawl(f"{site.url}/docs/")
    before = read_texts(wb)
    sorry = "We are down for maintenance and back in an hour. Your reference is"
    for n, path in enumerate(pages_of_ten()):
        site.put({path: reply(page("Maintenance", f"{sorry} {word}{'x' * n}."))})
    ended = finish(wb, wb.crawls.recrawl(crawled["id"]).id)
    assert (read_texts(wb), ended["outcomes"]["failed"]) == (before, 10)


LOGIN = reply(
    "<title>Sign in</title><main><h1>Sign in</h1><p>Please sign in to continue.</p>"
    "<form><input name='user'><input type='Password' name='secret'><button>Sign in</button></form></main>"
)


def test_a_site_that_sends_everything_to_its_login_is_reported(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put(pages_of_ten())
    crawled = crawl(f"{site.url}/docs/")
    site.put(dict.fromkeys(pages_of_ten(), reply("", 302, headers={"Location": "/login/"})))
    site.put({"/login/": page("Sign in")})
    ended = finish(wb, wb.crawls.recrawl(crawled["id"]).id)
    assert ended["status"] == "completed_with_errors"
    sentence = f"to {site.url}/login/ (outside of which are 9 documents of earlier crawls, kept and not visited)"
    assert reason(wb, ended, "/docs/") == sentence
    site.put({"/login/": LOGIN})
    ended = finish(wb, wb.crawls.recrawl(crawled["id"]).id)
    assert ended["error_message"] == (
        f"Nothing could be crawled. {site.url}/docs/: It redirects {sentence}; {site.url}/login/: It is a login page."
    )


LONG = "The ferry to the island leaves at nine from the north pier and takes bicycles, dogs and small cars. " * 5


@pytest.mark.parametrize("stub", ["Loading…", "We are down for maintenance and will be back in an hour."])
def test_a_single_page_that_lost_most_of_its_text_keeps_its_document(
    wb: Workbench, site: TestSite, crawl: Crawl, stub: str
) -> None:
    site.put(pages_of_ten() | {TEN[0]: page("Ferries", LONG), TEN[1]: page("Cars", LONG + "Cars pay more.")})
    crawled = crawl(f"{site.url}/docs/")
    before = read_texts(wb)
    site.put({TEN[0]: page("Please wait", stub), TEN[1]: page("Cars", "Cars pay half as much. " * 6)})
    ended = finish(wb, wb.crawls.recrawl(crawled["id"]).id)
    assert (ended["status"], ended["outcomes"]["failed"], ended["outcomes"]["changed"]) == (
        "completed_with_errors",
        1,
        1,
    )
    assert "so its document is kept. If this is intended" in reason(wb, ended, TEN[0])
    address = f"{site.url}{TEN[0]}"
    assert read_texts(wb)[address] == before[address]
    accepted = finish(wb, wb.crawls.recrawl(ended["id"], accept_removals=True).id)
    assert (accepted["outcomes"]["changed"], stub in read_texts(wb)[address]) == (1, True)


def test_data_sheets_that_differ_in_numbers_are_updated(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    def sheets(seal: str) -> dict[str, str]:
        return {f"/{n}": page(f"Pump {n}", f"Pump {n} delivers {n} litres for {3 * n} euros. {seal}") for n in (7, 8)}

    site.put({"/": page("Pumps", links=["/7", "/8"])} | sheets(""))
    crawled = crawl(f"{site.url}/")
    site.put(sheets("Its seal is made of brass."))
    ended = finish(wb, wb.crawls.recrawl(crawled["id"]).id)
    assert (ended["outcomes"]["changed"], ended["outcomes"]["failed"]) == (2, 0)


def test_a_rendered_page_keeps_its_document_without_a_browser(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    script = "document.getElementById('root').innerHTML = '<h1>Ferries</h1><p>The ferry leaves at nine.</p>'"
    site.put({"/a": f"<html><body><div id=root></div><p>Please wait.</p><script>{script}</script></body></html>"})
    crawled = crawl(f"{site.url}/a", recursive=False, browser="auto", timeout=30)
    before = read_texts(wb)
    assert "The ferry leaves at nine." in before[f"{site.url}/a"]
    ended = finish(wb, wb.crawls.recrawl(crawled["id"], browser="never").id)
    assert (read_texts(wb), ended["outcomes"]["failed"]) == (before, 1)


def test_a_worker_that_may_not_ask_a_host_keeps_its_documents(
    make_settings: Callable[..., Settings], wb: Workbench, site: TestSite, crawl: Crawl
) -> None:
    site.put(pages_of_ten())
    crawled = crawl(f"{site.url}/docs/")
    again = wb.crawls.recrawl(crawled["id"])
    with Workbench.open(settings=make_settings()) as other:
        ended = finish(other, again.id)
    assert (ended["status"], ended["outcomes"]["not_allowed"], wb.documents.count()) == ("failed", 10, 10)
    assert "WORKBENCH_CRAWL_ALLOW_HOSTS" in ended["error_message"]


def test_a_server_that_is_off_keeps_the_one_document_of_its_page(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({"/a": page("A")})
    crawled = crawl(f"{site.url}/a", recursive=False)
    site.put({"/robots.txt": reply("", 500), "/a": reply("", 500)})
    finish(wb, wb.crawls.recrawl(crawled["id"], retries=0).id)
    assert wb.documents.count() == 1


def test_more_than_a_fifth_is_removed_only_when_that_is_accepted(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put(pages_of_ten())
    crawled = crawl(f"{site.url}/docs/")
    site.put({name: reply("", 404) for name in TEN[:3]})
    held = finish(wb, wb.crawls.recrawl(crawled["id"]).id)
    assert (held["status"], held["outcomes"]["held"], held["outcomes"]["removed"]) == ("completed_with_errors", 3, 0)
    assert "3 of 10 documents would be, more than 20%" in held["message"]
    assert reason(wb, held, TEN[0]) == "It answered 404. Its document is kept until the removal is accepted."
    assert wb.documents.count() == 10
    site.put({TEN[0]: page("Back again")})
    wb.crawls.accept_removals(held["id"])
    assert (wb.jobs.get(held["id"]).status, wb.jobs.get(held["id"]).share) == ("queued", 0)
    accepted = finish(wb, held["id"])
    assert (accepted["outcomes"]["held"], accepted["outcomes"]["removed"], wb.documents.count()) == (0, 2, 8)
    with pytest.raises(Conflict, match="no held removals"):
        wb.crawls.accept_removals(held["id"])


def test_a_fifth_is_removed_if_the_site_reports_it(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put(pages_of_ten())
    crawled = crawl(f"{site.url}/docs/")
    site.put({TEN[0]: page("P", head="<meta name=robots content=noindex>")})
    site.put({"/robots.txt": reply(f"User-agent: *\nDisallow: {TEN[1]}", headers=PLAIN)})
    again = finish(wb, wb.crawls.recrawl(crawled["id"]).id)
    assert (again["outcomes"]["removed"], again["outcomes"]["held"], wb.documents.count()) == (2, 0, 8)
    assert reason(wb, again, TEN[1]) == f"robots.txt forbids {TEN[1]} Its document was removed."


def test_a_sitemaps_date_of_the_day_of_the_last_crawl_is_not_believed(
    wb: Workbench, site: TestSite, crawl: Crawl
) -> None:
    today = datetime.now(UTC).date().isoformat()
    listed = f"<urlset><url><loc>{site.url}/a</loc><lastmod>{today}</lastmod></url></urlset>"
    site.put({"/": page("Start"), "/a": page("A"), "/sitemap.xml": listed})
    first = crawl(f"{site.url}/")
    site.put({"/a": page("A", "Changed in the afternoon.")})
    again = finish(wb, wb.crawls.recrawl(first["id"]).id)
    assert (site.hits("/a"), outcomes(wb, again)["a"]) == (2, "changed")


@pytest.mark.parametrize(
    ("lastmod", "seconds", "believed"),
    [
        ("2026-03-01T10:00Z", 45, False),  # the page may have changed in the same minute
        ("2026-03-01T10:00:00+00:00", 0.5, False),
        ("2026-03-01T10:00Z", 61, True),
        ("2026-03-01T12:00+02:00", 61, True),
        ("2026-03", 90 * 86_400, False),
        ("2026-03-01", 86_400, False),
        ("2026-03-01T00:00:00Z", 18 * 3600, False),  # a midnight is a day
        ("2026-03-01T00:00:00Z", 86_401, True),
        ("2026-03-01T00:00:00+02:00", 86_401, True),
        ("9999-12-31", 86_400, False),
        ("9999-12-31T23:59:59Z", 86_400, False),
        ("0001-01-01T00:00:00+00:00", 86_400, False),  # placeholders of pages without a date
        ("1970-01-01", 86_400, False),
        ("2026-03-01", 1.4 * 86_400, False),  # it ends at noon UTC of the next day, in the west of the Earth
        ("2026-03-01", 2 * 86_400, True),
    ],
)
def test_a_sitemaps_date_is_believed_once_it_has_ended(lastmod: str, seconds: float, believed: bool) -> None:
    visited = datetime(2026, 3, 1, 10 if "T10" in lastmod or "T12" in lastmod else 0, tzinfo=UTC) + timedelta(
        seconds=seconds
    )
    memory = PageMemory(
        "u", None, None, lastmod, "h", (), (), None, {}, None, "u", 1, "added", False, "d", True, visited
    )
    assert is_unchanged_by_sitemap(lastmod, memory) is believed


FAILURES: dict[str, Any] = {
    "503": reply("busy", 503), "403": reply("no", 403), "empty": reply(""), "slow": reply("late", delay=0.8),
    "login": reply("", 302, headers={"Location": "/login"}), "itself": reply("", 302, headers={"Location": "?"}),
    "elsewhere": reply("", 302, headers={"Location": "http://127.0.0.1:9/"}),
    "damaged": reply(b"\x1f\x8bno", headers={"Content-Encoding": "gzip"}),
    "cut by br": reply(
        bytes.fromhex(
            "1b5d00008dd45eb54a2c0741dd705eae2f9956ca80897a8173ca017b25dcbca5815ff8ce435d5711518c0d75d3ca8308f53fe022"
            "13513627d819"  # brotli's compression of a page of 94 bytes; 9 of 67 bytes are missing
        ),
        headers={"Content-Encoding": "br"},
    ),
    "cut": reply(gzip.compress(page("Cut").encode())[:-20], headers={"Content-Encoding": "gzip"}),
}  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_at_any_request_loses_no_document(wb: Workbench, site: TestSite, crawl: Crawl, failure: str) -> None:
    one = f"<urlset><url><loc>{site.url}/docs/listed</loc></url></urlset>"
    pages: dict[str, Any] = {
        "/robots.txt": reply(f"Sitemap: {site.url}/map.xml", headers=PLAIN),
        "/map.xml": f"<sitemapindex><sitemap><loc>{site.url}/one.xml</loc></sitemap></sitemapindex>", "/one.xml": one,
        "/docs/": page("Start", links=["a", "old"]), "/docs/a": page("A", links=["deep"]), "/docs/deep": page("Deep"),
        "/docs/old": reply("", 301, headers={"Location": "/docs/new"}), "/docs/new": page("New"),
        "/docs/listed": page("Listed"),
    }  # fmt: skip
    site.put(pages)
    crawled = crawl(f"{site.url}/docs/")
    before = read_texts(wb)
    assert len(before) == 5
    for failing in [*([path] for path in pages), list(pages), [path for path in pages if path != "/robots.txt"]]:
        site.put(pages | dict.fromkeys(failing, FAILURES[failure]))
        again = wb.crawls.recrawl(crawled["id"], retries=0, timeout=0.4, refresh=True)
        finish(wb, again.id)
        after = read_texts(wb)
        assert {url: after.get(url) for url in before} == before, failing


def test_a_refresh_asks_for_what_the_site_calls_unchanged(
    wb: Workbench, site: TestSite, crawled: dict[str, Any]
) -> None:
    site.put({"/a": tagged("Page /a", "1", text="Changed under the same tag.")})
    again = finish(wb, wb.crawls.recrawl(crawled["id"], refresh=True).id)
    assert outcomes(wb, again)["a"] == "changed"
    assert "If-None-Match" not in site.asked_with("/b")
    assert wb.crawls.recrawl(again["id"]).options["refresh"] is False


def test_a_dry_run_without_its_start_page_lists_what_the_sitemap_has(wb: Workbench, site: TestSite) -> None:
    options: dict[str, Any] = {"exclude": ["/start.html"], "browser": "never", "recursive": True}
    with pytest.raises(CrawlRefused) as refused:
        wb.crawls.dry_run(f"{site.url}/start.html", **options)
    sentence = f"Nothing would be fetched. {site.url}/start.html: excluded by the pattern '/start.html'"
    assert (str(refused.value), site.hits("/start.html")) == (sentence, 0)
    listed = f"<urlset><url><loc>{site.url}/start.html</loc></url><url><loc>{site.url}/a</loc></url></urlset>"
    site.put({"/a": page("A"), "/sitemap.xml": reply(listed, headers={"Content-Type": "application/xml"})})
    seen = wb.crawls.dry_run(f"{site.url}/start.html", **options)
    assert [entry["url"] for entry in seen["would_fetch"]] == [f"{site.url}/a"]
    assert seen["not_fetched"] == {"excluded by the pattern '/start.html'": 1}
    assert site.hits("/start.html") == 0


def test_a_dry_run_reports_and_stores_nothing(wb: Workbench, site: TestSite) -> None:
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


def test_a_login_page_replaces_no_document_and_becomes_none(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put(pages_of_ten())
    crawled = crawl(f"{site.url}/docs/")
    before = read_texts(wb)
    inner = [path for path in pages_of_ten() if path != "/docs/"]
    site.put(dict.fromkeys(inner[:4], reply("", 302, headers={"Location": "/docs/login"})))
    site.put({"/docs/login": LOGIN, inner[5]: LOGIN})
    ended = finish(wb, wb.crawls.recrawl(crawled["id"]).id)
    assert read_texts(wb) == before
    assert reason(wb, ended, inner[5]) == "It is a login page."
    assert (ended["status"], "It is a login page." in ended["message"]) == ("completed_with_errors", True)


def test_a_crawl_that_starts_at_a_login_page_says_so(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({"/start": LOGIN, "/": page("Start", links=["/start"])})
    with pytest.raises(CrawlRefused, match="It is a login page"):
        wb.crawls.dry_run(f"{site.url}/start", browser="never", recursive=True)
    assert crawl(f"{site.url}/start")["status"] == "failed"
    site.put({"/moved": reply("", 302, headers={"Location": "/start"})})
    moved = crawl(f"{site.url}/moved")["error_message"]
    assert moved == f"Nothing could be crawled. {site.url}/start: It is a login page."
    assert crawl(f"{site.url}/")["status"] == "completed"  # a link to the login is no failure
