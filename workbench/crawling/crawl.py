"""One crawl, from its start or from wherever a dead worker left it: each step is in the database before the next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from workbench.crawling.bounds import bounds_from, bounds_of
from workbench.crawling.count_words import KEPT_OUT, standing
from workbench.crawling.duplicates import PageToCompare, repeats
from workbench.crawling.frontier import Entry, Frontier
from workbench.crawling.furniture import SAMPLE, furniture_of
from workbench.crawling.options import CrawlOptions
from workbench.crawling.site import Site
from workbench.crawling.storing import Storing, together
from workbench.crawling.urls import host_of
from workbench.crawling.visiting import TryAgain, line_of, visit
from workbench.errors import Cancelled
from workbench.storage.crawls import Crawls, NewPage, PageMemory, PageReply
from workbench.types import OnProgress, Progress, ShouldStop
from workbench.types.progress import slow_step

LOOK = 0.25  # seconds between looks at what can be stored
TICK = 0.1  # seconds between looks at what else could be done
HELD = 60_000  # bytes of text above which a page may be a collection of others: it is stored last, if at all
ENOUGH = 16  # pages that can be stored, from which on it begins
LONGEST_START = 10  # redirects from the start page that are followed, wherever they lead
REPEATABLE = ("added", "changed", "unchanged", "stored", None)  # outcomes of pages whose text counts
PageLink = tuple[str, str, str | None]  # address, how it was found, the sitemap's date


class Crawl:
    """A crawl that fetches side by side, takes links up in order, and stores behind; one instance a run of a job."""

    def __init__(
        self,
        job_id: str,
        crawls: Crawls,
        site: Site,
        storing: Storing,
        memory: dict[str, PageMemory],
        *,
        remove: Callable[[str, bool], None],
        should_stop: ShouldStop,
        on_progress: OnProgress,
        log: Callable[[str, str], None],
    ) -> None:
        """Take ``remove(document id, keep)``, which deletes a document, or marks it as gone where it is to be kept."""
        self._job_id, self._crawls, self._site, self._storing = job_id, crawls, site, storing
        self._memory, self._remove = memory, remove
        self._should_stop, self._on_progress, self._log = should_stop, on_progress, log
        self._plan = crawls.plan(job_id)
        self.options = CrawlOptions.read(self._plan.options)
        self.frontier = Frontier(self.options, (Entry(**row) for row in crawls.frontier(job_id)))
        self._bounds = bounds_from(self._plan.scope) if self._plan.scope else None
        self._furniture = None if self._plan.furniture is None else frozenset(self._plan.furniture)
        self._hashes: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._visits: set[asyncio.Task[None]] = set()
        for entry in self.frontier.entries:
            if entry.expanded and entry.state != "queued" and entry.outcome in REPEATABLE:
                self._note_text(entry)

    async def run(self) -> None:
        """Crawl until nothing is left. Raises Cancelled when asked to stop; everything is kept for going on."""
        try:
            while True:
                await self._fetch_all()
                if await self._remember_the_rest():
                    continue
                self._tell()
                await self._settle_repeats()
                await self._store(final=True)
                if not await self._refetch_unknown():
                    return
        finally:
            for task in self._visits:
                task.cancel()
            await asyncio.gather(*self._visits, return_exceptions=True)

    # --- fetching ---------------------------------------------------------------------------------------------------

    async def _fetch_all(self) -> None:
        storing: asyncio.Task[None] | None = None
        looked = 0.0
        try:
            while not self.frontier.is_exhausted or self._visits:
                await self._stop_if_asked()
                while (entry := self.frontier.next_to_expand()) is not None:
                    await self._expand(entry)
                for entry in self.frontier.waiting(time.monotonic()):
                    if len(self._visits) >= self.options.concurrency:
                        break
                    self._begin(entry)
                if storing is not None and storing.done():
                    storing.result()
                    storing = None
                if time.monotonic() - looked > LOOK:
                    looked = time.monotonic()
                    self._tell()
                    if storing is None and len(self._storable()) >= ENOUGH:
                        storing = asyncio.create_task(self._store(final=False))
                await self._wait()
        finally:
            if storing is not None:
                await storing

    def _begin(self, entry: Entry) -> None:
        entry.in_flight = True
        task = asyncio.create_task(self._visit(entry))
        self._visits.add(task)

    async def _wait(self) -> None:
        if self._visits:
            with slow_step():  # each visit has its timeout, and each pause that a site asks for its limit
                done, self._visits = await asyncio.wait(self._visits, timeout=TICK, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        else:
            with slow_step():
                await asyncio.sleep(TICK / 4)

    async def _visit(self, entry: Entry) -> None:
        try:
            answer = await visit(self._site, entry, self._memory.get(entry.url), self.options)
        except TryAgain as again:
            entry.attempts += 1
            entry.not_before = time.monotonic() + again.wait
            await asyncio.to_thread(self._crawls.attempted, self._job_id, entry.position, entry.attempts, again.reason)
            self._log(f"{entry.url}: {again.reason} Trying again in {again.wait:.1f} s.", "warning")
        else:
            if answer.outcome == "removed":
                answer = await asyncio.to_thread(self._gone, entry, answer)
            elif answer.outcome == "forbidden":
                await asyncio.to_thread(self._forget, entry.url)
            await asyncio.to_thread(self._crawls.fetched, self._job_id, entry.position, answer, line_of(entry, answer))
            self._take(entry, answer)
        finally:
            entry.in_flight = False

    def _take(self, entry: Entry, answer: PageReply) -> None:
        entry.state, entry.outcome, entry.attempts = answer.state, answer.outcome, answer.attempts
        entry.content_hash, entry.document_key = answer.content_hash, answer.document_key
        entry.document_id, entry.size, entry.has_body = answer.document_id, answer.size, answer.body is not None
        entry.media_type, entry.links, entry.metadata = answer.media_type, answer.links, answer.metadata

    def _gone(self, entry: Entry, answer: PageReply) -> PageReply:
        """Settle a page that answers 404 or 410: its document goes or is marked; without one the link was broken."""
        memory = self._memory.get(entry.url)
        document = self._crawls.document(self._plan.source_id, (memory and memory.document_key) or entry.url)
        if document is None:
            return PageReply("done", "failed", answer.reason, answer.attempts, answer.status_code)
        keep = self.options.gone == "keep"
        self._remove(document, keep)
        reason = f"{answer.reason} " + ("Its document stays, marked as gone." if keep else "Its document was removed.")
        return PageReply("done", "removed", reason, answer.attempts, answer.status_code)

    def _forget(self, url: str) -> None:
        document = self._crawls.document(self._plan.source_id, url)
        if document is not None:
            self._remove(document, False)

    # --- taking links up, in order ----------------------------------------------------------------------------------

    async def _expand(self, entry: Entry) -> None:
        seeded = None
        if entry.state == "fetched":
            await self._settle_if_same(entry)
        redirected = entry.outcome == "redirected"
        if self._bounds is None and redirected and entry.position < LONGEST_START:
            await self._site.robots(entry.links[0])
            pages = self.frontier.admit_target(entry.links[0], entry, self._site.refusal)
        else:
            links: list[PageLink] = [(url, "link", None) for url in entry.links]
            if self._bounds is None:
                self._bounds = bounds_of(entry.url, self.options.within)
                listed = await self._listed(entry.url)
                seeded = (self._bounds.to_dict(), listed)
                links += listed
            pages = await self._admit(links, entry.depth + (not redirected), entry.url)
        await asyncio.to_thread(self._crawls.expanded, self._job_id, entry.position, pages, seeded=seeded)
        entry.expanded = True
        if redirected:
            self.frontier.discount_redirect()

    async def _admit(self, links: Sequence[PageLink], depth: int, parent: str | None) -> list[NewPage]:
        """Take addresses up, after reading the robots.txt of each host that is within bounds."""
        assert self._bounds is not None
        inside = [link for link in links if self._bounds.contains(link[0]) and link[0] not in self.frontier]
        for url in {host_of(link[0]): link[0] for link in inside}.values():
            await self._site.robots(url)
        return self.frontier.admit(inside, depth=depth, parent=parent, bounds=self._bounds, robots=self._site.refusal)

    async def _listed(self, url: str) -> list[PageLink]:
        if not (self.options.recursive and self.options.sitemaps):
            return []
        listed = await self._site.listed(url)
        if listed:
            self._log(f"The site lists {len(listed)} addresses itself (sitemap, llms.txt).", "info")
        return [(entry.url, entry.via, entry.lastmod) for entry in listed]

    async def _settle_if_same(self, entry: Entry) -> None:
        """Settle a page whose address or text was met before, and one that is known to be unchanged."""
        same = self._keys.get(entry.document_key or "") or self._hashes.get(entry.content_hash or "")
        if same is not None and same != entry.url:
            await self._settle_duplicate(entry, f"the same text as {same}")
            return
        self._note_text(entry)
        memory = self._memory.get(entry.url)
        if not entry.has_body and memory is not None and memory.indexed:
            await asyncio.to_thread(self._crawls.unchanged, self._job_id, entry.position)
            entry.state, entry.outcome = "done", "unchanged"

    def _note_text(self, entry: Entry) -> None:
        if entry.content_hash:
            self._hashes.setdefault(entry.content_hash, entry.url)
        if entry.document_key:
            self._keys.setdefault(entry.document_key, entry.url)

    async def _settle_duplicate(self, entry: Entry, reason: str) -> None:
        if self._keys.get(entry.document_key or "", entry.url) == entry.url:
            await asyncio.to_thread(self._forget, entry.document_key or entry.url)
        await asyncio.to_thread(self._crawls.settle, self._job_id, entry.position, "duplicate", reason)
        entry.state, entry.outcome, entry.has_body = "done", "duplicate", False

    async def _remember_the_rest(self) -> bool:
        """Visit the pages that an earlier crawl stored and that no link leads to any more: they may be gone."""
        if not self.options.recursive or self._bounds is None:
            return False
        rest: list[PageLink] = [
            (url, "memory", None) for url, memory in sorted(self._memory.items()) if memory.document_id
        ]
        pages = await self._admit(rest, 0, None)
        await asyncio.to_thread(self._crawls.admit, self._job_id, pages)
        return any(page.outcome is None for page in pages)

    # --- storing ----------------------------------------------------------------------------------------------------

    def _storable(self, final: bool = False) -> list[int]:
        """Return the pages that can be stored now, in order; large ones wait for the end."""
        ready = [e for e in self.frontier.entries if e.state == "fetched" and e.expanded and e.has_body]
        if self._furniture is None and not final:
            return [e.position for e in ready] if len(ready) >= SAMPLE else []
        return [e.position for e in ready if final or e.size <= HELD]

    async def _store(self, final: bool) -> None:
        positions = self._storable(final)
        if self._furniture is None:
            sample = await asyncio.to_thread(self._crawls.bodies, self._job_id, positions[:SAMPLE])
            texts = [bytes(page.body).decode("utf-8", "replace") for page in sample if page.body]
            self._furniture = await asyncio.to_thread(furniture_of, texts)
            await asyncio.to_thread(self._crawls.set_furniture, self._job_id, self._furniture)
            positions = self._storable(final)
        for some in together([(position, self.frontier.entries[position].size) for position in positions]):
            outcomes = await asyncio.to_thread(self._storing.store, some, self._furniture, self._should_stop)
            for position, (outcome, _) in outcomes.items():
                entry = self.frontier.entries[position]
                entry.state, entry.outcome, entry.has_body = "done", outcome, False
            self._tell()

    async def _settle_repeats(self) -> None:
        """Find pages that only repeat others, now that all are there."""
        readable = [e for e in self.frontier.entries if e.state != "queued" and e.content_hash]
        # Pages that ask not to be indexed come last: they may repeat others, and others never count as repeating them.
        entries = [e for e in readable if e.outcome in REPEATABLE] + [e for e in readable if e.outcome == "forbidden"]
        blocks = await asyncio.to_thread(self._crawls.blocks, self._job_id, [e.position for e in entries])
        reasons = await asyncio.to_thread(repeats, [PageToCompare(url, hashes) for url, hashes in blocks])
        for entry in entries:
            if entry.url in reasons:
                await self._settle_duplicate(entry, reasons[entry.url])
                self._log(f"{entry.url}: left out, it {reasons[entry.url]}.", "info")

    async def _refetch_unknown(self) -> bool:
        """Fetch pages anew that a 304 stood for, but whose text is nowhere; returns whether there are any."""
        again = [e for e in self.frontier.entries if e.state == "fetched" and not e.has_body]
        for entry in again:
            await asyncio.to_thread(self._crawls.requeue, self._job_id, entry.position, {"afresh": True})
            entry.metadata = {"afresh": True}
            self.frontier.reopen(entry)
        return bool(again)

    # --- telling ----------------------------------------------------------------------------------------------------

    async def _stop_if_asked(self) -> None:
        if await asyncio.to_thread(self._should_stop):
            raise Cancelled("Stopped; the crawl can be resumed.")

    def _tell(self) -> None:
        entries = self.frontier.entries
        done = sum(entry.state == "done" and entry.outcome not in KEPT_OUT for entry in entries)
        queued = sum(entry.state == "queued" for entry in entries)
        waiting = sum(entry.state == "fetched" for entry in entries)
        failed = sum(entry.outcome == "failed" for entry in entries)
        total = done + queued + waiting
        message = standing(done, total, stored_next=waiting, fetched_next=queued, failed=failed)
        share = (done + waiting / 2) / total if total else 0.0  # a page that is fetched and not stored is half done
        self._on_progress(Progress(done, total, message, share=share))
