"""The sentences that answer: those of the relevant section come before those that only repeat a word."""

from __future__ import annotations

import pytest

from workbench.models.hashing import HashEncoder
from workbench.retrieval.answering.synthesis import best_sentences, format_quotes
from workbench.types import Passage

QUESTION = "How long should moorings be?"
SECTION = (
    "Short ones drag and long ones foul the neighbours. Three times the depth of the water is a good start, and five "
    "times in a storm. Chain and rope share that length half and half. Try two of them in the first summer."
)
ELSEWHERE = (
    "All the moorings are lifted in autumn.",
    "The dues of moorings are paid twice.",
    "Moorings are painted red.",
)


def _passage(rank: int, score: float, text: str, title: str, heading: str) -> Passage:
    return Passage(
        rank=rank, score=score, passage_id=f"psg_{rank}", document_id=f"doc_{rank}", document_title=title,
        source_id="src", path=None, url=None, text=text, start=0, end=len(text), match_type="hybrid",
        attribution={}, metadata={"heading_path": [title, heading]},
    )  # fmt: skip


def test_a_section_about_the_question_answers_before_sentences_that_repeat_a_word_of_it() -> None:
    passages = [_passage(1, 0.9, SECTION, "Moorings", "How long?")]
    passages += [_passage(place, 0.6, text, "Harbour", "Rules") for place, text in enumerate(ELSEWHERE, start=2)]
    quotes = best_sentences(QUESTION, None, HashEncoder(), passages)
    assert [quote.number for quote in quotes][:4] == [1, 1, 1, 1]
    assert "Three times the depth of the water is a good start" in quotes[1].text


def test_a_word_that_only_the_columns_have_speaks_less_for_a_row_than_for_a_sentence() -> None:
    table = "| Quay | Moorings | Dues |\n|---|---:|---:|\n" + "".join(f"| {name} | 12 | 340 |\n" for name in "ABC")
    passages = [
        _passage(1, 0.9, table, "Harbour", "Figures"),
        _passage(2, 0.9, "Lobsters are sold on Friday. The boats tie up to moorings of chain.", "Harbour", "Boats"),
    ]
    (best, *rest) = sorted(
        best_sentences("moorings", None, HashEncoder(), passages), key=lambda quote: quote.score, reverse=True
    )
    assert best.text == "The boats tie up to moorings of chain."
    assert "A: Moorings 12 · Dues 340" in [quote.text for quote in rest]


def test_of_a_table_only_the_rows_that_are_asked_about_are_quoted() -> None:
    table = "| Part | Checked every |\n|---|---|\n"
    table += "| Chain of the mooring | 6 months |\n| Buoy | 12 months |\n| Lines | 2 weeks |"
    quotes = best_sentences("How often is the chain checked?", None, HashEncoder(), [_passage(1, 0.9, table, "M", "C")])
    assert [quote.text for quote in quotes] == ["Chain of the mooring: Checked every 6 months"]
    every = best_sentences("What is checked?", None, HashEncoder(), [_passage(1, 0.9, table, "M", "C")])
    assert len(every) == 3


def test_a_row_is_read_with_a_sign_between_a_columns_name_and_its_value_and_compared_without() -> None:
    table = "| Dues | 2023 | 2024: | |\n|---|---|---|---|\n| Dues of the quay | 1,180 | 1,204 | 7 |\n"
    table += "\n| Of the pier |  |  |\n|---|---|---|\n| Dues of the pier | 1,014 | 1,015 |\n"
    quotes = best_sentences("What are the dues?", None, HashEncoder(), [_passage(1, 0.9, table, "M", "C")])
    assert [quote.text for quote in quotes] == [
        "Dues of the quay: 2023 1,180 · 2024: 1,204 · 7",
        "Dues of the pier: 1,014 · 1,015",
    ]
    assert format_quotes(quotes) == (
        "Dues of the quay, 2023: 1,180 · 2024: 1,204 · 7 [1] Dues of the pier: 1,014 · 1,015 [1]"
    )


def test_a_row_that_no_word_of_the_question_is_in_does_not_fill_up_an_answer() -> None:
    rows = "| Step | Fee |\n|---|---|\n| Rendering of it | 40 ms |\n| Reserve of it | 35 ms |\n"
    answer = "The fee of a berth for one night is 28 euro, paid at the office of the harbour."
    passages = [_passage(1, 0.9, answer, "Harbour", "Dues"), _passage(2, 0.6, rows, "Budget", "Steps")]
    quotes = best_sentences("What is the fee of a berth for a night?", None, HashEncoder(), passages)
    assert [quote.text for quote in quotes] == [answer]


@pytest.mark.parametrize(
    "pointer",
    [
        "See accompanying notes to consolidated financial statements.",
        "See Note 9 for additional information.",
        "(Refer to pages 83-84 of the harbour's 2020 report for the moorings.)",
        "Siehe Anhang 3 zu den Moorings des Hafens.",
    ],
)
def test_a_sentence_that_only_reports_where_to_read_is_not_quoted(pointer: str) -> None:
    said = f"{pointer} The moorings are lifted in autumn and laid out in spring."
    quotes = best_sentences("When are moorings lifted?", None, HashEncoder(), [_passage(1, 0.9, said, "Moorings", "")])
    assert [quote.text for quote in quotes] == ["The moorings are lifted in autumn and laid out in spring."]


@pytest.mark.parametrize("advice", ["See a rigger if the moorings drag.", "See accompanying notes to moorings."])
def test_advice_is_quoted_and_so_is_a_reference_if_nothing_else_is_left(advice: str) -> None:
    quotes = best_sentences("moorings", None, HashEncoder(), [_passage(1, 0.9, advice, "Moorings", "")])
    assert [quote.text for quote in quotes] == [advice]


def test_a_short_row_is_quoted() -> None:
    table = "| | Due |\n|---|---|\n| 2024 | $ 1,204 |\n| 2025 | 730 |\n| Thereafter, in later years | $ 3,310 |"
    quotes = best_sentences("What is due in 2025?", None, HashEncoder(), [_passage(1, 0.9, table, "Debt", "")])
    assert [quote.shown for quote in quotes] == ["2025, Due: 730"]
