"""Uploaded files on their way into the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from workbench.errors import UnreadableDocument
from workbench.services.sources import UPLOADS, PlaceNames
from workbench.sizes import counted

if TYPE_CHECKING:
    from workbench.workbench import Workbench

Files = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Drop:
    """Dropped files, sorted: those to add, of which an archive is one, and the title of a source made for them.

    ``count`` is the number of documents they hold, ``left_out`` the names of the files that cannot be read.
    """

    files: Files
    title: str
    count: int
    left_out: tuple[str, ...] = ()


def of_files(files: Files) -> Drop:
    """Sort dropped files: an archive counts as the readable files in it. A damaged one is refused when it is added."""
    from workbench.ingestion.incoming import below, is_zip
    from workbench.ingestion.readers import wanted

    archives = {name: _looked_into(data) for name, data in files if is_zip(name)}
    others = [name for name, _ in files if name not in archives and not wanted(name)]
    others += [below(archive, name) for archive, (_, unread) in archives.items() for name in unread]
    kept = [(name, data) for name, data in files if (archives[name][0] if name in archives else wanted(name))]
    count = sum(archives[name][0] if name in archives else 1 for name, _ in kept)
    title = PurePath(kept[0][0]).stem if len(kept) == 1 and kept[0][0] in archives else UPLOADS
    return Drop(kept, title, count, tuple(others))


def _looked_into(data: bytes) -> tuple[int, list[str]]:
    """Return how many files of an archive are read, and the names of the others; a damaged or empty one counts as 1."""
    from workbench.ingestion.incoming import zip_members

    try:
        members, others = zip_members(data)
    except UnreadableDocument:
        return 1, []
    return len(members) if members or others else 1, others


def of_folder(files: Files) -> Drop:
    """Sort the files of an uploaded folder, named as they lie in it; hidden ones are passed over.

    A browser names them "folder/below/a.md"; without the folder's own name a corpus keeps its identity when the
    folder is renamed, as it does for ``workbench ingest``.
    """
    from workbench.ingestion.readers import passed_over, wanted

    parted = [(name.partition("/"), data) for name, data in files]
    title = next((top for (top, separator, _), _ in parted if separator), "")
    inside = [(rest if separator else top, data) for (top, separator, rest), data in parted]
    kept = [(name, data) for name, data in inside if wanted(name)]
    others = [name for name, _ in inside if not wanted(name) and not passed_over(name)]
    return Drop(kept, title or UPLOADS, len(kept), tuple(others))


def start_upload(
    workbench: Workbench,
    files: Files,
    *,
    source: str,
    project: str | None = None,
    folder: str | None = None,
    tags: Sequence[str] = (),
    index: str | None = None,
    left_out: Sequence[str] = (),
) -> str:
    """Hand files to a worker for a source (an id, or the title of an old or new one); returns the job's id.

    ``left_out`` are names of files that cannot be read; those in archives are added to them.

    Raises:
        WorkbenchError: the place does not exist, or a zip archive cannot be unpacked; nothing was begun.
    """
    from workbench.ingestion.incoming import taken_apart

    uploads = taken_apart(files)
    place = PlaceNames(project=project, folder=folder)
    target = workbench.sources.ensure(source, **place, tags=tags, for_ingest=True)
    title = f"Adding {counted(len(uploads.files), 'file')} to {target.title}"
    job = workbench.jobs.enqueue_ingest(
        files=uploads.files,
        source=source,
        **place,
        tags=tags,
        index=index,
        title=title,
        source_id=target.id,
        left_out=[*dict.fromkeys([*left_out, *uploads.left_out])],
    )
    return job.id
