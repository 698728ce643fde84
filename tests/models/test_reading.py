"""The share of a text that a model can read: high for its language, low if words are split into letters."""

from __future__ import annotations

import pytest

from workbench.models.encoder import MAX_SAMPLE_CHARS, readable_share
from workbench.models.hashing import HashEncoder
from workbench.models.minilm import MiniLMEncoder


@pytest.mark.parametrize(
    "text",
    ["What is the boiling point of water?", "I am a C programmer", "Die Straße nach Köln", "", "?!", "ISO 9001"],
    ids=["question", "letters that are words", "German", "empty", "no letters", "norm"],
)
def test_the_english_model_reads_words_in_latin_script(minilm: MiniLMEncoder, text: str) -> None:
    assert minilm.reads(text) >= 0.8


@pytest.mark.parametrize(
    "text",
    [
        "検索エンジンの仕組み",
        "如何训练模型",
        "كيف يعمل محرك البحث",
        "ภาษาไทยสวยงาม",
        "поисковая система",
        "हिन्दी में खोज",
    ],
    ids=["Japanese", "Chinese", "Arabic", "Thai", "Russian", "Hindi"],
)
def test_the_english_model_does_not_read_other_scripts(minilm: MiniLMEncoder, text: str) -> None:
    assert minilm.reads(text) <= 0.2


def test_a_part_number_is_read_less_than_a_word(minilm: MiniLMEncoder) -> None:
    assert minilm.reads("SN74LS00N") < 0.5 < minilm.reads("semiconductor")


def test_the_models_name_their_languages(minilm: MiniLMEncoder) -> None:
    assert minilm.languages == {"en"}
    assert HashEncoder().languages is None
    assert HashEncoder().reads("検索") == 1


def test_only_the_beginning_of_a_long_text_is_examined(minilm: MiniLMEncoder) -> None:
    assert minilm.reads("word " * (MAX_SAMPLE_CHARS // 5) + "検索" * MAX_SAMPLE_CHARS) == 1


def test_pieces_of_one_letter_and_unknown_ones_are_not_read() -> None:
    pieces = [((0, 3), True), ((3, 4), True), ((5, 8), False)]
    assert readable_share("abcd efg", pieces, letters_are_words=False) == pytest.approx(3 / 7)
    assert readable_share("東京", [((0, 1), True), ((1, 2), True)], letters_are_words=True) == 1
    assert readable_share("東京", [((0, 1), True), ((1, 2), True)], letters_are_words=False) == 0
