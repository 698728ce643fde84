"""The worker: takes jobs out of the queue and runs them, as many workers as one likes on one database.

Long jobs consist of parts; the worker that runs one invites others through the queue to take parts of it.
A job whose worker died is found by its missing heartbeat and taken up again; the job itself knows how to go on.
A job held by a living process is never run twice, whatever the heartbeats say (``Jobs.held``).
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TypedDict, Unpack

from workbench.errors import NotFound, WorkbenchError
from workbench.jobs.assignment import WorkerStopped
from workbench.jobs.execution import help_with_job, run_job
from workbench.jobs.runners import Runners
from workbench.storage.jobs import JOIN, Jobs, Queue, queues_of

if TYPE_CHECKING:
    from procrastinate.manager import JobManager

logger = logging.getLogger(__name__)

CONCURRENCY = 3  # jobs a worker runs side by side: a long index build must not hold up a short crawl
HEARTBEAT = 2.0  # seconds
STALLED = 15.0  # seconds without a heartbeat after which a worker counts as dead
RECONNECT_DELAY_S = 2.0  # seconds before a worker that lost the database tries again
PASS_ON = 2  # seconds before an invitation that found this worker at the job already is open again
POLL = 1.0  # seconds between looks into the queue, beside its notifications


class WorkerHandle:
    """A worker in a thread of this process; ``stop`` gives its jobs back and waits for it."""

    def __init__(
        self, jobs: Jobs, queue: Queue, runners: Runners, concurrency: int, heartbeat: float, stalled: float
    ) -> None:
        """Use ``start_worker``."""
        self.name = f"{socket.gethostname()}/{os.getpid()}"
        self._jobs, self._queue, self._runners, self._concurrency = jobs, queue, runners, concurrency
        self._heartbeat, self._stalled = heartbeat, stalled
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: asyncio.Task[None] | None = None
        self._manager: JobManager | None = None
        self._running: set[str] = set()
        self._helping: set[str] = set()
        self._beyond: set[str] = set()  # jobs whose parts cannot be done here
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

    def leave(self, patience: float) -> bool:
        """Stop, and give back the jobs that have not ended within ``patience`` seconds, before the process ends.

        False says that a job still runs here: until the process ends no other worker takes it up.
        """
        self.stop(patience)
        loop, manager = self._loop, self._manager
        if not self._thread.is_alive():
            return True
        if loop is not None and manager is not None:
            with suppress(TimeoutError, RuntimeError, WorkbenchError):
                asyncio.run_coroutine_threadsafe(self._give_back(manager), loop).result(patience)
        return False

    async def _give_back(self, manager: JobManager) -> None:
        from procrastinate.exceptions import ConnectorException

        for job_id in list(self._running):
            await asyncio.to_thread(self._jobs.release, job_id)
            with suppress(ConnectorException):  # it has just ended
                for job in await manager.list_jobs_async(lock=job_id, status="doing"):
                    await manager.retry_job(job)

    def join(self) -> None:
        """Wait until the worker ends (``workbench worker``)."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def _main(self) -> None:
        while not self._stopping.is_set():
            try:
                with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as loop:  # psycopg wants it, on Windows too
                    loop.run(self._run())
            except asyncio.CancelledError:
                continue
            except Exception as error:
                if not self._ready.is_set():
                    self._error = error
                    self._stopping.set()
                    break
                logger.exception("the worker lost the queue; it tries again")
            self._stopping.wait(RECONNECT_DELAY_S)
        self._ready.set()

    async def _run(self) -> None:
        def run(job_id: str) -> None:
            self._running.add(job_id)
            try:
                run_job(self._jobs, self._runners, job_id, self.name, self._stopping)
            finally:
                self._running.discard(job_id)

        pooled = await asyncio.to_thread(self._queue.is_pooled)
        app = self._queue.worker_app(run, self._help, WorkerStopped, pooled=pooled)
        async with app.open_async():
            self._loop, self._manager = asyncio.get_running_loop(), app.job_manager
            rescue = asyncio.create_task(self._rescue(app.job_manager))
            self._worker = asyncio.create_task(
                app.run_worker_async(
                    name=self.name,
                    queues=queues_of(self._runners),
                    concurrency=self._concurrency,
                    fetch_job_polling_interval=POLL,
                    listen_notify=not pooled,
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

    def _help(self, job_id: str) -> None:
        """Take parts of a job that runs elsewhere; where this worker is at it already, pass the invitation on."""
        if job_id in self._running | self._helping | self._beyond:
            with suppress(NotFound):
                job = self._jobs.get(job_id)
                if job.status == "running" and self._jobs.any_part_waits(job_id):
                    self._jobs.invite(job_id, job.kind, PASS_ON)
            return

        def is_wanted_elsewhere() -> bool:
            return job_id in self._running or self._jobs.any_queued(list(self._runners))

        self._helping.add(job_id)
        try:
            if not help_with_job(self._jobs, self._runners, job_id, self._stopping, is_wanted_elsewhere):
                self._beyond.add(job_id)
        finally:
            self._helping.discard(job_id)

    async def _rescue(self, manager: JobManager) -> None:
        """Put the jobs of dead workers back into the queue."""
        from procrastinate.exceptions import ConnectorException
        from procrastinate.jobs import Status

        while True:
            try:
                for job in await manager.get_stalled_jobs(seconds_since_heartbeat=self._stalled):
                    if job.task_name == JOIN:  # others are invited anyway
                        await manager.finish_job(job, status=Status.FAILED, delete_job=True)
                    else:
                        await manager.retry_job(job)
                await manager.prune_stalled_workers(self._stalled)
            except ConnectorException as error:  # another worker was first, or the database is away for a moment
                logger.debug("could not look for dead workers: %s", error)
            await asyncio.sleep(min(POLL, self._stalled / 2))


class WorkerOptions(TypedDict, total=False):
    """Options of a worker: jobs side by side, and two times in seconds."""

    concurrency: int
    heartbeat: float
    stalled: float


def start_worker(jobs: Jobs, queue: Queue, runners: Runners, **options: Unpack[WorkerOptions]) -> WorkerHandle:
    """Start a worker in this process; it runs jobs of the kinds it has runners for, until ``stop`` ends it.

    ``stalled`` seconds without a heartbeat (by default 15, one each 2) make other workers take its jobs over.
    """
    complete: WorkerOptions = {"concurrency": CONCURRENCY, "heartbeat": HEARTBEAT, "stalled": STALLED, **options}
    handle = WorkerHandle(jobs, queue, runners, **complete)
    handle.start()
    return handle
