"""From fetched pages to documents: what waits in the crawl's pages goes through the ingestion pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.crawling.furniture import without_furniture
from workbench.ingestion.incoming import Incoming, is_pdf
from workbench.storage.crawls import Crawls
from workbench.types import IngestReport

Ingest = Callable[..., IngestReport]  # (source id, items, should_stop=, after_write=) as the knowledge service does it
SHOWN_LINKS = 200  # outgoing links that a document's metadata keeps


class Storing:
    """Writes pages of one crawl; each document and the note that its page is done are one transaction."""

    def __init__(self, crawls: Crawls, job_id: str, source_id: str, index: str, ingest: Ingest) -> None:
        self._crawls, self._job_id, self._source_id, self._index = crawls, job_id, source_id, index
        self._ingest = ingest

    def store(
        self, positions: Sequence[int], furniture: frozenset[int], should_stop: Callable[[], bool]
    ) -> dict[int, tuple[str, str | None]]:
        """Store pages; returns {position: (outcome, reason)}. Raises Cancelled; what was written stays."""
        rows = self._crawls.bodies(self._job_id, positions)
        by_key = {row["document_key"]: row for row in rows}
        written: dict[int, tuple[str, str | None]] = {}

        def after_write(connection: Any, document_id: str, document: Any) -> None:
            position = by_key[document.key]["position"]
            self._crawls.stored(connection, self._job_id, position, document_id, self._index)
            written[position] = ("stored", None)

        items = [_incoming(row, furniture) for row in rows]
        report = self._ingest(self._source_id, items, should_stop=should_stop, after_write=after_write)
        for failure in report.failures:
            position = by_key[failure.path]["position"]
            self._crawls.settle(self._job_id, position, "failed", failure.error)
            written[position] = ("failed", failure.error)
        for row in rows:
            if row["position"] not in written:
                self._crawls.unchanged(self._job_id, row["position"])
                written[row["position"]] = ("unchanged", None)
        return written


def _incoming(row: Mapping[str, Any], furniture: frozenset[int]) -> Incoming:
    name = str(row["metadata"].get("file_name") or "page.md")
    is_page = name == "page.md"
    body = bytes(row["body"] or b"")
    if is_page:
        body = without_furniture(body.decode("utf-8"), furniture).encode("utf-8")
    metadata = {key: value for key, value in row["metadata"].items() if key != "file_name"}
    links = [link for link in row["links"] if link != row["document_key"]]
    metadata |= {
        "canonical_url": row["document_key"],
        "crawl_depth": row["depth"],
        "crawled_at": row["fetched_at"].isoformat() if row["fetched_at"] else None,
        "links_found": len(links),
        "links": links[:SHOWN_LINKS],
    }
    return Incoming(
        key=row["document_key"],
        name=name,
        load=lambda: body,
        url=row["document_key"],
        path=None,
        title=row["title"] or None,
        metadata=metadata,
        keep_file=is_pdf(name),
        document_type="html" if is_page else None,
    )
