"""Labels and one column of figures without ruling lines are a table; prose and tables of contents are not."""

from __future__ import annotations

import pytest

from tests.ingestion.tables.test_rows_and_names import page, tables
from workbench.ingestion.readers.formats import read_bytes

EDGE = 520
PROSE = "The harbour board repaired the quay in the spring and let the sheds to the curers of the town."
DEBT = [("2024", "$ 1,204"), ("2025", "730"), ("2026", "1,115"), ("Thereafter", "3,310"), ("Total", "$ 6,359")]
ASSETS = [
    ("Quays and piers", "$ 12,300"),
    ("Sheds:", ""),
    ("Of the curers", "2,480"),
    ("Of the coopers and the makers of", ""),
    ("barrels", "390"),
    ("Less depreciation", "(115)"),
    ("Total assets", "$ 15,055"),
]


def harbour(rows: list[tuple[str, str]], header: tuple[str, str] | None = None, edge: float = EDGE) -> bytes:
    lines = [(740 - 13 * line, PROSE, []) for line in range(3)]
    top = 680
    if header is not None:
        lines.append((top, header[0], [(edge, header[1])]))
    lines += [
        (top - 14 * place, label, [(edge, figure)] if figure else []) for place, (label, figure) in enumerate(rows, 1)
    ]
    return page([*lines, *((400 - 13 * line, PROSE, []) for line in range(3))])


@pytest.mark.parametrize("name", ["Amount", "2023", "December 31, 2023"])
def test_labels_and_one_column_are_a_table_with_the_names_of_both(name: str) -> None:
    [table] = tables(harbour(DEBT, ("(in thousands)", name)))
    assert table == [["(in thousands)", name], *([label, figure] for label, figure in DEBT)]


def test_names_of_parts_stay_and_labels_of_two_lines_are_one() -> None:
    [table] = tables(harbour(ASSETS))
    assert table[2:] == [
        ["Sheds:", ""],
        ["Of the curers", "2,480"],
        ["Of the coopers and the makers of barrels", "390"],
        ["Less depreciation", "(115)"],
        ["Total assets", "$ 15,055"],
    ]


def test_what_is_around_the_table_is_stated_once_and_in_order() -> None:
    text = read_bytes(harbour(DEBT, ("(in thousands)", "Amount")), "harbour.pdf").text
    assert text.count(PROSE) == 6
    assert text.index(PROSE) < text.index("Thereafter") < text.rindex(PROSE)
    assert text.count("1,204") == 1


@pytest.mark.parametrize(
    "rows",
    [
        [("Chapter of the north", "7"), ("Chapter of the south", "14"), ("The east", "21"), ("The west", "28")],
        [("The dues of that year came to", "$ 1,204"), ("and of the next one to", "$ 730")],
        [(f"The master of the vessel paid dues of {37 * line},204 in the year", "") for line in range(1, 6)],
    ],
    ids=["contents", "too few", "prose"],
)  # fmt: skip
def test_contents_two_rows_and_prose_are_no_table(rows: list[tuple[str, str]]) -> None:
    assert tables(harbour(rows)) == []


def test_rows_whose_labels_are_two_cells_are_not_joined_into_one_label() -> None:
    lines = [
        (700 - 14 * line, "", [(150, f"Quay {word}"), (330, "repaired in spring"), (EDGE, f"$ {line},204")])
        for line, word in enumerate(["North", "South", "East", "West", "Outer", "Inner"], 1)
    ]
    text = read_bytes(page(lines), "harbour.pdf").text
    assert "| Quay North repaired in spring |" not in text
