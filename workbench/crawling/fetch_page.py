"""Visit single pages and store the fetched ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, time, timedelta
from urllib.parse import urlsplit

from workbench.crawling.extraction import NOFOLLOW_REASON, Page, hash_blocks, strip_boilerplate
from workbench.crawling.frontier import Entry
from workbench.crawling.http import GONE_STATUSES, REDIRECT_STATUSES, FetchFailed, Response
from workbench.crawling.options import CrawlOptions
from workbench.crawling.site import Site
from workbench.crawling.urls import canonicalize
from workbench.errors import CrawlRefused, UnreadableDocument
from workbench.formatting import MB, size_text
from workbench.ingestion.incoming import IngestItem
from workbench.ingestion.readers.formats import is_prose
from workbench.storage.crawls import Crawls, PageBody, PageMemory, PageReply
from workbench.storage.database import Connection
from workbench.storage.documents import NewDocument
from workbench.types import IngestReport, ShouldStop

# --- Storing fetched pages ---

Ingest = Callable[..., IngestReport]  # called with (source id, items, should_stop=, after_write=)
MAX_BATCH_PAGES, MAX_BATCH_BYTES = 64, MB  # limits of pages stored together: pages, and bytes of text before the last
MAX_METADATA_LINKS = 200  # outgoing links kept in a document's metadata
SKIPPED_LINKS = "skipped_links"  # metadata of a page, not of its document: links not followed, with the reason


class PageWriter:
    """Writes the pages of one crawl; a document and the outcome of its page are stored in one transaction.

    Sentences on what the pages lose are in ``notes`` and in the job's log.
    """

    def __init__(
        self, crawls: Crawls, job_id: str, source_id: str, index: str, ingest: Ingest, log: Callable[[str, str], None]
    ) -> None:
        self._crawls, self._job_id, self._source_id, self._index = crawls, job_id, source_id, index
        self._ingest, self._log = ingest, log
        self.notes: list[str] = []

    def store(self, positions: Sequence[int], boilerplate: frozenset[int], should_stop: ShouldStop) -> dict[int, str]:
        """Store pages; return {position: outcome}.

        Raises:
            Cancelled: ``should_stop`` returned true. Pages written before are kept.
        """
        bodies = self._crawls.bodies(self._job_id, positions)
        by_key = {body.document_key: body for body in bodies}
        written: dict[int, str] = {}

        def after_write(connection: Connection, document_id: str, document: NewDocument) -> None:
            position = by_key[document.key].position
            self._crawls.record_stored(connection, self._job_id, position, document_id, self._index)
            written[position] = "stored"

        items = [_make_item(body, boilerplate) for body in bodies]
        report = self._ingest(self._source_id, items, should_stop=should_stop, after_write=after_write)
        for note in report.notes:
            self._log(note, "warning")
        self.notes += report.notes
        for failure in report.failures:
            position = by_key[failure.path].position
            self._crawls.settle(self._job_id, position, "failed", failure.error)
            written[position] = "failed"
        for body in bodies:
            if body.position not in written:
                self._crawls.record_unchanged(self._job_id, body.position)
                written[body.position] = "unchanged"
        return written


def group_pages(pages: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield groups of positions to store together, given pages as (position, bytes of text)."""
    group: list[int] = []
    room = MAX_BATCH_BYTES
    for position, size in pages:
        group.append(position)
        room -= size
        if room <= 0 or len(group) == MAX_BATCH_PAGES:
            yield group
            group, room = [], MAX_BATCH_BYTES
    if group:
        yield group


def _make_item(page: PageBody, boilerplate: frozenset[int]) -> IngestItem:
    name = str(page.metadata.get("file_name") or "page.md")
    is_page = name == "page.md"
    body = bytes(page.body or b"")
    if is_page:
        body = strip_boilerplate(body.decode("utf-8"), boilerplate).encode("utf-8")
    metadata = {key: value for key, value in page.metadata.items() if key not in ("file_name", SKIPPED_LINKS)}
    links = [link for link in page.links if link != page.document_key]
    metadata |= {
        "canonical_url": page.document_key,
        "crawl_depth": page.depth,
        "crawled_at": page.fetched_at.isoformat() if page.fetched_at else None,
        "links_found": len(links),
        "links": links[:MAX_METADATA_LINKS],
    }
    return IngestItem(
        key=page.document_key,
        name=name,
        load=lambda: body,
        url=page.document_key,
        path=None,
        title=page.title or None,
        metadata=metadata,
        document_type="html" if is_page else None,
    )


