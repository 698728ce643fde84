"""A large document, a workspace of conversations, or a folder that is searched, as a job: nobody waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from workbench.errors import UnreadableDocument
from workbench.jobs.assignment import Assignment, Outcome
from workbench.services.documents import DocumentService
from workbench.services.folders import MirroredFolder
from workbench.services.workspaces import WorkspaceService
from workbench.storage.job_parts import JobFiles
from workbench.types import JsonObject, as_object, as_text, as_text_or_none, as_texts

_DONE = {"created": "created", "updated": "updated", "unchanged": "unchanged: its source holds this content already"}


def run_document(documents: DocumentService, files: JobFiles, assignment: Assignment) -> Outcome:
    """Bring one file or text in, or put it in the place of a document, as ``DocumentService`` does."""
    parameters = assignment.job.parameters
    paths, about = as_texts(parameters["paths"]), as_object(parameters["document"])
    path = Path(paths[0]) if paths else None
    text = None if path is not None else files.bytes(assignment.job.id, 0).decode()
    title, url = as_text_or_none(about["title"]), as_text_or_none(about["url"])
    metadata, document_id = as_object(about["metadata"]), as_text_or_none(parameters.get("update"))
    tell, should_stop = assignment.progress, assignment.should_stop
    if document_id:
        written = documents.update(
            document_id, path=path, text=text, title=title, url=url, metadata=metadata, on_progress=tell,
            should_stop=should_stop,
        )  # fmt: skip
    else:
        written = documents.create(
            path=path, text=text, source=as_text_or_none(parameters["source"]), title=title, url=url, metadata=metadata,
            on_progress=tell, should_stop=should_stop,
        )  # fmt: skip
    files.forget_bytes(assignment.job.id)
    document = written.document
    result: JsonObject = {"document_id": document.id, "outcome": written.outcome, "passages": document.passages_count}
    return Outcome(result, f"{document.title!r} is {_DONE[written.outcome]} ({document.passages_count:,} passages).")


def run_workspace(workspaces: WorkspaceService, assignment: Assignment) -> Outcome:
    """Bring a whole workspace up to date, or the conversations that a path in it means."""
    folder = Path(as_text(assignment.job.parameters["workspace"]))
    conversation = as_text_or_none(assignment.job.parameters.get("conversation"))
    path = Path(conversation) if conversation else None
    report = workspaces.embed(folder, path, assignment.progress, assignment.should_stop)
    if report.all_failed:
        raise UnreadableDocument(report.all_failed)
    message = f"{report.embedded} embedded, {report.skipped} skipped, {report.removed} removed."
    return Outcome(report.to_dict(), message, with_errors=bool(report.failures))


def run_mirrored(folders: Mapping[str, Callable[[Path], MirroredFolder]], assignment: Assignment) -> Outcome:
    """Bring a folder of archives or of articles into the source that holds it; ``folders`` are found by their kind."""
    parameters = assignment.job.parameters
    folder = folders[as_text(parameters["mirrored"])](Path(as_text(parameters["folder"])))
    synced = folder.bring_in(assignment.progress, assignment.should_stop)
    report = synced.report
    counts = {"added": report.added, "updated": report.updated, "unchanged": report.unchanged}
    failures = [failure.to_dict() for failure in report.failures]
    if failures and not (report.added or report.updated or report.unchanged):
        first = report.failures[0]
        raise UnreadableDocument(f"None of {len(failures)} files could be read. The first: {first.path}: {first.error}")
    message = f"{report.added} added, {report.updated} updated, {synced.removed} removed, {len(failures)} failed."
    result: JsonObject = {"documents": {**counts, "removed": synced.removed}, "failures": list(failures)}
    return Outcome(result, message, with_errors=bool(failures))
