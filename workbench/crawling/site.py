"""Network access of a crawl: guard, rate limits, robots.txt, plain HTTP and a browser if needed."""

from __future__ import annotations

import asyncio
import email.utils
import re
import time
import zlib
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urljoin, urlsplit

from protego import Protego

from workbench.crawling.egress import Guard
from workbench.crawling.extraction import Page, extract_page, find_markdown_links, split_text
from workbench.crawling.http import AGENT_TOKEN, REDIRECT_STATUSES, RETRY_STATUSES, FetchFailed, Refusal, Response
from workbench.crawling.options import CrawlOptions
from workbench.crawling.urls import FoundAddress, canonicalize, make_bounds, url_host, url_path
from workbench.errors import CrawlRefused
from workbench.formatting import MB

if TYPE_CHECKING:
    from workbench.crawling.browser import Browser

# --- Rate limits per host ---

POLITE_INTERVAL_S = 0.5  # seconds between requests to a foreign host
POLITE_CONCURRENCY = 2


class HostRateLimiter:
    """Rate limiter of one host: at most ``concurrency`` requests at once, ``interval`` seconds apart."""

    def __init__(self, concurrency: int, interval: float) -> None:
        self.concurrency, self.interval = concurrency, interval
        self.turns = 0  # requests so far
        self._room = asyncio.Semaphore(concurrency)
        self._next = self._paused_until = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for a slot and hold it."""
        async with self._room:
            while (wait := max(self._next, self._paused_until) - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            self._next = time.monotonic() + self.interval
            self.turns += 1
            yield

    def slow_down(self, interval: float) -> None:
        """Allow one request at a time, at least ``interval`` seconds apart, as robots.txt requires."""
        if interval > self.interval:
            self.interval, self.concurrency = interval, 1
            self._room = asyncio.Semaphore(1)

    def pause(self, seconds: float) -> None:
        """Allow no requests for ``seconds``, as the host requested."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)


def parse_retry_delay(header: str | None) -> float | None:
    """Parse a Retry-After header, a number or a date, as seconds; None if invalid."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


# --- robots.txt (RFC 9309), parsed by Protego ---

MAX_ROBOTS_CHARS = 512_000  # characters read; the RFC requires at least 500 KiB
MAX_CRAWL_DELAY_S = 60.0  # seconds; longer delays are cut to this, because they make a crawl impracticable
MAX_NAMED_RULES = 1_000  # rules per file for which the forbidding rule is named in messages
DISALLOW_LINE = re.compile(r"^([ \t]*disallow[ \t]*:[ \t]*)([^\s#][^\n#]*)", re.IGNORECASE | re.MULTILINE)
ROBOTS_HOST = "http://robots.invalid"  # rules are about paths; any host works


@dataclass(frozen=True)
class Robots:
    """The robots.txt rules of one host for a user agent. An empty text forbids nothing."""

    text: str = ""
    agent: str = ""
    trouble: str = ""  # why the file could not be read; nothing is fetched or removed
    barred: str = ""  # why this workbench may not connect to the host

    @property
    def crawl_delay(self) -> float:
        """Seconds between requests by Crawl-delay or Request-rate, or 0."""
        rate = self._protego.request_rate(self.agent)
        seconds = rate.seconds / rate.requests if rate and rate.requests else 0.0
        delays = [self._protego.crawl_delay(self.agent) or 0.0, seconds]
        return min(MAX_CRAWL_DELAY_S, max(delays))

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps named in robots.txt, as written."""
        return tuple(self._protego.sitemaps)

    def refuses(self, url: str) -> str | None:
        """Return a message with the rule that forbids an address, or None."""
        if self._protego.can_fetch(url, self.agent):
            return None
        matching = [rule for rule, alone in self._rules if not alone.can_fetch(url, self.agent)]
        return f"robots.txt forbids {max(matching, key=len, default=url_path(url))}"

    @cached_property
    def _protego(self) -> Protego:
        return Protego.parse(self.text)

    @cached_property
    def _rules(self) -> list[tuple[str, Protego]]:
        """The rules for this agent, each in a separate parser.

        Protego only reports whether an address is forbidden. Each rule's path is therefore replaced with a number; the
        forbidden numbers identify the rules of the groups that apply.
        """
        rules = [match.group(2).strip() for match in DISALLOW_LINE.finditer(self.text)][:MAX_NAMED_RULES]
        numbers = iter(range(len(rules) + 1))
        numbered = DISALLOW_LINE.sub(
            lambda match: f"{match.group(1)}/{next(numbers, '')}$", self.text, count=len(rules)
        )
        groups = Protego.parse(re.sub(r"(?im)^\s*allow\s*:.*$", "", numbered))
        ours = [rule for n, rule in enumerate(rules) if not groups.can_fetch(f"{ROBOTS_HOST}/{n}", self.agent)]
        return [(rule, Protego.parse(f"User-agent: *\nDisallow: {rule}")) for rule in ours]


