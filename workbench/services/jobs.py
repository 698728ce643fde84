"""Jobs: start, watch, cancel, resume and delete them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from workbench.errors import Conflict, InvalidInput, list_choices
from workbench.services.corpus import Corpus
from workbench.services.sources import UPLOADS_TITLE, LocationNames, SourceService
from workbench.storage.jobs import FINISHED_STATUSES, Job, Jobs, LogLine, Queue
from workbench.types import JsonObject, JsonValue, OnProgress, Progress

JOB_KINDS = ("crawl", "ingest", "index_build", "experiment", "optimise", "test_set", "learn")
JOB_STATUSES = ("queued", "running", *FINISHED_STATUSES)
POLL_INTERVAL_S = 0.2  # seconds between polls of a job
WORKER_START_S = 10  # seconds in which a worker that was just started reports to the queue


class JobService:
    """Operations on jobs of all kinds; those specific to crawls are in ``CrawlService``."""

    def __init__(self, corpus: Corpus, sources: SourceService) -> None:
        self._corpus, self._sources = corpus, sources
        self.queue = Queue(corpus.database.url)
        self.table = table = Jobs(corpus.database, self.queue)
        self.get, self.count, self.with_parameters = table.get, table.count, table.with_parameters
        self.in_view = table.in_view
        self.files, self.tally, self.parts = table.files.list, table.files.tally, table.parts.tally

    # Start jobs

    def enqueue_ingest(
        self,
        paths: Iterable[Path | str] = (),
        *,
        files: Sequence[tuple[str, bytes]] = (),
        source: str | None = None,
        project: str | None = None,
        folder: str | None = None,
        tags: Sequence[str] = (),
        index: str | None = None,
        title: str | None = None,
        source_id: str | None = None,
        left_out: Sequence[str] = (),
    ) -> Job:
        """Ingest in the background.

        Args:
            paths: Files and folders, as seen from the worker's machine.
            files: Uploads as (name, bytes); zip archives are unpacked.
            source: Id or title of the source.
            project: Project of a new source.
            folder: Folder of a new source, in the project.
            tags: Tags to add to the source.
            index: Index to fill; the default index and all promoted ones if None.
            title: Title of the job.
            source_id: Source created for the job; if it is deleted, it is recreated from the names.
            left_out: Names of files that are not ingested, for the report.

        Raises:
            InvalidInput: Nothing was given, or none of the paths exists here.
            UnreadableDocument: Unpacking an uploaded zip archive failed.
        """
        from workbench.ingestion.incoming import unpack_uploads
        from workbench.ingestion.readers.formats import expand_home

        places = [str(Path(expand_home(path)).absolute()) for path in paths]
        uploads = unpack_uploads(files)
        files, left_out = uploads.files, [*left_out, *uploads.left_out]
        if not places and not files:
            raise InvalidInput("Nothing to ingest: give files, folders or uploads.")
        if places and not any(Path(path).exists() for path in places):
            raise InvalidInput(f"No such file or folder: {list_choices(places)}.")
        count = len(places) + len(files)
        first = Path(places[0]).name if places else files[0][0]
        title = title or f"Ingest {first}" + (f" and {count - 1} more" * (count > 1))
        parameters = {"paths": places, "source": source, "project": project, "folder": folder, "tags": list(tags)}
        if left_out:
            parameters["left_out"] = left_out
        if source_id is None:
            place = LocationNames(project=project, folder=folder)
            source_id = self._sources.ensure(source or UPLOADS_TITLE, **place, tags=tags, for_ingest=True).id
        return self.enqueue("ingest", title, parameters | {"index": index}, files=files, source_id=source_id)

    def enqueue_document(
        self,
        *,
        path: Path | None = None,
        text: str | None = None,
        source: str | None = None,
        title: str | None = None,
        url: str | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        document: str | None = None,
    ) -> Job:
        """Create a document in the background, as ``DocumentService.create`` does; ``source`` is an id.

        With ``document``, the id of an existing one, replace its content as ``DocumentService.update`` does.
        """
        if source is None and document is None:
            source = self._sources.ensure(UPLOADS_TITLE, for_ingest=True).id
        parameters: JsonObject = {"paths": [str(path)] if path else [], "source": source, "update": document}
        parameters["document"] = {"title": title, "url": url, "metadata": dict(metadata or {})}
        files = [] if text is None else [("text.md", text.encode())]
        label = f"{'Update' if document else 'Ingest'} {title or (path.name if path else 'a text')}"
        return self.enqueue("ingest", label, parameters, files=files, source_id=source)

    def enqueue_workspace(self, folder: Path, path: Path | None = None) -> Job:
        """Embed a workspace's new and changed conversations in the background, or only those of a path in it.

        If the same job is already queued or running, return that one.
        """
        wanted = {"workspace": str(folder), "conversation": str(path) if path else None}
        job = self.with_parameters("ingest", wanted, unfinished=True)
        if job is not None:
            return job
        title = f"Embed workspace {folder.name}" if path is None else f"Embed {path.name}"
        return self.enqueue("ingest", title, {"paths": [], **wanted})

    def enqueue_index_build(self, name: str) -> Job:
        """Build an index in the background. Raises NotFound, or Conflict if a job is already building it."""
        index = self._corpus.index(name)
        running = self.list_builds().get(index.name)
        if running is not None:
            raise Conflict(f"The index {index.name!r} is already being built by job {running.id}.")
        return self.enqueue("index_build", f"Build index {index.name}", {"index": index.name})

    def enqueue_stemming(self) -> list[Job]:
        """After a change of a source's language, update the indexes in use in the background."""
        lacking = [
            index.name
            for index in self._corpus.indexes.list()
            if index.passages_count and self._corpus.documents.list_missing(index.name, index.dataset)
        ]
        building = self.list_builds()
        return [self.enqueue_index_build(name) for name in lacking if name not in building]

    def enqueue(
        self,
        kind: str,
        title: str,
        parameters: Mapping[str, JsonValue],
        files: Sequence[tuple[str, bytes]] = (),
        source_id: str | None = None,
    ) -> Job:
        """Queue a job.

        Args:
            kind: Kind of job, which selects its runner.
            title: Title of the job.
            parameters: Parameters for the runner.
            files: Uploads as (name, bytes).
            source_id: Source that it belongs to; the job is deleted with it.
        """
        with self.table.transaction() as connection:
            job_id = self.table.create(connection, kind, title, parameters, files=files, source_id=source_id)
        return self.table.get(job_id)

    # Watch jobs

    def list(
        self,
        *,
        kind: str | None = None,
        status: str | None = None,
        source: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> list[Job]:
        """Return jobs, newest first.

        Raises:
            InvalidInput: Unknown kind or status.
            NotFound: No such source.
        """
        for name, value, valid in (("kind", kind, JOB_KINDS), ("status", status, JOB_STATUSES)):
            if value is not None and value not in valid:
                raise InvalidInput(f"Invalid {name} {value!r}: use one of {list_choices(valid)}.")
        source_id = self._corpus.sources.find(source).id if source else None
        return self.table.list(kind=kind, status=status, source_id=source_id, limit=limit, offset=offset)

    def list_builds(self) -> dict[str, Job]:
        """Return the unfinished jobs that build indexes, by index name."""
        return {str(job.parameters["index"]): job for job in self.table.list_unfinished("index_build")}

    def log(self, job_id: str, *, after: int = 0, limit: int = 200) -> list[LogLine]:
        """Return the last lines of a job's log with an id above ``after``, oldest first."""
        self.table.get(job_id)
        return self.table.log_lines(job_id, after=after, limit=limit)

    def wait(self, job_id: str, *, timeout: float | None = None, on_progress: OnProgress | None = None) -> Job:
        """Wait until a job ends or ``timeout`` seconds have passed, and return it; a worker must be running.

        Raises:
            NotFound: No such job.
            Conflict: Without a timeout, if it stays queued because no worker runs.
        """
        began = time.monotonic()
        until = None if timeout is None else began + timeout
        while True:
            job = self.table.get(job_id)
            if on_progress is not None:
                message = job.stalled or job.message
                on_progress(Progress(job.done, job.total, message, job.part, job.seconds_left, share=job.share))
            if job.is_finished or (until is not None and time.monotonic() >= until):
                return job
            is_waiting_long = until is None and time.monotonic() - began > WORKER_START_S
            if is_waiting_long and job.status == "queued" and job.stalled:
                raise Conflict(f"Job {job_id}: {job.stalled} In Python, Workbench.work() starts one.")
            time.sleep(POLL_INTERVAL_S)

    # Control jobs

    def cancel(self, job_id: str) -> Job:
        """Stop a job; finished work is kept. Raises NotFound, or Conflict if it has already ended."""
        job = self.table.get(job_id)
        if self.table.cancel(job_id) is None:
            raise Conflict(f"Job {job_id} is already {self.table.get(job_id).status}.")
        self.table.log(job_id, "Stop requested." if job.status == "running" else "Cancelled before it started.")
        return self.table.get(job_id)

    def resume(self, job_id: str) -> Job:
        """Requeue a cancelled or failed job to resume it.

        Raises:
            NotFound: No such job.
            Conflict: It has completed or has not ended yet.
        """
        job = self.table.get(job_id)
        if job.status == "completed":
            raise Conflict(f"Job {job_id} is already completed.")
        if not self.table.requeue(job_id):
            raise Conflict(f"Job {job_id} is {job.status}; only cancelled and failed jobs can be resumed.")
        self.table.log(job_id, "Resumed.")
        return self.table.get(job_id)

    def put_away(self, job_id: str) -> None:
        """Hide a job that has ended, and delete its source if that is empty; a resumed job creates it again."""
        self.table.put_away(job_id)
        job = self.table.get(job_id)
        if job.is_finished and job.source_id is not None:
            self._corpus.sources.settle(job.source_id)

    def delete(self, job_id: str) -> Job:
        """Delete an ended job with its log, and its source if that is empty.

        Raises:
            NotFound: No such job.
            Conflict: It has not ended.
        """
        job = self.table.get(job_id)
        if not job.is_finished:
            raise Conflict(f"Job {job_id} is {job.status}; cancel it first.")
        self.table.delete(job_id)
        if job.source_id is not None:
            self._corpus.sources.settle(job.source_id)
        return job
