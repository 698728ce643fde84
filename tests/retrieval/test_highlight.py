"""Snippets: matches are marked in their original form, and there is no other markup."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import Workbench
from workbench.retrieval.highlight import MarkableText, find_matched_spans, make_snippets, mark_spans


def list_spans(text: str, *words: str) -> list[tuple[int, int]]:
    return [match.span() for word in words for match in re.finditer(word, text)]


def test_neighbouring_words_are_one_mark() -> None:
    text = "About machine learning & more"
    assert mark_spans(text, list_spans(text, "machine", "learning")) == "About <mark>machine learning</mark> &amp; more"


@given(st.text("ab <>&\"'/\n", max_size=300), st.lists(st.tuples(st.integers(0, 299), st.integers(1, 9)), max_size=5))
def test_mark_is_the_only_markup_and_the_text_survives(text: str, places: list[tuple[int, int]]) -> None:
    spans, at = [], 0
    for start, length in sorted(places):
        if at <= start and start + length <= len(text):
            spans.append((start, start + length))
            at = start + length
    marked = mark_spans(text, spans)
    bare = marked.replace("<mark>", "").replace("</mark>", "")
    assert "<" not in bare
    assert unescape(bare) == text


def test_snippets_show_the_places_with_most_matches_in_reading_order() -> None:
    text = ("filler " * 60).join(["start ", "gnu one. ", "gnu gnu two. ", "gnu three. ", "gnu gnu gnu four."])
    found = make_snippets(text, list_spans(text, "gnu"), most=2)
    assert [part.count("gnu") for part in found] == [2, 3]
    assert all(part.startswith("…") and len(part) < 260 for part in found)


@pytest.mark.parametrize("text", ["", " \n ", "short", "x" * 5000, "word " * 1000])
def test_without_matches_the_beginning_is_shown_unmarked(text: str) -> None:
    found = make_snippets(text, [])
    assert len(found) == (1 if text.strip() else 0)
    assert all("<mark>" not in part and part[:4] == text[:4] and len(part) <= 202 for part in found)


def test_words_are_matched_by_the_keyword_indexs_own_analysis(wb: Workbench) -> None:
    texts = [
        MarkableText("Organizations organise getUserName; CATS run.", "english"),
        MarkableText("東京都の天気", "cjk"),
    ]
    with wb.corpus.reader.transaction() as connection:
        english, cjk = find_matched_spans(connection, texts, {"organ", "cat", "name", "京都"})
    assert [texts[0].text[a:b] for a, b in english] == ["Organizations", "getUserName", "CATS"]
    assert [texts[1].text[a:b] for a, b in cjk] == ["京都"]
