"""Crawls: their tasks and every page they found, so that another worker can resume them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from psycopg.types.json import Jsonb

from workbench.errors import NotFound
from workbench.storage.database import Connection, Row, Table, clean_parameters, statement
from workbench.types import JsonObject, JsonValue, Value


@dataclass(frozen=True, slots=True)
class CrawlPlan:
    """The task of a crawl job."""

    job_id: str
    source_id: str  # "" if nothing was stored and its new source was therefore removed
    url: str
    options: Mapping[str, JsonValue]
    seeds: Sequence[tuple[str, str, str | None]]  # (URL, origin, lastmod) from sitemaps and the like
    scope: Mapping[str, JsonValue] | None  # host and path; None before the start page was fetched
    boilerplate: Sequence[int] | None  # hashes of boilerplate lines


@dataclass(frozen=True, slots=True)
class NewPage:
    """A discovered URL; if it has an ``outcome`` (such as forbidden), it will not be fetched."""

    position: int
    url: str
    depth: int
    parent: str | None
    via: str
    lastmod: str | None = None
    outcome: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PageReply:
    """The response from a URL, kept until the page is stored."""

    state: str
    outcome: str | None = None
    reason: str | None = None
    attempts: int = 1
    status_code: int | None = None
    final_url: str | None = None
    document_key: str | None = None
    document_id: str | None = None
    title: str | None = None
    media_type: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    content_hash: str | None = None
    links: tuple[str, ...] = ()
    blocks: tuple[int, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    body: bytes | None = None
    size: int = 0
    rendered: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PageMemory:
    """What an earlier crawl knows about a URL; ``indexed`` if its document exists and is searchable."""

    url: str
    etag: str | None
    last_modified: str | None
    lastmod: str | None
    content_hash: str | None
    links: Sequence[str]
    blocks: Sequence[int]
    title: str | None
    metadata: Mapping[str, object]
    media_type: str | None
    document_key: str | None
    size: int
    outcome: str
    rendered: bool
    document_id: str | None
    indexed: bool
    fetched_at: datetime | None


@dataclass(frozen=True, slots=True)
class CrawlPage(Value):
    """A page of a crawl, for display."""

    position: int
    url: str
    depth: int
    parent: str | None
    via: str
    state: str
    outcome: str | None
    reason: str | None
    attempts: int
    status_code: int | None
    final_url: str | None
    document_id: str | None
    passages: int
    title: str | None
    media_type: str | None
    size: int
    rendered: bool
    seconds: float
    fetched_at: datetime | None


@dataclass(frozen=True, slots=True)
class PageCount:
    """The number of pages with one state and outcome."""

    state: str
    outcome: str | None
    n: int
    passages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PageBody:
    """A fetched page that is not yet stored; ``body`` holds its bytes, ``links`` the URLs it links to."""

    position: int
    url: str
    depth: int
    title: str | None
    metadata: JsonObject
    document_key: str
    links: Sequence[str]
    body: bytes | None
    fetched_at: datetime | None


class Crawls(Table):
    """The tables ``crawl_jobs`` and ``crawl_pages``."""

    def create(
        self, connection: Connection, job_id: str, source_id: str, url: str, options: Mapping[str, object]
    ) -> None:
        """Store the task of a job and its start page, in the caller's transaction."""
        values = {"job_id": job_id, "source_id": source_id, "url": url, "options": Jsonb(dict(options))}
        connection.execute(statement("crawl_insert"), values)
        self._insert(connection, job_id, [NewPage(0, url, 0, None, "start")])

    def plan(self, job_id: str) -> CrawlPlan:
        """Return the task of a job. Raises NotFound if the job is not a crawl."""
        missing = NotFound("crawl job", job_id, "List the crawl jobs to see the valid ids.")
        row = self._get("crawl_get", {"job_id": job_id}, missing)
        row["source_id"] = row["source_id"] or ""
        return CrawlPlan(**row)

    def fills(self, job_id: str, source_id: str) -> None:
        self._rows("crawl_source", {"job_id": job_id, "source_id": source_id})

    def frontier(self, job_id: str) -> list[Row]:
        """Return every page in order, with the fields that a crawl keeps in memory."""
        return self._rows("page_frontier", {"job_id": job_id})

    def memory(self, source_id: str, job_id: str, index: str) -> dict[str, PageMemory]:
        """Return what earlier crawls of a source know, by URL."""
        parameters = {"source_id": source_id, "job_id": job_id, "index": index}
        return {row["url"]: PageMemory(**row) for row in self._rows("page_memory", parameters)}

    def record_reply(self, job_id: str, position: int, answer: PageReply, log: str = "") -> None:
        """Store the response from a URL, with a line for the job's log."""
        values = {name: getattr(answer, name) for name in PageReply.__dataclass_fields__ if name != "body"}
        values |= {"links": list(answer.links), "blocks": list(answer.blocks), "metadata": dict(answer.metadata)}
        values = clean_parameters(values) | {"job_id": job_id, "position": position, "body": answer.body}
        values |= {"links": Jsonb(values["links"]), "metadata": Jsonb(values["metadata"])}
        with self._database.transaction() as connection:
            connection.execute(statement("page_fetched"), values)
            connection.execute(statement("job_got_on"), {"id": job_id})
            if log:
                level = "error" if answer.outcome == "failed" else "info"
                line = clean_parameters({"job_id": job_id, "level": level, "message": log})
                connection.execute(statement("job_log_add"), line)

    def record_attempt(self, job_id: str, position: int, attempts: int, reason: str) -> None:
        self._rows("page_attempted", {"job_id": job_id, "position": position, "attempts": attempts, "reason": reason})

    def record_links(
        self,
        job_id: str,
        position: int,
        pages: Sequence[NewPage],
        *,
        seeded: tuple[Mapping[str, JsonValue], Sequence[tuple[str, str, str | None]]] | None = None,
    ) -> None:
        """Queue the URLs of a page's links; ``seeded`` is the scope and the URLs that the site lists."""
        with self._database.transaction() as connection:
            connection.execute(statement("page_expanded"), {"job_id": job_id, "position": position})
            self._insert(connection, job_id, pages)
            if seeded is not None:
                values = {"scope": Jsonb(dict(seeded[0])), "seeds": Jsonb([list(seed) for seed in seeded[1]])}
                connection.execute(statement("crawl_seeded"), values | {"job_id": job_id})

    def admit(self, job_id: str, pages: Sequence[NewPage]) -> None:
        """Queue URLs that no page links to."""
        with self._database.transaction() as connection:
            self._insert(connection, job_id, pages)

    def settle(self, job_id: str, position: int, outcome: str, reason: str | None) -> None:
        self._rows("page_settled", {"job_id": job_id, "position": position, "outcome": outcome, "reason": reason})

    def settle_with_note(self, job_id: str, position: int, outcome: str, note: str) -> None:
        """Record the outcome of a page and append a sentence to its reason, once."""
        self._rows("page_settled_with_note", {"job_id": job_id, "position": position, "outcome": outcome, "note": note})

    def record_stored(self, connection: Connection, job_id: str, position: int, document_id: str, index: str) -> None:
        """Record that a page's document was written, in the same transaction."""
        values = {"job_id": job_id, "position": position, "document_id": document_id, "index": index}
        connection.execute(statement("page_stored"), values)
        connection.execute(statement("job_got_on"), {"id": job_id})

    def record_unchanged(self, job_id: str, position: int) -> None:
        """Record that the stored document has the same text."""
        self._rows("page_unchanged", {"job_id": job_id, "position": position})

    def unmark_found(self, job_id: str) -> None:
        """Remove the mark "gone" from the documents whose pages were found again."""
        self._rows("crawl_unmark_found", {"job_id": job_id})

    def requeue(self, job_id: str, position: int, metadata: Mapping[str, object]) -> None:
        """Fetch a page again from the start."""
        self._rows("page_requeue", {"job_id": job_id, "position": position, "metadata": Jsonb(dict(metadata))})

    def rekey(self, job_id: str, position: int, key: str) -> None:
        """Change the URL that identifies a page's document."""
        self._rows("page_rekey", {"job_id": job_id, "position": position, "key": key})

    def accept_held(self, job_id: str) -> int:
        """Requeue the pages whose removal was held back; their documents are removed after the fetch."""
        return len(self._rows("pages_accept_held", {"job_id": job_id}))

    def document_keys(self, source_id: str) -> set[str]:
        """Return the keys (page URLs) of a source's documents."""
        return set(self._column("crawl_keys", {"source_id": source_id}))

    def count_documents(self, source_id: str) -> int:
        return int(self._value("crawl_documents", {"source_id": source_id}))

    def list_without_row(self, job_id: str) -> list[tuple[str, str | None]]:
        """Return (URL, reason or None) from fetched pages or the site's own lists that have no page row."""
        return [(row["url"], row["reason"]) for row in self._rows("crawl_unlisted", {"job_id": job_id})]

    def set_skipped(self, job_id: str, skipped: Mapping[str, int]) -> None:
        """Store the number of URLs without a page row, by the reason why they were not fetched."""
        self._rows("crawl_skipped", {"job_id": job_id, "skipped": Jsonb(clean_parameters(dict(skipped)))})

    def reasons(self, job_id: str) -> dict[str, int]:
        """Return the number of URLs that were not fetched, by reason, the most frequent first."""
        return {row["reason"]: row["n"] for row in self._rows("page_reasons", {"job_id": job_id})}

    def retry_failed(self, job_id: str) -> int:
        return len(self._rows("pages_retry_failed", {"job_id": job_id}))

    def set_boilerplate(self, job_id: str, boilerplate: Iterable[int]) -> None:
        """Store the hashes of boilerplate lines, which repeat on most pages."""
        self._rows("crawl_boilerplate", {"job_id": job_id, "boilerplate": sorted(boilerplate)})

    def bodies(self, job_id: str, positions: Sequence[int]) -> list[PageBody]:
        """Return pages that are not yet stored, with their text and metadata."""
        return [PageBody(**row) for row in self._rows("page_body", {"job_id": job_id, "positions": list(positions)})]

    def blocks(self, job_id: str, positions: Sequence[int]) -> list[tuple[str, tuple[int, ...]]]:
        """Return (URL, paragraph hashes) of pages, in order."""
        rows = self._rows("page_blocks", {"job_id": job_id, "positions": list(positions)})
        return [(row["url"], tuple(row["blocks"])) for row in rows]

    def pages(
        self, job_id: str, *, outcome: str | None = None, limit: int | None = None, offset: int = 0
    ) -> list[CrawlPage]:
        """Return the pages of a crawl in the order of their discovery."""
        parameters = {"job_id": job_id, "outcome": outcome, "limit": limit, "offset": offset}
        return [CrawlPage(**row) for row in self._rows("page_list", parameters)]

    def counts(self, job_id: str) -> list[PageCount]:
        """Return the number of pages by state and outcome."""
        return [PageCount(**row) for row in self._rows("page_counts", {"job_id": job_id})]

    def document(self, source_id: str, key: str) -> str | None:
        """Return the id of a source's document by its key (the page's URL), or None."""
        return self._value("crawl_document", {"source_id": source_id, "key": key})

    def document_texts(self, source_id: str, keys: Sequence[str]) -> list[tuple[str, str]]:
        """Return (key, text) of a source's documents."""
        rows = self._rows("crawl_document_texts", {"source_id": source_id, "keys": list(keys)})
        return [(row["key"], row["text"]) for row in rows]

    def _insert(self, connection: Connection, job_id: str, pages: Sequence[NewPage]) -> None:
        if pages:
            rows = [
                clean_parameters({name: getattr(page, name) for name in NewPage.__dataclass_fields__})
                | {"job_id": job_id}
                for page in pages
            ]
            with connection.cursor() as cursor:
                cursor.executemany(statement("page_insert"), rows)