NOINDEX_REASON = "The page asks not to be indexed."
LOGIN_REASON = "It is a login page."
FIRST_YEAR = 1991  # of the Web


class TryAgain(Exception):
    """The visit failed temporarily; retry after ``wait`` seconds."""

    def __init__(self, reason: str, wait: float) -> None:
        super().__init__(reason)
        self.reason, self.wait = reason, wait


async def visit_page(site: Site, entry: Entry, memory: PageMemory | None, options: CrawlOptions) -> PageReply:
    """Fetch and read one page.

    Args:
        site: Access to the network.
        entry: The page.
        memory: What an earlier crawl stored. Its validators are sent, so that the server answers 304 if the page is
            unchanged.
        options: Options of the crawl.

    Raises:
        TryAgain: The visit failed and retries are left.
    """
    if excluded := options.excludes(entry.url):  # the start page or its redirect; others are not queued
        return PageReply("done", "left_out", excluded, entry.attempts)
    is_afresh = options.refresh or bool(entry.metadata.get("afresh"))
    # A 304 is sufficient if the document exists or the page was a duplicate.
    knows_page = memory is not None and (memory.indexed or memory.outcome == "duplicate")
    usable = memory if knows_page and not is_afresh else None
    attempts = entry.attempts + 1
    refusal = await site.refusal_after_asking(entry.url)
    if refusal is not None:
        return PageReply("done", refusal.outcome, refusal.reason, attempts)
    if usable is not None and usable.indexed and is_unchanged_by_sitemap(entry.lastmod, usable):
        return _reply_from_memory(
            entry, usable, 0.0, None, "not modified since the last crawl, according to the sitemap"
        )
    try:
        fetched, page = await site.page(entry.url, _validators(usable))
    except CrawlRefused as error:
        return PageReply("done", "not_allowed", str(error), attempts)
    except UnreadableDocument as error:
        return PageReply("done", "failed", str(error), attempts)
    except FetchFailed as error:
        if error.retry and attempts <= options.retries:
            raise TryAgain(error.reason, error.retry_after or options.backoff * 2 ** (attempts - 1)) from error
        tries = f" ({attempts} tries)" if attempts > 1 else ""
        return PageReply("done", "failed", error.reason + tries, attempts, error.status)
    if fetched.status == 304 and usable is not None:
        return _reply_from_memory(entry, usable, fetched.seconds, 304, None, attempts)
    if page is not None and page.needs_script and not fetched.rendered and memory is not None and memory.rendered:
        answer = PageReply("done", "failed", "It needs a browser, as in the last crawl, but was fetched without one.")
    elif page is not None:
        answer = _reply_with_page(fetched, page, entry, memory, options)
    elif fetched.status in REDIRECT_STATUSES:
        location = fetched.headers.get("location", "").strip()
        target = canonicalize(location, entry.url, keeps_sessions=True) if location else None
        answer = _reply_to_redirect(target, location, entry)
    else:
        outcome = "removed" if fetched.status in GONE_STATUSES else "failed"
        answer = PageReply("done", outcome, f"It answered {fetched.status}.")
    return replace(answer, attempts=attempts, status_code=fetched.status, seconds=round(fetched.seconds, 4))


def is_unchanged_by_sitemap(lastmod: str | None, memory: PageMemory) -> bool:
    """Return whether a sitemap's date is the same as before and earlier than the last visit.

    A day, also written as its midnight, counts as over once it has ended, and a time a minute later, because some sites
    omit seconds. Without a time zone, both count as over once they are over everywhere on Earth (twelve hours after
    UTC). Before that, the page may have changed after the visit. A date before the Web existed is a placeholder.
    """
    if not lastmod or lastmod != memory.lastmod or memory.fetched_at is None:
        return False
    try:
        moment = datetime.fromisoformat(lastmod)
    except ValueError:
        return False
    room = timedelta(days=1) if moment.time() == time() else timedelta(minutes=1)
    if moment.tzinfo is None:
        room += timedelta(hours=12)
        moment = moment.replace(tzinfo=UTC)
    return moment.year >= FIRST_YEAR and moment < memory.fetched_at - room


