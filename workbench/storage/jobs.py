"""Jobs: long work with its progress, outcome and log, and the queue from which workers take it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg.types.json import Jsonb

from workbench.errors import NotFound
from workbench.storage.database import (
    Connection,
    Database,
    Row,
    Table,
    check_reachable,
    clean_parameters,
    new_id,
    read_connect_timeout,
    session_arguments,
    statement,
)
from workbench.storage.job_parts import EmbeddingParts, JobFiles, JobParts
from workbench.types import JsonValue, Progress, Value, duration_text

if TYPE_CHECKING:
    from procrastinate import App

# The queue: procrastinate on the workbench's database

RUN_TASK = "workbench.run_job"
JOIN_TASK = "workbench.join_job"
QUEUE = "workbench"  # prefix of the queues, one per kind of job; without a kind: jobs of older versions


class Queue:
    """Puts jobs into the queue, and makes the app with which workers take them."""

    def __init__(self, url: str) -> None:
        """Set the libpq URL; nothing is connected."""
        self._url = url
        self._lock = threading.Lock()
        self._deferring: App | None = None

    def defer(self, connection: Connection, job_id: str, kind: str) -> None:
        """Put a job into the queue, in the transaction that creates it."""
        app = self._app_to_defer()
        task = app.configure_task(RUN_TASK, queue=f"{QUEUE}.{kind}", lock=job_id, connection=connection)
        task.defer(job_id=job_id)

    def invite(self, database: Database, job_id: str, kind: str, seconds: int) -> None:
        """Ask a worker to take parts of a job, unless an invitation is already waiting."""
        from procrastinate.exceptions import AlreadyEnqueued

        invitation = f"join {job_id}"
        if database.rows(statement("job_invitation"), {"lock": invitation}):
            return
        with suppress(AlreadyEnqueued), database.transaction() as connection:
            task = self._app_to_defer().configure_task(
                JOIN_TASK,
                queue=f"{QUEUE}.{kind}",
                queueing_lock=invitation,
                schedule_in={"seconds": seconds},
                connection=connection,
            )
            task.defer(job_id=job_id)

    def worker_app(
        self, run: Callable[[str], None], join: Callable[[str], None], retry_on: type[Exception], *, pooled: bool
    ) -> App:
        """Return a procrastinate app with the tasks ``run(job_id)`` and ``join(job_id)``.

        Args:
            join: Takes parts of a job; it is never queued again.
            retry_on: Exception of ``run`` that puts the job back into the queue.
            pooled: Whether there is a pooler; see ``is_pooled``.
        """
        import procrastinate

        arguments = session_arguments(pooled)
        connector = procrastinate.PsycopgConnector(conninfo=self._url, min_size=1, max_size=4, kwargs=arguments)
        app = procrastinate.App(connector=connector)
        # A high limit, not infinity: each orderly stop of a worker uses one attempt.
        again = procrastinate.RetryStrategy(max_attempts=10_000, wait=1, retry_exceptions=[retry_on])
        app.task(name=RUN_TASK, queue=QUEUE, retry=again)(run)
        app.task(name=JOIN_TASK, queue=QUEUE)(join)
        return app

    def is_pooled(self) -> bool:
        """Return whether there is a pooler, which does not forward notifications of new jobs.

        Raises:
            StorageError: The database is unreachable.
        """
        return check_reachable(self._url, read_connect_timeout(self._url))

    def _app_to_defer(self) -> App:
        import procrastinate

        with self._lock:
            if self._deferring is None:  # never opened: all statements use the caller's connection
                self._deferring = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=self._url))
            return self._deferring


def name_queues(kinds: Iterable[str]) -> list[str]:
    return [QUEUE, *(f"{QUEUE}.{kind}" for kind in kinds)]


FINISHED_STATUSES = ("completed", "completed_with_errors", "cancelled", "failed")
_HINT = "List the jobs to see the valid ids."
STALLED_AFTER_S = 60.0  # seconds without a change after which a job is reported as stalled
SILENT_AFTER_S = 15.0  # seconds without a heartbeat after which a worker counts as gone, as in the queue
WORKER_FAILS = "The worker fails and is started again every few seconds: "  # then its last line
MIN_PASSAGES_FOR_PACE = 50  # embedded passages from which an ingest's pace is meaningful


@dataclass(frozen=True, slots=True)
class Job(Value):
    """A piece of long work."""

    id: str
    kind: str
    title: str
    status: str
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    source_id: str | None = None
    done: int = 0  # in the unit of its kind (pages, documents)
    total: int = 0  # 0 if unknown
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
    part: float = 0.0  # finished share (0..1) of the items in progress
    taken_at: datetime | None = None  # by the present worker
    put_away: bool = False
    seconds_left: float | None = None  # its runner's estimate minus the time since; None if unknown or if it has passed
    moved_at: datetime | None = None
    share: float = 0.0  # finished share (0..1) of all work by its slowest stage
    stalled: str | None = None  # what to do about a job without any change for a minute, or why its worker fails

    @property
    def is_finished(self) -> bool:
        """True if no worker will touch it again unless requested."""
        return self.status in FINISHED_STATUSES

    @property
    def state(self) -> str:
        """The displayed status, which may be "stalled"."""
        return describe_state(self.status, self.stalled)


@dataclass(frozen=True, slots=True)
class LogLine(Value):
    id: int
    at: datetime
    level: str
    message: str


_COLUMNS = frozenset(each.name for each in fields(Job)) - {"stalled"}


def parse_job(row: Row) -> Job:
    """Return the job from a row that includes ``job_standing``, as of now."""
    left, quiet = row["seconds_left"], row.get("quiet")
    if left is not None and quiet is not None:
        left = left - quiet if left > quiet else None
    share = row["share"]
    is_over = row["status"] == "failed" and row["done"] >= row["total"]
    if share is None or is_over or row["status"].startswith("completed"):
        share = min(1.0, (row["done"] + row["part"]) / row["total"]) if row["total"] else 0.0
    values: Row = {name: value for name, value in row.items() if name in _COLUMNS}
    stalled = describe_stall(row)
    values |= {"seconds_left": None if stalled else left, "share": round(share, 4), "stalled": stalled}
    return Job(**values)


def describe_state(status: str, stalled: str | None) -> str:
    """Return the displayed status of a job, which may be "stalled"."""
    return "stalled" if stalled else status.replace("_", " ")


def describe_stall(row: Row) -> str | None:
    """Return what to do about a job that has not changed for a minute, or whose worker is silent; None otherwise.

    A job that waits while workers are busy with other jobs is not stalled; one is at once if its only worker fails.
    """
    quiet, workers, silent = row.get("quiet"), row.get("workers"), row.get("silent")
    if row["status"] == "queued" and not workers and row["message"].startswith(WORKER_FAILS):
        return row["message"]
    is_silent = silent is not None and silent >= SILENT_AFTER_S
    if quiet is None or quiet < (SILENT_AFTER_S if is_silent else STALLED_AFTER_S):
        return None
    span, worker = duration_text(quiet), row["worker"] or "unknown"
    if row["status"] == "queued":
        if not workers:
            return f"It has been waiting for {span} and no worker is running; start one with 'workbench worker'."
        if row["are_busy"]:
            return None
        return (
            f"It has been waiting for {span}, but no running worker takes it; restart the workers, or run "
            "'workbench worker'."
        )
    if silent is not None and not is_silent:
        return (
            f"Stalled: nothing has changed for {span}. Worker {worker} holds it; restart that worker, or cancel the "
            "job and resume it. Finished work is kept."
        )
    if row["is_held"]:
        another = "" if workers else ", which you start with 'workbench worker'"
        return (
            f"Stalled: nothing has changed for {span}, and its worker {worker} does not answer; end that process, so "
            f"that another worker resumes it{another}."
        )
    if not workers:
        return (
            f"Stalled: its worker {worker} has sent no heartbeat for {span}, and no other is running; start one "
            "with 'workbench worker' to resume it."
        )
    return f"Stalled: its worker {worker} has sent no heartbeat for {span}; a running worker resumes it soon."


def measure_ingest_pace(database: Database) -> float | None:
    """Return the seconds per passage in the last ingest that embedded enough of them; None if there was none."""
    row = database.row(statement("job_pace"), {"enough": MIN_PASSAGES_FOR_PACE})
    return None if row is None else float(row["pace"])


class Jobs(Table):
    """The tables ``jobs`` and ``job_log``; a job, its files and its queue entry are stored in one transaction."""

    def __init__(self, database: Database, queue: Queue) -> None:
        super().__init__(database)
        self._queue = queue
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
        """Store a new job and queue it, in the caller's transaction; returns its id."""
        job_id = new_id("job")
        values = {"id": job_id, "kind": kind, "title": title, "source_id": source_id}
        connection.execute(
            statement("job_insert"),
            clean_parameters(values) | {"parameters": Jsonb(clean_parameters(dict(parameters)))},
        )
        self.files.add(connection, job_id, files)
        self._queue.defer(connection, job_id, kind)
        return job_id

    def transaction(self) -> AbstractContextManager[Connection]:
        """Return a transaction for storing a job, its files and its queue entry together."""
        return self._database.transaction()

    def get(self, job_id: str) -> Job:
        """Return a job. Raises NotFound."""
        return parse_job(self._get("job_get", {"id": job_id}, NotFound("job", job_id, _HINT)))

    def list(
        self,
        *,
        kind: str | None = None,
        status: str | None = None,
        source_id: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Job]:
        parameters = {"kind": kind, "status": status, "source_id": source_id, "limit": limit, "offset": offset}
        return [parse_job(row) for row in self._rows("job_list", parameters)]

    def count(self, *, kind: str | None = None, status: str | None = None) -> int:
        """Return the number of jobs that ``list`` would return without a limit."""
        return int(self._value("job_count", {"kind": kind, "status": status}))

    def list_unfinished(self, kind: str) -> list[Job]:
        """Return the waiting and running jobs of a kind, oldest first."""
        return [parse_job(row) for row in self._rows("job_unfinished", {"kind": kind})]

    def with_parameters(
        self, kind: str, parameters: Mapping[str, JsonValue], *, unfinished: bool = False
    ) -> Job | None:
        """Return the newest job of a kind whose parameters include the given ones, optionally only unfinished ones."""
        given = {"kind": kind, "parameters": Jsonb(dict(parameters)), "unfinished": unfinished}
        row = self._row("job_with_parameters", given)
        return None if row is None else parse_job(row)

    def any_queued(self, kinds: Sequence[str]) -> bool:
        """Return whether a job of these kinds is waiting for a worker."""
        return bool(self._value("job_any_queued", {"kinds": list(kinds)}))

    def invite(self, job_id: str, kind: str, seconds: int = 0) -> None:
        """Ask another worker to take parts of a job after a delay; only one invitation waits at a time."""
        self._queue.invite(self._database, job_id, kind, seconds)

    def any_part_waits(self, job_id: str) -> bool:
        return bool(self.parts.tally(job_id).waiting or self.embedding.tally(job_id).waiting)

    def any_waiting(self) -> bool:
        """Return whether a job waits for a worker or was abandoned by a dead one; cheap enough to call every second."""
        return bool(self._value("job_any_waiting"))

    def in_view(self) -> list[Job]:
        """Return unfinished jobs, and ingests and index builds of the last day that were not dismissed."""
        return [parse_job(row) for row in self._rows("job_in_view")]

    def note_worker_failure(self, reason: str) -> None:
        """Report on all waiting jobs why their worker fails, or with "" that it runs again."""
        message = f"{WORKER_FAILS}{reason}" if reason else "Waiting for a worker."
        self._rows("job_worker_failure", {"message": message, "fails": bool(reason), "failed": WORKER_FAILS})

    def put_away(self, job_id: str) -> None:
        """Hide a finished job from ``in_view``; its record is kept."""
        self._rows("job_put_away", {"id": job_id})

    def requeue(self, job_id: str) -> bool:
        """Queue a finished job again; False if it is not finished."""
        with self._database.transaction() as connection:
            row = connection.execute(statement("job_requeue"), {"id": job_id}).fetchone()
            if row is not None:
                self._queue.defer(connection, job_id, row["kind"])
        return row is not None

    def begin(self, job_id: str, worker: str) -> Job | None:
        """Assign a job to a worker; None if it is finished or deleted."""
        row = self._row("job_begin", {"id": job_id, "worker": worker})
        return None if row is None else parse_job(row)

    def fills(self, job_id: str, source_id: str) -> None:
        self._rows("job_source", {"id": job_id, "source_id": source_id})

    def progress(self, job_id: str, progress: Progress) -> None:
        values = {"id": job_id, "done": progress.done, "total": progress.total, "message": progress.message}
        values |= {"part": progress.part, "seconds_left": progress.seconds_left, "share": progress.share}
        self._rows("job_progress", values)

    def beat(self, job_id: str) -> None:
        """Record a heartbeat for a slow step whose numbers do not change."""
        self._rows("job_beat", {"id": job_id})

    def finish(
        self,
        job_id: str,
        status: str,
        *,
        message: str,
        error: str | None = None,
        result: Mapping[str, JsonValue] | None = None,
    ) -> None:
        values = clean_parameters({"id": job_id, "status": status, "message": message, "error": error})
        self._rows("job_finish", values | {"result": Jsonb(clean_parameters(dict(result or {})))})

    def release(self, job_id: str) -> None:
        """Release a running job because its worker is stopping."""
        self._rows("job_release", {"id": job_id})

    def cancel(self, job_id: str) -> str | None:
        """Ask a job to stop; returns its status ("running" until it has stopped), or None if it was finished."""
        row = self._row("job_cancel", {"id": job_id})
        return None if row is None else str(row["status"])

    def cancel_requested(self, job_id: str) -> bool:
        return bool(self._value("job_cancel_requested", {"id": job_id}))

    def delete(self, job_id: str) -> None:
        """Delete a job with its log, files and pages."""
        self._rows("job_delete", {"id": job_id})

    def log(self, job_id: str, message: str, level: str = "info") -> None:
        self._rows("job_log_add", {"job_id": job_id, "level": level, "message": message})

    def log_lines(self, job_id: str, *, after: int = 0, limit: int = 200) -> list[LogLine]:
        """Return the last log lines after a line's id, oldest first."""
        parameters = {"job_id": job_id, "after": after, "limit": limit}
        return [LogLine(**row) for row in self._rows("job_log_list", parameters)]


