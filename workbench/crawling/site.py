"""Network access of a crawl: guard, rate limits, robots.txt, plain HTTP and a browser if needed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from workbench.crawling.egress import Guard
from workbench.crawling.extraction import Page, extract_page
from workbench.crawling.http import AGENT_TOKEN, REDIRECT_STATUSES, RETRY_STATUSES, FetchFailed, Refusal, Response
from workbench.crawling.options import CrawlOptions
from workbench.crawling.politeness import (
    MAX_SITEMAPS,
    HostRateLimiter,
    RateLimiters,
    Robots,
    parse_retry_delay,
    parse_robots,
    read_llms,
    read_sitemap,
)
from workbench.crawling.urls import FoundAddress, canonicalize, make_bounds, url_host
from workbench.errors import CrawlRefused

if TYPE_CHECKING:
    from workbench.crawling.browser import Browser

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
        self._manners = RateLimiters(
            options.concurrency, options.rate, lambda host: guard.allows_by_name(*_split_host_port(host))
        )
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
        return self._manners.get(url_host(url), (await self.robots(url)).crawl_delay)

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
            turnstile = self._manners.get(url_host(url), robots.crawl_delay)
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


def _split_host_port(netloc: str) -> tuple[str, int | None]:
    parts = urlsplit(f"//{netloc}")
    return parts.hostname or "", parts.port
