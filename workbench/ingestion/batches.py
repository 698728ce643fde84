"""Batches of an ingest: documents that are embedded together and stored in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from workbench.ingestion.incoming import IngestItem
from workbench.ingestion.progress import DocumentChange, IngestProgress
from workbench.ingestion.writing import CutDocument, WrittenDocument
from workbench.storage.documents import NewDocument
from workbench.storage.job_parts import Part


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
