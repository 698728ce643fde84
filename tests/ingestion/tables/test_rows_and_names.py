"""A row of figures does not name columns, and neighbouring tables keep their own columns and years."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from workbench.ingestion.readers.formats import read_bytes
from workbench.ingestion.readers.grid import is_data_row

LEFT, WIDTH, HEIGHT = 50, 612, 792


def page(lines: Sequence[tuple[int, str, Sequence[tuple[float, str]]]]) -> bytes:
    """Return a PDF page of lines: the height of each, its label, and texts by their right edges."""
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(WIDTH, HEIGHT))
    canvas.setFont("Times-Roman", 9)
    for height, label, texts in lines:
        canvas.drawString(LEFT, height, label)
        for right, text in texts:
            canvas.drawRightString(right, height, text)
    canvas.save()
    return target.getvalue()


def tables(data: bytes) -> list[list[list[str]]]:
    """Return the cells of the tables of a document."""
    found: list[list[list[str]]] = []
    for block in read_bytes(data, "harbour.pdf").text.split("\n\n"):
        rows = [line for line in block.split("\n") if line.startswith("|") and not set(line) <= set("|-: ")]
        if block.startswith("|"):
            blank = [[""] * (block.split("\n", 1)[0].count("|") - 1)] if block.startswith("|  ") and rows else []
            found.append([*([] if rows[0] == block.split("\n", 1)[0] else blank), *(_cells(row) for row in rows)])
    return found


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


@pytest.mark.parametrize(
    "row",
    [
        ("Net sales", "$", "17,626.6 5 %"),
        ("Net sales (in millions) $ 10,750.5", "8 % $", "9,925.2", ""),
        ("Foreign currency exchange", "(1)pt"),
        ("Notes due on August 21, 2020", "$", "1,000"),
        ("Discount rate", "3.48%", "NM"),
        ("", "$ 92", "$ 83"),
    ],
)
def test_a_label_and_amounts_are_a_row_of_data(row: Sequence[str]) -> None:
    assert is_data_row(row)


@pytest.mark.parametrize(
    "row",
    [
        ("", "2023", "2022"),
        ("(in millions)", "2023", "2022", "Change"),
        ("Period", "Less than 1 year", "1-3 years"),
        ("", "Level 1(1)", "Level 2(2)"),
        ("", "March 31, 2023", "%"),
        ("", "5 %", "10 %"),
        ("Boats", "2023 2.88%", "2022 2.50%"),
        ("Harbour Services LLC", "Shetland", "100%"),
    ],
)
def test_years_and_words_name_columns(row: Sequence[str]) -> None:
    assert not is_data_row(row)


def test_two_tables_below_each_other_have_each_their_own_columns_and_years() -> None:
    years = [(330.0, "2023"), (420.0, "2022")]  # over the middle of their columns, whose figures end further right
    lines = [(700, "", years)]
    lines += [
        (688 - 12 * row, f"Dues of quay {row}", [(345, f"{row + 3},110"), (435, f"{row + 4},220")]) for row in range(5)
    ]
    lines += [(625, "The pilots were paid as follows:", []), (610, "", [(300.0, "2023"), (390.0, "2022")])]
    lines += [
        (598 - 12 * row, f"Pay of pilot {row}", [(315, f"{row + 5}7.5"), (405, f"({row + 6}8.5)")]) for row in range(3)
    ]
    first, second = tables(page(lines))
    assert (first[0], first[1]) == (["", "2023", "2022"], ["Dues of quay 0", "3,110", "4,220"])
    assert (second[0], second[-1]) == (["", "2023", "2022"], ["Pay of pilot 2", "77.5", "(88.5)"])


def test_columns_that_few_rows_fill_are_kept_with_their_names() -> None:
    names = [
        [(300, "Fiscal"), (380, "2023 against"), (460, "Share of")],
        [(300, "2023"), (380, "2022"), (460, "Sales")],
    ]
    lines = [(700, "In crans,", names[0]), (688, "but for shares", names[1])]
    rows = [
        ("Net sales", "$ 17,626.6", "5%", ""),
        ("Operating profit", "2,953.9", "17%", "16.8%"),
        ("Net earnings", "2,181.2", "24%", ""),
        ("Adjusted profit", "3,058.0", "7%", "17.3%"),
        ("Earnings a boat", "$ 3.56", "23%", ""),
    ]
    for number, (label, *figures) in enumerate(rows):
        texts = [(right, text) for right, text in zip((300, 380, 460), figures, strict=True) if text]
        lines.append((676 - 12 * number, label, texts))
    [table] = tables(page(lines))
    assert table[0][2:] == ["2023 against 2022", "Share of Sales"]
    assert [row[0:2] + row[3:] for row in table[1:3]] == [
        ["Net sales", "$ 17,626.6", ""],
        ["Operating profit", "2,953.9", "16.8%"],
    ]


def test_a_figure_that_is_not_meaningful_fills_its_cell() -> None:
    lines = [(700, "", [(300, "2023"), (380, "2022"), (460, "Change")])]
    for number, change in enumerate(("12 %", "NM", "(3) %", "NM", "7 %")):
        lines.append(
            (
                688 - 12 * number,
                f"Dues of quay {number}",
                [(300, f"1,{number}10"), (380, f"2,{number}20"), (460, change)],
            )
        )
    [table] = tables(page(lines))
    assert [row[3] for row in table] == ["Change", "12%", "NM", "(3)%", "NM", "7%"]
    assert table[2][:3] == ["Dues of quay 1", "1,110", "2,120"]


def test_a_row_above_the_years_of_the_next_table_stays_where_it_is() -> None:
    lines = [(700, "", [(300, "2023"), (380, "2022")])]
    lines += [(688 - 12 * row, f"Boats of quay {row}", [(300, f"1,{row}10"), (380, f"2,{row}20")]) for row in range(4)]
    lines += [(640, "Total", [(300, "$ 4,460"), (380, "$ 8,480")]), (628, "In crans", [(300, "2023"), (380, "2022")])]
    lines += [(616 - 12 * row, f"Nets of quay {row}", [(300, f"3,{row}10"), (380, f"4,{row}20")]) for row in range(4)]
    rows = [row for table in tables(page(lines)) for row in table]
    assert ["Total", "$ 4,460", "$ 8,480"] in rows
    assert not any("4,460" in cell and "2023" in cell for row in rows for cell in row)
