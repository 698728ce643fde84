"""Jobs: long work with its progress, outcome and log, the queue from which workers take it, and its parts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from workbench.errors import NotFound, WorkbenchError
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
from workbench.types import JsonObject, JsonValue, Progress, Value, duration_text

if TYPE_CHECKING:
    from procrastinate import App

# Embedding parts: texts that several workers embed for the one that stores them

MAX_ATTEMPTS = 10  # times that a part is taken at most: it then kills its workers
GIVEN_UP = f"Workers died {MAX_ATTEMPTS} times on a part of the job; check the machine's memory, then resume the job."
Vectors = tuple[NDArray[np.float32], bytes | None]  # of one text: its vector, and its token bits if there are any


@dataclass(frozen=True, slots=True)
class EmbeddingPart:
    """Texts that a worker has taken to embed with ``model``."""

    id: int
    model: str
    texts: list[str]


@dataclass(frozen=True, slots=True)
class EmbeddingTally:
    """Progress of a job's texts that are embedded by several workers and not yet stored."""

    waiting: int
    holders: int  # workers with a part
    passages: int
    passages_done: int


@dataclass(frozen=True, slots=True)
class OrphanedPart:
    """A part of an owner that died, with the hashes of its texts."""

    id: int
    hashes: list[bytes]
    done: bool


@dataclass(frozen=True, slots=True)
class EmbeddingPartState:
    """One part as its owner sees it; ``given_up`` if it was taken too often and no worker holds it."""

    id: int
    passages: int
    done: bool
    given_up: bool


class EmbeddingParts(Table):
    def publish(self, job_id: str, owner: str, model: str, hashes: Sequence[bytes], texts: Sequence[str]) -> int | None:
        """Offer texts to all workers for embedding; returns the part's id, or None if the job is gone."""
        data = json.dumps(list(texts)).encode()
        values = {"job_id": job_id, "owner": owner, "model": model, "hashes": list(hashes), "texts": data}
        row = self._row("embedding_part_publish", values)
        return None if row is None else int(row["id"])

    def adopt(self, job_id: str, owner: str, model: str, hashes: Sequence[bytes]) -> list[OrphanedPart]:
        values = {"job_id": job_id, "owner": owner, "model": model, "hashes": list(hashes)}
        rows = self._rows("embedding_parts_adopt", values)
        return [OrphanedPart(row["id"], [bytes(key) for key in row["hashes"]], row["state"] == "done") for row in rows]

    def take(self, job_id: str, holder: str, model: str | None) -> EmbeddingPart | None:
        """Take the first part (for one model) that is waiting or whose holder is gone; the taker must hold a lock."""
        values = {"job_id": job_id, "holder": holder, "model": model, "most": MAX_ATTEMPTS}
        row = self._row("embedding_part_take", values)
        return None if row is None else EmbeddingPart(row["id"], row["model"], json.loads(row["texts"]))

    def done(self, part_id: int, holder: str, vectors: NDArray[np.float32], bits: Sequence[bytes] | None) -> None:
        """Store a part's vectors, float32 of shape (texts, dimensions); ignored if another worker holds it now."""
        data = np.ascontiguousarray(vectors, dtype=np.float32).tobytes()
        values = {"id": part_id, "holder": holder, "vectors": data, "token_bits": None if bits is None else list(bits)}
        self._rows("embedding_part_done", values)

    def give_back(self, job_id: str, holder: str) -> None:
        self._rows("embedding_parts_give_back", {"job_id": job_id, "holder": holder})

    def fetch_states(self, ids: Sequence[int]) -> list[EmbeddingPartState]:
        """Return whether each of these parts is done; parts that are gone are omitted."""
        rows = self._rows("embedding_parts_done", {"ids": list(ids), "most": MAX_ATTEMPTS})
        return [EmbeddingPartState(**row) for row in rows]

    def vectors(self, part_id: int) -> Iterator[tuple[bytes, Vectors]]:
        """Yield the hash and the vectors of each text of a finished part; nothing if the part is gone."""
        row = self._row("embedding_part_vectors", {"id": part_id})
        if row is None:
            return
        hashes: list[bytes] = row["hashes"]
        bits: list[bytes | None] = row["token_bits"] or [None] * len(hashes)
        rows = np.frombuffer(row["vectors"], dtype=np.float32).reshape(len(hashes), -1)
        yield from ((key, (vector, of_tokens)) for key, vector, of_tokens in zip(hashes, rows, bits, strict=True))

    def tally(self, job_id: str) -> EmbeddingTally:
        """Count a job's passages that are being embedded or wait to be stored."""
        return EmbeddingTally(**self._row("embedding_parts_tally", {"job_id": job_id}) or {})


