"""Tokens with signs in their name are found before others with the same parts, in every spelling."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from workbench import Scope, Workbench

TEXTS = {
    "old.md": "Release 2.3.1 of the pump software, with 1 new valve, 3 fixes. Version 3.2.1 follows 2.3.1.",
    "new.md": "Release 1.3.2 of the pump software mends the valve.",
    "plus.md": "The driver of the winch is written in C++ and compiled on board.",
    "sharp.md": "The driver of the lamp is written in C# and needs .NET to run.",
    "plain.md": "The driver of the horn is written in C and uses the net of the harbour.",
    "joined.md": "Filter PPR9087 fits the bilge pump.",
    "dashed.md": "Filter PPR-9088 fits the fire pump, as do PPR 9085 and filter 9087 of the series K.",
    "host.md": "The gauge answers at 10.0.0.12 on the inner network; the lamp has 12 of 10.",
    "emoji.md": "The crew marks a good catch with 🐟 in the log.",
    "ligature.md": "The \ufb01sh o\ufb03ce opens at nine.",
    "wide.md": "Pier ＡＢＣ１２３ is closed.",
}
ASKED = {
    "1.3.2": "new.md", "release 2.3.1": "old.md", "C++": "plus.md", "C#": "sharp.md", ".NET": "sharp.md",
    "PPR-9087": "joined.md", "PPR9088": "dashed.md", "10.0.0.12": "host.md", "🐟": "emoji.md",
    "fish office": "ligature.md", "ABC123": "wide.md", "ﬁsh": "ligature.md", "bil\u00adge": "joined.md",
}  # fmt: skip


@pytest.fixture
def named(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Documents with versions, languages, codes, addresses and emoji."""
    wb.ingest(folder(TEXTS), source="Names")
    return wb


@pytest.mark.parametrize("strategy", ["keyword", "hybrid"])
def test_a_name_finds_its_document_first(named: Workbench, strategy: str) -> None:
    assert {question: named.search(question, strategy, limit=3)[0].path for question in ASKED} == ASKED


def test_a_name_outside_the_scope_changes_no_search(named: Workbench) -> None:
    """Only other sources have these names, so their parts are looked up, as if the source were the only one."""
    alone = named.sources.create("Alone").id
    texts = {"c": "The horn is driven by C.", "numbers": "It has 1 new valve, 3 fixes and 2 pumps.", "net": "The net."}
    for title, text in texts.items():
        named.documents.create(text=text, title=title, source=alone)
    scope = Scope(sources=(alone,))
    asked = {"C++": "c", "1.3.2": "numbers", ".NET": "net"}
    assert {name: named.search(name, "keyword", limit=1, scope=scope)[0].document_title for name in asked} == asked
    assert named.search("C++", "keyword", limit=1)[0].path == "plus.md"


def test_numbers_with_groups_and_sentences_are_no_names(named: Workbench) -> None:
    text = "It has 1.204.331 parts. See end.Next and 3.14, or 2031-02-03; ACME™ made 10⁶ of them."
    with psycopg.connect(named.corpus.database.url) as connection:
        row = connection.execute("SELECT tsvector_to_array(workbench_terms('simple', %s))", (text,)).fetchone()
    assert row is not None
    assert {"1204331", "acme", "tm", "10", "6", "next"} <= set(row[0])
    assert not [term for term in row[0] if not term.isalnum()]
