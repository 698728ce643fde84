"""Parts of PDFs: ruled tables with merged cells, superscripts, forms, vertical writing, and fonts without a map."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib
import pytest
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from pypdf import PdfWriter
from pypdf.generic import ArrayObject, DecodedStreamObject, DictionaryObject, NameObject, TextStringObject
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from tests.ingestion import files
from workbench.ingestion.readers.formats import read_bytes

BODY = getSampleStyleSheet()["BodyText"]


def flowing(*parts: object) -> bytes:
    target = io.BytesIO()
    SimpleDocTemplate(target).build(list(parts))
    return target.getvalue()


def ruled(rows: list[list[str]], *spans: tuple[tuple[int, int], tuple[int, int]]) -> bytes:
    style = [("GRID", (0, 0), (-1, -1), 0.5, "black"), *(("SPAN", *span) for span in spans)]
    return flowing(Paragraph("The roster of the harbour.", BODY), Table(rows, style=style))


def read_table(data: bytes) -> list[str]:
    return [line for line in read_bytes(data, "roster.pdf").text.splitlines() if line.startswith("|")]


def test_a_cell_over_several_rows_applies_to_each() -> None:
    rows = [["Day", "Watch", "Mate"], ["Monday", "First", "Ada"], ["", "Second", "Bo"]]
    rows += [["Tuesday", "First", "Cy"], ["", "Second", "Di"]]
    assert read_table(ruled(rows, ((0, 1), (0, 2)), ((0, 3), (0, 4)))) == [
        "| Day | Watch | Mate |",
        "|---|---|---|",
        "| Monday | First | Ada |",
        "| Monday | Second | Bo |",
        "| Tuesday | First | Cy |",
        "| Tuesday | Second | Di |",
    ]


def test_a_name_over_several_columns_applies_to_each_and_empty_cells_keep_their_column() -> None:
    rows = [["Pier", "Summer", "", "Note"], ["", "Open", "Close", ""], ["East", "six", "ten", ""]]
    rows += [["West", "", "nine", "ferry only"]]
    assert read_table(ruled(rows, ((1, 0), (2, 0)), ((0, 0), (0, 1)), ((3, 0), (3, 1)))) == [
        "| Pier | Summer Open | Summer Close | Note |",
        "|---|---|---|---|",
        "| East | six | ten |  |",
        "| West |  | nine | ferry only |",
    ]


def test_superscripts_stay_apart_from_their_word() -> None:
    text = "The tank holds 3 × 10<super>6</super> litres on 120 m<super>2</super>"
    data = flowing(
        Paragraph(f"{text} of land.", BODY),
        Paragraph("It cost 413 crowns<super>7</super> last year and H<sub>2</sub>O has 120 of 1024 parts.", BODY),
    )
    read = " ".join(read_bytes(data, "tank.pdf").text.split())
    assert "3 × 10⁶ litres" in read and "120 m²" in read and "413 crowns[7]" in read
    assert "120 of 1024 parts" in read


def test_the_state_of_check_boxes_is_read_and_values_are_not_repeated() -> None:
    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(595, 842))
    canvas.drawString(72, 700, "Name of the vessel")
    canvas.acroForm.textfield(name="vessel", value="Kestrel", x=200, y=690, width=150, height=20)
    canvas.acroForm.checkbox(name="insured", checked=True, x=200, y=655)
    canvas.acroForm.checkbox(name="sold", checked=False, x=200, y=635)
    canvas.save()
    text = read_bytes(target.getvalue(), "form.pdf").text
    assert text.count("Kestrel") == 1
    assert "- ☒ insured\n- ☐ sold" in text


def test_text_typed_on_a_page_is_read_and_comments_and_embedded_files_are_counted() -> None:
    from pypdf.annotations import FreeText, Text

    writer = PdfWriter(clone_from=io.BytesIO(flowing(Paragraph("The harbour opens at six.", BODY))))
    writer.add_annotation(0, FreeText(text="Closed in May", rect=(100, 300, 300, 340)))
    writer.add_annotation(0, Text(text="Is this so?", rect=(50, 50, 70, 70)))
    writer.add_attachment("tides.csv", b"day,height")
    target = io.BytesIO()
    writer.write(target)
    document = read_bytes(target.getvalue(), "harbour.pdf")
    assert document.text == "The harbour opens at six.\n\nClosed in May"
    assert document.metadata["left_out"] == {"comments": 1, "embedded files": 1}


def test_vertical_writing_is_read_by_columns_from_the_right() -> None:
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3", isVertical=True))
    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(595, 842))
    canvas.setFont("HeiseiMin-W3", 14)
    canvas.drawString(500, 780, "図書館は九時に開きます。本を三冊借りられます。")
    canvas.drawString(470, 780, "返却は二週間後です。")
    canvas.save()
    expected = "図書館は九時に開きます。本を三冊借りられます。返却は二週間後です。"
    assert read_bytes(target.getvalue(), "library.pdf").text == expected


def test_junk_before_the_signature_spoils_nothing() -> None:
    data = files.pdf((("Otters", "Otters hold hands while they sleep."),))
    for junk in (b"\n", b"\xef\xbb\xbf", b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n"):
        assert "Otters hold hands while they sleep." in read_bytes(junk + data, "otters.pdf").text


def test_an_xfa_form_is_read_instead_of_its_placeholder() -> None:
    target = io.BytesIO()
    canvas = Canvas(target)
    canvas.drawString(72, 700, "Please wait... If this message is not eventually replaced by the document")
    canvas.save()
    writer = PdfWriter(clone_from=io.BytesIO(target.getvalue()))
    template = (
        "<template xmlns='http://www.xfa.org/schema/xfa-template/3.0/'><subform><draw><value><text>Berth form</text>"
        "</value></draw><field name='vessel'><caption><value><text>Vessel</text></value></caption></field></subform>"
        "</template>"
    )
    data = (
        "<d:datasets xmlns:d='http://www.xfa.org/schema/xfa-data/1.0/'><d:data><f><vessel>Kestrel</vessel>"
        "<crew>7</crew></f></d:data></d:datasets>"
    )
    packets = ArrayObject()
    for name, content in (("template", template), ("datasets", data)):
        stream = DecodedStreamObject()
        stream.set_data(content.encode())
        packets += [TextStringObject(name), writer._add_object(stream)]
    form = {NameObject("/XFA"): packets, NameObject("/Fields"): ArrayObject()}
    writer._root_object[NameObject("/AcroForm")] = DictionaryObject(form)
    target = io.BytesIO()
    writer.write(target)
    assert read_bytes(target.getvalue(), "berth.pdf").text == "Berth form\n\nVessel: Kestrel\n\ncrew: 7"


def pdf_without_map(text: str) -> bytes:
    """Return a PDF whose font has neither a Unicode map nor names of its glyphs."""
    font = TTFont(Path(matplotlib.__file__).parent / "mpl-data/fonts/ttf/DejaVuSans.ttf")
    names, numbers = font.getBestCmap(), font.getReverseGlyphMap()
    glyphs = [numbers[names[ord(character)]] for character in text]
    widths = {numbers[names[ord(one)]]: font["hmtx"][names[ord(one)]][0] * 1000 // 2048 for one in text}
    options = Options(retain_gids=True, glyph_names=False)
    options.drop_tables += ["GSUB", "GPOS", "GDEF", "kern", "FFTM"]
    subset = Subsetter(options)
    subset.populate(text=text)
    subset.subset(font)
    del font["cmap"]
    font["post"].formatType = 3.0
    packed = io.BytesIO()
    font.save(packed)
    content = f"BT /F1 14 Tf 72 700 Td <{''.join(f'{glyph:04x}' for glyph in glyphs)}> Tj ET"
    table = " ".join(f"{glyph} [{width}]" for glyph, width in sorted(widths.items()))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources "
        b"<< /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream".encode(),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /A /Encoding /Identity-H /DescendantFonts [6 0 R] >>",
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /A /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) "
        b"/Supplement 0 >> /FontDescriptor 7 0 R /CIDToGIDMap /Identity /W [" + table.encode() + b"] >>",
        b"<< /Type /FontDescriptor /FontName /A /Flags 4 /FontBBox [-1000 -300 2000 1000] /ItalicAngle 0 /Ascent 900 "
        b"/Descent -200 /CapHeight 700 /StemV 80 /FontFile2 8 0 R >>",
        b"<< /Length %d >>\nstream\n" % len(packed.getvalue()) + packed.getvalue() + b"\nendstream",
    ]
    body = b"%PDF-1.4\n" + b"".join(b"%d 0 obj\n%b\nendobj\n" % pair for pair in enumerate(objects, 1))
    return body + b"trailer << /Size 9 /Root 1 0 R >>\nstartxref\n0\n%%EOF\n"


@pytest.mark.slow  # loads the OCR models
def test_a_page_whose_font_has_no_map_is_read_by_ocr_and_noted() -> None:
    document = read_bytes(pdf_without_map("The harbour opens at nine in the morning."), "rules.pdf")
    assert document.text == "The harbour opens at nine in the morning."
    assert document.metadata["left_out"] == {"pages read by OCR because their fonts have no Unicode map": 1}
