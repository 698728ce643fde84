"""robots.txt, sitemaps and llms.txt are read and respected."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.crawling.site import TestSite, outcomes, page, reason, redirect, reply
from workbench import Workbench
from workbench.crawling.extraction import parse_robots_directives
from workbench.crawling.http import AGENT_TOKEN, USER_AGENT
from workbench.crawling.site import parse_robots, read_sitemap
from workbench.crawling.urls import canonicalize, make_bounds

Crawl = Callable[..., dict[str, Any]]
PLAIN = {"Content-Type": "text/plain"}
NOFOLLOW = "<meta name=robots content=nofollow>"


def test_robots_rules_are_obeyed_and_reported(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    rules = "User-agent: *\nDisallow: /private/\nDisallow: /*.cgi$\nAllow: /private/open\n"
    site.put({
        "/robots.txt": reply(rules, headers=PLAIN), "/": page("Start", links=["/private/a", "/private/open", "/x.cgi"]),
        "/private/open": page("Open"), "/private/a": page("Secret"),
    })  # fmt: skip
    crawled = crawl(f"{site.url}/")
    assert outcomes(wb, crawled) == {
        "": "added",
        "private/a": "forbidden",
        "private/open": "added",
        "x.cgi": "forbidden",
    }
    assert reason(wb, crawled, "/private/a") == "robots.txt forbids /private/"
    assert site.hits("/private/a") == 0
    assert site.asked_with("/")["User-Agent"] == USER_AGENT


def test_a_site_that_forbids_everything_is_left_alone(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({"/robots.txt": reply("User-agent: *\nDisallow: /", headers=PLAIN), "/": page("Start")})
    crawled = crawl(f"{site.url}/")
    assert crawled["status"] == "failed"
    assert "robots.txt forbids /" in crawled["error_message"]
    assert site.hits("/") == 0


def test_an_unreadable_robots_file_forbids_and_a_missing_one_does_not(
    wb: Workbench, site: TestSite, crawl: Crawl
) -> None:
    site.put({"/robots.txt": reply("", 500), "/": page("Start")})
    assert "robots.txt could not be read" in crawl(f"{site.url}/", retries=0)["error_message"]
    site.put({"/robots.txt": reply("", 404)})
    assert crawl(f"{site.url}/")["documents_created"] == 1


def test_a_crawl_delay_is_kept(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({
        "/robots.txt": reply("User-agent: *\nCrawl-delay: 1", headers=PLAIN),
        "/": page("Start", links=["/a", "/b"]), "/a": page("A"), "/b": page("B"),
    })  # fmt: skip
    crawl(f"{site.url}/", sitemaps=False)
    moments = sorted(site.times("/") + site.times("/a") + site.times("/b"))
    assert all(later - earlier >= 0.8 for earlier, later in itertools.pairwise(moments))


def test_a_rate_is_kept_however_many_requests_might_go_at_once(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    names = [f"/p{number}" for number in range(6)]
    site.put({"/": page("Start", links=names)} | {name: page(f"Page {name}") for name in names})
    crawl(f"{site.url}/", sitemaps=False, rate=4, concurrency=8)
    moments = sorted(moment for path in ["/", *names] for moment in site.times(path))
    assert len(moments) == 7
    assert moments[-1] - moments[0] >= 6 / 4 * 0.95  # the intervals as a whole: a single one may start late
    assert site.most_at_once() <= 8


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_requests_are_under_way_than_the_concurrency_allows_and_as_many_are(
    wb: Workbench, site: TestSite, crawl: Crawl, concurrency: int
) -> None:
    names = [f"/p{number}" for number in range(8)]
    site.put({"/": page("Start", links=names)} | {name: reply(page(f"Page {name}"), delay=0.4) for name in names})
    crawled = crawl(f"{site.url}/", sitemaps=False, concurrency=concurrency)
    assert crawled["documents_created"] == 9
    assert site.most_at_once() == concurrency


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("user-agent: *\ndisallow: /", "/a", False),
        ("user-agent: ragworkbench\ndisallow:\n\nuser-agent: *\ndisallow: /", "/a", True),
        ("user-agent: other\ndisallow: /", "/a", True),
        ("user-agent: *\ndisallow: /a\nallow: /a/b", "/a/b/c", True),
        ("user-agent: *\ndisallow: /a\nallow: /a", "/a", True),
        ("user-agent: *\ndisallow: /*?sort=", "/list?sort=up", False),
        ("user-agent: *\ndisallow: /end$", "/ending", True),
        ("user-agent: *\ndisallow: /%7Euser", "/~user", False),
        ("user-agent: a\nuser-agent: *\ndisallow: /x # no\n", "/x", False),
        ("no sense at all\n: : :\ndisallow: /early", "/early", True),
        ("user-agent: *\ndisallow: /a\n\nuser-agent: *\ndisallow: /b", "/a", False),
        ("user-agent: *\ndisallow: /ü", "/%C3%BC", False),
        ("user-agent: *\ndisallow: /*.php$", "/a.php?x", True),
        ("user-agent: *\ndisalow: /typo", "/typo", False),
        ("user-agent: *\ndisallow: /" + "a*" * 200 + "b", "/" + "a" * 1900, True),  # at once: no backtracking
        ("user-agent: *\ndisallow: /" + "a*" * 200 + "b", "/" + "a" * 1900 + "b", False),
    ],
)
def test_robots_rules_by_the_letter(rules: str, path: str, allowed: bool) -> None:
    refusal = parse_robots(rules, AGENT_TOKEN).refuses(f"http://example.test{path}")
    assert (refusal is None) is allowed


@pytest.mark.parametrize(
    ("rules", "path", "rule"),
    [
        ("user-agent: *\ndisallow: /a\ndisallow: /a/b # why\ndisallow: /a/b/c/d", "/a/b/c", "/a/b"),
        ("user-agent: other\ndisallow: /a/b\n\nuser-agent: *\nallow: /a/x\ndisallow: /a", "/a/b", "/a"),
        ("user-agent: *\ndisalow: /typo", "/typo?x=1", "/typo?x=1"),
    ],
)
def test_the_rule_that_forbids_is_named_and_never_one_for_others(rules: str, path: str, rule: str) -> None:
    assert parse_robots(rules, AGENT_TOKEN).refuses(f"http://example.test{path}") == f"robots.txt forbids {rule}"


def test_delays_and_sitemaps_are_read_and_a_delay_has_a_limit() -> None:
    text = "user-agent: *\ncrawl-delay: {}\nrequest-rate: 1/{}\nsitemap: http://h.test/s.xml"
    assert parse_robots(text.format(2, 5), AGENT_TOKEN).crawl_delay == 5.0
    assert parse_robots(text.format(86400, 1), AGENT_TOKEN).crawl_delay == 60.0
    assert parse_robots(text.format("often", "x"), AGENT_TOKEN).crawl_delay == 0.0
    assert parse_robots("user-agent: *\nrequest-rate: 0/5", AGENT_TOKEN).crawl_delay == 0.0
    assert parse_robots(text, AGENT_TOKEN).sitemaps == ("http://h.test/s.xml",)


def test_a_sitemap_index_leads_to_pages_without_links(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    index = f"<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><sitemap><loc>{site.url}/one.xml.gz</loc></sitemap></sitemapindex>"
    one = f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>{site.url}/orphan</loc><lastmod>2026-01-02</lastmod></url><url><loc>http://elsewhere.test/x</loc></url></urlset>"
    site.put({
        "/robots.txt": reply(f"Sitemap: {site.url}/index.xml", headers=PLAIN), "/": page("Start"),
        "/index.xml": reply(index, headers={"Content-Type": "text/xml"}), "/one.xml.gz": gzip.compress(one.encode()),
        "/orphan": page("Orphan"),
    })  # fmt: skip
    crawled = crawl(f"{site.url}/")
    assert outcomes(wb, crawled) == {"": "added", "orphan": "added"}
    assert next(p.via for p in wb.crawls.pages(crawled["id"]) if p.url.endswith("/orphan")) == "sitemap"


def test_llms_txt_is_used_and_markdown_is_read(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    markdown = {"Content-Type": "text/markdown"}
    site.put({
        "/": page("Start"), "/llms.txt": reply("# Site\n\n- [Guide](/guide.md): how\n", headers=PLAIN),
        "/guide.md": reply("---\ntitle: The Guide\n---\n# Guide\n\nStep on. See [more](/more.md).", headers=markdown),
        "/more.md": reply("# More\n\nThere is more to say about steps.", headers=markdown),
    })  # fmt: skip
    crawled = crawl(f"{site.url}/")
    assert outcomes(wb, crawled) == {"": "added", "guide.md": "added", "more.md": "added", "llms-full.txt": "left_out"}
    assert crawled["status"] == "completed"
    assert {document.title for document in wb.documents.list()} >= {"The Guide", "More"}


def test_pages_may_ask_not_to_be_indexed_or_followed(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({
        "/": page("Start", links=["/noindex", "/nofollow"]),
        "/noindex": page("No index", links=["/found"], head="<meta name=robots content='noindex'>"),
        "/nofollow": reply(page("No follow", links=["/lost"]), headers={"X-Robots-Tag": "nofollow"}),
        "/found": page("Found"), "/lost": page("Lost"),
    })  # fmt: skip
    crawled = crawl(f"{site.url}/")
    assert outcomes(wb, crawled) == {"": "added", "noindex": "forbidden", "nofollow": "added", "found": "added"}


def test_patterns_and_scope_keep_pages_out(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    links = ["/docs/a", "/docs/archive/b", "/docs/c.html?print=1", "/blog/d", "/docs/logo.png"]
    site.put({"/docs/": page("Docs", links=links)} | {link: page(link) for link in links})
    crawled = crawl(f"{site.url}/docs/", exclude=["/archive/", "*print=*"])
    assert outcomes(wb, crawled) == {
        "docs/": "added", "docs/a": "added", "docs/archive/b": "left_out", "docs/c.html?print=1": "left_out",
        "docs/logo.png": "left_out",
    }  # fmt: skip
    assert reason(wb, crawled, "/docs/archive/b") == "excluded by the pattern '/archive/'"


def test_one_page_is_one_page_when_not_recursive(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({"/a": page("A", links=["/b"]), "/b": page("B")})
    crawled = crawl(f"{site.url}/a", recursive=False)
    assert outcomes(wb, crawled) == {"a": "added"}
    assert site.hits("/sitemap.xml") == 0


@pytest.mark.parametrize(
    ("lines", "index", "follow"),
    [
        (["index, follow, max-snippet:-1, max-image-preview:none"], True, True),
        (["googlebot: noindex, nofollow"], True, True),
        (["noindex", "max-snippet: 20"], False, True),
        (["otherbot: noindex, RAGWorkbench: nofollow"], True, False),
        (["noindex, googlebot: none"], False, True),
        (["none"], False, False),
        (["NoIndex"], False, True),
        (["unavailable_after: 25 Jun 2010 15:00:00 GMT"], False, True),
        (["unavailable_after: Friday, 25-Jun-10 15:00:00 GMT"], False, True),
        (["unavailable_after: 2010-06-25, nofollow"], False, False),
        (["unavailable_after: 25 Jun 99999999999999999999 15:00:00 GMT"], True, True),
        (["unavailable_after: 2999-01-01"], True, True),
        (["googlebot: unavailable_after: 2010-06-25"], True, True),
        (["noai, noimageai"], True, True),
        (["noindex nofollow"], False, False),
        (["noindex; nofollow"], False, False),
        (["RAGWorkbench/0.1: noindex"], False, True),
        (["googlebot/2.1: noindex, nofollow"], True, True),
        (["\xe9"], True, True),
    ],
)
def test_directives_for_robots_by_the_letter(lines: list[str], index: bool, follow: bool) -> None:
    assert parse_robots_directives(lines) == (index, follow)


@pytest.mark.parametrize("form", ["%d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%Y-%m-%dT%H:%M:%SZ"])
def test_a_page_is_available_until_the_hour_that_its_site_gives(form: str) -> None:
    now = datetime.now(UTC)
    lines = [f"unavailable_after: {moment:{form}}" for moment in (now - timedelta(minutes=1), now + timedelta(hours=1))]
    assert [parse_robots_directives([line])[0] for line in lines] == [False, True]


def test_every_address_that_is_not_fetched_is_counted_with_its_reason(
    wb: Workbench, site: TestSite, crawl: Crawl
) -> None:
    links = ["/docs/a", "/docs/plan.png", "/blog/b", "/blog/c", "/private/x", "/docs/archive/d", "/docs/private/e"]
    links += ["/docs/wiki/Node.js", "/docs/File:Plan.png", *[f"/docs/q?{n}" for n in range(203)]]
    site.put({
        "/docs/": page("Docs", links=links),
        "/robots.txt": reply("User-agent: *\nDisallow: /docs/private/", headers=PLAIN), "/docs/a": page("A"),
        "/docs/wiki/Node.js": page("Node.js"), "/docs/File:Plan.png": page("Plan"), "/docs/q?*": page("Q {query}"),
    })  # fmt: skip
    crawled = crawl(f"{site.url}/docs/", exclude=["/archive/"])
    assert crawled["not_fetched"] == {
        "more than 200 addresses differ only in their query": 3,
        f"outside 127.0.0.1:{site.port}/docs/": 3,
        "a .png file": 1,
        "excluded by the pattern '/archive/'": 1,
        "robots.txt forbids /docs/private/": 1,
    }
    assert str(crawled["message"]).endswith("Not fetched: 1 forbidden, 8 left out.")
    found = outcomes(wb, crawled)
    assert (found["docs/wiki/Node.js"], found["docs/File:Plan.png"]) == ("added", "added")


def test_links_that_are_not_followed_are_counted(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    odd = f"<a rel='noopener NoFollow' href='/paid'>p</a> <a href='/{'x' * 2100}'>long</a> <a href='mailto:a@b'>m</a>"
    links = [*[f"/c{n}" for n in range(3)], "http://user@h.test/", "ftp://h.test/all.zip", "/end"]
    site.put(
        {"/": page("Start", f"Words. {odd}", links=links), "/end": page("End", head=NOFOLLOW, links=["/x", "/c1"])}
    )
    site.put({f"/c{n}": page(f"C{n}") for n in range(3)})
    reasons = {
        "the site asks not to follow the link (nofollow)": 2,
        "a link with a user name, an invalid port or over 2,000 characters": 2,
        "a link to a server of files; only http and https are fetched": 1,
    }
    assert crawl(f"{site.url}/")["not_fetched"] == reasons
    assert wb.crawls.dry_run(f"{site.url}/", browser="never")["not_fetched"] == reasons
    assert not any("skipped_links" in document.metadata for document in wb.documents.list())


def test_a_dry_run_counts_addresses_outside_and_lists_that_cannot_be_read(wb: Workbench, site: TestSite) -> None:
    site.put({"/docs/": page("Docs", links=["/docs/a", "/blog/b", "/blog/c"]), "/docs/a": page("A")})
    site.put({"/robots.txt": reply(f"Sitemap: {site.url}/map.xml", headers=PLAIN), "/map.xml": page("Not found")})
    assert wb.crawls.dry_run(f"{site.url}/docs/", browser="never")["not_fetched"] == {
        f"outside 127.0.0.1:{site.port}/docs/": 2,
        "unreadable sitemap": 1,
    }


def test_a_sitemap_that_ends_early_is_read_and_counted(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    listed = f"<urlset><url><loc>{site.url}/a</loc></url><url><loc>{site.url}/b"
    whole = gzip.compress(f"<urlset><url><loc>{site.url}/c</loc></url></urlset>".encode())
    index = "".join(f"<sitemap><loc>{site.url}/{name}</loc></sitemap>" for name in ("cut.xml", "cut.gz"))
    site.put({"/": page("Start"), "/a": page("A"), "/c": page("C"), "/cut.xml": listed, "/cut.gz": whole[:-8]})
    site.put({"/sitemap.xml": f"<sitemapindex>{index}</sitemapindex>"})
    crawled = crawl(f"{site.url}/")
    assert outcomes(wb, crawled) == {"": "added", "a": "added", "b": "failed", "c": "added"}
    assert crawled["not_fetched"] == {"a damaged or oversized sitemap, of which only a part was read": 2}


def test_an_address_in_a_sitemap_keeps_its_ampersand() -> None:
    entries = (b"<url><loc>http://h.test/%s?x=1%sy=2</loc></url>" % entry for entry in ((b"a", b"&"), (b"b", b"&amp;")))
    listed = b"<urlset>%s</urlset>" % b"".join(entries)
    pages, _, is_whole = read_sitemap(listed, "http://h.test/")
    assert ([page.url for page in pages], is_whole) == (["http://h.test/a?x=1&y=2", "http://h.test/b?x=1&y=2"], True)


def test_the_llms_file_of_a_versioned_folder_is_read(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({"/docs/v1.2": page("V1.2"), "/docs/v1.2/hidden": page("Hidden")})
    site.put({"/docs/v1.2/llms.txt": reply("- [Hidden](/docs/v1.2/hidden)\n", headers=PLAIN)})
    assert outcomes(wb, crawl(f"{site.url}/docs/v1.2"))["docs/v1.2/hidden"] == "added"


def test_talks_with_random_ids_are_pages_and_a_visitors_session_is_not(
    wb: Workbench, site: TestSite, crawl: Crawl
) -> None:
    talks = [f"/talk?sessionId=65f1c0a3e4b0a1b2c3d4e5f{n}" for n in range(3)]
    visitor = [f"/p{n}?sessionid=a81bc81bdead4e5dabffa2f3" for n in range(4)]
    site.put({"/": page("Start", links=["/talks", "/shop"]), "/talks": page("Talks", links=talks)})
    site.put({talk: page(talk[-2:]) for talk in talks} | {f"/p{n}": page(f"P{n}") for n in range(4)})
    site.put({"/shop": page("Shop", links=visitor), "/first-talk": redirect(talks[0])})
    crawled = crawl(f"{site.url}/", sitemaps=False)
    wanted = ["", "talks", "shop", *(talk[1:] for talk in talks), "p0", "p1", "p2", "p3"]
    assert outcomes(wb, crawled) == dict.fromkeys(wanted, "added")
    assert [wb.crawls.fetch(site.url + path).title for path in (talks[1], "/first-talk")] == ["f1", "f0"]


def test_more_sitemaps_than_fifty_are_read(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    def listed(kind: str, addresses: list[str]) -> str:
        inside = "".join(f"<{kind}><loc>{site.url}{address}</loc></{kind}>" for address in addresses)
        root = "sitemapindex" if kind == "sitemap" else "urlset"
        return f"<{root}>{inside}</{root}>"

    numbers = range(60)
    site.put({"/": page("Start"), "/sitemap.xml": listed("sitemap", [f"/s{n}.xml" for n in numbers])})
    site.put({f"/s{n}.xml": listed("url", [f"/p{n}"]) for n in numbers} | {f"/p{n}": page(f"P{n}") for n in numbers})
    assert crawl(f"{site.url}/")["outcomes"]["added"] == 61


def test_unreadable_sitemaps_are_counted(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    index = "".join(f"<sitemap><loc>{site.url}/{name}</loc></sitemap>" for name in ("cut.xml.gz", "gone.xml"))
    site.put({"/": page("Start"), "/sitemap.xml": f"<sitemapindex>{index}</sitemapindex>"})
    site.put({"/cut.xml.gz": reply(b"\x1f\x8b\x08" + b"damaged" * 9, headers={"Content-Type": "application/gzip"})})
    crawled = crawl(f"{site.url}/")
    assert crawled["outcomes"]["added"] == 1
    assert crawled["not_fetched"] == {"unreadable sitemap": 2}


@pytest.mark.parametrize(
    ("url", "prefix"),
    [
        ("http://h.test/docs/v1.2", "/docs/v1.2/"), ("http://h.test/docs/v1.2/", "/docs/v1.2/"),
        ("http://h.test/docs/index.html", "/docs/"), ("http://h.test/docs/guide.md", "/docs/"),
        ("http://h.test/docs/LICENSE", "/docs/"), ("http://h.test/docs/index", "/docs/"),
        ("http://h.test/docs", "/docs/"), ("http://h.test/3.0.1-rc.2", "/3.0.1-rc.2/"), ("http://h.test/", "/"),
    ],
)  # fmt: skip
def test_a_dot_makes_a_file_only_with_a_known_suffix(url: str, prefix: str) -> None:
    assert make_bounds(url, "path").prefix == prefix


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("?sessionId=KubeConKeynote2026", "?sessionId=KubeConKeynote2026"),
        ("?sessionId=101", "?sessionId=101"), ("?session_id=keynote-opening-2026", "?session_id=keynote-opening-2026"),
        ("?sessionid=a81bc81bdead4e5dabffa2f3", ""), ("?a=1&PHPSESSID=q1w2e3r4t5", "?a=1"),
        (";jsessionid=A1B2?x=1", "?x=1"),
    ],
)  # fmt: skip
def test_a_session_is_no_part_of_an_address_and_a_talk_is(written: str, read: str) -> None:
    assert canonicalize(f"http://h.test/talks{written}") == f"http://h.test/talks{read}"
