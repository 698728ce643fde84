"""The files of an ingest job: where each stands in the job, and the record of what becomes of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.errors import UnreadableDocument
from workbench.ingestion.incoming import Incoming, files_under, keeps_original
from workbench.ingestion.progress import ItemNews
from workbench.storage.database import Connection
from workbench.storage.job_parts import FileNote, JobFiles
from workbench.types import IngestFailure

KEPT, HELD = 64, 0.25  # news of files that cost nothing are written together: so many, or after so many seconds


@dataclass(frozen=True, slots=True)
class FilesOfJob:
    """The files of an ingest job as this machine sees them, and the positions of the items among the job's files."""

    items: list[Incoming]
    positions: list[int]
    failures: list[IngestFailure]
    left_out: dict[str, int]

    @property
    def places(self) -> dict[int, int]:
        """The place of each item by its position among the job's files."""
        return {position: place for place, position in enumerate(self.positions)}

    def completed(self, names: Mapping[str, int]) -> FilesOfJob:
        """Return the same with an item for each further file (its position by its name) that says that it is gone."""
        known = set(self.positions)
        missing = {name: position for name, position in names.items() if position not in known}
        items = [*self.items, *(_gone(name) for name in missing)]
        return replace(self, items=items, positions=[*self.positions, *missing.values()])


def files_of_job(files: JobFiles, job_id: str, paths: Sequence[str], *, anew: bool) -> FilesOfJob:
    """Return the files under the paths, and the uploads.

    With ``anew`` they are noted in the job; else those are left out that came into a folder since they were.
    """
    found = files_under(paths)
    items = list(found.items)
    if anew:
        _note(files, job_id, items, found.failures)
    places = files.places(job_id) if items else {}
    if not anew:
        items = [item for item in items if (item.path or item.key) in places]
    positions = [places[item.path or item.key] for item in items]
    for position, name, size in files.uploads(job_id):
        load = lambda position=position: files.bytes(job_id, position)  # noqa: E731 - one upload in memory at a time
        items.append(
            Incoming(
                key=name, name=Path(name).name or name, load=load, path=name, keep_file=keeps_original(name), size=size
            )
        )
        positions.append(position)
    return FilesOfJob(items, positions, found.failures, found.left_out)


def _note(files: JobFiles, job_id: str, items: Sequence[Incoming], failures: Sequence[IngestFailure]) -> None:
    files.wait(job_id)
    sizes = [(item.path or item.key, item.size) for item in items]
    files.add_found(job_id, [*sizes, *((failure.path, 0) for failure in failures)])
    if failures:
        places = files.places(job_id)
        files.note(job_id, [(places[failure.path], "failed", 0, failure.error) for failure in failures])


def _gone(name: str) -> Incoming:
    """Return an item in the place of a file that was there when the job began, and cannot be read any more."""

    def load() -> bytes:
        raise UnreadableDocument("It went away after the job began, or this worker's machine does not see it.")

    return Incoming(key=name, name=Path(name).name or name, load=load, path=name)


class FileRecord:
    """The record, in the job's files, of what becomes of each item; cheap news are written in groups."""

    def __init__(self, files: JobFiles, job_id: str, positions: Sequence[int]) -> None:
        """Take ``positions``, the places of the items among the job's files."""
        self._files, self._job_id, self._positions = files, job_id, positions
        self._backlog: list[FileNote] = []
        self._since = time.monotonic()

    def __call__(self, news: Sequence[ItemNews], connection: Connection | None = None) -> None:
        """Note what happens to items; within ``connection``'s transaction where they are written in it."""
        notes: list[FileNote] = [
            (self._positions[record.place], record.state, record.passages, record.error) for record in news
        ]
        if connection is not None:
            self._files.note(self._job_id, notes, connection)
            return
        self._backlog += notes
        busy = any(state == "busy" for _, state, _, _ in notes)
        if busy or len(self._backlog) >= KEPT or time.monotonic() - self._since > HELD:
            self.flush()

    def flush(self) -> None:
        """Write the news that were held back."""
        records, self._backlog = self._backlog, []
        self._since = time.monotonic()
        if records:
            self._files.note(self._job_id, records)
