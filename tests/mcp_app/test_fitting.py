"""Answers stay short, and say so where something was left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_app.fitting import BUDGET, LONGEST_TEXT, cut, fit, one_line, tokens
from mcp_app.tool import compact


def results(count: int, text: str, title: str = "T") -> dict[str, Any]:
    items = [{"id": f"psg_{number:018x}", "title": title, "text": text} for number in range(count)]
    return {"success": True, "results": items, "count": count}


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


def test_a_short_answer_is_left_as_it_is() -> None:
    answer = results(3, "short")
    assert json.loads(fit(answer, compact, "More.")) == answer


def test_fifty_long_passages_all_stay_with_shorter_texts_and_a_word_on_the_rest() -> None:
    text = fit(results(50, "word " * 200), compact, "Ask for fewer.")
    found = json.loads(text)
    assert tokens(text) <= BUDGET
    assert len(found["results"]) == found["count"] == 50
    assert all(item["text"].endswith("...") for item in found["results"])
    assert found["truncated"].endswith("Ask for fewer.")


def test_what_cannot_fit_even_shortened_leaves_items_out_and_counts_them() -> None:
    text = fit(results(50, "检索增强生成" * 200, title="题" * 200), compact, "Ask for fewer.")
    found = json.loads(text)
    assert tokens(text) <= BUDGET
    assert 0 < found["count"] == len(found["results"]) < 50
    assert found["truncated"].startswith(f"{50 - found['count']} of 50 were left out")


def test_a_bare_list_is_cut_too() -> None:
    text = fit([{"text": "word " * 200}] * 50, compact, "Ask for fewer.")
    assert tokens(text) <= BUDGET
    assert json.loads(text)[-1]["truncated"].endswith("Ask for fewer.")
