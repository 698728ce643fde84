"""The greatest length of texts and answers."""

from __future__ import annotations

import pytest

from mcp_app.fitting import LONGEST_TEXT, cut, one_line, tokens, within


def test_a_text_is_cut_at_the_length_dots_included() -> None:
    assert cut("x" * 5000) == "x" * 997 + "..."
    assert cut("x" * 1000) == "x" * 1000
    assert cut("y" * 300, 200) == "y" * 197 + "..."
    assert cut(None) is None


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("the quick brown fox jumps over the lazy dog " * 20, 9 * 20),  # a word is at least a token
        ("1234567890" * 30, 100),  # three digits a token
        ("检索增强生成" * 50, 300),  # a character a token
        ("(){}[];:" * 30, 100),
    ],
)
def test_the_estimate_is_on_the_safe_side(text: str, least: int) -> None:
    assert tokens(text) >= least


def test_an_error_is_one_line_and_keeps_its_valid_choices_however_much_it_repeats() -> None:
    assert one_line("Project not found: a\nb. Valid projects: 'p'.") == "Project not found: a b. Valid projects: 'p'."
    long = one_line(f"Project not found: {'x' * 5000}. Valid projects: 'p'.")
    assert len(long) == LONGEST_TEXT
    assert long.startswith("Project not found: x")
    assert long.endswith("x. Valid projects: 'p'.")


@pytest.mark.parametrize(("most", "budget", "largest"), [(10, 1_000, 10), (10_000, 1_001, 667), (5, 0, 1), (0, 0, 0)])
def test_the_largest_size_within_a_budget_is_found(most: int, budget: int, largest: int) -> None:
    assert (
        within(most, lambda size: "知" * size, budget) == largest
    )  # 3 bytes a character, counted as 1.5 tokens, plus 1
