"""The properties of PDFs and office files are in the document, its title and the context of its passages."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.ingestion.readers.formats import read_bytes
from workbench.ingestion.readers.pdf.reader import read_properties


def make_pdf(*, heading: str = "", title: str = "", author: str = "", subject: str = "", keywords: str = "") -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(595, 842))
    for name, text in (("Title", title), ("Author", author), ("Subject", subject), ("Keywords", keywords)):
        if text:
            getattr(canvas, f"set{name}")(text)
    if heading:
        canvas.setFont("Helvetica", 24)
        canvas.drawString(72, 760, heading)
    canvas.setFont("Helvetica", 10)
    for line in range(12):
        canvas.drawString(72, 700 - 14 * line, "The boats are kept in sheds over the winter months, row upon row.")
    canvas.save()
    return target.getvalue()


def make_docx(*, subject: str = "", keywords: str = "") -> bytes:
    import docx as word

    document = word.Document()
    document.core_properties.subject, document.core_properties.keywords = subject, keywords
    document.add_paragraph("The boats are kept in sheds over the winter months, row upon row.")
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def test_a_pdf_reports_its_author_subject_and_keywords() -> None:
    data = make_pdf(
        heading="Winter storage", author="Ada Finn", subject="Laying up", keywords="boatyard; 0001-20; slip"
    )
    metadata = read_bytes(data, "sheds.pdf").metadata
    assert (metadata["author"], metadata["subject"], metadata["keywords"]) == (
        "Ada Finn",
        "Laying up",
        "boatyard, slip",
    )


def test_placeholders_written_by_programs_are_not_properties() -> None:
    told = make_pdf(heading="Winter storage")  # the library that writes it calls its author and subject so
    assert b"unspecified" in told and b"anonymous" in told
    assert read_properties(told) == {}
    assert read_properties(make_pdf(author="(anonymous)", subject="(unspecified)", keywords="[none]")) == {}


def test_the_title_property_is_used_without_a_good_heading_and_kept_next_to_one() -> None:
    alone = read_bytes(make_pdf(title="Laying up of boats"), "sheds.pdf")
    beside = read_bytes(make_pdf(heading="Winter storage", title="Laying up of boats"), "sheds.pdf")
    assert (alone.title, alone.metadata.get("pdf_title")) == ("Laying up of boats", None)
    assert (beside.title, beside.metadata.get("pdf_title")) == ("Winter storage", "Laying up of boats")


@pytest.mark.parametrize("title", ["Microsoft Word - draft7_final", "scan0001.pdf", "untitled", "0001018724-20-000004"])
def test_a_title_that_only_names_a_file_or_a_number_is_none(title: str) -> None:
    assert "title" not in read_properties(make_pdf(title=title))


def test_a_pdf_whose_table_of_objects_is_damaged_is_read_without_its_properties() -> None:
    data = make_pdf(heading="Winter storage", subject="Laying up")
    broken = data.replace(b"/Info", b"/Imfo")
    assert read_properties(broken) == {}
    assert read_bytes(broken, "sheds.pdf").title == "Winter storage"


@pytest.mark.parametrize(("make", "name"), [(make_pdf, "sheds.pdf"), (make_docx, "sheds.docx")])
@pytest.mark.parametrize("field", ["subject", "keywords"])
def test_a_word_that_is_only_in_the_properties_finds_the_document(
    wb: Workbench, tmp_path: Path, make: Callable[..., bytes], name: str, field: str
) -> None:
    (tmp_path / name).write_bytes(make(**{field: "zymurgy"}))
    wb.ingest([tmp_path / name])
    wb.documents.create(text="The harbour opens at six and closes at ten.", title="Harbour")
    for strategy in ("keyword", "hybrid", "rerank"):
        assert wb.search("zymurgy", strategy)[0].document_title == "sheds"
