"""The batches of an ingest: documents that go through the model together and into the database in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from workbench.ingestion.incoming import Incoming
from workbench.ingestion.progress import DocumentChange, Tally
from workbench.ingestion.writing import CutDocument, WrittenDocument
from workbench.storage.documents import NewDocument
from workbench.storage.job_parts import Part


@dataclass(frozen=True, slots=True)
class SettledItem:
    """One item that needs no embedding: it is unchanged, or cannot be read; ``place`` is its place among the items."""

    place: int
    item: Incoming
    known_id: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PreparedItem:
    """One item as a document that is cut and waits for its vectors; ``place`` is its place among the items.

    ``refills`` when the source had this version before the ingest began, and only the index lacked it. ``notes`` are
    sentences on its pages for the report.
    """

    place: int
    item: Incoming
    document: NewDocument
    cut: CutDocument
    refills: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartEnd:
    """The end of a part whose items came before it; ``room`` is what it takes up while it runs ahead."""

    part: Part
    room: int


@dataclass(frozen=True, slots=True)
class ItemBatch:
    """Documents of one transaction, with the items of the same part that need none; ``room`` is what they take up.

    Without documents and without a part it says that the next one takes long to come.
    """

    items: Sequence[PreparedItem]
    room: int
    settled: Sequence[SettledItem] = ()
    part: Part | None = None

    @property
    def is_pause(self) -> bool:
        """True where there is nothing to embed and nothing to note."""
        return not self.items and self.part is None

    @property
    def passages(self) -> int:
        """The passages of its documents."""
        return sum(len(prepared.cut.passages) for prepared in self.items)


def change_of(prepared: PreparedItem, stored: WrittenDocument) -> DocumentChange:
    """Return what a write did to the document: nothing where another process stored the same version meanwhile."""
    if stored.added:
        return "added"
    return "unchanged" if stored.same and not prepared.refills else "changed"


def batches_of_items(
    ahead: Iterable[PreparedItem | SettledItem | PartEnd | None],
    tally: Tally,
    give_back: Callable[[int], None],
    full: int,
) -> Iterator[ItemBatch]:
    """Group documents until a batch is ``full`` (passages); items that need no embedding are settled on the way.

    One key stands once in a batch: of two files of one name the later takes the place of the earlier, whole.
    """
    batch: dict[str, PreparedItem] = {}
    size = 0
    for prepared in ahead:
        if isinstance(prepared, SettledItem):
            give_back(prepared.item.room)
            _settle(prepared, tally)
            continue
        if not isinstance(prepared, PreparedItem) or prepared.item.key in batch:
            yield _whole(batch)
            batch, size = {}, 0
        if isinstance(prepared, PreparedItem):
            batch[prepared.item.key] = prepared
            size += len(prepared.cut.passages)
        del prepared
        if size >= full:
            yield _whole(batch)
            batch, size = {}, 0
    if batch:
        yield _whole(batch)


def batches_of_parts(ahead: Iterable[PreparedItem | SettledItem | PartEnd | None], tally: Tally) -> Iterator[ItemBatch]:
    """Group the items of each part."""
    batch: list[PreparedItem] = []
    settled: list[SettledItem] = []
    for prepared in ahead:
        if prepared is None:
            yield ItemBatch([], 0)
        elif isinstance(prepared, PartEnd):
            yield ItemBatch(batch, prepared.room, settled, prepared.part)
            batch, settled = [], []
        elif isinstance(prepared, SettledItem):
            _settle(prepared, tally)
            settled.append(prepared)
        else:
            batch.append(prepared)
        del prepared


def _whole(batch: dict[str, PreparedItem]) -> ItemBatch:
    items = list(batch.values())
    return ItemBatch(items, sum(prepared.item.room for prepared in items))


def _settle(settled: SettledItem, tally: Tally) -> None:
    tally.settled(settled.place, settled.item.path or settled.item.key, settled.known_id, settled.error)
