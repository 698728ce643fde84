"""Texts that several workers embed for one of them, who then writes them: parts of one large document or of pages.

A part's vectors stay beside it until the transaction that writes them into an index; a worker that takes over from a
dead one finds those that are done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.storage.database import Connection, Database
from workbench.storage.statements import statement

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
