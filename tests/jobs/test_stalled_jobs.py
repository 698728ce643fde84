"""A job whose numbers have not changed for a minute is called stalled, with a remedy; a slow step is not."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg
import pytest

from mcp_app.server import create_server
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.app.shell.work import JobView, tray_title
from workbench.errors import Conflict
from workbench.jobs import sharing as assignments
from workbench.jobs.sharing import Assignment, Outcome
from workbench.jobs.worker import start_worker
from workbench.storage.graph import SERVING_PARAMETERS
from workbench.storage.jobs import FileTally, Job
from workbench.types import Countdown, Progress, mark_slow_step

LONG = 30  # seconds: an upper bound that only failures reach


def grow_old(database_url: str, seconds: int) -> None:
    """Pretend that this much time has passed since the numbers of every job changed."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE jobs SET moved_at = moved_at - make_interval(secs => %s)", (seconds,))


@contextmanager
def running(wb: Workbench, run: Callable[[Assignment, threading.Event], None]) -> Generator[Job]:
    """Run a job that calls ``run`` with an event that is set at the end; yields the job once it has started."""
    began, end = threading.Event(), threading.Event()

    def runner(assignment: Assignment) -> Outcome:
        assignment.progress(Progress(808, 989, "808 of 989 passages", seconds_left=2.0))
        began.set()
        run(assignment, end)
        return Outcome({}, "Done.")

    job = wb.jobs.enqueue("experiment", "Slow", {})
    worker = start_worker(wb.jobs.table, wb.jobs.queue, {"experiment": runner})
    try:
        assert began.wait(LONG)
        yield job
    finally:
        end.set()
        wb.jobs.wait(job.id, timeout=LONG)
        worker.stop()


def wait_saying_the_same(assignment: Assignment, end: threading.Event) -> None:
    """Record the same numbers again and again, as a worker does that waits for others."""
    while not end.wait(0.3):
        assignment.progress(Progress(808, 989, "808 of 989 passages", seconds_left=2.0))


def wait_saying_the_same_for_long(assignment: Assignment, end: threading.Event) -> None:
    """Record the same numbers with an estimate that has not passed."""
    while not end.wait(0.3):
        assignment.progress(Progress(819, 1000, "819 of 1,000 passages", seconds_left=600.0))


def test_a_job_that_repeats_its_numbers_for_a_minute_is_stalled_on_every_face(wb: Workbench, database_url: str) -> None:
    with running(wb, wait_saying_the_same_for_long) as job:
        assert wb.jobs.get(job.id).stalled is None
        while wb.jobs.get(job.id).done != 819:
            time.sleep(0.1)
        assert all(check.ok for check in wb.health.doctor() if check.name == "jobs")
        grow_old(database_url, 75)
        time.sleep(1)  # it continues to note the same
        stalled = wb.jobs.get(job.id)
        assert (stalled.status, stalled.state, stalled.seconds_left) == ("running", "stalled", None)
        assert stalled.worker and f"Worker {stalled.worker} holds it; restart that worker" in (stalled.stalled or "")
        assert re.match(r"Stalled: nothing has changed for 7\d s\.", stalled.stalled or "")
        assert [listed.stalled is not None for listed in wb.jobs.list()] == [True]
        work = wb.health.work()
        assert (len(work.stalled), "Jobs: 0 queued, 1 running, 1 of them stalled; workers: 1." in work.sentence) == (
            1,
            True,
        )
        assert tray_title([JobView(stalled, FileTally(), datetime.now(UTC))]) == "1 stalled"
        assert "holds it" in json.dumps(wb.health.status()["work"])
        check = next(check for check in wb.health.doctor() if check.name == "jobs")
        assert (check.ok, job.id in check.detail, "holds it" in check.detail) == (False, True, True)
        agent = Agent(create_server(wb))
        shown = agent("get_job", job_id=job.id)["job"]
        assert "holds it" in shown["stalled"] and shown["percent"] == 81
        assert "holds it" in agent("manage_crawl_job", action="get", job_id=job.id)["message"]


def test_a_slow_step_has_a_heartbeat(wb: Workbench, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignments, "HEARTBEAT_INTERVAL_S", 0.2)
    entered = threading.Event()

    def think(_: Assignment, end: threading.Event) -> None:
        with mark_slow_step():
            entered.set()
            end.wait(LONG)

    with running(wb, think) as job:
        assert entered.wait(LONG)
        grow_old(database_url, 300)
        time.sleep(1)
        assert wb.jobs.get(job.id).stalled is None


