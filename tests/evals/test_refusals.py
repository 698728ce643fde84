"""Questions without an answer: their label, refusal precision and recall, and the threshold of an index."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evals.command import add_arguments, evaluate
from evals.experiments.answers import (
    RefusalPoint,
    Refusals,
    count_refusals,
    describe_refusals,
    describe_threshold,
)
from evals.test_set import Question
from evals.test_sets.exchange import import_csv, to_csv
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import TEXTS, WriteTestSet
from workbench import Workbench
from workbench.errors import InvalidInput


def measure_refusals(wb: Workbench, test_set: Path, strategy: str) -> Refusals:
    return wb.evaluate(test_set, strategy, ["ndcg@10"], on_progress=lambda _: None).refusals()[strategy]


@pytest.fixture
def marked(beir: WriteTestSet) -> Path:
    """A test set with two questions that its documents do not answer."""
    folder = beir()
    rows = [
        {"id": "n1", "text": "Which treaty ended the Thirty Years' War?", "answerable": False},
        {"id": "n2", "text": "How is cement made?", "metadata": {"answerable": False}},
        {"id": "n3", "text": "Is this judged?"},
    ]
    with (folder / "queries.jsonl").open("a") as file:
        file.write("\n" + "\n".join(map(json.dumps, rows)))
    return folder


def test_figures_of_refusals_can_be_checked_by_hand() -> None:
    refused = [True, False, True, False, False]  # the first two have no answer
    found = count_refusals(refused, [0.1, 0.3, 0.2, 0.6, 0.7], 2)
    assert (found.precision, found.recall) == (1 / 2, 1 / 2)
    assert (found.answerable, found.unanswerable, found.refused) == (3, 2, 2)
    assert found.curve == (
        RefusalPoint(0.15, 1.0, 0.5, 0.0),
        RefusalPoint(0.25, 0.5, 0.5, 0.3333),
        RefusalPoint(0.45, 0.6667, 1.0, 0.3333),
        RefusalPoint(0.65, 0.5, 1.0, 0.6667),
    )
    assert found.best == 0.45  # F1 .8; the others have .667, .5 and .667
    assert found.describe() == [
        "Refused 1 of 2 questions without an answer and 1 of 3 with one: precision 0.500, recall 0.500.",
        "Refusing below 0.450 would reach precision 0.667, recall 1.000.",
    ]
    none = count_refusals([False, False], [None, 0.5], 1)
    assert (none.precision, none.recall, none.curve, none.best) == (None, 0.0, (), None)


def test_the_label_is_read_stored_and_written(wb: Workbench, marked: Path) -> None:
    test_set = load_test_set(marked)
    assert [question.id for question in test_set.unanswerable] == ["n1", "n2"]
    assert [question.id for question in test_set.spread(1).questions] == ["q1", "n1"]
    stored = wb.test_sets.load(wb.test_sets.from_folder(marked, "Marked").id)
    assert stored.unanswerable == test_set.unanswerable and stored.questions_hash == test_set.questions_hash
    unmarked = [Question("n1", test_set.unanswerable[0].text)]
    assert {
        row["answerable"] for row in csv.DictReader(to_csv(stored).splitlines()) if "cement" in row["question"]
    } == {"no"}
    wb.test_sets.add_questions(wb.test_sets.info("Marked").id, unmarked)
    assert [question.id for question in wb.test_sets.load("Marked").unanswerable] == ["n2"]
    assert wb.test_sets.load("Marked").questions_hash != stored.questions_hash
    import_csv(wb, wb.test_sets, "Marked", f'question,answerable\n"{test_set.unanswerable[0].text}",no')
    assert [question.id for question in wb.test_sets.load("Marked").unanswerable] == ["n1", "n2"]


def test_the_command_measures_refusals_and_an_index_keeps_its_threshold(wb: Workbench, marked: Path) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    words = [str(marked), "--strategies", "hybrid", "--ragas", "none", "--metrics", "ndcg@10", "--refusals"]
    shown: list[str] = []
    payload, code = evaluate(wb, parser.parse_args(words), say=shown.append)
    assert code == 0 and "refusals" in payload
    found = payload["refusals"]["hybrid"]
    assert (found.answerable, found.unanswerable, found.refused, found.refused_rightly) == (5, 2, 2, 2)
    assert any(line.startswith("hybrid: Refused 2 of 2 questions without an answer and 0 of 5") for line in shown)
    [curve] = [line for line in shown if "Refusals of hybrid by threshold" in line]
    assert f"{found.best:.3f}" in curve and "answerable ones refused" in curve
    index = payload["index"]["name"]
    assert isinstance(index, str)
    wb.indexes.set_threshold(index, 0.0)
    assert measure_refusals(wb, marked, "hybrid").refused_rightly == 0
    wb.indexes.set_threshold(index, None)
    assert measure_refusals(wb, marked, "hybrid").refused_rightly == 2
    with pytest.raises(InvalidInput, match=r"Invalid similarity 1\.5"):
        wb.indexes.set_threshold(index, 1.5)


@pytest.mark.parametrize("strategy", ["hybrid", "keyword"])
def test_the_curve_is_what_an_index_with_its_thresholds_refuses(wb: Workbench, marked: Path, strategy: str) -> None:
    curve = measure_refusals(wb, marked, strategy).curve
    assert len(curve) >= {"hybrid": 2, "keyword": 1}[strategy]
    assert max(point.wrong for point in curve) < 1  # the words of a passage are evidence at any threshold
    index = wb.evaluate(marked, strategy, ["ndcg@10"], on_progress=lambda _: None).run.corpus.index.name
    for point in curve:
        wb.indexes.set_threshold(index, point.threshold)
        found = measure_refusals(wb, marked, strategy)
        wrong = (found.refused - found.refused_rightly) / found.answerable
        assert (found.recall, wrong) == (point.recall, point.wrong)


def test_an_experiment_with_answers_also_counts_refusals(wb: Workbench, marked: Path) -> None:
    info = wb.test_sets.from_folder(marked, "Marked")
    made = wb.experiments.create("Refused", info.id, ["hybrid", "keyword"], metrics=["ndcg@10"], answers=True)
    wb.experiments.run(made.id)
    scores, _ = wb.experiments.answers(made.id)
    found, alone = scores["hybrid"].refusals, measure_refusals(wb, marked, "hybrid")
    assert found is not None
    assert (found.refused, found.refused_rightly, found.best) == (2, 2, alone.best) and found.curve[1:] == alone.curve[
        1:
    ]
    assert (scores["hybrid"].questions, scores["hybrid"].refused) == (5, 0.0)  # those with an answer
    sentence = next(line for line in describe_refusals(scores, {"hybrid": "Hybrid"}) if line.startswith("Hybrid"))
    assert sentence.startswith("Hybrid: Refused 2 of 2 questions without an answer and 0 of 5")


def test_the_command_that_sets_the_threshold_is_shown_for_an_index_that_others_search(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder({f"{key}.md": f"# {title}\n\n{text}" for key, (title, text) in TEXTS.items()}))
    ids = {document.title: document.id for document in wb.documents.list()}
    wb.test_sets.create("Mine")
    unmarked, marked = Question("q1", "Why do cats purr?"), Question("n1", "How is cement made?")
    wb.test_sets.add_questions("Mine", [unmarked, replace(marked, metadata={"answerable": False})])
    wb.test_sets.judge("Mine", "q1", ids["Cats"], "relevant")
    made = wb.experiments.create("Own", "Mine", ["hybrid"], metrics=["mrr@10"], answers=True)
    wb.experiments.run(made.id)
    [found] = wb.experiments.answers(made.id)[0].values()
    assert found.refusals is not None and found.refusals.best is not None
    arguments = ["indexes", "update", "main", "--refuse-below", f"{found.refusals.best:g}"]
    assert describe_threshold(found.refusals, "main")[0].endswith(" ".join(["workbench", *arguments]))
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    shown: list[str] = []
    evaluate(
        wb, parser.parse_args(["Mine", "--strategies", "hybrid", "--ragas", "none", "--refusals"]), say=shown.append
    )
    assert any(line.endswith(" ".join(arguments)) for line in shown)


def test_without_marked_questions_there_is_nothing_to_refuse(wb: Workbench, beir: WriteTestSet) -> None:
    with pytest.raises(InvalidInput, match="is marked as without an answer; add some"):
        measure_refusals(wb, beir(), "keyword")
