"""Progress of an ingest: counts for its report, a forecast, progress messages and the events of each item."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from workbench.formatting import KB
from workbench.storage.database import Connection
from workbench.types import DocumentNotes, IngestFailure, IngestReport, OnProgress, Progress, sum_notes

if TYPE_CHECKING:
    from workbench.models.encoder import Encoder

# --- Forecast of passages and seconds left ---

PASSAGE_BYTES = 650  # bytes of a file per passage of 200 tokens, including half-filled ones and headings
TRUSTED_BYTES = 50 * KB  # bytes after which the measured density weighs as much as PASSAGE_BYTES
INITIAL_SECONDS_PER_PASSAGE = (
    0.033  # seconds per passage before any is embedded: MiniLM on two cores (docs/benchmarks.md)
)
INITIAL_STORE_SECONDS_PER_PASSAGE = 0.004  # seconds to store a passage before any is stored
TRUSTED_EMBEDDED_PASSAGES = 64  # embedded passages whose pace weighs as much as the previous ingest's
TRUSTED_STORED_PASSAGES = 500  # stored passages whose pace weighs as much as STORING
CHUNK_SECONDS_PER_BYTE = 1.5e-6  # seconds to read and chunk a byte
TRIAL_PASSAGES, TRIAL_WORDS = 12, 160  # passages, and words of each, embedded to measure the pace


class Forecast:
    """Forecast of the passages and seconds left, based on progress so far. Not thread-safe."""

    def __init__(self, sizes: Sequence[int], pace: float | None = None) -> None:
        """Args:
        sizes: Bytes of the items, 0 if unknown; each counts as one passage at least.
        pace: Seconds per passage in the previous ingest, including storing, if known.
        """
        self._pace, self._began = pace, time.monotonic()
        self._sizes = {place: max(size, PASSAGE_BYTES) for place, size in enumerate(sizes)}
        self._waiting = set(self._sizes)
        self._waiting_bytes = sum(self._sizes.values())
        self._last = max(self._sizes, key=lambda place: self._sizes[place], default=0)
        self._cut_bytes = self._cut = self._embedded = self._stored = self._most = 0
        self._model_passages, self._model_seconds = 0, 0.0
        self._stored_passages, self._storing_seconds = 0, 0.0
        self._pages_read, self._read_seconds, self._reading_left = 0, 0.0, 0.0  # for pages read by OCR

    def record_settled(self, place: int) -> None:
        """Record that an item has no new passages, because it is unchanged or unreadable."""
        self._reading_left = 0.0
        if place in self._waiting:
            self._waiting.remove(place)
            self._waiting_bytes -= self._sizes[place]

    def record_cut(self, place: int, passages: int) -> None:
        """Record the number of passages of an item."""
        self.record_settled(place)
        self._cut_bytes += self._sizes[place]
        self._cut += passages
        self._most = max(self._most, passages)

    def record_embedded(self, passages: int) -> None:
        """Count passages with vectors, computed or reused."""
        self._embedded += passages

    def record_stored(self, passages: int) -> None:
        """Count passages that have been written in a transaction."""
        self._stored += passages

    def record_model_time(self, passages: int, seconds: float) -> None:
        """Record how long the model took for some passages."""
        self._model_passages += passages
        self._model_seconds += seconds

    def record_storing_time(self, passages: int, seconds: float) -> None:
        """Record how long the database took for some passages."""
        self._stored_passages += passages
        self._storing_seconds += seconds

    def record_page(self, page: int, pages: int, seconds: float) -> None:
        """Record the seconds spent on reading a document up to a page."""
        self._read_seconds += seconds
        self._pages_read += seconds > 0
        self._reading_left = (pages - page + 1) * self._read_seconds / max(1, self._pages_read)

    @property
    def has_rate(self) -> bool:
        """True once the pace of the model is known."""
        return self._model_passages > 0

    @property
    def total(self) -> int:
        """Number of all passages; an estimate until ``is_exact`` is true."""
        return self._cut + round(self._waiting_bytes * self._density)

    @property
    def is_exact(self) -> bool:
        """True once all items are chunked."""
        return not self._waiting

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds left, or None if the pace of the model is unknown.

        Storing runs in parallel with embedding, so the slower of the two determines the time. The last item, which is
        the largest, is chunked before and stored after them. Time for OCR pages is added.
        """
        to_embed = max(0, self.total - self._embedded)
        if not self._model_passages and to_embed:
            left = to_embed * (self._pace or 0.0)
            return left if time.monotonic() - self._began < left else None  # a late model refutes the previous pace
        waiting = self._sizes[self._last] if self._last in self._waiting else 0
        to_store = max(0, self.total - self._stored)
        last = min(max(self._most, round(waiting * self._density)), to_store)
        slowest = max(
            to_embed * self._seconds_to_embed + last * self._seconds_to_store, to_store * self._seconds_to_store
        )
        return self._reading_left + waiting * CHUNK_SECONDS_PER_BYTE + slowest

    @property
    def share(self) -> float | None:
        """Share of the work done (0..1), weighted by the time of each stage; None if there is no work."""
        embedding = (
            self._seconds_to_embed
            if self._model_passages or self._pace is not None
            else 4 * INITIAL_STORE_SECONDS_PER_PASSAGE
        )
        whole = self.total * (embedding + self._seconds_to_store) + self._read_seconds + self._reading_left
        done = self._embedded * embedding + self._stored * self._seconds_to_store + self._read_seconds
        return min(1.0, done / whole) if whole else None

    @property
    def model_share(self) -> float:
        """Share (0..1) of a passage's time spent in the model; the rest is storing."""
        model = (
            self._model_seconds / self._model_passages
            if self._model_passages
            else 4 * INITIAL_STORE_SECONDS_PER_PASSAGE
        )
        return model / (model + self._seconds_to_store)

    @property
    def _density(self) -> float:
        return (self._cut + TRUSTED_BYTES / PASSAGE_BYTES) / (self._cut_bytes + TRUSTED_BYTES)

    @property
    def _seconds_to_embed(self) -> float:
        """Seconds per passage in the model. The first batches run cold and weigh less than the known pace."""
        if self._pace is None:
            return self._model_seconds / max(1, self._model_passages)
        known = max(0.0, self._pace - INITIAL_STORE_SECONDS_PER_PASSAGE)
        return (self._model_seconds + TRUSTED_EMBEDDED_PASSAGES * known) / (
            self._model_passages + TRUSTED_EMBEDDED_PASSAGES
        )

    @property
    def _seconds_to_store(self) -> float:
        return (self._storing_seconds + TRUSTED_STORED_PASSAGES * INITIAL_STORE_SECONDS_PER_PASSAGE) / (
            self._stored_passages + TRUSTED_STORED_PASSAGES
        )


