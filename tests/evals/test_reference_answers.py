"""Answers compared with reference answers: punctuation and case are ignored, and the command reports shares."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from evals.command import add_arguments, evaluate
from evals.experiments.answers import ask_answers, contains_answer, measure_answers
from evals.experiments.runs import Budget, Ranking, list_changed
from evals.gateway import index_corpus
from evals.test_set import TestSet
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet
from workbench import Workbench
from workbench.errors import InvalidInput
from workbench.retrieval.strategies import check_parameters

TEXTS = {
    "tide": ("Tides", "The tide turns every six hours in this harbour. Boats wait for it at the outer buoy."),
    "bread": ("Bread", "Rye bread rises for two hours beside the oven. The baker begins at three in the morning."),
}
ASKED = {"q1": ("How often does the tide turn?", {"tide": 1}), "q2": ("How long does rye bread rise?", {"bread": 1})}


@pytest.fixture
def answered(beir: WriteTestSet) -> Path:
    """A test set in which one of two reference answers is in the documents."""
    folder = beir(TEXTS, ASKED)
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    references = {"q1": "Every SIX hours", "q2": "a week"}
    lines = [json.dumps(row | {"reference_answer": references[row.get("_id", row.get("id"))]}) for row in rows]
    (folder / "queries.jsonl").write_text("\n".join(lines))
    return folder


def ask_hybrid(wb: Workbench, test_set: TestSet) -> list[dict[str, Ranking]]:
    """Answer the questions with ``hybrid``, once."""
    return ask_answers(wb, test_set, index_corpus(wb, test_set), "hybrid", {}, repeats=1, budget=Budget())


def test_an_answer_holds_whole_words_in_their_order_whatever_the_marks() -> None:
    assert contains_answer("It turns every six hours [1].", "Every six hours!")
    assert not contains_answer("It turned six times", "turn")
    assert not contains_answer("hours every six", "every six hours")


def test_the_share_of_answers_that_hold_the_reference_is_measured(wb: Workbench, answered: Path) -> None:
    test_set = load_test_set(answered)
    measured = measure_answers(test_set, ask_hybrid(wb, test_set))
    assert (measured.questions, measured.holding, measured.refused) == (2, 0.5, 0.0)
    assert 5 <= measured.words <= 40


def test_an_experiment_asks_with_the_defaults_of_answers_unless_a_parameter_was_changed() -> None:
    assert list_changed("hybrid", check_parameters("hybrid", None)) == {}
    assert list_changed("hybrid", check_parameters("hybrid", {"cutoff": 0.3})) == {"cutoff": 0.3}


def test_the_command_reports_it(wb: Workbench, answered: Path) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    words = [str(answered), "--strategies", "hybrid", "--ragas", "none", "--answers"]
    told: list[str] = []
    payload, code = evaluate(wb, parser.parse_args(words), say=told.append)
    assert code == 0 and "answers" in payload and payload["answers"]["hybrid"].holding == 0.5
    assert "the share that contains the reference answer" in "".join(told)


def test_without_reference_answers_only_citations_are_measured(wb: Workbench, beir: WriteTestSet) -> None:
    test_set = load_test_set(beir(TEXTS, ASKED))
    measured = measure_answers(test_set, ask_hybrid(wb, test_set))
    assert measured.holding is None and measured.lead == "citation-recall" and measured.citation_precision is not None
    with pytest.raises(InvalidInput, match="has a relevant document; judge some first"):
        ask_hybrid(wb, replace(test_set, judgments=()))
