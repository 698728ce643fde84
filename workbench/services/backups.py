"""Everything a workbench holds, in one file and back: for moving to another machine or database, and for safety."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import Conflict, InvalidInput
from workbench.runtime import __version__
from workbench.services.corpus import Corpus
from workbench.storage.backup import Backup, Manifest
from workbench.storage.jobs import Queue
from workbench.types import OnProgress, Progress, Value


@dataclass(frozen=True, slots=True)
class BackupReport(Value):
    """The contents of a backup file; ``bytes`` is its size."""

    path: str
    bytes: int
    created_at: str
    version: str
    projects: int
    sources: int
    documents: int
    indexes: tuple[str, ...]
    rows: int
    seconds: float


class BackupService:
    """The verbs ``export`` and ``import``."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._backup = Backup(corpus.database, Queue(corpus.database.url))

    def write(self, path: Path | str, *, replace: bool = False, on_progress: OnProgress | None = None) -> BackupReport:
        """Write everything as of this moment into one file; it appears under its name only when it is whole.

        Raises:
            Conflict: the file exists and may not be replaced. InvalidInput: its folder cannot be written.
        """
        target, began = Path(path), time.perf_counter()
        if target.exists() and not replace:
            raise Conflict(f"{target} exists already; name another file, or let it be replaced (--force).")
        unfinished = target.with_name(target.name + ".part")
        try:
            manifest = self._backup.write(unfinished, __version__, on_progress or _nobody)
            unfinished.replace(target)
        except OSError as error:
            raise InvalidInput(
                f"{target} cannot be written ({error.strerror or error}); name another place."
            ) from error
        finally:
            unfinished.unlink(missing_ok=True)
        return _report(target, manifest, began)

    def read(self, path: Path | str, *, on_progress: OnProgress | None = None) -> BackupReport:
        """Restore a file into this workbench, which must hold no sources and no projects.

        Raises:
            InvalidInput: no such file, or no export this version reads. Conflict: the workbench is not empty.
        """
        source, began = Path(path), time.perf_counter()
        try:
            with source.open("rb"):
                pass
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InvalidInput(f"{source} cannot be read ({reason}); name a file written by export.") from error
        manifest = self._backup.read(source, on_progress or _nobody)
        for index in manifest["indexes"]:
            self._corpus.store(self._corpus.index(index["name"])).maintain_graph()
        return _report(source, manifest, began)


def _nobody(progress: Progress) -> None:
    """Do nothing: nobody watches."""


def _report(path: Path, manifest: Manifest, began: float) -> BackupReport:
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
