"""Training as a job: a worker trains, reports progress, can be stopped, and its result is a ranker."""

from __future__ import annotations

import pytest

from evals.background import enqueue_learn, make_runners
from evals.test_sets.folders import load_test_set
from evals.test_sets.store import TestSetStore
from tests.evals.conftest import WriteTestSet
from tests.evals.test_learning import ASKED, TEXTS
from workbench import Workbench
from workbench.errors import InvalidInput, NotFound
from workbench.retrieval.ranker import read_ranker
from workbench.types import as_object

LONG = 60.0  # seconds until a test gives up


@pytest.fixture
def archive(wb: Workbench, beir: WriteTestSet) -> str:
    return TestSetStore(wb).add(load_test_set(beir(TEXTS, ASKED, name="archive"))).id


def test_a_worker_learns_and_what_it_found_outlives_its_test_set(wb: Workbench, archive: str) -> None:
    job = enqueue_learn(wb, archive)
    wb.work(make_runners(wb))
    version = TestSetStore(wb).info(archive).version
    done = wb.jobs.wait(job.id, timeout=LONG)
    assert done.status == "completed" and done.message.startswith("Worth promoting: +")
    assert (done.done, done.total) == (5, 5)  # the folds
    told = read_ranker(as_object(as_object(done.result)["ranker"]))
    kept = wb.rankers.save(told)
    assert (kept.trained_on, kept.version, kept.questions, kept.index) == ("archive", version, 36, "main")
    TestSetStore(wb).delete(archive)
    assert wb.rankers.get(kept.name).weights == told.weights


def test_a_job_that_is_cancelled_keeps_nothing(wb: Workbench, archive: str) -> None:
    job = enqueue_learn(wb, archive)
    wb.jobs.cancel(job.id)
    wb.work(make_runners(wb))
    assert wb.jobs.wait(job.id, timeout=LONG).status == "cancelled"
    assert [ranker.name for ranker in wb.rankers.list()] == ["default"]


def test_what_cannot_be_learned_is_refused_before_it_is_queued(wb: Workbench, archive: str) -> None:
    store = TestSetStore(wb)
    store.create("Small")
    with pytest.raises(InvalidInput, match=r"'Small' has 0 judged questions; training needs 30\. Judge 30 more"):
        enqueue_learn(wb, "Small")
    with pytest.raises(NotFound):
        enqueue_learn(wb, "nowhere")
    with pytest.raises(NotFound, match="lost"):
        enqueue_learn(wb, archive, "lost")
    assert not wb.jobs.list(kind="learn")
