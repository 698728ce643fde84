"""The parts of a job: what they hold, who has them in hand, and what came out of them."""

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
from workbench.storage.database import Connection, Database, clean
from workbench.storage.statements import statement
from workbench.types import JsonObject, JsonValue, Value

# --- Texts that several workers embed for one of them, who then writes them: parts of one large document or of ---

MOST_TIMES = 10  # a part is taken so often at most: one that has not been done then kills its workers
Vectors = tuple[NDArray[np.float32], bytes | None]  # of one text: its vector, and its token bits where there are some


@dataclass(frozen=True, slots=True)
class EmbeddingPart:
    """Texts in somebody's hands, to be embedded by ``model``."""

    id: int
    model: str
    texts: list[str]


@dataclass(frozen=True, slots=True)
class EmbeddingTally:
    """How far the texts of a job are that are embedded and not yet written; ``holders`` have a part in hand."""

    waiting: int
    holders: int
    passages: int
    passages_done: int


@dataclass(frozen=True, slots=True)
class Adopted:
    """A part that a dead owner left, with the hashes of its texts."""

    id: int
    hashes: list[bytes]
    done: bool


@dataclass(frozen=True, slots=True)
class EmbeddingStanding:
    """One part as its owner sees it; ``given_up`` when it was taken too often and nobody has it in hand."""

    id: int
    passages: int
    done: bool
    given_up: bool


class EmbeddingParts:
    """The table ``embedding_parts``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def publish(self, job_id: str, owner: str, model: str, hashes: Sequence[bytes], texts: Sequence[str]) -> int | None:
        """Let texts be embedded by whoever takes them; returns the part's id, None where the job is gone."""
        data = json.dumps(list(texts)).encode()
        values = {"job_id": job_id, "owner": owner, "model": model, "hashes": list(hashes), "texts": data}
        row = self._database.row(statement("embedding_part_publish"), values)
        return None if row is None else int(row["id"])

    def adopt(self, job_id: str, owner: str, model: str, hashes: Sequence[bytes]) -> list[Adopted]:
        """Take over the parts of dead owners that begin with one of these texts."""
        values = {"job_id": job_id, "owner": owner, "model": model, "hashes": list(hashes)}
        rows = self._database.rows(statement("embedding_parts_adopt", gone="embedding_owner_gone"), values)
        return [Adopted(row["id"], [bytes(key) for key in row["hashes"]], row["state"] == "done") for row in rows]

    def take(self, job_id: str, holder: str, model: str | None) -> EmbeddingPart | None:
        """Take the first part (for one model) that waits or whose holder is gone, for somebody who holds a lock."""
        values = {"job_id": job_id, "holder": holder, "model": model, "most": MOST_TIMES}
        row = self._database.row(statement("embedding_part_take", gone="job_part_gone"), values)
        return None if row is None else EmbeddingPart(row["id"], row["model"], json.loads(row["texts"]))

    def done(self, part_id: int, holder: str, vectors: NDArray[np.float32], bits: Sequence[bytes] | None) -> None:
        """Keep a part's vectors, float32 of shape (texts, dimensions); nothing where others have it in hand now."""
        data = np.ascontiguousarray(vectors, dtype=np.float32).tobytes()
        values = {"id": part_id, "holder": holder, "vectors": data, "token_bits": None if bits is None else list(bits)}
        self._database.rows(statement("embedding_part_done"), values)

    def give_back(self, job_id: str, holder: str) -> None:
        """Let the parts that somebody still has in hand wait for others."""
        self._database.rows(statement("embedding_parts_give_back"), {"job_id": job_id, "holder": holder})

    def standing(self, ids: Sequence[int]) -> list[EmbeddingStanding]:
        """Tell of each of these parts whether it is done; one that is gone is left out."""
        values = {"ids": list(ids), "most": MOST_TIMES}
        rows = self._database.rows(statement("embedding_parts_done", gone="job_part_gone"), values)
        return [EmbeddingStanding(**row) for row in rows]

    def vectors(self, part_id: int) -> Iterator[tuple[bytes, Vectors]]:
        """Yield the hash of each text of a part that is done, with its vectors; nothing where the part is gone."""
        row = self._database.row(statement("embedding_part_vectors"), {"id": part_id})
        if row is None:
            return
        hashes: list[bytes] = row["hashes"]
        bits: list[bytes | None] = row["token_bits"] or [None] * len(hashes)
        rows = np.frombuffer(row["vectors"], dtype=np.float32).reshape(len(hashes), -1)
        yield from ((key, (vector, of_tokens)) for key, vector, of_tokens in zip(hashes, rows, bits, strict=True))

    def tally(self, job_id: str) -> EmbeddingTally:
        """Count a job's passages that are being embedded, and those that wait for being written."""
        row = self._database.row(statement("embedding_parts_tally"), {"job_id": job_id})
        return EmbeddingTally(**row or {})


