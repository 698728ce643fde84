"""The header before a passage, and the normal form of text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.ingestion.metadata import context_header
from workbench.ingestion.text import normalise
from workbench.storage.passages import text_to_embed


def test_title_and_headings_are_joined_outermost_first_and_repeats_stated_once() -> None:
    assert context_header("Otters", ("Otters", "Diet", "Winter")) == "Otters > Diet > Winter"
    assert context_header("", ()) == ""
    assert context_header("Two\nlines", ()) == "Two lines"


def test_if_there_is_no_room_the_middle_goes_first_and_the_ends_are_cut_at_words() -> None:
    path = ("Part one of the book", "A chapter in between", "Winter")
    assert context_header("Otters", path, 45) == "Otters > … > A chapter in between > Winter"
    assert context_header("Otters", path, 24) == "Otters > … > Winter"
    assert context_header("A very long title of a book about otters", (), 20) == "A very long title…"
    assert (
        context_header("A very long title of a book about otters", ("Winter",), 30) == "A very long title of… > Winter"
    )


@given(st.text(max_size=200), st.lists(st.text(max_size=60), max_size=5), st.integers(0, 200))
def test_a_header_never_exceeds_its_budget_and_is_one_line(title: str, path: list[str], budget: int) -> None:
    header = context_header(title, path, budget)
    assert len(header) <= budget and "\n" not in header and header == header.strip()


def test_the_embedded_text_is_the_passage_alone_if_there_is_no_header() -> None:
    assert text_to_embed("", "text") == "text"
    assert text_to_embed("Title", "text") == "Title\n\ntext"


def test_tables_are_embedded_without_bars_and_rules_and_each_word_keeps_its_place() -> None:
    table = "In km:\n\n| River | Length |\n|---|---:|\n| Dee \\| Don | 140 |\n\na | b, and --- as it is"
    words = text_to_embed("", table)
    assert "|" not in words.split("\n\n")[1].replace("\\|", "")
    assert "---" not in words.split("\n\n")[1]
    assert words.split("\n\n")[2] == "a | b, and --- as it is"
    assert len(words) == len(table)
    assert words.index("140") == table.index("140")


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_normal_form_is_stable_and_fit_for_the_database(text: str) -> None:
    clean = normalise(text)
    assert normalise(clean) == clean
    assert "\0" not in clean and "\r" not in clean
    assert clean.encode("utf-8").decode("utf-8") == clean
