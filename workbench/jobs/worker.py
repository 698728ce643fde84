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
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypedDict, Unpack

from workbench.errors import Cancelled, NotFound, WorkbenchError
from workbench.jobs.runners import Runner, Runners
from workbench.jobs.sharing import Assignment, Outcome, WorkerStopped
from workbench.storage.job_parts import PartLost
from workbench.storage.jobs import JOIN, Job, Jobs, Queue, queues_of
from workbench.telemetry import JOB, measured

if TYPE_CHECKING:
    from procrastinate.manager import JobManager

# --- The execution of one job, to its end and the note of how it ended; and the help of a further worker with it ---

logger = logging.getLogger(__name__)

MOST_ATTEMPTS = 5  # times a job is taken up again without having got on: it then kills its workers


def run_job(jobs: Jobs, runners: Runners, job_id: str, worker: str, stopping: threading.Event) -> None:
    """Run one job to its end and note how it ended. Raises WorkerStopped to put it back into the queue."""
    with jobs.hold(job_id) as ours:
        if not ours:
            raise WorkerStopped  # the process that holds it is alive; look again later
        try:
            runner = runners.get(jobs.get(job_id).kind)
        except NotFound:
            return
        if runner is None:
            raise WorkerStopped  # another worker knows the kind
        job = jobs.begin(job_id, worker)
        if job is not None:
            _run(jobs, runner, job, stopping)


def help_with_job(
    jobs: Jobs, runners: Runners, job_id: str, stopping: threading.Event, is_wanted_elsewhere: Callable[[], bool]
) -> bool:
    """Take parts of a job that another worker runs, until none waits; False where this worker cannot do them."""
    try:
        job = jobs.get(job_id)
    except NotFound:
        return True
    runner = runners.get(job.kind)
    if runner is None or job.status != "running":
        return runner is not None
    assignment = Assignment(job, jobs, stopping, leads=False, is_wanted_elsewhere=is_wanted_elsewhere)
    try:
        with measured(JOB, job.kind, job=job.id, leads=False), assignment.watched():
            runner(assignment)
    except (Cancelled, PartLost):
        return True
    except WorkbenchError as error:
        assignment.log(f"A worker that helped gave its part back: {error}", "warning")
        return False
    except Exception as error:
        logger.exception("helping with job %s failed", job_id)
        assignment.log(f"A worker that helped gave its part back ({type(error).__name__}: {error}).", "warning")
        return False
    return True


def _run(jobs: Jobs, runner: Runner, job: Job, stopping: threading.Event) -> None:
    assignment = Assignment(job, jobs, stopping)
    if job.attempts > MOST_ATTEMPTS:
        sentence = (
            f"Its worker died {MOST_ATTEMPTS} times without getting on; see the machine's memory, then resume it."
        )
        jobs.finish(job.id, "failed", message=sentence, error=sentence)
        return
    try:
        if assignment.should_stop():
            raise Cancelled("Stopped.")
        with measured(JOB, job.kind, job=job.id, leads=True) as told, assignment.watched():
            outcome = runner(assignment)
            told.tell(with_errors=outcome.with_errors)
    except PartLost:  # its connection broke for a moment: the parts that are done stay
        jobs.release(job.id)
        raise WorkerStopped from None
    except Cancelled:
        if assignment.worker_stops:
            jobs.release(job.id)
            raise WorkerStopped from None
        _end(assignment, jobs, "cancelled", "Stopped as asked; its finished work stays, and it can be resumed.")
    except WorkbenchError as error:
        _end(assignment, jobs, "failed", str(error), error=str(error))
    except Exception as error:
        logger.exception("job %s failed", job.id)
        sentence = f"It failed unexpectedly ({type(error).__name__}: {error}); see the worker's log, then resume it."
        _end(assignment, jobs, "failed", sentence, error=sentence)
    else:
        _complete(assignment, jobs, outcome)


def _complete(assignment: Assignment, jobs: Jobs, outcome: Outcome) -> None:
    status = "completed_with_errors" if outcome.with_errors else "completed"
    assignment.log(outcome.message)
    jobs.finish(assignment.job.id, status, message=outcome.message, result=outcome.result)


def _end(assignment: Assignment, jobs: Jobs, status: str, message: str, error: str | None = None) -> None:
    assignment.log(message, "error" if error else "warning")
    jobs.finish(assignment.job.id, status, message=message, error=error)


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


# --- A worker in a process of its own, so that heavy work never holds up the process that answers people ---

LOOK = 0.5  # seconds between two looks whether there is work
RESTART_DELAY_S = 5.0  # seconds after a worker that could not start, or a database that did not answer
HASTE = 0.1  # seconds for the watching thread, if the process is to end at once
GRACE = 5.0  # seconds a worker gets to give its jobs back; killed then, its jobs are found by other workers


class WorkerProcess:
    """A process that starts with the first job that waits, and again where it died; it ends with this process.

    The command reads its standard input and stops when that ends, so it also stops where this process is killed.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], is_work_waiting: Callable[[], bool]
    ) -> None:
        self._command, self._environment, self._is_work_waiting = list(command), dict(environment), is_work_waiting
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="worker-process", daemon=True)

    def start(self) -> None:
        """Begin to watch for work."""
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The id of the worker's process while it lives."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def stop(self, *, waits: bool = True) -> None:
        """Let the worker give its jobs back to the queue and end; without ``waits`` it does so after this process."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(GRACE if waits else HASTE)
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if not waits:
            return
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _watch(self) -> None:
        while not self._stopping.is_set():
            pause = LOOK
            try:
                if self.pid is None and self._is_work_waiting():
                    self._process = subprocess.Popen(self._command, env=self._environment, stdin=subprocess.PIPE)
                    pause = RESTART_DELAY_S
            except (WorkbenchError, OSError) as error:
                logger.warning("the worker's process could not be started: %s", error)
                pause = RESTART_DELAY_S
            self._stopping.wait(pause)
