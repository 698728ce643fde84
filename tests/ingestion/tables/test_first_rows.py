"""A row with the form of those below it is not a header, and a divided label does not break a table."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.ingestion.tables.test_rows_and_names import page, tables
from workbench.ingestion.readers.header_rows import is_first_row


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
