"""Indexes built by workers: one build each, resumed if a worker dies, never embedding twice."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.jobs.shared_work import one_part_written, waiting_for_their_turn
from tests.jobs.test_jobs import LONG, worker_process
from workbench import Workbench
from workbench.errors import Conflict

MANY = {f"{number:03}.md": f"# Page {number}\n\n" + f"word{number} " * 1500 for number in range(80)}


def stored(database_url: str, index: str) -> dict[str, set[tuple[str, str]]]:
    """Return every passage of an index with the transaction that wrote it, by its document."""
    spans: dict[str, set[tuple[str, str]]] = {}
    with psycopg.connect(database_url) as connection:
        written = sql.SQL("SELECT document_id, node_id, xmin::text FROM {}").format(sql.Identifier(f"data_{index}"))
        rows = connection.execute(written).fetchall()
    for document_id, passage, written_by in rows:
        spans.setdefault(document_id, set()).add((passage, written_by))
    return spans


def test_a_build_whose_worker_was_killed_continues_without_embedding_again(
    wb: Workbench, database_url: str, test_home: Path, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder(MANY), source="Many")
    wb.indexes.create("small", chunker="token", options={"size": 100})
    with one_part_written(database_url, "small"):
        job = wb.jobs.enqueue_index_build("small")
        process = worker_process(database_url, test_home)
        while waiting_for_their_turn(database_url) == 0:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
    held = stored(database_url, "small")
    assert 0 < len(held) < 80
    assert (wb.jobs.get(job.id).status, wb.indexes.get("small").status) == ("running", "building")

    survivor = wb.start_worker(heartbeat=0.2, stalled=1.0)
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    survivor.stop()
    assert (done.status, done.total, done.result["documents"]) == ("completed", 80, 80)  # the killed worker's count too
    now = stored(database_url, "small")
    assert {document: now[document] for document in held} == held  # the very rows of the killed worker
    assert (wb.indexes.get("small").status, wb.indexes.count_missing("small")) == ("ready", 0)


def test_an_index_is_built_by_one_job_at_a_time_and_not_dropped_in_the_meantime(wb: Workbench) -> None:
    wb.indexes.create("small", chunker="token")
    job = wb.jobs.enqueue_index_build("small")
    assert {name: builder.id for name, builder in wb.jobs.list_builds().items()} == {"small": job.id}
    with pytest.raises(Conflict, match=f"already being built by job {job.id}"):
        wb.jobs.enqueue_index_build("small")
    with pytest.raises(Conflict, match=f"built by job {job.id}; cancel the job first"):
        wb.indexes.delete("small")
    wb.jobs.cancel(job.id)
    assert wb.indexes.delete("small").name == "small"


def test_a_stopped_build_keeps_what_it_has_and_can_be_continued(
    wb: Workbench, database_url: str, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder(MANY), source="Many")
    wb.indexes.create("small", chunker="token", options={"size": 100})
    worker = wb.start_worker()
    with one_part_written(database_url, "small"):
        job = wb.jobs.enqueue_index_build("small")
        while waiting_for_their_turn(database_url) == 0:
            assert worker.is_alive
            time.sleep(0.05)
        wb.jobs.cancel(job.id)
        assert wb.jobs.wait(job.id, timeout=LONG).status == "cancelled"
    missing = wb.indexes.count_missing("small")
    assert 0 < missing < 80
    wb.jobs.resume(job.id)
    assert wb.jobs.wait(job.id, timeout=LONG * 3).total == missing
    worker.stop()
    assert wb.indexes.count_missing("small") == 0
