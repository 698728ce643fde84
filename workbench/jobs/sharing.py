"""Sharing of one job among several workers: one leads, others take parts; a part is done entirely or not at all."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from workbench.errors import StorageError
from workbench.storage.database import new_id
from workbench.storage.jobs import EmbeddingLease, Job, Jobs, PartsLease
from workbench.types import EMBEDDING_SHARE, MAX_OPEN_SHARE, SLOW_STEPS, JsonObject, OnProgress, Progress

# A running job and its outcome

CANCEL_CHECK_INTERVAL_S = 0.4  # seconds between checks for cancellation, which takes effect within two
PROGRESS_INTERVAL_S = 0.25  # seconds between progress updates
HEARTBEAT_INTERVAL_S = 10.0  # seconds between heartbeats of a slow step
MIN_SHARE_FOR_ESTIMATE = 0.02  # share of the work to do before the time left is estimated


class WorkerStopped(Exception):
    """An event, not an error: this worker stops, and the job returns to the queue."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended."""

    result: JsonObject  # stored with the job
    message: str
    with_errors: bool = False


class Assignment:
    """A job that a worker runs: it records progress and checks for cancellation. Thread-safe."""

    def __init__(
        self,
        job: Job,
        jobs: Jobs,
        stopping: threading.Event,
        *,
        leads: bool = True,
        is_wanted_elsewhere: Callable[[], bool] = lambda: False,
    ) -> None:
        """Create the assignment.

        Args:
            job: The job.
            jobs: The queue.
            stopping: Set when the worker stops.
            leads: False for a worker that only helps another one run the job.
            is_wanted_elsewhere: Returns whether other work waits for this worker; a helper then takes no more parts.
        """
        self.job, self.leads, self.is_wanted_elsewhere = job, leads, is_wanted_elsewhere
        self._jobs, self._stopping = jobs, stopping
        self._last_look = self._last_note = 0.0
        self._cancelled = False
        self._delayed: Progress | None = None  # the latest update, if it is not recorded yet
        self._lock = threading.Lock()
        self._pace = Pace(MIN_SHARE_FOR_ESTIMATE)

    @property
    def worker_stops(self) -> bool:
        """True if the worker is stopping although the job was not cancelled."""
        return self._stopping.is_set() and not self._cancelled

    def should_stop(self) -> bool:
        """Return whether to stop now; cheap enough to be called often."""
        with self._lock:
            if not self._cancelled and time.monotonic() - self._last_look > CANCEL_CHECK_INTERVAL_S:
                self._cancelled = self._jobs.cancel_requested(self.job.id)
                self._last_look = time.monotonic()
            return self._cancelled or self._stopping.is_set()

    def progress(self, progress: Progress) -> None:
        """Record progress; of frequent updates only the last one is recorded, at the next heartbeat."""
        with self._lock:
            is_frequent = time.monotonic() - self._last_note < PROGRESS_INTERVAL_S and progress.done != progress.total
            self._delayed = progress if is_frequent else None
            if is_frequent:
                return
            self._last_note = time.monotonic()
        share = min(progress.done_share, MAX_OPEN_SHARE)
        left = self._pace.seconds_left(share, 1.0) if progress.seconds_left is None else progress.seconds_left
        left = None if left == math.inf else left
        self._jobs.progress(self.job.id, replace(progress, share=share, seconds_left=left))

    @contextmanager
    def send_heartbeats(self) -> Generator[None]:
        """Send heartbeats during slow steps (``slow_step``) in the block, so that the job is not considered stalled."""
        steps, ended = list[None](), threading.Event()

        def beat() -> None:
            while not ended.wait(HEARTBEAT_INTERVAL_S):
                with suppress(StorageError):
                    if (delayed := self._delayed) is not None:
                        self.progress(delayed)
                    if steps:
                        self._jobs.beat(self.job.id)

        token = SLOW_STEPS.set(steps)
        threading.Thread(target=beat, name="job-heartbeat", daemon=True).start()
        try:
            yield
        finally:
            ended.set()
            SLOW_STEPS.reset(token)

    def fills(self, source_id: str) -> None:
        """Record the source that the job fills."""
        self._jobs.fills(self.job.id, source_id)

    def log(self, message: str, level: str = "info") -> None:
        """Add a line to the job's log."""
        self._jobs.log(self.job.id, message, level)


