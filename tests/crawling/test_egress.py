"""Connections only go to allowed addresses; a test resolver returns them, and no socket is ever created."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.crawling.site import TestSite, outcomes, page, reason, redirect
from tests.crawling.trap import trapped
from workbench import Workbench
from workbench.crawling.egress import Guard, is_public, parse_literal_address
from workbench.crawling.http import FetchFailed, GuardedHTTPStrategy
from workbench.errors import CrawlRefused, InvalidInput

PRIVATE = [
    "127.0.0.1", "10.0.0.1", "172.16.5.4", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "255.255.255.255", "::1", "::", "fe80::1", "fd00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::7f00:1",
    "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:80ff:fffe",
]  # fmt: skip
WRITTEN = [
    "http://127.0.0.1/", "http://10.0.0.1/", "http://169.254.169.254/latest/meta-data", "http://[::1]/",
    "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/", "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:a00:1]/", "http://１２７.０.０.１/", "http://127.0.0.1./", "http://user@127.0.0.1/",
]  # fmt: skip


class Sockets:
    """A socket factory that records addresses and creates no sockets."""

    def __init__(self) -> None:
        self.asked_for: list[str] = []

    def __call__(self, address: Any) -> socket.socket:
        self.asked_for.append(address[4][0])
        raise OSError("no socket is made in this test")


def answers(*sequence: Iterable[str]) -> Callable[[str], Iterable[str]]:
    """Return a resolver that returns one answer after another."""
    waiting = list(sequence)
    return lambda _: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def fetch(guard: Guard, url: str, sockets: Sockets) -> None:
    """Request a page with a fetcher whose sockets are recorded."""

    async def ask() -> None:
        async with GuardedHTTPStrategy(guard, timeout=5, max_bytes=1000, socket_factory=sockets) as strategy:
            await strategy.fetch(url)

    asyncio.run(ask())


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_that_leads_into_a_private_network_is_refused_before_any_socket(address: str) -> None:
    sockets = Sockets()
    with pytest.raises(CrawlRefused, match="not on the public internet"):
        fetch(Guard(resolve=answers([address])), "http://innocent.test/", sockets)
    with pytest.raises(CrawlRefused):
        fetch(Guard(resolve=answers(["93.184.215.14", address])), "http://innocent.test/", sockets)
    assert sockets.asked_for == []


@pytest.mark.parametrize("url", WRITTEN)
def test_a_private_address_is_refused_however_it_is_written(url: str) -> None:
    sockets = Sockets()
    with pytest.raises(CrawlRefused):
        fetch(Guard(resolve=answers(["93.184.215.14"])), url, sockets)
    assert sockets.asked_for == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://h/", "gopher://h/", "http:///x", "javascript:1", "raw:<p>"]
)
def test_only_the_web_is_fetched(url: str) -> None:
    with pytest.raises(CrawlRefused):
        Guard().check(url)


def test_the_approved_address_is_the_one_connected_to_and_a_changed_answer_is_refused() -> None:
    sockets = Sockets()
    guard = Guard(resolve=answers(["93.184.215.14"], ["127.0.0.1"]))
    with pytest.raises(FetchFailed):
        fetch(guard, "http://changing.test/", sockets)  # reaches the step that makes the socket, which makes none
    with pytest.raises(CrawlRefused, match=r"127\.0\.0\.1"):
        fetch(guard, "http://changing.test/", sockets)
    assert sockets.asked_for == ["93.184.215.14"]


def test_a_host_the_owner_named_may_be_private_and_no_other_name_for_it() -> None:
    guard = Guard(["127.0.0.1", "intranet.test", "localhost:8080"], resolve=answers(["10.1.2.3"]))
    assert guard.addresses("127.0.0.1") == ("127.0.0.1",)
    assert guard.addresses("INTRANET.test.") == ("10.1.2.3",)
    assert guard.addresses("localhost", 8080) == ("10.1.2.3",)
    for host, port in (("localhost", 80), ("evil.intranet.test", 80), ("2130706433", 80)):
        with pytest.raises(CrawlRefused):
            guard.addresses(host, port)


def test_public_addresses_are_public() -> None:
    assert all(
        is_public(address) for text in ("8.8.8.8", "2606:4700::1111") if (address := parse_literal_address(text))
    )
    assert parse_literal_address("example.test") is None


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.2:{port}/", "http://2130706434:{port}/", "http://0x7f.0.0.2:{port}/", "http://127.2:{port}/",
        "http://[::1]:{port}/", "http://[::ffff:127.0.0.2]:{port}/", "http://localhost:{port}/",
        "http://10.0.0.1:{port}/", "http://169.254.169.254:{port}/",
    ],
)  # fmt: skip
def test_a_redirect_to_a_private_address_reaches_no_one(
    wb: Workbench, site: TestSite, crawl: Callable[..., Any], target: str
) -> None:
    with trapped("127.0.0.2", "127.0.0.1", "::1") as trap:
        site.put({"/": redirect(target.format(port=trap.port))})
        crawled = crawl(f"{site.url}/")
        assert trap.heard() == []
    assert crawled["status"] == "failed"
    assert [p.outcome for p in wb.crawls.pages(crawled["id"])] == ["redirected", "not_allowed"]
    assert "not on the public internet" in crawled["error_message"]


def test_no_redirect_of_any_file_that_a_crawl_asks_for_leads_into_a_trap(
    wb: Workbench, site: TestSite, crawl: Callable[..., Any]
) -> None:
    with trapped("127.0.0.2") as trap:
        away = f"http://127.0.0.2:{trap.port}"
        files = ("/sitemap.xml", "/llms.txt", "/llms-full.txt", "/a", "/guide.pdf")
        site.put({"/": page("Start", links=["/a", "/guide.pdf"])} | {f: redirect(f"{away}{f}") for f in files})
        crawled = crawl(f"{site.url}/", within="domain")
        assert trap.heard() == []
        assert all(site.hits(path) for path in files if path != "/llms-full.txt")
        assert crawled["documents_created"] == 1
        site.put({"/robots.txt": redirect(f"{away}/robots.txt")})
        assert "not on the public internet" in crawl(f"{site.url}/", title="Again")["error_message"]
        assert trap.heard() == []


def test_links_and_sitemaps_to_private_addresses_are_never_asked(
    wb: Workbench, site: TestSite, crawl: Callable[..., Any]
) -> None:
    site.put({
        "/": page("Start", links=[f"http://127.0.0.2:{site.port}/x", f"//localhost:{site.port}/y", "/a"]),
        "/a": page("A"), "/robots.txt": f"Sitemap: http://127.0.0.3:{site.port}/s.xml",
    })  # fmt: skip
    crawled = crawl(f"{site.url}/", within="domain")
    assert outcomes(wb, crawled) == {"": "added", "a": "added"}
    assert not {"/x", "/y", "/s.xml"} & set(site.hits())


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1/", "http://[::1]:80/", "https://169.254.169.254/", "http://localhost./", "localhost:8080/x",
        "http://LOCALHOST/", "http://printer.localhost/",
    ],
)  # fmt: skip
def test_a_crawl_does_not_start_at_a_private_address_and_leaves_nothing_behind(wb: Workbench, url: str) -> None:
    with pytest.raises(CrawlRefused, match="WORKBENCH_CRAWL_ALLOW_HOSTS"):
        wb.crawls.start(url)
    with pytest.raises(CrawlRefused, match="WORKBENCH_CRAWL_ALLOW_HOSTS"):
        wb.crawls.dry_run(url)
    assert (wb.sources.count(), wb.jobs.list()) == (0, [])


@pytest.mark.parametrize("host", ["public.test", "127.0.0.1", "named.test"])
def test_a_crawl_of_an_address_that_is_allowed_is_accepted_as_soon_as_that_is_known(host: str) -> None:
    guard = Guard(["127.0.0.1", "named.test"], resolve=answers(["93.184.215.14"]))
    checking = threading.Thread(
        target=guard.check_name, args=(f"http://{host}/",), kwargs={"within": 3600}, daemon=True
    )
    checking.start()
    checking.join(60)
    assert not checking.is_alive()


def test_a_name_is_looked_up_before_a_crawl_is_accepted_and_a_slow_resolver_holds_up_no_one() -> None:
    with pytest.raises(CrawlRefused, match=r"10\.1\.2\.3"):
        Guard(resolve=answers(["10.1.2.3"])).check_name("http://intranet.test/")
    Guard(["intranet.test"], resolve=answers(["10.1.2.3"])).check_name("http://intranet.test/")
    Guard(resolve=answers(["93.184.215.14"])).check_name("http://public.test/")
    answer = threading.Event()

    def slow(_: str) -> list[str]:
        answer.wait()
        return ["10.1.2.3"]

    Guard(resolve=slow).check_name("http://slow.test/", within=0.01)
    answer.set()


@pytest.mark.parametrize(
    "url", ["", "notaurl", "ftp://h/", "file:///etc/passwd", "http://", "javascript:1", "http://a b/"]
)
def test_no_web_address_is_refused_with_a_sentence(wb: Workbench, url: str) -> None:
    with pytest.raises(InvalidInput, match="Invalid URL"):
        wb.crawls.start(url)


def test_the_reason_reaches_the_report(wb: Workbench, site: TestSite, crawl: Callable[..., Any]) -> None:
    site.put(
        {"/": page("Start", links=["/out"]), "/out": redirect(f"http://127.0.0.1:{site.port}/in"), "/in": page("In")}
    )
    crawled = crawl(f"{site.url}/")
    assert reason(wb, crawled, "/out") == f"to {site.url}/in"
