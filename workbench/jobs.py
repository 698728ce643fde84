"""The worker: takes jobs out of the queue and runs them, as many workers as one likes on one database.

A job whose worker died is found by its missing heartbeat and taken up again; the job itself knows how to go on.
A job held by a living process is never run twice, whatever the heartbeats say (``Jobs.held``).
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from workbench.errors import Cancelled, WorkbenchError
from workbench.storage.jobs import Job, Jobs
from workbench.types import Progress

logger = logging.getLogger(__name__)

CONCURRENCY = 3  # jobs a worker runs side by side: a long index build must not hold up a short crawl
HEARTBEAT = 2.0  # seconds
STALLED = 15.0  # seconds without a heartbeat after which a worker counts as dead
AGAIN = 2.0  # seconds before a worker that lost the database tries again
POLL = 1.0  # seconds between looks into the queue, beside its notifications
LOOK = 0.4  # seconds between looks whether a job was asked to stop: cancelling takes effect within two
TELL = 0.25  # seconds between two notes of progress
MOST_ATTEMPTS = 5  # times a job is taken up again without having got on: it then kills its workers


class WorkerStopped(Exception):
    """An event, not an error: this worker stops, and the job goes back into the queue."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended; ``result`` is kept with it."""

    result: dict[str, Any]
    message: str
    with_errors: bool = False


class Running:
    """A job while it runs: tells how far it is and whether to stop. Any thread may use it."""

    def __init__(self, job: Job, jobs: Jobs, stopping: threading.Event) -> None:
        self.job = job
        self._jobs, self._stopping = jobs, stopping
        self._looked = self._told = 0.0
        self._cancelled = False
        self._lock = threading.Lock()

    @property
    def worker_stops(self) -> bool:
        """True when it is the worker that stops, not the job that was cancelled."""
        return self._stopping.is_set() and not self._cancelled

    def should_stop(self) -> bool:
        """Tell whether to stop now; cheap enough to ask often."""
        with self._lock:
            if not self._cancelled and time.monotonic() - self._looked > LOOK:
                self._cancelled = self._jobs.cancel_requested(self.job.id)
                self._looked = time.monotonic()
            return self._cancelled or self._stopping.is_set()

    def progress(self, progress: Progress) -> None:
        """Note how far it is; most notes in quick succession are left out, never the last one."""
        with self._lock:
            if time.monotonic() - self._told < TELL and progress.done != progress.total:
                return
            self._told = time.monotonic()
        self._jobs.progress(self.job.id, progress)

    def log(self, message: str, level: str = "info") -> None:
        """Add a line to the job's log."""
        self._jobs.log(self.job.id, message, level)


def run_index_build(workbench: Any, running: Running) -> Outcome:
    """Build an index; the documents it holds already are not touched."""
    name = running.job.parameters["index"]
    index = workbench.indexes.build(name, on_progress=running.progress, should_stop=running.should_stop)
    message = f"{index.name} holds {index.documents_count:,} documents in {index.passages_count:,} passages."
    return Outcome({"documents": index.documents_count, "passages": index.passages_count}, message)


def run_crawl(workbench: Any, running: Running) -> Outcome:
    """Crawl from where the job is."""
    status, result, message = workbench.crawls.run(running)
    return Outcome(result, message, with_errors=status == "completed_with_errors")


RUNNERS = {  # kind of job -> what runs it, imported when the first one comes: evaluation stands above this house
    "crawl": "workbench.jobs:run_crawl",
    "ingest": "workbench.ingest_job:run_ingest",
    "index_build": "workbench.jobs:run_index_build",
    "experiment": "evals.jobs:run_experiment",
    "optimise": "evals.jobs:run_optimise",
}


