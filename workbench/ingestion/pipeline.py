"""The ingestion pipeline: documents are read, chunked, embedded and stored, each batch in one transaction.

Reading and chunking run ahead in one thread and writing runs behind in another, so the embedding model, which takes
most of the time, never waits. For an unchanged document (same content hash), only the hash is computed. The prefetched
bytes are limited; a larger document is read after all those before it have been embedded.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from contextvars import copy_context
from dataclasses import asdict, dataclass
from functools import partial
from typing import TypeVar

from workbench.errors import Cancelled, UnreadableDocument
from workbench.formatting import MB
from workbench.ingestion.embedding import EmbeddedPassages
from workbench.ingestion.incoming import LARGE_ITEM_BYTES, IngestItem, content_hash, read_item, sort_small_first
from workbench.ingestion.metadata import UNREAD_DATES, document_date, has_unread_date, left_out_counts, page_notes
from workbench.ingestion.ocr.document import OnPage
from workbench.ingestion.progress import PASSAGE_BYTES, DocumentChange, IngestProgress, ItemEvent, OnItems, try_model
from workbench.ingestion.readers.formats import original_type
from workbench.ingestion.readers.isolation import ParserProcess, ReadingOptions
from workbench.ingestion.writing import (
    CANCEL_CHECK_INTERVAL_S,
    CLOSE_TIMEOUT_S,
    CutDocument,
    IndexWriter,
    WriteBehind,
    WrittenDocument,
)
from workbench.storage.database import Connection, Database
from workbench.storage.documents import Documents, KnownDocument, NewDocument
from workbench.storage.jobs import Part, PartsLease
from workbench.types import (
    DocumentNotes,
    IngestFailure,
    IngestReport,
    JsonObject,
    JsonValue,
    OnProgress,
    ShouldStop,
    as_integer,
    as_items,
    as_object,
    as_text,
    as_texts,
    sum_notes,
)

# --- Batches: documents that are embedded together and stored in one transaction ---


@dataclass(frozen=True, slots=True)
class SettledItem:
    """An item that needs no embedding, because it is unchanged or unreadable."""

    place: int  # its index among the items
    item: IngestItem  # the item
    known_id: str | None = None  # id of the stored document if it is unchanged
    error: str | None = None  # reason why it is unreadable


@dataclass(frozen=True, slots=True)
class PreparedItem:
    """An item that has been read and chunked and waits for its vectors."""

    place: int  # its index among the items
    item: IngestItem  # the item
    document: NewDocument  # the document as read
    cut: CutDocument  # its passages
    refills: bool  # True if the source had this version already and only the index lacked it
    notes: tuple[str, ...] = ()  # sentences for the report about what its reader could not read


@dataclass(frozen=True, slots=True)
class PartEnd:
    """The end of a part, after its items."""

    part: Part  # the part
    room: int  # bytes of the prefetch budget that it uses


@dataclass(frozen=True, slots=True)
class ItemBatch:
    """Documents that are written in one transaction.

    Without documents and without a part, it signals that the next batch will take a long time.
    """

    items: Sequence[PreparedItem]  # the documents
    room: int  # bytes of the prefetch budget that they use
    settled: Sequence[SettledItem] = ()  # items of the same part that need no embedding
    part: Part | None = None  # the part of a shared job

    @property
    def is_pause(self) -> bool:
        """True if there is nothing to embed or record."""
        return not self.items and self.part is None

    @property
    def passages(self) -> int:
        """The number of passages of its documents."""
        return sum(len(prepared.cut.passages) for prepared in self.items)


def document_change(prepared: PreparedItem, stored: WrittenDocument) -> DocumentChange:
    """Return how a write changed the document; "unchanged" if another process stored the same version first."""
    if stored.added:
        return "added"
    return "unchanged" if stored.same and not prepared.refills else "changed"


def batch_items(
    ahead: Iterable[PreparedItem | SettledItem | PartEnd | None],
    tally: IngestProgress,
    give_back: Callable[[int], None],
    full: int,
) -> Iterator[ItemBatch]:
    """Group documents into batches of at least ``full`` passages; settle items that need no embedding.

    A key occurs once per batch. If two files have the same key, the later one replaces the earlier one in a separate
    batch.
    """
    batch: dict[str, PreparedItem] = {}
    size = 0
    for prepared in ahead:
        if isinstance(prepared, SettledItem):
            give_back(prepared.item.room)
            _report_settled(prepared, tally)
            continue
        if not isinstance(prepared, PreparedItem) or prepared.item.key in batch:
            yield _make_batch(batch)
            batch, size = {}, 0
        if isinstance(prepared, PreparedItem):
            batch[prepared.item.key] = prepared
            size += len(prepared.cut.passages)
        del prepared
        if size >= full:
            yield _make_batch(batch)
            batch, size = {}, 0
    if batch:
        yield _make_batch(batch)


def batch_parts(
    ahead: Iterable[PreparedItem | SettledItem | PartEnd | None], tally: IngestProgress
) -> Iterator[ItemBatch]:
    """Group the items of each part into a batch."""
    batch: list[PreparedItem] = []
    settled: list[SettledItem] = []
    for prepared in ahead:
        if prepared is None:
            yield ItemBatch([], 0)
        elif isinstance(prepared, PartEnd):
            yield ItemBatch(batch, prepared.room, settled, prepared.part)
            batch, settled = [], []
        elif isinstance(prepared, SettledItem):
            _report_settled(prepared, tally)
            settled.append(prepared)
        else:
            batch.append(prepared)
        del prepared


def _make_batch(batch: dict[str, PreparedItem]) -> ItemBatch:
    items = list(batch.values())
    return ItemBatch(items, sum(prepared.item.room for prepared in items))


def _report_settled(settled: SettledItem, tally: IngestProgress) -> None:
    tally.report_settled(settled.place, settled.item.path or settled.item.key, settled.known_id, settled.error)


# --- Items shared by several workers: dividing them into parts, and combining the results ---

PART_BYTES = 128 * PASSAGE_BYTES  # bytes of files per part, as much as a transaction of an ingest that is not shared


@dataclass(frozen=True, slots=True)
class SharedItems:
    """The parts of a shared ingest."""

    parts: PartsLease  # the parts
    places: Mapping[int, int]  # index among the items by the number used in parts

    def of_part(self, part: Part) -> list[int]:
        """Return the indexes of a part's items.

        Raises:
            UnreadableDocument: This machine cannot access one of them.
        """
        try:
            return [self.places[as_integer(number)] for number in as_items(part.content)]
        except KeyError as error:
            raise UnreadableDocument(
                "This machine cannot access all of the files. Make them available under the same path."
            ) from error


def divide_items(items: Sequence[IngestItem]) -> list[list[int]]:
    """Return the indexes of items by part, in ingest order. A large item is a separate part.

    If two items have the same key, there is only one part, because the later one must be stored last.
    """
    if len({item.key for item in items}) < len(items):
        return [list(range(len(items)))]
    parts: list[list[int]] = []
    size = PART_BYTES
    for place, item in sort_small_first(items):
        if size >= PART_BYTES or item.size > LARGE_ITEM_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(place)
        size += item.room or PASSAGE_BYTES
    return parts


def part_result(batch: ItemBatch, written: Sequence[tuple[str, DocumentChange]], embedded: int) -> JsonObject:
    """Return the outcome of a part for the combined report."""
    outcomes = [outcome for _, outcome in written]
    known_ids = [settled.known_id for settled in batch.settled if settled.known_id is not None]
    failures = [
        IngestFailure(settled.item.path or settled.item.key, settled.error)
        for settled in batch.settled
        if settled.error is not None
    ]
    return {
        "added": outcomes.count("added"),
        "updated": outcomes.count("changed"),
        "unchanged": outcomes.count("unchanged") + len(known_ids),
        "failures": [asdict(failure) for failure in failures],
        "passages": batch.passages,
        "embedded": embedded,
        "document_ids": [*known_ids, *(document_id for document_id, _ in written)],
        "notes": [
            {"sentences": list(prepared.notes), "left_out": prepared.document.metadata.get("left_out")}
            for prepared in batch.items
            if prepared.notes
        ],
    }


def combine_reports(
    results: Sequence[JsonObject], source_id: str, failures: Iterable[IngestFailure], seconds: float
) -> IngestReport:
    """Combine the results of all parts; ``failures`` are those that occurred before the items were divided."""
    failed = [as_object(failure) for result in results for failure in as_items(result["failures"])]

    def total(name: str) -> int:
        return sum(as_integer(result[name]) for result in results)

    return IngestReport(
        source_id=source_id,
        added=total("added"),
        updated=total("updated"),
        unchanged=total("unchanged"),
        failures=(*failures, *(IngestFailure(as_text(each["path"]), as_text(each["error"])) for each in failed)),
        passages=total("passages"),
        embedded=total("embedded"),
        seconds=seconds,
        document_ids=tuple(key for result in results for key in as_texts(result["document_ids"])),
        notes=sum_notes([_parse_notes(as_object(each)) for result in results for each in as_items(result["notes"])]),
    )


def _parse_notes(stored: Mapping[str, JsonValue]) -> DocumentNotes:
    counts = stored["left_out"] if isinstance(stored["left_out"], Mapping) else {}
    counts = {what: count for what, count in counts.items() if isinstance(count, int)}
    return DocumentNotes(tuple(as_texts(stored["sentences"])), counts)


# --- Prefetching in a thread within a byte budget ---

T = TypeVar("T")
_END_MARKER = object()
MAX_PREFETCHED = 256  # items


def prefetch(items: Iterable[T], ask: Callable[[], None] | None = None) -> Generator[T, None, None]:
    """Yield items in order while a thread computes the next ones; exceptions are also raised in order.

    ``ask`` is called repeatedly while waiting and may raise to stop. Closing the generator stops the thread after its
    current item, but waits only briefly, as that may be a large document.
    """
    waiting: queue.Queue[object] = queue.Queue(maxsize=MAX_PREFETCHED)
    stopped = threading.Event()

    def offer(item: object) -> bool:
        while not stopped.is_set():
            try:
                waiting.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def produce() -> None:
        try:
            for item in items:
                if not offer(item):
                    return
                del item
            offer(_END_MARKER)
        except BaseException as error:  # noqa: BLE001 - passed to the consumer, which raises it
            offer(_Raised(error))

    thread = threading.Thread(target=copy_context().run, args=(produce,), name="read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item = _next_item(waiting, ask)
            if item is _END_MARKER:
                return
            if isinstance(item, _Raised):
                raise item.error
            yield item  # pyright: ignore[reportReturnType]
            del item  # release it while waiting for the next one
    finally:
        stopped.set()
        thread.join(CLOSE_TIMEOUT_S)


def _next_item(waiting: queue.Queue[object], ask: Callable[[], None] | None) -> object:
    while True:
        try:
            return waiting.get(timeout=None if ask is None else CANCEL_CHECK_INTERVAL_S)
        except queue.Empty:
            if ask is not None:
                ask()


class ByteBudget:
    """A budget of bytes for prefetched items. An item larger than the whole budget is admitted alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0
        self._closed = False
        self._changed = threading.Condition()

    def fits(self, size: int) -> bool:
        """Return whether ``take`` would return without waiting."""
        with self._changed:
            return self._fits(size)

    def take(self, size: int) -> bool:
        """Take bytes from the budget, waiting if necessary; return False if the budget was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._fits(size))
            self._taken += size
            return not self._closed

    def give_back(self, size: int) -> None:
        """Return bytes to the budget."""
        with self._changed:
            self._taken -= size
            self._changed.notify_all()

    def close(self) -> None:
        """Wake all waiting threads; no further items are needed."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _fits(self, size: int) -> bool:
        return self._taken == 0 or self._taken + size <= self._size


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


# --- The pipeline ---

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
