"""Tables below each other on a page: each keeps its own columns, and a wide table stays one."""

from __future__ import annotations

import io
from collections.abc import Sequence

from tests.ingestion.tables.test_rows_and_names import HEIGHT, WIDTH, tables

LEFT = 40
QUAYS = ("North", "South", "East", "West", "Outer", "Inner", "Upper", "Lower")


def page(texts: Sequence[tuple[float, float, str, bool]]) -> bytes:
    """Return a PDF page of texts: their edge, height, words, and whether the edge is the right one."""
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(WIDTH, HEIGHT))
    canvas.setFont("Times-Roman", 9)
    for edge, height, words, is_right in texts:
        (canvas.drawRightString if is_right else canvas.drawString)(edge, height, words)
    canvas.save()
    return target.getvalue()


def dues(left: float, thing: str, start: float, first: int) -> list[tuple[float, float, str, bool]]:
    """Return a table of eight rows and two years at a left edge."""
    years = [(left + 180, start, "2023", True), (left + 240, start, "2022", True)]
    rows = [
        (left + across, start - 12 * (row + 1), text, across > 0)
        for row, quay in enumerate(QUAYS)
        for across, text in (
            (0, f"{thing} of the {quay} quay"),
            (180, f"{first + row},{row}10"),
            (240, f"{first + row},{row}20"),
        )
    ]
    return [(left, start, "In crans", False), *years, *rows]


def expected(thing: str, first: int) -> list[list[str]]:
    return [
        ["In crans", "2023", "2022"],
        *(
            [f"{thing} of the {quay} quay", f"{first + row},{row}10", f"{first + row},{row}20"]
            for row, quay in enumerate(QUAYS)
        ),
    ]


def test_tables_below_each_other_whose_columns_end_elsewhere_are_each_whole() -> None:
    lower = [
        (edge + (13 if is_right else 0), height, text, is_right)
        for edge, height, text, is_right in dues(LEFT, "Nets", 580, 5)
    ]
    lowest = [
        (edge + (26 if is_right else 0), height, text, is_right)
        for edge, height, text, is_right in dues(LEFT, "Oars", 460, 2)
    ]
    data = page([*dues(LEFT, "Dues", 700, 3), *lower, *lowest])
    assert tables(data) == [expected("Dues", 3), expected("Nets", 5), expected("Oars", 2)]


def test_a_table_over_the_whole_page_stays_one() -> None:
    wide = [
        (edge, 700 - 14 * row, text, edge > LEFT)
        for row, quay in enumerate(QUAYS)
        for edge, text in (
            (LEFT, f"Dues of the {quay} quay"),
            (330.0, f"1,{row}10"),
            (420.0, f"2,{row}20"),
            (510.0, f"3,{row}30"),
        )
    ]
    years = [
        (LEFT, 714, "In crans", False),
        *((edge, 714, year, True) for edge, year in ((330.0, "2023"), (420.0, "2022"), (510.0, "2021"))),
    ]
    [table] = tables(page([*years, *wide]))
    assert table[0] == ["In crans", "2023", "2022", "2021"]
    assert table[-1] == ["Dues of the Lower quay", "1,710", "2,720", "3,730"]


def test_a_short_table_below_a_long_one_takes_its_columns() -> None:
    short = [
        (edge, height, words, is_right) for edge, height, words, is_right in dues(LEFT, "Nets", 580, 5) if height > 550
    ]
    first, second = tables(page([*dues(LEFT, "Dues", 700, 3), *short]))
    assert first == expected("Dues", 3)
    assert second == expected("Nets", 5)[:3]
