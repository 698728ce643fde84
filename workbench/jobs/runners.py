"""Runners by kind of job; each is called with an assignment and returns the outcome.

The entry points combine the tables: ``make_runners`` here and those for experiments in ``evals``. A worker takes only
kinds of jobs for which it has a runner.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from workbench.errors import Cancelled, UnreadableDocument
from workbench.formatting import count_text
from workbench.ingestion.incoming import IngestItem, list_files
from workbench.ingestion.pipeline import SharedItems, divide_items
from workbench.ingestion.progress import ItemEvent
from workbench.jobs.sharing import (
    Assignment,
    Outcome,
    make_embedding_reporter,
    make_progress_reporter,
    share_embedding,
    share_parts,
)
from workbench.services.crawls import CrawlService
from workbench.services.documents import DocumentService, IngestOptions
from workbench.services.folders import MirroredFolder
from workbench.services.indexes import IndexService
from workbench.services.sources import UPLOADS_TITLE, SourceService
from workbench.services.workspaces import WorkspaceService
from workbench.storage.database import Connection
from workbench.storage.jobs import EmbeddingLease, FileNote, JobFiles, Jobs, PartLost
from workbench.types import (
    MAX_NOTES_SHOWN,
    IngestFailure,
    IngestReport,
    JsonObject,
    OnProgress,
    Source,
    as_object,
    as_text,
    as_text_or_none,
    as_texts,
)

# Files of an ingest job and the record of their outcomes

MAX_EVENTS_BUFFERED, MAX_BUFFER_AGE_S = 64, 0.25  # cheap events are written in groups of 64, or after .25 seconds


@dataclass(frozen=True, slots=True)
class IngestFiles:
    """The files of an ingest job as this machine sees them."""

    items: list[IngestItem]
    positions: list[int]  # of the items among the job's files
    failures: list[IngestFailure]
    left_out: dict[str, int]  # number of skipped files by suffix

    @property
    def places(self) -> dict[int, int]:
        """Index of each item by its position among the job's files."""
        return {position: place for place, position in enumerate(self.positions)}

    def add_missing(self, names: Mapping[str, int]) -> IngestFiles:
        """Return these files plus a failing item for each recorded file (position by name) that no longer exists."""
        known = set(self.positions)
        missing = {name: position for name, position in names.items() if position not in known}
        items = [*self.items, *(_make_missing_item(name) for name in missing)]
        return replace(self, items=items, positions=[*self.positions, *missing.values()])


def find_ingest_files(files: JobFiles, job_id: str, paths: Sequence[str], *, restart: bool) -> IngestFiles:
    """Return the files under the paths, and the uploads.

    Args:
        files: The files of all jobs.
        job_id: Id of the job.
        paths: Files and folders to ingest.
        restart: Whether to record the files in the job. Otherwise files added to a folder since then are omitted.
    """
    found = list_files(paths)
    items = list(found.items)
    if restart:
        _note(files, job_id, items, found.failures)
    places = files.places(job_id) if items else {}
    if not restart:
        items = [item for item in items if (item.path or item.key) in places]
    positions = [places[item.path or item.key] for item in items]
    for position, name, size in files.uploads(job_id):
        load = lambda position=position: files.bytes(job_id, position)  # noqa: E731 - one upload in memory at a time
        items.append(IngestItem(key=name, name=Path(name).name or name, load=load, path=name, size=size))
        positions.append(position)
    return IngestFiles(items, positions, found.failures, found.left_out)


def _note(files: JobFiles, job_id: str, items: Sequence[IngestItem], failures: Sequence[IngestFailure]) -> None:
    files.wait(job_id)
    sizes = [(item.path or item.key, item.size) for item in items]
    files.add_found(job_id, [*sizes, *((failure.path, 0) for failure in failures)])
    if failures:
        places = files.places(job_id)
        files.note(job_id, [(places[failure.path], "failed", 0, failure.error) for failure in failures])


def _make_missing_item(name: str) -> IngestItem:
    """Return an item for a file that existed when the job started but is no longer readable."""

    def load() -> bytes:
        raise UnreadableDocument("The file was removed after the job started, or is not visible on this machine.")

    return IngestItem(key=name, name=Path(name).name or name, load=load, path=name)


