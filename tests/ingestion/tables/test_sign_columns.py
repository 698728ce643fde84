"""Signs in columns of their own stand with their figures, and a row of the form of those below it is no header."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.ingestion.tables.test_rows_and_names import page, tables
from workbench.ingestion.readers.header_rows import is_first_row, with_whole_amounts


@pytest.mark.parametrize(
    ("rows", "whole"),
    [
        (  # a currency in a column of its own, and at the end of the cell before
            [["", "", "2023", "2022"], ["Nets", "$", "230 $", "172"], ["Sails", "", "(4)", "51"]],
            [["", "2023", "2022"], ["Nets", "$ 230", "$ 172"], ["Sails", "(4)", "51"]],
        ),
        (  # three in a row
            [["", "", "", "", ""], ["Nets", "$", "1 $", "2 $", "3"], ["Sails", "$", "4 $", "5 $", "6"]],
            [["", "", "", ""], ["Nets", "$ 1", "$ 2", "$ 3"], ["Sails", "$ 4", "$ 5", "$ 6"]],
        ),
        (  # brackets and percent signs after the figure
            [["", "Change", "", "Share", ""], ["Nets", "(4", ")", "2.5", "%"], ["Sails", "3", "", "(1", ")%"]],
            [["", "Change", "Share"], ["Nets", "(4)", "2.5 %"], ["Sails", "3", "(1)%"]],
        ),
        (  # the name over a sign is the name of its figures
            [["", "Year", "2023", "2022"], ["Nets", "£", "1", "2"], ["Sails", "", "3", "4"]],
            [["", "Year 2023", "2022"], ["Nets", "£ 1", "2"], ["Sails", "3", "4"]],
        ),
        (  # words beside a sign, and a date before it
            [["Rate", "Due", "Amount"], ["3.2 %", "July 2029 £", "300 (b)"], ["3.6 %", "May 2028 $", "750"]],
            [["Rate", "Due", "Amount"], ["3.2 %", "July 2029", "£ 300 (b)"], ["3.6 %", "May 2028", "$ 750"]],
        ),
        (  # nothing to put back: a sign before words, two figures in a cell, a column of ticks
            [["", "", ""], ["Nets", "$", "a crate"], ["Sails", "5 $", "6 7"], ["Oars", "x", ""]],
            [["", "", ""], ["Nets", "$", "a crate"], ["Sails", "5 $", "6 7"], ["Oars", "x", ""]],
        ),
    ],
)
def test_each_sign_stands_in_the_cell_of_its_figure(
    rows: Sequence[Sequence[str]], whole: Sequence[Sequence[str]]
) -> None:
    assert with_whole_amounts(rows) == whole


@pytest.mark.parametrize(
    "rows",
    [
        [["2016", "$ 51"], ["2017", "50"]],
        [["3.200 %", "July 2029", "£ 300"], ["3.550 %", "July 2034", "£ 450"], ["3.600 %", "May 2028", "$ 750"]],
        [["Harbour Services LLC", "Shetland", "100%"], ["Nets Ltd", "Orkney", "50%"], ["Sails Ltd", "Skye", "51%"]],
        [
            ["FLNA", "$ -", "$ 29", "Juice"],
            ["PBNA", "51", "66", ""],
            ["Europe", "14", "-", ""],
            ["Asia", "3", "17", ""],
        ],
    ],
)
def test_a_row_of_the_form_of_those_below_is_the_first_of_them(rows: Sequence[Sequence[str]]) -> None:
    assert is_first_row(rows)


@pytest.mark.parametrize(
    "rows",
    [
        [["2016", "Boats"], ["2017", "50"], ["2018", "51"]],
        [["", "2023", "2022"], ["Nets", "51", "50"], ["Sails", "4", "6"]],
        [["", "5 %", "10 %"], ["Nets", "some", "more"], ["Sails", "few", "none"]],
        [["Boats", "2023 2.88%", "2022 2.50%"], ["Nets", "5%", "4%"], ["Sails", "3%", "2%"]],
        [["Loan", "Notes of 2.5%"], ["Nets", "51"], ["Sails", "50"]],
    ],
)
def test_names_are_no_row(rows: Sequence[Sequence[str]]) -> None:
    assert not is_first_row(rows)


def test_signs_at_the_left_edge_of_a_page_s_columns_stand_with_their_figures() -> None:
    lines = [
        (724, "The dues that are owed in the years to come were agreed with the harbour in", []),
        (712, "the spring, and are paid by the boats that use it, in thousands of crans:", []),
    ]
    signs, amounts = (True, False, True), ("5,000", "4,998", "9,998")
    for row, (label, signed, amount) in enumerate(zip(("Nets", "Sails", "Total dues"), signs, amounts, strict=True)):
        texts = [(450.0, amount), *([(400.0, "$")] if signed else [])]
        lines.append((680 - 20 * row, label, texts))
    [table] = tables(page(lines))
    assert table == [["", ""], ["Nets", "$ 5,000"], ["Sails", "4,998"], ["Total dues", "$ 9,998"]]


def test_a_label_divided_at_the_end_of_its_line_does_not_undo_the_table() -> None:
    years = [(330.0, "2023"), (420.0, "2022")]
    lines = [(700, "In crans", years), (688, "Dues of the boats before pay-", []), (676, "ments to the pilots:", [])]
    lines += [
        (664 - 12 * row, f"Dues of quay {row}", [(330, f"{row + 3},110"), (420, f"{row + 4},220")]) for row in range(6)
    ]
    [table] = tables(page(lines))
    assert table[0] == ["In crans", "2023", "2022"]
    assert table[1][0] == "Dues of the boats before pay- ments to the pilots:"
    assert table[-1] == ["Dues of quay 5", "8,110", "9,220"]
