"""Workers that leave although one of their jobs does not stop, and the state of that job."""

from __future__ import annotations

import threading

from workbench import Workbench
from workbench.errors import Cancelled
from workbench.jobs.sharing import Assignment, Outcome
from workbench.jobs.worker import start_worker

LONG = 30  # seconds: an upper bound that only failures reach


def test_a_worker_that_leaves_gives_back_even_a_job_that_does_not_stop(wb: Workbench) -> None:
    begun, go = threading.Event(), threading.Event()

    def deaf(assignment: Assignment) -> Outcome:
        begun.set()
        assert go.wait(LONG)
        return Outcome({}, "Done.")

    job = wb.jobs.enqueue("ingest", "Deaf", {})
    leaving = start_worker(wb.jobs.table, wb.jobs.queue, {"ingest": deaf})
    assert begun.wait(LONG)
    assert leaving.leave(0.5) is False
    assert wb.jobs.get(job.id).status == "queued"
    next_one = start_worker(wb.jobs.table, wb.jobs.queue, {"ingest": lambda assignment: Outcome({}, "Went on.")})
    assert wb.jobs.get(job.id).status == "queued"  # the process that holds it lives still
    go.set()
    assert wb.jobs.wait(job.id, timeout=LONG).status == "completed"
    next_one.stop()
    leaving.stop()


def test_a_job_that_was_asked_to_stop_does_not_wait_again_when_its_worker_leaves(wb: Workbench) -> None:
    begun, go = threading.Event(), threading.Event()

    def deaf(assignment: Assignment) -> Outcome:
        begun.set()
        assert go.wait(LONG)
        raise Cancelled("Stopped.")

    job = wb.jobs.enqueue("ingest", "Deaf", {})
    leaving = start_worker(wb.jobs.table, wb.jobs.queue, {"ingest": deaf})
    assert begun.wait(LONG)
    assert wb.jobs.cancel(job.id).status == "running"
    assert leaving.leave(0.5) is False
    stopped = wb.jobs.get(job.id)
    assert (stopped.status, stopped.is_finished, stopped.message.split(";")[0]) == (
        "cancelled",
        True,
        "Cancelled",
    )
    go.set()
    leaving.join()
    assert wb.jobs.get(job.id).status == "cancelled"
    assert wb.jobs.resume(job.id).status == "queued"
