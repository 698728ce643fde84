"""The ingestion pipeline: documents are read, chunked, embedded and stored, each batch in one transaction.

Reading and chunking run ahead in one thread and writing runs behind in another, so the embedding model, which takes
most of the time, never waits. For an unchanged document (same content hash), only the hash is computed. The prefetched
bytes are limited; a larger document is read after all those before it have been embedded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from workbench.errors import Cancelled, UnreadableDocument
from workbench.formatting import MB
from workbench.ingestion.batches import (
    ItemBatch,
    PartEnd,
    PreparedItem,
    SettledItem,
    batch_items,
    batch_parts,
    document_change,
)
from workbench.ingestion.embedding import EmbeddedPassages
from workbench.ingestion.incoming import LARGE_ITEM_BYTES, IngestItem, content_hash, read_item, sort_small_first
from workbench.ingestion.metadata import UNREAD_DATES, document_date, has_unread_date, left_out_counts, page_notes
from workbench.ingestion.ocr.document import OnPage
from workbench.ingestion.prefetch import ByteBudget, WriteBehind, prefetch
from workbench.ingestion.progress import DocumentChange, IngestProgress, ItemEvent, OnItems, try_model
from workbench.ingestion.readers.formats import original_type
from workbench.ingestion.readers.isolation import ParserProcess, ReadingOptions
from workbench.ingestion.sharing import SharedItems, combine_reports, part_result
from workbench.ingestion.writing import IndexWriter
from workbench.storage.database import Connection, Database
from workbench.storage.documents import Documents, KnownDocument, NewDocument
from workbench.types import DocumentNotes, IngestFailure, IngestReport, OnProgress, ShouldStop

MAX_PREFETCH_BYTES = 4 * MB  # bytes of text that may be prepared and not yet being written
MAX_PREFETCHED_PARTS = 2  # parts that are not being written: one in the model, one before it
AfterWrite = Callable[[Connection, str, NewDocument], None]  # (connection, document id, document)


@dataclass(frozen=True, slots=True)
class _PreparationContext:
    """Settings that all items of an ingest need for reading and chunking."""

    source_id: str
    known_documents: dict[str, KnownDocument]
    tally: IngestProgress
    stop_if_asked: Callable[[], None]
    parser: ParserProcess
    options: ReadingOptions


class Pipeline:
    """Ingests documents into one index."""

    def __init__(
        self,
        database: Database,
        documents: Documents,
        writer: IndexWriter,
        after_write: AfterWrite | None = None,
        on_items: OnItems | None = None,
        pace: float | None = None,
    ) -> None:
        self._pace = pace
        self._database, self._documents, self._writer = database, documents, writer
        self._after_write, self._on_items = after_write, on_items

    def ingest(
        self,
        source_id: str,
        items: Sequence[IngestItem],
        *,
        failures: Iterable[IngestFailure] = (),
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
        shared: SharedItems | None = None,
    ) -> IngestReport:
        """Ingest items into a source; unchanged ones are skipped, unreadable ones are reported.

        Args:
            failures: Failures from before the ingest, for the report.
            on_progress: Receives the progress.
            should_stop: True to stop.
            shared: Parts of a job shared by several workers, a transaction each; the report covers all workers.

        Raises:
            Cancelled: ``should_stop`` returned true. Documents written before are kept.
            PartLost: Another worker took over a part.
        """
        began, found_failures = time.perf_counter(), list(failures)
        tally = IngestProgress(
            [item.size for item in items], on_progress, list(found_failures), self._on_items, self._pace
        )
        known_documents = self._documents.by_key(source_id, self._writer.index.name)
        ask = partial(_stop_if_asked, should_stop)
        room = ByteBudget(MAX_PREFETCH_BYTES if shared is None else MAX_PREFETCHED_PARTS)
        parser = ParserProcess(ask)
        encoding, hidden = self._documents.fetch_reading(source_id)
        options = ReadingOptions(encoding, skip_hidden=hidden == "skip")
        preparing = _PreparationContext(source_id, known_documents, tally, ask, parser, options)
        if shared is None:
            ahead = prefetch(self._prepare_items(items, room, preparing), ask=ask)
        else:
            ahead = prefetch(self._prepare_parts(items, shared, room, preparing), ask=ask)
        with parser, WriteBehind(self._database) as writing, closing(ahead), closing(room):
            for batch in batch_items(ahead, tally, room.give_back, self._writer.batch) if shared is None else (
                batch_parts(ahead, tally)
            ):  # fmt: skip
                ask()
                if batch.is_pause:
                    self._use_pause(tally, writing, ask, is_shared=shared is not None)
                    continue
                embedded = self._embed(batch, tally, should_stop)
                writing.wait(ask)
                write = partial(self._write, batch, embedded, tally, shared)
                writing.submit(write, partial(_report_written, batch, tally))
                room_taken, size = batch.room, sum(prepared.item.room for prepared in batch.items)
                del batch, embedded, write  # release a large document before the next one is read
                if size > MAX_PREFETCH_BYTES:
                    writing.wait(ask)
                room.give_back(room_taken)
            writing.wait(ask)
        return _make_report(source_id, tally, shared, found_failures, time.perf_counter() - began)

    def _use_pause(
        self, tally: IngestProgress, writing: WriteBehind, ask: Callable[[], None], *, is_shared: bool
    ) -> None:
        """Load the model while no batch is ready, and help other workers with a shared job."""
        self._try_model(tally)
        if is_shared:
            writing.wait(ask)  # raises an error of the write that other workers wait for
            self._writer.help(lambda _: ask())
            tally.report_waiting()

    def _prepare_items(
        self, items: Sequence[IngestItem], room: ByteBudget, preparing: _PreparationContext
    ) -> Iterator[PreparedItem | SettledItem | None]:
        """Yield the prepared items, small ones first.

        None is yielded before a large item is chunked and before an item that waits for room, so that earlier ones can
        be written.
        """
        for place, item in sort_small_first(items):
            if not room.fits(item.room):
                yield None
            if not room.take(item.room):
                return
            yield from self._prepare(place, item, preparing)

    def _prepare_parts(
        self, items: Sequence[IngestItem], shared: SharedItems, room: ByteBudget, preparing: _PreparationContext
    ) -> Iterator[PreparedItem | SettledItem | PartEnd | None]:
        """Yield the items of each part and its end; None while waiting for other workers' parts.

        A part is not claimed until the previous one is being embedded, which leaves the others for other workers.
        """
        taking = shared.parts.all_taken()
        while room.take(1):
            try:
                part = next(taking)
            except StopIteration:
                return
            if part is None:
                room.give_back(1)
                yield None
                continue
            places, taken = shared.of_part(part), 1
            if sum(items[place].room for place in places) > MAX_PREFETCH_BYTES:  # it exceeds the budget and goes alone
                if not room.take(MAX_PREFETCHED_PARTS - 1):
                    return
                taken = MAX_PREFETCHED_PARTS
            for place in places:
                yield from self._prepare(place, items[place], preparing)
            yield PartEnd(part, taken)

    def _prepare(
        self, place: int, item: IngestItem, preparing: _PreparationContext
    ) -> Iterator[PreparedItem | SettledItem | None]:
        """Yield one item after reading and chunking it; None before a large one is chunked."""
        tally, stop_if_asked = preparing.tally, preparing.stop_if_asked
        shown = item.title or item.name

        def ask(_: int) -> None:
            stop_if_asked()
            tally.report_reading(shown)

        page_began: float | None = None

        def on_page(page: int, pages: int, is_slow: bool) -> None:
            nonlocal page_began
            stop_if_asked()
            before, page_began = page_began, time.perf_counter() if is_slow else None
            seconds = None if page_began is None else page_began - (before or page_began)
            tally.report_page(shown, page, pages, seconds)

        before = preparing.known_documents.get(item.key)
        try:
            document = self._read(preparing, item, before, on_page)
        except UnreadableDocument as error:
            yield SettledItem(place, item, error=str(error))
            return
        except MemoryError:
            yield SettledItem(place, item, error="It needs more memory than there is. Split the file.")
            return
        if isinstance(document, KnownDocument):
            yield SettledItem(place, item, known_id=document.id)
            return
        notes = page_notes(item.path or item.url or item.name, document.metadata)
        tally.note(DocumentNotes(notes, left_out_counts(document.metadata)))
        if item.size > LARGE_ITEM_BYTES:
            yield None
        refills = before is not None and before.content_hash == document.content_hash
        try:
            cut = self._writer.cut(document, ask)
        except UnreadableDocument as error:  # of a component of the index
            yield SettledItem(place, item, error=str(error))
            return
        yield PreparedItem(place, item, document, cut, refills, notes)

    def _read(
        self, preparing: _PreparationContext, item: IngestItem, before: KnownDocument | None, on_page: OnPage
    ) -> NewDocument | KnownDocument:
        """Read an item; return the stored document if it is unchanged."""
        data = item.load()
        digest = content_hash(data, preparing.options)
        if before is not None and before.content_hash == before.indexed_hash == digest:
            return before
        raw = read_item(item, data, on_page, preparing.parser, preparing.options)
        media_type = original_type(item.name)
        metadata, day = raw.metadata, document_date(raw.metadata, item.name if item.url is None else "")
        if day is None and has_unread_date(metadata):
            metadata = {**metadata, "left_out": {**left_out_counts(metadata), UNREAD_DATES: 1}}
        elif day is None:
            day = item.file_date
        return NewDocument(
            source_id=preparing.source_id,
            key=item.key,
            title=raw.title,
            text=raw.text,
            content_hash=digest,
            document_type=raw.document_type,
            path=item.path,
            url=item.url,
            language=raw.language,
            metadata=metadata,
            pages=raw.pages,
            scans=raw.scans,
            document_date=day,
            file=(item.name, media_type, data) if media_type else None,
        )

    def _try_model(self, tally: IngestProgress) -> None:
        """Load the model and measure its time per passage while the first ones are being chunked, if it is local."""
        if self._writer.embeds_here and not tally.has_rate:
            tally.report_loading()
            tally.record_model_time(*try_model(self._writer.encoder))

    def _embed(self, batch: ItemBatch, tally: IngestProgress, should_stop: ShouldStop | None) -> EmbeddedPassages:
        last = time.perf_counter()

        def on_batch(count: int) -> None:
            nonlocal last
            if count:
                last, since = time.perf_counter(), last
                tally.count_embedded(count, last - since)
            _stop_if_asked(should_stop)

        if batch.items:
            places = [prepared.place for prepared in batch.items]
            tally.begin_batch(places, [len(prepared.cut.passages) for prepared in batch.items])
            if self._writer.embeds_here and not tally.has_rate:
                tally.report_loading()
        cut = [prepared.cut for prepared in batch.items]
        return self._writer.embed(cut, on_batch, partial(tally.count_embedded, is_new=False))

    def _write(
        self,
        batch: ItemBatch,
        embedded: EmbeddedPassages,
        tally: IngestProgress,
        shared: SharedItems | None,
        connection: Connection,
    ) -> tuple[list[tuple[str, DocumentChange]], float]:
        """Write and report documents, and mark their part as done, in one transaction.

        Returns:
            (id, outcome) of each document, and the seconds it took.
        """
        began = time.perf_counter()
        documents = self._write_documents(batch.items, embedded, tally, connection) if batch.items else []
        if shared is not None and batch.part is not None:
            shared.parts.done(connection, batch.part, part_result(batch, documents, embedded.computed))
        return documents, time.perf_counter() - began

    def _write_documents(
        self, items: Sequence[PreparedItem], embedded: EmbeddedPassages, tally: IngestProgress, connection: Connection
    ) -> list[tuple[str, DocumentChange]]:
        cut = [prepared.cut for prepared in items]
        written = self._writer.write(connection, cut, embedded, partial(tally.count_stored, items[0].place))
        if self._after_write is not None:
            for prepared, stored in zip(items, written, strict=True):
                self._after_write(connection, stored.id, prepared.document)
        outcomes: list[DocumentChange] = [
            document_change(each, stored) for each, stored in zip(items, written, strict=True)
        ]
        if self._on_items is not None:
            news = zip(items, outcomes, strict=True)
            self._on_items(
                [ItemEvent(each.place, outcome, len(each.cut.passages)) for each, outcome in news], connection
            )
        return [(stored.id, outcome) for stored, outcome in zip(written, outcomes, strict=True)]


def _make_report(
    source_id: str, tally: IngestProgress, shared: SharedItems | None, failures: list[IngestFailure], seconds: float
) -> IngestReport:
    """Return the report of an ingest; for a shared job, it covers all workers."""
    if shared is None:
        return tally.report(source_id, seconds)
    return combine_reports([result for _, result in shared.parts.results()], source_id, failures, seconds)


def _report_written(
    batch: ItemBatch, tally: IngestProgress, written: tuple[list[tuple[str, DocumentChange]], float]
) -> None:
    documents, seconds = written
    if batch.items:
        tally.report_written(batch.items[0].place, documents, batch.passages, seconds)


def _stop_if_asked(should_stop: ShouldStop | None) -> None:
    if should_stop is not None and should_stop():
        raise Cancelled("Stopped. Documents stored so far are kept.")
