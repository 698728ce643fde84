"""The work that goes on now: workers, and the jobs that wait or run with their parts."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.storage.database import Database
from workbench.storage.statements import statement
from workbench.types import Value

SILENT = 15.0  # seconds without a heartbeat after which a worker counts as gone, as in the queue
SHOWN = 50  # jobs


@dataclass(frozen=True, slots=True)
class JobLoad(Value):
    """A job that waits or runs; ``parts_done`` of ``parts`` are done (0 where it is not cut), ``hands`` have one."""

    id: str
    kind: str
    title: str
    status: str
    done: int
    total: int
    message: str
    worker: str | None
    seconds_left: float | None
    parts: int
    parts_done: int
    hands: int

    @property
    def workers(self) -> int:
        """The workers at it: who has a part, or else who leads it."""
        return max(self.hands, 1 if self.worker else 0)


@dataclass(frozen=True, slots=True)
class Workload(Value):
    """The workers that live, on any machine, the number of jobs that wait and run, and the first fifty of them."""

    workers: int
    queued: int
    running: int
    jobs: tuple[JobLoad, ...]

    @property
    def sentence(self) -> str:
        """The work in a sentence."""
        workers = {0: "No worker", 1: "One worker"}.get(self.workers, f"{self.workers} workers")
        if not (self.queued or self.running or self.workers):
            return "No job waits or runs, and no worker is needed."
        if not self.queued and not self.running:
            return f"{workers}; no job waits or runs."
        running = {0: "no job runs", 1: "1 job runs"}.get(self.running, f"{self.running} jobs run")
        waiting = {0: "none waits", 1: "1 waits"}.get(self.queued, f"{self.queued} wait")
        idle = "" if self.workers else "; start one with 'workbench worker'"
        return f"{workers}; {running}, {waiting}{idle}."


def workload(database: Database) -> Workload:
    """Return the work that goes on. Raises StorageError."""
    counts = database.row(statement("work_counts"), {"silent": SILENT}) or {}
    rows = database.rows(statement("work_going_on"), {"limit": SHOWN})
    return Workload(**counts, jobs=tuple(JobLoad(**row) for row in rows))
