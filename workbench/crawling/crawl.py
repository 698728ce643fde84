"""A crawl, from its start or from where a stopped worker left off. Each step is stored before the next."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import takewhile

from workbench.crawling.extraction import SAMPLE_PAGES, find_boilerplate, hash_shape, shape_words, strip_boilerplate
from workbench.crawling.fetch_page import PageWriter, TryAgain, format_log_line, group_pages, visit_page
from workbench.crawling.frontier import Entry, Frontier
from workbench.crawling.http import Refusal
from workbench.crawling.options import UNFETCHED_OUTCOMES, CrawlOptions, describe_held_removals, describe_progress
from workbench.crawling.site import PARTIAL_SITEMAP_REASON, SURPLUS_SITEMAP_REASON, UNREADABLE_SITEMAP_REASON, Site
from workbench.crawling.urls import FoundAddress, make_bounds, parse_bounds
from workbench.errors import Cancelled, WorkbenchError
from workbench.storage.crawls import Crawls, NewPage, PageBody, PageMemory, PageReply
from workbench.types import OnProgress, Progress, ShouldStop, mark_slow_step

# --- Duplicate pages and collections of other pages ---

NEAR_DUPLICATE_SHARE = 0.9  # share of a page's paragraphs and short lines in its copy, which has no others
MIN_BLOCKS = 5  # paragraphs; pages with fewer are duplicates only if equal
MIN_CONTAINED_SHARE = 0.8  # share of a page's paragraphs in a larger page to count as contained in it
MAX_COVER_SHARE = 0.05  # share of a collection's paragraphs that may be its cover, before those of other pages
MIN_CONTAINED_PAGES = 3
BOILERPLATE_SHARE = 0.5  # share of pages above which a paragraph is boilerplate


@dataclass(frozen=True, slots=True)
class PageBlocks:
    """A page's address and the hashes of its paragraphs."""

    url: str
    blocks: tuple[int, ...]


def find_repeats(pages: Sequence[PageBlocks]) -> dict[str, str]:
    """Return {address: reason} of pages that only repeat others, given pages in crawl order.

    Of two nearly equal pages, the later one is a duplicate if all of its text is in the earlier one, in the same order.
    Pages that differ in a line, such as two data sheets, are both kept. A collection (such as a print page with a whole
    book) is dropped if at least three other pages together contain everything after its cover and table of contents.
    """
    reasons: dict[str, str] = {}
    holders: dict[int, list[int]] = defaultdict(list)
    for place, page in enumerate(pages):
        for block in dict.fromkeys(page.blocks):
            holders[block].append(place)
    texts = [page.blocks for page in pages]
    everywhere = {block for block, places in holders.items() if len(places) > max(3, BOILERPLATE_SHARE * len(pages))}
    pages = [
        PageBlocks(page.url, tuple(b for b in dict.fromkeys(page.blocks) if b not in everywhere)) for page in pages
    ]
    for place, page in enumerate(pages):
        if len(page.blocks) >= MIN_BLOCKS:
            shared: dict[int, list[int]] = defaultdict(list)  # blocks shared with each other page
            for block in page.blocks:
                for other in holders[block]:
                    if other != place:
                        shared[other].append(block)
            reason = _collection_reason(page, shared, pages, reasons)
            for other in sorted(shared) if not reason else ():
                rest = iter(texts[other])
                if (
                    other < place
                    and pages[other].url not in reasons
                    and len(shared[other]) == len(page.blocks) >= NEAR_DUPLICATE_SHARE * len(pages[other].blocks)
                    and all(block in rest for block in texts[place])  # in the same order
                ):
                    reason = f"nearly the same text as {pages[other].url}"
                    break
            if reason:
                reasons[page.url] = reason
    return reasons


def _collection_reason(
    page: PageBlocks, shared: Mapping[int, Sequence[int]], pages: Sequence[PageBlocks], gone: Mapping[str, str]
) -> str:
    contained = [
        other
        for other, common in shared.items()
        if pages[other].url not in gone
        and len(pages[other].blocks) < len(page.blocks) / 2
        and len(common) >= MIN_CONTAINED_SHARE * len(pages[other].blocks)
    ]
    covered = {block for other in contained for block in shared[other]}
    cover = len(list(takewhile(lambda block: block not in covered, page.blocks)))
    is_covered = len(covered) == len(page.blocks) - cover and cover <= MAX_COVER_SHARE * len(page.blocks)
    if len(contained) >= MIN_CONTAINED_PAGES and is_covered:
        return f"repeats {len(contained)} other pages"
    return ""


