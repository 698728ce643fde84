"""An index built by several workers: each part is done once, and again only if its worker died."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.shared_work import MANY, no_writing, one_killed, passages, taken_again
from tests.jobs.test_jobs import LONG
from tests.worker_nest import worker_process
from workbench import Workbench
from workbench.jobs.sharing import Assignment, Outcome, make_progress_reporter
from workbench.jobs.worker import start_worker
from workbench.services.indexes import report_graph_progress
from workbench.storage.jobs import MAX_ATTEMPTS, EmbeddingLease, PartLost, PartsLease
from workbench.types import Progress


def test_two_workers_build_an_index_and_a_killed_one_costs_the_parts_it_had_in_hand(
    wb: Workbench, database_url: str, test_home: Path, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder(MANY), source="Many")
    for name in ("alone", "shared"):
        wb.indexes.create(name, chunker="token", options={"size": 100})
    wb.indexes.build("alone")
    with no_writing(database_url, "shared"):
        job = wb.jobs.enqueue_index_build("shared")
        processes = [worker_process(database_url, test_home) for _ in range(2)]
        while wb.jobs.table.parts.tally(job.id).holders < 2:
            assert all(process.poll() is None for process in processes)
            time.sleep(0.05)
        while not (leader := wb.jobs.get(job.id).worker):
            time.sleep(0.05)
        processes.sort(key=lambda process: not leader.endswith(f"/{process.pid}"))
        survivor = one_killed("helper", *processes)
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    survivor.terminate()
    survivor.wait()
    assert (done.status, done.done, done.total, done.result["documents"]) == ("completed", 80, 80, 80)
    assert passages(database_url, "shared") == passages(database_url, "alone")
    assert 1 <= taken_again(database_url, job.id) <= 2  # one that was embedded, one that was to be written


def test_helpers_continue_while_the_worker_that_ran_the_job_is_dead(
    wb: Workbench, database_url: str, test_home: Path, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder(MANY), source="Many")
    wb.indexes.create("shared", chunker="token", options={"size": 100})
    with no_writing(database_url, "shared"):
        job = wb.jobs.enqueue_index_build("shared")
        leader = worker_process(database_url, test_home)
        while wb.jobs.table.parts.tally(job.id).holders < 1:
            assert leader.poll() is None
            time.sleep(0.05)
        helper = wb.start_worker(heartbeat=0.2, stalled=1.0)
        while wb.jobs.table.parts.tally(job.id).holders < 2:
            assert leader.poll() is None
            time.sleep(0.05)
        leader.kill()
        leader.wait()
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    helper.stop()
    assert (done.status, done.total, done.result["documents"]) == ("completed", 80, 80)
    assert 1 <= taken_again(database_url, job.id) <= 2
    assert wb.indexes.get("shared").status == "ready"


def test_all_workers_stop_when_a_shared_job_is_cancelled_and_it_continues_later(
    wb: Workbench, database_url: str, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder(MANY), source="Many")
    wb.indexes.create("shared", chunker="token", options={"size": 100})
    workers = [wb.start_worker(), wb.start_worker()]
    with no_writing(database_url, "shared"):
        job = wb.jobs.enqueue_index_build("shared")
        while wb.jobs.table.parts.tally(job.id).holders < 2:
            assert all(worker.is_alive for worker in workers)
            time.sleep(0.05)
        wb.jobs.cancel(job.id)
        assert wb.jobs.wait(job.id, timeout=LONG).status == "cancelled"
        while wb.jobs.table.parts.tally(job.id).holders:
            assert all(worker.is_alive for worker in workers)
            time.sleep(0.05)
    wb.jobs.resume(job.id)
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    assert (done.status, done.result["documents"], wb.indexes.count_missing("shared")) == ("completed", 80, 0)
    for worker in workers:
        worker.stop()


@pytest.fixture
def job_id(wb: Workbench) -> str:
    """A job with three parts that no worker knows."""
    job = wb.jobs.enqueue("experiment", "In parts", {})
    wb.jobs.table.parts.plan(job.id, [(["a"], 1), (["b", "c"], 2), (["d"], 1)])
    return job.id


def hands(wb: Workbench, job_id: str, name: str, *, leads: bool = False) -> PartsLease:
    """A lease on the parts of a job."""
    return held(wb, job_id, name, lambda: False, leads=leads)


def held(
    wb: Workbench, job_id: str, name: str, is_wanted_elsewhere: Callable[[], bool], *, leads: bool = False
) -> PartsLease:
    """A lease whose worker may be wanted elsewhere."""
    jobs, wanted = wb.jobs.table, is_wanted_elsewhere
    embedding = EmbeddingLease(jobs.embedding, job_id, name, invite=lambda: None, is_wanted_elsewhere=wanted)
    return PartsLease(jobs.parts, leads, embedding)


def test_a_part_is_taken_by_one_and_by_another_only_once_the_first_is_gone(wb: Workbench, job_id: str) -> None:
    ada, ben = hands(wb, job_id, "ada"), hands(wb, job_id, "ben")
    with wb.jobs.table.hold("ben"):
        with wb.jobs.table.hold("ada"):
            assert [part.content for part in (ada.take(), ben.take()) if part] == [["a"], ["b", "c"]]
        while (again := ben.take()) is None or again.content != ["a"]:
            ben.give_back()  # until the server has detected that its connection, and so its lock, is gone
        with pytest.raises(PartLost), wb.jobs.table.transaction() as connection:
            ada.done(connection, again)
        with wb.jobs.table.transaction() as connection:
            ben.done(connection, again, {"passages": 3})
    assert [(part.content, result) for part, result in ben.results()] == [(["a"], {"passages": 3})]
    assert (ben.tally().items_done, ben.tally().items) == (1, 4)


def test_a_part_that_kills_its_workers_is_abandoned(wb: Workbench, job_id: str) -> None:
    for number in range(MAX_ATTEMPTS * 3):
        assert hands(wb, job_id, f"dead {number}").take() is not None
    lead = hands(wb, job_id, "lead", leads=True)
    with pytest.raises(Exception, match=f"Workers died {MAX_ATTEMPTS} times on a part"):
        list(lead.all_taken())


def test_a_part_that_is_given_back_counts_as_not_taken(wb: Workbench, job_id: str) -> None:
    stopped = hands(wb, job_id, "stopped")
    for _ in range(MAX_ATTEMPTS * 2):
        assert stopped.take() is not None
        stopped.give_back()
    assert stopped.tally().given_up == 0


def test_a_helper_leaves_when_another_job_waits(wb: Workbench, job_id: str) -> None:
    helper = held(wb, job_id, "helper", lambda: wb.jobs.table.any_queued(["ingest"]))
    short = wb.jobs.enqueue("ingest", "Short", {})
    assert helper.take() is None
    worker = start_worker(wb.jobs.table, wb.jobs.queue, {"ingest": lambda assignment: Outcome({}, "Done.")})
    assert wb.jobs.wait(short.id, timeout=LONG).status == "completed"
    worker.stop()
    assert helper.take() is not None


def test_a_step_after_the_last_part_is_reported_in_its_own_words(wb: Workbench, job_id: str) -> None:
    other = hands(wb, job_id, "other")
    with wb.jobs.table.hold("other"):
        for part in other.all_taken():
            assert part is not None
            with wb.jobs.table.transaction() as connection:
                other.done(connection, part)
    assignment = Assignment(wb.jobs.get(job_id), wb.jobs.table, threading.Event())
    tell = make_progress_reporter(assignment, hands(wb, job_id, "leader", leads=True), "documents")
    assert tell is not None
    tell(Progress(3, 4, "3 of 4 documents"))
    say = report_graph_progress(tell, 4)
    assert say is not None
    say("building the graph: 40%")
    job = wb.jobs.get(job_id)
    assert (job.message, job.done, job.total) == ("building the graph: 40%", 4, 4)
    assert (job.share, job.seconds_left) == (0.99, None)  # not over, and its pace is not that of the documents
