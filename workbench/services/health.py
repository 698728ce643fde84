"""Status and health: the counts of ``status`` and the checks of ``doctor``."""

from __future__ import annotations

import functools
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypedDict, cast

from workbench.errors import WorkbenchError
from workbench.formatting import GB, count_text, size_text
from workbench.models.bert.session import PrecisionChoice, load_precision_choice
from workbench.runtime import __version__
from workbench.services.corpus import Corpus
from workbench.storage.database import statement
from workbench.storage.graph import SERVING_PARAMETERS, GraphState, parse_graph_state
from workbench.storage.jobs import Workload, fetch_workload
from workbench.storage.replica import ReplicaState
from workbench.types import APART_TYPES, Index, JsonObject, ParameterValue, Value

REPORTED_PACKAGES = ("llama-index-core", "llama-index-vector-stores-postgres", "streamlit", "mcp", "ragas", "crawl4ai")
MIN_FREE_BYTES = 2 * GB  # bytes of disk; with less, ingestion may soon fail

COUNTED_KINDS = ("projects", "sources", "documents", "conversations", "articles", "archives")  # by ``status``


@dataclass(frozen=True, slots=True)
class Check(Value):
    """The result of one check."""

    name: str
    ok: bool
    detail: str  # what was found, or what to do


class DatabaseStatus(TypedDict):
    """The database: kind, versions and size on disk in bytes."""

    embedded: bool
    postgres: str
    pgvector: str
    bytes: int


class IndexStatus(TypedDict):
    """The fields of ``Index.to_dict``, and the size on disk in ``bytes``."""

    name: str
    chunker: str
    chunker_options: dict[str, ParameterValue]
    embedding_model: str
    dimensions: int
    is_default: bool
    dataset: str | None
    status: str
    documents_count: int
    passages_count: int
    created_at: str | None
    has_graph: bool
    family_count: int
    graph: JsonObject | None
    attachment: JsonObject | None
    transformations: list[str]
    nearness: dict[str, float] | None
    notes: list[str]
    vector_search: str
    bytes: int


class ModelStatus(TypedDict):
    """The model of new indexes; ``passages`` is the JSON of a ``PrecisionChoice``."""

    name: str
    passages: JsonObject | None


class Status(TypedDict):
    """The JSON of ``workbench status``.

    ``corpus`` has counts by kind and ``packages`` versions by name; ``work`` is the JSON of a ``Workload``, and
    ``replica`` is the JSON of a ``ReplicaState``.
    """

    version: str
    home: str
    database: DatabaseStatus
    corpus: dict[str, int]
    indexes: list[IndexStatus]
    model: ModelStatus
    work: JsonObject
    replica: JsonObject | None
    disk_free_bytes: int
    python: str
    packages: dict[str, str]


