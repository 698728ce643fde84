"""The way from fetched pages to documents: waiting pages go through the ingestion pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from workbench.crawling.furniture import without_furniture
from workbench.ingestion.incoming import Incoming, keeps_original
from workbench.sizes import MB
from workbench.storage.crawls import Crawls, PageBody
from workbench.storage.database import Connection
from workbench.storage.documents import NewDocument
from workbench.types import IngestReport, ShouldStop

Ingest = Callable[..., IngestReport]  # (source id, items, should_stop=, after_write=) as the knowledge service does it
PAGES, SIZE = 64, MB  # so many pages at most, of so many bytes of text and one page more, are stored together
SHOWN_LINKS = 200  # outgoing links that a document's metadata keeps


class Storing:
    """The writer of one crawl's pages; each document and the note that its page is done are one transaction."""

    def __init__(self, crawls: Crawls, job_id: str, source_id: str, index: str, ingest: Ingest) -> None:
        self._crawls, self._job_id, self._source_id, self._index = crawls, job_id, source_id, index
        self._ingest = ingest

    def store(
        self, positions: Sequence[int], furniture: frozenset[int], should_stop: ShouldStop
    ) -> dict[int, tuple[str, str | None]]:
        """Store pages; returns {position: (outcome, reason)}. Raises Cancelled; written pages stay."""
        bodies = self._crawls.bodies(self._job_id, positions)
        by_key = {body.document_key: body for body in bodies}
        written: dict[int, tuple[str, str | None]] = {}

        def after_write(connection: Connection, document_id: str, document: NewDocument) -> None:
            position = by_key[document.key].position
            self._crawls.stored(connection, self._job_id, position, document_id, self._index)
            written[position] = ("stored", None)

        items = [_incoming(body, furniture) for body in bodies]
        report = self._ingest(self._source_id, items, should_stop=should_stop, after_write=after_write)
        for failure in report.failures:
            position = by_key[failure.path].position
            self._crawls.settle(self._job_id, position, "failed", failure.error)
            written[position] = ("failed", failure.error)
        for body in bodies:
            if body.position not in written:
                self._crawls.unchanged(self._job_id, body.position)
                written[body.position] = ("unchanged", None)
        return written


def together(pages: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield the positions of pages (position, bytes of text) in groups that are stored together."""
    group: list[int] = []
    room = SIZE
    for position, size in pages:
        group.append(position)
        room -= size
        if room <= 0 or len(group) == PAGES:
            yield group
            group, room = [], SIZE
    if group:
        yield group


def _incoming(page: PageBody, furniture: frozenset[int]) -> Incoming:
    name = str(page.metadata.get("file_name") or "page.md")
    is_page = name == "page.md"
    body = bytes(page.body or b"")
    if is_page:
        body = without_furniture(body.decode("utf-8"), furniture).encode("utf-8")
    metadata = {key: value for key, value in page.metadata.items() if key != "file_name"}
    links = [link for link in page.links if link != page.document_key]
    metadata |= {
        "canonical_url": page.document_key,
        "crawl_depth": page.depth,
        "crawled_at": page.fetched_at.isoformat() if page.fetched_at else None,
        "links_found": len(links),
        "links": links[:SHOWN_LINKS],
    }
    return Incoming(
        key=page.document_key,
        name=name,
        load=lambda: body,
        url=page.document_key,
        path=None,
        title=page.title or None,
        metadata=metadata,
        keep_file=keeps_original(name),
        document_type="html" if is_page else None,
    )