def drop_embedding_parts(connection: Connection, ids: Sequence[int]) -> None:
    """Delete parts, in the transaction that stores their vectors in an index."""
    connection.execute(statement("embedding_parts_drop"), {"ids": list(ids)})


@dataclass(frozen=True, eq=False)
class EmbeddingLease:
    """The embedding parts of one job, as offered and taken by one holder; its process holds a lock of the same name."""

    parts: EmbeddingParts
    job_id: str
    holder: str
    invite: Callable[[], None]  # asks another worker to help
    is_wanted_elsewhere: Callable[[], bool]  # whether a helper should take no more parts

    def publish(self, model: str, hashes: Sequence[bytes], texts: Sequence[str]) -> int | None:
        """Offer texts to all workers including this one; returns the part's id, or None if the job is gone."""
        part_id = self.parts.publish(self.job_id, self.holder, model, hashes, texts)
        self.invite()
        return part_id

    def adopt(self, model: str, hashes: Sequence[bytes]) -> list[OrphanedPart]:
        """Take over the parts with these texts that a dead owner left behind."""
        return self.parts.adopt(self.job_id, self.holder, model, hashes) if hashes else []

    def take(self, model: str | None = None) -> EmbeddingPart | None:
        """Take the next part: for one model, or as a helper for any model unless this worker is wanted elsewhere."""
        if model is None and self.is_wanted_elsewhere():
            return None
        part = self.parts.take(self.job_id, self.holder, model)
        if part is not None and self.tally().waiting:
            self.invite()
        return part

    def done(self, part: EmbeddingPart, vectors: NDArray[np.float32], token_bits: Sequence[bytes] | None) -> None:
        self.parts.done(part.id, self.holder, vectors, token_bits)

    def tally(self) -> EmbeddingTally:
        """Count the job's passages that are being embedded."""
        return self.parts.tally(self.job_id)

    def give_back(self) -> None:
        """Release the parts that this holder still has."""
        self.parts.give_back(self.job_id, self.holder)


# Files of an ingest job: uploads that wait for a worker, and the outcome of every file

FileState = Literal["waiting", "busy", "added", "changed", "unchanged", "failed"]
FileNote = tuple[int, FileState, int, str | None]  # position, state, passages, error
SETTLED_STATES = ("added", "changed", "unchanged", "failed")


@dataclass(frozen=True, slots=True)
class JobFile(Value):
    position: int
    name: str
    size: int  # bytes
    state: FileState
    passages: int = 0
    error: str | None = None  # the reason if it failed


@dataclass(frozen=True, slots=True)
class FileTally(Value):
    """A job's files by state; shares (0..1) are weighted by size."""

    files: Mapping[str, int] = field(default_factory=dict)
    settled: float = 0.0  # share with an outcome
    busy: float = 0.0  # share in progress
    recent: float = 0.0  # share that the present worker has settled

    @property
    def total(self) -> int:
        return sum(self.files.values())

    @property
    def settled_files(self) -> int:
        return sum(self.files.get(state, 0) for state in SETTLED_STATES)


MAX_FILES_LISTED = 200  # of a job, listed by default


