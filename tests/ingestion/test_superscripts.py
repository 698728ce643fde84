"""Superscripts as plain text."""

from __future__ import annotations

import pytest

from workbench.ingestion.text import format_superscript


@pytest.mark.parametrize(
    ("before", "raised", "text"),
    [
        ("3 × 10", "6", "3 × 10⁶"),
        ("10", "-19", "10⁻¹⁹"),
        ("10", "k-1", "10^(k-1)"),
        ("120 m", "2", "120 m²"),
        ("E = mc", "2", "E = mc²"),
        ("million crowns", "3", "million crowns[3]"),
        ("the report.", "1, 2", "the report.[1, 2]"),
        ("the report", "(2)", "the report(2)"),
        ("the 5", "th", "the 5th"),
    ],
)
def test_a_superscript_never_joins_the_word_before_it(before: str, raised: str, text: str) -> None:
    assert before + format_superscript(raised, before) == text
