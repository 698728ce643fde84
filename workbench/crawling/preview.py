"""Dry runs of crawls, which store nothing, and reading of single web pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypedDict, cast

from workbench.crawling.fetch_page import SKIPPED_LINKS, TryAgain, visit_page
from workbench.crawling.frontier import Entry, Frontier
from workbench.crawling.http import REDIRECT_STATUSES, FetchFailed
from workbench.crawling.options import UNFETCHED_OUTCOMES, CrawlOptions
from workbench.crawling.site import Site
from workbench.crawling.urls import CrawlBounds, FoundAddress, canonicalize, make_bounds, url_host
from workbench.errors import CrawlRefused
from workbench.storage.crawls import PageReply
from workbench.types import JsonObject, Value

# --- Estimate from a few pages ---

PASSAGE_BYTES = 800  # approximate bytes of text per passage


@dataclass(frozen=True, slots=True)
class HostLoad:
    """Expected requests to one host."""

    requests: int  # number of requests
    interval: float  # minimum seconds between requests
    concurrency: int  # maximum simultaneous requests


def estimate_fetch_seconds(hosts: Iterable[HostLoad], concurrency: int, seconds: float) -> float:
    """Return the time for requests that take ``seconds`` each, at most ``concurrency`` at once over all hosts.

    A host accepts the next request after its interval if a slot is free. Hosts are crawled in parallel, so the result
    is max(max over hosts of n * max(interval, seconds / slots), N * seconds / concurrency).
    """
    loads = list(hosts)
    slowest = max((load.requests * max(load.interval, seconds / load.concurrency) for load in loads), default=0.0)
    return max(slowest, sum(load.requests for load in loads) * seconds / concurrency)


MAX_FETCHED_PAGES = 12  # maximum pages fetched for samples and the estimate
SAMPLE_CHARS = 2_000
MAX_ADDRESSES_SHOWN = 500  # addresses shown per list


class WantedPage(TypedDict):
    """A page that would be fetched."""

    url: str
    via: str
    depth: int


class RefusedAddress(TypedDict):
    """An address that would not be fetched, or could not be."""

    url: str
    reason: str | None


class TextSample(TypedDict):
    """The beginning of a page's text; ``characters`` is its whole length."""

    url: str
    title: str | None
    text: str
    characters: int
    links: int
    metadata: dict[str, object]
    rendered: bool


class DryRun(TypedDict):
    """The report of a dry run."""

    url: str
    scope: JsonObject | None  # the bounds
    pages_known: int
    complete: bool
    would_fetch: list[WantedPage]
    would_not_fetch: list[RefusedAddress]
    not_fetched: dict[str, int]  # all addresses found so far that would not be fetched, by reason
    failed: list[RefusedAddress]
    samples: list[TextSample]
    estimate: JsonObject  # pages, whether there may be more, seconds of fetching, bytes of text, passages


async def run_dry(site: Site, url: str, options: CrawlOptions, samples: int) -> DryRun:
    """Fetch the first pages and return the report.

    Raises:
        CrawlRefused: Fetching the start page failed, or it may not be fetched and no other is known.
    """
    frontier = Frontier(options, [Entry(0, url, 0, "start")])
    reasons: dict[str, str] = {}
    visited: list[tuple[Entry, PageReply]] = []
    found: dict[str, str] = {}  # addresses, with the reason if it is known why they are not fetched
    bounds: CrawlBounds | None = None
    while len(visited) < MAX_FETCHED_PAGES and (entry := next(frontier.waiting(0.0), None)):
        try:
            answer = await visit_page(site, entry, None, options)
        except (TryAgain, FetchFailed) as error:
            answer = PageReply("done", "failed", error.reason)
        entry.state, entry.outcome, entry.expanded = answer.state, answer.outcome, True
        visited.append((entry, answer))
        if answer.outcome == "left_out":
            reasons[entry.url] = answer.reason or ""
        if entry.outcome == "redirected" and bounds is None:
            await site.robots(answer.links[0])
            admitted = frontier.admit_target(answer.links[0], entry, site.refusal)
        else:
            if bounds is None and answer.outcome == "failed":
                raise CrawlRefused(f"Failed to fetch the start page. {answer.reason}")
            links = [FoundAddress(link, "link") for link in answer.links]
            if bounds is None:
                bounds = make_bounds(entry.url, options.within)
                if options.recursive and options.sitemaps:
                    listed, unread = await site.list_addresses(entry.url)
                    found |= unread
                    links += listed
                if answer.outcome in UNFETCHED_OUTCOMES and not links:
                    raise CrawlRefused(f"Nothing would be fetched. {entry.url}: {answer.reason}")
            await site.read_all_robots(link.url for link in links if bounds.contains(link.url))
            depth = entry.depth + 1
            admitted = frontier.admit(links, depth=depth, parent=entry.url, bounds=bounds, refusal=site.refusal)
            skipped = cast("Mapping[str, str]", answer.metadata.get(SKIPPED_LINKS, {}))
            found = {**skipped, **found, **{link.url: "" for link in links}}
        reasons |= {page.url: page.reason or "" for page in admitted if page.outcome is not None}
    if bounds is not None and options.recursive:
        found = {a: reason or frontier.skip_reason(a, bounds) for a, reason in found.items() if a not in frontier}
    wanted = [entry for entry in frontier.entries if entry.outcome not in (*UNFETCHED_OUTCOMES, "redirected")]
    pages = [(entry, answer) for entry, answer in visited if answer.state == "fetched"]
    complete = not any(entry.state == "queued" for entry in frontier.entries)
    return {
        "url": url,
        "scope": bounds.to_dict() if bounds else None,
        "pages_known": len(wanted),
        "complete": complete,
        "would_fetch": [{"url": e.url, "via": e.via, "depth": e.depth} for e in wanted[:MAX_ADDRESSES_SHOWN]],
        "would_not_fetch": [{"url": a, "reason": reason} for a, reason in [*reasons.items()][:MAX_ADDRESSES_SHOWN]],
        "not_fetched": dict(Counter([*reasons.values(), *found.values()]).most_common()),
        "failed": [{"url": e.url, "reason": a.reason} for e, a in visited if a.outcome == "failed"],
        "samples": [_text_sample(entry, answer) for entry, answer in pages[:samples]],
        "estimate": {"at_least": not complete} | await _estimate(site, wanted, visited, options.concurrency),
    }


