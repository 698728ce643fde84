"""What a crawl would do, without storing anything: a few pages are fetched, the rest is what they lead to."""

from __future__ import annotations

from typing import Any

from workbench.crawling.fetched import FetchFailed
from workbench.crawling.frontier import Entry, Frontier
from workbench.crawling.options import CrawlOptions
from workbench.crawling.scope import CrawlScope, scope_of
from workbench.crawling.site import Site
from workbench.crawling.urls import host_of
from workbench.crawling.visiting import TryAgain, visit
from workbench.errors import CrawlRefused
from workbench.storage.crawls import Answer

LOOKED_AT = 12  # pages fetched at most: enough for samples and an estimate
SAMPLE_CHARACTERS = 2_000
SHOWN = 500  # addresses of each list


async def dry_run(site: Site, url: str, options: CrawlOptions, samples: int) -> dict[str, Any]:
    """Walk the first pages and report.

    Raises:
        CrawlRefused: the start page cannot be fetched; the sentence says why.
    """
    frontier = Frontier(options, [Entry(0, url, 0, "start")])
    reasons: dict[str, str] = {}
    seen: list[tuple[Entry, Answer]] = []
    scope: CrawlScope | None = None
    for entry in _first(frontier):
        answer = await _visited(site, entry, options)
        entry.state, entry.outcome, entry.expanded = answer.state, answer.outcome, True
        seen.append((entry, answer))
        if entry.outcome == "redirected" and scope is None:
            await site.robots(answer.links[0])
            reasons |= _refused(frontier.admit_target(answer.links[0], entry, site.refusal))
            continue
        if scope is None and answer.outcome == "failed":
            raise CrawlRefused(f"The start page cannot be fetched. {answer.reason}")
        if scope is None and answer.outcome == "forbidden" and not answer.links:
            raise CrawlRefused(f"The start page may not be fetched. {answer.reason}")
        links: list[tuple[str, str, str | None]] = [(link, "link", None) for link in answer.links]
        if scope is None:
            scope = scope_of(entry.url, options.within)
            if options.recursive and options.sitemaps:
                links += [(found.url, found.via, found.lastmod) for found in await site.listed(entry.url)]
        for address in {host_of(link[0]): link[0] for link in links if scope.contains(link[0])}.values():
            await site.robots(address)
        found = frontier.admit(links, depth=entry.depth + 1, parent=entry.url, scope=scope, robots=site.refusal)
        reasons |= _refused(found)
    return _report(url, frontier, seen, reasons, scope, options, samples, (await site.robots(url)).crawl_delay)


def _first(frontier: Frontier) -> Any:
    for _ in range(LOOKED_AT):
        entry = next(frontier.waiting(0.0), None)
        if entry is None:
            return
        yield entry


async def _visited(site: Site, entry: Entry, options: CrawlOptions) -> Answer:
    try:
        return await visit(site, entry, None, options)
    except (TryAgain, FetchFailed) as error:
        return Answer("done", "failed", error.reason)


def _refused(pages: Any) -> dict[str, str]:
    return {page.url: page.reason or "" for page in pages if page.outcome is not None}


def _report(
    url: str,
    frontier: Frontier,
    seen: list[tuple[Entry, Answer]],
    reasons: dict[str, str],
    scope: CrawlScope | None,
    options: CrawlOptions,
    samples: int,
    crawl_delay: float,
) -> dict[str, Any]:
    wanted = [entry for entry in frontier.entries if entry.outcome not in ("forbidden", "left_out", "redirected")]
    pages = [(entry, answer) for entry, answer in seen if answer.state == "fetched"]
    seconds = sum(answer.seconds for _, answer in pages) / len(pages) if pages else 0.0
    size = sum(answer.size for _, answer in pages) / len(pages) if pages else 0.0
    complete = not any(entry.state == "queued" for entry in frontier.entries)
    pace = max(crawl_delay, seconds / max(1, options.concurrency))
    return {
        "url": url,
        "scope": scope.to_dict() if scope else None,
        "pages_known": len(wanted),
        "complete": complete,
        "would_fetch": [{"url": entry.url, "via": entry.via, "depth": entry.depth} for entry in wanted[:SHOWN]],
        "would_not_fetch": [{"url": address, "reason": reason} for address, reason in list(reasons.items())[:SHOWN]],
        "failed": [{"url": e.url, "reason": a.reason} for e, a in seen if a.outcome == "failed"],
        "samples": [_sample(entry, answer) for entry, answer in pages[:samples]],
        "estimate": {
            "pages": len(wanted),
            "at_least": not complete,
            "seconds": round(len(wanted) * pace, 1),
            "text_bytes": round(len(wanted) * size),
            "passages": round(len(wanted) * size / 800),  # a passage holds about 800 bytes of text
        },
    }


def _sample(entry: Entry, answer: Answer) -> dict[str, Any]:
    text = (answer.body or b"").decode("utf-8", "replace") if not answer.metadata.get("file_name") else ""
    return {
        "url": entry.url,
        "title": answer.title,
        "text": text[:SAMPLE_CHARACTERS],
        "characters": len(text),
        "links": len(answer.links),
        "metadata": dict(answer.metadata),
        "rendered": answer.rendered,
    }
