"""Folders mirrored as sources: new and changed files are ingested, deleted ones removed."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from workbench.errors import Conflict, UnreadableDocument
from workbench.ingestion.stamps import Stamps, stamp_files
from workbench.services.checks import JOB_THRESHOLD_BYTES, estimate_text_bytes
from workbench.services.corpus import Corpus
from workbench.services.documents import DocumentService, IngestOptions
from workbench.services.jobs import JobService
from workbench.services.sources import SourceService
from workbench.storage.jobs import Job
from workbench.types import IngestReport, OnProgress, ShouldStop, Value

if TYPE_CHECKING:
    from workbench.ingestion.incoming import IngestItem


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The changes made by one synchronisation."""

    report: IngestReport
    removed: int  # documents whose file no longer exists


@dataclass(frozen=True, slots=True)
class Pending(Value):
    """The differences between files on disk and their source, in number of files."""

    new: int = 0
    changed: int = 0
    vanished: int = 0
    unchanged: int = 0
    bytes: int = 0  # estimated text of new and changed files

    @property
    def any(self) -> bool:
        """True if a synchronisation would change something."""
        return bool(self.new or self.changed or self.vanished)


class FolderMirror:
    """Synchronises sources with folders that have changed since the last check; thread-safe.

    A check costs one ``stat`` per file (about 40 ms for 10,000); only after a change are files compared by content.
    """

    def __init__(self, corpus: Corpus, sources: SourceService, documents: DocumentService, source_type: str) -> None:
        self._corpus, self._sources, self._documents, self.source_type = corpus, sources, documents, source_type
        self.stamps: dict[Path, tuple[str, Stamps]] = {}
        self.lock = threading.RLock()  # locked while a folder is compared or synchronised

    def source(self, folder: Path, *, for_ingest: bool = False) -> str:
        """Return the id of a folder's source, created on first use; ``for_ingest`` as in ``SourceService``."""
        source_id = self.find_source(folder)
        if source_id is not None:
            return source_id
        name = folder.name or str(folder)
        for title in (name, f"{name} ({folder.parent})"):
            try:
                made = self._sources.create(
                    title, source_type=self.source_type, url=folder.as_uri(), for_ingest=for_ingest
                )
                return made.id
            except Conflict:
                source_id = self.find_source(folder)  # just created by another process, unless only the title is taken
                if source_id is not None:
                    return source_id
        raise Conflict(f"Two sources are already named {name!r}; rename one of them.")

    def find_source(self, folder: Path) -> str | None:
        """Return the id of a folder's source, or None if there is none yet."""
        return self._corpus.sources.find_id_by_url(folder.as_uri(), self.source_type)

    def state(self, folder: Path) -> str:
        """Return a hash of a folder's file stamps, its source and the default index."""
        state = (self.find_source(folder), self._corpus.index().name, sorted(stamp_files(folder).items()))
        return hashlib.sha256(repr(state).encode()).hexdigest()

    def find_changes(
        self, source_id: str | None, items: Sequence[IngestItem], still_there: Callable[[str], bool] = lambda key: False
    ) -> Pending:
        """Compare items with a source by content; other documents count as deleted unless ``still_there(key)``."""
        from workbench.ingestion.incoming import content_hash

        indexed = self._corpus.documents.by_key(source_id, self._corpus.index().name) if source_id else {}
        new = changed = unchanged = size = 0
        for item in items:
            try:
                data = item.load()
            except (UnreadableDocument, OSError):
                continue  # empty or unreadable: reported by the ingest
            document = indexed.get(item.key)
            if document is not None and content_hash(data) == document.content_hash == document.indexed_hash:
                unchanged += 1
                continue
            size += estimate_text_bytes(item.name, len(data))
            new, changed = (new + 1, changed) if document is None else (new, changed + 1)
        present = {item.key for item in items}
        vanished = sum(1 for key in indexed if key not in present and not still_there(key))
        return Pending(new, changed, vanished, unchanged, size)

    def sync(
        self,
        source_id: str,
        items: Sequence[IngestItem],
        *,
        still_there: Callable[[str], bool] = lambda key: False,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> SyncReport:
        """Ingest items and remove the source's other documents, except those for which ``still_there(key)`` is true."""
        report = self._documents.ingest_items(
            source_id, items, IngestOptions(on_progress=on_progress, should_stop=should_stop)
        )
        present = {item.key for item in items}
        indexed = self._corpus.documents.by_key(source_id, self._corpus.index().name)
        vanished_ids = [indexed[key].id for key in indexed if key not in present and not still_there(key)]
        if vanished_ids:
            self._corpus.documents.delete(vanished_ids)
        return SyncReport(report, len(vanished_ids))


@dataclass(frozen=True, slots=True)
class MirroredFolder:
    """A folder paired with the source that mirrors it; ``items`` reads its files and is called only after a change."""

    mirror: FolderMirror
    folder: Path
    items: Callable[[], Sequence[IngestItem]]

    def source(self) -> str:
        """Return the id of its source, created on first use."""
        return self.mirror.source(self.folder)

    def is_known(self) -> bool:
        """Return whether it is unchanged since it last matched its source, by the metadata of its files."""
        known = self.mirror.stamps.get(self.folder)
        return known is not None and known == (self.mirror.find_source(self.folder), stamp_files(self.folder))

    def find_changes(self) -> Pending:
        """Compare the folder with its source, by content."""
        with self.mirror.lock:
            source_id, stamps = self.mirror.find_source(self.folder), stamp_files(self.folder)
            pending = self.mirror.find_changes(source_id, self.items())
            if source_id is not None and not pending.any:
                self.mirror.stamps[self.folder] = (source_id, stamps)
            return pending

    def settle(self) -> None:
        """Record the folder as synchronised; files missing from its source are unreadable."""
        self.mirror.stamps[self.folder] = (self.source(), stamp_files(self.folder))

    def refresh(self, on_progress: OnProgress | None = None, should_stop: ShouldStop | None = None) -> str:
        """Synchronise the folder if it has changed, and return the id of its source."""
        with self.mirror.lock:
            if not self.is_known():
                self.synchronise(on_progress, should_stop)
            return self.source()

    def synchronise(self, on_progress: OnProgress | None = None, should_stop: ShouldStop | None = None) -> SyncReport:
        """Synchronise the folder, and return the changes."""
        with self.mirror.lock:
            source_id, stamps = self.source(), stamp_files(self.folder)
            report = self.mirror.sync(source_id, self.items(), on_progress=on_progress, should_stop=should_stop)
            self.mirror.stamps[self.folder] = (source_id, stamps)
            return report


# Large changes of folders as jobs


class SearchedFolder(Protocol):
    """A service over a folder that is synchronised before a search: archives, articles."""

    def open_mirror(self) -> MirroredFolder:
        """Return the folder paired with its source; raises ConfigurationError if it does not exist."""
        ...


@dataclass(frozen=True, slots=True)
class FolderJob:
    """A job that synchronises a folder, or has failed to; until it completes, searches use the indexed state."""

    job: Job

    @property
    def sentence(self) -> str:
        """A note saying that the search did not cover all files on disk."""
        if self.job.is_finished:
            why = f": {self.job.error.rstrip('.')}" if self.job.error else ""
            return f"Some files on disk were not searched: the job that ingests them is {self.job.status}{why}."
        return "New and changed files are being ingested; until then, searches use their previous state."


class FolderWork:
    """Decides whether a folder's changes are ingested immediately or by a job."""

    def __init__(self, jobs: JobService) -> None:
        self._jobs, self._lock = jobs, threading.Lock()

    def find_job(self, folder: SearchedFolder) -> FolderJob | None:
        """Return the job that ingests a folder's changes; None if they are small enough to ingest immediately.

        There is one job per state of the folder: one that failed or was cancelled is not restarted until it is resumed
        or the folder changes.
        """
        mirrored = folder.open_mirror()
        if mirrored.is_known():
            return None
        with self._lock:  # concurrent searches share one job
            wanted = {"mirrored": mirrored.mirror.source_type, "folder": str(mirrored.folder)}
            unfinished = self._jobs.with_parameters("ingest", wanted, unfinished=True)
            if unfinished is not None:
                return FolderJob(unfinished)
            if mirrored.find_changes().bytes <= JOB_THRESHOLD_BYTES:
                return None
            source_id = mirrored.source()  # created first, because the state contains its id
            wanted["state"] = mirrored.mirror.state(mirrored.folder)
            job = self._jobs.with_parameters("ingest", wanted)
            if job is None:
                title = f"Embed {mirrored.folder.name}"
                return FolderJob(self._jobs.enqueue("ingest", title, {"paths": [], **wanted}, source_id=source_id))
            if job.status in ("completed", "completed_with_errors"):  # the remaining files are unreadable
                mirrored.settle()
                return None
            return FolderJob(job)