# The queue's tables: procrastinate's schema, updated under the migrations' lock

_HAS_MIGRATIONS = "SELECT to_regclass('queue_migrations') IS NOT NULL"


def is_current(connection: psycopg.Connection) -> bool:
    """Return whether the database has all migrations of the installed version."""
    if connection.execute(_HAS_MIGRATIONS).fetchone() == (False,):
        return False
    noted = {row[0] for row in connection.execute("SELECT name FROM queue_migrations").fetchall()}
    return set(_steps()) <= noted


def migrate_queue(connection: psycopg.Connection) -> None:
    """Apply the missing migrations in one transaction; the caller holds the migrations' lock."""
    with connection.transaction():
        fresh = connection.execute(_HAS_MIGRATIONS).fetchone() == (False,)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS queue_migrations (name text PRIMARY KEY, "
            "applied_at timestamptz NOT NULL DEFAULT now())"
        )
        noted = {row[0] for row in connection.execute("SELECT name FROM queue_migrations").fetchall()}
        missing = [name for name in _steps() if name not in noted]
        for file in ["schema.sql"] if fresh else [f"migrations/{name}" for name in missing]:
            body = (_folder() / file).read_text(encoding="utf-8")
            connection.execute(body)  # pyright: ignore[reportArgumentType, reportCallIssue]
        for name in missing:
            connection.execute("INSERT INTO queue_migrations (name) VALUES (%s)", (name,))


