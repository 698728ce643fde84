"""Jobs: long work, how far it is and how it ended; their logs and the uploads that wait for a worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from workbench.errors import NotFound
from workbench.storage.database import (
    Connection,
    Database,
    Row,
    check_reachable,
    clean,
    connect,
    lock_held,
    new_id,
    session_arguments,
    translated,
)
from workbench.storage.job_parts import EmbeddingParts, JobFiles, JobParts
from workbench.storage.statements import statement
from workbench.types import JsonValue, Progress, Value, span_text

if TYPE_CHECKING:
    from procrastinate import App

# --- The queue: procrastinate on the workbench's database; one task runs a job by its id, one takes parts of it ---

TASK = "workbench.run_job"
JOIN = "workbench.join_job"
CONNECT_TIMEOUT = 10.0  # seconds
QUEUE = "workbench"  # the queues begin with it, one for each kind of job; without a kind: jobs of former versions


class AlreadyInvited(Exception):
    """An event, not an error: an invitation to the job waits already."""


class Queue:
    """The way of jobs into the queue, and the app with which a worker takes them out."""

    def __init__(self, url: str) -> None:
        """Take ``url``, a libpq URL; nothing is connected."""
        self._url = url
        self._lock = threading.Lock()
        self._deferring: App | None = None

    def defer(self, connection: Connection, job_id: str, kind: str) -> None:
        """Put a job into the queue, in the caller's transaction: it is there exactly when the job is."""
        app = self._app_to_defer()
        task = app.configure_task(TASK, queue=f"{QUEUE}.{kind}", lock=job_id, connection=connection)
        task.defer(job_id=job_id)

    def invite(self, connection: Connection, job_id: str, kind: str, seconds: int) -> None:
        """Ask a worker to take parts of a job, in the caller's transaction, not before so many seconds have passed.

        Raises:
            AlreadyInvited: an invitation waits; the transaction is to be given up.
        """
        from procrastinate.exceptions import AlreadyEnqueued

        app = self._app_to_defer()
        task = app.configure_task(
            JOIN,
            queue=f"{QUEUE}.{kind}",
            queueing_lock=invitation(job_id),
            schedule_in={"seconds": seconds},
            connection=connection,
        )
        try:
            task.defer(job_id=job_id)
        except AlreadyEnqueued as error:
            raise AlreadyInvited(job_id) from error

    def worker_app(
        self, run: Callable[[str], None], join: Callable[[str], None], retry_on: type[Exception], *, pooled: bool
    ) -> App:
        """Return a procrastinate app with the tasks ``run(job_id)`` and ``join(job_id)``; ``pooled`` as asked.

        Raising ``retry_on`` puts a job back; an invitation to join is never put back.
        """
        import procrastinate

        arguments = session_arguments(pooled)
        connector = procrastinate.PsycopgConnector(conninfo=self._url, min_size=1, max_size=4, kwargs=arguments)
        app = procrastinate.App(connector=connector)
        # A high limit in place of none: each worker that is stopped in an orderly way takes one.
        again = procrastinate.RetryStrategy(max_attempts=10_000, wait=1, retry_exceptions=[retry_on])
        app.task(name=TASK, queue=QUEUE, retry=again)(run)
        app.task(name=JOIN, queue=QUEUE)(join)
        return app

    def is_pooled(self) -> bool:
        """Tell whether a pooler stands between: nobody is notified of new jobs through it. Raises StorageError."""
        return check_reachable(self._url, CONNECT_TIMEOUT)

    def _app_to_defer(self) -> App:
        import procrastinate

        with self._lock:
            if self._deferring is None:  # never opened: every statement runs on the caller's connection
                self._deferring = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=self._url))
            return self._deferring


def queues_of(kinds: Iterable[str]) -> list[str]:
    """Return the queues in which jobs of these kinds wait."""
    return [QUEUE, *(f"{QUEUE}.{kind}" for kind in kinds)]


