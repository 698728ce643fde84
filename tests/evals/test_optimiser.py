"""The search for parameters: finds what is planted, reports it on questions it did not see, and ends in time."""

from __future__ import annotations

import itertools
import random

import pytest

from evals.corpus import index_corpus
from evals.dataset import Dataset, Question
from evals.datasets import load_dataset
from evals.optimiser import candidates, draw, optimise, split
from tests.evals.conftest import WriteDataset
from workbench import Workbench
from workbench.errors import InvalidInput
from workbench.types import Parameter

NUMBERS = range(40)
# Every document holds its question's rare word; all share the same other words, so that only keyword search tells.
TEXTS = {f"d{n}": (f"Note {n}", f"The archive keeps item zq{n}x among many other things.") for n in NUMBERS}
ASKED = {f"q{n}": (f"Where in the archive is zq{n}x?", {f"d{n}": 1}) for n in NUMBERS}


@pytest.fixture
def dataset(beir: WriteDataset) -> Dataset:
    return load_dataset(beir(TEXTS, ASKED))


def test_a_search_finds_good_weights_and_reports_them_on_the_held_out_half(wb: Workbench, dataset: Dataset) -> None:
    ticks = itertools.count(step=0.5)  # half a second passes at every look at the clock
    corpus = index_corpus(wb, dataset)
    found = optimise(wb, dataset, corpus, ["hybrid", "keyword"], 24, clock=lambda: float(next(ticks)))
    assert (found.tuning_questions, found.held_out_questions) == (20, 20)
    assert found.tried > 5
    values = [finalist.held_out for finalist in found.finalists]
    assert values == sorted(values, reverse=True) and values[0] >= 0.99
    assert {finalist.candidate.strategy for finalist in found.finalists if finalist.is_default} == {"hybrid", "keyword"}
    assert any(finalist.on_front for finalist in found.finalists)
    assert all(finalist.against_default for finalist in found.finalists if not finalist.is_default)


def test_however_short_the_time_the_defaults_are_measured(wb: Workbench, dataset: Dataset) -> None:
    found = optimise(wb, dataset, index_corpus(wb, dataset), ["vector"], 1e-6)
    assert [finalist.is_default for finalist in found.finalists] == [True]


def test_the_split_is_the_same_every_time_and_shares_no_question() -> None:
    questions = [Question(f"q{n}", "?") for n in range(31)]
    tuning, held_out = split(questions)
    assert (len(tuning), len(held_out)) == (15, 16)
    assert {question.id for question in tuning}.isdisjoint(question.id for question in held_out)
    assert split(list(reversed(questions))) == (tuning, held_out)


def test_drawn_values_are_valid_and_repeatable() -> None:
    drawn = list(itertools.islice(candidates(["hybrid", "rerank", "vector"], seed=3), 50))
    assert drawn == list(itertools.islice(candidates(["hybrid", "rerank", "vector"], seed=3), 50))
    assert {candidate.strategy for candidate in drawn} >= {"hybrid", "rerank"}
    rng = random.Random(1)
    whole = Parameter("candidates", "int", 50, "", 10, 200)
    assert {type(draw(whole, rng)) for _ in range(20)} == {int}
    assert {draw(Parameter("on", "bool", True, ""), rng) for _ in range(20)} == {True, False}


def test_too_few_questions_or_no_time_are_refused(wb: Workbench, dataset: Dataset) -> None:
    corpus = index_corpus(wb, dataset)
    with pytest.raises(InvalidInput, match="at least 20"):
        optimise(wb, dataset.first(19), corpus, ["hybrid"], 10)
    with pytest.raises(InvalidInput, match="0 seconds"):
        optimise(wb, dataset, corpus, ["hybrid"], 0)
