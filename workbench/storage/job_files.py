"""The files of an ingest job: uploads that wait for a worker, and what became of every file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from workbench.errors import NotFound
from workbench.storage.database import Connection, Database, clean
from workbench.storage.statements import statement
from workbench.types import Value

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