class FileRecord:
    """Records the outcome of each item in the job's files; cheap events are written in groups."""

    def __init__(self, files: JobFiles, job_id: str, positions: Sequence[int]) -> None:
        """Set the ``positions`` of the items among the job's files."""
        self._files, self._job_id, self._positions = files, job_id, positions
        self._backlog: list[FileNote] = []
        self._since = time.monotonic()

    def __call__(self, news: Sequence[ItemEvent], connection: Connection | None = None) -> None:
        """Record events of items, inside ``connection``'s transaction if one is given."""
        notes: list[FileNote] = [
            (self._positions[record.place], record.state, record.passages, record.error) for record in news
        ]
        if connection is not None:
            self._files.note(self._job_id, notes, connection)
            return
        self._backlog += notes
        busy = any(state == "busy" for _, state, _, _ in notes)
        if busy or len(self._backlog) >= MAX_EVENTS_BUFFERED or time.monotonic() - self._since > MAX_BUFFER_AGE_S:
            self.flush()

    def flush(self) -> None:
        """Write the events that were held back."""
        records, self._backlog = self._backlog, []
        self._since = time.monotonic()
        if records:
            self._files.note(self._job_id, records)


# Ingest jobs


def run_ingest(
    sources: SourceService, documents: DocumentService, indexes: IndexService, jobs: Jobs, assignment: Assignment
) -> Outcome:
    """Ingest paths and uploads; resuming is cheap, since a stored document only needs to be hashed."""
    job_id, paths = assignment.job.id, as_texts(assignment.job.parameters["paths"])
    planned = jobs.parts.are_planned(job_id)
    if not assignment.leads:
        with share_embedding(jobs, assignment) as hands:  # also if this machine does not see the files
            indexes.embed_waiting(hands, assignment.should_stop)
        if planned and assignment.job.source_id is not None:  # otherwise the job has just been restarted
            files = find_ingest_files(jobs.files, job_id, paths, restart=False)
            _Ingest(documents, jobs, assignment, files, assignment.job.source_id).store_parts(None)
            with share_embedding(jobs, assignment) as hands:
                indexes.embed_waiting(hands, assignment.should_stop)
        return Outcome({}, "")
    files = find_ingest_files(jobs.files, job_id, paths, restart=not planned)
    parts = None if planned else divide_items(files.items)
    source = _source(sources, assignment)
    assignment.log(f"Reading {count_text(len(files.items), 'file')} into {source.title!r}.")
    with sources.fill(source.id, unless=(Cancelled, PartLost)):  # the job continues into the same source
        ingest = _Ingest(documents, jobs, assignment, files, source.id)
        report = ingest.store_alone() if parts is not None and len(parts) < 2 else ingest.store_parts(parts)
    names = as_texts(assignment.job.parameters.get("left_out"))
    left_out = Counter(PurePosixPath(name).suffix.lower() for name in names) + Counter(files.left_out)
    return _outcome(jobs, assignment, files, replace(report, left_out=dict(left_out.most_common())))


@dataclass(frozen=True, slots=True)
class _Ingest:
    """The work of one worker on the files of an ingest job."""

    documents: DocumentService
    jobs: Jobs
    assignment: Assignment
    files: IngestFiles
    source_id: str  # the source to fill

    def store_alone(self) -> IngestReport:
        """Ingest all files without parts; other workers may still embed their passages."""
        with share_embedding(self.jobs, self.assignment) as hands:
            return self._store(make_embedding_reporter(self.assignment, hands), hands=hands)

    def store_parts(self, parts: Sequence[Sequence[int]] | None) -> IngestReport:
        """Ingest the parts that this worker takes.

        Args:
            parts: Indexes of the items of each part; None if the parts are already written.
        """
        files, job_id = self.files, self.assignment.job.id

        def plan() -> None:
            contents = [[files.positions[place] for place in part] for part in parts or ()]
            sizes = [sum(files.items[place].size or 1 for place in part) for part in parts or ()]
            self.jobs.parts.plan(job_id, [(positions, len(positions)) for positions in contents], sizes)

        with share_parts(self.jobs, self.assignment, plan) as in_hand:
            run = self
            if self.assignment.leads and parts is None:
                run = replace(self, files=files.add_missing(self.jobs.files.places(job_id)))
            on_progress = make_progress_reporter(self.assignment, in_hand, "files")
            return run._store(on_progress, shared=SharedItems(in_hand, run.files.places))

    def _store(
        self, on_progress: OnProgress | None, shared: SharedItems | None = None, hands: EmbeddingLease | None = None
    ) -> IngestReport:
        """Store all files, or the parts that this worker takes, and record the outcome of each."""
        parameters = self.assignment.job.parameters
        record = FileRecord(self.jobs.files, self.assignment.job.id, self.files.positions)
        try:
            options = IngestOptions(
                index=as_text_or_none(parameters["index"]),
                paths=as_texts(parameters["paths"]),
                failures=self.files.failures,
                on_progress=on_progress,
                should_stop=self.assignment.should_stop,
                on_items=record,
                shared=shared,
                hands=hands,
            )
            return self.documents.ingest_items(self.source_id, self.files.items, options)
        finally:
            record.flush()


