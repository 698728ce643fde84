"""The frontier: the pages of a crawl in order, and which are next. It uses neither network nor database.

The order is breadth-first, as if pages were fetched one by one: a page's links are admitted only after the links of all
earlier pages. So an interrupted crawl has the same result, and ``max_pages`` always cuts at the same page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from workbench.crawling.http import Refusal
from workbench.crawling.options import UNFETCHED_OUTCOMES, CrawlOptions
from workbench.crawling.urls import CrawlBounds, FoundAddress, file_suffix
from workbench.storage.crawls import NewPage

MAX_QUERY_VARIANTS = 200  # addresses that differ only in their query; calendars and sort orders are endless
MAX_FOLDER_REPEATS = 3  # occurrences of a folder in one path; /a/b/a/b/a/b is a loop of relative links
MAX_PATH_SEGMENTS = 25
MAX_STORED_REFUSALS = 5_000  # addresses stored with the reason why they are not fetched
DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class Entry:
    """A page in the frontier, as stored in the database."""

    position: int
    url: str
    depth: int
    via: str = "link"
    lastmod: str | None = None
    state: str = "queued"
    outcome: str | None = None
    expanded: bool = False
    attempts: int = 0
    content_hash: str | None = None
    document_key: str | None = None
    size: int = 0
    has_body: bool = False
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    links: Sequence[str] = ()
    not_before: float = 0.0  # on this process's monotonic clock
    in_flight: bool = False


class Frontier:
    """All pages of one crawl by position and by address."""

    def __init__(self, options: CrawlOptions, entries: Iterable[Entry] = ()) -> None:
        self.entries: list[Entry] = list(entries)
        self._options = options
        self._by_url = {entry.url: entry for entry in self.entries}
        self._first_unexpanded = 0
        self._first_queued = 0
        admitted = [entry for entry in self.entries if entry.outcome not in UNFETCHED_OUTCOMES]
        self._noted = len(self.entries) - len(admitted)
        self._queries = Counter(_strip_query(entry.url) for entry in admitted)
        redirects = sum(entry.outcome == "redirected" and entry.expanded for entry in admitted)
        self._redirects = min(redirects, options.max_pages)
        self._admitted = len(admitted) - self._redirects

    def __contains__(self, url: str) -> bool:
        return url in self._by_url

    def get(self, url: str) -> Entry | None:
        """Return a page by its address, or None."""
        return self._by_url.get(url)

    def waiting(self, now: float) -> Iterator[Entry]:
        """Yield the pages to fetch next, in order; ``now`` is the monotonic clock."""
        self._skip_fetched()
        for position in range(self._first_queued, len(self.entries)):
            entry = self.entries[position]
            if entry.state == "queued" and not entry.in_flight and entry.not_before <= now:
                yield entry

    def next_to_expand(self) -> Entry | None:
        """Return the first page whose links have not been admitted, if it has been fetched; else None."""
        while self._first_unexpanded < len(self.entries) and self.entries[self._first_unexpanded].expanded:
            self._first_unexpanded += 1
        if self._first_unexpanded == len(self.entries):
            return None
        entry = self.entries[self._first_unexpanded]
        return entry if entry.state != "queued" else None

    @property
    def is_exhausted(self) -> bool:
        """True if every page has been fetched and all links have been admitted."""
        self._skip_fetched()
        self.next_to_expand()
        return self._first_queued == self._first_unexpanded == len(self.entries)

    def _skip_fetched(self) -> None:
        while self._first_queued < len(self.entries) and self.entries[self._first_queued].state != "queued":
            self._first_queued += 1

    def reopen(self, entry: Entry) -> None:
        """Queue a page again."""
        entry.state, entry.outcome, entry.attempts, entry.in_flight = "queued", None, 0, False
        self._first_queued = min(self._first_queued, entry.position)

    def discount_redirect(self) -> None:
        """Do not count a page that only redirects, up to a limit, so that redirect chains end."""
        if self._redirects < self._options.max_pages:
            self._redirects += 1
            self._admitted -= 1

    def admit(
        self,
        addresses: Iterable[FoundAddress],
        *,
        depth: int,
        parent: str | None,
        bounds: CrawlBounds,
        refusal: Callable[[str], Refusal | None],
    ) -> list[NewPage]:
        """Admit new addresses in order; those not to be fetched are stored with the reason.

        Addresses out of bounds are not stored, and at most ``MAX_STORED_REFUSALS`` others are; ``skip_reason`` explains
        them.
        """
        pages: list[NewPage] = []
        for found in addresses:
            if found.url in self._by_url or not bounds.contains(found.url):
                continue
            refused = self._judge(found.url, depth, refusal)
            if refused is not None:
                if self._noted >= MAX_STORED_REFUSALS:
                    continue
                self._noted += 1
            pages.append(self._add(found, depth, parent, refused))
        return pages

    def admit_target(self, url: str, entry: Entry, refusal: Callable[[str], Refusal | None]) -> list[NewPage]:
        """Admit the address that the start page redirects to, even if it is out of bounds."""
        if url in self._by_url:
            return []
        return [self._add(FoundAddress(url, "start"), entry.depth, entry.url, refusal(url))]

    def skip_reason(self, url: str, bounds: CrawlBounds) -> str:
        """Return why a found address is not among the entries."""
        if not bounds.contains(url):
            return f"outside {bounds.host}{bounds.prefix}"
        reason = self._exclusion_reason(url, 0)
        return reason or f"after the first {MAX_STORED_REFUSALS:,} addresses that were not fetched"

    def _judge(self, url: str, depth: int, refusal: Callable[[str], Refusal | None]) -> Refusal | None:
        if refused := refusal(url):
            return refused
        reason = self._exclusion_reason(url, depth)
        return Refusal("left_out", reason) if reason else None

    def _exclusion_reason(self, url: str, depth: int) -> str | None:
        """Return why the options or the limits of a crawl leave an address out, or None."""
        if reason := self._options.refuses(url):
            return reason
        if suffix := file_suffix(url):
            return f"a {suffix} file"
        if depth > self._options.max_depth:
            return f"deeper than {self._options.max_depth} links"
        if reason := _trap_reason(url):
            return reason
        if urlsplit(url).query and self._queries[_strip_query(url)] >= MAX_QUERY_VARIANTS:
            return f"more than {MAX_QUERY_VARIANTS} addresses differ only in their query"
        if self._admitted >= self._options.max_pages:
            return f"over the limit of {self._options.max_pages} pages"
        return None

    def _add(self, found: FoundAddress, depth: int, parent: str | None, refused: Refusal | None) -> NewPage:
        """Add an address; one that is ``refused`` will not be fetched."""
        url, via, lastmod = found
        outcome, reason = (refused.outcome, refused.reason) if refused else (None, None)
        page = NewPage(len(self.entries), url, depth, parent, via, lastmod, outcome, reason)
        state = "done" if refused else "queued"
        entry = Entry(page.position, url, depth, via, lastmod, state, outcome, expanded=refused is not None)
        self.entries.append(entry)
        self._by_url[url] = entry
        if refused is None:
            self._admitted += 1
            self._queries[_strip_query(url)] += 1
        return page


def _strip_query(url: str) -> str:
    return url.split("?", 1)[0]


def _trap_reason(url: str) -> str | None:
    segments = [segment for segment in urlsplit(url).path.split("/") if segment]
    if len(segments) > MAX_PATH_SEGMENTS:
        return f"more than {MAX_PATH_SEGMENTS} folders deep"
    repeated = [
        name for name, count in Counter(segments).items() if count > MAX_FOLDER_REPEATS and not DIGITS.fullmatch(name)
    ]
    return f"the folder {repeated[0]!r} repeats in its path" if repeated else None
