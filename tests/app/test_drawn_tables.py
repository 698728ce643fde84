"""Rendered tables: figures aligned right, records of a sheet as rows, every value at its position in the text."""

from __future__ import annotations

from workbench.app.widgets.elements import Element, TextRun, plain_text
from workbench.app.widgets.markdown import parse_markdown

FLEET = """## Fleet

Vessel: Heron
Type: Ferry
Insured value (USD): 3612500

Vessel: Ibis *new*
Built: 1996
Insured value (USD): 3950000

Vessel: Total
Insured value (USD): 7562500
"""


def grid(table: Element) -> list[list[str]]:
    rows = [row for part in table.children if isinstance(part, Element) for row in part.children]
    return [
        [plain_text(cell.children) for cell in row.children if isinstance(cell, Element)]
        for row in rows
        if isinstance(row, Element)
    ]


def sides(table: Element) -> list[set[object]]:
    rows = [row for part in table.children if isinstance(part, Element) for row in part.children]
    lines = [[cell for cell in row.children if isinstance(cell, Element)] for row in rows if isinstance(row, Element)]
    return [{cell.attributes.get("align") for cell in column} for column in zip(*lines, strict=True)]


def tables(text: str, has_records: bool = False) -> list[Element]:
    blocks = parse_markdown(text, has_records=has_records).blocks
    return [block for block in blocks if isinstance(block, Element) and block.tag == "table"]


def test_columns_of_figures_are_to_the_right_with_their_names_and_labels_and_words_do_not() -> None:
    rows = "| 1 | $ 1,204 | (38) | 9.8 % | A 1 |\n| 2 | 411 | — | 0.40% | B |\n"
    text = f"| 2024 | Q3 | Loss | Share | By |\n|---|---|---|---|---|\n{rows}"
    assert sides(tables(text)[0]) == [{None}, {"right"}, {"right"}, {"right"}, {None}]


def test_sides_that_a_text_gives_its_columns_stay() -> None:
    assert sides(tables("| a | b | c |\n|---|:---:|---|\n| x | 1 | 2 |\n")[0]) == [{None}, {"center"}, {None}]


def test_records_of_a_sheet_are_one_table_with_a_column_for_each_name() -> None:
    table = tables(FLEET, has_records=True)[0]
    assert grid(table) == [
        ["Vessel", "Type", "Built", "Insured value (USD)"],
        ["Heron", "Ferry", "", "3612500"],
        ["Ibis new", "", "1996", "3950000"],
        ["Total", "", "", "7562500"],
    ]
    assert tables(FLEET) == []  # elsewhere such lines are prose


def test_each_value_of_a_record_is_where_it_claims() -> None:
    def check(element: Element) -> int:
        runs = [child for child in element.children if isinstance(child, TextRun)]
        assert all(FLEET[run.start : run.end] == run.text for run in runs if run.end)
        return len(runs) + sum(check(child) for child in element.children if isinstance(child, Element))

    assert check(tables(FLEET, has_records=True)[0]) >= 12


def test_a_line_without_a_name_or_a_single_line_is_no_record() -> None:
    assert tables("Note: only one line\n\nTwo lines\nName: but one has none\n", has_records=True) == []