def drop_embedding_parts(connection: Connection, ids: Sequence[int]) -> None:
    """Forget parts, in the transaction that writes their vectors into an index."""
    connection.execute(statement("embedding_parts_drop"), {"ids": list(ids)})


class EmbeddingHands:
    """The texts of one job as one pair of hands offers and takes them, while its process holds a lock of the name."""

    def __init__(
        self,
        parts: EmbeddingParts,
        job_id: str,
        holder: str,
        *,
        invite: Callable[[], None],
        is_wanted_elsewhere: Callable[[], bool],
    ) -> None:
        """Take ``invite`` and ``is_wanted_elsewhere`` as ``PartsInHand`` does."""
        self.parts, self._job_id, self._holder = parts, job_id, holder
        self._invite, self._is_wanted_elsewhere = invite, is_wanted_elsewhere

    def publish(self, model: str, hashes: Sequence[bytes], texts: Sequence[str]) -> int | None:
        """Offer texts to all workers, these hands among them; returns the part's id, None where the job is gone."""
        part_id = self.parts.publish(self._job_id, self._holder, model, hashes, texts)
        self._invite()
        return part_id

    def adopt(self, model: str, hashes: Sequence[bytes]) -> list[Adopted]:
        """Take over what a dead owner left of these texts."""
        return self.parts.adopt(self._job_id, self._holder, model, hashes) if hashes else []

    def take(self, model: str | None = None) -> EmbeddingPart | None:
        """Take the next part: of a model, or to help with any, where these hands are not wanted elsewhere."""
        if model is None and self._is_wanted_elsewhere():
            return None
        part = self.parts.take(self._job_id, self._holder, model)
        if part is not None and self.tally().waiting:
            self._invite()
        return part

    def done(self, part: EmbeddingPart, vectors: NDArray[np.float32], token_bits: Sequence[bytes] | None) -> None:
        """Keep a part's vectors."""
        self.parts.done(part.id, self._holder, vectors, token_bits)

    def tally(self) -> EmbeddingTally:
        """Count the job's passages that are being embedded."""
        return self.parts.tally(self._job_id)

    def give_back(self) -> None:
        """Let what is still in these hands wait for others."""
        self.parts.give_back(self._job_id, self._holder)


# --- The files of an ingest job: uploads that wait for a worker, and what became of every file ---

FileState = Literal["waiting", "busy", "added", "changed", "unchanged", "failed"]
FileNote = tuple[int, FileState, int, str | None]  # position, state, passages, error
SETTLED = ("added", "changed", "unchanged", "failed")


@dataclass(frozen=True, slots=True)
class JobFile(Value):
    """One file of a job; ``error`` says why it failed, ``size`` is in bytes."""

    position: int
    name: str
    size: int
    state: FileState
    passages: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class FileTally(Value):
    """A job's files by state; shares (0..1) are by weight, ``recent`` what the present worker has settled."""

    files: Mapping[str, int] = field(default_factory=dict)
    settled: float = 0.0
    busy: float = 0.0
    recent: float = 0.0

    @property
    def total(self) -> int:
        """Return how many files there are."""
        return sum(self.files.values())

    @property
    def settled_files(self) -> int:
        """Return of how many files it is known what became of them."""
        return sum(self.files.get(state, 0) for state in SETTLED)


