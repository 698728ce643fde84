"""The way in: read, cut, embed, store; whole documents only, in one transaction each time.

Reading and cutting run ahead in one thread and writing behind in another, so that the embedding model, which takes
nearly all the time, never waits. What is unchanged (by content hash) costs a hash and nothing else.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from workbench.errors import Cancelled, UnreadableDocument
from workbench.ingestion.ahead import run_ahead
from workbench.ingestion.cutting import cut
from workbench.ingestion.embedding import EmbeddedPassages, embed
from workbench.ingestion.incoming import Incoming, content_hash, read
from workbench.models.encoder import Encoder
from workbench.storage.database import Database
from workbench.storage.documents import Documents, KnownDocument, NewDocument
from workbench.storage.indexes import Indexes
from workbench.storage.rows import NewPassage
from workbench.storage.statements import statement
from workbench.storage.vector_store import PassageStore
from workbench.types import IngestFailure, IngestReport, Progress

BATCH = 128  # passages embedded and written together: several seconds of the model, one short transaction
OnProgress = Callable[[Progress], None]
AfterWrite = Callable[[Any, str, NewDocument], None]  # (connection, document id, document), in the same transaction


@dataclass(frozen=True, slots=True)
class Prepared:
    """One item after reading: a document with its passages, or unchanged, or a failure."""

    item: Incoming
    document: NewDocument | None = None
    passages: tuple[NewPassage, ...] = ()
    known_id: str | None = None
    error: str | None = None


class Pipeline:
    """Brings documents into one index."""

    def __init__(
        self,
        database: Database,
        documents: Documents,
        indexes: Indexes,
        store: PassageStore,
        encoder: Encoder,
        reuse: Sequence[PassageStore] = (),
        after_write: AfterWrite | None = None,
    ) -> None:
        """``reuse`` are further indexes of the same model whose vectors may be used again."""
        self._database, self._documents, self._indexes = database, documents, indexes
        self._store, self._encoder, self._after_write = store, encoder, after_write
        self._reuse = [store, *reuse]

    def ingest(
        self,
        source_id: str,
        items: Sequence[Incoming],
        *,
        failures: Iterable[IngestFailure] = (),
        on_progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> IngestReport:
        """Bring items into a source; what is unchanged is left alone, what cannot be read is listed.

        Raises:
            Cancelled: ``should_stop`` said so; every document written before stays, whole.
        """
        began = time.perf_counter()
        tally = _Tally(len(items), on_progress, list(failures))
        known = self._documents.known(source_id, self._store.index.name)
        writer: Future[None] | None = None
        with ThreadPoolExecutor(1, thread_name_prefix="write") as pool:
            prepared = run_ahead(self._prepare(source_id, item, known) for item in items)
            with closing(prepared):
                for batch in _batches(prepared, tally):
                    _stop_if_asked(should_stop)
                    embedded = self._embed(batch, tally, should_stop)
                    if writer is not None:
                        writer.result()
                    writer = pool.submit(self._write, batch, embedded, tally)
            if writer is not None:
                writer.result()
        return tally.report(source_id, time.perf_counter() - began)

    def _prepare(self, source_id: str, item: Incoming, known: dict[str, KnownDocument]) -> Prepared:
        try:
            data = item.load()
            digest, before = content_hash(data), known.get(item.key)
            if before is not None and before.content_hash == before.indexed_hash == digest:
                return Prepared(item, known_id=before.id)
            raw = read(item, data)
        except UnreadableDocument as error:
            return Prepared(item, error=str(error))
        document = NewDocument(
            source_id=source_id,
            key=item.key,
            title=raw.title,
            text=raw.text,
            content_hash=digest,
            document_type=raw.document_type,
            path=item.path,
            url=item.url,
            language=raw.language,
            metadata=raw.metadata,
            pages=raw.pages,
            document_date=_date_of(raw.metadata),
            file=(item.name, "application/pdf", data) if item.keep_file else None,
        )
        passages = cut(
            self._store.index,
            self._encoder,
            document_id="",  # known once the document is written
            source_id=source_id,
            title=document.title,
            text=document.text,
            document_type=document.document_type,
            language=document.language,
            pages=document.pages,
        )
        return Prepared(item, document, tuple(passages))

    def _embed(
        self, batch: Sequence[Prepared], tally: _Tally, should_stop: Callable[[], bool] | None
    ) -> EmbeddedPassages:
        def on_batch(count: int) -> None:
            tally.embedding(count)
            _stop_if_asked(should_stop)

        passages = [passage for prepared in batch for passage in prepared.passages]
        return embed(passages, self._encoder, self._reuse, on_batch)

    def _write(self, batch: Sequence[Prepared], embedded: EmbeddedPassages, tally: _Tally) -> None:
        """Write whole documents: their rows, their passages and the note of what the index now holds."""
        written: list[tuple[str, bool]] = []
        passages: list[NewPassage] = []
        with self._database.transaction() as connection:
            self._indexes.take_turn(connection, self._store.index.name)
            for prepared in batch:
                assert prepared.document is not None
                document_id, added = self._documents.write(connection, prepared.document)
                written.append((document_id, added))
                passages += [replace(passage, document_id=document_id) for passage in prepared.passages]
            replaced = [document_id for document_id, added in written if not added]
            if replaced:
                removing = statement("delete_passages_of_documents", self._store.index.name)
                connection.execute(removing, {"document_ids": replaced})
            self._store.insert(connection, passages, embedded.vectors, embedded.token_bits)
            for prepared, (document_id, _) in zip(batch, written, strict=True):
                assert prepared.document is not None
                self._indexes.holding(
                    connection,
                    self._store.index.name,
                    document_id,
                    prepared.document.content_hash,
                    len(prepared.passages),
                )
                if self._after_write is not None:
                    self._after_write(connection, document_id, prepared.document)
        tally.wrote(written, len(passages), embedded.computed)


class _Tally:
    """Counts what happens, tells whoever watches, and makes the report. Two threads report to it."""

    def __init__(self, total: int, on_progress: OnProgress | None, failures: list[IngestFailure]) -> None:
        self._total, self._on_progress, self._failures = total, on_progress, failures
        self._added = self._updated = self._unchanged = self._passages = self._embedded = 0
        self._ids: list[str] = []
        self._lock = threading.Lock()

    def settled(self, prepared: Prepared) -> None:
        """An item that needs no embedding: unchanged or unreadable."""
        with self._lock:
            if prepared.error is not None:
                self._failures.append(IngestFailure(prepared.item.path or prepared.item.key, prepared.error))
            else:
                self._unchanged += 1
                self._ids.append(prepared.known_id or "")
        self._tell(prepared.item.key)

    def embedding(self, count: int) -> None:
        """``count`` more passages went through the model."""
        self._embedded += count
        self._tell(f"{self._embedded:,} passages embedded")

    def wrote(self, written: list[tuple[str, bool]], passages: int, computed: int) -> None:
        """Documents are in the database."""
        del computed
        with self._lock:
            self._added += sum(added for _, added in written)
            self._updated += sum(not added for _, added in written)
            self._passages += passages
            self._ids += [document_id for document_id, _ in written]
        self._tell(f"{self._passages:,} passages stored")

    def report(self, source_id: str, seconds: float) -> IngestReport:
        """Return the final counts."""
        return IngestReport(
            source_id=source_id,
            added=self._added,
            updated=self._updated,
            unchanged=self._unchanged,
            failures=tuple(self._failures),
            passages=self._passages,
            embedded=self._embedded,
            seconds=seconds,
            document_ids=tuple(self._ids),
        )

    def _tell(self, message: str) -> None:
        if self._on_progress is not None:
            done = self._added + self._updated + self._unchanged + len(self._failures)
            self._on_progress(Progress(min(done, self._total), self._total, message))


def _batches(prepared: Iterable[Prepared], tally: _Tally) -> Iterator[list[Prepared]]:
    """Group documents until a batch is full; what needs no embedding is settled on the way."""
    batch: list[Prepared] = []
    size = 0
    for item in prepared:
        if item.document is None:
            tally.settled(item)
            continue
        batch.append(item)
        size += len(item.passages)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _stop_if_asked(should_stop: Callable[[], bool] | None) -> None:
    if should_stop is not None and should_stop():
        raise Cancelled("Stopped; every document stored before this moment stays, whole.")


def _date_of(metadata: Any) -> date | None:
    """Return the date a document says of itself, where it says one that can be read."""
    names = ("date", "lastUpdated", "lastmod", "modified", "published", "created")
    for value in itertools.chain.from_iterable((metadata.get(name),) for name in names):
        if isinstance(value, str):
            try:
                return date.fromisoformat(value[:10])
            except ValueError:
                continue
    return None