def invitation(job_id: str) -> str:
    """Return the name under which the invitation to a job's parts waits, once at a time."""
    return f"join {job_id}"


FINISHED = ("completed", "completed_with_errors", "cancelled", "failed")
_HINT = "List the jobs to see the valid ids."
NAME_AS_NUMBER = sql.SQL(
    "hashtextextended(%s, 7215004)"
)  # of a lock; job_parts.sql and embedding_parts.sql look for it
STALLED = 60.0  # seconds without a change of its numbers after which a job is called stalled
SILENT = 15.0  # seconds without a heartbeat after which a worker counts as gone, as in the queue
TELLING = 50  # passages that an ingest must have embedded for its pace to tell


@dataclass(frozen=True, slots=True)
class Job(Value):
    """One piece of long work; ``done`` of ``total`` counts in the unit of its kind (pages, documents), 0: unknown.

    ``part`` is how far what is under way now is (0..1), ``taken_at`` when the present worker took the job,
    ``seconds_left`` what its runner expected, less the time since; None if unknown or if that time has passed.
    ``share`` (0..1) is how much of the work is done, by its slowest stage. ``stalled`` says what to do about a job
    whose numbers have not changed for a minute; None otherwise.
    """

    id: str
    kind: str
    title: str
    status: str
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    source_id: str | None = None
    done: int = 0
    total: int = 0
    message: str = ""
    error: str | None = None
    result: Mapping[str, JsonValue] = field(default_factory=dict)
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
    seconds_left: float | None = None
    moved_at: datetime | None = None
    share: float = 0.0
    stalled: str | None = None

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


_COLUMNS = frozenset(each.name for each in fields(Job)) - {"stalled"}


def job_of(row: Row) -> Job:
    """Return the job that a row with ``job_standing`` describes, as it is at this moment."""
    left, quiet = row["seconds_left"], row.get("quiet")
    if left is not None and quiet is not None:
        left = left - quiet if left > quiet else None
    share = row["share"]
    if share is None or row["status"] == "completed":
        share = min(1.0, (row["done"] + row["part"]) / row["total"]) if row["total"] else 0.0
    values: Row = {name: value for name, value in row.items() if name in _COLUMNS}
    values |= {"seconds_left": left, "share": round(share, 4), "stalled": stall_of(row)}
    return Job(**values)


def stall_of(row: Row) -> str | None:
    """Return the sentence on a job whose numbers have not changed for a minute, with what to do; None otherwise.

    A job that waits while workers are busy with others is not stalled.
    """
    quiet, workers = row.get("quiet"), row.get("workers")
    if quiet is None or quiet < STALLED:
        return None
    span, worker = span_text(quiet), row["worker"] or "unknown"
    if row["status"] == "queued":
        if not workers:
            return f"It has waited {span} for a worker, and none is running; start one with 'workbench worker'."
        if row["are_busy"]:
            return None
        return f"It has waited {span}, and no running worker takes it; restart them, or run 'workbench worker'."
    silent = row["silent"]
    if silent is not None and silent < SILENT:
        return (
            f"Stalled: nothing has changed for {span}. Worker {worker} holds it; restart that worker, or cancel the "
            "job and resume it. Its finished work stays."
        )
    if not workers:
        return (
            f"Stalled: its worker {worker} has not been heard from for {span}, and no other is running; start one "
            "with 'workbench worker', which goes on with it."
        )
    return (
        f"Stalled: nothing has changed for {span}, and its worker {worker} does not answer; end that process, and "
        "another worker goes on with it, or cancel the job."
    )


def pace_of_ingests(database: Database) -> float | None:
    """Return the seconds a passage took in the last ingest that embedded enough to tell; None where none did."""
    row = database.row(statement("job_pace"), {"enough": TELLING})
    return None if row is None else float(row["pace"])