def _steps() -> list[str]:
    return sorted(file.name for file in (_folder() / "migrations").iterdir() if file.name.endswith(".sql"))


def _folder() -> Path:
    """Return the folder of procrastinate's SQL, without importing the package, which would slow down every start."""
    spec = find_spec("procrastinate")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("procrastinate is not installed")
    return Path(spec.origin).parent / "sql"


# Present workload: workers, and waiting and running jobs with their parts

MAX_JOBS_SHOWN = 50  # jobs


@dataclass(frozen=True, slots=True)
class JobLoad(Value):
    """A waiting or running job; ``share``, ``seconds_left`` and ``stalled`` as in ``Job``."""

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
    parts: int  # 0 if it is not divided
    parts_done: int
    hands: int  # workers with a part

    @property
    def workers(self) -> int:
        """Number of workers: those that hold a part, or the one that runs the job."""
        return max(self.hands, 1 if self.worker else 0)

    @property
    def state(self) -> str:
        """The displayed status, which may be "stalled"."""
        return describe_state(self.status, self.stalled)


@dataclass(frozen=True, slots=True)
class Workload(Value):
    workers: int  # that are alive, on any machine
    queued: int
    running: int
    jobs: tuple[JobLoad, ...]  # the first 50

    @property
    def stalled(self) -> tuple[JobLoad, ...]:
        """Jobs that have not changed for a minute, or that no worker takes."""
        return tuple(job for job in self.jobs if job.stalled)

    @property
    def sentence(self) -> str:
        if not (self.queued or self.running or self.workers):
            return "No job is queued or running, and no worker is needed."
        stalled = f", {len(self.stalled)} of them stalled" if self.stalled else ""
        workers = (
            f"workers: {self.workers}." if self.workers else "no worker is running: start one with 'workbench worker'."
        )
        return f"Jobs: {self.queued} queued, {self.running} running{stalled}; {workers}"


def fetch_workload(database: Database) -> Workload:
    """Return the current workload. Raises StorageError if the database is unreachable."""
    counts = database.row(statement("work_counts"), {"silent": SILENT_AFTER_S}) or {}
    rows = database.rows(statement("work_going_on"), {"limit": MAX_JOBS_SHOWN})
    loads: list[JobLoad] = []
    for row in rows:
        job = parse_job(row)
        values: Row = {**row, "seconds_left": job.seconds_left, "share": job.share, "stalled": job.stalled}
        loads.append(JobLoad(**{each.name: values[each.name] for each in fields(JobLoad)}))
    return Workload(**counts, jobs=tuple(loads))
