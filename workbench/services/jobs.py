"""Jobs that every face can start, watch, stop and go on with."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from workbench.errors import Conflict, InvalidInput, choices
from workbench.services.corpus import Corpus
from workbench.storage.job_files import FileTally, JobFile
from workbench.storage.jobs import FINISHED, Job, Jobs, LogLine
from workbench.storage.queue import Queue
from workbench.types import Progress

OnProgress = Callable[[Progress], None]
KINDS = ("crawl", "ingest", "index_build", "experiment", "optimise")
STATUSES = ("queued", "running", *FINISHED)
FILES = 200  # files of a job that are listed at once
LOOK = 0.2  # seconds between two looks at a job that somebody waits for


class JobService:
    """The verbs over jobs of every kind; what a crawl adds to them is in ``CrawlService``."""

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
    ) -> Job:
        """Ingest in the background: ``paths`` as the worker's machine sees them, or uploads as (name, bytes).

        ``title`` is what people see of it.

        Raises:
            InvalidInput: nothing was given, or none of the paths exists here.
        """
        from workbench.ingestion.readers import expanded

        given = [str(Path(expanded(path)).absolute()) for path in paths]
        if not given and not files:
            raise InvalidInput("There is nothing to ingest; name files, folders or uploads.")
        if given and not any(Path(path).exists() for path in given):
            raise InvalidInput(f"There is no such file or folder: {choices(given)}.")
        count = len(given) + len(files)
        first = Path(given[0]).name if given else files[0][0]
        title = title or f"Ingest {first}" + (f" and {count - 1} more" * (count > 1))
        parameters = {"paths": given, "source": source, "project": project, "folder": folder, "tags": list(tags)}
        source_id = self._corpus.sources.find(source).id if source and source.startswith("src_") else None
        return self.enqueue("ingest", title, parameters | {"index": index}, files=files, source_id=source_id)

    def enqueue_index_build(self, name: str) -> Job:
        """Bring an index up to date in the background. Raises NotFound, or Conflict while that goes on already."""
        index = self._corpus.index(name)
        going_on = self.building().get(index.name)
        if going_on is not None:
            raise Conflict(f"The index {index.name!r} is being built already, by job {going_on.id}.")
        return self.enqueue("index_build", f"Build index {index.name}", {"index": index.name})

    def enqueue(
        self,
        kind: str,
        title: str,
        parameters: Mapping[str, Any],
        files: Sequence[tuple[str, bytes]] = (),
        source_id: str | None = None,
    ) -> Job:
        """Put a job of any kind into the queue; what runs the kind reads the parameters.

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
                on_progress(Progress(job.done, job.total, job.message))
            if job.is_finished or (until is not None and time.monotonic() >= until):
                return job
            time.sleep(LOOK)

    # --- steering ---------------------------------------------------------------------------------------------------

    def cancel(self, job_id: str) -> Job:
        """Stop a job; what it has done stays. Raises NotFound, or Conflict when it is over."""
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
        """Forget a finished job and its log. Raises NotFound, or Conflict while it runs."""
        job = self.table.get(job_id)
        if not job.is_finished:
            raise Conflict(f"Job {job_id} is {job.status}; cancel it first.")
        self.table.delete(job_id)
        return job