STORE_CHECK_INTERVAL_S = 0.25  # seconds between checks for pages to store
POLL_INTERVAL_S = 0.1  # seconds between checks for other work
MIN_COLLECTION_BYTES = 60_000  # bytes of text; a larger page may be a collection, so it is stored last
STORE_BATCH_PAGES = 16  # pages waiting before storing starts
MAX_START_REDIRECTS = 10  # redirects followed from the start page, also out of bounds
MAX_REMOVED_SHARE = 0.2  # share of a source's documents that a crawl may remove without confirmation
MIN_KEPT_TEXT_SHARE = 0.2  # share of a page's text that must be left for it to replace its document
MAX_SAMPLED_STAND_INS = 200  # pages with one new title from which their common words are taken
COMPARED_OUTCOMES = ("added", "changed", "unchanged", "stored", None)  # outcomes of pages that are compared
LOST_OUTCOMES = ("removed", "gone", "held", "forbidden")  # of pages without a text
OUTCOMES_WITHOUT_ADDRESS = ("duplicate", "redirected", *LOST_OUTCOMES)  # of pages that claim no address
STORED_OUTCOMES = ("added", "changed", "stored")
HELD_NOTE = "Its document is kept until the removal is accepted."
ACCEPT_NOTE = "If this is intended, crawl again and accept removals."


