"""Statements without ruling lines are rebuilt from the positions of their words, and no text is lost."""

from __future__ import annotations

import re

import pytest

from tests.ingestion import files
from tests.ingestion.tables.measure import STATEMENTS, page_rows, rebuilt
from tests.ingestion.tables.statements import statement
from workbench.ingestion.readers.formats import read_bytes
from workbench.ingestion.readers.pdf.tables import FigureRow, PlacedText

WORD = re.compile(r"[^\W_]+")


def test_at_least_28_of_30_statements_can_be_rebuilt_from_their_passages() -> None:
    missed = [seed for seed in range(STATEMENTS) if not rebuilt(statement(seed))]
    assert len(missed) <= 2, f"not rebuilt: {missed}"


@pytest.mark.parametrize("seed", range(4))
def test_every_word_of_a_page_is_kept(seed: int) -> None:
    page = statement(seed)
    words = WORD.findall(read_bytes(page.pdf, "harbour.pdf").text)
    for label, figures in page.rows:
        assert set(WORD.findall(" ".join((label, *figures)))) <= set(words)
    assert {"accompanying", "notes", "CONSOLIDATED", *page.columns} <= set(words)


@pytest.mark.parametrize("seed", range(4))
def test_small_passages_hold_the_figures_in_their_columns_too(seed: int) -> None:
    assert rebuilt(statement(seed), size=120)


def test_prose_with_figures_stays_prose() -> None:
    lines = [
        (700 - 14 * line, f"In 20{line:02} there were {line} boats, and {line + 3} in the year after it.")
        for line in range(20)
    ]
    text = read_bytes(files.paged_pdf([lines]), "boats.pdf").text
    assert "|" not in text
    assert "there were 7 boats, and 10 in the year" in " ".join(text.split())


def test_a_figure_that_ends_a_label_is_no_figure_of_the_row() -> None:
    words = (PlacedText("Shares,", 50, 80), PlacedText("754.6", 83, 100))
    row = FigureRow(
        "Shares,",
        (PlacedText("754.6", 83, 100), PlacedText("12", 290, 300)),
        (*words, PlacedText("12", 290, 300)),
        0,
        8,
    )
    fitted = row.fit([300.0, 372.0], 9.0)
    assert (fitted.label, [figure.text for figure in fitted.figures]) == ("Shares, 754.6", ["12"])


def test_the_measure_counts_rows_whose_figures_share_a_cell_as_lost() -> None:
    plain = "Net sales      14,189   14,082\nCost of sales      9,683   9,019\n"
    assert page_rows(plain, "| Net sales | 14,189 | 14,082 |\n| Cost of sales | 9,683 | 9,019 |") == (2, 2)
    assert page_rows(plain, "| Net sales Cost of sales | 14,189 9,683 | 14,082 9,019 |") == (2, 0)
