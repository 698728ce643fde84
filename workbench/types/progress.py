"""Progress of long-running work, and its two callbacks: one reports progress, the other checks for cancellation."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from typing import Protocol

from workbench.types.json import JsonObject, Value

# Results of an ingest

MAX_SUFFIXES_SHOWN = 8  # file types named in a line


class _Printer(Protocol):
    """The printer that IPython gives to ``_repr_pretty_``."""

    def text(self, obj: str) -> None: ...


@dataclass(frozen=True, slots=True)
class IngestFailure(Value):
    """A file that could not be read."""

    path: str
    error: str  # the reason, as a sentence


MAX_NOTES = 200  # sentences about documents in the report of an ingest


def format_left_out(counts: Mapping[str, int]) -> str:
    """Return counts as a list, largest first: "comments (12), hidden rows (3)"."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{what} ({count:,})" for what, count in ordered)


@dataclass(frozen=True, slots=True)
class DocumentNotes:
    """The notes of one document, for the report of an ingest.

    Attributes:
        sentences: Sentences about its pages and what was left out.
        left_out: Counts of what was left out, by plural noun.
    """

    sentences: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])


def sum_notes(notes: Sequence[DocumentNotes]) -> tuple[str, ...]:
    """Return the sentences of all documents, up to a limit, preceded by one that totals what was left out."""
    total: Counter[str] = Counter()
    for each in notes:
        total.update(each.left_out)
    documents = sum(bool(each.left_out) for each in notes)
    sentences = [sentence for each in notes for sentence in each.sentences]
    if len(sentences) > MAX_NOTES:
        more = len(sentences) - MAX_NOTES
        sentences = [*sentences[:MAX_NOTES], f"{more:,} more notes are shown with their documents."]
    summary = f"Not fully read in {documents:,} documents: {format_left_out(total)}." if documents > 1 else ""
    return tuple(filter(None, (summary, *sentences)))


@dataclass(frozen=True, slots=True)
class IngestReport(Value):
    """The changes made by an ingest."""

    source_id: str  # "" if nothing was stored and the source was therefore not created
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failures: tuple[IngestFailure, ...] = ()
    passages: int = 0
    embedded: int = 0
    seconds: float = 0.0
    document_ids: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)  # skipped files of unsupported types, by suffix
    offer: str = ""  # index to build, with its duration, if documents are in languages the model was not trained on
    notes: tuple[str, ...] = ()  # sentences on documents with unread pages or uncertain scans

    @property
    def left_out_sentence(self) -> str:
        """The number and types of skipped files as a sentence; "" if there are none."""
        count = sum(self.left_out.values())
        if not count:
            return ""
        kinds = [f"{suffix or 'no suffix'} ({number:,})" for suffix, number in self.left_out.items()]
        more = f" and {len(kinds) - MAX_SUFFIXES_SHOWN} more" if len(kinds) > MAX_SUFFIXES_SHOWN else ""
        files = "1 file" if count == 1 else f"{count:,} files"
        return f"{files} skipped (unsupported type): {', '.join(kinds[:MAX_SUFFIXES_SHOWN])}{more}."

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of documents and passages, without any document's text or path."""
        documents = {"added": self.added, "updated": self.updated, "unchanged": self.unchanged}
        return documents | {"failed": len(self.failures), "passages": self.passages, "embedded": self.embedded}

    def to_dict(self) -> JsonObject:
        """Return the JSON of ``workbench ingest --json``."""
        return {
            "source_id": self.source_id,
            "documents": {
                "added": self.added,
                "updated": self.updated,
                "unchanged": self.unchanged,
                "failed": len(self.failures),
            },
            "passages": self.passages,
            "embedded": self.embedded,
            "seconds": round(self.seconds, 3),
            "failures": [asdict(failure) for failure in self.failures],
            "left_out": dict(self.left_out),
            "offer": self.offer,
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        from workbench.display import report_html

        return report_html(self)

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        from workbench.display import report_text

        printer.text(report_text(self))


@dataclass(frozen=True, slots=True)
class Progress(Value):
    """A step of long-running work."""

    done: int
    total: int  # 0 if unknown
    message: str = ""  # what is happening now
    part: float = 0.0  # finished share (0..1) of the items in progress, which are not counted in ``done``
    seconds_left: float | None = None  # None if unknown
    under_way: int = 1  # items in progress at the same time
    share: float | None = None  # finished share (0..1) of all work by its slowest stage; None if done/total is exact

    @property
    def done_share(self) -> float:
        """Finished share of the work, 0..1; 0 if the total is unknown."""
        if self.share is not None:
            return min(1.0, max(0.0, self.share))
        return min(1.0, (self.done + self.part * self.under_way) / self.total) if self.total else 0.0

    def count_active_items(self) -> Progress:
        """Return this progress with the finished share of running items added to ``done``, as if run one at a time."""
        far = self.done + self.part * self.under_way
        return replace(self, done=int(far), part=far - int(far), under_way=1)


def duration_text(seconds: float | None) -> str:
    """Return a rough duration: "40 s", "3 min", "2.5 h"; "" if unknown."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def progress_text(share: float, done: int, total: int) -> str:
    """Return progress as a percentage and in items: "73%, 0 of 80"; 100% only once everything is done."""
    if not total:
        return f"{done:,}"
    percent = 100 if done >= total and share >= 1 else min(99, int(share * 100))
    return f"{percent}%, {done:,} of {total:,}"


def time_left_text(seconds: float | None) -> str:
    """Return the time left: "about 40 s left", "about 3 min left"; "" if unknown."""
    return f"about {duration_text(seconds)} left" if seconds is not None else ""


class Countdown:
    """The time left, for display: an estimate counts down from the last change of the numbers until it has passed."""

    def __init__(self) -> None:
        self._numbers: tuple[object, ...] = ()
        self._ends: float | None = None

    def take(self, progress: Progress) -> float | None:
        """Update the estimate and return the seconds left; None if unknown, or if the estimate has passed."""
        numbers = (progress.done, progress.total, progress.part, progress.share, progress.message)
        if numbers != self._numbers:
            self._numbers = numbers
            self._ends = None if progress.seconds_left is None else time.monotonic() + progress.seconds_left
        return self.seconds_left

    @property
    def seconds_left(self) -> float | None:
        """Seconds left now; None if unknown, or if the estimate has passed."""
        left = None if self._ends is None else self._ends - time.monotonic()
        return left if left is not None and left > 0 else None


class SlowSteps:
    """Running steps of a job that may take minutes without progress, but end on their own or by a timeout."""

    def __init__(self) -> None:
        self._count, self._lock = 0, threading.Lock()

    @property
    def any_under_way(self) -> bool:
        """True while such a step is running."""
        return self._count > 0

    def add(self, change: int) -> None:
        """Count a step that starts (1) or ends (-1)."""
        with self._lock:
            self._count += change


SLOW_STEPS: ContextVar[SlowSteps | None] = ContextVar("slow_steps", default=None)  # of the job in this context


@contextmanager
def mark_slow_step() -> Generator[None]:
    """Mark a step that may run for minutes without progress, so that its job does not count as stalled.

    Use it only for steps that end on their own, not for waiting for another worker or a lock.
    """
    steps = SLOW_STEPS.get()
    if steps is None:
        yield
        return
    steps.add(1)
    try:
        yield
    finally:
        steps.add(-1)


OnProgress = Callable[[Progress], None]
ShouldStop = Callable[[], bool]