class JobFiles(Table):
    def add(self, connection: Connection, job_id: str, files: Sequence[tuple[str, bytes]]) -> None:
        """Store uploads, in the transaction that creates their job."""
        for position, (name, data) in enumerate(files):
            values = {"job_id": job_id, "position": position, "name": clean_parameters(name), "bytes": data}
            connection.execute(statement("job_file_add"), values)

    def add_found(self, job_id: str, files: Sequence[tuple[str, int]]) -> None:
        """Add files (name, size) that a worker found under the given paths."""
        names, sizes = [name for name, _ in files], [size for _, size in files]
        self._rows("job_files_found", {"job_id": job_id, "names": names, "sizes": sizes})

    def places(self, job_id: str) -> dict[str, int]:
        """Return the position of every file by its name (the last one, if several have the name)."""
        return {row["name"]: row["position"] for row in self._rows("job_files_places", {"job_id": job_id})}

    def uploads(self, job_id: str) -> list[tuple[int, str, int]]:
        """Return (position, name, bytes) of the stored uploads."""
        rows = self._rows("job_files_places", {"job_id": job_id})
        return [(row["position"], row["name"], row["size"]) for row in rows if row["uploaded"]]

    def bytes(self, job_id: str, position: int) -> bytes:
        """Return the content of one upload. Raises NotFound."""
        missing = NotFound("upload", f"{job_id}/{position}")
        return bytes(self._get("job_file_bytes", {"job_id": job_id, "position": position}, missing)["bytes"])

    def wait(self, job_id: str) -> None:
        """Set the files of a worker that is gone back to waiting."""
        self._rows("job_files_wait", {"job_id": job_id})

    def note(self, job_id: str, notes: Sequence[FileNote], connection: Connection | None = None) -> None:
        """Record (position, state, passages, error) of files, in the caller's transaction if there is one."""
        positions, states, passages, errors = ([row[place] for row in notes] for place in range(4))
        values = {"positions": positions, "states": states, "passages": passages, "errors": errors}
        parameters = clean_parameters({"job_id": job_id} | values)
        if connection is None:
            self._rows("job_files_note", parameters)
        else:
            connection.execute(statement("job_files_note"), parameters)

    def forget_bytes(self, job_id: str) -> None:
        """Delete the content of uploads that were ingested; their states are kept."""
        self._rows("job_files_forget_bytes", {"job_id": job_id})

    def list(self, job_id: str, *, limit: int = MAX_FILES_LISTED) -> list[JobFile]:
        """Return a job's files in order; beyond ``limit``, only the failed, active and latest ones."""
        return [JobFile(**row) for row in self._rows("job_files_list", {"job_id": job_id, "limit": limit})]

    def tally(self, job_id: str) -> FileTally:
        rows = self._rows("job_files_tally", {"job_id": job_id})
        whole = sum(row["weight"] for row in rows) or 1.0
        return FileTally(
            files={row["state"]: row["files"] for row in rows},
            settled=sum(row["weight"] for row in rows if row["state"] in SETTLED_STATES) / whole,
            busy=sum(row["weight"] for row in rows if row["state"] == "busy") / whole,
            recent=sum(row["recent"] for row in rows) / whole,
        )


POLL_INTERVAL_S = 0.2  # seconds between checks of parts that others hold


class PartLost(Exception):
    """An event, not an error: another worker holds the part, or the job was restarted; its work is discarded."""


@dataclass(frozen=True, slots=True)
class Part:
    position: int
    content: JsonValue  # names its documents, files or questions
    items: int  # their number


@dataclass(frozen=True, slots=True)
class PartsTally:
    """Progress of the parts of a job."""

    parts: int
    done: int
    waiting: int
    items: int  # in the unit of the job's progress
    items_done: int
    holders: int  # workers with a part
    given_up: int  # parts that were taken too often and that nothing holds
    weight: int  # work in all parts, in bytes of text if known
    weight_done: int
    weight_busy: int

    def share(self, part: float) -> float:
        """Return the finished share (0..1) of the work, given the finished share ``part`` of the parts in progress."""
        return (self.weight_done + part * self.weight_busy) / self.weight if self.weight else 0.0

    def to_json(self) -> JsonObject:
        """Return the progress as JSON, with the keys of ``JobLoad``; empty if the job has no parts."""
        if not self.parts and not self.holders:
            return {}
        return {"parts": self.parts, "parts_done": self.done, "hands": self.holders}