def parse_robots(text: str, agent: str) -> Robots:
    """Parse a robots.txt for a user agent's product token. Invalid lines are skipped."""
    return Robots(text[:MAX_ROBOTS_CHARS].lstrip("\ufeff"), agent)


# --- Sitemaps and llms.txt ---

MAX_SITEMAPS = 500  # files read; about four minutes at two per second
BARE_AMPERSAND = re.compile(rb"&(?!#?\w{1,31};)")
MAX_SITEMAP_BYTES = 50 * MB  # bytes of a sitemap after decompression, by its protocol


def read_sitemap(data: bytes, base: str) -> tuple[list[FoundAddress], list[str], bool]:
    """Read a sitemap, sitemap index or plain list; return (pages, further sitemaps, whether it was read completely).

    Session parameters are kept, because a sitemap is written for crawlers, which have no session.

    Raises:
        zlib.error: It is compressed, and damaged.
    """
    from lxml import etree as lxml_etree  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]

    etree = cast("Any", lxml_etree)  # lxml has no type stubs
    data, is_whole = _unzip(data)
    data = BARE_AMPERSAND.sub(b"&amp;", data)  # the parser would drop the name after it
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True, huge_tree=False)
    try:
        root = etree.fromstring(data.strip(), parser) if data.strip() else None
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        text = data.decode("utf-8", "replace")
        words = (
            word for piece in split_text(text) for word in piece.split() if word.startswith(("http://", "https://"))
        )
        addresses = (canonicalize(word, base, keeps_sessions=True) for word in words)
        pages = [FoundAddress(url, "sitemap") for url in addresses if url]
        return pages, [], is_whole and (bool(pages) or not text.strip())
    pages: list[FoundAddress] = []
    further: list[str] = []
    for entry in root.iter("{*}url", "{*}sitemap"):
        location, lastmod = ((entry.findtext(f"{{*}}{name}") or "").strip() for name in ("loc", "lastmod"))
        url = canonicalize(location, base, keeps_sessions=True)
        if url and entry.tag.endswith("}sitemap" if "}" in entry.tag else "sitemap"):
            further.append(url)
        elif url:
            pages.append(FoundAddress(url, "sitemap", lastmod or None))
    is_damaged = any(entry.level_name == "FATAL" for entry in parser.error_log)  # it ends early, for example
    is_sitemap = str(root.tag).rpartition("}")[2] in ("urlset", "sitemapindex")
    return pages, further, is_whole and (is_sitemap or bool(pages or further)) and not is_damaged


def read_llms(text: str, base: str) -> list[FoundAddress]:
    """Return the addresses that an llms.txt links to."""
    addresses = (canonicalize(target, base, keeps_sessions=True) for target in find_markdown_links(text))
    return [FoundAddress(url, "llms") for url in filter(None, addresses)]


def _unzip(data: bytes) -> tuple[bytes, bool]:
    """Return the data, decompressed if necessary, and whether it is complete."""
    if not data.startswith(b"\x1f\x8b"):
        return data[:MAX_SITEMAP_BYTES], len(data) <= MAX_SITEMAP_BYTES
    unzipping = zlib.decompressobj(wbits=31)
    return unzipping.decompress(data, MAX_SITEMAP_BYTES), unzipping.eof


# --- Access to the hosts of a crawl ---

MAX_REDIRECTS = 5  # redirects followed for robots.txt, sitemaps and llms.txt (RFC 9309 asks for five)

# Why a sitemap was not read, as the counts of a crawl name it
UNREADABLE_SITEMAP_REASON = "unreadable sitemap"
PARTIAL_SITEMAP_REASON = "a damaged or oversized sitemap, of which only a part was read"
SURPLUS_SITEMAP_REASON = f"a sitemap beyond the first {MAX_SITEMAPS}"


