"""Manners towards each host: how many requests at once, how far apart, and when it asked for a pause."""

from __future__ import annotations

import asyncio
import email.utils
import gzip
import re
import time
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import Any, cast

from protego import Protego

from workbench.crawling.extraction import markdown_links, pieces
from workbench.crawling.urls import canonical, path_of
from workbench.formatting import MB
from workbench.ingestion.readers.office import XmlElement

POLITE_INTERVAL = 0.5  # seconds between two requests to a host that is not ours
POLITE_CONCURRENCY = 2


class Turnstile:
    """A turnstile that lets ``concurrency`` requests to one host through at once, ``interval`` seconds apart."""

    def __init__(self, concurrency: int, interval: float) -> None:
        self.concurrency, self.interval = concurrency, interval
        self.turns = 0  # requests let through so far
        self._room = asyncio.Semaphore(concurrency)
        self._next = self._paused_until = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for a turn and hold it while inside."""
        async with self._room:
            while (wait := max(self._next, self._paused_until) - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            self._next = time.monotonic() + self.interval
            self.turns += 1
            yield

    def slow_down(self, interval: float) -> None:
        """Let one request through at a time, ``interval`` seconds apart at least: the host's robots.txt asks for it."""
        if interval > self.interval:
            self.interval, self.concurrency = interval, 1
            self._room = asyncio.Semaphore(1)

    def pause(self, seconds: float) -> None:
        """Let nothing through for a while: the host asked for it."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)


class Manners:
    """One turnstile a host, made when the host is first met."""

    def __init__(self, concurrency: int, rate: float, is_ours: Callable[[str], bool]) -> None:
        """Take ``rate`` in requests a second (0: a polite one); hosts that are ours need no politeness."""
        self._concurrency, self._rate, self._is_ours = concurrency, rate, is_ours
        self._hosts: dict[str, Turnstile] = {}

    def of(self, host: str, crawl_delay: float = 0.0) -> Turnstile:
        """Return a host's turnstile, slowed down where its robots.txt asks for a delay."""
        if host not in self._hosts:
            ours = self._is_ours(host)
            interval = 1 / self._rate if self._rate else (0.0 if ours else POLITE_INTERVAL)
            concurrency = self._concurrency if ours else min(self._concurrency, POLITE_CONCURRENCY)
            self._hosts[host] = Turnstile(concurrency, interval)
        self._hosts[host].slow_down(crawl_delay)
        return self._hosts[host]


def retry_after(header: str | None) -> float | None:
    """Return the seconds a Retry-After header asks to wait: a number, or the time until a date; None without one."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


# --- robots.txt as Protego reads it (RFC 9309), with the rule that forbids an address, which people are told ---

LONGEST = 512_000  # characters that are read; the RFC asks for at least 500 KiB
LONGEST_DELAY = 60.0  # seconds; a site that asks for more gets this: slower than any crawl can use
MOST_NAMED = 1_000  # rules of one file that are told apart; with more of them the address alone is told
DISALLOW = re.compile(r"^([ \t]*disallow[ \t]*:[ \t]*)([^\s#][^\n#]*)", re.IGNORECASE | re.MULTILINE)
HOST = "http://robots.invalid"  # rules are about paths: the host does not matter


@dataclass(frozen=True)
class Robots:
    """The rules of one host's robots.txt for a user agent's product token; an empty text forbids nothing."""

    text: str = ""
    agent: str = ""
    trouble: str = ""  # why the site could not be asked for the file; nothing is fetched, and nothing removed
    barred: str = ""  # why this workbench may not connect to the host

    @property
    def crawl_delay(self) -> float:
        """Seconds between two requests that the host asks for, by Crawl-delay or Request-rate; 0 where by neither."""
        rate = self._protego.request_rate(self.agent)
        delays = [self._protego.crawl_delay(self.agent) or 0.0, rate.seconds / rate.requests if rate else 0.0]
        return min(LONGEST_DELAY, max(delays))

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps it names, as they stand there."""
        return tuple(self._protego.sitemaps)

    def refuses(self, url: str) -> str | None:
        """Return the rule that forbids an address, or None."""
        if self._protego.can_fetch(url, self.agent):
            return None
        matching = [rule for rule, alone in self._rules if not alone.can_fetch(url, self.agent)]
        return f"robots.txt forbids {max(matching, key=len, default=path_of(url))}"

    @cached_property
    def _protego(self) -> Protego:
        return Protego.parse(self.text)

    @cached_property
    def _rules(self) -> list[tuple[str, Protego]]:
        """The rules that are for this agent, each as a file of its own.

        Protego tells whether an address is forbidden and not by which rule. So each rule's path is replaced by a
        number, and the numbers that are forbidden are the rules of the groups that apply.
        """
        rules = [match.group(2).strip() for match in DISALLOW.finditer(self.text)][:MOST_NAMED]
        numbers = iter(range(len(rules) + 1))
        numbered = DISALLOW.sub(lambda match: f"{match.group(1)}/{next(numbers, '')}$", self.text, count=len(rules))
        groups = Protego.parse(re.sub(r"(?im)^\s*allow\s*:.*$", "", numbered))
        ours = [rule for n, rule in enumerate(rules) if not groups.can_fetch(f"{HOST}/{n}", self.agent)]
        return [(rule, Protego.parse(f"User-agent: *\nDisallow: {rule}")) for rule in ours]


