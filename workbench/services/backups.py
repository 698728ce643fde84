"""Export and import of a whole workbench as one file, for backups and moves to another machine or database."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import Conflict, InvalidInput
from workbench.runtime import __version__, write_aside
from workbench.services.corpus import Corpus
from workbench.storage.backup import Manifest, read_backup, write_backup
from workbench.storage.jobs import Queue
from workbench.types import OnProgress, Value


@dataclass(frozen=True, slots=True)
class BackupReport(Value):
    """The contents of a backup file."""

    path: str
    bytes: int  # size of the file
    created_at: str  # ISO time
    version: str  # of the workbench that wrote it
    projects: int
    sources: int
    documents: int
    indexes: tuple[str, ...]
    rows: int  # of all tables
    seconds: float


class BackupService:
    """Writes and restores backup files."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def write(self, path: Path | str, *, replace: bool = False, on_progress: OnProgress | None = None) -> BackupReport:
        """Write a snapshot of everything to one file, which is renamed to its path when complete.

        Args:
            path: File to write.
            replace: Replace an existing file.
            on_progress: Called with each ``Progress``.

        Raises:
            Conflict: The file exists and ``replace`` is False.
            InvalidInput: The file is not writable.
        """
        target, began = Path(path), time.perf_counter()
        if target.exists() and not replace:
            raise Conflict(f"{target} already exists; choose another file, or use --force to replace it.")
        try:
            with write_aside(target) as unfinished:
                report = on_progress or (lambda progress: None)
                manifest = write_backup(self._corpus.database, unfinished, __version__, report)
        except OSError as error:
            reason = error.strerror or error
            raise InvalidInput(f"Cannot write {target} ({reason}); choose another location.") from error
        return _make_report(target, manifest, began)

    def read(self, path: Path | str, *, on_progress: OnProgress | None = None) -> BackupReport:
        """Restore a file into this workbench, which must have no sources and no projects.

        Raises:
            InvalidInput: No such file, or it is not an export that this version can read.
            Conflict: The workbench is not empty.
        """
        source, began = Path(path), time.perf_counter()
        try:
            with source.open("rb"):
                pass
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InvalidInput(f"Cannot read {source} ({reason}); use a file written by 'workbench export'.") from error
        database = self._corpus.database
        manifest = read_backup(database, Queue(database.url), source, on_progress or (lambda progress: None))
        for index in manifest["indexes"]:
            self._corpus.finish_index(self._corpus.index(index["name"]))
        return _make_report(source, manifest, began)


def _make_report(path: Path, manifest: Manifest, began: float) -> BackupReport:
    rows = {table["name"]: table["rows"] for table in manifest["tables"]}
    return BackupReport(
        path=str(path),
        bytes=path.stat().st_size,
        created_at=manifest["created_at"],
        version=manifest["version"],
        projects=rows.get("projects", 0),
        sources=rows.get("sources", 0),
        documents=rows.get("documents", 0),
        indexes=tuple(index["name"] for index in manifest["indexes"]),
        rows=sum(rows.values()),
        seconds=round(time.perf_counter() - began, 3),
    )
