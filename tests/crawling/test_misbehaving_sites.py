"""Sites that misbehave towards crawlers: each case has a test, and none stops the job."""

from __future__ import annotations

import itertools
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.crawling.site import TestSite, outcomes, page, reason, redirect, reply
from tests.crawling.trap import trapped
from workbench import Workbench

Crawl = Callable[..., dict[str, Any]]


def test_redirects_are_followed_once_and_circles_end(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    with trapped("127.0.0.1") as elsewhere:
        site.put({
            "/": page("Start", links=["/old", "/also-old", "/a", "/elsewhere"]),
            "/old": redirect("/new"), "/also-old": redirect("/new", 302), "/new": page("New"),
            "/a": redirect("/b"), "/b": redirect("/a"), "/elsewhere": redirect(f"http://127.0.0.1:{elsewhere.port}/x"),
        })  # fmt: skip
        crawled = crawl(f"{site.url}/")
        assert elsewhere.heard() == []
    assert crawled["status"] == "completed"
    assert outcomes(wb, crawled) == {
        "": "added", "new": "added", "old": "redirected", "also-old": "redirected", "a": "redirected",
        "b": "redirected", "elsewhere": "redirected",
    }  # fmt: skip
    assert site.hits("/new") == 1


def test_a_chain_of_redirects_without_end_comes_to_its_limit(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({"/": page("Start", links=["/hop?1"]), "/hop?*": redirect("/hop?{next}")})
    crawled = crawl(f"{site.url}/", max_pages=5)
    assert crawled["status"] == "completed"
    assert crawled["outcomes"]["added"] == 1
    assert crawled["outcomes"]["redirected"] <= 10


def test_a_start_page_that_moved_takes_the_crawl_along(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({"/": redirect("/en/"), "/en/": page("Home", links=["/en/a", "/de/b"]), "/en/a": page("A")})
    crawled = crawl(f"{site.url}/", recursive=True)
    assert outcomes(wb, crawled) == {"": "redirected", "en/": "added", "en/a": "added"}


def test_missing_pages_are_reported_and_the_rest_continues(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({"/": page("Start", links=["/missing", "/a"]), "/a": page("A"), "/forbidden": reply("", 403)})
    crawled = crawl(f"{site.url}/")
    assert (crawled["status"], crawled["pages_failed"], crawled["documents_created"]) == ("completed_with_errors", 1, 2)
    assert wb.crawls.failures(crawled["id"]) == [{"url": f"{site.url}/missing", "reason": "It answered 404."}]


def test_a_crawl_waits_after_too_many_requests(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    busy = reply("", 429, headers={"Retry-After": "1"})
    site.put({"/": page("Start", links=["/busy"]), "/busy": [busy, reply(page("Busy"))]})
    crawled = crawl(f"{site.url}/")
    first, second = site.times("/busy")
    assert (crawled["status"], crawled["documents_created"]) == ("completed", 2)
    assert second - first >= 1  # the server's own clock: it was left alone for as long as it asked


def test_a_host_that_asks_for_too_long_a_pause_is_believed(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({"/": page("Start", links=["/busy"]), "/busy": reply("", 503, headers={"Retry-After": "86400"})})
    crawled = crawl(f"{site.url}/")
    assert "asked to wait 86400 s" in reason(wb, crawled, "/busy")
    assert site.hits("/busy") == 1


def test_an_error_that_passes_is_tried_again_and_one_that_stays_is_reported(
    wb: Workbench, site: TestSite, crawl: Crawl
) -> None:
    site.put({
        "/": page("Start", links=["/flaky", "/broken"]),
        "/flaky": [reply("", 500), reply("", 502), reply(page("Flaky"))], "/broken": reply("", 500),
    })  # fmt: skip
    crawled = crawl(f"{site.url}/", retries=2)
    assert outcomes(wb, crawled) == {"": "added", "flaky": "added", "broken": "failed"}
    assert reason(wb, crawled, "/broken") == "It answered 500. (3 tries)"
    assert (site.hits("/flaky"), site.hits("/broken")) == (3, 3)


def test_slow_and_endless_answers_end(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({
        "/": page("Start", links=["/slow", "/endless", "/a"]), "/a": page("A"),
        "/slow": reply(page("Slow"), delay=3), "/endless": reply(drip=b"<p>and on "),
    })  # fmt: skip
    crawled = crawl(f"{site.url}/", timeout=0.8, retries=0)
    assert outcomes(wb, crawled) == {"": "added", "slow": "failed", "endless": "failed", "a": "added"}
    assert reason(wb, crawled, "/endless") == "It did not respond completely within 0.8 s."


def test_huge_pages_are_not_read_whole(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    bomb = zlib.compressobj(9, wbits=31)
    zipped = bomb.compress(b"<p>" + b"a" * 5_000_000) + bomb.flush()
    site.put({
        "/": page("Start", links=["/huge", "/bomb", "/a"]), "/a": page("A"), "/huge": b"<p>" + b"x" * 300_000,
        "/bomb": reply(zipped, headers={"Content-Encoding": "gzip"}),
    })  # fmt: skip
    crawled = crawl(f"{site.url}/", max_bytes=200_000)
    assert outcomes(wb, crawled) == {"": "added", "huge": "failed", "bomb": "failed", "a": "added"}
    assert "larger than 0.2 MB" in reason(wb, crawled, "/bomb")
    assert site.hits("/bomb") == 1


def test_text_in_a_wrong_encoding_is_read_right(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    latin = page("Café", "Der Müller aß süße Äpfel und große Öhrchen, früher schöner als heute.").encode("latin-1")
    site.put({
        "/": page("Start", links=["/lying", "/utf16", "/unknown"]), "/lying": latin,
        "/utf16": reply(page("Zażółć", "Gęślą jaźń").encode("utf-16"), headers={"Content-Type": "text/html"}),
        "/unknown": reply(page("Plain", "ordinary words"), headers={"Content-Type": "text/html; charset=klingon"}),
    })  # fmt: skip
    crawl(f"{site.url}/")
    titles = {document.title for document in wb.documents.list()}
    assert titles == {"Start", "Café", "Zażółć", "Plain"}


def test_the_metadata_of_a_page_has_its_encoding_and_what_was_left_out(
    wb: Workbench, site: TestSite, crawl: Crawl
) -> None:
    euro = page("Lager", "Der Schlüssel kostet €40, früher weniger.").encode("cp1252")
    stray = page("Hafen", "Der Schlüssel zum Lager hängt am Brett. " * 9, links=["/lager"]).encode()
    site.put({
        "/": stray.replace(b"Brett", b"Bre\xfftt", 1),
        "/lager": reply(euro, headers={"Content-Type": "text/html; charset=iso-8859-1"}),
    })  # fmt: skip
    crawled = crawl(f"{site.url}/")
    metadata = {document.title: document.metadata for document in wb.documents.list()}
    assert metadata["Lager"]["encoding"] == "windows-1252"
    assert metadata["Hafen"]["left_out"] == {"bytes that are not valid UTF-8, read as windows-1252": 1}
    note = f"{site.url}/: not fully read: bytes that are not valid UTF-8, read as windows-1252 (1)."
    assert note in crawled["message"], crawled["message"]
    assert any(line.message.startswith(note) for line in wb.jobs.log(crawled["id"]))


def test_a_calendar_without_end_ends(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({
        "/": page("Start", links=["/calendar?1", "/loop/"]),
        "/calendar?*": page("Month {query}", links=["/calendar?{next}"]),
        "/loop/": page("Loop 0", links=["loop/"]),
    })  # fmt: skip
    site.put({"/" + "loop/" * n: page(f"Loop {n}", links=["loop/"]) for n in range(1, 9)})
    crawled = crawl(f"{site.url}/", max_pages=30, max_depth=10)
    assert crawled["status"] == "completed"
    assert crawled["outcomes"]["left_out"] == 2
    assert reason(wb, crawled, "/calendar?11") == "deeper than 10 links"
    assert "repeats in its path" in reason(wb, crawled, "loop/loop/loop/loop/")


def test_max_pages_cuts_and_reports_what_was_left_out(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    names = [f"/p{number}" for number in range(20)]
    site.put({"/": page("Start", links=names)} | {name: page(f"Page {name}") for name in names})
    crawled = crawl(f"{site.url}/", max_pages=8)
    added = [path for path, outcome in outcomes(wb, crawled).items() if outcome == "added"]
    assert added == ["", *[f"p{number}" for number in range(7)]]
    assert crawled["outcomes"]["left_out"] == 13
    assert reason(wb, crawled, "/p7") == "over the limit of 8 pages"


def test_very_short_pages_are_not_lost(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({"/": "<html><body><p>Access denied. <a href='/b'>Yes</a></p></body></html>", "/b": "<p>42</p>"})
    crawled = crawl(f"{site.url}/")
    assert (crawled["status"], crawled["documents_created"]) == ("completed", 2)


def test_broken_html_odd_links_and_unreadable_kinds_do_no_harm(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    links = [
        "mailto:a@b",
        "javascript:void(0)",
        "http://[",
        "//",
        "?q=%",
        "/%zz",
        "/ü ö",
        "/🙂",
        "/a\\b",
        "http://x:99999/",
    ]
    site.put({
        "/": page("Start", links=[*links, "/zip", "/empty", "/broken.pdf"]),
        "/zip": reply(b"PK\x03\x04...", headers={"Content-Type": "application/zip"}), "/empty": "",
        "/broken.pdf": reply(b"%PDF-1.7 broken", headers={"Content-Type": "application/pdf"}),
        "/%F0%9F%99%82": "<h1>\x00 Smile <b><table><p>" * 300,
    })  # fmt: skip
    crawled = crawl(f"{site.url}/")
    found = outcomes(wb, crawled)
    assert (found[""], found["%F0%9F%99%82"]) == ("added", "added")
    assert (found["zip"], found["empty"], found["broken.pdf"]) == ("failed", "failed", "failed")
    assert all(failure["reason"] for failure in wb.crawls.failures(crawled["id"]))


def test_a_site_that_is_not_there_fails_with_a_sentence(wb: Workbench, crawl: Crawl) -> None:
    crawled = crawl("http://127.0.0.1:9/", retries=0)
    assert crawled["status"] == "failed"
    assert "Nothing could be crawled" in crawled["error_message"]
    assert crawled["error_message"].endswith("The connection failed: 127.0.0.1:9 refused it.")


ODD = (
    b"\xe9",
    "é".encode(),
    b"undefined",
    b"\xff\xfe",
    b"hex",
    b"idna",
    b"\x01",
    b"x" * 20_000,
    b"%",
    b"",
    b";;==",
    b"\t",
)
FUZZED = (
    b"Content-Type: text/html; charset=%s", b"Content-Type: %s", b"Location: /%s", b"ETag: %s", b"Last-Modified: %s",
    b"X-Robots-Tag: all, %s", b"Link: <%s>", b"Content-Language: %s", b"Retry-After: %s", b"Content-Disposition: %s",
    b"Content-Encoding: %s", b"%s: x",
)  # fmt: skip


def test_odd_headers_are_one_pages_failure_at_most(wb: Workbench, crawl: Crawl) -> None:
    bodies = {f"/p{n}": (head % odd, n) for n, (head, odd) in enumerate(itertools.product(FUZZED, ODD))}

    def answer(path: str) -> bytes:
        header, _ = bodies.get(path, (b"X-None: x", 0))
        links = [*bodies, "/last"] if path == "/" else []
        body = page(f"Page {path}", f"Words of page {path} alone.", links=links).encode()
        status = 302 if header.startswith(b"Location") else 503 if header.startswith(b"Retry") else 200
        status = status if path in ("/", "/last") or path in bodies else 404
        return (
            b"HTTP/1.1 %d X\r\n%s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, header, len(body))
            + body
        )

    with served(answer) as url:
        crawled = crawl(f"{url}/", retries=0, longest_wait=0)
    found = outcomes(wb, crawled)
    assert (crawled["status"], found[""], found["last"]) == ("completed_with_errors", "added", "added")
    assert all(failure["reason"] for failure in wb.crawls.failures(crawled["id"]))
    good = [path[1:] for path, (header, _) in bodies.items() if not header.startswith((b"Loc", b"Ret", b"Content-E"))]
    assert sum(found[path] == "added" for path in good) > len(good) * 0.7


def test_a_redirect_to_bytes_that_are_no_text_is_followed(wb: Workbench, crawl: Crawl) -> None:
    def answer(path: str) -> bytes:
        body = page(f"At {path}", links=["/latin", "/utf8"] if path == "/" else []).encode()
        to = {"/latin": b"/caf\xe9", "/utf8": "/café".encode()}.get(path)
        if to:
            return b"HTTP/1.1 302 X\r\nLocation: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % to
        return b"HTTP/1.1 200 X\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + body

    with served(answer) as url:
        found = outcomes(wb, crawl(f"{url}/", sitemaps=False))
    assert (found["caf%E9"], found["caf%C3%A9"]) == ("added", "added")


@contextmanager
def served(answer: Callable[[str], bytes]) -> Iterator[str]:
    """Serve the bytes that ``answer(path)`` returns; yields the address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            head = connection.recv(65536)
            path = head.split(b" ")[1].decode()
            connection.sendall(
                b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n" if path == "/robots.txt" else answer(path)
            )

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
