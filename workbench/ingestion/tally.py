"""What an ingest has done so far: counts for its report, progress for whoever watches, news of each item."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workbench.types import IngestFailure, IngestReport, Progress


@dataclass(frozen=True, slots=True)
class ItemNews:
    """What happens to one item, by its place among the items; "busy" while its passages go through the model."""

    place: int
    state: Literal["busy", "added", "changed", "unchanged", "failed"]
    passages: int = 0
    error: str | None = None


OnItems = Callable[[Sequence[ItemNews], Any], None]  # (news, connection of the transaction that writes them, or None)


class Tally:
    """Counts what happens, tells whoever watches, and makes the report. Two threads report to it."""

    def __init__(
        self,
        total: int,
        on_progress: Callable[[Progress], None] | None,
        failures: list[IngestFailure],
        on_items: OnItems | None = None,
    ) -> None:
        self._total, self._on_progress, self._failures, self._on_items = total, on_progress, failures, on_items
        self._added = self._updated = self._unchanged = self._passages = self._embedded = 0
        self._batch = self._batch_done = 0  # passages of the batch that goes through the model
        self._ids: list[str] = []
        self._lock = threading.Lock()

    def settled(self, place: int, name: str, known_id: str | None, error: str | None) -> None:
        """An item that needs no embedding: unchanged (``known_id``), or unreadable and why (``error``)."""
        with self._lock:
            if error is not None:
                self._failures.append(IngestFailure(name, error))
            else:
                self._unchanged += 1
                self._ids.append(known_id or "")
        if self._on_items is not None:
            self._on_items([ItemNews(place, "failed" if error else "unchanged", 0, error)], None)
        self._tell(name)

    def begins(self, places: Sequence[int], passages: int) -> None:
        """The passages of these items now go through the model."""
        self._batch, self._batch_done = passages, 0
        if self._on_items is not None:
            self._on_items([ItemNews(place, "busy") for place in places], None)

    def embedding(self, count: int) -> None:
        """``count`` more passages went through the model."""
        self._embedded += count
        self._batch_done += count
        self._tell(f"{self._embedded:,} passages embedded")

    def wrote(self, written: list[tuple[str, bool]], passages: int) -> None:
        """Documents (id, whether they are new) are in the database."""
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
            part = self._batch_done / self._batch if self._batch else 0.0
            self._on_progress(Progress(min(done, self._total), self._total, message, min(1.0, part)))
