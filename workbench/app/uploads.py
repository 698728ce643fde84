"""Uploaded files on their way into the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.app.labels import counted

if TYPE_CHECKING:
    from workbench.workbench import Workbench

Files = Sequence[tuple[str, bytes]]


def of_folder(files: Files) -> tuple[str, Files]:
    """Return an uploaded folder's name and the files in it that can be read, named as they lie in it.

    A browser names them "folder/below/a.md"; without the folder's own name a corpus keeps its identity when the
    folder is renamed, as it does for ``workbench ingest``.
    """
    from workbench.ingestion.readers import wanted

    parted = [(name.partition("/"), data) for name, data in files]
    title = next((top for (top, separator, _), _ in parted if separator), "")
    inside = [(rest if separator else top, data) for (top, separator, rest), data in parted]
    return title, [(name, data) for name, data in inside if wanted(name)]


def start_upload(
    workbench: Workbench,
    files: Files,
    *,
    source: str,
    project: str | None = None,
    folder: str | None = None,
    tags: Sequence[str] = (),
    index: str | None = None,
) -> str:
    """Hand files to a worker for a source (an id, or the title of an old or new one); returns the job's id.

    Raises:
        WorkbenchError: the place does not exist; nothing was begun.
    """
    target = workbench.knowledge.source_for(source, project=project, folder=folder, tags=tags)
    title = f"Adding {counted(len(files), 'file')} to {target.title}"
    return workbench.jobs.enqueue_ingest(files=files, source=target.id, index=index, title=title).id
