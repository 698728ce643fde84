"""The progress of long work, and the two callbacks that long work takes: one is told, the other is asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from typing import Protocol

from workbench.types.json import JsonObject, Value

# --- The result of an ingest ---

SHOWN_KINDS = 8  # kinds of files named in a line


class _Printer(Protocol):
    """The printer that IPython gives to ``_repr_pretty_``."""

    def text(self, obj: str) -> None: ...


@dataclass(frozen=True, slots=True)
class IngestFailure(Value):
    """A file that could not be read, and the reason in one sentence."""

    path: str
    error: str


@dataclass(frozen=True, slots=True)
class IngestReport(Value):
    """The changes of an ingest; ``source_id`` is "" where nothing could be stored in a source that was to be made.

    ``left_out`` counts by suffix the files in its folders whose kind is not read. ``offer`` says, where new documents
    are in languages that the model was not trained for, which index would find them by meaning too, and how long it
    takes to build; "" otherwise. ``notes`` are sentences on documents that were read but for some pages, or whose scans
    may hold errors.
    """

    source_id: str
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failures: tuple[IngestFailure, ...] = ()
    passages: int = 0
    embedded: int = 0
    seconds: float = 0.0
    document_ids: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    offer: str = ""
    notes: tuple[str, ...] = ()

    @property
    def left_out_sentence(self) -> str:
        """Say in one line how many files were left out and of which kinds; empty where there were none."""
        count = sum(self.left_out.values())
        if not count:
            return ""
        kinds = [f"{suffix or 'without suffix'} ({number:,})" for suffix, number in self.left_out.items()]
        more = f" and {len(kinds) - SHOWN_KINDS} more" if len(kinds) > SHOWN_KINDS else ""
        files = "1 file" if count == 1 else f"{count:,} files"
        return f"{files} left out, of kinds that are not read: {', '.join(kinds[:SHOWN_KINDS])}{more}."

    @property
    def counts(self) -> dict[str, int]:
        """The report's numbers of documents and passages, without any word of a document or of its path."""
        documents = {"added": self.added, "updated": self.updated, "unchanged": self.unchanged}
        return documents | {"failed": len(self.failures), "passages": self.passages, "embedded": self.embedded}

    def to_dict(self) -> JsonObject:
        """Return the JSON form of ``workbench ingest --json``."""
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
    """One step of long work: ``done`` of ``total`` (0 = not known yet), and what is happening now.

    ``part`` is how far what is under way is, 0..1; it is not counted in ``done``. ``under_way`` is how many things that
    is, which are done together. ``seconds_left`` is None where the work cannot say it. ``share`` (0..1) is how much of
    all the work is done, by its slowest stage; None if ``done`` of ``total`` says it.
    """

    done: int
    total: int
    message: str = ""
    part: float = 0.0
    seconds_left: float | None = None
    under_way: int = 1
    share: float | None = None

    @property
    def done_share(self) -> float:
        """The share of the work that is done, 0..1; 0 if the total is unknown."""
        if self.share is not None:
            return min(1.0, max(0.0, self.share))
        return min(1.0, (self.done + self.part * self.under_way) / self.total) if self.total else 0.0

    def counted(self) -> Progress:
        """Return it with what is finished of the things under way counted in ``done``, as if they went one by one."""
        far = self.done + self.part * self.under_way
        return replace(self, done=int(far), part=far - int(far), under_way=1)


def span_text(seconds: float | None) -> str:
    """Return how long something takes, roughly: "40 s", "3 min", "2.5 h"; "" where it is not known."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def far_text(share: float, done: int, total: int) -> str:
    """Return how far work is, in percent and in its unit: "73 %, 0 of 80"; 100 % only once everything is done."""
    if not total:
        return f"{done:,}"
    percent = 100 if done >= total and share >= 1 else min(99, int(share * 100))
    return f"{percent} %, {done:,} of {total:,}"


def time_left(seconds: float | None) -> str:
    """Say how long work will still take: "about 40 s left", "about 3 min left"; "" where it is not known."""
    return f"about {span_text(seconds)} left" if seconds is not None else ""


class Countdown:
    """The time left as it is shown: an estimate counts down from when the numbers last changed, until it has passed."""

    def __init__(self) -> None:
        self._numbers: tuple[object, ...] = ()
        self._ends: float | None = None

    def take(self, progress: Progress) -> float | None:
        """Take news, and return the seconds left; None if unknown, or if the estimate has passed."""
        numbers = (progress.done, progress.total, progress.part, progress.share, progress.message)
        if numbers != self._numbers:
            self._numbers = numbers
            self._ends = None if progress.seconds_left is None else time.monotonic() + progress.seconds_left
        return self.seconds_left

    @property
    def seconds_left(self) -> float | None:
        """The seconds left now; None if unknown, or if the estimate has passed."""
        left = None if self._ends is None else self._ends - time.monotonic()
        return left if left is not None and left > 0 else None


class SlowSteps:
    """The steps of one job that may take minutes without news, but end by themselves with an answer or a timeout."""

    def __init__(self) -> None:
        self._count, self._lock = 0, threading.Lock()

    @property
    def any_under_way(self) -> bool:
        """True while a step is under way."""
        return self._count > 0

    def add(self, change: int) -> None:
        """Count a step that begins (1) or ends (-1)."""
        with self._lock:
            self._count += change


SLOW_STEPS: ContextVar[SlowSteps | None] = ContextVar("slow_steps", default=None)  # of the job that runs here


@contextmanager
def slow_step() -> Generator[None]:
    """Mark a step that may take minutes without news; its job does not count as stalled while it is under way.

    Only for steps that end by themselves: what waits for another worker or for a lock is no such step.
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
