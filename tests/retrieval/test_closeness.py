"""Coverage and closeness of a question's words in a text, checked by hand."""

from __future__ import annotations

import pytest

from workbench.retrieval.highlight import QueryWord, compute_coverage, compute_coverage_and_closeness, query_words
from workbench.retrieval.query import Words
from workbench.storage.passages import QueryTerm, ScopeTotals, TermWeights

SHEEP, HILLS = QueryWord("sheep", 2.0, is_whole=True), QueryWord("hill", 1.0)


@pytest.mark.parametrize(
    ("text", "covered", "close"),
    [
        ("sheep hills", 1.0, 1 / (1 + 1 / 12) / 3),  # one character between them
        ("sheep on the far hills", 1.0, 1 / (1 + 12 / 12) / 3),
        ("hills, and at the end of a long way sheep; sheep hill", 1.0, 1 / (1 + 1 / 12) / 3),  # the best place
        ("sheepdogs uphill", 0.0, 0.0),
        ("a hillside", 1 / 3, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_words_are_found_and_their_nearness_counted(text: str, covered: float, close: float) -> None:
    assert compute_coverage_and_closeness(text, [SHEEP, HILLS]) == pytest.approx((covered, close))
    assert compute_coverage(text, [SHEEP, HILLS]) == pytest.approx(covered)


def test_the_words_of_a_question_are_its_terms_as_far_as_they_agree_with_what_was_typed() -> None:
    terms = (QueryTerm("hill", 1, 2, 2, 10), QueryTerm("fli", 2, 1, 3, 10), QueryTerm("京都", 3, 1, 0, 10))
    words = Words(
        terms, ScopeTotals(10, 20.0, ("english",)), TermWeights((1, 2, 3), (1.0, 1.0, 1.0), (1, 1, 1), 1.0, 1.0, 10)
    )
    asked = {word.text: word for word in query_words("the hills fly 京都", words)}
    assert set(asked) == {"hill", "fly", "京都"}
    assert (asked["hill"].is_whole, asked["fly"].is_whole, asked["京都"].is_gram) == (False, True, True)
    assert asked["fly"].weight > asked["hill"].weight  # it is rarer
    assert compute_coverage("昔の京都の町", [asked["京都"]]) == 1.0
    assert query_words("the", Words((), ScopeTotals(10, 20.0, ("english",)), TermWeights((), (), (), 1, 1, 10))) == ()
