"""The items of an ingest shared by several workers: dividing them into parts, and combining the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from workbench.errors import UnreadableDocument
from workbench.ingestion.incoming import LARGE_ITEM_BYTES, IngestItem, sort_small_first
from workbench.ingestion.progress import PASSAGE_BYTES, DocumentChange
from workbench.storage.job_parts import Part, PartsLease
from workbench.types import (
    DocumentNotes,
    IngestFailure,
    IngestReport,
    JsonObject,
    JsonValue,
    as_integer,
    as_items,
    as_object,
    as_text,
    as_texts,
    sum_notes,
)

if TYPE_CHECKING:
    from workbench.ingestion.batches import ItemBatch

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
