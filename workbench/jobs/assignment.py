"""A job in a worker's hands, and how it ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from workbench.errors import StorageError
from workbench.storage.jobs import Job, Jobs
from workbench.types import JsonObject, Progress
from workbench.types.progress import SLOW_STEPS, SlowSteps

LOOK = 0.4  # seconds between looks whether a job was asked to stop: cancelling takes effect within two
TELL = 0.25  # seconds between two notes of progress
BEAT = 10.0  # seconds between two notes that a slow step goes on
BEGUN = 0.02  # share that has to be done here before the pace tells the time left


class WorkerStopped(Exception):
    """An event, not an error: this worker stops, and the job goes back into the queue."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended; ``result`` is kept with it."""

    result: JsonObject
    message: str
    with_errors: bool = False


class Assignment:
    """A job in a worker's hands: notes how far it is and tells whether to stop. Any thread may use it."""

    def __init__(
        self,
        job: Job,
        jobs: Jobs,
        stopping: threading.Event,
        *,
        leads: bool = True,
        is_wanted_elsewhere: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take ``leads``, false for a worker that only helps the one that runs the job.

        Such a worker takes no further part once ``is_wanted_elsewhere`` says so.
        """
        self.job, self.leads, self.is_wanted_elsewhere = job, leads, is_wanted_elsewhere
        self._jobs, self._stopping = jobs, stopping
        self._last_look = self._last_note = 0.0
        self._cancelled = False
        self._lock = threading.Lock()
        self._first: tuple[float, float] | None = None  # the moment and the share of the first news

    @property
    def worker_stops(self) -> bool:
        """True when it is the worker that stops, not the job that was cancelled."""
        return self._stopping.is_set() and not self._cancelled

    def should_stop(self) -> bool:
        """Tell whether to stop now; cheap enough to ask often."""
        with self._lock:
            if not self._cancelled and time.monotonic() - self._last_look > LOOK:
                self._cancelled = self._jobs.cancel_requested(self.job.id)
                self._last_look = time.monotonic()
            return self._cancelled or self._stopping.is_set()

    def progress(self, progress: Progress) -> None:
        """Note how far it is; most notes in quick succession are left out, never the last one."""
        with self._lock:
            if time.monotonic() - self._last_note < TELL and progress.done != progress.total:
                return
            self._last_note = time.monotonic()
        share = progress.done_share
        left = progress.seconds_left if progress.seconds_left is not None else self._left_at_pace(share)
        self._jobs.progress(self.job.id, replace(progress, share=share, seconds_left=left))

    def _left_at_pace(self, share: float) -> float | None:
        """Return the seconds left at the pace of this worker so far; None while that is too little to say."""
        now = time.monotonic()
        if self._first is None or share < self._first[1]:
            self._first = (now, share)
        began, before = self._first
        return (now - began) * (1 - share) / (share - before) if share - before > BEGUN and now - began > 1 else None

    @contextmanager
    def watched(self) -> Generator[None]:
        """Keep a heartbeat of slow steps while inside (``slow_step``), so that they do not count as stalled."""
        steps, ended = SlowSteps(), threading.Event()

        def beat() -> None:
            while not ended.wait(BEAT):
                if steps.any_under_way:
                    with suppress(StorageError):
                        self._jobs.beat(self.job.id)

        token = SLOW_STEPS.set(steps)
        threading.Thread(target=beat, name="job-heartbeat", daemon=True).start()
        try:
            yield
        finally:
            ended.set()
            SLOW_STEPS.reset(token)

    def fills(self, source_id: str) -> None:
        """Note the source that the job fills."""
        self._jobs.fills(self.job.id, source_id)

    def log(self, message: str, level: str = "info") -> None:
        """Add a line to the job's log."""
        self._jobs.log(self.job.id, message, level)
