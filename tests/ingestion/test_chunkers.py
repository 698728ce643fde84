"""The characteristic behaviour of each chunker."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.ingestion.tokens import chunk
from workbench.errors import InvalidInput
from workbench.ingestion.chunking import CHUNKERS, DEFAULT_CHUNKER, ChunkInput

WORD = re.compile(r"\w+")


def words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in WORD.finditer(text)]


def cut(name: str, text: str, document_type: str = "markdown", **options: Any) -> list[str]:
    return [text[s.start : s.end] for s in chunk(name, ChunkInput("", text, document_type), words, options)]


def prose(count: int, word: str = "word") -> str:
    """Return ``count`` sentences of ten words."""
    return " ".join(f"{word.capitalize()} {' '.join([word] * 8)} {number}." for number in range(count))


def test_structure_starts_a_passage_at_each_heading_and_keeps_it_with_its_text() -> None:
    text = f"# Top\n\n{prose(9)}\n\n## Below\n\n{prose(9, 'other')}"
    first, second = cut("structure", text)
    assert first.startswith("# Top\n\nWord") and second.startswith("## Below\n\nOther")


def test_structure_joins_small_sections_under_one_parent_but_not_across_parents() -> None:
    text = f"# A\n\n{prose(20)}\n\n## One\n\nShort.\n\n## Two\n\nShort.\n\n# B\n\nShort.\n\n## Three\n\nShort."
    spans = chunk("structure", ChunkInput("", text), words, {})
    assert [text[s.start : s.end][:5] for s in spans] == ["# A\n\n", "Word ", "## On", "# B\n\n"]
    assert [s.heading_path for s in spans] == [("A",), ("A",), ("A",), ("B",)]
    assert len(cut("structure", text, small=0)) == 6


def test_structure_parts_a_long_section_evenly_and_between_sentences() -> None:
    pieces = cut("structure", prose(22))
    assert [len(WORD.findall(piece)) for piece in pieces] == [110, 110]
    assert all(piece.endswith(".") for piece in pieces)


def test_structure_keeps_tables_and_code_whole_while_they_fit_the_model() -> None:
    code = "```\n" + "\n\n".join("line of code here" for _ in range(55)) + "\n```"
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| cell {n} | more {n} |" for n in range(55))
    for block in (code, table):
        assert block in cut("structure", f"{prose(10)}\n\n{block}\n\n{prose(10)}")


def test_a_table_too_long_is_parted_by_rows_that_remember_its_header() -> None:
    text = "| name | size |\n|---|---|\n" + "\n".join(f"| cell {n} | more {n} |" for n in range(200))
    spans = chunk("structure", ChunkInput("", text), words, {})
    assert len(spans) > 2 and {s.kind for s in spans} == {"table"}
    assert text[spans[0].start :].startswith("| name")
    for span in spans[1:]:
        start, end = span.metadata["table_header"]
        assert text[start:end] == "| name | size |\n|---|---|"
        assert text[span.start : span.end].startswith("| cell") and text[span.start : span.end].endswith("|")


def test_a_lead_in_line_stays_with_its_list() -> None:
    text = f"{prose(19)}\n\nYou need these:\n\n- wood\n- mud\n\n{prose(15)}"
    (piece,) = [piece for piece in cut("structure", text) if "You need these:" in piece]
    assert "You need these:\n\n- wood" in piece


def test_spans_report_their_headings_kind_page_and_header() -> None:
    text = f"# Otters\n\n{prose(12)}\n\n## Diet `raw`\n\n- clams\n- urchins\n\n### Code\n\n```\n{prose(12)}\n```"
    document = ChunkInput("Animals", text, "pdf", ((1, 0, 200), (2, 202, len(text))))
    first, *_, last = chunk("structure", document, words, {"small": 0})
    assert (first.page, last.page) == (1, 2)
    assert last.heading_path == ("Otters", "Diet raw", "Code") and last.kind == "code"
    assert (first.header, last.header) == ("Animals", "Animals > Otters > Diet raw")


def test_recursive_cuts_at_the_coarsest_separator_that_helps() -> None:
    text = f"{prose(5)}\n\n{prose(5)}\n\n{prose(25)}"
    assert cut("recursive", text, size=100) == [
        f"{prose(5)}\n\n{prose(5)}".split("\n\n")[0] + f"\n\n{prose(5)}",
        *cut("recursive", prose(25), size=100),
    ]
    assert cut("recursive", "a b c. d e f. " * 4, size=16)[1].startswith(". d e f")


def test_recursive_overlap_repeats_whole_splits_of_at_most_that_many_tokens() -> None:
    first, second, *_ = cut("recursive", "\n\n".join(f"p{n} one two three" for n in range(9)), size=16, overlap=4)
    assert first.endswith("p3 one two three") and second.startswith("p3 one two three")


def test_token_windows_have_the_requested_size_and_overlap() -> None:
    pieces = cut("token", " ".join(f"w{n}" for n in range(50)), size=20, overlap=5)
    assert [(piece.split()[0], piece.split()[-1]) for piece in pieces] == [
        ("w0", "w19"),
        ("w15", "w34"),
        ("w30", "w49"),
    ]


def test_sentence_fills_passages_across_headings() -> None:
    first, second = cut("sentence", f"# A\n\n{prose(9)}\n\n# B\n\n{prose(12)}")
    assert "# A" in first and "# B" in first
    assert len(WORD.findall(first)) > 190 and second.endswith("11.")


def test_window_makes_a_passage_a_sentence_and_notes_its_neighbours_in_the_section() -> None:
    text = "# A\n\nOne is here. Two is here. Three is here.\n\n# B\n\nFour is here."
    spans = chunk("window", ChunkInput("", text), words, {"neighbours": 1})
    assert [text[s.start : s.end] for s in spans][1] == "Two is here."
    assert [text[slice(*s.metadata["window"])] for s in spans][1:] == [
        "# A\n\nOne is here. Two is here. Three is here.",
        "Two is here. Three is here.",
        "# B\n\nFour is here.",
    ]


def test_heading_makes_one_passage_a_section_however_small() -> None:
    assert cut("heading", "# A\n\n## One\n\nShort.\n\n## Two\n\nShort.") == [
        "# A\n\n## One\n\nShort.",
        "## Two\n\nShort.",
    ]


def test_hierarchical_passages_lie_inside_the_section_they_name() -> None:
    text = f"# A\n\n{prose(30)}\n\n# B\n\n{prose(90)}"
    spans = chunk("hierarchical", ChunkInput("", text), words, {"size": 100, "parent": 400})
    assert all(s.parent[0] <= s.start < s.end <= s.parent[1] for s in spans if s.parent)
    parents = sorted({s.parent for s in spans if s.parent})
    assert [len(WORD.findall(text[start:end])) for start, end in parents] == [301, 301, 300, 300]
    assert len(spans) == 14


def test_semantic_breaks_at_changes_of_topic() -> None:
    def by_animal(texts: list[str]) -> Any:
        return np.array([[text.count("otter"), text.count("beaver"), 0.1] for text in texts], dtype=np.float32)

    text = f"{prose(8, 'otter')} {prose(8, 'beaver')}"
    first, second = cut("semantic", text, embed=by_animal, percentile=90, small=16)
    assert set(WORD.findall(second)) & {"otter", "Otter"} == set() or first.count("beaver") == 0
    with pytest.raises(InvalidInput, match="embed"):
        cut("semantic", text)


def test_code_keeps_functions_whole_and_names_the_class_around_a_method() -> None:
    body = "\n".join(f"        value_{n} = compute(value, {n})" for n in range(30))
    methods = f"    def push(self):\n{body}\n\n    def pop(self):\n{body}"
    text = f"import os\n\n\n@cache\ndef small():\n    return 1\n\n\nclass Stack:\n{methods}\n"
    spans = chunk("code", ChunkInput("stack.py", text.rstrip(), "code"), words, {})
    pieces = [text[s.start : s.end] for s in spans]
    assert "@cache\ndef small():\n    return 1" in pieces[0]
    (pop,) = [s for s in spans if "def pop" in text[s.start : s.end]]
    assert pop.heading_path == ("class Stack:", "def pop(self):") and pop.kind == "code"
    assert "class Stack:" in pop.header


def test_code_falls_back_to_structure_for_prose() -> None:
    text = f"# A\n\n{prose(40)}"
    assert cut("code", text) == cut("structure", text)


def test_a_hash_comment_in_code_is_no_heading_for_any_chunker() -> None:
    document = ChunkInput("", "# comment\nx = 1\n\n# more\ny = 2", "code")
    for name in set(CHUNKERS) - {"semantic"}:
        assert all(s.heading_path == () and s.kind == "code" for s in chunk(name, document, words, {}))


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("nope", {}, "'structure'"),
        ("structure", {"sise": 3}, "'size'"),
        ("structure", {"size": 3}, "from 16 to 8192"),
        ("structure", {"size": 100.5}, "whole number"),
        ("structure", {"size": True}, "whole number"),
        ("structure", {"size": "many"}, "whole number"),
        ("structure", {"limit": 4}, "at least 32"),
    ],
)
def test_wrong_names_and_values_are_answered_with_the_right_ones(name: str, options: dict, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        chunk(name, ChunkInput("", "text"), words, options)


def test_each_chunker_of_the_table_describes_its_parameters() -> None:
    assert DEFAULT_CHUNKER in CHUNKERS
    for name, chunker in CHUNKERS.items():
        assert chunker.name == name and chunker.why.endswith(".")
        assert all(p.low <= p.default <= p.high and p.why.endswith(".") for p in chunker.parameters)


def test_a_blank_document_has_no_passages() -> None:
    assert all(chunk(name, ChunkInput("t", " \n"), words, {"embed": len}) == [] for name in CHUNKERS)


@pytest.mark.parametrize("name", [name for name in CHUNKERS if name != "code"])
def test_no_passage_is_only_a_heading_though_what_follows_fills_one(name: str) -> None:
    code = "\n".join(f"river = river + {number}  # swims" for number in range(28))
    text = f"# Otters\n\nThey swim.\n\n## In twenty lines\n\n```py\n{code}\n```\n\n## The end"
    options = {"size": 200} if name not in ("heading", "window") else {}
    embed = np.random.default_rng(7).standard_normal  # any vectors: headings must never be passages of their own
    vectors = {"embed": lambda texts: embed((len(texts), 8))} if name == "semantic" else {}
    spans = chunk(name, ChunkInput("Otters", text), words, {"limit": 254, **options, **vectors})
    texts = [text[span.start : span.end] for span in spans]
    assert not [piece for piece in texts if all(line.startswith("#") for line in piece.split("\n") if line)]
    assert any("## In twenty lines\n\n```py" in piece for piece in texts) and texts[-1].endswith("## The end")


@pytest.mark.parametrize("overlap", [0, 8])
@pytest.mark.parametrize("name", ["recursive", "token"])
def test_a_heading_at_a_cut_goes_with_what_follows_it_and_nothing_is_lost(name: str, overlap: int) -> None:
    parts = [f"# Part {n}\n\n" + f"river{n} swims on. " * 9 + "\n\n" + f"otter{n} rests. " * 12 for n in range(12)]
    text = "\n\n".join(parts) + "\n\n## The end"
    for size in (24, 32, 40, 48):
        spans = chunk(name, ChunkInput("Otters", text), words, {"limit": 254, "size": size, "overlap": overlap})
        texts = [text[span.start : span.end] for span in spans]
        assert not [piece for piece in texts if all(line.startswith("#") for line in piece.split("\n") if line)]
        covered = {place for span in spans for place in range(span.start, span.end)}
        assert all(place in covered for place, char in enumerate(text) if not char.isspace())