class Jobs:
    """The tables ``jobs`` and ``job_log``; a job, its files and its place in the queue are one transaction."""

    def __init__(self, database: Database, queue: Queue) -> None:
        self._database, self._queue = database, queue
        self.files = JobFiles(database)
        self.parts, self.embedding = JobParts(database), EmbeddingParts(database)

    def create(
        self,
        connection: Connection,
        kind: str,
        title: str,
        parameters: Mapping[str, JsonValue],
        *,
        source_id: str | None = None,
        files: Sequence[tuple[str, bytes]] = (),
    ) -> str:
        """Write a new job and put it into the queue, in the caller's transaction; returns its id."""
        job_id = new_id("job")
        values = {"id": job_id, "kind": kind, "title": title, "source_id": source_id}
        connection.execute(statement("job_insert"), clean(values) | {"parameters": Jsonb(clean(dict(parameters)))})
        self.files.add(connection, job_id, files)
        self._queue.defer(connection, job_id, kind)
        return job_id

    def transaction(self) -> AbstractContextManager[Connection]:
        """Return a transaction in which a job, its files and its place in the queue are written together."""
        return self._database.transaction()

    def get(self, job_id: str) -> Job:
        """Return a job. Raises NotFound."""
        row = self._database.row(statement("job_get", standing="job_standing"), {"id": job_id})
        if row is None:
            raise NotFound("job", job_id, _HINT)
        return job_of(row)

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
        return [job_of(row) for row in self._database.rows(statement("job_list", standing="job_standing"), parameters)]

    def count(self, *, kind: str | None = None, status: str | None = None) -> int:
        """Return how many jobs ``list`` would give without a limit."""
        row = self._database.row(statement("job_count"), {"kind": kind, "status": status})
        return int(row["n"]) if row else 0

    def unfinished(self, kind: str) -> list[Job]:
        """Return the jobs of a kind that wait or run, oldest first."""
        return [
            job_of(row)
            for row in self._database.rows(statement("job_unfinished", standing="job_standing"), {"kind": kind})
        ]

    def with_parameters(self, kind: str, parameters: Mapping[str, JsonValue], *, unfinished: bool) -> Job | None:
        """Return the newest job of a kind whose parameters hold the given ones, on request of those not over yet."""
        given = {"kind": kind, "parameters": Jsonb(dict(parameters)), "unfinished": unfinished}
        row = self._database.row(statement("job_with_parameters", standing="job_standing"), given)
        return None if row is None else job_of(row)

    def any_queued(self, kinds: Sequence[str]) -> bool:
        """Tell whether a job of these kinds waits for a worker."""
        row = self._database.row(statement("job_any_queued"), {"kinds": list(kinds)})
        return bool(row and row["queued"])

    def invite(self, job_id: str, kind: str, seconds: int = 0) -> None:
        """Ask another worker to take parts of a job too, in so many seconds; one invitation waits at a time."""
        if not self.parts.is_invited(invitation(job_id)):
            with suppress(AlreadyInvited), self._database.transaction() as connection:
                self._queue.invite(connection, job_id, kind, seconds)

    def any_part_waits(self, job_id: str) -> bool:
        """Tell whether a part of a job, or of what it embeds, waits for a worker."""
        return bool(self.parts.tally(job_id).waiting or self.embedding.tally(job_id).waiting)

    def any_waiting(self) -> bool:
        """Tell whether a job waits for a worker, or was left by one that died; cheap enough to ask every second."""
        row = self._database.row(statement("job_any_waiting"))
        return bool(row and row["waiting"])

    def in_view(self) -> list[Job]:
        """Return work that goes on, and ingests and index builds of the last day until they are put away."""
        return [job_of(row) for row in self._database.rows(statement("job_in_view", standing="job_standing"))]

    def heard(self) -> dict[str, datetime]:
        """Return when the worker of each job in hand was last heard of, by the job's id."""
        return {row["id"]: row["at"] for row in self._database.rows(statement("job_heard"), {"task": TASK})}

    def put_away(self, job_id: str) -> None:
        """Take work that has ended out of view; its record stays."""
        self._database.rows(statement("job_put_away"), {"id": job_id})

    def requeue(self, job_id: str) -> bool:
        """Let a finished job wait for a worker again; False when it has not finished."""
        with self._database.transaction() as connection:
            row = connection.execute(statement("job_requeue"), {"id": job_id}).fetchone()
            if row is not None:
                self._queue.defer(connection, job_id, row["kind"])
        return row is not None

    def begin(self, job_id: str, worker: str) -> Job | None:
        """Take a job for a worker; None when it is over or gone."""
        row = self._database.row(statement("job_begin"), {"id": job_id, "worker": worker})
        return None if row is None else job_of(row)

    def fills(self, job_id: str, source_id: str) -> None:
        """Note the source that a job fills."""
        self._database.rows(statement("job_source"), {"id": job_id, "source_id": source_id})

    def progress(self, job_id: str, progress: Progress) -> None:
        """Note how far a job is."""
        values = {"id": job_id, "done": progress.done, "total": progress.total, "message": progress.message}
        values |= {"part": progress.part, "seconds_left": progress.seconds_left, "share": progress.share}
        self._database.rows(statement("job_progress"), values)

    def beat(self, job_id: str) -> None:
        """Note that a slow step of a job goes on, though its numbers do not change."""
        self._database.rows(statement("job_beat"), {"id": job_id})

    def finish(
        self,
        job_id: str,
        status: str,
        *,
        message: str,
        error: str | None = None,
        result: Mapping[str, JsonValue] | None = None,
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
    def hold(self, job_id: str) -> Generator[bool]:
        """Hold a job, or any name, for this process while inside; yields False where another living process holds it.

        The lock belongs to a connection of its own, so it ends with the process, however that ends.
        """
        with (
            translated(self._database.url),
            connect(self._database.url) as connection,
            lock_held(connection, NAME_AS_NUMBER, job_id, waits=False) as ours,
        ):
            yield ours


# --- The queue's own tables: procrastinate's schema, brought up to the installed version under the migrations' lock ---

_NOTED = "SELECT to_regclass('queue_migrations') IS NOT NULL"


def is_current(connection: psycopg.Connection) -> bool:
    """Tell whether the database has every step of the installed version."""
    if connection.execute(_NOTED).fetchone() == (False,):
        return False
    noted = {row[0] for row in connection.execute("SELECT name FROM queue_migrations").fetchall()}
    return set(_steps()) <= noted


def bring_up_to_date(connection: psycopg.Connection) -> None:
    """Apply the missing steps, in one transaction. The caller holds the migrations' lock."""
    with connection.transaction():
        fresh = connection.execute(_NOTED).fetchone() == (False,)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS queue_migrations (name text PRIMARY KEY, "
            "applied_at timestamptz NOT NULL DEFAULT now())"
        )
        noted = {row[0] for row in connection.execute("SELECT name FROM queue_migrations").fetchall()}
        missing = [name for name in _steps() if name not in noted]
        bodies = [_whole_schema()] if fresh else [_step(name) for name in missing]
        for body in bodies:
            connection.execute(body)  # pyright: ignore[reportArgumentType, reportCallIssue]
        for name in missing:
            connection.execute("INSERT INTO queue_migrations (name) VALUES (%s)", (name,))


def _steps() -> list[str]:
    return sorted(file.name for file in (_folder() / "migrations").iterdir() if file.name.endswith(".sql"))


def _step(name: str) -> str:
    return (_folder() / "migrations" / name).read_text(encoding="utf-8")


def _whole_schema() -> str:
    return (_folder() / "schema.sql").read_text(encoding="utf-8")


def _folder() -> Path:
    """Return the folder of procrastinate's statements; the package is not imported, for which every start would wait.

    Raises:
        FileNotFoundError: the package is not installed.
    """
    spec = find_spec("procrastinate")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("procrastinate is not installed")
    return Path(spec.origin).parent / "sql"


# --- The work that goes on now: workers, and the jobs that wait or run with their parts ---

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
