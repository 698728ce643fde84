"""The maximum length of texts and answers."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import llama_index.core
import pytest
import tiktoken

from mcp_app.paging import MAX_TEXT_CHARS, TOKEN_BUDGET, cut, find_largest_fit, to_one_line, tokens


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
    assert (
        to_one_line("Project not found: a\nb. Valid projects: 'p'.") == "Project not found: a b. Valid projects: 'p'."
    )
    long = to_one_line(f"Project not found: {'x' * 5000}. Valid projects: 'p'.")
    assert len(long) == MAX_TEXT_CHARS
    assert long.startswith("Project not found: x")
    assert long.endswith("x. Valid projects: 'p'.")


@pytest.mark.parametrize(("most", "budget", "largest"), [(10, 1_000, 10), (10_000, 1_001, 408), (5, 0, 1), (0, 0, 0)])
def test_the_largest_size_within_a_budget_is_found(most: int, budget: int, largest: int) -> None:
    assert (
        find_largest_fit(most, lambda size: "知" * size, budget) == largest
    )  # a character counts as 2.45 tokens, plus 1


def _random(alphabet: str, count: int, blank_after: int = 0) -> str:
    """Return ``count`` characters drawn from an alphabet, always the same ones."""
    dice = random.Random(7)
    chars = [dice.choice(alphabet) for _ in range(count)]
    step = blank_after or count
    return " ".join("".join(chars[start : start + step]) for start in range(0, count, step))


def _between(first: int, last: int) -> str:
    return "".join(chr(code) for code in range(first, last + 1))


BASE64 = string.ascii_letters + string.digits + "+/"
DENSE = {
    "hex": _random("0123456789abcdef", 4000),
    "HEX in pairs": _random("0123456789ABCDEF", 4000, 2),
    "base64": _random(BASE64, 4000),
    "base64 in words": _random(BASE64, 4000, 8),
    "letters": _random(string.ascii_letters, 4000),
    "capitals": _random(string.ascii_uppercase, 4000),
    "digits with commas": ",".join(_random(string.digits, 3000, 2).split()),
    "marks": _random(string.punctuation, 4000),
    "line ends": json.dumps("a\nb\n" * 1000),
    "control characters": json.dumps(_random(_between(0, 31), 1000)),
    "minified code": "function a(b,c){var d=b[0];for(var e=0;e<c.length;e++){d+=c[e]?b[e]:!1}return d}" * 50,
    "Thai": _random(_between(0xE01, 0xE3A), 3000),
    "emoji": _random(_between(0x1F300, 0x1F64F), 2000),
    "joined emoji": "\U0001f469\u200d\U0001f469\u200d\U0001f467\U0001f3f3\ufe0f\u200d\U0001f308" * 200,
    "Chinese": _random(_between(0x4E00, 0x9FA5), 3000),
    "rare Chinese": _random(_between(0x20000, 0x2A6D0), 1000),
    "Korean": _random(_between(0xAC00, 0xD7A3), 3000),
    "Japanese": _random(_between(0x3041, 0x30FF), 3000),
    "Arabic": _random(_between(0x621, 0x64A), 3000),
    "Hebrew": _random(_between(0x5D0, 0x5EA), 3000),
    "Hindi": _random(_between(0x905, 0x939), 3000),
    "Tibetan": _random(_between(0xF40, 0xF6C), 3000),
    "Ethiopic": _random(_between(0x1200, 0x135A), 3000),
    "Cherokee": _random(_between(0x13A0, 0x13F4), 3000),
    "cuneiform": _random(_between(0x12000, 0x12399), 1000),
    "Greek": _random(_between(0x391, 0x3C9), 3000),
    "Latin with accents": _random(_between(0xC0, 0x24F), 3000),
    "Finnish": "Koneoppiminen on teko\u00e4lyn osa-alue, jonka tarkoituksena on saada ohjelmisto toimimaan paremmin. "
    * 30,
}


@pytest.fixture
def encodings(monkeypatch: pytest.MonkeyPatch) -> list[tiktoken.Encoding]:
    """The encodings included in the framework; others would be downloaded."""
    shipped = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(shipped))
    return [tiktoken.get_encoding(name) for name in ("cl100k_base", "o200k_base")]


@pytest.mark.parametrize("kind", DENSE)
def test_no_kind_of_text_takes_more_tokens_than_are_promised(encodings: list[tiktoken.Encoding], kind: str) -> None:
    text = DENSE[kind]
    longer = text * (1 + 40_000 // len(text))
    shown = find_largest_fit(len(longer), lambda size: longer[:size])
    most = max(len(encoding.encode(longer[:shown], disallowed_special=())) for encoding in encodings)
    assert TOKEN_BUDGET / 2.1 < most < 8_000


@pytest.mark.parametrize("path", ["README.md", "mcp_app/paging.py", "docs/contributing.md"])
def test_english_and_code_are_counted_at_most_half_too_high(encodings: list[tiktoken.Encoding], path: str) -> None:
    text = (Path(__file__).parents[2] / path).read_text()[:8000]
    most = max(len(encoding.encode(text, disallowed_special=())) for encoding in encodings)
    assert most <= tokens(text) < 1.55 * most
