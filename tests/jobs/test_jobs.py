"""Jobs: started anywhere, run by a worker, stopped and gone on with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from workbench import Workbench
from workbench.errors import Conflict, InvalidInput, NotFound
from workbench.jobs import WorkerHandle, start_worker
from workbench.storage.migrate import migrate
from workbench.types import Progress

DOCS = {"cats.md": "# Cats\n\nCats purr.", "dogs.md": "# Dogs\n\nDogs bark."}
LONG = 30  # seconds: no test waits for it, it only bounds a failure


@pytest.fixture
def worker(wb: Workbench) -> Iterator[WorkerHandle]:
    """A worker in this process."""
    handle = start_worker(wb, heartbeat=0.2, stalled=1.0)
    yield handle
    handle.stop()
    assert not handle.is_alive


def test_an_ingest_runs_in_the_background(wb: Workbench, worker: WorkerHandle, folder: Callable[..., Path]) -> None:
    job = wb.jobs.wait(wb.jobs.enqueue_ingest([folder(DOCS)], source="Animals").id, timeout=LONG)
    assert (job.status, job.done, job.error) == ("completed", 2, None)
    assert job.result["documents"]["added"] == 2
    assert wb.search("purr", strategy="keyword")[0].document_title == "Cats"
    assert any("2 files" in line.message for line in wb.jobs.log(job.id))


def test_a_job_says_what_it_left_out(wb: Workbench, worker: WorkerHandle, folder: Callable[..., Path]) -> None:
    mixed = folder({**DOCS, "letter.xyz": "Dear Ada"})
    job = wb.jobs.wait(wb.jobs.enqueue_ingest([mixed], source="Animals").id, timeout=LONG)
    assert job.result["left_out"] == {".xyz": 1}
    assert job.message.endswith("1 file left out, of kinds that are not read: .xyz (1).")


def test_uploads_travel_through_the_database(wb: Workbench, worker: WorkerHandle) -> None:
    files = [("a.md", b"# A\n\nApples."), ("broken.pdf", b"%PDF-1.7 broken")]
    job = wb.jobs.wait(wb.jobs.enqueue_ingest(files=files).id, timeout=LONG)
    assert job.status == "completed_with_errors"
    assert [failure["path"] for failure in job.result["failures"]] == ["broken.pdf"]
    assert wb.jobs.table.files.uploads(job.id) == []


def test_each_file_is_noted_with_what_became_of_it(
    wb: Workbench, worker: WorkerHandle, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder({"a.md": "# A\n\nOne.", "b.md": "# B\n\nTwo."}), source="Notes")
    now = folder({"b.md": "# B\n\nThree.", "c.md": "# C\n\nFour.", "d.md": ""})
    job = wb.jobs.wait(wb.jobs.enqueue_ingest([now, now / "nowhere.md"], source="Notes").id, timeout=LONG)
    became = {file.name: (file.state, file.passages) for file in wb.jobs.files(job.id)}
    gone = str(now / "nowhere.md")
    assert became == {
        "a.md": ("unchanged", 0),
        "b.md": ("changed", 1),
        "c.md": ("added", 1),
        "d.md": ("failed", 0),
        gone: ("failed", 0),
    }
    assert [file.error for file in wb.jobs.files(job.id) if file.name == gone] == ["It does not exist."]


def test_of_two_uploads_of_one_name_the_later_stays(wb: Workbench, worker: WorkerHandle) -> None:
    files = [("a.md", b"# A\n\nApples."), ("a.md", b"# A\n\nPears and plums.")]
    job = wb.jobs.wait(wb.jobs.enqueue_ingest(files=files, source="Fruit").id, timeout=LONG)
    assert [file.state for file in wb.jobs.files(job.id)] == ["added", "changed"]
    [document] = wb.knowledge.documents(source_id=wb.knowledge.source("Fruit").id)
    assert [passage.text for passage in wb.knowledge.passages(document.id)] == ["# A\n\nPears and plums."]


def test_an_ingest_goes_with_its_source(wb: Workbench) -> None:
    source = wb.knowledge.create_source("Short-lived")
    job = wb.jobs.enqueue_ingest(files=[("a.md", b"# A")], source=source.id)
    wb.knowledge.delete_source(source.id)
    with pytest.raises(NotFound):
        wb.jobs.get(job.id)


def test_an_index_is_built_in_the_background(wb: Workbench, worker: WorkerHandle, folder: Callable[..., Path]) -> None:
    wb.ingest(folder(DOCS), source="Animals")
    wb.indexes.create("small", chunker="token")
    job = wb.jobs.wait(wb.jobs.enqueue_index_build("small").id, timeout=LONG)
    assert (job.status, job.result["documents"]) == ("completed", 2)
    assert wb.indexes.get("small").status == "ready"


def test_a_job_that_cannot_be_done_fails_with_a_sentence(wb: Workbench, worker: WorkerHandle, tmp_path: Path) -> None:
    (tmp_path / "empty.md").write_text("")
    job = wb.jobs.wait(wb.jobs.enqueue_ingest([tmp_path / "empty.md"]).id, timeout=LONG)
    assert job.status == "failed"
    assert "None of the 1 files could be read" in (job.error or "")


def test_a_job_without_a_worker_waits_and_can_be_cancelled_and_resumed(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    job = wb.jobs.enqueue_ingest([folder(DOCS)], source="Animals")
    assert job.status == "queued"
    assert wb.jobs.cancel(job.id).status == "cancelled"
    with pytest.raises(Conflict, match="nothing to stop"):
        wb.jobs.cancel(job.id)
    assert wb.jobs.resume(job.id).status == "queued"
    handle = start_worker(wb)
    assert wb.jobs.wait(job.id, timeout=LONG).status == "completed"
    handle.stop()


def test_a_running_job_stops_when_asked_and_goes_on_later(
    wb: Workbench, worker: WorkerHandle, folder: Callable[..., Path]
) -> None:
    many = {f"{number:03}.md": f"# Page {number}\n\n" + f"word{number} " * 1500 for number in range(120)}
    job = wb.jobs.enqueue_ingest([folder(many)], source="Many")
    begun = threading.Event()

    def cancel_once(progress: Progress) -> None:
        if progress.done > 0 and not begun.is_set():
            begun.set()
            wb.jobs.cancel(job.id)

    stopped = wb.jobs.wait(job.id, timeout=LONG, on_progress=cancel_once)
    assert stopped.status == "cancelled"
    before = wb.knowledge.count_documents()
    assert 0 < before < 120
    wb.jobs.resume(job.id)
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    assert (done.status, done.result["documents"]["unchanged"]) == ("completed", before)
    assert wb.knowledge.count_documents() == 120


def test_a_worker_that_stops_gives_its_job_back(wb: Workbench, folder: Callable[..., Path]) -> None:
    many = {f"{number:03}.md": f"# Page {number}\n\n" + f"word{number} " * 1500 for number in range(120)}
    job = wb.jobs.enqueue_ingest([folder(many)], source="Many")
    first = start_worker(wb)
    while wb.jobs.get(job.id).done == 0:
        pass
    first.stop()
    assert wb.jobs.get(job.id).status == "queued"
    second = start_worker(wb)
    assert wb.jobs.wait(job.id, timeout=LONG * 3).status == "completed"
    second.stop()
    assert wb.knowledge.count_documents() == 120


def test_a_job_whose_worker_was_killed_is_taken_up_again(
    wb: Workbench, database_url: str, test_home: Path, folder: Callable[..., Path]
) -> None:
    many = {f"{number:03}.md": f"# Page {number}\n\n" + f"word{number} " * 1500 for number in range(120)}
    job = wb.jobs.enqueue_ingest([folder(many)], source="Many")
    process = worker_process(database_url, test_home)
    while wb.jobs.get(job.id).done == 0:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert wb.jobs.get(job.id).status == "running"
    assert list(wb.jobs.heard()) == [job.id]
    survivor = start_worker(wb, heartbeat=0.2, stalled=1.0)
    assert wb.jobs.wait(job.id, timeout=LONG * 3).status == "completed"
    survivor.stop()
    assert wb.jobs.heard() == {}
    assert wb.knowledge.count_documents() == 120
    assert wb.jobs.tally(job.id).files == {"added": 120}  # also those that the killed worker brought in


def worker_process(database_url: str, home: Path) -> subprocess.Popen[bytes]:
    """A worker in a process of its own."""
    code = (
        "from workbench import Workbench; from workbench.jobs import start_worker;"
        "start_worker(Workbench.open(), heartbeat=0.2, stalled=1.0).join()"
    )
    settings = {"HOME": str(home), "DATABASE_URL": database_url, "EMBEDDING_MODEL": "hash"}
    environment = os.environ | {f"WORKBENCH_{name}": value for name, value in settings.items()}
    return subprocess.Popen([sys.executable, "-c", code], env=environment)


def test_a_job_that_a_living_process_holds_is_not_run_twice(wb: Workbench, folder: Callable[..., Path]) -> None:
    job = wb.jobs.enqueue_ingest([folder(DOCS)], source="Animals")
    with wb.jobs.table.held(job.id) as first, wb.jobs.table.held(job.id) as second:
        assert (first, second) == (True, False)
    with wb.jobs.table.held(job.id) as again:
        assert again


def test_a_job_that_kills_its_workers_is_given_up(wb: Workbench, folder: Callable[..., Path]) -> None:
    job = wb.jobs.enqueue_ingest([folder(DOCS)], source="Animals")
    for _ in range(5):
        assert wb.jobs.table.begin(job.id, "dead") is not None
    handle = start_worker(wb)
    given_up = wb.jobs.wait(job.id, timeout=LONG)
    handle.stop()
    assert (given_up.status, "died 5 times" in given_up.message) == ("failed", True)


def test_questions_about_no_job_and_wrong_words_get_a_sentence(wb: Workbench) -> None:
    for ask in (wb.jobs.get, wb.jobs.cancel, wb.jobs.resume, wb.jobs.log):
        with pytest.raises(NotFound, match="Job not found"):
            ask("job_' OR 1=1")
    with pytest.raises(InvalidInput, match="'crawl', 'ingest', 'index_build'"):
        wb.jobs.list(kind="cooking")
    with pytest.raises(InvalidInput, match="nothing to ingest"):
        wb.jobs.enqueue_ingest()


def test_the_queue_schema_is_noted_and_applied_once(database_url: str) -> None:
    assert migrate(database_url) == []
    with psycopg.connect(database_url) as connection:
        noted = connection.execute("SELECT count(*) FROM queue_migrations").fetchone()
        assert noted is not None and noted[0] > 20
