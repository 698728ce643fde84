"""The work that goes on now: workers, and the jobs that wait or run with their parts."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.storage.database import Database, Row
from workbench.storage.job_table import SILENT, job_of
from workbench.storage.statements import statement
from workbench.types import Value

SHOWN = 50  # jobs


@dataclass(frozen=True, slots=True)
class JobLoad(Value):
    """A job that waits or runs; ``parts_done`` of ``parts`` are done (0 where it is not cut), ``hands`` have one.

    ``share``, ``seconds_left`` and ``stalled`` are those of ``Job``.
    """

    id: str
    kind: str
    title: str
    status: str
    done: int
    total: int
    message: str
    worker: str | None
    seconds_left: float | None
    share: float
    stalled: str | None
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
    def stalled(self) -> tuple[JobLoad, ...]:
        """The jobs whose numbers have not changed for a minute, or that no worker takes."""
        return tuple(job for job in self.jobs if job.stalled)

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
        stalled = f"; {len(self.stalled)} stalled" if self.stalled else ""
        return f"{workers}; {running}, {waiting}{stalled}{idle}."


def workload(database: Database) -> Workload:
    """Return the work that goes on. Raises StorageError."""
    counts = database.row(statement("work_counts"), {"silent": SILENT}) or {}
    rows = database.rows(statement("work_going_on", standing="job_standing"), {"limit": SHOWN})
    return Workload(**counts, jobs=tuple(_load(row) for row in rows))


def _load(row: Row) -> JobLoad:
    job = job_of(row)
    return JobLoad(
        id=job.id, kind=job.kind, title=job.title, status=job.status, done=job.done, total=job.total,
        message=job.message, worker=job.worker, seconds_left=job.seconds_left, share=job.share, stalled=job.stalled,
        parts=row["parts"], parts_done=row["parts_done"], hands=row["hands"],
    )  # fmt: skip
