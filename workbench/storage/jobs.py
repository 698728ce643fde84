"""Jobs: long work, how far it is and how it ended; their logs and the uploads that wait for a worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from workbench.errors import NotFound
from workbench.storage.database import Database, clean, translated
from workbench.storage.ids import new_id
from workbench.storage.job_files import JobFiles
from workbench.storage.queue import Queue
from workbench.storage.statements import statement
from workbench.types import Progress, Value

FINISHED = ("completed", "completed_with_errors", "cancelled", "failed")
_HINT = "List the jobs to see the valid ids."


@dataclass(frozen=True, slots=True)
class Job(Value):
    """One piece of long work; ``done`` of ``total`` counts in the unit of its kind (pages, documents), 0: unknown.

    ``part`` is how far what is under way now is (0..1), ``taken_at`` when the present worker took the job.
    """

    id: str
    kind: str
    title: str
    status: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    source_id: str | None = None
    done: int = 0
    total: int = 0
    message: str = ""
    error: str | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
    cancel_requested: bool = False
    worker: str | None = None
    attempts: int = 0
    created_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    updated_at: datetime | None = None
    part: float = 0.0
    taken_at: datetime | None = None
    put_away: bool = False

    @property
    def is_finished(self) -> bool:
        """True when no worker will touch it again unless asked."""
        return self.status in FINISHED


@dataclass(frozen=True, slots=True)
class LogLine(Value):
    """One line of a job's log."""

    id: int
    at: datetime
    level: str
    message: str


class Jobs:
    """The tables ``jobs`` and ``job_log``; a job, its files and its place in the queue are one transaction."""

    def __init__(self, database: Database, queue: Queue) -> None:
        self._database, self._queue = database, queue
        self.files = JobFiles(database)

    def create(
        self,
        connection: Any,
        kind: str,
        title: str,
        parameters: Mapping[str, Any],
        *,
        source_id: str | None = None,
        files: Sequence[tuple[str, bytes]] = (),
    ) -> str:
        """Write a new job and put it into the queue, in the caller's transaction; returns its id."""
        job_id = new_id("job")
        values = {"id": job_id, "kind": kind, "title": title, "source_id": source_id}
        connection.execute(statement("job_insert"), clean(values) | {"parameters": Jsonb(clean(dict(parameters)))})
        self.files.add(connection, job_id, files)
        self._queue.defer(connection, job_id)
        return job_id

    def transaction(self) -> Any:
        """Return a transaction in which a job and what belongs to it are written together."""
        return self._database.transaction()

    def get(self, job_id: str) -> Job:
        """Return a job. Raises NotFound."""
        row = self._database.row(statement("job_get"), {"id": job_id})
        if row is None:
            raise NotFound("job", job_id, _HINT)
        return Job(**row)

    def list(
        self,
        *,
        kind: str | None = None,
        status: str | None = None,
        source_id: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Job]:
        """Return jobs, newest first."""
        parameters = {"kind": kind, "status": status, "source_id": source_id, "limit": limit, "offset": offset}
        return [Job(**row) for row in self._database.rows(statement("job_list"), parameters)]

    def unfinished(self, kind: str) -> list[Job]:
        """Return the jobs of a kind that wait or run, oldest first."""
        return [Job(**row) for row in self._database.rows(statement("job_unfinished"), {"kind": kind})]

    def in_view(self) -> list[Job]:
        """Return work that goes on, and ingests and index builds of the last day until they are put away."""
        return [Job(**row) for row in self._database.rows(statement("job_in_view"))]

    def heard(self) -> dict[str, datetime]:
        """Return of jobs that are in a worker's hand when it was last heard of, whatever it has to report."""
        return {row["id"]: row["at"] for row in self._database.rows(statement("job_heard"))}

    def put_away(self, job_id: str) -> None:
        """Take work that has ended out of view; its record stays."""
        self._database.rows(statement("job_put_away"), {"id": job_id})

    def requeue(self, job_id: str) -> bool:
        """Let a finished job wait for a worker again; False when it has not finished."""
        with self._database.transaction() as connection:
            found = connection.execute(statement("job_requeue"), {"id": job_id}).fetchone()
            if found is not None:
                self._queue.defer(connection, job_id)
        return found is not None

    def begin(self, job_id: str, worker: str) -> Job | None:
        """Take a job for a worker; None when it is over or gone."""
        row = self._database.row(statement("job_begin"), {"id": job_id, "worker": worker})
        return None if row is None else Job(**row)

    def progress(self, job_id: str, progress: Progress) -> None:
        """Note how far a job is."""
        values = {"id": job_id, "done": progress.done, "total": progress.total, "message": progress.message}
        values["part"] = progress.part
        self._database.rows(statement("job_progress"), values)

    def finish(
        self,
        job_id: str,
        status: str,
        *,
        message: str,
        error: str | None = None,
        result: Mapping[str, Any] | None = None,
    ) -> None:
        """Note how a job ended."""
        values = clean({"id": job_id, "status": status, "message": message, "error": error})
        self._database.rows(statement("job_finish"), values | {"result": Jsonb(clean(dict(result or {})))})

    def release(self, job_id: str) -> None:
        """Give a running job back, because its worker stops."""
        self._database.rows(statement("job_release"), {"id": job_id})

    def cancel(self, job_id: str) -> str | None:
        """Ask a job to stop; returns its status now ("running" until it has stopped), None when it was over before."""
        row = self._database.row(statement("job_cancel"), {"id": job_id})
        return None if row is None else str(row["status"])

    def cancel_requested(self, job_id: str) -> bool:
        """Tell whether a job was asked to stop, or deleted."""
        row = self._database.row(statement("job_cancel_requested"), {"id": job_id})
        return bool(row and row["stop"])

    def delete(self, job_id: str) -> None:
        """Delete a job with its log, files and pages."""
        self._database.rows(statement("job_delete"), {"id": job_id})

    def log(self, job_id: str, message: str, level: str = "info") -> None:
        """Add a line to a job's log."""
        values = {"job_id": job_id, "level": level, "message": message}
        self._database.rows(statement("job_log_add"), values)

    def log_lines(self, job_id: str, *, after: int = 0, limit: int = 200) -> list[LogLine]:
        """Return the last lines of a job's log that come after a line's id, oldest first."""
        parameters = {"job_id": job_id, "after": after, "limit": limit}
        return [LogLine(**row) for row in self._database.rows(statement("job_log_list"), parameters)]

    @contextmanager
    def held(self, job_id: str) -> Iterator[bool]:
        """Hold a job for this process while inside; yields False where another living process holds it.

        The lock belongs to a connection of its own, so it ends with the process, however that ends.
        """
        with translated(self._database.url), psycopg.connect(self._database.url, autocommit=True) as connection:
            row = connection.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 7215004))", (job_id,)).fetchone()
            yield bool(row and row[0])
