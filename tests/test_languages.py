"""Words in every script: what a word is, and what counts in unspaced scripts."""

from __future__ import annotations

import pytest

from workbench.marking import match_spans
from workbench.text import WORD, fold_word, gram_spans, iter_spaced_words, split_grams


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hnsw.ef_search is 40", ["hnsw", "ef", "search", "is", "40"]),
        ("हिन्दी में खोज", ["हिन्दी", "में", "खोज"]),
        ("שָׁלוֹם עולם", ["שָׁלוֹם", "עולם"]),
        ("Cafe\u0301 au lait", ["Cafe\u0301", "au", "lait"]),
    ],
)
def test_marks_stay_with_their_letters(text: str, words: list[str]) -> None:
    assert [match.group() for match in WORD.finditer(text)] == words


def test_thai_counts_in_threes_and_chinese_in_pairs() -> None:
    assert split_grams("ภาษา") == {"ภาษ", "าษา"}
    assert split_grams("東京都 x") == {"東京", "京都"}
    assert split_grams("日 ดี") == {"日", "ดี"}


def test_words_next_to_unspaced_runs_keep_their_places() -> None:
    assert [word.span() for word in iter_spaced_words("日本の hnsw ภาษา index")] == [(4, 8), (14, 19)]


def test_arabic_and_hebrew_points_and_forms_count_as_one() -> None:
    assert fold_word("الْعَرَبِيَّةُ") == fold_word("العربية")
    assert fold_word("أحمد") == fold_word("احمد")
    assert fold_word("שָׁלוֹם") == "שלום"


def test_grams_are_marked_where_they_are_and_joined() -> None:
    text = "การประมวลผลภาษาธรรมชาติ"
    assert [text[slice(*span)] for span in gram_spans(text, split_grams("ภาษาธรรม"))] == ["ภาษาธรรม"]


@pytest.mark.parametrize(
    ("query", "text", "language", "marked"),
    [
        ("ภาษา", "การประมวลผลภาษาธรรมชาติ", "simple", ["ภาษา"]),
        ("كتاب", "قرأت كِتَابًا جديدا", "arabic", ["كِتَابًا"]),
        ("東京", "日本の東京です", "cjk", ["東京"]),
        ("खोजना", "हिन्दी में खोज", "hindi", ["खोज"]),
    ],
)
def test_matches_are_marked_in_their_own_script(query: str, text: str, language: str, marked: list[str]) -> None:
    assert [text[slice(*span)] for span in match_spans(query, text, language)] == marked
