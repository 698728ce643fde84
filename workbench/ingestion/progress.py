"""The count of an ingest so far: figures for its report, progress for those who watch, news of each item."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from workbench.formatting import KB
from workbench.storage.database import Connection
from workbench.types import IngestFailure, IngestReport, OnProgress, Progress

if TYPE_CHECKING:
    from workbench.models.encoder import Encoder

# --- A forecast of the passages and seconds that an ingest still takes: guessed at first, then more and more ---

PASSAGE_BYTES = 650  # of a file, to a passage of 200 tokens: half-filled ones and headings counted
TRUSTED_BYTES = 50 * KB  # cut, they weigh as much as that guess
FIRST_PACE = 0.033  # seconds for a passage before any was embedded here: MiniLM on two cores (docs/benchmarks.md)
STORING = 0.004  # seconds to store a passage, before any was stored
TRUSTED_EMBEDDED = 64  # passages that, once embedded, weigh as much as the pace of the time before
TRUSTED_STORED = 500  # passages that, once stored, weigh as much as that guess
CUTTING = 1.5e-6  # seconds to read and cut a byte
TRIAL, TRIAL_WORDS = 12, 160  # passages, and words of each, that are embedded to learn how long one takes


class Forecast:
    """The passages and seconds that are still to come, by those so far. Not for several threads at once."""

    def __init__(self, sizes: Sequence[int], pace: float | None = None) -> None:
        """Take ``sizes``, the bytes of the items; 0 is not known and taken for a short text.

        ``pace`` is what a passage took the time before, in seconds with its storing, where that is remembered.
        """
        self._pace = pace
        self._sizes = {place: size or PASSAGE_BYTES for place, size in enumerate(sizes)}
        self._waiting = set(self._sizes)
        self._waiting_bytes = sum(self._sizes.values())
        self._last = max(self._sizes, key=lambda place: self._sizes[place], default=0)
        self._cut_bytes = self._cut = self._embedded = self._stored = self._most = 0
        self._model_passages, self._model_seconds = 0, 0.0
        self._stored_passages, self._storing_seconds = 0, 0.0
        self._pages_read, self._read_seconds, self._reading_left = 0, 0.0, 0.0  # of pages that are read by OCR

    def settled(self, place: int) -> None:
        """Note that an item makes no passages: it is unchanged or cannot be read."""
        self._reading_left = 0.0
        if place in self._waiting:
            self._waiting.remove(place)
            self._waiting_bytes -= self._sizes[place]

    def cut(self, place: int, passages: int) -> None:
        """Note how many passages an item makes."""
        self.settled(place)
        self._cut_bytes += self._sizes[place]
        self._cut += passages
        self._most = max(self._most, passages)

    def embedded(self, passages: int) -> None:
        """Note that so many passages have their vectors, from the model or from before."""
        self._embedded += passages

    def stored(self, passages: int) -> None:
        """Note that so many passages are in the transaction that keeps them."""
        self._stored += passages

    def model_took(self, passages: int, seconds: float) -> None:
        """Note how long so many passages kept the model busy."""
        self._model_passages += passages
        self._model_seconds += seconds

    def storing_took(self, passages: int, seconds: float) -> None:
        """Note how long so many passages kept the database busy."""
        self._stored_passages += passages
        self._storing_seconds += seconds

    def read(self, page: int, pages: int, seconds: float) -> None:
        """Note that reading a document took so many seconds until it came to this page of its pages."""
        self._read_seconds += seconds
        self._pages_read += seconds > 0
        self._reading_left = (pages - page + 1) * self._read_seconds / max(1, self._pages_read)

    @property
    def has_rate(self) -> bool:
        """True once it is known how long the model takes."""
        return self._model_passages > 0

    @property
    def total(self) -> int:
        """All passages; an estimate while ``is_exact`` is false."""
        return self._cut + round(self._waiting_bytes * self._density)

    @property
    def is_exact(self) -> bool:
        """True once everything is cut."""
        return not self._waiting

    @property
    def seconds_left(self) -> float | None:
        """The seconds that it will still take; None before the model has embedded anything, now or the time before.

        Storing goes on at the same time as embedding, so that the slower of the two counts; the last item, which is the
        largest, is cut before and stored after. Pages that are read by OCR come on top.
        """
        to_embed = max(0, self.total - self._embedded)
        if not self._model_passages and to_embed:
            return None if self._pace is None else to_embed * self._pace
        waiting = self._sizes[self._last] if self._last in self._waiting else 0
        to_store = max(0, self.total - self._stored)
        last = min(max(self._most, round(waiting * self._density)), to_store)
        slowest = max(to_embed * self._embedding + last * self._storing, to_store * self._storing)
        return self._reading_left + waiting * CUTTING + slowest

    @property
    def share(self) -> float | None:
        """The share of the work that is done, 0..1, by the time that each stage takes; None if there is none to do."""
        embedding = self._embedding if self._model_passages or self._pace is not None else 4 * STORING
        whole = self.total * (embedding + self._storing) + self._read_seconds + self._reading_left
        done = self._embedded * embedding + self._stored * self._storing + self._read_seconds
        return min(1.0, done / whole) if whole else None

    @property
    def model_share(self) -> float:
        """The share of a passage's time that the model takes, 0..1; storing it takes the rest."""
        model = self._model_seconds / self._model_passages if self._model_passages else 4 * STORING
        return model / (model + self._storing)

    @property
    def _density(self) -> float:
        return (self._cut + TRUSTED_BYTES / PASSAGE_BYTES) / (self._cut_bytes + TRUSTED_BYTES)

    @property
    def _embedding(self) -> float:
        """The seconds a passage keeps the model busy; the first ones, alone and cold, weigh little against the pace."""
        if self._pace is None:
            return self._model_seconds / max(1, self._model_passages)
        known = max(0.0, self._pace - STORING)
        return (self._model_seconds + TRUSTED_EMBEDDED * known) / (self._model_passages + TRUSTED_EMBEDDED)

    @property
    def _storing(self) -> float:
        return (self._storing_seconds + TRUSTED_STORED * STORING) / (self._stored_passages + TRUSTED_STORED)


def try_model(encoder: Encoder) -> tuple[int, float]:
    """Embed a few passages only to see how long that takes; returns (passages, seconds)."""
    texts = [f"{number} " * TRIAL_WORDS for number in range(TRIAL)]
    encoder.encode(texts[:1])  # reads the model
    begun = time.perf_counter()
    encoder.encode(texts)
    return TRIAL, time.perf_counter() - begun


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