class JobFiles:
    """The table ``job_files``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, connection: Connection, job_id: str, files: Sequence[tuple[str, bytes]]) -> None:
        """Keep uploads, in the transaction that makes their job."""
        for position, (name, data) in enumerate(files):
            values = {"job_id": job_id, "position": position, "name": clean(name), "bytes": data}
            connection.execute(statement("job_file_add"), values)

    def add_found(self, job_id: str, files: Sequence[tuple[str, int]]) -> None:
        """Note files (name, size) that a worker found under the given paths."""
        names, sizes = [name for name, _ in files], [size for _, size in files]
        self._database.rows(statement("job_files_found"), {"job_id": job_id, "names": names, "sizes": sizes})

    def places(self, job_id: str) -> dict[str, int]:
        """Return the position of every file by its name (of two of one name, the later)."""
        rows = self._database.rows(statement("job_files_places"), {"job_id": job_id})
        return {row["name"]: row["position"] for row in rows}

    def uploads(self, job_id: str) -> list[tuple[int, str, int]]:
        """Return (position, name, bytes) of the uploads that wait here."""
        rows = self._database.rows(statement("job_files_places"), {"job_id": job_id})
        return [(row["position"], row["name"], row["size"]) for row in rows if row["uploaded"]]

    def bytes(self, job_id: str, position: int) -> bytes:
        """Return one upload. Raises NotFound."""
        row = self._database.row(statement("job_file_bytes"), {"job_id": job_id, "position": position})
        if row is None:
            raise NotFound("upload", f"{job_id}/{position}")
        return bytes(row["bytes"])

    def wait(self, job_id: str) -> None:
        """Let the files that another worker had in hand wait again."""
        self._database.rows(statement("job_files_wait"), {"job_id": job_id})

    def note(
        self, job_id: str, notes: Sequence[tuple[int, FileState, int, str | None]], connection: Connection | None = None
    ) -> None:
        """Note (position, state, passages, error) of files, in the caller's transaction where there is one."""
        positions, states, passages, errors = ([row[place] for row in notes] for place in range(4))
        values = {"positions": positions, "states": states, "passages": passages, "errors": errors}
        parameters = clean({"job_id": job_id} | values)
        if connection is None:
            self._database.rows(statement("job_files_note"), parameters)
        else:
            connection.execute(statement("job_files_note"), parameters)

    def forget_bytes(self, job_id: str) -> None:
        """Let go of a job's uploads once they have arrived; the notes on them stay."""
        self._database.rows(statement("job_files_forget_bytes"), {"job_id": job_id})

    def list(self, job_id: str, limit: int) -> list[JobFile]:
        """Return a job's files in order; of more than ``limit`` the failed, those under way and the latest."""
        rows = self._database.rows(statement("job_files_list"), {"job_id": job_id, "limit": limit})
        return [JobFile(**row) for row in rows]

    def tally(self, job_id: str) -> FileTally:
        """Count a job's files."""
        rows = self._database.rows(statement("job_files_tally"), {"job_id": job_id})
        whole = sum(row["weight"] for row in rows) or 1.0
        return FileTally(
            files={row["state"]: row["files"] for row in rows},
            settled=sum(row["weight"] for row in rows if row["state"] in SETTLED) / whole,
            busy=sum(row["weight"] for row in rows if row["state"] == "busy") / whole,
            recent=sum(row["recent"] for row in rows) / whole,
        )


PAUSE = 0.2  # seconds between two looks at parts that others have in hand


class PartLost(Exception):
    """An event, not an error: the part is in other hands now, or its job was started anew; nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part in somebody's hands; ``content`` names its documents, files or questions, ``items`` counts them."""

    position: int
    content: JsonValue
    items: int


@dataclass(frozen=True, slots=True)
class PartsTally:
    """How far the parts of a job are; ``items`` are in the unit of the job's progress.

    ``holders`` have a part in hand; ``given_up`` are parts that were taken too often and that nobody has in hand.
    ``weight`` is the work in all parts, in bytes of text if known.
    """

    parts: int
    done: int
    waiting: int
    items: int
    items_done: int
    holders: int
    given_up: int
    weight: int
    weight_done: int
    weight_busy: int

    def share(self, part: float) -> float:
        """Return the share of the work that is done, 0..1, if the parts in hand are done to the share ``part``."""
        return (self.weight_done + part * self.weight_busy) / self.weight if self.weight else 0.0

    def to_json(self) -> JsonObject:
        """Return what people and agents are shown, in the words of ``JobLoad``; nothing where the job is not cut."""
        if not self.parts and not self.holders:
            return {}
        return {"parts": self.parts, "parts_done": self.done, "hands": self.holders}


