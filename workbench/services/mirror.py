"""Keep a source in step with a folder: what is new or changed comes in, what is gone goes, the rest is left alone."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import Conflict
from workbench.ingestion.enclosure import lies_inside
from workbench.services.corpus import Corpus
from workbench.services.knowledge import KnowledgeService
from workbench.types import IngestReport, Progress

if TYPE_CHECKING:
    from workbench.ingestion.incoming import Incoming

OnProgress = Callable[[Progress], None]
Stamps = dict[
    str, tuple[int, int, int, int]
]  # path: device's file number, size, time of change of content and of entry


@dataclass(frozen=True, slots=True)
class Synced:
    """What a step towards the folder changed; ``removed`` documents had no file any more."""

    report: IngestReport
    removed: int


class FolderMirror:
    """Brings a folder into a source when anything in it has changed since the last look; thread-safe.

    A look costs one ``stat`` a file (10,000 files in about 40 ms); only then are files read and compared by content.
    """

    def __init__(self, corpus: Corpus, knowledge: KnowledgeService, source_type: str) -> None:
        self._corpus, self._knowledge, self._source_type = corpus, knowledge, source_type
        self._seen: dict[Path, tuple[str, Stamps]] = {}
        self._lock = threading.Lock()

    def source(self, folder: Path) -> str:
        """Return the id of the source that stands for a folder, made on first use."""
        found = self.known_source(folder)
        if found is not None:
            return found
        name = folder.name or str(folder)
        for title in (name, f"{name} ({folder.parent})"):
            try:
                return self._knowledge.create_source(title, source_type=self._source_type, url=folder.as_uri()).id
            except Conflict:
                found = self.known_source(folder)  # made by another process a moment ago, or only the name is taken
                if found is not None:
                    return found
        raise Conflict(f"Two sources are named {name!r} already; rename one of them.")

    def known_source(self, folder: Path) -> str | None:
        """Return the id of the source that stands for a folder, or None where there is none yet."""
        return self._corpus.sources.standing_for(folder.as_uri(), self._source_type)

    def refresh(
        self,
        folder: Path,
        items: Callable[[], Sequence[Incoming]],
        on_progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> str:
        """Return the id of the folder's source, in step with it; ``items`` is called only after a change."""
        with self._lock:
            source_id, stamps = self.source(folder), stamps_of(folder)
            if self._seen.get(folder) != (source_id, stamps):
                self.sync(source_id, items(), on_progress=on_progress, should_stop=should_stop)
                self._seen[folder] = (source_id, stamps)
            return source_id

    def sync(
        self,
        source_id: str,
        items: Sequence[Incoming],
        *,
        still_there: Callable[[str], bool] = lambda key: False,
        on_progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Synced:
        """Bring items in and remove the source's other documents, unless ``still_there`` says of a key to keep it."""
        report = self._knowledge.ingest_items(source_id, items, on_progress=on_progress, should_stop=should_stop)
        present = {item.key for item in items}
        known = self._corpus.documents.known(source_id, self._corpus.index().name)
        gone = [known[key].id for key in known if key not in present and not still_there(key)]
        if gone:
            self._corpus.documents.delete(gone)
        return Synced(report, len(gone))


def stamps_of(folder: Path) -> Stamps:
    """Return what the file system says of every file below a resolved folder.

    Hidden files and folders do not count, nor do links that lead out of it.
    """
    stamps: Stamps = {}
    waiting = [(str(folder), "")]
    while waiting:
        place, prefix = waiting.pop()
        try:
            entries = os.scandir(place)
        except OSError:
            continue
        with entries:
            for entry in entries:
                name = entry.name
                if name.startswith("."):
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, f"{prefix}{name}/"))
                        continue
                    if entry.is_symlink() and not lies_inside(Path(entry.path), folder):
                        continue
                    status = entry.stat()
                except OSError:  # gone between the listing and now
                    continue
                stamps[prefix + name] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return stamps