def _outcome(jobs: Jobs, assignment: Assignment, files: IngestFiles, report: IngestReport) -> Outcome:
    for failure in report.failures:
        assignment.log(f"{failure.path}: {failure.error}", "error")
    read = report.added + report.updated + report.unchanged or _count_read_earlier(jobs, assignment.job.id)
    if files.items and not read:
        count, reason = len(files.items), report.failures[0].error if report.failures else ""
        first = f"None of the {count:,} files could be read. The first: " if count > 1 else ""
        raise UnreadableDocument(f"{first}{reason}")
    jobs.files.forget_bytes(assignment.job.id)
    message = (
        f"{report.added} added, {report.updated} updated, {report.unchanged} unchanged, {len(report.failures)} failed."
    )
    for note in report.notes:
        assignment.log(note, "warning")
    if report.notes:
        message += f" {' '.join(report.notes[:MAX_NOTES_SHOWN])}"
    if report.left_out_sentence:
        assignment.log(report.left_out_sentence)
        message += f" {report.left_out_sentence}"
    return Outcome(report.to_dict(), message, with_errors=bool(report.failures))


def _count_read_earlier(jobs: Jobs, job_id: str) -> int:
    """Return how many files earlier runs of the job have read; in a retry, all others may fail again."""
    states = jobs.files.tally(job_id).files
    return sum(states.get(state, 0) for state in ("added", "changed", "unchanged"))


def _source(sources: SourceService, assignment: Assignment) -> Source:
    """Return the job's source, creating it if there is none."""
    parameters, known = assignment.job.parameters, assignment.job.source_id
    if known is not None:
        return sources.get(known)
    source = sources.ensure(
        as_text_or_none(parameters["source"]) or UPLOADS_TITLE,
        project=as_text_or_none(parameters["project"]),
        folder=as_text_or_none(parameters["folder"]),
        tags=as_texts(parameters["tags"]),
        for_ingest=True,
    )
    assignment.fills(source.id)
    return source


# Jobs for a large document, a workspace or a mirrored folder

_OUTCOME_TEXTS = {
    "created": "created",
    "updated": "updated",
    "unchanged": "unchanged: the source already has this content",
}


def run_document(documents: DocumentService, files: JobFiles, assignment: Assignment) -> Outcome:
    """Add a file or text, or replace a document with it, as ``DocumentService`` does."""
    parameters = assignment.job.parameters
    paths, about = as_texts(parameters["paths"]), as_object(parameters["document"])
    path = Path(paths[0]) if paths else None
    text = None if path is not None else files.bytes(assignment.job.id, 0).decode()
    document_id = as_text_or_none(parameters.get("update"))
    write = (
        partial(documents.update, document_id)
        if document_id
        else partial(documents.create, source=as_text_or_none(parameters["source"]))
    )
    written = write(
        path=path,
        text=text,
        title=as_text_or_none(about["title"]),
        url=as_text_or_none(about["url"]),
        metadata=as_object(about["metadata"]),
        on_progress=assignment.progress,
        should_stop=assignment.should_stop,
    )
    files.forget_bytes(assignment.job.id)
    document = written.document
    result: JsonObject = {"document_id": document.id, "outcome": written.outcome, "passages": document.passages_count}
    return Outcome(
        result, f"{document.title!r} is {_OUTCOME_TEXTS[written.outcome]} ({document.passages_count:,} passages)."
    )


