"""Tuning finds planted parameters, reports scores on held-out questions, and ends in time."""

from __future__ import annotations

import itertools
import random

import pytest

from evals.experiments.tuning import StoredAnswers, draw_candidates, draw_value, make_defaults, split_questions, tune
from evals.gateway import index_corpus
from evals.test_set import Question, TestSet
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet
from workbench import Workbench
from workbench.errors import Cancelled, InvalidInput
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Parameter

NUMBERS = range(40)
# Every document holds its question's rare word; the other words are the same, so only keyword search differs.
TEXTS = {f"d{n}": (f"Note {n}", f"The archive keeps item zq{n}x among many other things.") for n in NUMBERS}
ASKED = {f"q{n}": (f"Where in the archive is zq{n}x?", {f"d{n}": 1}) for n in NUMBERS}


@pytest.fixture
def test_set(beir: WriteTestSet) -> TestSet:
    return load_test_set(beir(TEXTS, ASKED))


def test_a_search_finds_good_weights_and_reports_them_on_the_held_out_half(wb: Workbench, test_set: TestSet) -> None:
    ticks = itertools.count(step=0.05)  # each reading of the clock advances it by a twentieth of a second
    corpus = index_corpus(wb, test_set)
    found = tune(wb, test_set, corpus, ["hybrid", "keyword"], 24, clock=lambda: float(next(ticks)))
    assert (found.tuning_questions, found.held_out_questions) == (20, 20)
    assert found.tried > 5
    values = [finalist.held_out for finalist in found.finalists]
    assert values == sorted(values, reverse=True) and values[0] >= 0.99
    assert {finalist.candidate.strategy for finalist in found.finalists if finalist.is_default} == {"hybrid", "keyword"}
    assert any(finalist.on_front for finalist in found.finalists)
    assert all(finalist.against_default for finalist in found.finalists if not finalist.is_default)


def test_however_short_the_time_the_defaults_are_measured(wb: Workbench, test_set: TestSet) -> None:
    found = tune(wb, test_set, index_corpus(wb, test_set), ["vector"], 1e-6)
    assert [finalist.is_default for finalist in found.finalists] == [True]


def test_a_search_keeps_to_its_time_and_reports_what_it_could_not_do(wb: Workbench, test_set: TestSet) -> None:
    ticks = itertools.count(step=1.0)  # a second passes at every look at the clock, so a question takes one
    corpus = index_corpus(wb, test_set)
    found = tune(wb, test_set, corpus, ["hybrid"], 24, clock=lambda: float(next(ticks)))
    assert found.seconds < 36  # the defaults on 12 questions of each half, which it needs, and looks at the clock
    assert (found.tuning_questions, found.held_out_questions, found.varied) == (12, 12, found.tried - 1)
    assert "There was time for 12 of the 20 questions of each half." in found.notes


def test_progress_is_reported_after_each_question(wb: Workbench, test_set: TestSet) -> None:
    ticks, reported = itertools.count(step=1.0), []
    tune(
        wb, test_set, index_corpus(wb, test_set), ["hybrid"], 24, clock=lambda: float(next(ticks)),
        on_progress=reported.append,
    )  # fmt: skip
    assert [progress.done for progress in reported[:12]] == [*range(reported[0].done, reported[0].done + 12)]
    assert {progress.message for progress in reported[:12]} == {"0 settings tried, currently on 12 questions"}


def test_a_strategy_without_parameters_is_reported_to_have_nothing_to_vary(wb: Workbench, test_set: TestSet) -> None:
    plain = next(name for name, strategy in STRATEGIES.items() if not strategy.parameters and not strategy.needs)
    found = tune(wb, test_set, index_corpus(wb, test_set), [plain], 1)
    assert (found.tried, found.varied) == (1, 0)
    assert found.notes[0] == "None of these strategies has a parameter, so there was nothing to vary."


def test_a_search_that_was_stopped_continues_with_the_answers_it_has(wb: Workbench, test_set: TestSet) -> None:
    corpus = index_corpus(wb, test_set)
    looks = itertools.count()
    with pytest.raises(Cancelled, match="to continue the search"):
        tune(
            wb, test_set, corpus, ["hybrid"], 30, book=StoredAnswers(wb, test_set, corpus, 10),
            should_stop=lambda: next(looks) > 40,
        )  # fmt: skip
    candidate = make_defaults(["hybrid"])[0]
    before = StoredAnswers(wb, test_set, corpus, 10).load_answers(candidate)
    assert len(before) >= 12
    book = StoredAnswers(wb, test_set, corpus, 10)
    found = tune(wb, test_set, corpus, ["hybrid"], 2, spent=1.0, book=book)
    after = book.load_answers(candidate)
    assert {key: after[key] for key in before} == before  # the same answers, latencies included: not asked again
    assert found.finalists and found.varied >= 1  # the settings of the first attempt count
    book.close()
    assert StoredAnswers(wb, test_set, corpus, 10).load_answers(candidate) == {}


def test_the_split_is_the_same_every_time_and_shares_no_question() -> None:
    questions = [Question(f"q{n}", "?") for n in range(31)]
    tuning, held_out = split_questions(questions)
    assert (len(tuning), len(held_out)) == (15, 16)
    assert {question.id for question in tuning}.isdisjoint(question.id for question in held_out)
    assert split_questions(list(reversed(questions))) == (tuning, held_out)


def test_drawn_values_are_valid_and_repeatable() -> None:
    drawn = list(itertools.islice(draw_candidates(["hybrid", "rerank", "vector"]), 50))
    assert drawn == list(itertools.islice(draw_candidates(["hybrid", "rerank", "vector"]), 50))
    assert {candidate.strategy for candidate in drawn} >= {"hybrid", "rerank"}
    rng = random.Random(1)
    whole = Parameter("candidates", "int", 50, "", 10, 200)
    assert {type(draw_value(whole, rng)) for _ in range(20)} == {int}
    assert {draw_value(Parameter("on", "bool", True, ""), rng) for _ in range(20)} == {True, False}


def test_too_few_questions_or_no_time_are_refused(wb: Workbench, test_set: TestSet) -> None:
    corpus = index_corpus(wb, test_set)
    with pytest.raises(InvalidInput, match="at least 20"):
        tune(wb, test_set.spread(19), corpus, ["hybrid"], 10)
    with pytest.raises(InvalidInput, match="limit of 0 s"):
        tune(wb, test_set, corpus, ["hybrid"], 0)
