"""The parts of a job: what they hold, who has them in hand, and what came out of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from psycopg.types.json import Jsonb

from workbench.errors import WorkbenchError
from workbench.storage.database import Connection, Database, clean
from workbench.storage.embedding_parts import MOST_TIMES, EmbeddingHands
from workbench.storage.statements import statement
from workbench.types import JsonObject, JsonValue

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