def try_model(encoder: Encoder) -> tuple[int, float]:
    """Embed a few passages to measure the pace; return (passages, seconds)."""
    texts = [f"{number} " * TRIAL_WORDS for number in range(TRIAL_PASSAGES)]
    encoder.encode(texts[:1])  # loads the model
    begun = time.perf_counter()
    encoder.encode(texts)
    return TRIAL_PASSAGES, time.perf_counter() - begun


MESSAGE_INTERVAL_S = 0.25  # seconds between messages about the item being read


DocumentChange = Literal["added", "changed", "unchanged"]  # outcome of one document


@dataclass(frozen=True, slots=True)
class ItemEvent:
    """An event of one item."""

    place: int  # its index among the items
    state: DocumentChange | Literal["busy", "failed"]  # "busy" while its passages are being embedded, else its outcome
    passages: int = 0  # number of its passages
    error: str | None = None  # why it failed


@dataclass(slots=True)
class _BatchInProgress:
    """A batch from the start of its embedding until it is written."""

    items: int  # number of its items
    passages: int  # number of its passages
    model_share: float  # share (0..1) of its time spent in the model
    embedded: int = 0  # number of embedded passages
    stored: int = 0  # number of stored passages

    @property
    def part(self) -> float:
        """Share of the batch that is done, 0..1."""
        return min(1.0, (self.embedded * self.model_share + self.stored * (1 - self.model_share)) / self.passages)


OnItems = Callable[[Sequence[ItemEvent], Connection | None], None]  # (events, transaction that writes them)


