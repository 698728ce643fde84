"""Jobs: started anywhere, run by a worker, stopped and resumed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from mcp_app.tool import job_json
from tests.jobs.shared_work import one_part_written, waiting_for_their_turn
from tests.worker_nest import worker_process
from workbench import Workbench
from workbench.errors import Conflict, InvalidInput, NotFound
from workbench.jobs.worker import WorkerHandle, WorkerProcess
from workbench.storage.migrate import migrate

DOCS = {"cats.md": "# Cats\n\nCats purr.", "dogs.md": "# Dogs\n\nDogs bark."}
LONG = 30  # seconds: an upper bound that only failures reach


@pytest.fixture
def worker(wb: Workbench) -> Iterator[WorkerHandle]:
    """A worker in this process."""
    handle = wb.start_worker(heartbeat=0.2, stalled=1.0)
    yield handle
    handle.stop()
    assert not handle.is_alive


def test_an_ingest_runs_in_the_background(wb: Workbench, worker: WorkerHandle, folder: Callable[..., Path]) -> None:
    job = wb.jobs.wait(wb.jobs.enqueue_ingest([folder(DOCS)], source="Animals").id, timeout=LONG)
    assert (job.status, job.done, job.error) == ("completed", 2, None)
    assert job.result["documents"]["added"] == 2
    assert wb.search("purr", strategy="keyword")[0].document_title == "Cats"
    assert any("2 files" in line.message for line in wb.jobs.log(job.id))


def test_a_job_reports_what_it_left_out(wb: Workbench, worker: WorkerHandle, folder: Callable[..., Path]) -> None:
    mixed = folder({**DOCS, "letter.xyz": "Dear Ada"})
    job = wb.jobs.wait(wb.jobs.enqueue_ingest([mixed], source="Animals").id, timeout=LONG)
    assert job.result["left_out"] == {".xyz": 1}
    assert job.message.endswith("1 file skipped (unsupported type): .xyz (1).")


def test_a_job_reports_the_documents_that_its_folder_lacks(
    wb: Workbench, worker: WorkerHandle, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder(DOCS, "before"), source="Animals")
    job = wb.jobs.wait(
        wb.jobs.enqueue_ingest([folder({"owls.md": "Owls"}, "after")], source="Animals").id, timeout=LONG
    )
    assert job.message.endswith("2 other documents of this source are not in the folder: cats.md, dogs.md.")


def test_uploads_travel_through_the_database(wb: Workbench, worker: WorkerHandle) -> None:
    files = [("a.md", b"# A\n\nApples."), ("broken.pdf", b"%PDF-1.7 broken")]
    job = wb.jobs.wait(wb.jobs.enqueue_ingest(files=files).id, timeout=LONG)
    assert job.status == "completed_with_errors"
    assert [failure["path"] for failure in job.result["failures"]] == ["broken.pdf"]
    names = [name for _, name, _ in wb.jobs.table.files.uploads(job.id)]
    assert names == ["broken.pdf"]  # so that it can be tried again


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
    [document] = wb.documents.list(source_id=wb.sources.get("Fruit").id)
    assert [passage.text for passage in wb.documents.passages(document.id)] == ["# A\n\nPears and plums."]


def test_an_ingest_goes_with_its_source(wb: Workbench) -> None:
    source = wb.sources.create("Short-lived")
    job = wb.jobs.enqueue_ingest(files=[("a.md", b"# A")], source=source.id)
    wb.sources.delete(source.id)
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
    assert "empty" in (job.error or "") and "None of" not in (job.error or "")
    files = [("a.pdf", b"%PDF-1.4 broken"), ("b.txt", b"")]
    job = wb.jobs.wait(wb.jobs.enqueue_ingest(files=files).id, timeout=LONG)
    assert (job.error or "").startswith("None of the 2 files could be read. The first: ")


def test_a_retry_that_fails_again_leaves_the_job_done_with_errors(wb: Workbench, worker: WorkerHandle) -> None:
    files = [("a.md", b"# A\n\nThe tide gauge."), ("b.pdf", b"%PDF-1.4 broken")]
    job = wb.jobs.wait(wb.jobs.enqueue_ingest(files=files).id, timeout=LONG)
    assert job.status == "completed_with_errors"
    wb.jobs.resume(job.id)
    again = wb.jobs.wait(job.id, timeout=LONG)
    assert (again.status, again.error) == ("completed_with_errors", None)
    assert wb.jobs.tally(job.id).files == {"added": 1, "failed": 1}


def test_a_job_without_a_worker_waits_and_can_be_cancelled_and_resumed(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    job = wb.jobs.enqueue_ingest([folder(DOCS)], source="Animals")
    assert job.status == "queued"
    assert wb.jobs.cancel(job.id).status == "cancelled"
    with pytest.raises(Conflict, match="is already"):
        wb.jobs.cancel(job.id)
    assert wb.jobs.resume(job.id).status == "queued"
    handle = wb.start_worker()
    assert wb.jobs.wait(job.id, timeout=LONG).status == "completed"
    handle.stop()


def test_a_running_job_stops_when_asked_and_continues_later(
    wb: Workbench, worker: WorkerHandle, database_url: str, folder: Callable[..., Path]
) -> None:
    many = {f"{number:03}.md": f"# Page {number}\n\n" + f"word{number} " * 1500 for number in range(120)}
    wb.indexes.get()
    with one_part_written(database_url, "main"):
        job = wb.jobs.enqueue_ingest([folder(many)], source="Many")
        while waiting_for_their_turn(database_url) == 0:
            assert worker.is_alive
            time.sleep(0.05)
        wb.jobs.cancel(job.id)
        assert wb.jobs.wait(job.id, timeout=LONG).status == "cancelled"
    before = wb.documents.count()
    assert 0 < before < 120
    wb.jobs.resume(job.id)
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    assert (done.status, done.result["documents"]["unchanged"]) == ("completed", before)
    assert wb.documents.count() == 120


def test_a_worker_that_stops_gives_its_job_back(wb: Workbench, database_url: str, folder: Callable[..., Path]) -> None:
    many = {f"{number:03}.md": f"# Page {number}\n\n" + f"word{number} " * 1500 for number in range(120)}
    wb.indexes.get()
    with one_part_written(database_url, "main"):
        job = wb.jobs.enqueue_ingest([folder(many)], source="Many")
        first = wb.start_worker()
        while waiting_for_their_turn(database_url) == 0:
            assert first.is_alive
            time.sleep(0.05)
        first.stop()
        assert wb.jobs.get(job.id).status == "queued"
    second = wb.start_worker()
    assert wb.jobs.wait(job.id, timeout=LONG * 3).status == "completed"
    second.stop()
    assert wb.documents.count() == 120


def test_a_job_whose_connection_is_lost_continues_with_another(
    wb: Workbench, worker: WorkerHandle, database_url: str, folder: Callable[..., Path]
) -> None:
    many = {f"{number:03}.md": f"# Page {number}\n\n" + f"word{number} " * 300 for number in range(120)}
    wb.indexes.get()
    with one_part_written(database_url, "main"):
        job = wb.jobs.enqueue_ingest([folder(many)], source="Many")
        while waiting_for_their_turn(database_url) == 0:
            assert worker.is_alive
            time.sleep(0.05)
        with psycopg.connect(database_url, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
    done = wb.jobs.wait(job.id, timeout=LONG * 3)
    assert (done.status, wb.jobs.tally(job.id).files) == ("completed", {"added": 120})
    assert any("returned to the queue" in line.message for line in wb.jobs.log(job.id))
    assert wb.documents.count() == 120


def test_a_job_whose_worker_was_killed_is_taken_up_again(
    wb: Workbench, database_url: str, test_home: Path, folder: Callable[..., Path]
) -> None:
    many = {f"{number:03}.md": f"# Page {number}\n\n" + f"word{number} " * 1500 for number in range(120)}
    wb.indexes.get()
    with one_part_written(database_url, "main"):
        job = wb.jobs.enqueue_ingest([folder(many)], source="Many")
        process = worker_process(database_url, test_home)
        while waiting_for_their_turn(database_url) == 0:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert wb.jobs.get(job.id).status == "running"
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE jobs SET moved_at = now() - interval '14 seconds'")
        connection.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '20 seconds'")
    assert wb.jobs.get(job.id).stalled is None  # its numbers have just changed
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE jobs SET moved_at = now() - interval '20 seconds'")
    assert "has sent no heartbeat for 2" in (wb.jobs.get(job.id).stalled or "")
    with psycopg.connect(database_url) as connection:  # a long step of a worker that is alive
        connection.execute("UPDATE procrastinate_workers SET last_heartbeat = now()")
    assert wb.jobs.get(job.id).stalled is None
    survivor = wb.start_worker(heartbeat=0.2, stalled=1.0)
    assert wb.jobs.wait(job.id, timeout=LONG * 3).status == "completed"
    survivor.stop()
    assert wb.documents.count() == 120
    assert wb.jobs.tally(job.id).files == {"added": 120}  # also those that the killed worker brought in


def test_a_job_that_a_living_process_holds_is_not_run_twice(wb: Workbench, folder: Callable[..., Path]) -> None:
    job = wb.jobs.enqueue_ingest([folder(DOCS)], source="Animals")
    with wb.jobs.table.hold(job.id) as first, wb.jobs.table.hold(job.id) as second:
        assert (first, second) == (True, False)
    with wb.jobs.table.hold(job.id) as again:
        assert again


def test_a_job_that_kills_its_workers_is_abandoned(wb: Workbench, folder: Callable[..., Path]) -> None:
    job = wb.jobs.enqueue_ingest([folder(DOCS)], source="Animals")
    for _ in range(5):
        assert wb.jobs.table.begin(job.id, "dead") is not None
    handle = wb.start_worker()
    given_up = wb.jobs.wait(job.id, timeout=LONG)
    handle.stop()
    assert (given_up.status, "died 5 times" in given_up.message) == ("failed", True)


def test_questions_about_no_job_and_wrong_words_get_a_sentence(wb: Workbench) -> None:
    for ask in (wb.jobs.get, wb.jobs.cancel, wb.jobs.resume, wb.jobs.log):
        with pytest.raises(NotFound, match="Job not found"):
            ask("job_' OR 1=1")
    with pytest.raises(InvalidInput, match="'crawl', 'ingest', 'index_build'"):
        wb.jobs.list(kind="cooking")
    with pytest.raises(InvalidInput, match="Nothing to ingest"):
        wb.jobs.enqueue_ingest()


def test_the_queue_schema_is_noted_and_applied_once(database_url: str) -> None:
    assert migrate(database_url) == []
    with psycopg.connect(database_url) as connection:
        noted = connection.execute("SELECT count(*) FROM queue_migrations").fetchone()
        assert noted is not None and noted[0] > 20


def test_jobs_run_in_a_process_next_to_this_one_which_ends_with_it(wb: Workbench) -> None:
    wb.start_worker_process()
    job = wb.jobs.wait(wb.jobs.enqueue_ingest(files=[("a.md", b"# A\n\nApples.")]).id, timeout=LONG)
    assert job.status == "completed", job.error
    assert wb.worker_process is not None
    number = wb.worker_process.pid
    assert number is not None and number != os.getpid()
    wb.close()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_job_shows_why_its_worker_fails_until_one_runs(wb: Workbench, capfd: pytest.CaptureFixture[str]) -> None:
    """The process fails, as with a wrong setting, and later one runs until its input ends."""
    fails = "import sys; print('loading', file=sys.stderr); sys.exit('error: no such model')"
    process = WorkerProcess([sys.executable, "-c", fails], dict(os.environ), wb.jobs.table)
    job = wb.jobs.enqueue_ingest(files=[("a.md", b"# A\n\nApples.")])
    process.start()
    while not (shown := wb.jobs.get(job.id)).stalled:  # the test's own time limit ends it
        time.sleep(0.1)
    reason = "The worker fails and is started again every few seconds: error: no such model"
    assert (shown.state, shown.stalled, shown.message) == ("stalled", reason, reason)
    assert wb.jobs.list()[0].stalled == job_json(shown)["stalled"] == reason
    process._command[-1] = "import sys; sys.stdin.read()"  # pyright: ignore[reportPrivateUsage]
    while wb.jobs.get(job.id).message != "Waiting for a worker.":
        time.sleep(0.1)
    process.stop()
    assert wb.jobs.get(job.id).stalled is None and "loading\nerror: no such model" in capfd.readouterr().err


def test_a_worker_that_is_stopped_while_it_fails_leaves_no_message(wb: Workbench) -> None:
    process = WorkerProcess([sys.executable, "-c", "raise SystemExit('no model')"], dict(os.environ), wb.jobs.table)
    job = wb.jobs.enqueue_ingest(files=[("a.md", b"# A\n\nApples.")])
    process.start()
    while not wb.jobs.get(job.id).stalled:  # the test's own time limit ends it
        time.sleep(0.1)
    process.stop()
    assert wb.jobs.get(job.id).message == "Waiting for a worker."


def test_a_job_of_an_unknown_kind_waits_for_a_worker_that_knows_it(wb: Workbench, worker: WorkerHandle) -> None:
    odd = wb.jobs.enqueue("experiment", "Somebody else's", {})
    known = wb.jobs.enqueue_ingest(files=[("a.md", b"# A\n\nApples.")])
    assert wb.jobs.wait(known.id, timeout=LONG).status == "completed"
    assert wb.jobs.get(odd.id).status == "queued"
