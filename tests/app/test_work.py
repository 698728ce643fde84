"""Long work as the app shows it: read from the jobs, so that it is the same in every tab and after a restart."""

from datetime import UTC, datetime, timedelta

import pytest

from workbench.app.engine import ENGINE
from workbench.app.sample_work import start_sample
from workbench.app.uploads import of_folder, start_upload
from workbench.app.work import WORKS, Work
from workbench.app.work_view import outcome, sentence
from workbench.errors import NotFound
from workbench.jobs import start_worker
from workbench.storage.job_files import FileTally, JobFile
from workbench.storage.jobs import Job

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FILES = [("a.md", b"# A\n\nThe tide gauge."), ("b.pdf", b"%PDF-1.4 broken"), ("c.txt", b"")]


@pytest.fixture
def worker(wb):
    """A worker, and the app's pages on its workbench."""
    ENGINE.use(wb)
    handle = start_worker(wb)
    yield handle
    handle.stop()


def settled(wb, job_id):
    """What became of each file, in words."""
    assert wb.jobs.wait(job_id, timeout=30).is_finished
    return [(file.name, *outcome(file, running=False)) for file in wb.jobs.files(job_id)]


def test_each_uploaded_file_ends_with_what_became_of_it_and_stays_until_put_away(wb, worker):
    job = start_upload(wb, FILES, source="Tides", tags=["sea"])
    rows = settled(wb, job)
    assert [(name, state) for name, state, _ in rows] == [("a.md", "done"), ("b.pdf", "failed"), ("c.txt", "failed")]
    assert (rows[0][2], "damaged" in rows[1][2], "empty" in rows[2][2]) == ("added, 1 passage", True, True)
    assert wb.knowledge.source("Tides").tags == ("sea",)
    work = WORKS.all()[job]
    assert (work.running, work.share, work.job.title) == (False, 1.0, "Adding 3 files to Tides")
    assert sentence(work) == "done, with errors: 1 added, 2 failed"
    wb.jobs.put_away(job)
    assert WORKS.all() == {}
    assert settled(wb, start_upload(wb, FILES[:1], source="Tides")) == [("a.md", "same", "unchanged")]


def test_work_that_goes_on_is_in_view_and_cannot_be_put_away(wb):
    ENGINE.use(wb)
    job = start_upload(wb, FILES, source="Tides")
    wb.jobs.put_away(job)
    work = WORKS.all()[job]
    assert (work.running, work.tally.files) == (True, {"waiting": 3})
    assert sentence(work) == "waiting for a worker"
    assert [outcome(file, True) for file in wb.jobs.files(job)] == [("waiting", "waiting")] * 3
    wb.jobs.cancel(job)
    assert sentence(WORKS.all()[job]) == "stopped: 3 not added"
    assert [outcome(file, False)[1] for file in wb.jobs.files(job)] == ["not added: stopped before"] * 3


def test_an_upload_into_a_place_that_is_not_there_begins_nothing(wb):
    with pytest.raises(NotFound):
        start_upload(wb, FILES, source="Tides", project="nowhere")
    assert wb.jobs.list() == []


def test_the_sample_is_loaded_by_a_worker_and_asked_for_once(wb):
    ENGINE.use(wb)
    first = start_sample(wb)
    assert start_sample(wb) == first
    assert WORKS.all()[first].tally.total > 40
    assert "concepts/" in wb.jobs.files(first)[0].name


def test_an_uploaded_folder_is_named_without_itself_and_what_cannot_be_read_stays_out():
    given = ["notes/a.md", "notes/deep/b.txt", "notes/.git/c.md", "notes/node_modules/d.md", "notes/photo.png"]
    title, files = of_folder([(name, b"x") for name in given])
    assert (title, [name for name, _ in files]) == ("notes", ["a.md", "deep/b.txt"])


def running(done_by_size, **fields):
    """A job a worker took ten seconds ago."""
    job = Job("job_1", "ingest", "Adding", "running", taken_at=NOON - timedelta(seconds=10), updated_at=NOON, **fields)
    return Work(job, done_by_size, NOON)


def test_share_and_time_left_go_by_the_size_of_the_files():
    work = running(FileTally({"added": 1, "busy": 1, "waiting": 5}, settled=0.2, busy=0.4, recent=0.2), part=0.5)
    assert work.share == pytest.approx(0.2 + 0.4 * 0.5)
    assert work.seconds_left == pytest.approx(10 * 0.6 / 0.4)


def test_the_time_left_is_judged_by_what_the_present_worker_did():
    work = running(FileTally({"added": 8, "waiting": 2}, settled=0.8, recent=0.1))
    assert work.seconds_left == pytest.approx(10 * 0.2 / 0.1)
    assert running(FileTally({"added": 8, "waiting": 2}, settled=0.8)).seconds_left is None


def test_a_worker_that_says_nothing_is_not_made_out_to_be_at_work():
    silent = Job("job_1", "index_build", "Build", "running", taken_at=NOON, updated_at=NOON - timedelta(seconds=40))
    assert sentence(Work(silent, FileTally(), NOON)) == (
        "no word from its worker for 40 s; if it died, another one goes on"
    )


@pytest.mark.parametrize(("silent", "beat"), [(14, None), (40, 3), (40, 14)])
def test_a_long_step_is_no_silence_while_the_worker_would_keep_its_job(silent, beat):
    told, heard = NOON - timedelta(seconds=silent), beat and NOON - timedelta(seconds=beat)
    busy = Job("job_1", "index_build", "Build", "running", message="Embedding.", taken_at=NOON, updated_at=told)
    assert sentence(Work(busy, FileTally(), NOON, heard)) == "Embedding."


def test_a_file_in_hand_waits_again_when_its_worker_is_gone():
    file = JobFile(0, "a.md", 10, "busy")
    assert (outcome(file, True), outcome(file, False)[0]) == (("busy", "embedding"), "waiting")