def unreadable(reason: str) -> Robots:
    """Return the rules of a host that cannot answer for them now: it is not crawled."""
    return Robots(trouble=f"robots.txt could not be read, so nothing is fetched there. {reason}")


def parse(text: str, agent: str) -> Robots:
    """Read a robots.txt for a user agent's product token. Lines that make no sense are skipped."""
    return Robots(text[:LONGEST].lstrip("\ufeff"), agent)


# --- The addresses a site lists itself: sitemap.xml (and indexes of sitemaps, also gzipped), llms.txt, ---

MOST_SITEMAPS = 500  # files that are read: with half a second between them some four minutes
MOST_ADDRESSES = 50_000  # addresses of one sitemap, by its protocol
LARGEST = 50 * MB  # bytes of a sitemap after decompression, by its protocol


@dataclass(frozen=True, slots=True)
class ListedAddress:
    """An address that a site lists; ``lastmod`` as it stands there."""

    url: str
    via: str
    lastmod: str | None = None


def read_sitemap(data: bytes, base: str) -> tuple[list[ListedAddress], list[str]]:
    """Return (pages, further sitemaps) of a sitemap or sitemap index; a plain list of addresses is one, too."""
    from lxml import etree as lxml_etree  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]

    etree = cast("Any", lxml_etree)  # lxml ships no types
    data = _unzipped(data)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True, huge_tree=False)
    try:
        root = etree.fromstring(data.strip(), parser) if data.strip() else None
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        text = data.decode("utf-8", "replace")
        words = (word for piece in pieces(text) for word in piece.split() if word.startswith(("http://", "https://")))
        addresses = (canonical(word, base) for word in islice(words, MOST_ADDRESSES))
        return [ListedAddress(url, "sitemap") for url in addresses if url], []
    pages: list[ListedAddress] = []
    further: list[str] = []
    for entry in root.iter("{*}url", "{*}sitemap"):
        url = canonical(_text(entry, "loc"), base)
        if url and entry.tag.endswith("}sitemap" if "}" in entry.tag else "sitemap"):
            further.append(url)
        elif url and len(pages) < MOST_ADDRESSES:
            pages.append(ListedAddress(url, "sitemap", _text(entry, "lastmod") or None))
    return pages, further


def read_llms(text: str, base: str) -> list[ListedAddress]:
    """Return the addresses an llms.txt links to."""
    addresses = (canonical(target, base) for target in markdown_links(text))
    return [ListedAddress(url, "llms") for url in islice(filter(None, addresses), MOST_ADDRESSES)]


def _unzipped(data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data[:LARGEST]
    try:
        return zlib.decompressobj(wbits=31).decompress(data, LARGEST)
    except (zlib.error, gzip.BadGzipFile):
        return b""


def _text(entry: XmlElement, name: str) -> str:
    return (entry.findtext(f"{{*}}{name}") or "").strip()
