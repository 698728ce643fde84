"""Invariants of every chunker, on any text: generated Markdown, code and noise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.ingestion.tokens import chunk
from workbench.ingestion.chunking import CHUNKERS, ChunkInput, CutPassage
from workbench.ingestion.chunking.chunkers import has_words
from workbench.ingestion.text import normalise
from workbench.models.hashing import HashEncoder
from workbench.storage.passages import text_to_embed

ENCODER = HashEncoder()
WORDS = st.sampled_from(
    [
        "river",
        "otter",
        "e.g.",
        "3.14",
        "Dr.",
        "stone,",
        "dam!",
        "why?",
        "(raft)",
        "swims.",
        "水獺。",
        "Größe",
        "🦦",
        "x_y",
    ]
)
LINE = st.lists(WORDS, min_size=1, max_size=30).map(" ".join)
HEADING = st.tuples(st.integers(1, 4), LINE).map(lambda pair: "#" * pair[0] + " " + pair[1][:200])
LIST = st.lists(LINE, min_size=1, max_size=6).map(
    lambda items: "\n".join(f"{n}. {item}" for n, item in enumerate(items))
)
FENCE = st.lists(LINE, max_size=8).map(lambda lines: "```py\n" + "\n".join(lines) + "\n```")
TABLE = st.lists(st.tuples(LINE, LINE), min_size=1, max_size=8).map(
    lambda rows: "\n".join(["| a | b |", "|---|:-:|", *(f"| {one} | {two} |" for one, two in rows)])
)
SETEXT = LINE.map(lambda line: f"{line}\n=====")
CODE = st.tuples(LINE, LINE).map(
    lambda two: f"class A:\n    def f(self):\n        {two[0]}\n\n    def g(self):\n        {two[1]}"
)
LONG = st.integers(1, 400).map(lambda n: "ab" * n)
BLOCK = st.one_of(HEADING, LINE, LIST, FENCE, TABLE, SETEXT, CODE, LONG, st.text(max_size=80))
TEXT = st.lists(st.tuples(BLOCK, st.sampled_from(["\n\n", "\n", "\n\n\n"])), max_size=12).map(
    lambda blocks: normalise("".join(block + gap for block, gap in blocks))
)
TYPES = st.sampled_from(["markdown", "code"])


def embed(texts: Sequence[str]) -> Any:
    return ENCODER.encode(texts).vectors


def cut(name: str, document: ChunkInput, limit: int, **options: int) -> list[CutPassage]:
    extra = {"embed": embed} if CHUNKERS[name].needs_embed else {}
    return chunk(name, document, ENCODER.token_spans, {"limit": limit, **options, **extra})


@pytest.mark.parametrize("name", CHUNKERS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXT, title=st.one_of(LINE, st.text(max_size=300)), kind=TYPES, limit=st.sampled_from([32, 64, 254]))
def test_spans_cover_the_text_in_order_stripped_and_fit_the_model(
    name: str, text: str, title: str, kind: str, limit: int
) -> None:
    spans = cut(name, ChunkInput(title, text, kind), limit)
    for span in spans:
        piece = text[span.start : span.end]
        assert piece and piece == piece.strip()
        assert len(ENCODER.token_spans(text_to_embed(span.header, piece))) <= limit
    assert all(one.end <= other.start for one, other in pairwise(spans))
    edges = [0, *(edge for span in spans for edge in (span.start, span.end)), len(text)]
    assert not any(has_words(text, start, end) for start, end in zip(edges[::2], edges[1::2], strict=True))
    assert not has_words(text, 0, len(text)) or all(has_words(text, span.start, span.end) for span in spans)


@pytest.mark.parametrize(
    "name", [name for name, c in CHUNKERS.items() if any(p.name == "overlap" for p in c.parameters)]
)
@settings(max_examples=40, deadline=None)
@given(text=TEXT, size=st.integers(16, 60), overlap=st.integers(1, 80))
@example(text="```py\n\n```\n\n0:0:0:0:0\n\n0:0:0:0.\n\n|\n-|", size=16, overlap=15)  # a window that was halved
@example(text="0:0:0:0.0\n\n0:0:0|\n-|", size=16, overlap=1)  # a table's first line, taken for the name of one
def test_with_overlap_spans_still_move_on_and_cover_everything(name: str, text: str, size: int, overlap: int) -> None:
    spans = cut(name, ChunkInput("", text), 254, size=size, overlap=overlap)
    assert all(one.start < other.start and one.end < other.end for one, other in pairwise(spans))
    covered = {place for span in spans for place in range(span.start, span.end)}
    assert all(place in covered or not character.isalnum() for place, character in enumerate(text))
    assert all(len(ENCODER.token_spans(text[span.start : span.end])) <= size for span in spans)


@pytest.mark.parametrize("name", CHUNKERS)
def test_cutting_twice_gives_the_same_and_asks_the_tokenizer_at_most_twice(name: str) -> None:
    text = "# Otters\n\n" + "Otters hold hands while asleep. " * 60 + "\n\n## Diet\n\n" + "They eat clams. " * 60
    calls: list[str] = []

    def tokens(whole: str) -> list[tuple[int, int]]:
        calls.append(whole)
        return ENCODER.token_spans(whole)

    extra = {"embed": embed} if CHUNKERS[name].needs_embed else {}
    assert chunk(name, ChunkInput("Otters", text), tokens, extra) == cut(name, ChunkInput("Otters", text), 254)
    assert len(calls) == 2 and calls.count(text) == 1


@pytest.mark.parametrize("name", CHUNKERS)
def test_one_line_of_a_megabyte_is_cut_to_size(name: str) -> None:
    for line in ("x" * 200_000, "水" * 20_000, "word " * 40_000):
        spans = cut(name, ChunkInput("t", normalise(line)), 254)
        assert max(span.end - span.start for span in spans) <= 2100


@pytest.mark.parametrize("name", CHUNKERS)
def test_punctuation_by_itself_makes_no_passage_and_none_of_it_is_lost(name: str) -> None:
    text = "***\n\n" + "\n\n.\n\n".join(["Otters hold hands while they are asleep in the kelp. " * 4] * 6) + "\n\n...\n"
    spans = cut(name, ChunkInput("", text), 254, size=16)
    assert all(has_words(text, span.start, span.end) for span in spans)
    covered = {place for span in spans for place in range(span.start, span.end)}
    assert all(place in covered or character.isspace() for place, character in enumerate(text))


@pytest.mark.parametrize("name", CHUNKERS)
def test_a_document_of_punctuation_alone_is_one_passage(name: str) -> None:
    assert [(span.start, span.end) for span in cut(name, ChunkInput("", "?!\n"), 254)] == [(0, 2)]


def test_a_rule_before_the_first_heading_leaves_the_passage_in_its_section() -> None:
    (span,) = cut("structure", ChunkInput("", "---\n\n# Otters\n\nOtters swim."), 254)
    assert (span.start, span.heading_path) == (0, ("Otters",))
