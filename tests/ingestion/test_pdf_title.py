"""A PDF's title: its heading, unless the file name has a name and a year and the heading has neither."""

from __future__ import annotations

import io

import pytest

from workbench.ingestion.readers.formats import read_bytes
from workbench.ingestion.readers.pdf.reader import choose_title


@pytest.mark.parametrize(
    ("name", "heading", "own", "title"),
    [
        ("HARBOUR_2023_report.pdf", "COMMISSION OF FISHERIES", "", ""),
        ("HARBOUR_2023_report.pdf", "COMMISSION OF FISHERIES", "Form 7 of the Harbour", "Form 7 of the Harbour"),
        ("HARBOUR_2023_report.pdf", "The Harbour Board in 2023", "Form 7", "The Harbour Board in 2023"),
        ("OLDHARBOUR_2023_10K.pdf", "Old Harbour, Inc.", "", "Old Harbour, Inc."),
        ("harbour.pdf", "COMMISSION OF FISHERIES", "", "COMMISSION OF FISHERIES"),
        ("2303.08774.pdf", "On the drift of herring", "", "On the drift of herring"),
        ("scan.pdf", "", "Form 7", "Form 7"),
        ("herring.pdf", "On the drift", "On the Drift of Herring in Winter", "On the Drift of Herring in Winter"),
        ("herring.pdf", "On the drift", "On the drifters", "On the drift"),
    ],
)  # fmt: skip
def test_a_name_with_a_year_goes_before_a_heading_that_does_not_mention_it(
    name: str, heading: str, own: str, title: str
) -> None:
    assert choose_title(name, heading, own) == title


def test_reports_that_start_alike_are_distinguished_by_their_files_names() -> None:
    data = report("COMMISSION OF FISHERIES")
    titles = [read_bytes(data, name).title for name in ("BRIXHAM_2022_7.pdf", "LERWICK_2023_7.pdf", "report.pdf")]
    assert titles == ["BRIXHAM_2022_7", "LERWICK_2023_7", "COMMISSION OF FISHERIES"]


def test_a_heading_over_two_lines_has_the_whole_title_of_the_property() -> None:
    document = read_bytes(report("The winter storage of wooden boats", "on the islands", is_titled=True), "sheds.pdf")
    assert document.title == "The winter storage of wooden boats on the islands"
    assert "pdf_title" not in document.metadata


def report(*heading: str, is_titled: bool = False) -> bytes:
    """Return a PDF page of prose below a heading in large print, with the heading as its title property if asked."""
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target)
    if is_titled:
        canvas.setTitle(" ".join(heading))
    canvas.setFont("Helvetica-Bold", 24)
    for place, line in enumerate(heading):
        canvas.drawString(72, 790 - 50 * place, line)
    canvas.setFont("Helvetica", 10)
    for line in range(12):
        canvas.drawString(72, 700 - 14 * line, "The boats are kept in sheds over the winter months, row upon row.")
    canvas.save()
    return target.getvalue()
