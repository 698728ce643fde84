"""What there is and whether it is well: the counts for ``status``, the checks for ``doctor``."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.services.corpus import Corpus
from workbench.storage.statements import statement
from workbench.types import Value
from workbench.version import __version__

SHOWN_PACKAGES = ("llama-index-core", "llama-index-vector-stores-postgres", "streamlit", "mcp", "ragas", "crawl4ai")
LEAST_FREE = 2 * 2**30  # bytes of disk below which ingestion may soon fail


@dataclass(frozen=True, slots=True)
class Check(Value):
    """One thing that was tried; ``detail`` says what was seen, or what to do."""

    name: str
    ok: bool
    detail: str


class HealthService:
    """The verbs ``status`` and ``doctor``."""

    def __init__(self, corpus: Corpus, home: Path, embedded: bool) -> None:
        self._corpus, self._home, self._embedded = corpus, home, embedded

    def status(self) -> dict[str, Any]:
        """Return counts, indexes, sizes in bytes and versions."""
        self._corpus.index()
        counts = self._corpus.database.row(statement("corpus_counts")) or {}
        indexes = [
            index.to_dict() | {"bytes": self._corpus.indexes.bytes_on_disk(index.name)}
            for index in self._corpus.indexes.list()
        ]
        return {
            "version": __version__,
            "home": str(self._home),
            "database": {
                "embedded": self._embedded,
                "postgres": str(counts["postgres"]).split(" on ")[0],
                "pgvector": counts["pgvector"],
                "bytes": int(counts["bytes"]),
            },
            "corpus": {name: int(counts[name]) for name in ("projects", "sources", "documents")},
            "indexes": indexes,
            "disk_free_bytes": shutil.disk_usage(_existing(self._home)).free,
            "python": platform.python_version(),
            "packages": {name: _version(name) for name in SHOWN_PACKAGES},
        }

    def doctor(self) -> list[Check]:
        """Try everything a person depends on and say how it went, one check each."""
        tries: tuple[tuple[str, Callable[[], str]], ...] = (
            ("database", self._database),
            ("pgvector", self._pgvector),
            ("embedding model", self._model),
            ("default index", self._index),
            ("disk", self._disk),
        )
        return [_tried(name, attempt) for name, attempt in tries]

    def _database(self) -> str:
        row = self._corpus.database.row(statement("corpus_counts")) or {}
        return str(row["postgres"]).split(" on ")[0]

    def _pgvector(self) -> str:
        row = self._corpus.database.row(statement("corpus_counts")) or {}
        return f"pgvector {row['pgvector']}"

    def _model(self) -> str:
        encoder = self._corpus.encoder()
        vector = encoder.encode_query("Does the model answer?").vector
        return f"{encoder.name}, {len(vector)} dimensions"

    def _index(self) -> str:
        index = self._corpus.index()
        missing = len(self._corpus.documents.missing_from(index.name))
        if missing:
            raise WorkbenchError(
                f"{index.name} lacks {missing} documents; run 'workbench indexes update {index.name} --build'."
            )
        held = self._corpus.indexes.counted(index.name)
        return f"{index.name}: {held.documents_count:,} documents, {held.passages_count:,} passages"

    def _disk(self) -> str:
        free = shutil.disk_usage(_existing(self._home)).free
        if free < LEAST_FREE:
            raise WorkbenchError(f"Only {free / 1e9:.1f} GB are free under {self._home}; make room.")
        return f"{free / 1e9:.1f} GB free"


def _tried(name: str, attempt: Callable[[], str]) -> Check:
    try:
        return Check(name, True, attempt())
    except WorkbenchError as error:
        return Check(name, False, str(error))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)
