"""Rate limits per host, robots.txt, and the addresses that a site lists."""

from __future__ import annotations

import asyncio
import email.utils
import re
import time
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, cast

from protego import Protego

from workbench.crawling.extraction import find_markdown_links, split_text
from workbench.crawling.urls import FoundAddress, canonicalize, url_path
from workbench.formatting import MB

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


class RateLimiters:
    """The rate limiters of all hosts, created on first use."""

    def __init__(self, concurrency: int, rate: float, is_ours: Callable[[str], bool]) -> None:
        """Args:
        concurrency: Simultaneous requests per host.
        rate: Requests per second and host; 0 selects a polite rate.
        is_ours: Returns whether a host is the user's own and needs no default limit.
        """
        self._concurrency, self._rate, self._is_ours = concurrency, rate, is_ours
        self._hosts: dict[str, HostRateLimiter] = {}

    def get(self, host: str, crawl_delay: float = 0.0) -> HostRateLimiter:
        """Return a host's rate limiter, slowed down to the delay in its robots.txt."""
        if host not in self._hosts:
            ours = self._is_ours(host)
            interval = 1 / self._rate if self._rate else (0.0 if ours else POLITE_INTERVAL_S)
            concurrency = self._concurrency if ours else min(self._concurrency, POLITE_CONCURRENCY)
            self._hosts[host] = HostRateLimiter(concurrency, interval)
        self._hosts[host].slow_down(crawl_delay)
        return self._hosts[host]


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