class Site:
    """Access to the hosts of one crawl; closed at its end."""

    def __init__(self, guard: Guard, options: CrawlOptions, *, browser_url: str = "") -> None:
        """Args:
        guard: Decides which addresses may be reached.
        options: Options of the crawl.
        browser_url: CDP address of an existing browser; empty for a managed Chromium, started if needed.
        """
        from workbench.crawling.http import GuardedHTTPStrategy

        self._guard, self._options, self._browser_url = guard, options, browser_url
        self._http = GuardedHTTPStrategy(guard, timeout=options.timeout, max_bytes=options.max_bytes)
        self._limiters: dict[str, HostRateLimiter] = {}
        self._robots: dict[str, Robots] = {}
        self._browser: Browser | None = None
        self.browser_trouble = ""  # why no browser is available

    async def close(self) -> None:
        """Close the connections and the browser."""
        await self._http.close()
        if self._browser is not None:
            await self._browser.close()

    async def page(self, url: str, validators: Mapping[str, str]) -> tuple[Response, Page | None]:
        """Fetch and read a page; the page is None for a 304 or any unsuccessful status.

        Raises:
            CrawlRefused: It may not be fetched.
            UnreadableDocument: Its format is not supported.
            FetchFailed: There was no response, or one worth a retry.
        """
        if self._options.browser == "always":
            fetched = await self._render(url)
        else:
            fetched = await self._plain(url, validators)
        if not 200 <= fetched.status < 300:
            return fetched, None
        page = await asyncio.to_thread(extract_page, fetched)
        if page.needs_script and self._options.browser == "auto" and not fetched.rendered:
            rendered = await self._render_if_possible(url)
            if rendered is not None and not 200 <= rendered.status < 300:
                return rendered, None
            if rendered is not None:
                better = await asyncio.to_thread(extract_page, rendered)
                if len(better.body) > len(page.body):
                    return rendered, better
        return fetched, page

    async def robots(self, url: str) -> Robots:
        """Return the robots.txt rules of an address's host, fetched once."""
        parts = urlsplit(url)
        place = f"{parts.scheme}://{parts.netloc}"
        if place not in self._robots:
            self._robots[place] = await self._read_robots(place)
        return self._robots[place]

    async def read_all_robots(self, urls: Iterable[str]) -> None:
        """Read the robots.txt of every host in these addresses."""
        for url in {url_host(url): url for url in urls}.values():
            await self.robots(url)

    async def turnstile(self, url: str) -> HostRateLimiter:
        """Return the rate limiter of an address's host, with the delay from its robots.txt."""
        return self.limiter(url, (await self.robots(url)).crawl_delay)

    def limiter(self, url: str, crawl_delay: float = 0.0) -> HostRateLimiter:
        """Return the rate limiter of an address's host, slowed down to the delay in its robots.txt."""
        host = url_host(url)
        if host not in self._limiters:
            parts, rate, most = urlsplit(url), self._options.rate, self._options.concurrency
            ours = self._guard.allows_by_name(parts.hostname or "", parts.port)
            interval = 1 / rate if rate else (0.0 if ours else POLITE_INTERVAL_S)
            self._limiters[host] = HostRateLimiter(most if ours else min(most, POLITE_CONCURRENCY), interval)
        self._limiters[host].slow_down(crawl_delay)
        return self._limiters[host]

    def refusal(self, url: str) -> Refusal | None:
        """Return why the guard or an already read robots.txt forbids an address, or None."""
        parts = urlsplit(url)
        try:
            self._guard.check(url)
        except CrawlRefused as error:
            return Refusal("not_allowed", str(error))
        robots = self._robots.get(f"{parts.scheme}://{parts.netloc}", Robots())
        if robots.barred:
            return Refusal("not_allowed", robots.barred)
        rule = robots.refuses(url)
        return Refusal("forbidden", rule) if rule else None

    async def refusal_after_asking(self, url: str) -> Refusal | None:
        """Read the host's robots.txt, then return why an address may not be fetched, or None."""
        robots = await self.robots(url)
        return Refusal("failed", robots.trouble) if robots.trouble else self.refusal(url)

    async def list_addresses(self, url: str) -> tuple[list[FoundAddress], dict[str, str]]:
        """Return the addresses that the site lists, and the reason for each sitemap that was not read.

        Addresses are ordered by source: sitemaps, llms.txt, llms-full.txt.
        """
        root = urljoin(url, "/")
        robots = await self.robots(url)
        sitemaps = [sitemap for entry in robots.sitemaps if (sitemap := canonicalize(entry, root))]
        pages: dict[str, FoundAddress] = {}
        found, unread = await self._sitemaps([*sitemaps, urljoin(root, "sitemap.xml")])
        for page in found:
            pages.setdefault(page.url, page)
        for folder in dict.fromkeys((root, urljoin(root, make_bounds(url, "path").prefix))):
            text = await self._small(urljoin(folder, "llms.txt"))
            if text is not None and "<html" not in text[:500].decode("utf-8", "replace").lower():
                for page in read_llms(text.decode("utf-8", "replace"), folder):
                    pages.setdefault(page.url, page)
                full = urljoin(folder, "llms-full.txt")
                if make_bounds(url, self._options.within).contains(full):
                    pages.setdefault(full, FoundAddress(full, "guess"))
        if urljoin(root, "sitemap.xml") not in sitemaps:
            unread.pop(urljoin(root, "sitemap.xml"), None)  # a guess that need not exist
        return list(pages.values()), unread

    async def _sitemaps(self, waiting: list[str]) -> tuple[list[FoundAddress], dict[str, str]]:
        entries: list[FoundAddress] = []
        read: set[str] = set()
        unread: dict[str, str] = {}
        while waiting and len(read) < MAX_SITEMAPS:
            url = waiting.pop(0)
            if url in read:
                continue
            read.add(url)
            data = await self._small(url)
            try:
                pages, further, is_whole = await asyncio.to_thread(read_sitemap, data or b"", url)
            except Exception:  # noqa: BLE001 - a damaged archive fails in any way; it is counted as unread
                pages, further, is_whole = [], [], False
            if not data or not is_whole:
                unread[url] = PARTIAL_SITEMAP_REASON if pages or further else UNREADABLE_SITEMAP_REASON
            entries += pages
            waiting += further
        return entries, unread | {url: SURPLUS_SITEMAP_REASON for url in waiting if url not in read}

    async def _plain(self, url: str, validators: Mapping[str, str]) -> Response:
        turnstile = await self.turnstile(url)
        async with turnstile.turn():
            fetched = await self._http.fetch(url, validators)
        if fetched.status in RETRY_STATUSES:
            wait = parse_retry_delay(fetched.headers.get("retry-after"))
            if wait is not None and wait > self._options.longest_wait:
                reason = f"It answered {fetched.status} and asked to wait {wait:.0f} s."
                raise FetchFailed(reason, retry=False, status=fetched.status)
            if wait:
                turnstile.pause(wait)
            raise FetchFailed(f"It answered {fetched.status}.", retry=True, retry_after=wait, status=fetched.status)
        return fetched

    async def _render(self, url: str) -> Response:
        if self._browser is None:
            from workbench.crawling.browser import Browser

            options = self._options
            self._browser = Browser(
                self._guard, timeout=options.timeout, max_bytes=options.max_bytes, cdp_url=self._browser_url
            )
        turnstile = await self.turnstile(url)
        async with turnstile.turn():
            return await self._browser.fetch(url)

    async def _render_if_possible(self, url: str) -> Response | None:
        """Render a page. Without a browser, note the reason once and return None."""
        if self.browser_trouble:
            return None
        try:
            return await self._render(url)
        except CrawlRefused as error:
            if self._browser is None or self._browser.is_running:
                raise
            self.browser_trouble = str(error)
        except FetchFailed:
            pass
        return None

    async def _read_robots(self, place: str) -> Robots:
        trouble = "robots.txt could not be read, so the host is not crawled."
        try:
            fetched = await self._fetch_redirected(f"{place}/robots.txt", Robots())
        except FetchFailed as error:
            return Robots(trouble=f"{trouble} {error.reason}")
        except CrawlRefused as error:
            return Robots(barred=str(error))
        if fetched is None or (400 <= fetched.status < 500 and fetched.status != 429):
            return Robots()
        if fetched.status >= 500 or fetched.status == 429:
            return Robots(trouble=f"{trouble} It answered {fetched.status}.")
        return parse_robots(fetched.body.decode("utf-8", "replace"), AGENT_TOKEN)

    async def _small(self, url: str) -> bytes | None:
        """Fetch a small file meant for crawlers; return None if the site has none."""
        try:
            robots = await self.robots(url)
            fetched = None if await self.refusal_after_asking(url) else await self._fetch_redirected(url, robots)
        except (FetchFailed, CrawlRefused):
            return None
        return fetched.body if fetched is not None and fetched.status == 200 else None

    async def _fetch_redirected(self, url: str, robots: Robots) -> Response | None:
        """Fetch with redirects and retries; return None if a redirect has no target."""
        for hop in range(MAX_REDIRECTS + 1):
            turnstile = self.limiter(url, robots.crawl_delay)
            async with turnstile.turn():
                fetched = await self._again(url)
            if fetched.status not in REDIRECT_STATUSES or hop == MAX_REDIRECTS:
                return fetched
            target = canonicalize(fetched.headers.get("location", ""), url)
            if target is None:
                return None
            url = target
        return None

    async def _again(self, url: str) -> Response:
        for attempt in range(self._options.retries + 1):
            try:
                fetched = await self._http.fetch(url)
                if fetched.status not in RETRY_STATUSES or attempt == self._options.retries:
                    return fetched
            except FetchFailed as error:
                if not error.retry or attempt == self._options.retries:
                    raise
            await asyncio.sleep(self._options.backoff * 2**attempt)
        raise AssertionError("unreachable: the last try returns or raises")