class JobParts(Table):
    def plan(self, job_id: str, parts: Sequence[tuple[JsonValue, int]], weights: Sequence[int] | None = None) -> None:
        """Store a job's parts (content, items) in the order in which to take them.

        ``weights`` are their bytes of text; by default, their numbers of items.
        """
        contents, items = [json.dumps(clean_parameters(content)) for content, _ in parts], [count for _, count in parts]
        values = {"job_id": job_id, "contents": contents, "items": items, "weights": list(weights or items)}
        self._rows("job_parts_plan", values)

    def plan_index(self, job_id: str, index: str, dataset: str | None, part_bytes: int) -> None:
        """Split the documents that an index lacks into parts of about ``part_bytes`` bytes of text, and store them."""
        values = {"job_id": job_id, "index": index, "dataset": dataset, "part_bytes": part_bytes}
        self._rows("job_parts_plan_index", values)

    def are_planned(self, job_id: str) -> bool:
        return bool(self._value("job_parts_planned", {"job_id": job_id}))

    def take(self, job_id: str, holder: str) -> Part | None:
        """Take the first part that is waiting or whose holder is gone; ``holder`` must be the name of a held lock."""
        values = {"job_id": job_id, "holder": holder, "most": MAX_ATTEMPTS}
        row = self._row("job_part_take", values)
        return None if row is None else Part(**row)

    def done(
        self, connection: Connection, job_id: str, position: int, holder: str, result: Mapping[str, JsonValue]
    ) -> None:
        """Record the result of a part, as the last statement of the transaction that stores its work.

        It must be last because deleting a source locks every index before it reaches the parts.

        Raises:
            PartLost: Another worker holds the part; the transaction must be rolled back.
        """
        values = {
            "job_id": job_id,
            "position": position,
            "holder": holder,
            "result": Jsonb(clean_parameters(dict(result))),
        }
        if connection.execute(statement("job_part_done"), values).fetchone() is None:
            raise PartLost(f"{job_id}/{position}")

    def give_back(self, job_id: str, holder: str) -> None:
        self._rows("job_parts_give_back", {"job_id": job_id, "holder": holder})

    def tally(self, job_id: str) -> PartsTally:
        counts = statement("job_parts_tally")
        return PartsTally(**self._database.row(counts, {"job_id": job_id, "most": MAX_ATTEMPTS}) or {})

    def results(self, job_id: str) -> list[tuple[Part, JsonObject]]:
        rows = self._rows("job_parts_results", {"job_id": job_id})
        return [(Part(row["position"], row["content"], row["items"]), row["result"]) for row in rows]


@dataclass(eq=False)
class PartsLease:
    """The parts of one job as taken by one holder: the worker that runs the job, or a helper.

    It is used while its process holds a lock of the holder's name (``Jobs.hold``).
    """

    parts: JobParts
    leads: bool  # true for the worker that runs the job, which waits until every part is done
    embedding: EmbeddingLease  # the same holder's embedding parts, for sharing a large part
    done_here: int = 0

    def take(self) -> Part | None:
        """Take the next part; None if there is none for this holder now."""
        if not self.leads and self.embedding.is_wanted_elsewhere():
            return None
        part = self.parts.take(self.embedding.job_id, self.embedding.holder)
        if part is not None and self.tally().waiting:
            self.embedding.invite()
        return part

    def all_taken(self) -> Iterator[Part | None]:
        """Yield parts until none is left; the leader gets None every 0.2 s while others work on theirs.

        Raises:
            WorkbenchError: A part was taken too often, because it kills its workers.
        """
        while True:
            part = self.take()
            if part is not None:
                yield part
                continue
            tally = self.tally()
            if not self.leads or tally.done == tally.parts:
                return
            if tally.given_up:
                raise WorkbenchError(GIVEN_UP)
            yield None
            if self.tally().done < tally.parts:  # excludes what this holder was writing
                time.sleep(POLL_INTERVAL_S)

    def done(self, connection: Connection, part: Part, result: Mapping[str, JsonValue] | None = None) -> None:
        """Record the result of a part, as the last statement of the transaction that stores its work.

        Raises:
            PartLost: Another worker holds the part.
        """
        self.parts.done(connection, self.embedding.job_id, part.position, self.embedding.holder, result or {})
        self.done_here += 1

    def tally(self) -> PartsTally:
        return self.parts.tally(self.embedding.job_id)

    def results(self) -> list[tuple[Part, JsonObject]]:
        return self.parts.results(self.embedding.job_id)

    def give_back(self) -> None:
        """Release the parts that this holder still has."""
        self.parts.give_back(self.embedding.job_id, self.embedding.holder)


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
