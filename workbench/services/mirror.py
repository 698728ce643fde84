"""A source in step with a folder: new and changed files come in, vanished ones go, the rest is left alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import Conflict
from workbench.ingestion.stamps import Stamps, stamps_of
from workbench.services.corpus import Corpus
from workbench.services.documents import DocumentService
from workbench.services.sources import SourceService
from workbench.types import IngestReport, OnProgress, ShouldStop

if TYPE_CHECKING:
    from workbench.ingestion.incoming import Incoming


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The changes of a step towards the folder; ``removed`` documents had no file any more."""

    report: IngestReport
    removed: int


class FolderMirror:
    """A mirror that brings a folder into a source when anything in it has changed since the last look; thread-safe.

    A look costs one ``stat`` a file (10,000 files in about 40 ms); only then are files read and compared by content.
    """

    def __init__(self, corpus: Corpus, sources: SourceService, documents: DocumentService, source_type: str) -> None:
        self._corpus, self._sources, self._documents, self._source_type = corpus, sources, documents, source_type
        self._stamps: dict[Path, tuple[str, Stamps]] = {}
        self._lock = threading.Lock()

    def source(self, folder: Path, *, for_ingest: bool = False) -> str:
        """Return the id of the source that stands for a folder, made on first use; ``for_ingest`` as in sources."""
        source_id = self.known_source(folder)
        if source_id is not None:
            return source_id
        name = folder.name or str(folder)
        for title in (name, f"{name} ({folder.parent})"):
            try:
                made = self._sources.create(
                    title, source_type=self._source_type, url=folder.as_uri(), for_ingest=for_ingest
                )
                return made.id
            except Conflict:
                source_id = self.known_source(folder)  # made by another process a moment ago, or only the name is taken
                if source_id is not None:
                    return source_id
        raise Conflict(f"Two sources are named {name!r} already; rename one of them.")

    def known_source(self, folder: Path) -> str | None:
        """Return the id of the source that stands for a folder, or None where there is none yet."""
        return self._corpus.sources.standing_for(folder.as_uri(), self._source_type)

    def refresh(
        self,
        folder: Path,
        items: Callable[[], Sequence[Incoming]],
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> str:
        """Return the id of the folder's source, in step with it; ``items`` is called only after a change."""
        with self._lock:
            source_id, stamps = self.source(folder), stamps_of(folder)
            if self._stamps.get(folder) != (source_id, stamps):
                self.sync(source_id, items(), on_progress=on_progress, should_stop=should_stop)
                self._stamps[folder] = (source_id, stamps)
            return source_id

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
        report = self._documents.ingest_items(source_id, items, on_progress=on_progress, should_stop=should_stop)
        present = {item.key for item in items}
        indexed = self._corpus.documents.by_key(source_id, self._corpus.index().name)
        vanished_ids = [indexed[key].id for key in indexed if key not in present and not still_there(key)]
        if vanished_ids:
            self._corpus.documents.delete(vanished_ids)
        return SyncReport(report, len(vanished_ids))
