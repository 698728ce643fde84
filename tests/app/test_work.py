"""Long work in the app is read from the jobs, so it is the same in every tab and after a restart."""

import io
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from workbench.app.shell.work import (
    DroppedFiles,
    JobView,
    describe_file,
    describe_job,
    list_job_views,
    select_for_tray,
    sort_files,
    sort_folder,
    start_sample,
    start_upload,
    tab_state,
    tray_title,
)
from workbench.app.state.shared import OPENING
from workbench.app.widgets.looks import describe_unsupported
from workbench.errors import NotFound
from workbench.storage.jobs import FileTally, Job, JobFile

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FILES = [("a.md", b"# A\n\nThe tide gauge."), ("b.pdf", b"%PDF-1.4 broken"), ("c.txt", b"")]


@pytest.fixture
def worker(wb):
    """A worker, and the app's pages on its workbench."""
    OPENING.use(wb)
    handle = wb.start_worker()
    yield handle
    handle.stop()


def settled(wb, job_id):
    """Return the outcome of each file as text."""
    assert wb.jobs.wait(job_id, timeout=30).is_finished
    return [(file.name, *describe_file(file, running=False)) for file in wb.jobs.files(job_id)]


def test_each_uploaded_file_ends_with_what_became_of_it_and_stays_until_put_away(wb, worker):
    job = start_upload(wb, FILES, source="Tides", tags=["sea"])
    rows = settled(wb, job)
    assert [(name, state) for name, state, _ in rows] == [("a.md", "done"), ("b.pdf", "failed"), ("c.txt", "failed")]
    assert (rows[0][2], "not a valid PDF" in rows[1][2], "empty" in rows[2][2]) == ("added, 1 passage", True, True)
    assert wb.sources.get("Tides").tags == ("sea",)
    work = list_job_views()[job]
    assert (work.is_running, work.job.share, work.job.title) == (False, 1.0, "Adding 3 files to Tides")
    assert describe_job(work) == "completed with errors: 1 added, 2 failed"
    wb.jobs.put_away(job)
    assert list_job_views() == {}
    assert settled(wb, start_upload(wb, FILES[:1], source="Tides")) == [("a.md", "same", "unchanged")]


def test_work_that_continues_is_in_view_and_cannot_be_put_away(wb):
    OPENING.use(wb)
    job = start_upload(wb, FILES, source="Tides")
    wb.jobs.put_away(job)
    work = list_job_views()[job]
    assert (work.is_running, work.tally.files) == (True, {"waiting": 3})
    assert describe_job(work) == "Waiting for a worker."
    assert [describe_file(file, True) for file in wb.jobs.files(job)] == [("waiting", "waiting")] * 3
    wb.jobs.cancel(job)
    assert describe_job(list_job_views()[job]) == "cancelled: 3 not added"
    assert [describe_file(file, False)[1] for file in wb.jobs.files(job)] == ["not added (cancelled)"] * 3


def test_an_upload_into_a_place_that_is_not_there_starts_nothing(wb):
    with pytest.raises(NotFound):
        start_upload(wb, FILES, source="Tides", project="nowhere")
    assert wb.jobs.list() == []


def test_the_sample_is_loaded_by_a_worker_and_asked_for_once(wb):
    OPENING.use(wb)
    first = start_sample(wb)
    assert start_sample(wb) == first
    assert list_job_views()[first].tally.total > 40
    assert "concepts/" in wb.jobs.files(first)[0].name


def test_an_uploaded_folder_omits_its_own_name_and_unreadable_files():
    names = ["notes/a.md", "notes/deep/b.txt", "notes/.git/c.md", "notes/node_modules/d.md", "notes/photo.gif"]
    drop = sort_folder([(name, b"x") for name in names])
    assert (drop.title, [name for name, _ in drop.files]) == ("notes", ["a.md", "deep/b.txt"])
    assert (drop.count, drop.left_out) == (2, ("photo.gif",))


