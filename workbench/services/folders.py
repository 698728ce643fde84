"""A source in step with a folder: new and changed files come in, vanished ones go, the rest is left alone."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from workbench.errors import Conflict, UnreadableDocument
from workbench.ingestion.incoming import Stamps, stamps_of
from workbench.services.checks import LARGE, work_bytes
from workbench.services.corpus import Corpus
from workbench.services.documents import DocumentService, IngestOptions
from workbench.services.jobs import JobService
from workbench.services.sources import SourceService
from workbench.storage.jobs import Job
from workbench.types import IngestReport, OnProgress, ShouldStop, Value

if TYPE_CHECKING:
    from workbench.ingestion.incoming import Incoming


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The changes of a step towards the folder; ``removed`` documents had no file any more."""

    report: IngestReport
    removed: int


@dataclass(frozen=True, slots=True)
class Pending(Value):
    """The things on disk that are not embedded as they are now; ``bytes`` of text in the new and changed ones."""

    new: int = 0
    changed: int = 0
    vanished: int = 0
    unchanged: int = 0
    bytes: int = 0

    @property
    def any(self) -> bool:
        """True when embedding what is on disk would change something."""
        return bool(self.new or self.changed or self.vanished)


class FolderMirror:
    """A mirror that brings a folder into a source when anything in it has changed since the last look; thread-safe.

    A look costs one ``stat`` a file (10,000 files in about 40 ms); only then are files read and compared by content.
    """

    def __init__(self, corpus: Corpus, sources: SourceService, documents: DocumentService, source_type: str) -> None:
        self._corpus, self._sources, self._documents, self.source_type = corpus, sources, documents, source_type
        self._stamps: dict[Path, tuple[str, Stamps]] = {}
        self.lock = threading.Lock()  # of those that compare a folder or bring it in

    def source(self, folder: Path, *, for_ingest: bool = False) -> str:
        """Return the id of the source that stands for a folder, made on first use; ``for_ingest`` as in sources."""
        source_id = self.known_source(folder)
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
                source_id = self.known_source(folder)  # made by another process a moment ago, or only the name is taken
                if source_id is not None:
                    return source_id
        raise Conflict(f"Two sources are named {name!r} already; rename one of them.")

    def known_source(self, folder: Path) -> str | None:
        """Return the id of the source that stands for a folder, or None where there is none yet."""
        return self._corpus.sources.standing_for(folder.as_uri(), self.source_type)

    def of(self, folder: Path, items: Callable[[], Sequence[Incoming]]) -> MirroredFolder:
        """Return a folder beside its source; ``items`` are what is in it, asked for only where something changed."""
        return MirroredFolder(self, folder, items)

    def is_known(self, folder: Path) -> bool:
        """Tell whether nothing of a folder has changed since it was last found in step; a look at its files."""
        known = self._stamps.get(folder)
        return known is not None and known == (self.known_source(folder), stamps_of(folder))

    def note(self, folder: Path, source_id: str, stamps: Stamps) -> None:
        """Note that a folder whose files were so is in step with its source."""
        self._stamps[folder] = (source_id, stamps)

    def state(self, folder: Path) -> str:
        """Return a text that differs where a folder's files, its source or the index have changed."""
        state = (self.known_source(folder), self._corpus.index().name, sorted(stamps_of(folder).items()))
        return hashlib.sha256(repr(state).encode()).hexdigest()

    def pending(
        self, source_id: str | None, items: Sequence[Incoming], still_there: Callable[[str], bool] = lambda key: False
    ) -> Pending:
        """Compare items with a source, by content; its other documents have vanished unless ``still_there`` says no."""
        from workbench.ingestion.incoming import content_hash

        indexed = self._corpus.documents.by_key(source_id, self._corpus.index().name) if source_id else {}
        new = changed = unchanged = size = 0
        for item in items:
            try:
                data = item.load()
            except (UnreadableDocument, OSError):
                continue  # empty or unreadable: embedding says so
            document = indexed.get(item.key)
            if document is not None and content_hash(data) == document.content_hash == document.indexed_hash:
                unchanged += 1
                continue
            size += work_bytes(item.name, len(data))
            new, changed = (new + 1, changed) if document is None else (new, changed + 1)
        present = {item.key for item in items}
        vanished = sum(1 for key in indexed if key not in present and not still_there(key))
        return Pending(new, changed, vanished, unchanged, size)

    def sync(
        self,
        source_id: str,
        items: Sequence[Incoming],
        *,
        still_there: Callable[[str], bool] = lambda key: False,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> SyncReport:
        """Bring items in and remove the source's other documents, unless ``still_there`` says of a key to keep it."""
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
    """A folder that is searched as it is on disk, beside the source that holds it."""

    mirror: FolderMirror
    folder: Path
    items: Callable[[], Sequence[Incoming]]

    @property
    def kind(self) -> str:
        """The type of its source: "archive", "articles"."""
        return self.mirror.source_type

    def source(self) -> str:
        """Return the id of its source, made on first use."""
        return self.mirror.source(self.folder)

    def is_known(self) -> bool:
        """Tell whether nothing has changed since it was last found in step; a look at its files."""
        return self.mirror.is_known(self.folder)

    def pending(self) -> Pending:
        """Compare the folder with its source, by content."""
        with self.mirror.lock:
            source_id, stamps = self.mirror.known_source(self.folder), stamps_of(self.folder)
            pending = self.mirror.pending(source_id, self.items())
            if source_id is not None and not pending.any:
                self.mirror.note(self.folder, source_id, stamps)
            return pending

    def state(self) -> str:
        """Return a text that differs where the folder's files, its source or the index have changed."""
        return self.mirror.state(self.folder)

    def settle(self) -> None:
        """Take the folder as it is for being in step: what its source lacks cannot be read."""
        self.mirror.note(self.folder, self.source(), stamps_of(self.folder))

    def refresh(self, on_progress: OnProgress | None = None, should_stop: ShouldStop | None = None) -> str:
        """Return the id of the folder's source, in step with it."""
        with self.mirror.lock:
            if not self.is_known():
                self._bring_in(on_progress, should_stop)
            return self.source()

    def bring_in(self, on_progress: OnProgress | None = None, should_stop: ShouldStop | None = None) -> SyncReport:
        """Bring the folder's changes in, and say what they were."""
        with self.mirror.lock:
            return self._bring_in(on_progress, should_stop)

    def _bring_in(self, on_progress: OnProgress | None, should_stop: ShouldStop | None) -> SyncReport:
        source_id, stamps = self.source(), stamps_of(self.folder)
        report = self.mirror.sync(source_id, self.items(), on_progress=on_progress, should_stop=should_stop)
        self.mirror.note(self.folder, source_id, stamps)
        return report


# --- Changes of folders that are searched as they are on disk, left to a job where they are large ---


class SearchedFolder(Protocol):
    """The verbs over a folder that its search brings up to date: archives, articles."""

    def mirrored(self) -> MirroredFolder:
        """Return the folder beside its source. Raises ConfigurationError where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class FolderJob:
    """A job that brings a folder's changes in, or that failed at it: until then searches answer with what is there."""

    job: Job

    @property
    def sentence(self) -> str:
        """Say that the answer is not of everything on disk."""
        if self.job.is_finished:
            why = f": {self.job.error.rstrip('.')}" if self.job.error else ""
            return (
                f"Not everything on disk could be searched: the job that was to bring it in is {self.job.status}{why}."
            )
        return "What is new or changed on disk is being brought in; until then the index has what was there before."


class FolderWork:
    """The choice between bringing a folder in where it is searched, and a job."""

    def __init__(self, jobs: JobService) -> None:
        self._jobs, self._lock = jobs, threading.Lock()

    def left_to_job(self, folder: SearchedFolder) -> FolderJob | None:
        """Return the job that is to bring a folder's changes in; None where these are small enough to be waited for.

        Of one state of the folder there is one job: one that failed or was cancelled is not begun anew, and stands
        until it is resumed or the folder changes.
        """
        mirrored = folder.mirrored()
        if mirrored.is_known():
            return None
        with self._lock:  # several searches at once ask for one job
            wanted = {"mirrored": mirrored.kind, "folder": str(mirrored.folder)}
            unfinished = self._jobs.with_parameters("ingest", wanted, unfinished=True)
            if unfinished is not None:
                return FolderJob(unfinished)
            if mirrored.pending().bytes <= LARGE:
                return None
            source_id = mirrored.source()  # made before its state is told
            wanted["state"] = mirrored.state()
            job = self._jobs.with_parameters("ingest", wanted)
            if job is None:
                title = f"Embed {mirrored.folder.name}"
                return FolderJob(self._jobs.enqueue("ingest", title, {"paths": [], **wanted}, source_id=source_id))
            if job.status in ("completed", "completed_with_errors"):  # what is left cannot be read
                mirrored.settle()
                return None
            return FolderJob(job)
