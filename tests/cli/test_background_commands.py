"""``--background`` of indexes and ingest: a worker does the work, and the command prints the job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from commands import Ran

from workbench import Workbench
from workbench.storage.jobs import JobParts
from workbench.types import STILL_READING, Progress


def test_a_new_index_is_handed_to_a_worker(workbench: Callable[..., Ran], animals: Path, wb: Workbench) -> None:
    workbench("ingest", str(animals))
    ran = workbench("indexes", "create", "small", "--chunker", "sentence", "--background", "--json")
    assert (ran.code, ran.json["status"], ran.json["index"]) == (0, "queued", "small")
    assert ran.json["missing_documents"] == wb.documents.count() > 0
    assert f"workbench jobs show {ran.json['job']}" in ran.err
    worker = wb.start_worker()
    assert wb.jobs.wait(ran.json["job"], timeout=30).status == "completed"
    worker.stop()
    assert workbench("indexes", "show", "small", "--json").json["missing_documents"] == 0


def test_a_build_in_the_background_is_asked_for_once(workbench: Callable[..., Ran], wb: Workbench) -> None:
    workbench("indexes", "create", "small")
    job = workbench("indexes", "build", "small", "--background", "--json").json["job"]
    again = workbench("indexes", "update", "small", "--background")
    assert (again.code, f"already being built by job {job}" in again.err) == (1, True)
    assert workbench("indexes", "update", "small", "--background", "--default").code == 2


def test_an_ingest_is_handed_to_a_worker(workbench: Callable[..., Ran], animals: Path, wb: Workbench) -> None:
    ran = workbench("ingest", str(animals), "--source", "Animals", "--tag", "pets", "--background", "--json")
    assert (ran.code, ran.json["status"]) == (0, "queued") and wb.documents.count() == 0
    assert f"workbench jobs show {ran.json['job']}" in ran.err
    worker = wb.start_worker()
    assert wb.jobs.wait(ran.json["job"], timeout=30).status == "completed"
    worker.stop()
    source = wb.sources.get("Animals")
    assert (source.documents_count, source.tags) == (3, ("pets",))


def test_a_search_without_results_reports_that_documents_are_still_being_read(
    workbench: Callable[..., Ran], animals: Path, wb: Workbench
) -> None:
    reading = "Documents are still being read; search again when that has finished."
    workbench("ingest", str(animals), "--source", "Animals", "--background")
    ran = workbench("search", "cats")
    assert ran.out == "No results yet.\n" and reading in ran.err
    assert all(reading in workbench(name, "cats").err for name in ("ask", "compare"))
    assert reading in wb.search("cats").notes
    worker = wb.start_worker()
    wb.jobs.wait(wb.jobs.list(kind="ingest")[0].id, timeout=30)
    worker.stop()
    found = workbench("search", "gearbox", "--strategy", "keyword")
    assert "No results. Widen the scope" in found.out and reading not in found.err


def test_a_search_reports_what_a_command_reads_in_its_scope_until_it_ends(
    workbench: Callable[..., Ran], animals: Path, wb: Workbench
) -> None:
    reading = "Documents are still being read; search again when that has finished."
    for name in ("Empty", "Queued"):
        wb.sources.create(name)
    looks: list[tuple[Ran, Ran]] = []

    def look(progress: Progress) -> None:
        if not looks:  # nothing is stored yet
            looks.append((workbench("search", "cats"), workbench("search", "cats", "--source", "Empty")))

    wb.ingest(animals, source="Animals", on_progress=look)
    ((everywhere, elsewhere),) = looks
    assert everywhere.out == "No results yet.\n" and reading in everywhere.err
    assert "No results. Widen the scope" in elsewhere.out and reading not in elsewhere.err
    assert reading not in workbench("search", "gearbox", "--strategy", "keyword").err
    wb.jobs.enqueue_ingest([animals], source="Queued")
    assert reading in workbench("search", "cats", "--source", "Queued").err
    assert reading not in workbench("search", "cats", "--source", "Empty").err


def test_a_job_is_shown_with_its_parts_and_the_workers_that_have_one(
    workbench: Callable[..., Ran], animals: Path, wb: Workbench
) -> None:
    job = wb.jobs.enqueue_ingest([animals], source="Zoo").id
    assert "parts" not in workbench("jobs", "show", job).out
    parts = JobParts(wb.corpus.database)
    parts.plan(job, [("first", 1), ("second", 1), ("third", 1)])
    parts.take(job, "somebody")
    shown = workbench("jobs", "show", job).out
    assert "0 of 3" in shown and ["workers", "1"] in [line.split() for line in shown.splitlines()]
    told = workbench("jobs", "show", job, "--json").json
    assert (told["parts"], told["parts_done"], told["hands"]) == (3, 0, 1)


def test_an_ingest_of_nothing_or_into_an_unknown_index_is_refused_at_once(
    workbench: Callable[..., Ran], animals: Path, wb: Workbench
) -> None:
    assert "nowhere.md" in workbench("ingest", "nowhere.md", "--background").err
    assert "unheard" in workbench("ingest", str(animals), "--index", "unheard", "--background").err
    assert "nothing" in workbench("ingest", str(animals), "--project", "nothing", "--background").err
    assert (wb.jobs.count(), wb.sources.count()) == (0, 0)


def test_a_search_reports_an_ingest_that_outlasts_another_into_the_same_source(
    animals: Path, folder: Callable[..., Path], wb: Workbench
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def outlast(progress: Progress) -> None:
        begun.set()
        may_end.wait(30)

    later = folder({"ants.md": "Ants."}, "later")
    second = threading.Thread(target=wb.ingest, args=[later], kwargs={"source": "Animals", "on_progress": outlast})

    def start_second(progress: Progress) -> None:
        if not begun.is_set():
            second.start()
            begun.wait(30)

    wb.ingest(animals, source="Animals", on_progress=start_second)
    reads = [STILL_READING in wb.search("zebras", strategy="keyword").notes]
    may_end.set()
    second.join()
    assert [*reads, STILL_READING in wb.search("zebras", strategy="keyword").notes] == [True, False]