def packed(*names):
    """Return a zip archive with files of these names."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, b"words")
    return stream.getvalue()


def test_a_drop_counts_the_files_of_an_archive_and_names_what_cannot_be_read():
    archive = ("docs.zip", packed("a.md", "deep/b.txt", ".hidden.md", "setup.exe"))
    drop = sort_files([archive])
    assert (drop.title, drop.count, drop.left_out) == ("docs", 2, ("docs/setup.exe",))
    drop = sort_files([archive, ("c.md", b"x"), ("clip.mp4", b"x")])
    assert ([name for name, _ in drop.files], drop.title, drop.count) == (["docs.zip", "c.md"], "Uploads", 3)
    assert drop.left_out == ("clip.mp4", "docs/setup.exe")
    assert sort_files([("clips.zip", packed("clip.mp4"))]) == DroppedFiles([], "Uploads", 0, ("clips/clip.mp4",))
    assert sort_files([("bad.zip", b"no archive")]).count == 1  # rejected with a message when it is added


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], ""),
        (["a.mp4"], "Unsupported file type: a.mp4."),
        (["a.msg"], "Unsupported file type: a.msg. Save .msg as .eml."),
        (["a.mp4", "b.exe"], "Unsupported file types: a.mp4 and b.exe."),
        (["a.mp4", "b.exe", "c.mov"], "Unsupported file types: a.mp4, b.exe and c.mov."),
        (list("abcdef"), "Unsupported file types: a, b and 4 other files."),
    ],
)
def test_unread_files_are_named_in_one_sentence(names, said):
    assert describe_unsupported(names) == said


def test_work_in_files_shows_the_share_of_the_work_and_not_of_the_files():
    job = Job("job_1", "ingest", "Adding", "running", total=7, share=0.4, seconds_left=40.0, message="Embedding.")
    work = JobView(job, FileTally({"added": 1, "busy": 1, "waiting": 5}), NOON)
    assert describe_job(work) == "40%, 1 of 7 · about 40 s left · Embedding."
    shared = replace(job, message="1 of 7 files; 2 workers")  # the workers that share a job count its files
    assert describe_job(replace(work, job=shared)) == "40% · about 40 s left · 1 of 7 files; 2 workers"


def test_before_anything_is_embedded_the_step_is_shown_and_no_percentage():
    message = "loading the model; reading a.md"
    job = Job("job_1", "ingest", "Adding", "running", total=7, share=0.0, seconds_left=1.0, message=message)
    work = JobView(job, FileTally(), NOON)
    assert (describe_job(work), tab_state([work])) == (message, "starting")


def test_a_stalled_job_explains_what_to_do_in_place_of_how_far_it_is():
    job = Job("job_1", "index_build", "Build", "running", total=7, share=0.4, stalled="Stalled: restart it.")
    assert describe_job(JobView(job, FileTally(), NOON)) == "Stalled: restart it."


def test_a_file_in_hand_waits_again_when_its_worker_is_gone():
    file = JobFile(0, "a.md", 10, "busy")
    assert (describe_file(file, True), describe_file(file, False)[0]) == (("busy", "embedding"), "waiting")


def ended(status, seconds_ago, **fields):
    job = Job(f"job_{status}", "ingest", "Add", status, completed_at=NOON - timedelta(seconds=seconds_ago), **fields)
    return JobView(job, FileTally(), NOON)


def test_the_tray_shows_failures_first_and_lets_what_ended_well_fold_away():
    running, queued = (JobView(Job(f"job_{s}", "ingest", "Add", s), FileTally(), NOON) for s in ("running", "queued"))
    assert tray_title([running, queued, ended("cancelled", 5)]) == "1 running · 1 queued · 1 cancelled"
    works = {
        work.job.id: work
        for work in (ended("completed", 5), ended("completed_with_errors", 900), running, ended("failed", 900))
    }
    shown = select_for_tray(works)
    assert list(shown) == ["job_completed_with_errors", "job_failed", "job_running", "job_completed"]
    assert tray_title(shown.values()) == "1 completed with errors · 1 failed · 1 running · 1 completed"
    assert select_for_tray({"job": ended("completed", 61)}) == {}
    assert select_for_tray({"job": ended("completed", 16)}) == {}
    for about in ({"result": {"notes": ["A copy."]}}, {"parameters": {"left_out": ["clip.mp4"]}}):
        assert select_for_tray({"job": ended("completed", 16, **about)})  # there is something to read


def test_the_tab_shows_a_failure_first_then_a_stall_then_the_slowest_job():
    def view(status, **fields):
        return JobView(Job("job", "ingest", "Add", status, **fields), FileTally(), NOON)

    slow, fast, waiting = view("running", share=0.129), view("running", share=0.8), view("queued")
    assert tab_state([fast, slow, waiting]) == "12%"
    assert tab_state([fast, view("running", share=0.5, stalled="Stalled: restart it.")]) == "stalled"
    assert tab_state([view("running", stalled="Stalled."), view("failed")]) == "failed"
    assert tab_state([fast, view("completed_with_errors")]) == "80%"
    assert tab_state([view("completed_with_errors")]) == "with errors"
    assert (tab_state([waiting]), tab_state([view("completed", completed_at=NOON)]), tab_state([])) == (
        "queued",
        "",
        "",
    )
