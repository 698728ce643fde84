"""The marked words of a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.marking import excerpt, match_spans, split_matches


def words(query: str, text: str) -> list[str]:
    """Return the marked pieces of a text."""
    return [text[start:end] for start, end in match_spans(query, text)]


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("how is it measured?", "Measuring a rank, and its measurement", ["Measuring", "measurement"]),
        ("the cat", "The cats and the dog", ["cats"]),
        ("hnsw.ef_search", "SET hnsw.ef_search = 100 of hnsw", ["hnsw.ef_search", "hnsw"]),
        ("node.js", "In node.js, a node", ["node.js", "node"]),
        ("10.0.0.0/24", "At 10.0.0.0/24.", ["10.0.0.0/24"]),
        ("東京タワー", "きのう東京タワーへ行った", ["東京タワー"]),
        ("to be", "To be or not to be", ["To", "be", "to", "be"]),
        ("E-1042", "error E-1042 again", ["E-1042"]),
        ("", "anything", []),
    ],
)  # fmt: skip
def test_words_are_marked_by_their_stem(query: str, text: str, marked: list[str]) -> None:
    assert words(query, text) == marked


@given(st.text(), st.text())
def test_pieces_joined_are_the_text(query: str, text: str) -> None:
    assert "".join(piece for piece, _ in split_matches(query, text)) == text


@given(st.text(), st.text(max_size=400), st.integers(20, 100))
def test_an_excerpt_is_about_as_long_as_asked(query: str, text: str, length: int) -> None:
    assert len(excerpt(query, text, length)) <= length + len("… ") + len(" …")


def test_an_excerpt_shows_where_the_words_are_densest() -> None:
    text = "cats once. " + "filler text " * 40 + "here cats meet other cats and cats " + "more filler " * 40
    assert excerpt("cats", text, 80).count("cats") == 3


def test_an_excerpt_leaves_opening_headings_out() -> None:
    assert excerpt("cats", "# Animals\n\n## Cats\n\nCats purr.", 80) == "Cats purr."


def list_marks(query: str, text: str) -> list[str]:
    return [text[start:end] for start, end in match_spans(query, text)]


def test_names_with_signs_are_marked_as_a_whole() -> None:
    assert list_marks("what changed in 1.3.2", "Release 1.3.2 follows 1.3.1.")[0] == "1.3.2"
    assert list_marks("loops in C++", "C++ and C# have loops.") == ["C++", "C", "loops"]
    assert list_marks("is .NET supported", "It runs on .NET only.") == [".NET"]
    assert list_marks("pump PPR-9087", "The PPR9087 replaces the PPR_9087.") == ["PPR9087", "PPR_9087"]
    assert list_marks("pump PPR9087", "See PPR-9087.") == ["PPR-9087"]
    assert list_marks("where is 🦫", "A 🦫 builds.") == ["🦫"]
    assert list_marks("version 2.3.1", "1,204 of 2.3.1") == ["2.3.1"]