class IngestProgress:
    """Counts the events of an ingest, reports progress and builds the final report. Used by three threads."""

    def __init__(
        self,
        sizes: Sequence[int],
        on_progress: OnProgress | None,
        failures: list[IngestFailure],
        on_items: OnItems | None = None,
        pace: float | None = None,
    ) -> None:
        """Args:
        sizes: Bytes of the items; 0 if unknown.
        on_progress: Receives the progress.
        failures: Failures so far; new ones are appended.
        on_items: Receives events of items.
        pace: Seconds per passage in the previous ingest.
        """
        self._total, self._on_progress, self._failures, self._on_items = len(sizes), on_progress, failures, on_items
        self._added = self._updated = self._unchanged = self._passages = self._embedded = 0
        self._batches: dict[int, _BatchInProgress] = {}  # by index of the first item, until written
        self._batch: _BatchInProgress | None = None  # the latest batch in the model, until written
        self._vectors = 0  # passages with a vector
        self._ids: list[str] = []
        self._notes: list[DocumentNotes] = []
        self._forecast = Forecast(sizes, pace)
        self._last_report = float("-inf")
        self._is_loading = False  # whether the model is being loaded
        self._lock = threading.Lock()

    @property
    def has_rate(self) -> bool:
        """True once the pace of the model is known."""
        return self._forecast.has_rate

    def report_settled(self, place: int, name: str, known_id: str | None, error: str | None) -> None:
        """Count an item that needs no embedding because it is unchanged (``known_id``) or unreadable (``error``)."""
        with self._lock:
            self._forecast.record_settled(place)
            if error is not None:
                self._failures.append(IngestFailure(name, error))
            else:
                self._unchanged += 1
                self._ids.append(known_id or "")
        if self._on_items is not None:
            self._on_items([ItemEvent(place, "failed" if error else "unchanged", 0, error)], None)
        self._tell(name)

    def report_reading(self, name: str) -> None:
        """Report from time to time that an item is being read, while no batch is being embedded."""
        if not self._batch and time.monotonic() - self._last_report > MESSAGE_INTERVAL_S:
            step = "loading the model; " if self._is_loading else ""
            self._tell(f"{step}reading {name}, {self._of_passages(self._vectors)} embedded")

    def report_loading(self) -> None:
        """Report that the model is being loaded, until its pace is known."""
        self._is_loading = True
        self._tell(f"loading the model; {self._of_passages(self._vectors)} embedded")

    def report_page(self, name: str, page: int, pages: int, seconds: float | None) -> None:
        """Report the page being read by OCR, and the seconds that the previous one took, or (None) a parsed page."""
        if seconds is not None:
            with self._lock:
                self._forecast.record_page(page, pages, seconds)
        elif time.monotonic() - self._last_report < MESSAGE_INTERVAL_S:
            return
        self._tell(f"reading {name} (page {page:,} of {pages:,}), {self._of_passages(self._vectors)} embedded")

    def note(self, notes: DocumentNotes) -> None:
        """Add the notes of a document to the report."""
        with self._lock:
            self._notes.append(notes)

    def begin_batch(self, places: Sequence[int], passages: Sequence[int]) -> None:
        """Record that the passages of these items are being embedded."""
        with self._lock:
            for place, count in zip(places, passages, strict=True):
                self._forecast.record_cut(place, count)
            self._batch = _BatchInProgress(len(places), max(1, sum(passages)), self._forecast.model_share)
            self._batches[places[0]] = self._batch
        if self._on_items is not None:
            self._on_items([ItemEvent(place, "busy") for place in places], None)

    def record_model_time(self, passages: int, seconds: float) -> None:
        """Record how long the model took for some passages."""
        self._is_loading = False
        with self._lock:
            self._forecast.record_model_time(passages, seconds)
        self._tell(f"{self._of_passages(self._vectors)} embedded")

    def report_waiting(self) -> None:
        """Report that this worker can only help others now."""
        self._tell(f"{self._of_passages(self._vectors)} embedded")

    def count_embedded(self, count: int, seconds: float = 0.0, is_new: bool = True) -> None:
        """Count passages with vectors; ``is_new`` is true if models spent ``seconds`` on computing them."""
        self._is_loading = False
        with self._lock:
            if is_new:
                self._forecast.record_model_time(count, seconds)
            self._embedded += count if is_new else 0
            self._vectors += count
            if self._batch is not None:
                self._batch.embedded += count
            self._forecast.record_embedded(count)
        self._tell(f"{self._of_passages(self._vectors)} embedded")

    def count_stored(self, place: int, count: int) -> None:
        """Count more passages written in the transaction of this item's batch."""
        with self._lock:
            self._forecast.record_stored(count)
            batch = self._batches[place]
            batch.stored += count
        if batch is self._batch and batch.embedded >= batch.passages:
            self._tell(f"{self._of_passages(self._passages + batch.stored)} stored")

    def report_written(
        self, place: int, written: list[tuple[str, DocumentChange]], passages: int, seconds: float
    ) -> None:
        """Count the documents (id, outcome) of this item's batch, now in the database."""
        with self._lock:
            if self._batches.pop(place) is self._batch:
                self._batch = None
            outcomes = [outcome for _, outcome in written]
            self._added += outcomes.count("added")
            self._updated += outcomes.count("changed")
            self._unchanged += outcomes.count("unchanged")
            self._passages += passages
            self._ids += [document_id for document_id, _ in written]
            self._forecast.record_storing_time(passages, seconds)
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
            notes=sum_notes(self._notes),
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
            self._last_report = time.monotonic()
        self._on_progress(Progress(done, self._total, message, part, left, under_way, share))
