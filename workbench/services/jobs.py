"""Jobs that every face can start, watch, stop and go on with."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from workbench.errors import Conflict, InvalidInput, NotFound, choices
from workbench.services.checks import UPLOADS
from workbench.services.corpus import Corpus
from workbench.storage.job_parts import FileTally, JobFile, JobParts, PartsTally
from workbench.storage.jobs import FINISHED, Job, Jobs, LogLine, Queue
from workbench.types import JsonObject, JsonValue, OnProgress, Progress

KINDS = ("crawl", "ingest", "index_build", "experiment", "optimise", "test_set", "learn")
STATUSES = ("queued", "running", *FINISHED)
FILES = 200  # files of a job that are listed at once
LOOK = 0.2  # seconds between two looks at a job that somebody waits for


class JobService:
    """The verbs over jobs of every kind; those that only crawls have are in ``CrawlService``."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.queue = Queue(corpus.database.url)
        self.table = Jobs(corpus.database, self.queue)

    # --- starting ---------------------------------------------------------------------------------------------------

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
        """Ingest in the background: ``paths`` as the worker's machine sees them, or uploads as (name, bytes).

        The files of an uploaded zip archive are taken one by one; those of kinds that are not read are named in the
        job's parameter ``left_out``, after the names that are given. ``title`` is what people see of it.
        ``source_id`` is the source that was made for it already; it is made anew from the names where it is gone.

        Raises:
            InvalidInput: nothing was given, or none of the paths exists here. UnreadableDocument: an upload is a zip
                archive that cannot be unpacked.
        """
        from workbench.ingestion.incoming import taken_apart
        from workbench.ingestion.readers import expanded

        places = [str(Path(expanded(path)).absolute()) for path in paths]
        uploads = taken_apart(files)
        files, left_out = uploads.files, [*left_out, *uploads.left_out]
        if not places and not files:
            raise InvalidInput("There is nothing to ingest; name files, folders or uploads.")
        if places and not any(Path(path).exists() for path in places):
            raise InvalidInput(f"There is no such file or folder: {choices(places)}.")
        count = len(places) + len(files)
        first = Path(places[0]).name if places else files[0][0]
        title = title or f"Ingest {first}" + (f" and {count - 1} more" * (count > 1))
        parameters = {"paths": places, "source": source, "project": project, "folder": folder, "tags": list(tags)}
        if left_out:
            parameters["left_out"] = left_out
        if source_id is None and source and source.startswith("src_"):
            source_id = self._corpus.sources.find(source).id
        elif source_id is None and source and source != UPLOADS and not project:
            with suppress(NotFound):  # a source of that title will be made
                self._corpus.sources.find(source)  # several of it are refused now, not when the job begins
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
        """Create one document in the background, as ``DocumentService.create`` does. ``source`` is an id.

        With ``document``, the id of one that is there, its content is replaced as ``DocumentService.update`` does.
        """
        parameters: JsonObject = {"paths": [str(path)] if path else [], "source": source, "update": document}
        parameters["document"] = {"title": title, "url": url, "metadata": dict(metadata or {})}
        files = [] if text is None else [("text.md", text.encode())]
        label = f"{'Update' if document else 'Ingest'} {title or (path.name if path else 'a text')}"
        return self.enqueue("ingest", label, parameters, files=files, source_id=source)

    def enqueue_workspace(self, folder: Path, path: Path | None = None) -> Job:
        """Bring a workspace's conversations up to date in the background, or those that a path in it means.

        The same work is queued once at a time.
        """
        wanted = {"workspace": str(folder), "conversation": str(path) if path else None}
        job = self.with_parameters("ingest", wanted, unfinished=True)
        if job is not None:
            return job
        title = f"Embed workspace {folder.name}" if path is None else f"Embed {path.name}"
        return self.enqueue("ingest", title, {"paths": [], **wanted})

    def enqueue_index_build(self, name: str) -> Job:
        """Bring an index up to date in the background. Raises NotFound, or Conflict while that goes on already."""
        index = self._corpus.index(name)
        going_on = self.building().get(index.name)
        if going_on is not None:
            raise Conflict(f"The index {index.name!r} is being built already, by job {going_on.id}.")
        return self.enqueue("index_build", f"Build index {index.name}", {"index": index.name})

    def enqueue_stemming(self) -> list[Job]:
        """Bring the indexes that are in use up to date in the background, after a source got another language."""
        lacking = [
            index.name
            for index in self._corpus.indexes.list()
            if index.documents_count and self._corpus.documents.missing_from(index.name, index.dataset)
        ]
        building = self.building()
        return [self.enqueue_index_build(name) for name in lacking if name not in building]

    def enqueue(
        self,
        kind: str,
        title: str,
        parameters: Mapping[str, JsonValue],
        files: Sequence[tuple[str, bytes]] = (),
        source_id: str | None = None,
    ) -> Job:
        """Put a job of any kind into the queue; the runner of its kind reads the parameters.

        ``source_id`` is the source it belongs to, with which it is deleted.
        """
        with self.table.transaction() as connection:
            job_id = self.table.create(connection, kind, title, parameters, files=files, source_id=source_id)
        return self.table.get(job_id)

    # --- watching ---------------------------------------------------------------------------------------------------

    def list(
        self,
        *,
        kind: str | None = None,
        status: str | None = None,
        source: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> list[Job]:
        """Return jobs, newest first. Raises InvalidInput for an unknown kind or status."""
        for name, value, valid in (("kind", kind, KINDS), ("status", status, STATUSES)):
            if value is not None and value not in valid:
                raise InvalidInput(f"{name} cannot be {value!r}; use one of {choices(valid)}.")
        source_id = self._corpus.sources.find(source).id if source else None
        return self.table.list(kind=kind, status=status, source_id=source_id, limit=limit, offset=offset)

    def count(self, *, kind: str | None = None, status: str | None = None) -> int:
        """Return how many jobs there are of a kind and in a status."""
        return self.table.count(kind=kind, status=status)

    def building(self) -> dict[str, Job]:
        """Return the unfinished jobs that build indexes, by the index."""
        return {str(job.parameters["index"]): job for job in self.table.unfinished("index_build")}

    def in_view(self) -> list[Job]:
        """Return work that goes on, and ingests and index builds of the last day until they are put away."""
        return self.table.in_view()

    def heard(self) -> dict[str, datetime]:
        """Return when the workers that hold jobs were last heard of, by the job's id."""
        return self.table.heard()

    def files(self, job_id: str, *, limit: int = FILES) -> list[JobFile]:
        """Return the files of an ingest in order; of more than ``limit`` the failed, those under way and the latest."""
        return self.table.files.list(job_id, limit)

    def tally(self, job_id: str) -> FileTally:
        """Return how many files of an ingest are in each state, and what share of the whole that is."""
        return self.table.files.tally(job_id)

    def parts(self, job_id: str) -> PartsTally:
        """Return how far the parts of a job are, and how many workers have one in hand; 0 parts where it is not cut."""
        return JobParts(self._corpus.database).tally(job_id)

    def with_parameters(
        self, kind: str, parameters: Mapping[str, JsonValue], *, unfinished: bool = False
    ) -> Job | None:
        """Return the newest job of a kind whose parameters hold the given ones, or None.

        ``unfinished`` leaves out jobs that are over.
        """
        return self.table.with_parameters(kind, parameters, unfinished=unfinished)

    def get(self, job_id: str) -> Job:
        """Return a job. Raises NotFound."""
        return self.table.get(job_id)

    def log(self, job_id: str, *, after: int = 0, limit: int = 200) -> list[LogLine]:
        """Return the last lines of a job's log, oldest first; ``after`` is the id of the last line one has."""
        self.table.get(job_id)
        return self.table.log_lines(job_id, after=after, limit=limit)

    def wait(self, job_id: str, *, timeout: float | None = None, on_progress: OnProgress | None = None) -> Job:
        """Return a job once it is over, or as it stands after ``timeout`` seconds; some worker must be running."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            job = self.table.get(job_id)
            if on_progress is not None:
                message = job.stalled or job.message
                on_progress(Progress(job.done, job.total, message, job.part, job.seconds_left, share=job.share))
            if job.is_finished or (until is not None and time.monotonic() >= until):
                return job
            time.sleep(LOOK)

    # --- steering ---------------------------------------------------------------------------------------------------

    def cancel(self, job_id: str) -> Job:
        """Stop a job; its finished work stays. Raises NotFound, or Conflict when it is over."""
        job = self.table.get(job_id)
        if self.table.cancel(job_id) is None:
            raise Conflict(f"Job {job_id} is {self.table.get(job_id).status} already; there is nothing to stop.")
        self.table.log(job_id, "Asked to stop." if job.status == "running" else "Cancelled before it began.")
        return self.table.get(job_id)

    def resume(self, job_id: str) -> Job:
        """Let a job that was stopped or failed go on from where it was. Raises NotFound or Conflict."""
        job = self.table.get(job_id)
        if job.status == "completed":
            raise Conflict(f"Job {job_id} is completed; there is nothing left to do.")
        if not self.table.requeue(job_id):
            raise Conflict(f"Job {job_id} is {job.status}; it goes on by itself.")
        self.table.log(job_id, "Asked to go on.")
        return self.table.get(job_id)

    def put_away(self, job_id: str) -> None:
        """Take work that has ended out of view, for everyone; its record stays."""
        self.table.put_away(job_id)

    def delete(self, job_id: str) -> Job:
        """Forget a finished job and its log, and the source that it was to fill where nothing is in it.

        Raises:
            NotFound: no such job. Conflict: it runs.
        """
        job = self.table.get(job_id)
        if not job.is_finished:
            raise Conflict(f"Job {job_id} is {job.status}; cancel it first.")
        self.table.delete(job_id)
        if job.source_id is not None:
            self._corpus.sources.settle(job.source_id)
        return job
