"""Files ingested by several workers: each part is done once, and again only if its worker died."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.jobs.shared_work import MANY, no_writing, one_killed, passages, taken_again, waiting_for_their_turn
from tests.jobs.test_jobs import LONG
from tests.worker_nest import worker_process
from workbench import Workbench
from workbench.errors import NotFound
from workbench.ingestion.incoming import text_item
from workbench.ingestion.pipeline import PART_BYTES, divide_items


def hold_parts(wb: Workbench, job_id: str, workers: int) -> bool:
    """Return whether the given number of workers hold parts of a job."""
    return wb.jobs.table.parts.tally(job_id).holders == workers


@pytest.mark.parametrize("dies", ["helper", "leader"])
def test_a_worker_that_is_killed_costs_its_parts_again_and_nothing_else(
    dies: str, wb: Workbench, database_url: str, test_home: Path, folder: Callable[..., Path]
) -> None:
    root = folder(MANY)
    wb.indexes.get()
    with no_writing(database_url, "main"):
        job = wb.jobs.enqueue_ingest([root], source="Many")
        first = worker_process(database_url, test_home)
        while not hold_parts(wb, job.id, 1):
            assert first.poll() is None
            time.sleep(0.05)
        second = worker_process(database_url, test_home)
        while not hold_parts(wb, job.id, 2):
            assert first.poll() is None and second.poll() is None
            time.sleep(0.05)
        survivor = one_killed(dies, first, second)
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    survivor.terminate()
    survivor.wait()
    assert (done.status, done.done, done.total) == ("completed", 80, 80)
    assert done.result["documents"] == {"added": 80, "updated": 0, "unchanged": 0, "failed": 0}
    assert wb.jobs.tally(job.id).files == {"added": 80}
    assert 1 <= taken_again(database_url, job.id) <= 3  # one to be written, one at the model, one read ahead
    wb.ingest(root, source="Undisturbed")
    assert passages(database_url, "main", "Many") == passages(database_url, "main", "Undisturbed")


def test_the_report_of_a_shared_ingest_is_that_of_all_parts(
    wb: Workbench, database_url: str, folder: Callable[..., Path]
) -> None:
    changed = {"000.md": "# Page 0\n\nIt was shorter once.", "001.md": MANY["001.md"]}
    wb.ingest(folder(changed, "docs"), source="Many")
    root = folder(MANY | {"bad.pdf": b"%PDF-1.7 broken", "letter.xyz": "Dear Ada"}, "docs")
    workers = [wb.start_worker(), wb.start_worker()]
    with no_writing(database_url, "main"):
        job = wb.jobs.enqueue_ingest([root, root / "nowhere.md"], source="Many")
        while not hold_parts(wb, job.id, 2):
            assert all(worker.is_alive for worker in workers)
            time.sleep(0.05)
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    for worker in workers:
        worker.stop()
    assert done.status == "completed_with_errors"
    assert done.result["documents"] == {"added": 78, "updated": 1, "unchanged": 1, "failed": 2}
    assert [Path(failure["path"]).name for failure in done.result["failures"]] == ["nowhere.md", "bad.pdf"]
    assert done.result["left_out"] == {".xyz": 1}
    stored = passages(database_url, "main")
    assert done.result["passages"] == sum(key != "001.md" for key, *_ in stored)
    assert taken_again(database_url, job.id) == 0


def test_a_helper_that_does_not_see_the_files_leaves_them_to_others(wb: Workbench, folder: Callable[..., Path]) -> None:
    jobs, source = wb.jobs.table, wb.sources.create("Elsewhere")
    job = wb.jobs.enqueue_ingest([folder({"here.md": "# Here"})], source=source.id)
    with jobs.hold(job.id):  # by a worker on another machine
        assert jobs.begin(job.id, "elsewhere") is not None
        jobs.files.add_found(job.id, [("there.md", 100)])
        jobs.parts.plan(job.id, [([0], 1)])
        jobs.invite(job.id, "ingest")
        helper = wb.start_worker()
        while not any("cannot access all of the files" in line.message for line in wb.jobs.log(job.id)):
            assert helper.is_alive
            time.sleep(0.05)
        helper.stop()
        tally = jobs.parts.tally(job.id)
    assert (tally.waiting, tally.done, tally.given_up) == (1, 0, 0)


def test_a_job_that_is_stopped_in_the_middle_continues_with_what_is_left(
    wb: Workbench, database_url: str, folder: Callable[..., Path]
) -> None:
    workers = [wb.start_worker(), wb.start_worker()]
    with no_writing(database_url, "main"):
        job = wb.jobs.enqueue_ingest([folder(MANY)], source="Many")
        while not hold_parts(wb, job.id, 2):
            assert all(worker.is_alive for worker in workers)
            time.sleep(0.05)
        wb.jobs.cancel(job.id)
        assert wb.jobs.wait(job.id, timeout=LONG).status == "cancelled"
    wb.jobs.resume(job.id)
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    for worker in workers:
        worker.stop()
    assert (done.status, done.result["documents"]["added"], wb.documents.count()) == ("completed", 80, 80)


def test_small_items_are_put_together_and_a_large_one_comes_last_and_alone() -> None:
    half = "x" * (PART_BYTES // 2)
    texts = ["x" * 400_000, *[half] * 5]
    items = [text_item(f"{number}.md", text, title="") for number, text in enumerate(texts)]
    assert divide_items(items) == [[1, 2], [3, 4], [5], [0]]


def test_items_of_one_key_are_not_divided_among_workers() -> None:
    items = [text_item(f"key {number % 50}", "x" * 40_000, title="Same") for number in range(100)]
    assert len(divide_items(items)) == 1


def test_a_source_can_be_deleted_while_workers_fill_it(
    wb: Workbench, database_url: str, folder: Callable[..., Path]
) -> None:
    source = wb.sources.create("Many")
    with ThreadPoolExecutor(1) as pool:
        with no_writing(database_url, wb.indexes.get().name):
            deleting = pool.submit(wb.sources.delete, source.id)
            while waiting_for_their_turn(database_url) < 1:
                assert not deleting.done()
                time.sleep(0.05)
            job = wb.jobs.enqueue_ingest([folder(MANY)], source=source.id)
            workers = [wb.start_worker(), wb.start_worker()]
            while waiting_for_their_turn(database_url) < 3:  # the deletion is before both writers
                assert all(worker.is_alive for worker in workers)
                time.sleep(0.05)
        assert deleting.result(LONG).title == "Many"
    with pytest.raises(NotFound):
        wb.jobs.get(job.id)
    for worker in workers:
        worker.stop()
    assert wb.documents.count() == 0