@contextmanager
def share_parts(jobs: Jobs, assignment: Assignment, plan: Callable[[], None]) -> Generator[PartsLease]:
    """Yield the parts of a job for this worker; unfinished ones are released at the end.

    ``plan`` writes the parts once; a worker that takes over from a dead one finds them with their results.
    """
    job = assignment.job
    with share_embedding(jobs, assignment) as embedding:
        if assignment.leads and not jobs.parts.are_planned(job.id):
            plan()
        parts = PartsLease(jobs.parts, assignment.leads, embedding)
        try:
            yield parts
            if assignment.leads:
                tally = parts.tally()
                assignment.progress(Progress(tally.items_done, tally.items, "All parts are done."))
        finally:
            with suppress(StorageError):  # keep the first error; the lock ends anyway
                parts.give_back()


@contextmanager
def share_embedding(jobs: Jobs, assignment: Assignment) -> Generator[EmbeddingLease]:
    """Yield the embedding parts of a job for this worker, under a new lease name that it holds."""
    job, holder = assignment.job, new_id("hand")
    with jobs.hold(holder):
        embedding = EmbeddingLease(
            jobs.embedding,
            job.id,
            holder,
            invite=lambda: jobs.invite(job.id, job.kind),
            is_wanted_elsewhere=assignment.is_wanted_elsewhere,
        )
        try:
            yield embedding
        finally:
            with suppress(StorageError):
                embedding.give_back()


def make_progress_reporter(assignment: Assignment, parts: PartsLease, unit: str) -> OnProgress | None:
    """Return the callback that reports the progress of the whole job; None for helpers, which report nothing.

    Once other workers have done parts, the remaining time is based on the pace of all workers, not on this one's
    estimate. Steps after the last part, such as a graph, are reported in their own words.
    """
    if not assignment.leads:
        return None
    last_report = float("-inf")
    farthest = 0.0  # the share falls when a part is taken, although nothing was undone
    pace = Pace()

    def report(progress: Progress) -> None:
        nonlocal last_report, farthest
        if time.monotonic() - last_report < PROGRESS_INTERVAL_S and progress.done != progress.total:
            return
        last_report = time.monotonic()
        tally = parts.tally()
        embedding = parts.embedding.tally()
        embedded = embedding.passages_done / embedding.passages if embedding.passages else 0.0
        part = EMBEDDING_SHARE * embedded if embedding.passages else progress.part
        farthest = max(farthest, tally.share(part))
        if tally.done == tally.parts or (tally.holders < 2 and tally.done <= parts.done_here):
            assignment.progress(replace(progress, done=tally.items_done, total=tally.items, share=farthest))
            return
        large = f", {embedding.passages_done:,} of {embedding.passages:,} passages" if embedding.passages else ""
        message = f"{tally.items_done:,} of {tally.items:,} {unit}{large}{_workers_text(tally.holders)}"
        left = None if tally.waiting else pace.seconds_left(embedding.passages_done, embedding.passages)
        assignment.progress(Progress(tally.items_done, tally.items, message, part, left, share=farthest))

    return report


def make_embedding_reporter(assignment: Assignment, hands: EmbeddingLease) -> OnProgress:
    """Return the callback that reports the progress of a job without parts, and how many workers embed.

    A resumed job keeps its share while it reads the texts whose vectors a worker that is gone has stored.
    """
    last_report, holders, kept = float("-inf"), 0, hands.tally().passages_done

    def report(progress: Progress) -> None:
        nonlocal last_report, holders
        if time.monotonic() - last_report >= PROGRESS_INTERVAL_S:
            last_report, holders = time.monotonic(), hands.tally().holders
        if kept and progress.done_share < assignment.job.share:
            message = f"continuing; {kept:,} passages embedded before"
            progress = replace(progress, message=message, share=assignment.job.share, seconds_left=None)
        assignment.progress(replace(progress, message=f"{progress.message}{_workers_text(holders)}"))

    return report


class Pace:
    """The pace of work since it was first reported, or since it was last started again.

    Args:
        least: Work that must be done, and reported for more than a second, before the time left is estimated.
    """

    def __init__(self, least: float = 0.0) -> None:
        self._least = least
        self._first: tuple[float, float] | None = None  # time, and the work that was done

    def seconds_left(self, done: float, total: float) -> float | None:
        """Return the seconds until all is done; None if unknown."""
        now = time.monotonic()
        if self._first is None or done < self._first[1]:
            self._first = (now, done)
        began, before = self._first
        is_known = done - before > self._least and now - began > 1
        return (total - done) * (now - began) / (done - before) if is_known else None


def _workers_text(workers: int) -> str:
    return f", by {workers} workers" if workers > 1 else ""
