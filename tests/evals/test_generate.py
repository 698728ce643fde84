"""Generated questions, over the user's documents and over a separate corpus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evals.background import enqueue_questions, make_runners
from evals.experiments import runs
from evals.gateway import index_corpus
from evals.judges.endpoint import Endpoint
from evals.judges.generation import BATCH, add_llm_questions, add_synthetic
from evals.test_sets.folders import list_sample_documents, load_test_set
from evals.test_sets.store import TestSetStore
from tests.evals.conftest import StartJudge, WriteTestSet
from workbench import Workbench
from workbench.errors import Cancelled, InvalidInput
from workbench.settings import Settings
from workbench.types import Progress

LONG = " ".join(f"Herons stand still in shallow water, as note {n} says." for n in range(8))


def test_rules_make_questions_over_a_persons_documents_that_can_be_run(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    files = {f"{item.key}.md": item.load() for item in list_sample_documents()[:20]}
    wb.ingest(folder(files), source="Sample")
    store = TestSetStore(wb)
    key = store.create("Made").id
    report = add_synthetic(wb, store, key, 5)
    test_set = store.load(key)
    assert (report.questions, len(test_set.answerable)) == (5, 5)
    run = runs.run_strategies(wb, test_set, index_corpus(wb, test_set), ["keyword"]).strategies["keyword"]
    assert run.means["recall@10"] > 0.9
    assert add_synthetic(wb, store, key, 5).questions == 5  # the same ones, which take the place of the old ones
    assert len(store.load(key).questions) == 5
    many = add_synthetic(wb, store, key, 500)
    assert "of 500 questions: only" in many.problems[0]


def test_an_llm_writes_questions_over_a_corpus_of_its_own(
    wb: Workbench, beir: WriteTestSet, start_judge: StartJudge
) -> None:
    store = TestSetStore(wb)
    texts = {"herons": ("Herons", LONG), "short": ("Short", "Too short.")}
    key = store.add(load_test_set(beir(texts, {"q1": ("Herons?", {"herons": 1})}))).id
    refused = add_llm_questions(wb, store, key, 3, start_judge("nonsense"))
    assert refused.questions == 0 and refused.problems[0].startswith("1 passages got no question")
    assert add_llm_questions(wb, store, key, 3, start_judge("good")).questions == 1
    written = [question for question in store.load(key).questions if question.origin == "llm"]
    assert written[0].reference_answer.startswith("Herons stand still")
    with pytest.raises(InvalidInput, match="No passage without a question"):
        add_llm_questions(wb, store, key, 3, start_judge("good"))


def test_an_llm_writes_questions_in_a_job_that_keeps_finished_batches_when_it_is_cancelled(
    make_settings: Callable[..., Settings], folder: Callable[..., Path], start_judge: StartJudge
) -> None:
    settings = make_settings(llm_base_url=start_judge("good")._base_url, llm_model="small")
    with Workbench.open(settings=settings) as wb:
        wb.ingest(folder({f"{n}.md": f"# Note {n}\n\n{LONG} Number {n}." for n in range(BATCH + 2)}), source="Notes")
        store = TestSetStore(wb)
        key = store.create("Made").id
        seen: list[Progress] = []
        with pytest.raises(Cancelled):  # when the second batch starts
            endpoint = Endpoint.from_workbench(wb)
            add_llm_questions(wb, store, key, 1_000, endpoint, seen.append, lambda: len(seen) > 1)
        assert [(step.done, step.total) for step in seen] == [(0, BATCH + 2), (BATCH, BATCH + 2)]
        assert len(store.load(key).questions) == BATCH
        job = enqueue_questions(wb, key, 1_000)
        wb.work(make_runners(wb))
        ended = wb.jobs.wait(job.id, timeout=60)
        assert (ended.status, ended.message) == ("completed", "2 questions added.")
        assert ended.result == {"test_set": key} and len(store.load(key).questions) == BATCH + 2


def test_without_documents_nothing_can_be_made(wb: Workbench, start_judge: StartJudge) -> None:
    store = TestSetStore(wb)
    key = store.create("Empty").id
    with pytest.raises(InvalidInput, match="add some first"):
        add_synthetic(wb, store, key, 3)
    with pytest.raises(InvalidInput, match="at least 1"):
        add_llm_questions(wb, store, key, 0, start_judge("good"))
