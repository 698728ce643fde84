"""Corrections of misspelled words: pure functions over words, and the lexicon of an index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.retrieval.options import Ask
from workbench.retrieval.query import Guess
from workbench.retrieval.spelling import Lexicon, enumerate_typos, guess_words, max_typos

KNOWN = ("machine", "marine", "learn", "earn", "tree", "retriev", "x2000")


@pytest.mark.parametrize(
    ("typed", "meant", "distance"),
    [("mahcine", "machine", 1), ("machin", "machine", 1), ("macchine", "machine", 1), ("nachine", "machine", 1),
     ("retreive", "retriev", 2), ("lern", "learn", 1), ("tre", "tree", 1)],
)  # fmt: skip
def test_a_word_is_guessed_by_the_slips_between(typed: str, meant: str, distance: int) -> None:
    assert guess_words([typed], Lexicon.from_words(KNOWN))[typed][0] == Guess(typed, meant, distance)


def test_one_slip_is_forgiven_up_to_five_letters_two_above_and_none_in_codes() -> None:
    assert [max_typos(word) for word in ("ab", "abc", "abcde", "abcdef", "x2001", "2024")] == [0, 1, 1, 2, 0, 0]
    known = Lexicon.from_words(("table", "x2000", "abc", "machine"))
    assert guess_words(["ttee", "2001", "x2001", "ab", "machine"], known) == {}


def test_the_same_first_letter_comes_first_among_equals_and_the_number_is_bounded() -> None:
    found = guess_words(["earm"], Lexicon.from_words(("farm", "earn", "ears", "warm")))["earm"][:3]
    assert [guess.meant for guess in found] == ["earn", "ears", "farm"]


def test_similarity_falls_with_the_slips_and_rises_with_the_length() -> None:
    assert Guess("lern", "learn", 1).similarity == pytest.approx(1 - 1 / 5)
    assert Guess("retreive", "retriev", 2).similarity == pytest.approx(1 - 2 / 8)


def test_every_spelling_one_slip_away_is_enumerated_once() -> None:
    found = enumerate_typos("ab")
    assert {"a", "b", "ba", "abb", "xab", "cb"} <= set(found)
    assert len(found) == len(set(found)) == 2 + 1 + 2 * 25 + (3 * 26 - 2)


def test_new_words_are_guessed_at_once_and_deleted_ones_no_longer(wb: Workbench, folder: Callable[..., Path]) -> None:
    def guesses(query: str) -> set[str]:
        return {guess.meant for guess in wb.requests.make(Ask("hybrid", 5)).question(query).words.guesses}

    wb.ingest(folder({"a.md": "# A\n\nThe aardvark sleeps."}), source="One")
    assert guesses("aardvrak") == {"aardvark"}
    wb.ingest(folder({"b.md": "# B\n\nThe pangolin sleeps."}, "more"), source="Two")
    assert guesses("pangloin") == {"pangolin"}
    wb.sources.delete("One")
    assert guesses("aardvrak") == set()
    assert guesses("the pangolin") == set()


def test_words_of_three_letters_in_any_script_are_not_corrected(wb: Workbench, folder: Callable[..., Path]) -> None:
    pairs = {"متى": "متن", "كيف": "كيس", "как": "рак", "cot": "cat", "πως": "φως", "מתי": "מתן", "ras": "rag"}
    longer = {"مدرصة": "مدرسة", "москав": "москва", "kyes": "keys"}
    known = [*pairs.values(), *longer.values()]
    wb.ingest(folder({f"{place}.md": f"# {word}\n\n{word} " * 3 for place, word in enumerate(known)}), source="Words")
    ask = wb.requests.make(Ask("hybrid", 5))
    assert {word: ask.question(word).words.guesses for word in pairs} == dict.fromkeys(pairs, ())
    assert {word for word in longer if not ask.question(word).words.guesses} == set()
    assert wb.search("متى").corrections == {}
