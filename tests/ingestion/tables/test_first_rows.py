"""A divided label does not break a table."""

from __future__ import annotations

from tests.ingestion.tables.test_rows_and_names import page, tables


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
