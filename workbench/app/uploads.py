"""Uploaded files on their way in: one row a file, which ends as added, changed, unchanged, or failed and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.app.labels import counted
from workbench.app.work import WORKS, Row, Work
from workbench.errors import Cancelled, WorkbenchError
from workbench.ingestion.incoming import upload
from workbench.types import IngestReport, Progress

if TYPE_CHECKING:
    from workbench.workbench import Workbench

Files = Sequence[tuple[str, bytes]]


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
    """Begin to bring files into a source (an id, or the title of an old or new one); returns the work's id.

    Raises:
        WorkbenchError: the place does not exist; nothing was begun.
    """
    target = workbench.knowledge.source_for(source, project=project, folder=folder, tags=tags)
    title = f"Adding {counted(len(files), 'file')} to {target.title}"
    work = Work(title, [name for name, _ in files], [len(data) + 2000 for _, data in files])

    return WORKS.start(work, lambda work: bring_in(workbench, work, target.id, files, index))


def bring_in(workbench: Workbench, work: Work, source_id: str, files: Files, index: str | None = None) -> str:
    """Ingest one file after the other, so that each row says what became of its file; returns the outcome."""
    for place, (name, data) in enumerate(files):
        if work.stopping():
            work.mark(place, "same", "not begun: stopped")
        else:
            _bring_in(workbench, work, place, source_id, name, data, index)
    return _outcome(work.rows)


def _bring_in(
    workbench: Workbench, work: Work, place: int, source_id: str, name: str, data: bytes, index: str | None
) -> None:
    work.mark(place, "busy", "reading")

    def show(progress: Progress) -> None:
        work.tell(progress.done / max(1, progress.total), progress.message)

    try:
        report = workbench.knowledge.ingest_items(
            source_id, [upload(name, data)], index=index, on_progress=show, should_stop=work.stopping
        )
    except Cancelled:
        work.mark(place, "same", "not added: stopped")
        return
    except WorkbenchError as error:
        work.mark(place, "failed", str(error))
        return
    work.mark(place, *_settled(report))
    work.message = ""


def _settled(report: IngestReport) -> tuple:
    if report.failures:
        return "failed", report.failures[0].error
    passages = counted(report.passages, "passage")
    if report.added:
        return "done", f"added, {passages}"
    if report.updated:
        return "done", f"changed, {passages}"
    return "same", "unchanged"


def _outcome(rows: Sequence[Row]) -> str:
    kinds = (("done", "done"), ("same", "unchanged or not begun"), ("failed", "failed"))
    counts = [(sum(row.state == state for row in rows), word) for state, word in kinds]
    return ", ".join(f"{count} {word}" for count, word in counts if count)