def run_workspace(workspaces: WorkspaceService, assignment: Assignment) -> Outcome:
    """Update a whole workspace, or the conversations under a path in it."""
    folder = Path(as_text(assignment.job.parameters["workspace"]))
    conversation = as_text_or_none(assignment.job.parameters.get("conversation"))
    path = Path(conversation) if conversation else None
    report = workspaces.embed(folder, path, assignment.progress, assignment.should_stop)
    if report.all_failed:
        raise UnreadableDocument(report.all_failed)
    message = f"{report.embedded} embedded, {report.skipped} skipped, {report.removed} removed."
    return Outcome(report.to_dict(), message, with_errors=bool(report.failures))


def run_mirrored_folder(folders: Mapping[str, Callable[[Path], MirroredFolder]], assignment: Assignment) -> Outcome:
    """Update the source of a folder of archives or articles.

    Args:
        folders: Function that opens the folder, by its kind.
        assignment: The job.
    """
    parameters = assignment.job.parameters
    folder = folders[as_text(parameters["mirrored"])](Path(as_text(parameters["folder"])))
    synced = folder.synchronise(assignment.progress, assignment.should_stop)
    report = synced.report
    counts = {"added": report.added, "updated": report.updated, "unchanged": report.unchanged}
    failures = [failure.to_dict() for failure in report.failures]
    if failures and not (report.added or report.updated or report.unchanged):
        first = report.failures[0]
        raise UnreadableDocument(f"None of {len(failures)} files could be read. The first: {first.path}: {first.error}")
    message = f"{report.added} added, {report.updated} updated, {synced.removed} removed, {len(failures)} failed."
    result: JsonObject = {"documents": {**counts, "removed": synced.removed}, "failures": list(failures)}
    return Outcome(result, message, with_errors=bool(failures))


Runner = Callable[[Assignment], Outcome]
Runners = Mapping[str, Runner]


def make_runners(
    sources: SourceService,
    documents: DocumentService,
    workspaces: WorkspaceService,
    jobs: Jobs,
    indexes: IndexService,
    crawls: CrawlService,
    folders: Mapping[str, Callable[[Path], MirroredFolder]],
) -> dict[str, Runner]:
    """Return the runners for the workbench's own kinds of jobs; ``folders`` is as for ``run_mirrored_folder``."""

    def ingest(assignment: Assignment) -> Outcome:
        if "document" in assignment.job.parameters:
            return run_document(documents, jobs.files, assignment)
        if "workspace" in assignment.job.parameters:
            return run_workspace(workspaces, assignment)
        if "mirrored" in assignment.job.parameters:
            return run_mirrored_folder(folders, assignment)
        return run_ingest(sources, documents, indexes, jobs, assignment)

    return {
        "ingest": ingest,
        "index_build": lambda assignment: run_index_build(indexes, jobs, assignment),
        "crawl": lambda assignment: run_crawl(crawls, indexes, jobs, assignment),
    }


def run_index_build(indexes: IndexService, jobs: Jobs, assignment: Assignment) -> Outcome:
    """Build an index; documents that it already contains are skipped."""
    name = as_text(assignment.job.parameters["index"])
    with share_parts(jobs, assignment, lambda: indexes.plan(name, jobs.parts, assignment.job.id)) as parts:
        report_progress = make_progress_reporter(assignment, parts, "documents")
        index = indexes.build(name, on_progress=report_progress, should_stop=assignment.should_stop, parts=parts)
        if not assignment.leads:
            indexes.embed_waiting(parts.embedding, assignment.should_stop)
    message = f"{index.name} has {index.documents_count:,} documents in {index.passages_count:,} passages."
    result: JsonObject = {"documents": index.documents_count, "passages": index.passages_count}
    if not index.notes:
        return Outcome(result, message)
    return Outcome(result | {"notes": list(index.notes)}, " ".join([message, *index.notes]), with_errors=True)


def run_crawl(crawls: CrawlService, indexes: IndexService, jobs: Jobs, assignment: Assignment) -> Outcome:
    """Continue a crawl, or embed pages that another worker fetches."""
    with share_embedding(jobs, assignment) as hands:
        if not assignment.leads:
            indexes.embed_waiting(hands, assignment.should_stop)
            return Outcome({}, "")
        status, result, message = crawls.run(
            assignment.job,
            hands,
            should_stop=assignment.should_stop,
            log=assignment.log,
            on_progress=make_embedding_reporter(assignment, hands),
        )
    return Outcome(result, message, with_errors=status == "completed_with_errors")
