"""An ingest as a job: paths and uploads on their way in, in parts where there are many, for any number of workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from workbench.errors import Cancelled, UnreadableDocument
from workbench.ingestion.sharing import SharedItems, in_parts
from workbench.jobs.assignment import Assignment, Outcome
from workbench.jobs.file_record import FileRecord, FilesOfJob, files_of_job
from workbench.jobs.sharing import embedding_shared, progress_beside, progress_of, shared
from workbench.services.documents import DocumentService
from workbench.services.indexes import IndexService
from workbench.services.sources import UPLOADS, SourceService
from workbench.storage.job_parts import EmbeddingHands, PartLost
from workbench.storage.jobs import Jobs
from workbench.types import IngestReport, OnProgress, Source, as_text_or_none, as_texts

NAMED = 3  # notes that the outcome of a job tells; its log has all


def run_ingest(
    sources: SourceService, documents: DocumentService, indexes: IndexService, jobs: Jobs, assignment: Assignment
) -> Outcome:
    """Ingest paths and uploads; documents that are there already cost a hash, so going on is cheap."""
    job_id, paths = assignment.job.id, as_texts(assignment.job.parameters["paths"])
    planned = jobs.parts.are_planned(job_id)
    if not assignment.leads:
        with embedding_shared(jobs, assignment) as hands:  # also where this machine does not see the files
            indexes.embed_waiting(hands, assignment.should_stop)
        if planned and assignment.job.source_id is not None:  # else the job was started anew a moment ago
            files = files_of_job(jobs.files, job_id, paths, anew=False)
            _take_in(documents, jobs, assignment, files, assignment.job.source_id, None)
            with embedding_shared(jobs, assignment) as hands:
                indexes.embed_waiting(hands, assignment.should_stop)
        return Outcome({}, "")
    files = files_of_job(jobs.files, job_id, paths, anew=not planned)
    parts = None if planned else in_parts(files.items)
    source = _source(sources, assignment)
    assignment.log(f"{len(files.items):,} files to read into {source.title!r}.")
    with sources.settling(source.id, unless=(Cancelled, PartLost)):  # it goes on into the same source
        if parts is not None and len(parts) < 2:
            report = _take_in_alone(documents, jobs, assignment, files, source.id)
        else:
            report = _take_in(documents, jobs, assignment, files, source.id, parts)
    left_out = _kinds_of(as_texts(assignment.job.parameters.get("left_out"))) + Counter(files.left_out)
    return _outcome(jobs, assignment, files, replace(report, left_out=dict(left_out.most_common())))


def _kinds_of(names: Sequence[str]) -> Counter[str]:
    """Count names by their suffixes."""
    return Counter(PurePosixPath(name).suffix.lower() for name in names)


def _take_in_alone(
    documents: DocumentService, jobs: Jobs, assignment: Assignment, files: FilesOfJob, source_id: str
) -> IngestReport:
    """Take in all files as one piece of work, whose passages others may embed, too."""
    with embedding_shared(jobs, assignment) as hands:
        tell = progress_beside(assignment, hands)
        return _stored(documents, jobs, assignment, files, source_id, tell, hands=hands)


def _take_in(
    documents: DocumentService,
    jobs: Jobs,
    assignment: Assignment,
    files: FilesOfJob,
    source_id: str,
    parts: Sequence[Sequence[int]] | None,
) -> IngestReport:
    """Take in the parts that come into these hands; ``parts`` are places among the items, None where they are written.

    Raises:
        PartLost: a part went into other hands.
    """
    job_id = assignment.job.id

    def plan() -> None:
        contents = [[files.positions[place] for place in part] for part in parts or ()]
        sizes = [sum(files.items[place].size or 1 for place in part) for part in parts or ()]
        jobs.parts.plan(job_id, [(positions, len(positions)) for positions in contents], sizes)

    with shared(jobs, assignment, plan) as in_hand:
        if assignment.leads and parts is None:
            files = files.completed(jobs.files.places(job_id))
        on_progress = progress_of(assignment, in_hand, "files")
        return _stored(documents, jobs, assignment, files, source_id, on_progress, SharedItems(in_hand, files.places))


def _stored(
    documents: DocumentService,
    jobs: Jobs,
    assignment: Assignment,
    files: FilesOfJob,
    source_id: str,
    on_progress: OnProgress | None,
    shared_items: SharedItems | None = None,
    hands: EmbeddingHands | None = None,
) -> IngestReport:
    """Store files, or the parts of them that come into these hands, and record what became of each."""
    record = FileRecord(jobs.files, assignment.job.id, files.positions)
    try:
        return documents.ingest_items(
            source_id,
            files.items,
            failures=files.failures,
            index=as_text_or_none(assignment.job.parameters["index"]),
            on_progress=on_progress,
            should_stop=assignment.should_stop,
            on_items=record,
            shared=shared_items,
            hands=hands,
        )
    finally:
        record.flush()


def _outcome(jobs: Jobs, assignment: Assignment, files: FilesOfJob, report: IngestReport) -> Outcome:
    for failure in report.failures:
        assignment.log(f"{failure.path}: {failure.error}", "error")
    read = report.added + report.updated + report.unchanged or _read_before(jobs, assignment.job.id)
    if files.items and not read:
        raise UnreadableDocument(_none_was_read(len(files.items), report))
    jobs.files.forget_bytes(assignment.job.id)
    message = (
        f"{report.added} added, {report.updated} updated, {report.unchanged} unchanged, {len(report.failures)} failed."
    )
    for note in report.notes:
        assignment.log(note, "warning")
    if report.notes:
        message += f" {' '.join(report.notes[:NAMED])}"
    if report.left_out_sentence:
        assignment.log(report.left_out_sentence)
        message += f" {report.left_out_sentence}"
    return Outcome(report.to_dict(), message, with_errors=bool(report.failures))


def _read_before(jobs: Jobs, job_id: str) -> int:
    """Return how many files of a job were read when it was done before; a retry of the others may fail again."""
    states = jobs.files.tally(job_id).files
    return sum(states.get(state, 0) for state in ("added", "changed", "unchanged"))


def _none_was_read(count: int, report: IngestReport) -> str:
    """Say that no file could be read, and why the first could not."""
    reason = report.failures[0].error if report.failures else ""
    return f"None of the {count:,} files could be read. The first: {reason}" if count > 1 else reason


def _source(sources: SourceService, assignment: Assignment) -> Source:
    """Return the source that the job fills, made where there is none."""
    parameters, known = assignment.job.parameters, assignment.job.source_id
    if known is not None:
        return sources.get(known)
    source = sources.ensure(
        as_text_or_none(parameters["source"]) or UPLOADS,
        project=as_text_or_none(parameters["project"]),
        folder=as_text_or_none(parameters["folder"]),
        tags=as_texts(parameters["tags"]),
        for_ingest=True,
    )
    assignment.fills(source.id)
    return source
