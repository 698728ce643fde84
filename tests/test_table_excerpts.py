"""In a small space, a passage shows the table rows that match the question best, below their column names."""

from __future__ import annotations

from workbench.marking import TableExcerpt, remove_rows, table_excerpt

TABLE = """## Dues

Dues of the harbour were as follows:

| (in thousands) | 2023 | 2024 |
|---|---|---|
| Quay | 120 | 131 |
| Crane | 80 | 92 |
| Shed: | | |
| of the curers | 17 | (19) |
| of the coopers | 4 | 5 |
| Total dues | $ 221 | $ 247 |

The board met in March and let two of the sheds."""


def test_the_rows_that_match_most_are_below_the_names_of_their_columns() -> None:
    shown = table_excerpt("What were the dues of the crane in 2024?", TABLE)
    assert shown is not None
    assert shown.names == ("(in thousands)", "2023", "2024")
    assert ("Crane", "80", "92") in shown.rows and ("Total dues", "$ 221", "$ 247") in shown.rows
    assert len(shown.rows) == 4
    assert [shown.is_figures(column) for column in range(3)] == [False, True, True]


def test_a_line_of_prose_that_matches_more_is_shown_without_the_table() -> None:
    assert table_excerpt("When did the board meet in March about sheds?", TABLE) is None
    prose = remove_rows(TABLE)
    assert "The board met in March" in prose and "|" not in prose


def test_a_line_that_leads_to_a_table_speaks_for_it() -> None:
    shown = table_excerpt("dues of the harbour as follows", TABLE)
    assert shown is not None and len(shown.rows) == 4


def test_a_passage_that_continues_a_table_has_the_names_of_its_header() -> None:
    rest = "| Crane | 80 | 92 |\n| Total dues | $ 221 | $ 247 |"
    shown = table_excerpt("crane 2024", rest, "| (in thousands) | 2023 | 2024 |\n|---|---|---|")
    assert shown is not None and shown == TableExcerpt(
        ("(in thousands)", "2023", "2024"), (("Crane", "80", "92"), ("Total dues", "$ 221", "$ 247"))
    )
    assert shown.lines() == ["Crane, 2023: 80 · 2024: 92", "Total dues, 2023: $ 221 · 2024: $ 247"]
    assert (table_excerpt("crane", rest) or shown).lines()[0] == "Crane: 80 · 92"


def test_of_many_columns_those_that_are_asked_for_are_shown_and_empty_ones_are_not() -> None:
    names = ["Quay", *(str(year) for year in range(2010, 2025)), ""]
    row = ["Outer", *(str(place) for place in range(15)), ""]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (names, ["---"] * 17, row))
    shown = table_excerpt("outer quay in 2022", table)
    assert shown is not None
    assert shown.names == ("Quay", "2020", "2021", "2022", "2023", "2024") and shown.rows[0][3] == "12"


def test_a_table_and_a_page_number_are_shown_as_a_table_whatever_is_asked() -> None:
    shown = table_excerpt("lobsters", "| Quay | 2023 |\n|---|---|\n| Outer | 120 |\n| Inner | 80 |\n\n117")
    assert shown == TableExcerpt(("Quay", "2023"), (("Outer", "120"), ("Inner", "80")))


def test_a_table_without_a_word_of_the_question_is_left_out() -> None:
    assert table_excerpt("lobsters", TABLE) is None
    assert remove_rows("| a | b |\n|---|---|\n| c | d |").count("|") > 0