class JobParts:
    """The table ``job_parts``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def plan(self, job_id: str, parts: Sequence[tuple[JsonValue, int]], weights: Sequence[int] | None = None) -> None:
        """Write a job's parts (content, items) in the order in which they are to be taken.

        ``weights`` are the bytes of each; by default its items.
        """
        contents, items = [json.dumps(clean(content)) for content, _ in parts], [count for _, count in parts]
        values = {"job_id": job_id, "contents": contents, "items": items, "weights": list(weights or items)}
        self._database.rows(statement("job_parts_plan"), values)

    def plan_index(self, job_id: str, index: str, dataset: str | None, part_bytes: int) -> None:
        """Write parts of the documents that an index lacks, each of about so many bytes of text."""
        values = {"job_id": job_id, "index": index, "dataset": dataset, "part_bytes": part_bytes}
        missing = "documents_missing_from_index"
        self._database.rows(statement("job_parts_plan_index", missing=missing), values)

    def are_planned(self, job_id: str) -> bool:
        """Tell whether a job has parts."""
        row = self._database.row(statement("job_parts_planned"), {"job_id": job_id})
        return bool(row and row["planned"])

    def is_invited(self, lock: str) -> bool:
        """Tell whether an invitation of that name waits in the queue."""
        row = self._database.row(statement("job_parts_invited"), {"lock": lock})
        return bool(row and row["invited"])

    def take(self, job_id: str, holder: str) -> Part | None:
        """Take the first part that waits or whose holder is gone, for somebody who holds a lock of the name."""
        values = {"job_id": job_id, "holder": holder, "most": MOST_TIMES}
        row = self._database.row(statement("job_part_take", gone="job_part_gone"), values)
        return None if row is None else Part(**row)

    def done(
        self, connection: Connection, job_id: str, position: int, holder: str, result: Mapping[str, JsonValue]
    ) -> None:
        """Note what came out of a part, last in the transaction that keeps its work.

        It comes last because a deletion of the source has the turn of every index before it comes to the parts.

        Raises:
            PartLost: the part is in other hands; the transaction is to be given up.
        """
        values = {"job_id": job_id, "position": position, "holder": holder, "result": Jsonb(clean(dict(result)))}
        if connection.execute(statement("job_part_done"), values).fetchone() is None:
            raise PartLost(f"{job_id}/{position}")

    def give_back(self, job_id: str, holder: str) -> None:
        """Let the parts that somebody still has in hand wait for others."""
        self._database.rows(statement("job_parts_give_back"), {"job_id": job_id, "holder": holder})

    def tally(self, job_id: str) -> PartsTally:
        """Count a job's parts."""
        counts = statement("job_parts_tally", gone="job_part_gone")
        row = self._database.row(counts, {"job_id": job_id, "most": MOST_TIMES})
        return PartsTally(**row or {})

    def results(self, job_id: str) -> list[tuple[Part, JsonObject]]:
        """Return the parts that are done, each with what came out of it."""
        rows = self._database.rows(statement("job_parts_results"), {"job_id": job_id})
        return [(Part(row["position"], row["content"], row["items"]), row["result"]) for row in rows]


class PartsInHand:
    """The parts of one job as one pair of hands takes them: of the worker that runs the job, or of one that helps.

    It is used while its process holds a lock of the name ``holder`` (``Jobs.hold``).
    """

    def __init__(
        self,
        parts: JobParts,
        job_id: str,
        holder: str,
        *,
        leads: bool,
        invite: Callable[[], None],
        is_wanted_elsewhere: Callable[[], bool],
        embedding: EmbeddingHands,
    ) -> None:
        """Take ``leads``, true for the worker that runs the job: it stays until every part is done.

        ``invite`` asks a further worker to help; a helper takes no further part once ``is_wanted_elsewhere`` says so.
        By ``embedding`` the same hands share the embedding of a large part.
        """
        self.embedding = embedding
        self._parts, self._job_id, self._holder, self.leads = parts, job_id, holder, leads
        self._invite, self._is_wanted_elsewhere = invite, is_wanted_elsewhere
        self.done_here = 0

    def take(self) -> Part | None:
        """Take the next part; None where there is none for these hands now."""
        if not self.leads and self._is_wanted_elsewhere():
            return None
        part = self._parts.take(self._job_id, self._holder)
        if part is not None and self.tally().waiting:
            self._invite()
        return part

    def all_taken(self) -> Iterator[Part | None]:
        """Yield parts as long as there are some; the leading hands get None, each fifth of a second, for others' parts.

        Raises:
            WorkbenchError: a part was taken too often: it kills its workers.
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
                raise WorkbenchError(
                    f"Workers left a part of it {MOST_TIMES} times; see the machine's memory, then resume it."
                )
            yield None
            if self.tally().done < tally.parts:  # not what these hands were writing
                time.sleep(PAUSE)

    def done(self, connection: Connection, part: Part, result: Mapping[str, JsonValue] | None = None) -> None:
        """Note what came out of a part, last in the transaction that keeps its work. Raises PartLost."""
        self._parts.done(connection, self._job_id, part.position, self._holder, result or {})
        self.done_here += 1

    def tally(self) -> PartsTally:
        """Count the job's parts."""
        return self._parts.tally(self._job_id)

    def results(self) -> list[tuple[Part, JsonObject]]:
        """Return the parts that are done, each with what came out of it."""
        return self._parts.results(self._job_id)

    def give_back(self) -> None:
        """Let the parts that are still in these hands wait for others."""
        self._parts.give_back(self._job_id, self._holder)