def run_job(workbench: Any, job_id: str, worker: str, stopping: threading.Event) -> None:
    """Run one job to its end and note how it ended. Raises WorkerStopped to put it back into the queue."""
    jobs: Jobs = workbench.jobs.table
    with jobs.held(job_id) as ours:
        if not ours:
            raise WorkerStopped  # the process that holds it is alive; look again later
        job = jobs.begin(job_id, worker)
        if job is None:
            return
        running = Running(job, jobs, stopping)
        if job.attempts > MOST_ATTEMPTS:
            sentence = (
                f"Its worker died {MOST_ATTEMPTS} times without getting on; see the machine's memory, then resume it."
            )
            jobs.finish(job_id, "failed", message=sentence, error=sentence)
            return
        try:
            if running.should_stop():
                raise Cancelled("Stopped.")
            run: Callable[[Any, Running], Outcome] = resolve_name(RUNNERS[job.kind])
            outcome = run(workbench, running)
        except Cancelled:
            if running.worker_stops:
                jobs.release(job_id)
                raise WorkerStopped from None
            _end(running, jobs, "cancelled", "Stopped as asked; what was done stays, and it can be resumed.")
        except WorkbenchError as error:
            _end(running, jobs, "failed", str(error), error=str(error))
        except Exception as error:
            logger.exception("job %s failed", job_id)
            sentence = (
                f"It failed unexpectedly ({type(error).__name__}: {error}); see the worker's log, then resume it."
            )
            _end(running, jobs, "failed", sentence, error=sentence)
        else:
            status = "completed_with_errors" if outcome.with_errors else "completed"
            running.log(outcome.message)
            jobs.finish(job_id, status, message=outcome.message, result=outcome.result)


def _end(running: Running, jobs: Jobs, status: str, message: str, error: str | None = None) -> None:
    running.log(message, "error" if error else "warning")
    jobs.finish(running.job.id, status, message=message, error=error)


class WorkerHandle:
    """A worker in a thread of this process; ``stop`` gives its jobs back and waits for it."""

    def __init__(self, workbench: Any, concurrency: int, heartbeat: float, stalled: float) -> None:
        """Use ``start_worker``."""
        self.name = f"{socket.gethostname()}/{os.getpid()}"
        self._workbench, self._concurrency = workbench, concurrency
        self._heartbeat, self._stalled = heartbeat, stalled
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._main, name="worker", daemon=True)

    @property
    def is_alive(self) -> bool:
        """True while the worker takes jobs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread; returns once it takes jobs. Raises StorageError when the queue cannot be reached."""
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def stop(self, timeout: float = 20.0) -> None:
        """Give running jobs back to the queue and end."""
        self._stopping.set()
        if self._loop is not None and self._worker is not None and self._thread.is_alive():
            try:
                self._loop.call_soon_threadsafe(self._worker.cancel)
            except RuntimeError:  # the loop ended between the question and the call
                return
        self._thread.join(timeout)

    def join(self) -> None:
        """Wait until the worker ends (``workbench worker``)."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def _main(self) -> None:
        while not self._stopping.is_set():
            try:
                asyncio.run(self._run())
            except asyncio.CancelledError:
                continue
            except Exception as error:
                if not self._ready.is_set():
                    self._error = error
                    self._stopping.set()
                    break
                logger.exception("the worker lost the queue; it tries again")
            self._stopping.wait(AGAIN)
        self._ready.set()

    async def _run(self) -> None:
        def run(job_id: str) -> None:
            run_job(self._workbench, job_id, self.name, self._stopping)

        app = self._workbench.jobs.queue.worker_app(run, WorkerStopped)
        async with app.open_async():
            self._loop = asyncio.get_running_loop()
            rescue = asyncio.create_task(self._rescue(app.job_manager))
            self._worker = asyncio.create_task(
                app.run_worker_async(
                    name=self.name,
                    concurrency=self._concurrency,
                    fetch_job_polling_interval=POLL,
                    install_signal_handlers=False,
                    delete_jobs="always",
                    update_heartbeat_interval=self._heartbeat,
                    stalled_worker_timeout=self._stalled,
                )
            )
            self._ready.set()
            try:
                await self._worker
            finally:
                rescue.cancel()
                await asyncio.gather(rescue, return_exceptions=True)

    async def _rescue(self, manager: Any) -> None:
        """Put the jobs of dead workers back into the queue."""
        from procrastinate.exceptions import ConnectorException

        while True:
            try:
                for job in await manager.get_stalled_jobs(seconds_since_heartbeat=self._stalled):
                    await manager.retry_job(job)
                await manager.prune_stalled_workers(self._stalled)
            except ConnectorException as error:  # another worker was first, or the database is away for a moment
                logger.debug("could not look for dead workers: %s", error)
            await asyncio.sleep(min(POLL, self._stalled / 2))


def start_worker(
    workbench: Any,
    *,
    concurrency: int = CONCURRENCY,
    heartbeat: float = HEARTBEAT,
    stalled: float = STALLED,
) -> WorkerHandle:
    """Start a worker in this process; it runs jobs until ``stop`` (or the process) ends it.

    ``stalled`` seconds without a heartbeat make other workers take its jobs over.
    """
    handle = WorkerHandle(workbench, concurrency, heartbeat, stalled)
    handle.start()
    return handle
