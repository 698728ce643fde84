"""The worker: takes jobs from the queue and runs them; any number of workers may share a database.

A long job consists of parts; the worker that runs it invites others through the queue to take some of them.
If a worker dies, another one notices the missing heartbeat and resumes its job. A job held by a live process is never
run twice, regardless of heartbeats (``Jobs.hold``).
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypedDict, Unpack

from workbench.errors import Cancelled, ConnectionLost, NotFound, WorkbenchError
from workbench.jobs.runners import Runner, Runners
from workbench.jobs.sharing import Assignment, WorkerStopped
from workbench.storage.jobs import JOIN_TASK, Job, Jobs, PartLost, Queue, name_queues
from workbench.telemetry import JOB, measure

if TYPE_CHECKING:
    from procrastinate.manager import JobManager

# Running a job, or helping with one

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 5  # times a job is restarted without progress: it then kills its workers


def run_job(jobs: Jobs, runners: Runners, job_id: str, worker: str, stopping: threading.Event) -> None:
    """Run one job and record its outcome. Raises WorkerStopped if the job returns to the queue."""
    with jobs.hold(job_id) as ours:
        if not ours:
            raise WorkerStopped  # another process holds it; retry later
        try:
            runner = runners.get(jobs.get(job_id).kind)
        except NotFound:
            return
        if runner is None:
            raise WorkerStopped  # another worker supports the kind
        job = jobs.begin(job_id, worker)
        if job is not None:
            _run(jobs, runner, job, stopping)


def help_with_job(
    jobs: Jobs, runners: Runners, job_id: str, stopping: threading.Event, is_wanted_elsewhere: Callable[[], bool]
) -> bool:
    """Take parts of a job that another worker runs until none is left; False if this worker cannot do them."""
    try:
        job = jobs.get(job_id)
    except NotFound:
        return True
    runner = runners.get(job.kind)
    if runner is None or job.status != "running":
        return runner is not None
    assignment = Assignment(job, jobs, stopping, leads=False, is_wanted_elsewhere=is_wanted_elsewhere)
    try:
        with measure(JOB, job.kind, job=job.id, leads=False), assignment.send_heartbeats():
            runner(assignment)
    except (Cancelled, PartLost):
        return True
    except WorkbenchError as error:
        assignment.log(f"A helping worker released its part: {error}", "warning")
        return False
    except Exception as error:
        logger.exception("helping with job %s failed", job_id)
        assignment.log(f"A helping worker released its part ({type(error).__name__}: {error}).", "warning")
        return False
    return True


def _run(jobs: Jobs, runner: Runner, job: Job, stopping: threading.Event) -> None:
    assignment = Assignment(job, jobs, stopping)
    if job.attempts > MAX_ATTEMPTS:
        sentence = (
            f"Its worker died {MAX_ATTEMPTS} times without progress; check the machine's memory, then resume the job."
        )
        jobs.finish(job.id, "failed", message=sentence, error=sentence)
        return
    try:
        if assignment.should_stop():
            raise Cancelled("Stopped.")
        with measure(JOB, job.kind, job=job.id, leads=True) as span, assignment.send_heartbeats():
            outcome = runner(assignment)
            span.add_attributes(with_errors=outcome.with_errors)
    except (PartLost, ConnectionLost) as error:  # finished parts are kept
        assignment.log(f"The job returned to the queue: {error}", "warning")
        jobs.release(job.id)
        raise WorkerStopped from None
    except Cancelled:
        if assignment.worker_stops:
            jobs.release(job.id)
            raise WorkerStopped from None
        _end(assignment, jobs, "cancelled", "Cancelled; finished work is kept, and the job can be resumed.")
    except WorkbenchError as error:
        _end(assignment, jobs, "failed", str(error), error=str(error))
    except Exception as error:
        if assignment.worker_stops:  # the database may have been stopped first; another worker resumes the job
            raise WorkerStopped from None
        logger.exception("job %s failed", job.id)
        sentence = f"Unexpected error ({type(error).__name__}: {error}); see the worker's log, then resume the job."
        _end(assignment, jobs, "failed", sentence, error=sentence)
    else:
        status = "completed_with_errors" if outcome.with_errors else "completed"
        assignment.log(outcome.message)
        jobs.finish(job.id, status, message=outcome.message, result=outcome.result)


def _end(assignment: Assignment, jobs: Jobs, status: str, message: str, error: str | None = None) -> None:
    assignment.log(message, "error" if error else "warning")
    jobs.finish(assignment.job.id, status, message=message, error=error)


MAX_CONCURRENT_JOBS = 3  # jobs of a worker at the same time: a long index build must not delay a short crawl
HEARTBEAT_INTERVAL_S = 2.0  # seconds
STALLED_AFTER_S = 15.0  # seconds without a heartbeat after which a worker counts as dead
RECONNECT_DELAY_S = 2.0  # seconds before a worker reconnects to the database
REINVITE_DELAY_S = 2  # seconds before an invitation is repeated if this worker already runs the job
POLL_INTERVAL_S = 1.0  # seconds between queries of the queue, in addition to its notifications


class WorkerHandle:
    """A worker in a thread of this process; ``stop`` releases its jobs and waits for it."""

    def __init__(
        self,
        jobs: Jobs,
        queue: Queue,
        runners: Runners,
        *,
        concurrency: int = MAX_CONCURRENT_JOBS,
        heartbeat: float = HEARTBEAT_INTERVAL_S,
        stalled: float = STALLED_AFTER_S,
    ) -> None:
        """Internal; use ``start_worker``."""
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
        self._beyond: set[str] = set()  # jobs whose parts this worker cannot do
        self._thread = threading.Thread(target=self._main, name="worker", daemon=True)

    @property
    def is_alive(self) -> bool:
        """True while the worker accepts jobs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread; returns once it accepts jobs. Raises StorageError if the queue is unreachable."""
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def stop(self, timeout: float = 20.0) -> None:
        """Return running jobs to the queue and end."""
        self._stopping.set()
        if self._loop is not None and self._worker is not None and self._thread.is_alive():
            try:
                self._loop.call_soon_threadsafe(self._worker.cancel)
            except RuntimeError:  # the loop has just ended
                return
        self._thread.join(timeout)

    def leave(self, patience: float) -> bool:
        """Stop before the process ends.

        Args:
            patience: Seconds after which jobs that are still running are returned to the queue.

        Returns:
            False if a job is still running here; no other worker resumes it until this process ends.
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
                with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as loop:  # required by psycopg on Windows
                    loop.run(self._run())
            except asyncio.CancelledError:
                continue
            except Exception as error:
                if not self._ready.is_set():
                    self._error = error
                    self._stopping.set()
                if self._stopping.is_set():  # the database may have been stopped first
                    break
                logger.exception("The worker lost the queue and reconnects.")
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
                    queues=name_queues(self._runners),
                    concurrency=self._concurrency,
                    fetch_job_polling_interval=POLL_INTERVAL_S,
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
        """Take parts of a job that another worker runs; if this worker runs it, repeat the invitation."""
        if job_id in self._running | self._helping | self._beyond:
            with suppress(NotFound):
                job = self._jobs.get(job_id)
                if job.status == "running" and self._jobs.any_part_waits(job_id):
                    self._jobs.invite(job_id, job.kind, REINVITE_DELAY_S)
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
                    if job.task_name == JOIN_TASK:  # others are invited again anyway
                        await manager.finish_job(job, status=Status.FAILED, delete_job=True)
                    else:
                        await manager.retry_job(job)
                await manager.prune_stalled_workers(self._stalled)
            except ConnectorException as error:  # another worker was first, or the database is briefly unavailable
                logger.debug("Checking for dead workers failed: %s", error)
            await asyncio.sleep(min(POLL_INTERVAL_S, self._stalled / 2))


