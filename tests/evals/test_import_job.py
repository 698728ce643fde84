"""Importing test sets as jobs: by path, as a zip, stopped and resumed, and rejected before they start."""

from __future__ import annotations

import io
import threading
import zipfile
from pathlib import Path

import pytest

from evals.background import enqueue_import, enqueue_on_sample, make_runners, run_import
from evals.evaluation import make_cells
from evals.test_sets.store import TestSetStore
from tests.evals.conftest import WriteTestSet
from tests.evals.test_experiments import ASKED, MANY
from workbench import Workbench
from workbench.errors import InvalidInput
from workbench.jobs.sharing import Assignment, Job
from workbench.storage.jobs import Jobs
from workbench.types import Progress

LONG = 60.0  # seconds until a test gives up


def packed(folder: Path, inside: str = "words") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path in folder.rglob("*"):
            archive.write(path, Path(inside) / path.relative_to(folder))
    return stream.getvalue()


def test_a_folder_is_imported_by_a_worker(wb: Workbench, beir: WriteTestSet) -> None:
    folder = beir(MANY, ASKED)
    job = enqueue_import(wb, str(folder))
    assert job.id in {shown.id for shown in wb.jobs.in_view()}
    wb.work(make_runners(wb))
    done = wb.jobs.wait(job.id, timeout=LONG)
    assert (done.status, done.message) == ("completed", f"{folder.name}: 12 questions, 12 judgments.")
    assert (done.done, done.total) == (12, 12)  # documents
    info = TestSetStore(wb).info(str(done.result["test_set"]))
    assert (info.questions, info.judgments) == (12, 12)
    assert job.id in {shown.id for shown in wb.jobs.in_view()}  # until it is put away


def test_a_title_that_is_too_long_is_refused_before_the_sample_is_imported(wb: Workbench) -> None:
    with pytest.raises(InvalidInput, match="at most 300"):
        enqueue_on_sample(wb, "t" * 301, make_cells(["keyword"]), metrics=["mrr@10"], limit=None, ragas="none")
    assert not wb.jobs.list()


class HeardAssignment(Assignment):
    """A job with an assignment that records its reports."""

    def __init__(self, job: Job, jobs: Jobs) -> None:
        super().__init__(job, jobs, threading.Event())
        self.heard: list[Progress] = []

    def progress(self, progress: Progress) -> None:
        self.heard.append(progress)


def test_a_corpus_of_one_batch_is_counted_while_it_goes_through_the_model(wb: Workbench, beir: WriteTestSet) -> None:
    assignment = HeardAssignment(enqueue_import(wb, str(beir(MANY, ASKED))), wb.jobs.table)
    run_import(wb, assignment)
    far = [progress.done + progress.part for progress in assignment.heard]
    assert far == sorted(far) and {progress.total for progress in assignment.heard} == {12}
    assert any(1 < each < 12 for each in far)


def test_a_zip_is_imported_under_its_name_and_deleted(wb: Workbench, beir: WriteTestSet) -> None:
    job = enqueue_import(wb, archive=("Our words.zip", packed(beir(MANY, ASKED))))
    wb.work(make_runners(wb))
    done = wb.jobs.wait(job.id, timeout=LONG)
    assert TestSetStore(wb).info("Our words").id == done.result["test_set"]
    assert wb.jobs.table.files.uploads(job.id) == []


def test_an_import_that_was_cancelled_is_resumed(wb: Workbench, beir: WriteTestSet) -> None:
    job = enqueue_import(wb, archive=("words.zip", packed(beir(MANY, ASKED))))
    wb.jobs.cancel(job.id)
    assert wb.jobs.wait(job.id, timeout=LONG).status == "cancelled"
    assert wb.jobs.resume(job.id).status == "queued"
    wb.work(make_runners(wb))
    assert wb.jobs.wait(job.id, timeout=LONG).status == "completed"
    assert TestSetStore(wb).info("words").questions == 12


def test_a_corpus_in_which_nothing_can_be_read_leaves_nothing_behind(wb: Workbench, beir: WriteTestSet) -> None:
    folder = beir(dict.fromkeys(MANY, ("", "")), ASKED)
    wb.work(make_runners(wb))
    done = wb.jobs.wait(enqueue_import(wb, str(folder)).id, timeout=LONG)
    assert (done.status, str(done.error)[:45]) == ("failed", "None of the 12 documents could be read; the f")
    assert wb.sources.list(source_type="dataset") == []
    assert [index.name for index in wb.corpus.indexes.list()] == [wb.corpus.index().name]
    assert TestSetStore(wb).list() == []


def test_what_cannot_be_imported_is_refused_before_a_job_is_made(wb: Workbench, tmp_path: Path) -> None:
    for path, archive, said in (
        (None, None, "Choose a zip, or enter the path"),
        (str(tmp_path / "nowhere"), None, "There is no folder"),
        (None, ("x.zip", b"no zip"), "is not readable"),
        (None, ("x.zip", packed(tmp_path)), "has no queries.jsonl"),
    ):
        with pytest.raises(InvalidInput, match=said):
            enqueue_import(wb, path, archive=archive)
    assert wb.jobs.list() == []
