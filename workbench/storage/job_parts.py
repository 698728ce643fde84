"""The parts of a job: their contents, the workers that hold them, and their results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from workbench.errors import NotFound, WorkbenchError
from workbench.storage.database import Connection, Table, clean_parameters, statement
from workbench.types import JsonObject, JsonValue, Value

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

    def note(
        self, job_id: str, notes: Sequence[tuple[int, FileState, int, str | None]], connection: Connection | None = None
    ) -> None:
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
