"""Figures of a sheet's cells in their number formats, and the tables that contain them."""

import io

import openpyxl
import pytest

from workbench.ingestion.incoming import content_hash
from workbench.ingestion.readers.formats import read_bytes
from workbench.ingestion.readers.grid import format_figure


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (0.125, "0.0%", "12.5%"),
        (12.5, '0.0"%"', "12.5%"),
        (12.5, r"0.0\%", "12.5%"),
        (15, '0"%"_);(0"%")', "15%"),
        (1500, "0,.0", "1.5"),
        (1_234_567, "#,##0,", "1,235"),
        (1.5, "0." + "0" * 30, "1.5" + "0" * 29),
        (1e14, "0." + "0" * 20, "1" + "0" * 14 + "." + "0" * 20),
        (-5, "#,##0_);(#,##0)", "(5)"),
        (1, '"Yes";"Yes";"No"', "Yes"),
        (0, '"Yes";"Yes";[Red]"No"', "No"),
        (0, '0;-0;"-"', "0"),
        (123456789, "000-00-0000", "123-45-6789"),
        (5551234567, "(000) 000-0000", "(555) 123-4567"),
        (5551234, "[<=9999999]###-####;(###) ###-####", "555-1234"),
        (5551234567, "[<=9999999]###-####;(###) ###-####", "(555) 123-4567"),
        (1500, '[>=1000]0.0,"k";0', "1.5k"),
        (-5, "[>=0]0.00;[Red]-0.00", "-5.00"),
        (-5, "[<0](0);0", "(5)"),
        (-5, "[<0]0;0", "-5"),
        (2, '[=1]"one";[=2]"two";0', "two"),
        (7, 'General" units"', "7 units"),
        (5, '0 "Generalunkosten"', "5 Generalunkosten"),
        (5, "[>1.5.2]0", "5"),
        (-7, "General;[Red]-General", "-7"),
        (12345.678, "0.00E+00", "12345.678"),
        (-5, "0.00;[Red]0.00", "-5.00"),  # negative by its colour only
        (-5, '0" Dr";0" Cr"', "5 Cr"),
        (0.1, "[mm]", "2:24:00"),
        (float("nan"), "[h]:mm", "nan"),
        (float("-inf"), "0.00", "-inf"),
    ],
)
def test_a_figure_reads_as_its_format_shows_it(value: float, number_format: str, text: str) -> None:
    assert format_figure(value, number_format, None) == text


@pytest.mark.parametrize("number_format", ["[$€-2] #,##0.00", '"CHF" #,##0', '#,##0 "USD"', '0 "kg"', '0.0"x"', ".00"])
def test_a_table_continues_below_a_gap_whatever_the_unit_of_its_figures(number_format: str) -> None:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    rows = [("Item", "2023", "2024"), (), ("Gross", 600, 604), ("Net", 500, 0.5)]
    for number, row in enumerate(rows, start=1):
        for column, value in enumerate(row, start=1):
            sheet.cell(number, column, value).number_format = number_format
    target = io.BytesIO()
    book.save(target)
    text = read_bytes(target.getvalue(), "accounts.xlsx").text
    assert [line for line in text.splitlines() if line.startswith("| ---")] == ["| --- | --- | --- |"]
    assert "| Item | 2023 | 2024 |" in text


def test_a_workbook_is_read_again_when_its_reader_changed() -> None:
    book = openpyxl.Workbook()
    target = io.BytesIO()
    book.save(target)
    assert content_hash(target.getvalue()) != content_hash(
        target.getvalue().replace(b"xl/worksheets/", b"xl/worksheetz/")
    )