class HealthService:
    """Reports the status, and checks what a search depends on."""

    def __init__(self, corpus: Corpus, home: Path, embedded: bool) -> None:
        self._corpus, self._home, self._embedded = corpus, home, embedded

    def status(self, replica: ReplicaState | None = None, work: Workload | None = None) -> Status:
        """Return counts, indexes, sizes in bytes and versions.

        Args:
            replica: State of the replica, if already known; queried by default.
            work: State of the jobs and workers, if already known; queried by default.
        """
        self._corpus.index()
        replica, work = replica or self.replica(), work or self.work()
        counts, stored = self._counts(), self._corpus.indexes
        sizes = {index.name: stored.bytes_on_disk(index.name) for index in stored.list()}
        indexes = [
            index.to_dict()
            | {"vector_search": self._find_fault(index) or describe_vector_search(index), "bytes": sizes[index.name]}
            for index in stored.list()
        ]
        tried = self.passages()
        return {
            "version": __version__,
            "home": str(self._home),
            "database": {
                "embedded": self._embedded,
                "postgres": str(counts["postgres"]).split(" on ")[0],
                "pgvector": counts["pgvector"],
                "bytes": int(counts["bytes"]),
            },
            "corpus": {name: int(counts[name]) for name in COUNTED_KINDS},
            "indexes": cast("list[IndexStatus]", indexes),
            "model": {"name": self._corpus.default_model, "passages": tried.to_dict() if tried else None},
            "work": work.to_dict(),
            "replica": replica.to_dict() if replica else None,
            "disk_free_bytes": shutil.disk_usage(_find_parent(self._home)).free,
            "python": platform.python_version(),
            "packages": {name: _package_version(name) for name in REPORTED_PACKAGES},
        }

    def work(self) -> Workload:
        """Return the live workers, and the queued and running jobs with their parts."""
        return fetch_workload(self._corpus.database)

    def replica(self) -> ReplicaState | None:
        """Return the state and lag of the replica that searches read; None if none is set."""
        replica = self._corpus.replica
        return replica.state() if replica else None

    def passages(self) -> PrecisionChoice | None:
        """Return the precision in which passages are embedded here; None if not chosen yet or without a choice."""
        return load_precision_choice(self._corpus.default_model, self._home / "models")

    def check_database(self) -> None:
        """Check that the database answers, without starting it. Raises StorageError if it does not answer."""
        self._corpus.database.check()

    def doctor(self, replica: ReplicaState | None = None) -> list[Check]:
        """Check everything that a search depends on; ``replica`` as for ``status``."""
        replica = replica or self.replica()
        tries: tuple[tuple[str, Callable[[], str]], ...] = (
            ("database", lambda: str(self._counts()["postgres"]).split(" on ")[0]),
            ("pgvector", lambda: f"pgvector {self._counts()['pgvector']}"),
            ("embedding model", self._model),
            ("default index", self._index),
            ("vector search", self._vector_search),
            ("disk", self._disk),
            ("jobs", self._jobs),
            *([("replica", functools.partial(_check_replica, replica))] if replica else []),
        )
        checks: list[Check] = []
        for name, attempt in tries:
            try:
                checks.append(Check(name, True, attempt()))
            except WorkbenchError as error:
                checks.append(Check(name, False, str(error)))
        return checks

    def _counts(self) -> Mapping[str, Any]:
        return self._corpus.database.row(statement("corpus_counts"), {"apart": list(APART_TYPES)}) or {}

    def _model(self) -> str:
        index = self._corpus.index()
        encoders = {each.name: each for each in (self._corpus.index_encoder(index), self._corpus.encoder())}
        sizes = {name: len(each.encode_query("Does the model answer?").vector) for name, each in encoders.items()}
        tried = self.passages()
        return "; ".join(
            [f"{name}, {size} dimensions" for name, size in sizes.items()] + ([tried.sentence] if tried else [])
        )

    def _index(self) -> str:
        index = self._corpus.index()
        missing = len(self._corpus.documents.list_missing(index.name))
        if missing:
            raise WorkbenchError(
                f"{index.name} lacks {count_text(missing, 'document')}; "
                f"run 'workbench indexes update {index.name} --build'."
            )
        counts = self._corpus.indexes.with_counts(index.name)
        others = f"{counts.family_count:,} conversations, articles and archives, " if counts.family_count else ""
        return (
            f"{index.name}: {count_text(counts.documents_count, 'document')}, {others}"
            f"{count_text(counts.passages_count, 'passage')}"
        )

    def _jobs(self) -> str:
        work = self.work()
        if work.stalled:
            first, *others = work.stalled
            more = f" {count_text(len(others), 'more job')} stalled; see 'workbench jobs list'." if others else ""
            raise WorkbenchError(f"{first.title} ({first.id}): {first.stalled}{more}")
        return work.sentence

    def _vector_search(self) -> str:
        """Describe how each index is searched; raises WorkbenchError if a graph finds too few passages."""
        indexes = self._corpus.indexes.list()
        for index in indexes:
            if fault := self._find_fault(index):
                raise WorkbenchError(f"{index.name}: {fault}")
            state = get_graph_state(index)
            if state is not None and not state.is_sound:
                how = describe_vector_search(index)
                if not state.is_final:
                    raise WorkbenchError(
                        f"{index.name}: {how}. Run 'workbench indexes build {index.name}' to rebuild it."
                    )
                raise WorkbenchError(
                    f"No graph finds enough passages of {index.name} ({how}). Searches are exact, and slower; look for "
                    "thousands of passages with nearly the same text, and remove them."
                )
        return "; ".join(f"{index.name}: {describe_vector_search(index)}" for index in indexes)

    def _find_fault(self, index: Index) -> str:
        """Return why the table of an attached index is unavailable, else ""."""
        if not index.is_attached:
            return ""
        try:
            store = self._corpus.store(index)
            with store.reading() as connection:
                store.fetch_vectors(connection, ())
        except WorkbenchError as error:
            return str(error)
        return ""

    def _disk(self) -> str:
        free = shutil.disk_usage(_find_parent(self._home)).free
        if free < MIN_FREE_BYTES:
            raise WorkbenchError(f"Only {size_text(free)} of disk is free at {self._home}; free up space.")
        return f"{size_text(free)} free"


def get_graph_state(index: Index) -> GraphState | None:
    """Return the state of an index's graph; None if there is none, or if the index is small enough for exact search."""
    return parse_graph_state(index.graph) if _needs_graph(index) else None


def _needs_graph(index: Index) -> bool:
    return index.passages_count > SERVING_PARAMETERS["exact_up_to"]


def describe_vector_search(index: Index) -> str:
    """Describe how an index's vectors are searched: exactly, or with a graph of measured recall."""
    if index.attachment is not None:
        found = index.attachment["vector_index"]
        return f"in its table, by {found} ({index.attachment['distance']})" if found else "in its table, exact"
    state = get_graph_state(index)
    if state is None:
        later = f" until the next ingest, or 'workbench indexes build {index.name}', builds its graph"
        return "exact" + (later if _needs_graph(index) else "")
    return state.sentence if state.is_sound else f"exact, as it has {state.sentence}"


def _check_replica(replica: ReplicaState) -> str:
    if not replica.is_reachable:
        raise WorkbenchError(f"{replica.sentence}. Start it, or correct WORKBENCH_READ_DATABASE_URL.")
    return replica.sentence


def _package_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _find_parent(path: Path) -> Path:
    return path if path.exists() else _find_parent(path.parent)
