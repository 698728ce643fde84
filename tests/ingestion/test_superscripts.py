"""Superscripts as plain text."""

from __future__ import annotations

import io

import pytest

from workbench.ingestion.readers.formats import read_bytes
from workbench.ingestion.text import format_superscript


@pytest.mark.parametrize(
    ("before", "raised", "text"),
    [
        ("3 × 10", "6", "3 × 10⁶"),
        ("10", "-19", "10⁻¹⁹"),
        ("10", "k-1", "10^(k-1)"),
        ("120 m", "2", "120 m²"),
        ("E = mc", "2", "E = mc²"),
        ("million crowns", "3", "million crowns[3]"),
        ("the report.", "1, 2", "the report.[1, 2]"),
        ("the report", "(2)", "the report(2)"),
        ("the 5", "th", "the 5th"),
    ],
)
def test_a_superscript_never_joins_the_word_before_it(before: str, raised: str, text: str) -> None:
    assert before + format_superscript(raised, before) == text


Run = tuple[str, bool]  # a text, and whether it is raised


def _pdf(lines: list[list[Run]], size: float, raised_size: float, rise: float) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target)
    for number, line in enumerate(lines):
        left = 50.0
        for text, raised in line:
            canvas.setFont("Helvetica", raised_size if raised else size)
            canvas.drawString(left, 750 - 90 * number + rise * raised, text)
            left += canvas.stringWidth(text)
    canvas.save()
    return target.getvalue()


# Word, LaTeX and a page program raise by these sizes and distances, which stay nearly within the height of the line.
@pytest.mark.parametrize(("size", "raised_size", "rise"), [(12, 8, 4), (10, 7, 3.63), (12, 7, 5), (11, 7, 4)])
def test_a_pdf_never_joins_a_superscript_to_its_number(size: float, raised_size: float, rise: float) -> None:
    exponent = [("The tank holds 10", False), ("6", True), (" litres on 5 m", False), ("2", True), (" of deck.", False)]
    mark = [("The purser", False), ("3", True), (" paid 1,204", False), ("5", True), (" crowns.", False)]
    text = read_bytes(_pdf([exponent, mark], size, raised_size, rise), "tank.pdf").text
    assert "holds 10⁶ litres on 5 m² of deck." in text
    assert "The purser[3] paid 1,204⁵ crowns." in text


@pytest.mark.parametrize(("raised_size", "rise"), [(7, 3), (7, 4), (8, 2.5), (9, 5)])
def test_superscripts_in_the_height_of_their_line_are_found_by_their_glyphs(raised_size: float, rise: float) -> None:
    runs = [
        "The purser note",
        "3",
        " paid 5 m",
        "2",
        ", 10",
        "-12",
        " and 2031",
        "4",
        " crowns.",
        "7",
        " Total",
        "b",
        " x",
    ]
    line = [(text, bool(place % 2)) for place, text in enumerate([*runs, "n"])]
    text = read_bytes(_pdf([line], 12, raised_size, rise), "tank.pdf").text
    assert text == "The purser note[3] paid 5 m², 10⁻¹² and 2031⁴ crowns.[7] Total[b] xⁿ"


def test_each_of_several_equal_words_is_raised_or_not_as_it_is_drawn() -> None:
    raised = [("see note", False), ("3", True), (" and the m2 of deck", False)]
    plain = [("but note3 and 10 m", False), ("2", True), (" of hold", False)]
    text = read_bytes(_pdf([raised, plain, raised], 12, 8, 4), "tank.pdf").text
    seen = "see note[3] and the m2 of deck"
    assert text.split() == f"{seen} but note3 and 10 m² of hold {seen}".split()


def test_numbers_that_are_printed_narrower_are_no_powers() -> None:
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target)
    canvas.drawString(50, 700, "Sales of 2020 and 2022 were 118 and 265 million.")
    narrow = canvas.beginText(50, 650)
    narrow.setHorizScale(80)
    narrow.textOut("Sales of 2021 and 2024 were 112 and 106 million.")
    canvas.drawText(narrow)
    canvas.save()
    text = read_bytes(target.getvalue(), "sales.pdf").text
    assert "Sales of 2021 and 2024 were 112 and 106 million." in text


def test_a_power_that_is_no_higher_than_its_line_shows_by_its_width() -> None:
    lines = [[("The tank holds 10", False), ("6", True), (" litres in 2031 and 106 sacks.", False)]]
    assert "holds 10⁶ litres in 2031 and 106 sacks." in read_bytes(_pdf(lines, 12, 7, 4), "tank.pdf").text


def test_bold_and_larger_words_of_a_pdf_are_no_superscripts() -> None:
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target)
    left = 50.0
    for text, font, size in (
        ("The code ", "Helvetica", 12),
        ("PPR-9087", "Helvetica-Bold", 12),
        (" costs ", "Helvetica", 12),
        ("$6.91", "Helvetica-Bold", 12),
        (" in dock ", "Helvetica", 12),
        ("D9", "Helvetica-Bold", 12),
        (" of 2031.", "Helvetica", 12),
    ):
        canvas.setFont(font, size)
        canvas.drawString(left, 750, text)
        left += canvas.stringWidth(text)
    canvas.save()
    text = read_bytes(target.getvalue(), "code.pdf").text
    assert "The code PPR-9087 costs $6.91 in dock D9 of 2031." in text
