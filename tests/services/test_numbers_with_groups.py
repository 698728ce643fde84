"""A number is one word with or without digit groups: every strategy finds and marks it either way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from workbench import Workbench, marking
from workbench.retrieval import highlight
from workbench.retrieval.strategies import STRATEGIES
from workbench.text import fold_word, iter_spaced_words

TEXTS = {
    "comma.md": "# Comma\n\nThe harbour counted 1,204 boats that summer.",
    "plain.md": "# Plain\n\nThe shipyard built 7315 masts in a year.",
    "blank.md": "# Blank\n\nThe fleet carried 2 468 barrels over the sea.",
    "point.md": "# Punkt\n\nDie Werft hat im Sommer 5.631 Ruder verkauft.",
    "parts.md": "# Parts\n\nRoom 1 holds 204 lamps, room 7 holds 315 and room 12 holds 04.",
    "near.md": "# Near\n\nThe museum shows 1,205 anchors and 7314 knots.",
}
ASKED = {
    "1204": "comma.md", "1,204": "comma.md", "1 204": "comma.md", "1.204": "comma.md",
    "7,315": "plain.md", "7315": "plain.md",
    "2468": "blank.md", "2,468": "blank.md",
    "5631": "point.md", "5,631": "point.md", "5.631": "point.md",
}  # fmt: skip
CUT = (
    "1,204 boats, 1 204 boats, 1.204 boats, 1'204 boats, 1\u202f204 boats, $12,345,678.90 and (1,204)",
    "192.168.100.1 and 10.1016 and 3.14 and 0.204 and 1,20 and 12345,678 and v1.204 and 1,204kg and 1,204ä",
    "in 2019 204 boats, 305 204 305 204, 1,204 305 400, 1,204 1,305, 1 204,305, 1.204,305, 1,204.305, 305 204,100",
    "共1,204人 3月204 ปี1,204คน 1 204 305.100 and 12 345 678 901 234 567",
)


@pytest.fixture
def numbers(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    wb.ingest(folder(TEXTS), source="Numbers")
    return wb


@pytest.mark.parametrize(("number", "file"), ASKED.items())
def test_a_number_is_found_however_its_digits_are_grouped_and_no_other_is(
    numbers: Workbench, number: str, file: str
) -> None:
    assert [hit.path for hit in numbers.search(number, "keyword")] == [file]


@pytest.mark.parametrize(
    "strategy", [s.name for s in STRATEGIES.values() if s.has_keyword_leg and not s.needs and not s.needs_scope]
)
def test_every_strategy_with_words_has_it_first(numbers: Workbench, strategy: str) -> None:
    assert numbers.search("1204", strategy, limit=3)[0].path == "comma.md"


@pytest.mark.parametrize("number", ["1204", "1,204"])
def test_the_number_is_marked_whole_and_explained(numbers: Workbench, number: str) -> None:
    [hit] = numbers.search(number, "keyword")
    assert [hit.text[slice(*span)] for span in marking.match_spans(number, hit.text)] == ["1,204"]
    with numbers.corpus.reader.transaction() as connection:
        [spans] = highlight.find_matched_spans(connection, [highlight.MarkableText(hit.text, "english")], {"1204"})
    assert "<mark>1,204</mark> boats" in highlight.mark_spans(hit.text, spans)
    why = numbers.explain(number, hit.passage_id)
    assert [term.term for term in why.terms] == ["1204"]
    assert why.missing_terms == ()


def test_a_number_that_nothing_has_is_not_taken_for_another(numbers: Workbench) -> None:
    result = numbers.search("1206 anchors", "fuzzy")
    assert result.corrections == {}
    assert not numbers.search("1,206", "keyword").results


def test_the_database_and_the_marks_cut_numbers_alike(numbers: Workbench) -> None:
    with psycopg.connect(numbers.corpus.database.url) as connection:
        for text in CUT:
            cut = connection.execute("SELECT tsvector_to_array(workbench_terms('simple', %s))", (text,)).fetchone()
            assert cut is not None
            words = {fold_word(word.group()).lower() for word in iter_spaced_words(text)}
            names = {word for word in cut[0] if "." in word}  # an address is a term of its own, too
            assert {word for word in cut[0] if word.isascii() or "ä" in word} - names == words


def test_a_title_that_reports_a_number_is_named_by_it(wb: Workbench, folder: Callable[..., Path]) -> None:
    files = {"a.md": "# Harbour of 1,204 boats\n\nIt is full.", "b.md": "# Museum of 1,305 lamps\n\nIt is full."}
    wb.ingest(folder(files), source="N")
    hit = wb.search("harbour of 1204 boats", "hybrid")[0]
    assert (hit.path, hit.attribution["document"].score) == ("a.md", 1.0)
