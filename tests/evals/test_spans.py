"""Token-level metrics compared with sets of characters, and quotes found although reading changed white space."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.measure import precision_omega
from evals.measures.metrics import Range, measure_spans
from evals.test_sets.exchange import locate_quote

RANGE = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 40), st.integers(1, 15)).map(
    lambda given: (given[0], given[1], given[1] + given[2])
)


def characters(ranges: list[Range]) -> set[tuple[str, int]]:
    return {(document, place) for document, start, end in ranges for place in range(start, end)}


@settings(max_examples=150, deadline=None)
@given(st.lists(RANGE, max_size=5), st.lists(RANGE, max_size=6))
def test_every_measure_equals_its_definition_over_sets_of_characters(
    relevant: list[Range], retrieved: list[Range]
) -> None:
    hit = len(characters(relevant) & characters(retrieved))
    missed = len(characters(relevant) - characters(retrieved))
    total = sum(end - start for _, start, end in retrieved)
    found = measure_spans(relevant, retrieved)
    assert found["span-recall"] == pytest.approx(hit / (hit + missed) if relevant else 0, abs=1e-9)
    assert found["span-precision"] == pytest.approx(hit / total if total else 0, abs=1e-9)
    assert found["span-iou"] == pytest.approx(hit / (total + missed) if total + missed else 0, abs=1e-9)


def test_numbers_that_can_be_checked_by_hand() -> None:
    # 10 wanted; 6 of them retrieved, in 20 characters: 6/10, 6/20, 6/(20 + 4)
    found = measure_spans([("a", 10, 20)], [("a", 14, 24), ("b", 10, 20)])
    assert found == {"span-recall": 0.6, "span-precision": 0.3, "span-iou": 0.25}


def test_a_long_span_takes_no_memory_for_its_characters() -> None:
    tracemalloc.start()
    found = measure_spans([("a", 0, 10**6)], [("a", 10**6 - 10, 10**6), ("a", 5, 5), ("b", 0, 10**6)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == {"span-recall": 1e-5, "span-precision": 10 / (10**6 + 10), "span-iou": 10 / (2 * 10**6)}
    assert peak < 10**5  # bytes


def test_what_a_perfect_retriever_would_reach_leaves_out_passages_that_touch_nothing() -> None:
    assert precision_omega([("a", 0, 10)], [("a", 0, 20), ("a", 20, 40), ("b", 0, 10)]) == 0.5


@pytest.mark.parametrize(
    ("text", "quote", "near", "place"),
    [
        ("one two one two", "one two", 9, (8, 15)),
        ("a cat\nsat down", "cat sat", 0, (2, 9)),
        ("prices (in $) fell", "(in $)", 0, (7, 13)),
        ("caf\u00e9 open", "cafe\u0301", 0, (0, 4)),
        ("nothing here", "nowhere", 0, None),
        ("blank", " ", 0, None),
        ("", "x", 0, None),
    ],
)
def test_a_quote_is_found_nearest_to_its_former_position(
    text: str, quote: str, near: int, place: tuple[int, int] | None
) -> None:
    assert locate_quote(text, quote, near) == place
