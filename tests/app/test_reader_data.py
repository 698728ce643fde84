"""A document split into tinted pieces."""

from hypothesis import given
from hypothesis import strategies as st

from workbench.app.widgets.reader import parse_place
from workbench.app.widgets.source_places import split_by_passages

spans = st.lists(st.tuples(st.integers(-5, 40), st.integers(-5, 40)).map(sorted).map(tuple), max_size=6)


@given(st.text(max_size=30), spans, st.none() | st.tuples(st.integers(0, 20), st.integers(20, 40)))
def test_the_stretches_are_the_text_again(text, passages, found):
    assert "".join(stretch["text"] for stretch in split_by_passages(text, passages, found)) == text


def test_passages_are_tinted_in_turn_and_gaps_are_bare():
    kinds = [
        (part["text"], part["kind"], part["passage"])
        for part in split_by_passages("aabbccdd", [(0, 2), (2, 4), (6, 8)])
    ]
    assert kinds == [("aa", "odd", 1), ("bb", "even", 2), ("cc", "bare", None), ("dd", "odd", 3)]


def test_what_two_passages_share_is_an_overlap():
    assert [part["kind"] for part in split_by_passages("aabbcc", [(0, 4), (2, 6)])] == ["odd", "overlap", "even"]


def test_the_found_span_is_found_whatever_holds_it():
    assert [part["kind"] for part in split_by_passages("aabbcc", [(0, 4), (4, 6)], (2, 5))] == [
        "odd",
        "found",
        "found",
        "even",
    ]


def test_a_place_in_the_address_is_two_numbers_or_nothing():
    assert parse_place("120-480") == (120, 480)
    assert [parse_place(bad) for bad in ("", "5", "9-3", "a-b", "-1-4", "' OR 1=1")] == [None] * 6
