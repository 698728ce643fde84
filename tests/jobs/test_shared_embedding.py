"""A large document embedded by several workers is stored whole, and a dead worker costs at most one part."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psycopg
import pytest

from tests.jobs.shared_work import embedded_log, embedding_held, embedding_parts, no_writing, one_killed, passages
from tests.jobs.test_jobs import LONG
from tests.worker_nest import worker_process
from workbench import Workbench
from workbench.ingestion.embedding import PART_PASSAGES
from workbench.jobs.sharing import PROGRESS_INTERVAL_S, Assignment, make_embedding_reporter, share_embedding
from workbench.types import Progress

SECTIONS = [f"## Part {number}\n\n" + f"word{number} and {number * 7} " * 45 for number in range(1_000)]
LARGE = {"large.md": "# Large\n\n" + "\n\n".join(SECTIONS)}  # a thousand passages in eight parts
PARTS = 8


def hands(wb: Workbench, job_id: str) -> int:
    """Return how many workers hold texts of a job."""
    return wb.jobs.table.embedding.tally(job_id).holders


@pytest.mark.parametrize("dies", ["helper", "leader"])
def test_a_worker_that_is_killed_costs_the_part_in_its_hands_and_the_document_comes_in_whole(
    dies: str, wb: Workbench, database_url: str, test_home: Path, folder: Callable[..., Path]
) -> None:
    root = folder(LARGE)
    wb.indexes.get()
    with embedding_held(database_url, 2):
        job = wb.jobs.enqueue_ingest([root], source="Many")
        first = worker_process(database_url, test_home)
        while hands(wb, job.id) < 1 or len(embedded_log(database_url)) < 2:
            assert first.poll() is None
            time.sleep(0.05)
        second = worker_process(database_url, test_home)
        while hands(wb, job.id) < 2:
            assert first.poll() is None and second.poll() is None
            time.sleep(0.05)
        assert embedding_parts(database_url) == PARTS
        assert (wb.documents.count(), passages(database_url, "main")) == (0, set())
        survivor = one_killed(dies, first, second)
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    survivor.terminate()
    survivor.wait()
    assert (done.status, done.result["documents"]["added"]) == ("completed", 1)
    log = embedded_log(database_url)
    assert len({part for part, _, _ in log}) == len(log) == PARTS  # none was embedded twice to its end
    assert sum(times - 1 for _, _, times in log) <= 1  # the one that the dead worker held
    assert embedding_parts(database_url) == 0
    wb.ingest(root, source="Undisturbed")
    assert passages(database_url, "main", "Many") == passages(database_url, "main", "Undisturbed")
    assert len(passages(database_url, "main", "Many")) > (PARTS - 1) * PART_PASSAGES


def test_a_document_that_is_stopped_while_another_embeds_for_it_continues_with_what_is_left(
    wb: Workbench, database_url: str, folder: Callable[..., Path]
) -> None:
    wb.indexes.get()
    jobs, worker = wb.jobs.table, wb.start_worker()
    with jobs.hold("slow"):
        with embedding_held(database_url, 0):
            job = wb.jobs.enqueue_ingest([folder(LARGE)], source="Many")
            while hands(wb, job.id) < 1:
                assert worker.is_alive
                time.sleep(0.05)
            assert jobs.embedding.take(job.id, "slow", None) is not None  # and makes no progress
        while not (message := wb.jobs.get(job.id).message).startswith(f"{passages_of_others(wb, job.id):,} of "):
            assert worker.is_alive
            time.sleep(0.05)
        assert message.endswith(f" of {jobs.embedding.tally(job.id).passages:,} passages embedded")
        assert 0 < wb.jobs.get(job.id).part < 1
        wb.jobs.cancel(job.id)
        assert wb.jobs.wait(job.id, timeout=LONG).status == "cancelled"
    assert (wb.documents.count(), len(embedded_log(database_url))) == (0, PARTS - 1)
    wb.jobs.resume(job.id)
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    worker.stop()
    assert (done.status, done.result["documents"]["added"], done.result["embedded"]) == ("completed", 1, PART_PASSAGES)
    assert len(embedded_log(database_url)) == PARTS


def passages_of_others(wb: Workbench, job_id: str) -> int:
    """Return the number of passages in all parts but one."""
    return wb.jobs.table.embedding.tally(job_id).passages - PART_PASSAGES


def test_a_document_that_is_stopped_while_it_is_written_is_not_embedded_again(
    wb: Workbench, database_url: str, folder: Callable[..., Path]
) -> None:
    wb.indexes.get()
    worker = wb.start_worker()
    with no_writing(database_url, "main"):
        job = wb.jobs.enqueue_ingest([folder(LARGE)], source="Many")
        tally = wb.jobs.table.embedding.tally
        while not (now := tally(job.id)).passages or now.passages_done < now.passages or now.holders:
            assert worker.is_alive
            time.sleep(0.05)
        wb.jobs.cancel(job.id)
        assert wb.jobs.wait(job.id, timeout=LONG).status == "cancelled"
    assert (wb.documents.count(), embedding_parts(database_url)) == (0, PARTS)
    wb.jobs.resume(job.id)
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    worker.stop()
    assert (done.status, done.result["documents"]["added"], done.result["embedded"]) == ("completed", 1, 0)
    assert embedding_parts(database_url) == 0


def test_helpers_embed_a_large_document_of_a_folder_and_of_an_index_build(
    wb: Workbench, database_url: str, folder: Callable[..., Path]
) -> None:
    wb.indexes.get()
    small = {f"{number}.md": f"# Page {number}\n\nA short one." for number in range(3)}
    with embedding_held(database_url, 0):
        job = wb.jobs.enqueue_ingest([folder(LARGE | small)], source="Many")
        workers = [wb.start_worker(), wb.start_worker()]
        while hands(wb, job.id) < 2:
            assert all(worker.is_alive for worker in workers)
            time.sleep(0.05)
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    assert (done.status, done.done, done.total) == ("completed", 4, 4)
    assert len({holder for _, holder, _ in embedded_log(database_url)}) == 2
    assert len(embedded_log(database_url)) == PARTS
    wb.indexes.create("smaller", chunker="token", options={"size": 90})
    build = wb.jobs.wait(wb.jobs.enqueue_index_build("smaller").id, timeout=LONG * 3)
    for worker in workers:
        worker.stop()
    assert (build.status, wb.indexes.count_missing("smaller"), embedding_parts(database_url)) == ("completed", 0, 0)
    assert len(embedded_log(database_url)) > PARTS * 2


def test_a_part_that_kills_its_workers_is_given_up_until_the_job_is_resumed(
    wb: Workbench, database_url: str, folder: Callable[..., Path]
) -> None:
    with no_writing(database_url, wb.indexes.get().name):
        job = wb.jobs.enqueue_ingest([folder(LARGE)], source="Many")
        worker = wb.start_worker()
        while embedding_parts(database_url) < PARTS:
            assert worker.is_alive
            time.sleep(0.05)
        worker.stop()
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE embedding_parts SET state = 'waiting', vectors = NULL, texts = '[]', times = 10")
    worker = wb.start_worker()
    ended = wb.jobs.wait(job.id, timeout=LONG)
    assert ended.status == "failed" and "Workers died 10 times on a part" in (ended.error or "")
    assert wb.documents.count() == 0
    wb.jobs.resume(job.id)  # such as on a machine with more memory
    resumed = wb.jobs.wait(job.id, timeout=LONG * 3)
    worker.stop()
    assert (resumed.status, wb.documents.count(), embedding_parts(database_url)) == ("completed", 1, 0)


def test_a_resumed_job_keeps_its_share_until_it_has_found_what_was_embedded_before(wb: Workbench) -> None:
    jobs, job = wb.jobs.table, wb.jobs.enqueue("experiment", "Large", {})
    jobs.progress(job.id, Progress(0, 1, "2 of 4 passages embedded", share=0.5))
    with jobs.hold("dead"):
        jobs.embedding.publish(job.id, "dead", "hash", [b"a", b"b"], ["a text", "another"])
        part = jobs.embedding.take(job.id, "dead", "hash")
        assert part is not None
        jobs.embedding.done(part.id, "dead", np.ones((2, 4), np.float32), None)
    assignment = Assignment(wb.jobs.get(job.id), jobs, threading.Event())
    with share_embedding(jobs, assignment) as lease:
        tell = make_embedding_reporter(assignment, lease)
        tell(Progress(0, 1, "reading large.txt, 0 of about 4 passages embedded", share=0.0))
        assert (wb.jobs.get(job.id).share, wb.jobs.get(job.id).message) == (
            0.5,
            "continuing; 2 passages embedded before",
        )
        time.sleep(PROGRESS_INTERVAL_S)
        tell(Progress(0, 1, "3 of 4 passages embedded", share=0.75))
        assert (wb.jobs.get(job.id).share, wb.jobs.get(job.id).message) == (0.75, "3 of 4 passages embedded")


def test_the_last_of_frequent_updates_is_recorded_although_a_long_step_follows(wb: Workbench) -> None:
    job = wb.jobs.enqueue("experiment", "Large", {})
    assignment = Assignment(wb.jobs.get(job.id), wb.jobs.table, threading.Event())
    assignment.progress(Progress(0, 1, "reading large.txt"))
    assignment.progress(Progress(0, 1, "loading the model"))
    assert wb.jobs.get(job.id).message == "reading large.txt"
    with assignment.send_heartbeats():
        deadline = time.monotonic() + LONG
        while wb.jobs.get(job.id).message != "loading the model":
            assert time.monotonic() < deadline
            time.sleep(0.05)