class Crawl:
    """A crawl that fetches in parallel, admits links in order and stores in the background. One instance per run."""

    def __init__(
        self,
        job_id: str,
        crawls: Crawls,
        site: Site,
        storing: PageWriter,
        memory: dict[str, PageMemory],
        *,
        remove: Callable[[str, bool], None],
        should_stop: ShouldStop,
        on_progress: OnProgress,
        log: Callable[[str, str], None],
    ) -> None:
        """Args:
        memory: Data about pages from an earlier crawl, by address.
        remove: Called with (document id, keep); deletes a document, or marks it as gone if ``keep`` is true.
        log: Called with (line, level).
        """
        self._job_id, self._crawls, self._site, self._storing = job_id, crawls, site, storing
        self._memory, self._remove = memory, remove
        self._should_stop, self._on_progress, self._log = should_stop, on_progress, log
        self._plan = crawls.plan(job_id)
        self.options = CrawlOptions.read(self._plan.options)
        self.frontier = Frontier(self.options, (Entry(**row) for row in crawls.frontier(job_id)))
        self._bounds = parse_bounds(self._plan.scope) if self._plan.scope else None
        self._boilerplate = None if self._plan.boilerplate is None else frozenset(self._plan.boilerplate)
        self._hashes: dict[str, str] = {}
        self._visits: set[asyncio.Task[None]] = set()
        added = {entry.document_key for entry in self.frontier.entries if entry.outcome == "added"}
        self._known_keys = crawls.document_keys(self._plan.source_id) - added
        for entry in self.frontier.entries:
            if entry.expanded and entry.state != "queued" and entry.outcome in COMPARED_OUTCOMES:
                self._note_text(entry)

    async def run(self) -> None:
        """Crawl until nothing is left.

        Raises:
            Cancelled: ``should_stop`` returned true. All data is kept so that the crawl can be resumed.
        """
        try:
            while True:
                await self._fetch_all()
                if await self._remember_the_rest():
                    continue
                self._tell()
                await self._settle_repeats()
                await self._settle_keys()
                await self._refuse_stand_ins()
                await self._store(final=True)
                if not await self._refetch_unknown():
                    break
            await self._settle_removals()
            await self._count_skipped()
        finally:
            for task in self._visits:
                task.cancel()
            await asyncio.gather(*self._visits, return_exceptions=True)
            if self._site.browser_trouble:
                self._log(f"Some pages may need a browser: {self._site.browser_trouble}", "warning")

    # --- Fetching ---

    async def _fetch_all(self) -> None:
        storing: asyncio.Task[None] | None = None
        looked = 0.0
        try:
            while not self.frontier.is_exhausted or self._visits:
                if await asyncio.to_thread(self._should_stop):
                    raise Cancelled("Stopped. The crawl can be resumed.")
                while (entry := self.frontier.next_to_expand()) is not None:
                    await self._expand(entry)
                for entry in self.frontier.waiting(time.monotonic()):
                    if len(self._visits) >= self.options.concurrency:
                        break
                    entry.in_flight = True
                    self._visits.add(asyncio.create_task(self._visit(entry)))
                if storing is not None and storing.done():
                    storing.result()
                    storing = None
                if time.monotonic() - looked > STORE_CHECK_INTERVAL_S:
                    looked = time.monotonic()
                    self._tell()
                    if storing is None and len(self._storable()) >= STORE_BATCH_PAGES:
                        storing = asyncio.create_task(self._store(final=False))
                await self._wait()
        finally:
            if storing is not None:
                await storing

    async def _wait(self) -> None:
        with mark_slow_step():  # visits have timeouts, and requested pauses a limit
            if not self._visits:
                await asyncio.sleep(POLL_INTERVAL_S / 4)
                return
            done, self._visits = await asyncio.wait(
                self._visits, timeout=POLL_INTERVAL_S, return_when=asyncio.FIRST_COMPLETED
            )
        for task in done:
            task.result()

    async def _visit(self, entry: Entry) -> None:
        try:
            answer = await self._answer(entry)
        except TryAgain as again:
            entry.attempts += 1
            entry.not_before = time.monotonic() + again.wait
            await asyncio.to_thread(
                self._crawls.record_attempt, self._job_id, entry.position, entry.attempts, again.reason
            )
            self._log(f"{entry.url}: {again.reason} Trying again in {again.wait:.1f} s.", "warning")
        else:
            if answer.outcome in ("removed", "forbidden"):
                answer = await asyncio.to_thread(self._hold_removal, entry, answer)
            await asyncio.to_thread(
                self._crawls.record_reply, self._job_id, entry.position, answer, format_log_line(entry, answer)
            )
            for item in fields(Entry):
                if hasattr(answer, item.name):
                    setattr(entry, item.name, getattr(answer, item.name))
            entry.has_body = answer.body is not None
        finally:
            entry.in_flight = False

    async def _answer(self, entry: Entry) -> PageReply:
        """Visit a page. An unexpected error is recorded for this page and does not end the crawl."""
        try:
            return await visit_page(self._site, entry, self._memory.get(entry.url), self.options)
        except (TryAgain, WorkbenchError):
            raise
        except Exception as error:  # noqa: BLE001 - headers and charsets can cause any exception
            reason = f"Reading failed ({type(error).__name__}: {' '.join(str(error).split())[:160]})."
            return PageReply("done", "failed", reason, entry.attempts + 1)

    # --- Removal of documents ---

    def _hold_removal(self, entry: Entry, answer: PageReply) -> PageReply:
        """Hold the removal of a document whose page is gone or forbidden until all pages have been visited.

        Without a document, a missing page was a broken link.
        """
        if self._crawls.document(self._plan.source_id, self._document_key(entry)) is None:
            if entry.via == "guess":
                return replace(answer, outcome="left_out", reason="a file that the site need not have")
            return replace(answer, outcome="failed") if answer.outcome == "removed" else answer
        metadata = {"removal": answer.outcome, "accepted": bool(entry.metadata.get("accepted"))}
        return replace(answer, outcome="held", metadata=metadata)

    async def _settle_removals(self) -> None:
        """Carry out the held removals, unless there are too many to remove without confirmation."""
        pages = self.frontier.entries
        alive = {e.document_key or self._document_key(e) for e in pages if e.outcome not in LOST_OUTCOMES}
        held: list[Entry] = []
        for entry in pages:
            if entry.outcome == "held" and self._document_key(entry) in alive:  # its page has another address
                outcome = "failed" if entry.metadata.get("removal") == "removed" else "forbidden"
                await self._settle(entry, outcome, "Its document is kept because another address still has it.")
            elif entry.outcome == "held":
                held.append(entry)
        unasked = [e for e in held if not (e.metadata.get("accepted") or self._is_marked(e))]
        left = await asyncio.to_thread(self._crawls.count_documents, self._plan.source_id)
        removed = sum(entry.outcome == "removed" for entry in pages)
        too_many = len(unasked) + removed > MAX_REMOVED_SHARE * (left + removed) and not self.options.accept_removals
        for entry in held:
            if too_many and entry in unasked:
                await self._settle(entry, "held", HELD_NOTE)
            else:
                await self._remove_document(entry)
        await asyncio.to_thread(self._crawls.unmark_found, self._job_id)
        if too_many and unasked:
            self._log(describe_held_removals(len(unasked), left), "warning")

    async def _remove_document(self, entry: Entry) -> None:
        is_marked = self._is_marked(entry)
        document = await asyncio.to_thread(self._crawls.document, self._plan.source_id, self._document_key(entry))
        if document is not None:
            await asyncio.to_thread(self._remove, document, is_marked)
        if is_marked:
            await self._settle(entry, "gone", "Its document is kept and marked as gone.")
        else:
            await self._settle(entry, "removed", "Its document was removed.")

    async def _settle(self, entry: Entry, outcome: str, note: str) -> None:
        """Set the outcome of a page; ``note`` is added to its reason."""
        await asyncio.to_thread(self._crawls.settle_with_note, self._job_id, entry.position, outcome, note)
        entry.state, entry.outcome, entry.has_body = "done", outcome, False

    def _is_marked(self, entry: Entry) -> bool:
        """Return whether a missing page's document is kept and marked. A forbidden page's document is removed."""
        return self.options.gone == "keep" and entry.metadata.get("removal") == "removed"

    def _document_key(self, entry: Entry) -> str:
        """Return the address that identifies a document of an earlier crawl."""
        memory = self._memory.get(entry.url)
        return entry.url if memory is None or memory.outcome == "duplicate" else memory.document_key or entry.url

    def _has_document(self, entry: Entry) -> bool:
        """Return whether this page had a document before this crawl."""
        return self._document_key(entry) in self._known_keys

    # --- Admission of links, in order ---

    async def _expand(self, entry: Entry) -> None:
        seeded = None
        if entry.state == "fetched":
            await self._settle_if_same(entry)
        redirected = entry.outcome == "redirected"
        if self._bounds is None and redirected and entry.position < MAX_START_REDIRECTS:
            await self._site.robots(entry.links[0])
            pages = self.frontier.admit_target(entry.links[0], entry, self._refusal)
        else:
            links = [FoundAddress(url, "link") for url in entry.links]
            if self._bounds is None:
                self._bounds = make_bounds(entry.url, self.options.within)
                seeds: list[FoundAddress] = []
                if self.options.recursive and self.options.sitemaps:
                    listed, unread = await self._site.list_addresses(entry.url)
                    links += listed
                    seeds = [*listed, *(FoundAddress(address, reason) for address, reason in unread.items())]
                    if listed:
                        self._log(f"The site lists {len(listed)} addresses (sitemap, llms.txt).", "info")
                seeded = (self._bounds.to_dict(), seeds)
            pages = await self._admit(links, entry.depth + (not redirected), entry.url)
        await asyncio.to_thread(self._crawls.record_links, self._job_id, entry.position, pages, seeded=seeded)
        entry.expanded = True
        if redirected:
            self.frontier.discount_redirect()

    async def _admit(self, links: Sequence[FoundAddress], depth: int, parent: str | None) -> list[NewPage]:
        """Admit addresses after reading the robots.txt of each host that is within the crawl's limits."""
        assert self._bounds is not None
        inside = [link for link in links if self._bounds.contains(link.url) and link.url not in self.frontier]
        await self._site.read_all_robots(link.url for link in inside)
        return self.frontier.admit(inside, depth=depth, parent=parent, bounds=self._bounds, refusal=self._refusal)

    def _refusal(self, url: str) -> Refusal | None:
        """Return why an address is not fetched. A page with a document is visited anyway, to remove it."""
        refusal = self._site.refusal(url)
        is_known = refusal is not None and refusal.outcome == "forbidden" and url in self._memory
        return None if is_known else refusal

    async def _settle_if_same(self, entry: Entry) -> None:
        """Settle a page whose text was found before or has not changed.

        A page that has a document keeps it, even if another page now has the same text.
        """
        memory = self._memory.get(entry.url)
        has_document = self._has_document(entry)
        same = self._hashes.get(entry.content_hash or "")
        if same is not None and same != entry.url and not has_document:
            await self._settle_duplicate(entry, f"the same text as {same}")
            return
        self._note_text(entry)
        if not entry.has_body and memory is not None and memory.indexed and has_document:
            await asyncio.to_thread(self._crawls.record_unchanged, self._job_id, entry.position)
            entry.state, entry.outcome = "done", "unchanged"

    def _note_text(self, entry: Entry) -> None:
        if entry.content_hash:
            self._hashes.setdefault(entry.content_hash, entry.url)

    async def _settle_keys(self) -> None:
        """Give each page with a unique text an address of its own.

        The canonical address that a page names is only a claim. If the page at that address, or another page that
        claims it, has a different text, the claim is wrong and all of them are kept.
        """
        by_key: dict[str, list[Entry]] = {}
        for entry in self.frontier.entries:
            if entry.document_key and entry.outcome in COMPARED_OUTCOMES:
                if entry.state == "fetched" and self._has_document(entry):
                    await self._rekey(entry, self._document_key(entry))
                by_key.setdefault(entry.document_key, []).append(entry)
        for key, entries in by_key.items():
            owner = self.frontier.get(key)
            is_owned = owner.outcome not in OUTCOMES_WITHOUT_ADDRESS if owner else key in self._known_keys
            keepers = [e for e in entries if self._has_document(e) and self._document_key(e) == key]
            if is_owned:
                keepers = [owner] if owner else keepers
            elif len(entries) == 1:
                continue
            for entry in entries:
                if entry.state == "fetched" and entry not in keepers[:1]:
                    await self._rekey(entry, entry.url)

    async def _rekey(self, entry: Entry, key: str) -> None:
        if entry.document_key != key:
            await asyncio.to_thread(self._crawls.rekey, self._job_id, entry.position, key)
            entry.document_key = key

    async def _settle_duplicate(self, entry: Entry, reason: str) -> None:
        if entry.outcome in STORED_OUTCOMES:  # by this crawl, before it found the other page
            key = entry.document_key or entry.url
            document = await asyncio.to_thread(self._crawls.document, self._plan.source_id, key)
            if document is not None:
                await asyncio.to_thread(self._remove, document, False)
        await asyncio.to_thread(self._crawls.settle, self._job_id, entry.position, "duplicate", reason)
        entry.state, entry.outcome, entry.has_body = "done", "duplicate", False

    async def _remember_the_rest(self) -> bool:
        """Visit pages from an earlier crawl that are no longer linked; they may be gone."""
        if not self.options.recursive or self._bounds is None:
            return False
        rest = [FoundAddress(url, "memory") for url, memory in sorted(self._memory.items()) if memory.document_id]
        pages = await self._admit(rest, 0, None)
        await asyncio.to_thread(self._crawls.admit, self._job_id, pages)
        return any(page.outcome is None for page in pages)

    # --- Storing ---

    def _storable(self, final: bool = False) -> list[int]:
        """Return the positions of pages that can be stored now, in order. Large ones wait until the end."""
        ready = [e for e in self.frontier.entries if e.state == "fetched" and e.expanded and e.has_body]
        if self._boilerplate is None and not final and len(ready) < SAMPLE_PAGES:
            return []
        # Pages that replace a document or claim another address are stored at the end.
        return [
            e.position
            for e in ready
            if final or (e.size <= MIN_COLLECTION_BYTES and not self._has_document(e) and e.document_key == e.url)
        ]

    async def _store(self, final: bool) -> None:
        positions = self._storable(final)
        if self._boilerplate is None:
            sample = await asyncio.to_thread(self._crawls.bodies, self._job_id, positions[:SAMPLE_PAGES])
            texts = [bytes(page.body).decode("utf-8", "replace") for page in sample if page.body]
            self._boilerplate = await asyncio.to_thread(find_boilerplate, texts)
            await asyncio.to_thread(self._crawls.set_boilerplate, self._job_id, self._boilerplate)
            positions = self._storable(final)
        for some in group_pages([(position, self.frontier.entries[position].size) for position in positions]):
            outcomes = await asyncio.to_thread(self._storing.store, some, self._boilerplate, self._should_stop)
            for position, outcome in outcomes.items():
                entry = self.frontier.entries[position]
                entry.state, entry.outcome, entry.has_body = "done", outcome, False
            self._tell()

    async def _settle_repeats(self) -> None:
        """Drop pages that only repeat others, once all are fetched."""
        readable = [e for e in self.frontier.entries if e.state != "queued" and e.content_hash]
        # Pages marked noindex come last: they may be duplicates of others, but others are never duplicates of them.
        forbidden = [e for e in readable if e.outcome in ("forbidden", "held")]
        entries = [e for e in readable if e.outcome in COMPARED_OUTCOMES] + forbidden
        blocks = await asyncio.to_thread(self._crawls.blocks, self._job_id, [e.position for e in entries])
        reasons = await asyncio.to_thread(find_repeats, [PageBlocks(url, hashes) for url, hashes in blocks])
        for entry in entries:
            if entry.url in reasons and entry.outcome != "held" and not self._has_document(entry):
                await self._settle_duplicate(entry, reasons[entry.url])
                self._log(f"{entry.url}: left out: it {reasons[entry.url]}.", "info")

    async def _refuse_stand_ins(self) -> None:
        """Keep documents whose pages used to differ and are now alike, such as a maintenance, login or block page.

        Numbers, and words from a page's own address, may differ between such pages. If they replace titles that
        differed with the same one, so may half of their words.
        """
        if self.options.accept_removals:
            return
        changed = [
            e
            for e in self.frontier.entries
            if e.state == "fetched" and e.has_body and e.url in self._memory and self._has_document(e)
            and e.content_hash != self._memory[e.url].content_hash
        ]  # fmt: skip
        shapes: dict[int, list[Entry]] = defaultdict(list)
        titles: dict[str, list[Entry]] = defaultdict(list)
        async for entry, body in self._read_bodies(changed):
            shapes[await asyncio.to_thread(hash_shape, bytes(body.body or b""), body.url)].append(entry)
            if body.title and body.title != self._memory[body.url].title:
                titles[body.title].append(entry)
        for entries in shapes.values():
            if len(entries) > 1 and await self._had_different_texts(entries):
                await self._keep_documents(entries)
        for entries in titles.values():
            if len({self._memory[entry.url].title for entry in entries}) > 1:
                await self._keep_documents(await self._find_similar([e for e in entries if e.state == "fetched"]))
        await self._refuse_stubs([e for e in changed if e.state == "fetched"])

    async def _refuse_stubs(self, entries: Sequence[Entry]) -> None:
        """Keep the documents of pages of which most text is gone, such as one with nothing but "Loading…"."""
        async for entry, body in self._read_bodies(entries):
            if body.metadata.get("file_name", "page.md") != "page.md":  # a file whose text has not been read
                continue
            text = strip_boilerplate(bytes(body.body or b"").decode("utf-8"), self._boilerplate or frozenset())
            keys = [self._document_key(entry)]
            stored = await asyncio.to_thread(self._crawls.document_texts, self._plan.source_id, keys)
            before, after = sum(len(old) for _, old in stored), len(text)
            if after < MIN_KEPT_TEXT_SHARE * before:
                reason = f"Its text shrank from {before:,} to {after:,} characters, so its document is kept."
                await self._settle(entry, "failed", f"{reason} {ACCEPT_NOTE}")

    async def _read_bodies(self, entries: Sequence[Entry]) -> AsyncGenerator[tuple[Entry, PageBody]]:
        """Yield fetched pages with their texts, a group at a time."""
        for some in group_pages([(entry.position, entry.size) for entry in entries]):
            for body in await asyncio.to_thread(self._crawls.bodies, self._job_id, some):
                yield self.frontier.entries[body.position], body

    async def _had_different_texts(self, entries: Sequence[Entry]) -> bool:
        """Return whether the stored documents of pages differ in more than numbers and words of their addresses."""
        shapes: set[int] = set()
        for some in group_pages([(entry.position, self._memory[entry.url].size) for entry in entries]):
            urls = {self._document_key(self.frontier.entries[position]): position for position in some}
            texts = await asyncio.to_thread(self._crawls.document_texts, self._plan.source_id, list(urls))
            for key, text in texts:
                url = self.frontier.entries[urls[key]].url
                shapes.add(await asyncio.to_thread(hash_shape, text.encode("utf-8", "replace"), url))
            if len(shapes) > 1:
                return True
        return False

    async def _find_similar(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the pages at least half of whose words are on most of these pages."""
        pages_with: Counter[str] = Counter()
        async for _, body in self._read_bodies(entries[:MAX_SAMPLED_STAND_INS]):
            pages_with.update(set(shape_words(bytes(body.body or b""), body.url)))
        common = {word for word, n in pages_with.items() if 2 * n > min(len(entries), MAX_SAMPLED_STAND_INS)}
        similar: list[Entry] = []
        async for entry, body in self._read_bodies(entries):
            words = set(shape_words(bytes(body.body or b""), body.url))
            if 2 * len(words & common) >= len(words):
                similar.append(entry)
        return similar

    async def _keep_documents(self, entries: Sequence[Entry]) -> None:
        if len(entries) > 1:
            reason = f"{len(entries)} pages that differed before are now alike, so their documents are kept."
            for entry in entries:
                await self._settle(entry, "failed", f"{reason} {ACCEPT_NOTE}")
            self._log(f"{reason} {entries[0].url} is one of them.", "warning")

    async def _refetch_unknown(self) -> bool:
        """Refetch pages that returned 304 but whose text is not stored; return whether there were any."""
        again = [e for e in self.frontier.entries if e.state == "fetched" and not e.has_body]
        for entry in again:
            await asyncio.to_thread(self._crawls.requeue, self._job_id, entry.position, {"afresh": True})
            entry.metadata = {"afresh": True}
            self.frontier.reopen(entry)
        return bool(again)

    async def _count_skipped(self) -> None:
        """Count addresses in pages and lists that were not admitted, by reason."""
        if self._bounds is None or not self.options.recursive:
            return
        reasons = (UNREADABLE_SITEMAP_REASON, PARTIAL_SITEMAP_REASON, SURPLUS_SITEMAP_REASON)
        unread = {url: via for url, via, _ in self._crawls.plan(self._job_id).seeds if via in reasons}
        counts: Counter[str] = Counter()
        for url, reason in await asyncio.to_thread(self._crawls.list_without_row, self._job_id):
            counts[unread.get(url) or reason or self.frontier.skip_reason(url, self._bounds)] += 1
        rest = sum(memory.document_id is not None and url not in self.frontier for url, memory in self._memory.items())
        if rest:
            place = f"{self._bounds.host}{self._bounds.prefix}"
            counts[f"documents of earlier crawls outside {place}, not visited and kept"] = rest
            start = self.frontier.entries[0]
            if start.outcome == "redirected" and 2 * rest > sum(
                m.document_id is not None for m in self._memory.values()
            ):
                note = f"(outside of which are {rest:,} documents of earlier crawls, kept and not visited)"
                await self._settle(start, "failed", note)  # most of the site has moved, or needs a login
        await asyncio.to_thread(self._crawls.set_skipped, self._job_id, counts)

    # --- Progress ---

    def _tell(self) -> None:
        entries = self.frontier.entries
        done = sum(entry.state == "done" and entry.outcome not in UNFETCHED_OUTCOMES for entry in entries)
        queued = sum(entry.state == "queued" for entry in entries)
        waiting = sum(entry.state == "fetched" for entry in entries)
        failed = sum(entry.outcome == "failed" for entry in entries)
        total = done + queued + waiting
        message = describe_progress(done, total, stored_next=waiting, fetched_next=queued, failed=failed)
        share = (done + waiting / 2) / total if total else 0.0  # a fetched page that is not stored counts as half
        self._on_progress(Progress(done, total, message, share=share))
