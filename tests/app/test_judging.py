"""Judgments made on the board: which test sets are offered, what is stored and what is omitted."""

from dataclasses import replace

import pytest

from evals.test_set import Judgment, Question, TestSet
from evals.test_sets.store import TestSetStore
from workbench.app.compare.judging import QuestionJudging, list_own_test_sets, measure_progress, read_marks
from workbench.app.compare.matches import find_same_places, place_key
from workbench.errors import InvalidInput


@pytest.fixture
def compared(wb, folder):
    """A comparison over two documents."""
    wb.ingest(folder({"a.md": "# Tide\n\nThe tide rises.", "b.md": "# Bread\n\nBread rises."}), source="Rising")
    return wb.compare("What rises?", strategies=["keyword", "vector"])


@pytest.fixture
def judging(wb, compared):
    """A test set that does not contain the question yet."""
    return QuestionJudging(wb, TestSetStore(wb).create("Mine"), "  what\x00 RISES? ")


def test_the_first_judgment_brings_the_question_along_and_the_next_ones_do_not(wb, compared, judging):
    first, second = compared.strategies["vector"]
    judging.keep(compared, [(1, place_key(first), 2)])
    judging.keep(compared, [(2, place_key(second), 0)])
    dataset = TestSetStore(wb).load("Mine")
    assert [question.text for question in dataset.questions] == ["what RISES?"]
    assert [(j.document, j.start, j.end, j.quote, j.grade) for j in dataset.judgments] == [
        (first.document_id, first.start, first.end, first.text, 2),
        (second.document_id, second.start, second.end, second.text, 0),
    ]


def test_of_several_marks_on_a_place_the_last_one_counts_and_taking_back_leaves_nothing(compared, judging):
    first, second = (place_key(hit) for hit in compared.strategies["vector"])
    judging.keep(compared, [(1, first, 2), (2, first, 1), (3, second, 2)])
    assert judging.grades() == {first: 1, second: 2}
    judging.keep(compared, [(4, second, None)])
    assert judging.grades() == {first: 1}


def test_a_judgment_is_found_again_on_a_passage_that_is_cut_differently(wb, compared, judging):
    judged = compared.strategies["vector"][0]
    middle = (judged.start + judged.end) // 2

    def cut(start, end):
        """Return the comparison as another index would return it, with passages split at other positions."""
        hit = replace(judged, start=start, end=end)
        return replace(compared, strategies={"vector": replace(compared.strategies["vector"], results=(hit,))})

    judging.keep(compared, [(1, place_key(judged), 2)])
    half, wider, next_one = (
        cut(judged.start, middle),
        cut(judged.start, judged.end + 99),
        cut(judged.end, judged.end + 9),
    )
    for places in (half, wider):
        place = place_key(places.strategies["vector"][0])
        assert find_same_places(places, judging.grades()) == {place: [place_key(judged)]}
    assert find_same_places(next_one, judging.grades()) == find_same_places(compared, judging.grades()) == {}


def test_a_judgment_on_a_copy_counts_for_the_passage_it_is_folded_under(wb, folder):
    wb.ingest(folder({"notice.md": "The tide rises.", "notice copy.md": "The tide rises."}), source="Notices")
    [best] = wb.search("What rises?", strategy="keyword")
    [copy] = best.copies
    comparison = wb.compare("What rises?", strategies=["keyword", "vector"])
    judged = f"{copy.document_id}:{copy.start}-{copy.end}"
    assert find_same_places(comparison, [judged])[place_key(best)] == [judged]


def test_a_mark_returns_the_grade_that_it_replaced_without_the_board_having_shown_it(compared, judging):
    first, second = (place_key(hit) for hit in compared.strategies["vector"])
    title = compared.strategies["vector"][0].document_title
    assert judging.keep(compared, [(1, first, 2), (2, second, 1)], {}) == []
    assert judging.keep(compared, [(3, first, 0), (4, second, 1)], {}) == [f'"{title}" was relevant']
    assert judging.keep(compared, [(5, first, None)], {first: 0}) == []  # the board showed it


def test_what_the_board_does_not_show_cannot_be_judged(wb, compared, judging):
    judging.keep(compared, [(1, "doc_elsewhere:0-5", 2)])
    assert TestSetStore(wb).info("Mine").version == 1
    with pytest.raises(InvalidInput, match="relevant"):
        judging.keep(compared, [(2, place_key(compared.strategies["vector"][0]), 999)])


def test_marks_already_kept_are_not_read_again():
    sent = {"marks": [[1, "a", 2], [2, "b", None]]}
    assert read_marks(sent, 1) == [(2, "b", None)]
    assert read_marks(None, 0) == read_marks({}, 0) == read_marks({"marks": None}, 0) == []


def test_only_test_sets_over_the_persons_own_sources_are_offered(wb, judging):
    assert [info.title for info in list_own_test_sets(wb)] == ["Mine"]


def test_a_round_leads_to_what_is_not_judged_yet_around_the_end_of_the_list() -> None:
    questions = tuple(Question(f"q{n}", text) for n, text in enumerate(("one", "two", "three")))
    judged = (Judgment("q2", "d1"), Judgment("q2", "d2"))
    going = measure_progress(TestSet("set", questions, judged), " Two ")
    assert (going.place, going.done, going.judged) == (1, 1, (0, 0, 2))
    assert (going.previous, going.next) == ("one", "one")
    outside = measure_progress(TestSet("set", questions, judged), "four")
    assert (outside.place, outside.previous, outside.next) == (None, "three", "one")
    every = tuple(Judgment(question.id, "d") for question in questions)
    assert measure_progress(TestSet("set", questions, every), "one").next is None
