"""One visit to one address: from the frontier's entry to the answer that is kept, whatever the site does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from workbench.crawling.blocks import block_hashes
from workbench.crawling.extraction import Page
from workbench.crawling.fetched import GONE, REDIRECTS, Fetched, FetchFailed
from workbench.crawling.frontier import Entry
from workbench.crawling.options import CrawlOptions
from workbench.crawling.site import Site
from workbench.crawling.urls import canonical
from workbench.errors import CrawlRefused, UnreadableDocument
from workbench.storage.crawls import Answer, Remembered

NOINDEX = "The page asks not to be indexed."


class TryAgain(Exception):
    """The visit failed in a way that may pass; ``wait`` seconds before the next."""

    def __init__(self, reason: str, wait: float) -> None:
        super().__init__(reason)
        self.reason, self.wait = reason, wait


async def visit(site: Site, entry: Entry, known: Remembered | None, options: CrawlOptions) -> Answer:
    """Fetch and read one page.

    ``known`` is what an earlier crawl knows of it: its validators are sent along, and a 304 costs nothing more.

    Raises:
        TryAgain: it failed, and tries are left.
    """
    usable = known if known is not None and not entry.metadata.get("afresh") and _can_stand(known) else None
    if usable is not None and entry.lastmod and entry.lastmod == usable.lastmod and usable.indexed:
        return _remembered(entry, usable, 0.0, None, "the sitemap gives the same date as before")
    attempts = entry.attempts + 1
    refused = (await site.robots(entry.url)).refuses(entry.url)
    if refused:
        return Answer("done", "forbidden", refused, attempts)
    try:
        fetched, page = await site.page(entry.url, _validators(usable))
    except CrawlRefused as error:
        return Answer("done", "forbidden", str(error), attempts)
    except UnreadableDocument as error:
        return Answer("done", "failed", str(error), attempts)
    except FetchFailed as error:
        if error.retry and attempts <= options.retries:
            raise TryAgain(error.reason, error.retry_after or options.backoff * 2 ** (attempts - 1)) from error
        tries = f" ({attempts} tries)" if attempts > 1 else ""
        return Answer("done", "failed", error.reason + tries, attempts, error.status)
    if fetched.status == 304 and usable is not None:
        return _remembered(entry, usable, fetched.seconds, 304, None, attempts)
    answer = _without_page(fetched, entry) if page is None else _with_page(fetched, page, entry, options)
    return replace(answer, attempts=attempts, status_code=fetched.status, seconds=round(fetched.seconds, 4))


def _can_stand(known: Remembered) -> bool:
    """Whether a 304 would do: the document is there, or the page only repeated others."""
    return known.indexed or known.outcome == "duplicate"


def _validators(known: Remembered | None) -> Mapping[str, str]:
    found = {}
    if known is not None and known.etag:
        found["If-None-Match"] = known.etag
    if known is not None and known.last_modified:
        found["If-Modified-Since"] = known.last_modified
    return found


def _remembered(
    entry: Entry, known: Remembered, seconds: float, status: int | None, reason: str | None, attempts: int = 1
) -> Answer:
    return Answer(
        "fetched",
        reason=reason,
        attempts=attempts,
        status_code=status,
        final_url=entry.url,
        document_key=known.document_key,
        document_id=known.document_id,
        title=known.title,
        media_type=known.media_type,
        etag=known.etag,
        last_modified=known.last_modified,
        content_hash=known.content_hash,
        links=tuple(known.links),
        blocks=tuple(known.blocks),
        metadata=dict(known.metadata),
        size=known.size,
        rendered=known.rendered,
        seconds=seconds,
    )


def _without_page(fetched: Fetched, entry: Entry) -> Answer:
    if fetched.status in REDIRECTS:
        target = canonical(fetched.headers.get("location", ""), entry.url)
        if target is None:
            where = fetched.headers.get("location", "nowhere")[:200]
            return Answer("done", "failed", f"It redirects to {where!r}, which is no web page.")
        if target != entry.url:
            return Answer("done", "redirected", f"to {target}", final_url=target, links=(target,))
        return Answer("done", "failed", "It redirects to itself.")
    reason = f"It answered {fetched.status}."
    return Answer("done", "removed" if fetched.status in GONE else "failed", reason)


def _with_page(fetched: Fetched, page: Page, entry: Entry, options: CrawlOptions) -> Answer:
    links = page.links if page.follow and options.recursive else ()
    if not page.body.strip():
        hint = "without JavaScript it is empty" if page.needs_script else "There is no text on it"
        return Answer("done", "failed", f"{hint[0].upper()}{hint[1:]}.", links=links)
    metadata = dict(page.metadata) | ({} if page.is_html else {"file_name": page.name})
    text = page.body.decode("utf-8", "replace") if page.name.endswith((".md", ".txt", ".markdown")) else ""
    final = canonical(fetched.url) or entry.url
    wanted = page.index
    return Answer(
        "fetched" if wanted else "done",
        None if wanted else "forbidden",
        None if wanted else NOINDEX,
        final_url=final,
        document_key=_key(page, entry.url),
        title=page.title[:500] or None,
        media_type=fetched.media_type or None,
        etag=fetched.headers.get("etag"),
        last_modified=fetched.headers.get("last-modified"),
        content_hash=page.content_hash,
        links=links,
        blocks=block_hashes(text),
        metadata=metadata,
        body=page.body if wanted else None,
        size=len(page.body),
        rendered=fetched.rendered,
    )


def _key(page: Page, url: str) -> str:
    """The address a document is known by: the page's own, or the canonical one it names where that is the same path.

    A canonical address elsewhere is not believed: sites that give their front page for every page are many, and
    a true copy is recognised by its text anyway.
    """
    given = page.canonical_url
    if given is None:
        return url
    ours, theirs = urlsplit(url), urlsplit(given)
    same = ours.netloc == theirs.netloc and _bare(ours.path) == _bare(theirs.path)
    return given if same else url


def _bare(path: str) -> str:
    return path.removesuffix("/").removesuffix("/index.html").removesuffix(".html")


def line_of(entry: Entry, answer: Answer) -> str:
    """Return the line of the job's log that tells of a visit."""
    what = answer.outcome or ("unchanged" if answer.body is None else "fetched")
    status = f"{answer.status_code} " if answer.status_code else ""
    how = ", rendered" if answer.rendered else ""
    reason = f": {answer.reason}" if answer.reason else ""
    return f"{status}{what}{how} {entry.url} ({answer.size / 1000:.1f} kB, {answer.seconds:.2f} s){reason}"
