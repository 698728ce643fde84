"""Sources created by an ingest that stored nothing are removed; all others are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.app.shell.work import start_upload
from workbench.errors import Cancelled, UnreadableDocument
from workbench.types import STILL_READING

BROKEN = {"a.pdf": b"%PDF-1.7 broken", "b.md": b""}
UPLOADS = list(BROKEN.items())
LONG = 30  # seconds: an upper bound that only failures reach


@pytest.fixture
def unreadable(folder: Callable[..., Path]) -> Path:
    return folder(BROKEN, "Broken")


@pytest.fixture
def work(wb: Workbench) -> Iterator[Callable[[str], str]]:
    """Run a job to its end and return its status."""

    def run(job_id: str) -> str:
        wb.work()
        return wb.jobs.wait(job_id, timeout=LONG).status

    yield run


def titles(wb: Workbench) -> list[str]:
    return [source.title for source in wb.sources.list()]


def test_an_ingest_in_which_nothing_can_be_read_leaves_no_source(wb: Workbench, unreadable: Path) -> None:
    report = wb.ingest(unreadable)
    assert (report.source_id, len(report.failures), titles(wb)) == ("", 2, [])


def test_a_source_that_was_there_stays_empty_as_it_was(wb: Workbench, unreadable: Path) -> None:
    made = wb.sources.create("Mine")
    assert wb.ingest(unreadable, source="Mine").source_id == made.id
    assert titles(wb) == ["Mine"]


def test_a_source_that_was_filled_once_stays_when_it_is_emptied(
    wb: Workbench, unreadable: Path, folder: Callable[..., Path]
) -> None:
    filled = wb.ingest(folder({"c.md": "Cranes."}), source="Port")
    wb.documents.delete(filled.document_ids[0])
    wb.ingest(unreadable, source="Port")
    assert titles(wb) == ["Port"]


def test_a_source_that_someone_else_means_too_stays(wb: Workbench, unreadable: Path) -> None:
    ours = wb.sources.ensure("Shared", for_ingest=True)
    wb.sources.ensure("Shared")
    with wb.sources.fill(ours.id):
        pass
    assert titles(wb) == ["Shared"]


def test_an_ingest_that_is_stopped_before_anything_is_stored_leaves_no_source(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    with pytest.raises(Cancelled):
        wb.ingest(folder({"c.md": "Cranes."}), should_stop=lambda: True)
    assert titles(wb) == []


def test_a_single_unreadable_document_leaves_no_source(wb: Workbench, unreadable: Path) -> None:
    with pytest.raises(UnreadableDocument):
        wb.documents.create(path=unreadable / "a.pdf")
    assert titles(wb) == []


def test_a_workspace_in_which_nothing_can_be_read_leaves_no_source(wb: Workbench, folder: Callable[..., Path]) -> None:
    workspace = folder({"plan/2025-11-11/001-empty.md": ""}, "talks")
    assert len(wb.workspaces.embed(workspace).failures) == 1
    with pytest.raises(UnreadableDocument):
        wb.workspaces.embed(workspace, workspace / "plan/2025-11-11/001-empty.md")
    assert titles(wb) == []


def test_an_upload_in_which_nothing_can_be_read_leaves_its_record_and_no_source(
    wb: Workbench, work: Callable[[str], str]
) -> None:
    job = start_upload(wb, UPLOADS, source="Tides", tags=["sea"])
    assert titles(wb) == ["Tides"]  # while it waits
    assert (work(job), titles(wb)) == ("failed", [])
    assert [(file.name, file.state) for file in wb.jobs.files(job)] == [("a.pdf", "failed"), ("b.md", "failed")]
    assert wb.jobs.get(job).source_id is None


def test_an_upload_into_a_chosen_source_leaves_that_source(wb: Workbench, work: Callable[[str], str]) -> None:
    chosen = wb.sources.create("Chosen")
    assert work(start_upload(wb, UPLOADS, source=chosen.id)) == "failed"
    assert titles(wb) == ["Chosen"]


def test_a_job_that_failed_makes_its_source_again_when_it_is_resumed(
    wb: Workbench, work: Callable[[str], str], unreadable: Path
) -> None:
    job = wb.jobs.enqueue_ingest([unreadable], source="Later", tags=["sea"]).id
    assert (work(job), titles(wb)) == ("failed", [])
    (unreadable / "b.md").write_text("Buoys.")
    wb.jobs.resume(job)
    assert (titles(wb), STILL_READING in wb.search("buoys").notes) == ([], True)
    assert work(job) == "completed_with_errors"
    assert [(source.title, source.tags, source.documents_count) for source in wb.sources.list()] == [
        ("Later", ("sea",), 1)
    ]
    assert wb.jobs.get(job).source_id == wb.sources.get("Later").id


def test_a_cancelled_job_keeps_its_source_until_it_is_forgotten(wb: Workbench) -> None:
    job = start_upload(wb, [("c.md", b"Cranes.")], source="Port")
    wb.jobs.cancel(job)
    assert titles(wb) == ["Port"]
    wb.jobs.delete(job)
    assert titles(wb) == []


def test_a_job_that_was_stopped_in_its_run_keeps_its_source(
    wb: Workbench, unreadable: Path, work: Callable[[str], str]
) -> None:
    (unreadable / "c.md").write_text("Cranes.")
    job = wb.jobs.enqueue_ingest([unreadable], source="Port").id
    assert wb.jobs.table.begin(job, "a worker that was killed") is not None
    with wb.jobs.table.transaction() as connection:
        connection.execute("UPDATE jobs SET cancel_requested = true WHERE id = %s", (job,))
    source = wb.sources.ensure("Port", for_ingest=True)
    wb.jobs.table.fills(job, source.id)
    assert (work(job), titles(wb)) == ("cancelled", ["Port"])
    wb.jobs.resume(job)
    assert (titles(wb), STILL_READING in wb.search("buoys").notes) == (["Port"], True)
    assert work(job) == "completed_with_errors"
    assert wb.sources.get("Port").id == source.id


def test_a_job_that_continues_after_its_worker_died_still_takes_its_source_away(
    wb: Workbench, unreadable: Path, work: Callable[[str], str]
) -> None:
    job = wb.jobs.enqueue_ingest([unreadable], source="Port").id
    assert wb.jobs.table.begin(job, "a worker that was killed") is not None
    assert (titles(wb), work(job), titles(wb)) == (["Port"], "failed", [])


def test_a_cancelled_upload_leaves_no_source_once_it_is_dismissed_and_can_be_resumed(
    wb: Workbench, work: Callable[[str], str]
) -> None:
    job = start_upload(wb, [("c.md", b"Cranes."), ("d.md", b"Ducks.")], source="Port")
    wb.jobs.put_away(job)
    assert titles(wb) == ["Port"]  # still queued
    wb.jobs.cancel(job)
    assert (titles(wb), wb.documents.count()) == (["Port"], 0)  # may be resumed
    wb.jobs.put_away(job)
    assert titles(wb) == []
    wb.jobs.resume(job)
    assert (work(job), titles(wb), wb.documents.count()) == ("completed", ["Port"], 2)