async def _estimate(
    site: Site, wanted: list[Entry], visited: list[tuple[Entry, PageReply]], concurrency: int
) -> JsonObject:
    """Estimate a crawl from the visited pages. Requests of the dry run count, as a crawl makes them too."""
    visits = Counter(url_host(entry.url) for entry, _ in visited if entry.outcome != "redirected")
    loads: list[HostLoad] = []
    for host, count in Counter(url_host(entry.url) for entry in wanted).items():
        turnstile = await site.turnstile(next(entry.url for entry in wanted if url_host(entry.url) == host))
        others = max(0, turnstile.turns - visits[host])
        loads.append(HostLoad(count + others, turnstile.interval, turnstile.concurrency))
    pages = [answer for _, answer in visited if answer.state == "fetched"]
    seconds = sum(answer.seconds for answer in pages) / max(1, len(pages))
    size = round(len(wanted) * sum(answer.size for answer in pages) / max(1, len(pages)))
    return {
        "pages": len(wanted),
        "seconds": round(estimate_fetch_seconds(loads, concurrency, seconds), 1),
        "text_bytes": size,
        "passages": round(size / PASSAGE_BYTES),
    }


def _text_sample(entry: Entry, answer: PageReply) -> TextSample:
    text = (answer.body or b"").decode("utf-8", "replace") if not answer.metadata.get("file_name") else ""
    return {
        "url": entry.url,
        "title": answer.title,
        "text": text[:SAMPLE_CHARS],
        "characters": len(text),
        "links": len(answer.links),
        "metadata": {name: value for name, value in answer.metadata.items() if name != SKIPPED_LINKS},
        "rendered": answer.rendered,
    }


# --- Reading a single page ---

MAX_REDIRECTS = 5  # redirects


@dataclass(frozen=True, slots=True)
class WebPage(Value):
    """A page's main text as Markdown; ``url`` is the address after redirects."""

    url: str
    title: str
    text: str
    media_type: str


async def read_page(site: Site, url: str) -> WebPage:
    """Return the page at an address if robots.txt allows it.

    Raises:
        CrawlRefused: It may not be fetched, or does not respond.
        UnreadableDocument: Its format is not supported.
    """
    from workbench.ingestion.readers.formats import read_bytes

    for _ in range(MAX_REDIRECTS + 1):
        refusal = await site.refusal_after_asking(url)
        if refusal is not None:
            raise CrawlRefused(f"{url} may not be fetched. {refusal.reason}")
        try:
            fetched, page = await site.page(url, {})
        except FetchFailed as error:
            raise CrawlRefused(f"Failed to fetch {url}. {error.reason}") from error
        target = None if page is None else page.redirect
        if page is not None and target in (None, url):
            document = read_bytes(page.body, page.name)
            return WebPage(url, page.title or document.title, document.text, fetched.media_type)
        if fetched.status in REDIRECT_STATUSES:
            target = canonicalize(fetched.headers.get("location", ""), url, keeps_sessions=True)
        if target is None:
            raise CrawlRefused(f"Failed to fetch {url}. It answered {fetched.status}.")
        url = target
    raise CrawlRefused(f"Failed to fetch {url}. It redirects more than {MAX_REDIRECTS} times.")