def _validators(memory: PageMemory | None) -> dict[str, str]:
    if memory is None:
        return {}
    known = {"If-None-Match": memory.etag, "If-Modified-Since": memory.last_modified}
    return {name: value for name, value in known.items() if value and value.isascii()}


def _reply_from_memory(
    entry: Entry, memory: PageMemory, seconds: float, status: int | None, reason: str | None, attempts: int = 1
) -> PageReply:
    known = {item.name: getattr(memory, item.name) for item in fields(PageReply) if hasattr(memory, item.name)}
    known |= {"outcome": None, "reason": reason, "attempts": attempts, "status_code": status, "seconds": seconds}
    return PageReply("fetched", final_url=entry.url, **known)


def _reply_to_redirect(target: str | None, where: str, entry: Entry) -> PageReply:
    if target is None:
        return PageReply("done", "failed", f"It redirects to {where[:200] or 'nowhere'!r}, which is not a web page.")
    if target == entry.url:
        return PageReply("done", "failed", "It redirects to itself.")
    return PageReply("done", "redirected", f"to {target}", final_url=target, links=(target,))


def _reply_with_page(
    fetched: Response, page: Page, entry: Entry, memory: PageMemory | None, options: CrawlOptions
) -> PageReply:
    if page.redirect is not None and page.redirect != entry.url:
        return _reply_to_redirect(page.redirect, page.redirect, entry)
    links = page.links if page.follow and options.recursive else ()
    skipped = dict(page.skipped) | ({} if page.follow else dict.fromkeys(page.links, NOFOLLOW_REASON))
    extra: dict[str, object] = {SKIPPED_LINKS: skipped} if skipped and options.recursive else {}
    if not page.body.strip():
        hint = "it is empty without JavaScript" if page.needs_script else "it has no text"
        return PageReply("done", "failed", f"{hint[0].upper()}{hint[1:]}.", links=links, metadata=extra)
    if page.asks_login:
        is_expected = entry.via == "start" or (memory is not None and memory.document_id is not None)
        outcome = "failed" if is_expected else "left_out"  # most sites link to their login
        return PageReply("done", outcome, LOGIN_REASON, links=links, metadata=extra)
    metadata = dict(page.metadata) | extra | ({} if page.is_html else {"file_name": page.name})
    text = page.body.decode("utf-8", "replace") if is_prose(page.name) else ""
    final = canonicalize(fetched.url) or entry.url
    wanted = page.index
    return PageReply(
        "fetched" if wanted else "done",
        None if wanted else "forbidden",
        None if wanted else NOINDEX_REASON,
        final_url=final,
        document_key=_document_key(page, entry.url),
        title=page.title[:500] or None,
        media_type=fetched.media_type or None,
        etag=fetched.headers.get("etag"),
        last_modified=fetched.headers.get("last-modified"),
        content_hash=page.content_hash,
        links=links,
        blocks=hash_blocks(text),
        metadata=metadata,
        body=page.body if wanted else None,
        size=len(page.body),
        rendered=fetched.rendered,
    )


def _document_key(page: Page, url: str) -> str:
    """Return the address that identifies a document: the page's, or its canonical one with the same path.

    Other canonical addresses are ignored: many sites name their front page on every page, and real duplicates are
    recognised by their text. An address without the query is a claim that ``Crawl`` checks.
    """
    canonical_url = page.canonical_url
    if canonical_url is None:
        return url
    ours, theirs = urlsplit(url), urlsplit(canonical_url)
    same = ours.netloc == theirs.netloc and _bare_path(ours.path) == _bare_path(theirs.path)
    return canonical_url if same else url


def _bare_path(path: str) -> str:
    return path.removesuffix("/").removesuffix("/index.html").removesuffix(".html")


def format_log_line(entry: Entry, answer: PageReply) -> str:
    """Return the log line for a visit."""
    what = answer.outcome or ("unchanged" if answer.body is None else "fetched")
    status = f"{answer.status_code} " if answer.status_code else ""
    how = ", rendered" if answer.rendered else ""
    reason = f": {answer.reason}" if answer.reason else ""
    return f"{status}{what}{how} {entry.url} ({size_text(answer.size)}, {answer.seconds:.2f} s){reason}"