class WorkerOptions(TypedDict, total=False):
    """Options of a worker."""

    concurrency: int  # jobs at the same time
    heartbeat: float  # seconds between heartbeats
    stalled: float  # seconds without a heartbeat after which other workers take over


def start_worker(jobs: Jobs, queue: Queue, runners: Runners, **options: Unpack[WorkerOptions]) -> WorkerHandle:
    """Start a worker in this process; it runs jobs of the kinds in ``runners`` until ``stop`` is called."""
    handle = WorkerHandle(jobs, queue, runners, **options)
    handle.start()
    return handle


# A worker in its own process, so that heavy work does not slow down the one that serves people

WATCH_INTERVAL_S = 0.5  # seconds between checks for work
RESTART_DELAY_S = 5.0  # seconds after a worker failed to start, or the database did not answer
FAST_STOP_TIMEOUT_S = 0.1  # seconds to wait for the watching thread during a fast shutdown
STOP_TIMEOUT_S = 5.0  # seconds for a worker to release its jobs; then it is killed, and other workers find its jobs


class WorkerProcess:
    """A process that starts with the first waiting job, is restarted if it dies, and ends with this process.

    The command stops when its standard input is closed, so it also stops if this process is killed.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], jobs: Jobs) -> None:
        self._command, self._environment, self._jobs = list(command), dict(environment), jobs
        self._process: subprocess.Popen[str] | None = None
        # The last line of a process that failed, until one has run for RESTART_DELAY_S; None before the first.
        self._failure: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="worker-process", daemon=True)

    def start(self) -> None:
        """Start watching for work."""
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """Id of the worker's process; None if it is not running."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def stop(self, *, waits: bool = True) -> None:
        """Stop the worker, which releases its jobs; without ``waits``, that may take until after this process ends."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S if waits else FAST_STOP_TIMEOUT_S)
        if self._failure:
            with suppress(WorkbenchError, OSError):
                self._jobs.note_worker_failure("")
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if not waits:
            return
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _watch(self) -> None:
        while not self._stopping.is_set():
            pause = WATCH_INTERVAL_S
            try:
                if self.pid is not None:
                    if self._failure != "":
                        self._failure = ""
                        self._jobs.note_worker_failure("")  # also that of an app that has stopped
                elif self._jobs.any_waiting():
                    if self._failure:
                        self._jobs.note_worker_failure(self._failure)
                    self._process = process = subprocess.Popen(
                        self._command, env=self._environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                        encoding="utf-8", errors="replace",
                    )  # fmt: skip
                    threading.Thread(target=self._follow, args=(process,), daemon=True).start()
                    pause = RESTART_DELAY_S
            except (WorkbenchError, OSError) as error:
                self._failure = str(error)
                logger.warning("The worker's process did not start: %s", error)
                pause = RESTART_DELAY_S
            self._stopping.wait(pause)

    def _follow(self, process: subprocess.Popen[str]) -> None:
        """Copy a process's standard error to ours, and keep the last line if it fails."""
        last = ""
        with process:  # closes its pipes once it has ended
            for line in process.stderr or ():
                with suppress(OSError, ValueError, AttributeError):  # ours is closed, or there is none
                    sys.stderr.write(line)
                last = line.strip() or last
        if process.returncode:
            self._failure = last or f"its process ended with code {process.returncode}"