def test_a_slow_graph_has_a_heartbeat(wb: Workbench, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignments, "HEARTBEAT_INTERVAL_S", 0.2)
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", 0)
    wb.documents.create(text="Herons nest in the reeds by the old mill.", title="Herons")
    wb.indexes.create("other", chunker="token")
    with psycopg.connect(database_url) as writer:
        writer.execute("LOCK TABLE data_other IN ROW EXCLUSIVE MODE")  # a graph is built when it ends
        job = wb.jobs.enqueue_index_build("other")
        worker = wb.start_worker()
        while not wb.jobs.get(job.id).message.startswith("building the graph of 1 passages"):
            assert not wb.jobs.get(job.id).is_finished
            time.sleep(0.01)
        grow_old(database_url, 300)
        time.sleep(1)
        assert wb.jobs.get(job.id).stalled is None
    assert wb.jobs.wait(job.id, timeout=LONG).status == "completed"
    worker.stop()


def test_a_job_that_no_worker_takes_reports_it(wb: Workbench, database_url: str) -> None:
    job = wb.jobs.enqueue("experiment", "Alone", {})
    assert wb.jobs.get(job.id).stalled is None
    grow_old(database_url, 75)
    waiting = r"It has been waiting for (\d\d s|\d min) and no worker is running; start one with 'workbench worker'\."
    assert re.fullmatch(waiting, wb.jobs.get(job.id).stalled or "")
    assert next(check for check in wb.health.doctor() if check.name == "jobs").ok is False
    with pytest.raises(Conflict, match=r"no worker is running; .* In Python, Workbench.work\(\) starts one"):
        wb.jobs.wait(job.id)
    worker = start_worker(wb.jobs.table, wb.jobs.queue, {"crawl": lambda _: Outcome({}, "")})
    while "no worker is running" in (wb.jobs.get(job.id).stalled or ""):  # it has not reported to the queue yet
        assert worker.is_alive
        time.sleep(0.05)
    assert "no running worker takes it" in (wb.jobs.get(job.id).stalled or "")
    worker.stop()


def test_a_job_that_waits_for_busy_workers_is_not_stalled(wb: Workbench, database_url: str) -> None:
    with running(wb, wait_saying_the_same):
        second = wb.jobs.enqueue("ingest", "Second", {})
        grow_old(database_url, 75)
        assert wb.jobs.get(second.id).stalled is None


def test_a_job_whose_worker_is_gone_with_no_other_asks_for_one(wb: Workbench, database_url: str) -> None:
    job = wb.jobs.enqueue("experiment", "Left", {})
    assert wb.jobs.table.begin(job.id, "attic/7") is not None
    grow_old(database_url, 75)
    assert wb.jobs.get(job.id).stalled == (
        "Stalled: its worker attic/7 has sent no heartbeat for 75 s, and no other is running; start one with "
        "'workbench worker' to resume it."
    )


def test_a_stopped_worker_that_still_holds_its_job_is_to_be_ended(wb: Workbench, database_url: str) -> None:
    """A worker that replaces another one would wait for as long as the other's process has the lock."""
    job = wb.jobs.enqueue("experiment", "Held", {})
    assert wb.jobs.table.begin(job.id, "attic/7") is not None
    with wb.jobs.table.hold(job.id) as ours:
        assert ours
        grow_old(database_url, 75)
        assert wb.jobs.get(job.id).stalled == (
            "Stalled: nothing has changed for 75 s, and its worker attic/7 does not answer; end that process, so that "
            "another worker resumes it, which you start with 'workbench worker'."
        )


def test_an_estimate_that_has_passed_is_not_shown(wb: Workbench, database_url: str) -> None:
    with running(wb, wait_saying_the_same) as job:
        left = wb.jobs.get(job.id).seconds_left
        assert left is not None and 0 < left <= 2
        grow_old(database_url, 3)
        time.sleep(0.7)
        assert wb.jobs.get(job.id).seconds_left is None
        assert wb.health.work().jobs[0].seconds_left is None


def test_a_countdown_ends_with_its_estimate_unless_the_numbers_change() -> None:
    countdown = Countdown()
    assert (countdown.take(Progress(1, 2, seconds_left=0.1)) or 0) > 0
    time.sleep(0.15)
    assert countdown.take(Progress(1, 2, seconds_left=0.1)) is None
    assert (countdown.take(Progress(2, 2, seconds_left=0.1)) or 0) > 0
