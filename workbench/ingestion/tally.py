"""The count of an ingest so far: figures for its report, progress for those who watch, news of each item."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.ingestion.forecast import Forecast
from workbench.storage.database import Connection
from workbench.types import IngestFailure, IngestReport, OnProgress, Progress

OFTEN = 0.25  # seconds between two words on what is being read


DocumentChange = Literal["added", "changed", "unchanged"]  # of one document


@dataclass(frozen=True, slots=True)
class ItemNews:
    """News of one item, by its place among the items; "busy" while its passages go through the model."""

    place: int
    state: DocumentChange | Literal["busy", "failed"]
    passages: int = 0
    error: str | None = None


@dataclass(slots=True)
class _BatchUnderWay:
    """A batch from when it goes into the model until it is written; the model takes ``model_share`` of its time."""

    items: int
    passages: int
    model_share: float
    embedded: int = 0
    stored: int = 0

    @property
    def part(self) -> float:
        """How far it is, 0..1."""
        return min(1.0, (self.embedded * self.model_share + self.stored * (1 - self.model_share)) / self.passages)


OnItems = Callable[[Sequence[ItemNews], Connection | None], None]  # (news, the transaction that writes them, if any)


class Tally:
    """The counter of an ingest's events: it tells those who watch and makes the report. Three threads report to it."""

    def __init__(
        self,
        sizes: Sequence[int],
        on_progress: OnProgress | None,
        failures: list[IngestFailure],
        on_items: OnItems | None = None,
        pace: float | None = None,
    ) -> None:
        """Take ``sizes``, the bytes of the items, 0 where they are not known; ``pace`` as in ``Forecast``."""
        self._total, self._on_progress, self._failures, self._on_items = len(sizes), on_progress, failures, on_items
        self._added = self._updated = self._unchanged = self._passages = self._embedded = 0
        self._batches: dict[int, _BatchUnderWay] = {}  # by the place of the first item, until they are written
        self._batch: _BatchUnderWay | None = None  # that went into the model last, until it is written
        self._vectors = 0  # passages that have one
        self._ids: list[str] = []
        self._notes: list[str] = []
        self._forecast = Forecast(sizes, pace)
        self._told = float("-inf")
        self._lock = threading.Lock()

    @property
    def has_rate(self) -> bool:
        """True once it is known how long the model takes."""
        return self._forecast.has_rate

    def settled(self, place: int, name: str, known_id: str | None, error: str | None) -> None:
        """Count an item that needs no embedding: unchanged (``known_id``), or unreadable and why (``error``)."""
        with self._lock:
            self._forecast.settled(place)
            if error is not None:
                self._failures.append(IngestFailure(name, error))
            else:
                self._unchanged += 1
                self._ids.append(known_id or "")
        if self._on_items is not None:
            self._on_items([ItemNews(place, "failed" if error else "unchanged", 0, error)], None)
        self._tell(name)

    def reading(self, name: str) -> None:
        """Tell now and then that an item is being read and cut, while nothing goes through the model."""
        if not self._batch and time.monotonic() - self._told > OFTEN:
            self._tell(f"reading {name}, {self._of_passages(self._vectors)} embedded")

    def page(self, name: str, page: int, pages: int, seconds: float) -> None:
        """Report the page of an item that is read by OCR now, and the seconds that the one before it took."""
        with self._lock:
            self._forecast.read(page, pages, seconds)
        self._tell(f"reading {name} (page {page:,} of {pages:,}), {self._of_passages(self._vectors)} embedded")

    def note(self, notes: Sequence[str]) -> None:
        """Keep sentences on a document for the report."""
        with self._lock:
            self._notes += notes

    def begins(self, places: Sequence[int], passages: Sequence[int]) -> None:
        """Note that the passages of these items now go through the model."""
        with self._lock:
            for place, count in zip(places, passages, strict=True):
                self._forecast.cut(place, count)
            self._batch = _BatchUnderWay(len(places), max(1, sum(passages)), self._forecast.model_share)
            self._batches[places[0]] = self._batch
        if self._on_items is not None:
            self._on_items([ItemNews(place, "busy") for place in places], None)

    def model_took(self, passages: int, seconds: float) -> None:
        """Note how long so many passages kept the model busy."""
        with self._lock:
            self._forecast.model_took(passages, seconds)
        self._tell(f"{self._of_passages(self._vectors)} embedded")

    def waits(self) -> None:
        """Tell that there is nothing to do here but to help others."""
        self._tell(f"{self._of_passages(self._vectors)} embedded")

    def embedding(self, count: int, seconds: float = 0.0, anew: bool = True) -> None:
        """Count passages that have their vectors; ``anew`` when they kept models busy for so many seconds."""
        with self._lock:
            if anew:
                self._forecast.model_took(count, seconds)
            self._embedded += count if anew else 0
            self._vectors += count
            if self._batch is not None:
                self._batch.embedded += count
            self._forecast.embedded(count)
        self._tell(f"{self._of_passages(self._vectors)} embedded")

    def storing(self, place: int, count: int) -> None:
        """Count ``count`` more passages in the transaction that writes the batch of this item."""
        with self._lock:
            self._forecast.stored(count)
            batch = self._batches[place]
            batch.stored += count
        if batch is self._batch and batch.embedded >= batch.passages:
            self._tell(f"{self._of_passages(self._passages + batch.stored)} stored")

    def wrote(self, place: int, written: list[tuple[str, DocumentChange]], passages: int, seconds: float) -> None:
        """Count the documents (id, outcome) of this item's batch, which are now in the database."""
        with self._lock:
            if self._batches.pop(place) is self._batch:
                self._batch = None
            outcomes = [outcome for _, outcome in written]
            self._added += outcomes.count("added")
            self._updated += outcomes.count("changed")
            self._unchanged += outcomes.count("unchanged")
            self._passages += passages
            self._ids += [document_id for document_id, _ in written]
            self._forecast.storing_took(passages, seconds)
        self._tell(f"{self._of_passages(self._passages)} stored")

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
            notes=tuple(self._notes),
        )

    def _of_passages(self, count: int) -> str:
        about = "" if self._forecast.is_exact else "about "
        return f"{count:,} of {about}{self._forecast.total:,} passages"

    def _tell(self, message: str) -> None:
        if self._on_progress is None:
            return
        with self._lock:
            done = min(self._total, self._added + self._updated + self._unchanged + len(self._failures))
            under_way = sum(batch.items for batch in self._batches.values()) or 1
            part = sum(batch.items * batch.part for batch in self._batches.values()) / under_way
            left, share = self._forecast.seconds_left, self._forecast.share
            self._told = time.monotonic()
        self._on_progress(Progress(done, self._total, message, part, left, under_way, share))
