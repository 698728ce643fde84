"""The execution of one job, to its end and the note of how it ended; and the help of a further worker with it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from workbench.errors import Cancelled, NotFound, WorkbenchError
from workbench.jobs.assignment import Assignment, Outcome, WorkerStopped
from workbench.jobs.runners import Runner, Runners
from workbench.storage.job_parts import PartLost
from workbench.storage.jobs import Job, Jobs
from workbench.telemetry import JOB, measured

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
