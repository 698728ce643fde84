"""Sentence ends, and marks that only look like one."""

from __future__ import annotations

import pytest

from workbench.text import sentence_spans


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Otters swim.", "Beavers build!", "Do they meet?", "They do…", "Rarely."],
        ["Dr. Smith met J. R. Ewing at 3.14 p.m. yesterday.", "He left."],
        ["See Fig. 3 and eq. 4, e.g. the first, i.e. the best.", "It costs 3.50 vs. 4.00."],
        ["The U.S. Navy came.", "It left."],
        ["Use clams, urchins, etc. when hungry.", "Use more."],
        ["He said “Go.”", "She went (slowly.)", "Then nothing."],
        ["これは文です。", "次の文！", "本当？", "はい。"],
        ["Intro line:", "- first item", "- second item. It goes on.", "1. third"],
        ["A heading", "A paragraph after a blank line."],
        ["Open node.js or v2.0.1 at https://a.b/c.d?e=f.g now.", "Done."],
        ["**Colour.** Warm greys.", "**Type.** A humanist sans."],
        ["Das sind z.B. Otter.", "Nr. 5 lebt."],
    ],
)
def test_sentences_are_distinguished(sentences: list[str]) -> None:
    joined = ""
    for sentence in sentences:
        gap = "\n" if sentence[:2] in ("- ", "1.") else "\n\n" if sentence.startswith("A p") else " "
        joined += ("" if not joined or sentence[0] in "次本は" else gap) + sentence
    expected = [part for sentence in sentences for part in _items(sentence)]
    assert split(joined) == expected


def _items(sentence: str) -> list[str]:
    """Return the parts of a list item; an item of two sentences counts as two."""
    return ["- second item.", "It goes on."] if sentence.startswith("- second") else [sentence]


def test_spans_refer_to_the_whole_text_and_stay_in_the_requested_part() -> None:
    text = "One is. Two is. Three is."
    assert sentence_spans(text, 8, 15) == [(8, 15)]
    assert sentence_spans("  \n ") == []


def test_a_megabyte_without_an_end_is_one_sentence() -> None:
    assert sentence_spans("word " * 200_000) == [(0, 999_999)]
