"""Parts of PDFs: ruled tables with merged cells, superscripts, forms, vertical writing, and fonts without a map."""

from __future__ import annotations

import base64
import io
import re
import zlib
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import matplotlib
import pytest
from fontTools.pens.basePen import BasePen
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    DictionaryObject,
    EncodedStreamObject,
    IndirectObject,
    NameObject,
    NumberObject,
    TextStringObject,
)
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont as DejaVu
from reportlab.pdfgen.canvas import Canvas
from reportlab.pdfgen.pathobject import PDFPathObject
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

from tests.ingestion import files
from workbench.ingestion.metadata import page_notes
from workbench.ingestion.readers.formats import read_bytes
from workbench.ingestion.readers.isolation import ReadingOptions
from workbench.ingestion.readers.pdf.layout import join_spread_letters
from workbench.ingestion.readers.pdf.pages import read_pages
from workbench.ingestion.readers.pdf.reader import read_xfa

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


def test_names_wider_than_figures_that_start_at_the_same_edge_name_their_column() -> None:
    rows = [["Port", "2029", "2030", "Change"]]
    rows += [[name, f"{10 + place}", f"{20.5 + place}%", f"({place}.5)"] for place, name in enumerate("ABCDE")]
    cells = [
        (60 + 100 * column, 700 - 14 * row, text) for row, line in enumerate(rows) for column, text in enumerate(line)
    ]
    lines = read_table(files.spread_pdf([cells]))
    assert lines[0] == "| Port | 2029 | 2030 | Change |" and lines[2] == "| A | 10 | 20.5% | (0.5) |"


def test_lines_in_a_fixed_width_font_keep_their_indents_and_the_figures_of_their_row() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setFont("Courier", 9)
        for row, line in enumerate(listed):
            canvas.drawString(50, 780 - 12 * row, line)

    listed = ["Material  Menge      Wert EUR", "--------------------------------", "000000471    12    1.234,56-"]
    listed += ["  der Werft", "000000472     3      999,00", "Summe                -235,56"]
    lines = read_bytes(drawn(draw), "list.pdf").text.splitlines()
    assert lines[3:-1] == listed[2:]


def test_code_at_the_end_of_a_column_is_before_the_code_at_the_top_of_the_next() -> None:
    prose = 12 * ["The office lends the keys to crews, who"]
    codes = [["def lend(keys):", "    for key in keys:", "        key.sign()"], ["def close(gate):", "    gate.bar()"]]

    def draw(canvas: Canvas) -> None:
        for left, parts in ((50, [prose, codes[0]]), (310, [codes[1], prose])):
            height = 780
            for lines in parts:
                canvas.setFont(*(("Helvetica", 10) if lines is prose else ("Courier", 9)))
                for line in lines:
                    canvas.drawString(left, height, line)
                    height -= 12
                height -= 8

    text = read_bytes(drawn(draw), "columns.pdf").text
    first, second = ("\n".join(lines) for lines in codes)
    assert first in text and second in text and text.index(first) < text.index(second)


def test_a_note_in_a_label_is_no_figure_next_to_figures_with_blanks() -> None:
    rows = [("", "2030", "2029"), ("Assets",)]
    rows += [("Cash (Note 3)", "1 234 567", "2 345 678"), ("Loans (Note 12)", "12 345", "23 456")]
    rows += [("Harbour dues", "345 678", "(456 789)"), ("Total (Note 3)", "1 592 590", "1 912 345")]

    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", 10)
        for place, (label, *figures) in enumerate(rows):
            canvas.drawString(50, 780 - 14 * place, label)
            for column, figure in enumerate(figures):
                canvas.drawRightString(400 + 100 * column, 780 - 14 * place, figure)

    assert read_table(drawn(draw))[3:] == [f"| {' | '.join(row)} |" for row in rows[3:]]


def test_years_centred_over_quarters_without_rules_between_columns_apply_to_each() -> None:
    rows = [["", "2023", "", "2024", ""], ["Ferry", "Q1", "Q2", "Q1", "Q2"]]
    rows += [[name, *(f"{1_234 + 999 * at + 7 * place:,}" for at in range(4))] for place, name in enumerate("ABCDE")]
    style = [("SPAN", (1, 0), (2, 0)), ("SPAN", (3, 0), (4, 0)), ("ALIGN", (1, 0), (-1, 0), "CENTER")]
    style += [("ALIGN", (1, 1), (-1, -1), "RIGHT"), ("LINEBELOW", (0, 1), (-1, 1), 0.5, "black")]
    lines = read_table(flowing(Table(rows, style=style)))
    assert lines[0] == "| Ferry | 2023 Q1 | 2023 Q2 | 2024 Q1 | 2024 Q2 |"
    assert lines[2] == "| A | 1,234 | 2,233 | 3,232 | 4,231 |" and len(lines) == 7


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


def annotate(data: bytes, *entries: dict[str, object]) -> bytes:
    """Return a PDF with annotations on its first page; a text as appearance is drawn in Helvetica."""
    writer = PdfWriter(clone_from=io.BytesIO(data))
    page, notes = writer.pages[0], ArrayObject()
    for entry in entries:
        note = DictionaryObject({NameObject(f"/{name}"): value for name, value in entry.items()})
        note[NameObject("/Rect")] = ArrayObject(map(NumberObject, (72, 600, 272, 640)))
        if "/AP" in note:
            content = f"BT /F1 12 Tf 5 5 Td ({note['/AP']}) Tj ET".encode()
            form = form_of(writer, content, {"/Font": page["/Resources"].raw_get("/Font")})
            note[NameObject("/AP")] = DictionaryObject({NameObject("/N"): form})
        notes.append(writer._add_object(note))
    page[NameObject("/Annots")] = notes
    return write(writer)


def test_stamps_are_read_and_other_annotations_are_counted() -> None:
    name, text = NameObject, TextStringObject
    data = drawn(lambda canvas: canvas.drawString(72, 700, "It opens at six."))
    data = annotate(
        data,
        {"Subtype": name("/Stamp"), "AP": text("Approved in May")},
        {"Subtype": name("/FreeText"), "AP": text("Closed on Sundays")},
        {"Subtype": name("/Stamp")},
        {"Subtype": name("/Text"), "RC": text("<body><p>Is this so?</p></body>")},
        {"Subtype": name("/Sound")},
        {"Subtype": name("/Link"), "Contents": text("The harbour")},
    )
    document = read_bytes(data, "harbour.pdf")
    assert document.text == "It opens at six.\n\nApproved in May\n\nClosed on Sundays"
    assert document.metadata["left_out"] == {"stamps without text": 1, "comments": 1, "recordings and models": 1}


def test_alternative_texts_of_a_tagged_file_are_read_on_their_page() -> None:
    name, text = NameObject, TextStringObject
    data = drawn(
        lambda canvas: canvas.drawString(72, 700, "Sales grew."),
        lambda canvas: canvas.drawString(72, 700, "They fell."),
    )
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    figures = [
        {"S": "/Figure", "Pg": writer.pages[1].indirect_reference, "Alt": text("Bars of 2030: Faro 19, Gotland 88")},
        {"S": "/Figure", "Pg": writer.pages[0].indirect_reference, "Alt": text("logo.png")},
        {"S": "/Formula", "Pg": writer.pages[0].indirect_reference, "Alt": text("a over b")},
    ]
    tags = [
        writer._add_object(
            DictionaryObject({name(f"/{key}"): name(one) if key == "S" else one for key, one in figure.items()})
        )
        for figure in figures
    ]
    tree = DictionaryObject({name("/K"): ArrayObject(tags)})
    tags[0].get_object()[name("/K")] = tags[0]  # a damaged file may have a circle
    writer.root_object[name("/StructTreeRoot")] = writer._add_object(tree)
    document = read_bytes(write(writer), "sales.pdf")
    assert document.text == (
        "Sales grew.\n\n[Image: a over b]\n\nThey fell.\n\n[Image: Bars of 2030: Faro 19, Gotland 88]"
    )


def test_struck_passages_and_drawings_by_hand_are_counted() -> None:
    data = annotate(
        drawn(lambda canvas: canvas.drawString(72, 620, "It opens at six.")),
        {"Subtype": NameObject("/StrikeOut"), "Contents": TextStringObject("now seven")},
        {"Subtype": NameObject("/Ink")},
        {"Subtype": NameObject("/Highlight")},
    )
    assert read_bytes(data, "harbour.pdf").metadata["left_out"] == {
        "passages struck out by an annotation, which were read": 1,
        "comments": 1,
        "drawings by hand": 1,
    }


def test_an_associated_file_is_counted_once_as_embedded() -> None:
    writer = PdfWriter(clone_from=io.BytesIO(drawn(lambda canvas: canvas.drawString(72, 700, OPENS))))
    writer.add_attachment("tides.csv", b"day,height")
    named = writer.root_object["/Names"]["/EmbeddedFiles"]["/Names"]
    content = DictionaryObject({NameObject("/F"): add_stream(writer, b"<invoice/>")})
    invoice = DictionaryObject({NameObject("/Type"): NameObject("/Filespec"), NameObject("/EF"): content})
    named[1] = writer._add_object(named[1]) if not isinstance(named[1], IndirectObject) else named[1]
    writer.root_object[NameObject("/AF")] = ArrayObject([named[1], writer._add_object(invoice)])
    assert read_bytes(write(writer), "invoice.pdf").metadata["left_out"] == {"embedded files": 2}


def test_a_file_associated_with_a_page_is_counted_once() -> None:
    writer = PdfWriter(clone_from=io.BytesIO(flowing(Paragraph("The harbour opens at six.", BODY))))
    file = writer._add_object(DictionaryObject({NameObject("/Type"): NameObject("/Filespec")}))
    for part in (writer.pages[0], writer.root_object):
        part[NameObject("/AF")] = ArrayObject([file])
    writer.write(target := io.BytesIO())
    assert read_bytes(target.getvalue(), "harbour.pdf").metadata["left_out"] == {"embedded files": 1}


def test_a_subscript_does_not_join_the_number_before_it() -> None:
    data = flowing(
        Paragraph("It is 1010<sub>2</sub> in base two, CO<sub>2</sub> and C<sub>12</sub>H<sub>22</sub>.", BODY)
    )
    assert "It is 1010_2 in base two, CO2 and C12H22." in read_bytes(data, "base.pdf").text


def test_a_file_attached_to_a_place_on_a_page_is_counted() -> None:
    writer = PdfWriter(clone_from=io.BytesIO(drawn(lambda canvas: canvas.drawString(72, 700, "It opens at six."))))
    note = {NameObject("/Type"): NameObject("/Annot"), NameObject("/Subtype"): NameObject("/FileAttachment")}
    note[NameObject("/Rect")] = ArrayObject(map(NumberObject, (72, 600, 90, 620)))
    writer.pages[0][NameObject("/Annots")] = ArrayObject([writer._add_object(DictionaryObject(note))])
    assert read_bytes(write(writer), "harbour.pdf").metadata["left_out"] == {"embedded files": 1}


def test_properties_and_layers_that_are_damaged_are_noted() -> None:
    writer = PdfWriter(clone_from=io.BytesIO(drawn(lambda canvas: canvas.drawString(72, 700, "It opens at six."))))
    settings = DictionaryObject({NameObject("/OFF"): ArrayObject([NumberObject(5)])})
    writer._root_object[NameObject("/OCProperties")] = DictionaryObject({NameObject("/D"): settings})
    writer.add_attachment("tides.csv", b"day,height")
    data = re.sub(rb"/Info \d+ 0 R", b"/Info [5]", write(writer))
    document = read_bytes(data, "harbour.pdf")
    assert document.text == "It opens at six."
    assert document.metadata["left_out"] == {
        "failed checks for hidden text": 1,
        "embedded files": 1,
        "failed checks for properties or embedded files": 1,
    }


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


def test_columns_of_vertical_writing_of_different_length_keep_their_order() -> None:
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3", isVertical=True))
    columns = (
        "図書館は九時に開きます。本を三冊借りられます。",
        "返却は二週間後です。遅れた場合は罰金です。",
        "三月は休みです。",
    )

    def draw(canvas: Canvas) -> None:
        canvas.setFont("HeiseiMin-W3", 14)
        for place, column in enumerate(columns):
            canvas.drawString(500 - 30 * place, 780, column)
        canvas.setFont("Helvetica", 9)
        canvas.drawString(280, 20, "Sheet 12")

    assert read_bytes(drawn(draw), "library.pdf").text == "".join(columns) + "\n\nSheet 12"


def test_junk_before_the_signature_spoils_nothing() -> None:
    data = files.pdf((("Otters", "Otters hold hands while they sleep."),))
    for junk in (b"\n", b"\xef\xbb\xbf", b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n"):
        assert "Otters hold hands while they sleep." in read_bytes(junk + data, "otters.pdf").text


FORM = (
    "<template xmlns='http://www.xfa.org/schema/xfa-template/3.0/'><subform><draw><value><text>Berth form</text>"
    "</value></draw><field name='vessel'><caption><value><text>Vessel</text></value></caption></field></subform>"
    "</template>"
)
VALUES = (
    "<d:datasets xmlns:d='http://www.xfa.org/schema/xfa-data/1.0/'><d:data><f><vessel>Kestrel</vessel>"
    "<crew>7</crew></f></d:data></d:datasets>"
)


def xfa_pdf(shown: str, *, as_one_stream: bool) -> bytes:
    writer = PdfWriter(clone_from=io.BytesIO(drawn(lambda canvas: canvas.drawString(72, 700, shown))))
    if as_one_stream:
        whole = f"<x:xdp xmlns:x='http://ns.adobe.com/xdp/'>{FORM}{VALUES}</x:xdp>"
        packets = add_stream(writer, whole.encode())
    else:
        packets = ArrayObject()
        for name, content in (("template", FORM), ("datasets", VALUES)):
            packets += [TextStringObject(name), add_stream(writer, content.encode())]
    form = {NameObject("/XFA"): packets, NameObject("/Fields"): ArrayObject()}
    writer._root_object[NameObject("/AcroForm")] = DictionaryObject(form)
    return write(writer)


@pytest.mark.parametrize("as_one_stream", [False, True])
def test_an_xfa_form_is_read_instead_of_its_placeholder(as_one_stream: bool) -> None:
    shown = "Please wait... If this message is not eventually replaced by the document"
    text = read_bytes(xfa_pdf(shown, as_one_stream=as_one_stream), "berth.pdf").text
    assert text == "Berth form\n\nVessel: Kestrel\n\ncrew: 7"


def test_an_xfa_form_adds_to_the_text_of_its_pages_what_they_lack() -> None:
    text = read_bytes(xfa_pdf("Veuillez patienter. Berth form", as_one_stream=False), "berth.pdf").text
    assert text == "Veuillez patienter. Berth form\n\nVessel: Kestrel\n\ncrew: 7"


CHOICES = (
    "<field name='kind'><caption><value><text>Kind</text></value></caption><items><text>Sail</text><text>Steam</text>"
    "</items><items save='1'><text>s</text><text>t</text></items></field>"
) + "".join(
    f"<field name='{name}'><ui><checkButton/></ui><caption><value><text>{name}</text></value></caption>"
    "<items><integer>1</integer><integer>0</integer></items></field>"
    for name in ("insured", "sold")
)


def test_choices_and_check_boxes_of_an_xfa_form_are_read_as_shown() -> None:
    values = "<kind>t</kind><insured>1</insured><sold>0</sold>"
    parts = {
        "template": FORM.replace("</subform>", f"{CHOICES}</subform>"),
        "datasets": VALUES.replace("<crew>7</crew>", values),
    }
    assert read_xfa(parts) == ["Berth form", "Vessel: Kestrel", "Kind: Steam", "☒ insured", "☐ sold"]


@pytest.mark.parametrize(
    "page",
    ["Please wait... If this message is not eventually replaced", "Veuillez patienter. Si ce message reste", "Hello"],
)
def test_a_placeholder_without_a_form_is_noted(page: str) -> None:
    left_out = read_bytes(drawn(lambda canvas: canvas.drawString(72, 700, page)), "a.pdf").metadata.get("left_out")
    assert left_out == ({"pages with a placeholder instead of a form": 1} if page != "Hello" else None)


def test_each_chosen_entry_of_a_list_is_read() -> None:
    writer = PdfWriter(clone_from=io.BytesIO(drawn(lambda canvas: canvas.drawString(72, 700, "Berths"))))
    widget = DictionaryObject({
        NameObject("/Type"): NameObject("/Annot"), NameObject("/Subtype"): NameObject("/Widget"),
        NameObject("/FT"): NameObject("/Ch"), NameObject("/Ff"): NumberObject(1 << 21),
        NameObject("/T"): TextStringObject("berth"),
        NameObject("/Rect"): ArrayObject(map(NumberObject, (72, 600, 200, 640))),
        NameObject("/Opt"): ArrayObject(map(TextStringObject, ("North", "South", "West"))),
        NameObject("/V"): ArrayObject(map(TextStringObject, ("North", "West"))),
    })  # fmt: skip
    field = writer._add_object(widget)
    writer.pages[0][NameObject("/Annots")] = ArrayObject([field])
    writer._root_object[NameObject("/AcroForm")] = DictionaryObject({NameObject("/Fields"): ArrayObject([field])})
    assert read_bytes(write(writer), "berths.pdf").text == "Berths\n\n- berth: North, West"


def test_a_value_that_is_not_drawn_is_read_even_if_its_words_are_elsewhere_on_the_page() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "The crew of six, with berths North and South")
        canvas.acroForm.textfield(name="crew", value="six", x=200, y=600, width=150, height=20)
        canvas.acroForm.listbox(name="berth", value="North", options=["North", "South"], x=200, y=500, height=50)

    writer = PdfWriter(clone_from=io.BytesIO(drawn(draw)))
    del writer.pages[0]["/Annots"][0].get_object()["/AP"]
    text = read_bytes(write(writer), "berths.pdf").text
    assert text.endswith("\n\n- crew: six\n- berth: North")


@pytest.mark.parametrize("end", [b"xref", b"trailer", b"/Root"])
def test_a_file_that_lost_its_end_is_read_and_noted(end: bytes) -> None:
    data = files.pdf((("Otters", "Otters hold hands."), ("Beavers", "Beavers build dams.")))
    document = read_bytes(data[: data.rindex(end, 0, data.rindex(b"startxref"))], "cut.pdf")
    assert "Otters hold hands." in document.text and "Beavers build dams." in document.text
    assert document.metadata["left_out"] == {"damaged parts of the file": 1}


def drawn(*pages: Callable[[Canvas], object], size: tuple[int, int] = (595, 842)) -> bytes:
    target = io.BytesIO()
    canvas = Canvas(target, pagesize=size)
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return target.getvalue()


def add_stream(writer: PdfWriter, content: bytes) -> IndirectObject:
    stream = DecodedStreamObject()
    stream.set_data(content)
    return writer._add_object(stream)


def write(writer: PdfWriter) -> bytes:
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()


def turn_text(canvas: Canvas, degrees: int, text: str) -> None:
    canvas.saveState()
    canvas.translate(100 + 4 * degrees, 200)
    canvas.rotate(degrees)
    canvas.drawString(0, 0, text)
    canvas.restoreState()


def test_pages_after_the_thousandth_are_read() -> None:
    pages = [[(700, f"The berth of boat {number}.")] for number in range(1, 1003)]
    assert read_bytes(files.paged_pdf(pages), "berths.pdf").text.endswith("The berth of boat 1002.")


def test_turned_text_next_to_upright_text_is_read_once() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, f"The tide tables of harbour {canvas.getPageNumber()} are kept at the pier.")
        turn_text(canvas, 90, "Copied by the registry")
        turn_text(canvas, 45, f"Sheet of harbour {canvas.getPageNumber() ** 2}")

    text = read_bytes(drawn(*[draw] * 4), "tides.pdf").text
    assert text.count("Copied by the registry") == 1
    assert all(f"\n\nSheet of harbour {number}" in text for number in (1, 4, 9, 16))


def test_superscripts_are_read_at_the_start_of_a_text_and_in_a_cell() -> None:
    power = Paragraph("10<super>6</super>", BODY)
    parts = [Paragraph(f"{start}10<super>4</super> units of 106 in stock", BODY) for start in ("", "• ")]
    parts += [Paragraph("It flows at 5·10<super>-3</super> per second, as shown.<super>3</super>", BODY)]
    parts += [Paragraph("The note of the master<super>(2)</super> is short.", BODY)]
    grid = Table([["Cells", "Limit"], [power, "106"], ["107", power]], style=[("GRID", (0, 0), (-1, -1), 0.5, "black")])
    text = read_bytes(flowing(*parts, grid), "cells.pdf").text
    assert text.count("10⁴ units of 106 in stock") == 2
    assert "5·10⁻³ per second, as shown.[3]" in text and "master(2) is" in text
    assert "| 10⁶ | 106 |\n| 107 | 10⁶ |" in text


def test_superscripts_above_the_line_of_their_cell_are_read() -> None:
    cells = [[Paragraph(text, BODY) for text in ("Load", "5 × 10<super>6</super> N")], ["Stock", "10 6"]]
    cells += [[Paragraph(text, BODY) for text in ("Area", "120 km<super>2</super>")]]
    rows = read_table(flowing(Table(cells, style=[("GRID", (0, 0), (-1, -1), 0.5, "black")])))
    assert "5 × 10⁶ N" in rows[0] and "120 km²" in rows[-1], rows


def test_the_selected_button_of_a_group_is_read() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "The flag of the vessel")
        for place, value in enumerate(("red", "green")):
            canvas.acroForm.radio(name="flag", value=value, selected=value == "green", x=200 + 50 * place, y=690)

    assert read_bytes(drawn(draw), "flag.pdf").text == "The flag of the vessel\n\n- ☒ flag: green"


def test_a_page_whose_contents_are_damaged_is_noted() -> None:
    data = drawn(*[lambda canvas: canvas.drawString(72, 700, "The harbour opens at six.")] * 2)
    writer = PdfWriter(clone_from=io.BytesIO(data))
    stream = EncodedStreamObject()
    stream._data = b"This is no compressed stream."
    stream[NameObject("/Filter")] = NameObject("/FlateDecode")
    writer.pages[1][NameObject("/Contents")] = writer._add_object(stream)
    document = read_bytes(write(writer), "harbour.pdf")
    assert document.text == "The harbour opens at six."
    assert document.metadata["unreadable_pages"] == [2]


def test_pages_without_their_contents_and_pages_that_are_not_counted_are_noted() -> None:
    writer = PdfWriter(clone_from=io.BytesIO(drawn(*[lambda canvas: canvas.drawString(72, 700, "It opens.")] * 4)))
    writer.pages[1][NameObject("/Contents")] = IndirectObject(998, 0, writer)
    writer._root_object["/Pages"][NameObject("/Count")] = NumberObject(3)
    metadata = read_bytes(write(writer), "harbour.pdf").metadata
    assert metadata["unreadable_pages"] == [2]
    assert metadata["left_out"] == {"pages that the file does not count": 1}


HIDDEN = "lines that are invisible or outside the visible area"


@pytest.mark.parametrize(("mode", "place"), [(3, (72, 600)), (0, (700, 600)), (0, (72, 20))])
def test_text_that_is_invisible_or_outside_the_page_is_marked_or_left_out(mode: int, place: tuple[int, int]) -> None:
    seen = "The harbour opens at six and closes at nine in the evening."

    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, seen)
        canvas.setCropBox((0, 40, 595, 842))
        hidden = canvas.beginText(*place)
        hidden.setTextRenderMode(mode)
        hidden.textOut("Closed in May")
        hidden.setTextRenderMode(0)
        canvas.drawText(hidden)

    document = read_bytes(drawn(draw), "harbour.pdf")
    assert document.text == f"{seen}\n\nClosed in May (hidden)"
    assert document.metadata["hidden_parts"] == {HIDDEN: 1}
    document = read_bytes(drawn(draw), "harbour.pdf", options=ReadingOptions(skip_hidden=True))
    assert document.text == seen
    assert document.metadata["left_out"] == {f"hidden {HIDDEN}": 1}


def invisible(canvas: Canvas, height: int, line: str) -> None:
    text = canvas.beginText(72, height)
    text.setTextRenderMode(3)
    text.textOut(line)
    canvas.drawText(text)


@pytest.mark.parametrize("in_form", [False, True])
def test_invisible_text_is_hidden_however_little_text_is_visible(in_form: bool) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "It opens at six.")
        if in_form:
            canvas.beginForm("part")
        canvas.drawString(72, 650, "It closes at nine.")
        invisible(canvas, 600, "Closed in May")
        if in_form:
            canvas.endForm()
            canvas.doForm("part")

    document = read_bytes(drawn(draw), "harbour.pdf")
    assert document.text == "It opens at six.\n\nIt closes at nine.\n\nClosed in May (hidden)"
    assert document.metadata["hidden_parts"] == {HIDDEN: 1}
    document = read_bytes(drawn(draw), "harbour.pdf", options=ReadingOptions(skip_hidden=True))
    assert document.text == "It opens at six.\n\nIt closes at nine."


@pytest.mark.parametrize("has_picture", [False, True])
def test_the_invisible_text_of_a_drawn_page_is_its_text(has_picture: bool) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.beginForm("layer")
        invisible(canvas, 700, "The harbour opens at six.")
        canvas.endForm()
        canvas.doForm("layer")
        if has_picture:
            canvas.drawImage(ImageReader(Image.new("RGB", (40, 40), "grey")), 0, 300, 595, 500)
            canvas.drawString(72, 40, "Stamp 774921")

    text = read_bytes(drawn(draw), "harbour.pdf").text
    assert text.startswith("The harbour opens at six.")
    assert "hidden" not in text


def test_pages_whose_text_is_outside_the_visible_area_are_read_as_hidden() -> None:
    pages = [lambda canvas, height=height: canvas.drawString(72, height, "It opens at six.") for height in (700, 900)]
    document = read_bytes(drawn(*pages), "harbour.pdf")
    assert document.text == "It opens at six.\n\nIt opens at six."
    assert document.metadata["hidden_parts"] == {"pages whose text is outside the visible area": 1}


def with_layer_off(data: bytes, *, is_grouped: bool = False) -> bytes:
    """Return a PDF with a layer that is off, named MC0 in its pages."""
    writer = PdfWriter(clone_from=io.BytesIO(data))
    layer = writer._add_object(DictionaryObject({NameObject("/Type"): NameObject("/OCG")}))
    settings = writer._add_object(DictionaryObject({NameObject("/OFF"): ArrayObject([layer])}))
    layers = {NameObject("/OCGs"): ArrayObject([layer]), NameObject("/D"): settings}
    writer._root_object[NameObject("/OCProperties")] = DictionaryObject(layers)
    group = {NameObject("/Type"): NameObject("/OCMD"), NameObject("/OCGs"): ArrayObject([layer])}
    named = writer._add_object(DictionaryObject(group)) if is_grouped else layer
    for page in writer.pages:
        page["/Resources"][NameObject("/Properties")] = DictionaryObject({NameObject("/MC0"): named})
    return write(writer)


@pytest.mark.parametrize("is_used", [True, False])
def test_a_layer_that_is_off_and_has_no_text_is_not_noted(is_used: bool) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "It opens at six.")
        canvas._code.append("/OC /MC0 BDC 72 600 100 100 re S EMC" if is_used else "")

    metadata = read_bytes(with_layer_off(drawn(draw)), "harbour.pdf").metadata
    assert not {"left_out", "hidden_parts"} & metadata.keys()


def test_hidden_text_of_a_very_large_drawing_is_noted() -> None:
    def draw(canvas: Canvas) -> None:
        canvas._code.append("/OC /MC0 BDC")
        canvas.drawString(72, 700, "It opens at six.")
        canvas._code.append("EMC" + "\n0 0 m" * 900_000)

    document = read_bytes(with_layer_off(drawn(draw)), "harbour.pdf")
    assert document.text == "It opens at six."
    assert document.metadata["left_out"] == {"large drawings whose hidden text is read as visible": 1}


@pytest.mark.parametrize("size", [12, 0.4])
def test_text_outside_a_clipping_path_and_tiny_text_are_marked_or_left_out(size: float) -> None:
    seen = "The harbour opens at six and closes at nine in the evening."

    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, seen)
        path = canvas.beginPath()
        path.rect(72, 300, 200, 50 if size > 1 else 300)
        canvas.clipPath(path, stroke=0)
        canvas.drawString(72, 320, "It has a pier.")
        canvas.setFont("Helvetica", size)
        canvas.drawString(72, 500, "It closes in May.")

    document = read_bytes(drawn(draw), "harbour.pdf")
    assert document.text == f"{seen}\n\nIt has a pier.\n\nIt closes in May. (hidden)"
    assert document.metadata["hidden_parts"] == {HIDDEN: 1}
    document = read_bytes(drawn(draw), "harbour.pdf", options=ReadingOptions(skip_hidden=True))
    assert document.text == f"{seen}\n\nIt has a pier."
    assert document.metadata["left_out"] == {f"hidden {HIDDEN}": 1}


@pytest.mark.parametrize("is_grouped", [False, True])
def test_text_of_a_layer_that_is_off_is_hidden_text(is_grouped: bool) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "It opens at six.")
        canvas._code.append("/OC /MC0 BDC /Span <</MCID 0>> BDC")
        canvas.drawString(72, 650, "Closed in May")
        canvas._code.append("EMC EMC")
        canvas.drawString(72, 600, "It closes at nine.")

    data = with_layer_off(drawn(draw), is_grouped=is_grouped)
    document = read_bytes(data, "harbour.pdf")
    assert document.text == "It opens at six.\n\nIt closes at nine.\n\nClosed in May (hidden)"
    assert document.metadata["hidden_parts"] == {HIDDEN: 1}
    document = read_bytes(data, "harbour.pdf", options=ReadingOptions(skip_hidden=True))
    assert document.text == "It opens at six.\n\nIt closes at nine."


def form_of(writer: PdfWriter, content: bytes, resources: dict[str, object]) -> IndirectObject:
    """Return a drawing (form XObject) with these instructions."""
    form = add_stream(writer, content)
    box = ArrayObject(map(NumberObject, (0, 0, 595, 842)))
    named = DictionaryObject({NameObject(name): value for name, value in resources.items()})
    entries = {"/Type": NameObject("/XObject"), "/Subtype": NameObject("/Form"), "/BBox": box, "/Resources": named}
    form.get_object().update({NameObject(name): value for name, value in entries.items()})
    return form


@pytest.mark.parametrize("place", ["mark in the form", "mark around the form", "form", "form in a form"])
def test_text_of_a_drawing_in_a_layer_that_is_off_is_hidden_text(place: str) -> None:
    data = with_layer_off(drawn(lambda canvas: canvas.drawString(72, 700, "It opens at six.")))
    writer = PdfWriter(clone_from=io.BytesIO(data))
    page = writer.pages[0]
    resources = page["/Resources"]
    content = b"BT /F1 12 Tf 72 600 Td (Closed in May) Tj ET"
    form = form_of(
        writer,
        b"/OC /MC0 BDC %b EMC" % content if place == "mark in the form" else content,
        {name: resources[name] for name in ("/Font", "/Properties")},
    )
    if place in ("form", "form in a form"):
        form.get_object()[NameObject("/OC")] = resources["/Properties"].raw_get("/MC0")
    if place == "form in a form":
        form = form_of(writer, b"/X Do", {"/XObject": DictionaryObject({NameObject("/X"): form})})
    resources[NameObject("/XObject")] = DictionaryObject({NameObject("/X"): form})
    drawing = b"/OC /MC0 BDC /X Do EMC" if place == "mark around the form" else b"/X Do"
    page[NameObject("/Contents")] = add_stream(writer, page.get_contents().get_data() + b"\n" + drawing)
    document = read_bytes(write(writer), "harbour.pdf")
    assert document.text == "It opens at six.\n\nClosed in May (hidden)"
    assert document.metadata["hidden_parts"] == {HIDDEN: 1}
    document = read_bytes(write(writer), "harbour.pdf", options=ReadingOptions(skip_hidden=True))
    assert document.text == "It opens at six."


@pytest.mark.parametrize(
    ("policy", "is_hidden"), [("AllOn", True), ("AnyOn", False), ("AnyOff", False), ("AllOff", True)]
)
def test_the_policy_of_a_group_of_layers_decides_whether_its_text_is_hidden(policy: str, is_hidden: bool) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "It opens at six.")
        canvas._code.append("/OC /MC0 BDC")
        canvas.drawString(72, 650, "Closed in May")
        canvas._code.append("EMC")

    writer = PdfWriter(clone_from=io.BytesIO(with_layer_off(drawn(draw), is_grouped=True)))
    layers = writer._root_object["/OCProperties"]["/OCGs"]
    layers.append(writer._add_object(DictionaryObject({NameObject("/Type"): NameObject("/OCG")})))
    group = writer.pages[0]["/Resources"]["/Properties"]["/MC0"]
    group.update({NameObject("/OCGs"): layers, NameObject("/P"): NameObject(f"/{policy}")})
    mark = " (hidden)" if is_hidden else ""
    assert read_bytes(write(writer), "harbour.pdf").text == f"It opens at six.\n\nClosed in May{mark}"


def grouped(*, is_off: bool, **entries: object) -> bytes:
    """Return a PDF with text in a group of two layers, the first on, the second off or on."""

    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "It opens at six.")
        canvas._code.append("/OC /MC0 BDC")
        canvas.drawString(72, 650, "Closed in May")
        canvas._code.append("EMC")

    def resolve(value: object) -> object:
        if isinstance(value, list):
            return ArrayObject([resolve(one) for one in value])
        return layers[value] if isinstance(value, int) else NameObject(f"/{value}")

    writer = PdfWriter(clone_from=io.BytesIO(with_layer_off(drawn(draw), is_grouped=True)))
    settings = writer._root_object["/OCProperties"]
    last = settings["/OCGs"][0]
    layers = writer._add_object(DictionaryObject({NameObject("/Type"): NameObject("/OCG")})), last
    settings["/D"][NameObject("/OFF")] = ArrayObject([last] if is_off else [])
    group = writer.pages[0]["/Resources"]["/Properties"]["/MC0"]
    group.update({NameObject(f"/{name}"): resolve(value) for name, value in entries.items()})
    return write(writer)


@pytest.mark.parametrize(
    ("is_off", "entries", "is_hidden"),
    [
        (False, {"OCGs": [0, 1], "P": "AnyOff"}, True),
        (False, {"OCGs": [0, 1], "P": "AllOff"}, True),
        (True, {"OCGs": [0, 1], "P": "AnyOn"}, False),
        (False, {"VE": ["Not", 0]}, True),
        (True, {"VE": ["Or", 0, 1]}, False),
        (True, {"VE": ["And", 0, ["Not", 1]]}, False),
        (True, {"VE": ["And", 0, 1]}, True),
    ],
)
def test_a_group_of_layers_hides_its_text_or_not_without_a_note(
    is_off: bool, entries: dict[str, object], is_hidden: bool
) -> None:
    document = read_bytes(grouped(is_off=is_off, **entries), "harbour.pdf")
    assert document.text == f"It opens at six.\n\nClosed in May{' (hidden)' if is_hidden else ''}"
    assert "left_out" not in document.metadata


def test_embedded_files_in_a_deep_tree_are_counted() -> None:
    writer = PdfWriter(clone_from=io.BytesIO(drawn(lambda canvas: canvas.drawString(72, 700, "It opens at six."))))
    writer.add_attachment("plan.txt", b"plan")
    tree = writer._root_object["/Names"]["/EmbeddedFiles"]
    leaf = DictionaryObject({NameObject("/Names"): tree.pop("/Names")})
    middle = DictionaryObject({NameObject("/Kids"): ArrayObject([leaf])})
    tree[NameObject("/Kids")] = ArrayObject([middle])
    assert read_bytes(write(writer), "harbour.pdf").metadata["left_out"] == {"embedded files": 1}


@pytest.mark.parametrize("hidden_by", [2, 32, "layer"])
def test_hidden_fields_and_typed_texts_are_marked_or_left_out(hidden_by: int | str) -> None:
    from pypdf.annotations import FreeText

    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "It opens at six.")
        canvas.acroForm.textfield(name="vessel", value="Kestrel", x=200, y=600, width=150, height=20)
        canvas.acroForm.textfield(name="owner", value="Petrel", x=200, y=560, width=150, height=20)
        canvas.acroForm.checkbox(name="sold", checked=True, x=200, y=500)

    writer = PdfWriter(clone_from=io.BytesIO(with_layer_off(drawn(draw))))
    writer.add_annotation(0, FreeText(text="Closed in May", rect=(100, 300, 300, 340)))
    page = writer.pages[0]
    for note in page["/Annots"][1:]:
        hide = NumberObject(4 | hidden_by) if isinstance(hidden_by, int) else NumberObject(4)
        note.get_object()[NameObject("/F")] = hide
        if hidden_by == "layer":
            note.get_object()[NameObject("/OC")] = page["/Resources"]["/Properties"].raw_get("/MC0")
    if hidden_by != "layer":
        del writer._root_object["/OCProperties"]
    document = read_bytes(write(writer), "harbour.pdf")
    lines = ["It opens at six.", "Kestrel", "owner: Petrel (hidden)", "☒ sold (hidden)", "Closed in May (hidden)"]
    assert document.text == "\n\n".join(lines)
    assert document.metadata["hidden_parts"] == {HIDDEN: 3}
    document = read_bytes(write(writer), "harbour.pdf", options=ReadingOptions(skip_hidden=True))
    assert document.text == "It opens at six.\n\nKestrel"


def test_a_page_whose_whole_text_is_in_a_layer_that_is_off_is_read_as_hidden() -> None:
    def draw(canvas: Canvas) -> None:
        canvas._code.append("/OC /MC0 BDC")
        canvas.drawString(72, 650, "Closed in May")
        canvas._code.append("EMC")

    shown = drawn(draw, lambda canvas: canvas.drawString(72, 700, "It opens at six."))
    document = read_bytes(with_layer_off(shown), "harbour.pdf")
    assert document.text == "Closed in May (hidden)\n\nIt opens at six."


def test_vertical_text_in_a_font_without_outlines_is_read() -> None:
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiKakuGo-W5", isVertical=True))

    def draw(canvas: Canvas) -> None:
        canvas.setFont("HeiseiKakuGo-W5", 14)
        canvas.drawString(400, 700, "図書館は九時に開きます")

    assert read_bytes(drawn(draw), "library.pdf").text == "図書館は九時に開きます"


@pytest.mark.parametrize("gap", [2, 6])
def test_words_with_wide_gaps_between_letters_are_whole(gap: int) -> None:
    def draw(canvas: Canvas) -> None:
        text = canvas.beginText(72, 600)
        text.setCharSpace(gap)
        text.textLine("ANNUAL REPORT 2030")
        canvas.drawText(text)
        canvas.drawString(72, 560, "Berths a b c of quay 3 4 5 are free, and 345 are not.")

    text = read_bytes(drawn(draw), "report.pdf").text
    assert "ANNUAL REPORT 2030" in text and "Berths a b c of quay 3 4 5 are free, and 345 are not." in text


def test_figures_with_a_gap_are_joined_only_if_each_digit_has_one() -> None:
    assert join_spread_letters("10 6 of 2 0 3 0", "106 of 2030") == "10 6 of 2030"


def test_a_hyphen_before_a_conjunction_stays() -> None:
    lines = "Der Hafen hat Wasser-", "und Gasleitungen unter der Erde und einen Leucht-", "turm mit einer Lampe."

    def draw(canvas: Canvas) -> None:
        for place, line in enumerate(lines):
            canvas.drawString(72, 700 - 14 * place, line)

    expected = "Der Hafen hat Wasser- und Gasleitungen unter der Erde und einen Leuchtturm mit einer Lampe."
    assert read_bytes(drawn(draw), "hafen.pdf").text == expected


def pdf_without_map(text: str, *, private: bool) -> bytes:
    """Return a PDF whose font has no names of its glyphs, and no Unicode map or one to private characters."""
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
    pairs = "\n".join(f"<{glyph:04x}> <{0xE000 + glyph:04x}>" for glyph in set(glyphs))
    mapping = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /A def /CMapType 2 def\n"
        f"1 begincodespacerange <0000> <ffff> endcodespacerange\n{len(set(glyphs))} beginbfchar\n{pairs}\nendbfchar\n"
        "endcmap end end"
    )
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources "
        b"<< /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream".encode(),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /A /Encoding /Identity-H /DescendantFonts [6 0 R] "
        + (b"/ToUnicode 9 0 R >>" if private else b">>"),
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /A /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) "
        b"/Supplement 0 >> /FontDescriptor 7 0 R /CIDToGIDMap /Identity /W [" + table.encode() + b"] >>",
        b"<< /Type /FontDescriptor /FontName /A /Flags 4 /FontBBox [-1000 -300 2000 1000] /ItalicAngle 0 /Ascent 900 "
        b"/Descent -200 /CapHeight 700 /StemV 80 /FontFile2 8 0 R >>",
        b"<< /Length %d >>\nstream\n" % len(packed.getvalue()) + packed.getvalue() + b"\nendstream",
        f"<< /Length {len(mapping)} >>\nstream\n{mapping}\nendstream".encode(),
    ]
    body = b"%PDF-1.4\n" + b"".join(b"%d 0 obj\n%b\nendobj\n" % pair for pair in enumerate(objects, 1))
    return body + b"trailer << /Size 10 /Root 1 0 R >>\nstartxref\n0\n%%EOF\n"


LINES_READ = "lines read by OCR because their fonts have no or a wrong Unicode map"


@pytest.mark.slow  # loads the OCR models
@pytest.mark.parametrize(
    ("private", "mapped_to", "left_out"),
    [
        (False, None, {"undecodable characters": 14}),
        (True, None, {LINES_READ: 1}),
        (True, b"fffd", {LINES_READ: 1}),
    ],
)
def test_characters_without_a_map_next_to_readable_text_are_read_or_counted(
    private: bool, mapped_to: bytes | None, left_out: dict[str, int]
) -> None:
    data = pdf_without_map("The tide table", private=private)
    data = re.sub(rb"<e0..>", b"<%b>" % mapped_to, data) if mapped_to else data
    writer = PdfWriter(clone_from=io.BytesIO(data))
    readable = "The harbour opens at nine in the morning."
    writer.pages[0].merge_page(
        PdfReader(io.BytesIO(drawn(lambda canvas: canvas.drawString(72, 600, readable)))).pages[0]
    )
    document = read_bytes(write(writer), "rules.pdf")
    assert readable in document.text
    assert document.metadata["left_out"] == left_out
    assert ("The tide table" in document.text) == (LINES_READ in left_out)
    assert document.metadata["garbled_pages"] == [1]


@pytest.mark.slow  # loads the OCR models
@pytest.mark.parametrize(
    ("mapped_to", "left_out"),
    [
        (b"0000", {"undecodable characters": 14}),
        (b"0041", {"fonts with the same character for all glyphs": 1, LINES_READ: 1}),
        (b"0020", {"fonts with the same character for all glyphs": 1}),
    ],
)
def test_characters_with_an_empty_or_wrong_map_are_noted(mapped_to: bytes, left_out: dict[str, int]) -> None:
    data = re.sub(rb"<e0..>(?=\n)", b"<%b>" % mapped_to, pdf_without_map("The tide table", private=True))
    writer = PdfWriter(clone_from=io.BytesIO(data))
    lines = ["The harbour opens at nine in the mor-", "ning and closes at six."]
    readable = drawn(lambda canvas: [canvas.drawString(72, 600 - 14 * at, line) for at, line in enumerate(lines)])
    writer.pages[0].merge_page(PdfReader(io.BytesIO(readable)).pages[0])
    document = read_bytes(write(writer), "rules.pdf")
    assert "The harbour opens at nine in the morning and closes at six." in document.text
    assert document.metadata["left_out"] == left_out
    assert document.metadata["garbled_pages"] == [1]


CURVES_READ = "pages with text read by OCR because it is drawn as curves"
OUTLINED = ["The narwhal surfaced at pier nineteen on Tuesday evening.", "Its tusk measured 274 centimetres."]
DEJAVU = Path(matplotlib.__file__).parent / "mpl-data/fonts/ttf/DejaVuSans.ttf"


class CurvePen(BasePen):
    """Draws the outline of a glyph into a path of a canvas."""

    def __init__(self, path: PDFPathObject, left: float, base: float, scale: float) -> None:
        super().__init__(None)
        self.path = path
        self._place = lambda point: (left + point[0] * scale, base + point[1] * scale)

    def _moveTo(self, pt: tuple[float, float]) -> None:
        self.path.moveTo(*self._place(pt))

    def _lineTo(self, pt: tuple[float, float]) -> None:
        self.path.lineTo(*self._place(pt))

    def _curveToOne(self, *points: tuple[float, float]) -> None:
        self.path.curveTo(*(number for point in points for number in self._place(point)))

    def _closePath(self) -> None:
        self.path.close()


def outline(canvas: Canvas, line: str, base: float, *, is_one_path: bool) -> None:
    font, left, path = TTFont(DEJAVU), 72.0, canvas.beginPath()
    glyphs, names, scale = font.getGlyphSet(), font.getBestCmap(), 12 / font["head"].unitsPerEm
    for letter in line:
        glyph = glyphs[names[ord(letter)]]
        glyph.draw(CurvePen(path, left, base, scale))
        left += glyph.width * scale
        if not is_one_path or letter is line[-1]:
            canvas.drawPath(path, stroke=0, fill=1)
            path = canvas.beginPath()


@pytest.mark.slow  # loads the OCR models
@pytest.mark.parametrize("is_one_path", [True, False])
@pytest.mark.parametrize("lines", [0, 8])
def test_text_drawn_as_curves_is_read_by_ocr_and_noted(is_one_path: bool, lines: int) -> None:
    readable = [f"Line {number} of the rules of the harbour and of its pier." for number in range(lines)]

    def draw(canvas: Canvas) -> None:
        for place, line in enumerate(readable):
            canvas.drawString(72, 780 - 14 * place, line)
        for place, line in enumerate(OUTLINED):
            outline(canvas, line, 500 - 20 * place, is_one_path=is_one_path)

    document = read_bytes(drawn(draw), "log.pdf")
    assert all(line in " ".join(document.text.split()) for line in [*readable, *OUTLINED])
    assert document.metadata["left_out"] == {CURVES_READ: 1}


def test_the_round_marks_of_a_chart_are_not_letters() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 780, OPENS)
        for place in range(30):
            canvas.circle(72 + 15 * place, 500 + place % 3, 3 + place % 3, stroke=0, fill=1)

    (page,) = read_pages(drawn(draw), "chart.pdf").pages
    assert page.charts.drawn == 0


def test_bullets_of_a_symbol_font_are_not_counted() -> None:
    data = re.sub(rb"<e0..>\n", b"<f0b7>\n", pdf_without_map("A", private=True))
    writer = PdfWriter(clone_from=io.BytesIO(data))
    page = PdfReader(io.BytesIO(drawn(lambda canvas: canvas.drawString(90, 700, "It opens at nine.")))).pages[0]
    writer.pages[0].merge_page(page)
    assert "left_out" not in read_bytes(write(writer), "rules.pdf").metadata


READ_BY_OCR = "pages read by OCR because their fonts have no or a wrong Unicode map"


@pytest.mark.slow  # loads the OCR models
@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("The harbour opens at nine in the morning.", False),
        ("The harbour opens at nine in the morning.", True),
        ("Tide table", False),
    ],
)
def test_a_page_whose_font_has_no_map_is_read_by_ocr_and_noted(text: str, private: bool) -> None:
    document = read_bytes(pdf_without_map(text, private=private), "rules.pdf")
    assert document.text == text
    assert document.metadata["left_out"] == {READ_BY_OCR: 1}


@pytest.mark.slow  # loads the OCR models
@pytest.mark.parametrize("mapped_to", [b"0041", b"0020"])
def test_a_page_whose_font_maps_all_glyphs_to_one_character_is_read_by_ocr_and_noted(mapped_to: bytes) -> None:
    text = "The harbour opens at nine in the morning."
    data = re.sub(rb"<e0..>(?=\n)", b"<%b>" % mapped_to, pdf_without_map(text, private=True))
    document = read_bytes(data, "rules.pdf")
    assert document.text == text
    noted = {READ_BY_OCR: 1} if mapped_to == b"0041" else {}
    assert document.metadata["left_out"] == {"fonts with the same character for all glyphs": 1} | noted


SENTENCES = (
    "The harbour opens at nine in the morning",
    "and closes at six in the evening",
    "of every day in May",
)


@pytest.mark.slow  # loads the OCR models
def test_a_page_whose_font_maps_glyphs_to_other_letters_is_read_by_ocr_and_noted() -> None:
    order = dict(zip("abcdefghijklmnopqrstuvwxyzTMO", "bcdefghijklmnopqrstuvwxyzaUNP", strict=True))
    glyphs = TTFont(Path(matplotlib.__file__).parent / "mpl-data/fonts/ttf/DejaVuSans.ttf")
    names, numbers = glyphs.getBestCmap(), glyphs.getReverseGlyphMap()
    writer = PdfWriter()
    page = writer.add_blank_page(595, 842)
    for place, sentence in enumerate(SENTENCES):
        data = pdf_without_map(sentence, private=True)
        for character in set(sentence):
            glyph = numbers[names[ord(character)]]
            wrong = ord(order.get(character, character))
            data = data.replace(b"<%04x>\n" % (0xE000 + glyph), b"<%04x>\n" % wrong)
        page.merge_translated_page(PdfReader(io.BytesIO(data)).pages[0], 0, -20 * place)
    document = read_bytes(write(writer), "rules.pdf")
    assert " ".join(document.text.split()) == " ".join(SENTENCES)
    assert document.metadata["left_out"] == {READ_BY_OCR: 1}


@pytest.mark.slow  # loads the OCR models
def test_a_page_in_a_language_with_other_letters_keeps_its_text() -> None:
    welsh = (
        "Genir pawb yn rhydd ac yn gydradd,",
        "dylai pawb ymddwyn mewn ysbryd cymodlon",
        "fydd y llyfr hwn yn y llyfrgell bob dydd yn y dyfodol",
    )

    def draw(canvas: Canvas) -> None:
        for place, line in enumerate(welsh):
            canvas.drawString(72, 700 - 14 * place, line)

    document = read_bytes(drawn(draw), "hawliau.pdf")
    assert document.text == " ".join(welsh)
    assert not read_pages(drawn(draw), "hawliau.pdf").pages[0].is_garbled  # without OCR as well
    assert not {"left_out", "scanned_pages"} & document.metadata.keys()


@pytest.mark.slow  # loads the OCR models
def test_the_text_layer_of_a_scan_adds_what_ocr_does_not_read() -> None:
    picture = Image.new("RGB", (1190, 1684), "white")
    font = ImageFont.load_default(40)
    ImageDraw.Draw(picture).text((120, 200), "The harbour opens at nine.", fill="black", font=font)

    def draw(canvas: Canvas) -> None:
        canvas.drawImage(ImageReader(picture), 0, 0, 595, 842)
        for height, line in ((730, "The harbour opens at nine."), (500, "Berth 774921")):
            layer = canvas.beginText(60, height)
            layer.setTextRenderMode(3)
            layer.textOut(line)
            canvas.drawText(layer)

    text = read_bytes(drawn(draw), "scan.pdf").text
    assert text.startswith("The harbour opens at nine.")
    assert text.count("Berth 774921") == 1


def with_field(data: bytes, **entries: object) -> bytes:
    """Return a PDF with a form field; with a /Rect it is drawn on the first page, without one it is on no page."""
    writer = PdfWriter(clone_from=io.BytesIO(data))
    streams = {name: writer._add_object(value) for name, value in entries.items() if hasattr(value, "set_data")}
    field = DictionaryObject({NameObject(f"/{name}"): value for name, value in (entries | streams).items()})
    placed = writer._add_object(field)
    if "/Rect" in field:
        field |= {NameObject("/Subtype"): NameObject("/Widget"), NameObject("/P"): writer.pages[0].indirect_reference}
        writer.pages[0][NameObject("/Annots")] = ArrayObject([placed])
    form = DictionaryObject({NameObject("/Fields"): ArrayObject([placed])})
    writer.root_object[NameObject("/AcroForm")] = form
    return write(writer)


def stream_of(content: bytes) -> DecodedStreamObject:
    stream = DecodedStreamObject()
    stream.set_data(content)
    return stream


RECTANGLE = ArrayObject(map(NumberObject, (72, 600, 272, 640)))
SIGNATURE = {"/Name": "Ottilie Marsh", "/Reason": "I approve the berths"}
OPENS = "The harbour opens at nine."


@pytest.mark.parametrize(
    ("entries", "added"),
    [
        ({"FT": NameObject("/Tx"), "V": TextStringObject("Walrus 42")}, "Berth: Walrus 42 (hidden)"),
        (
            {
                "FT": NameObject("/Tx"),
                "Rect": RECTANGLE,
                "RV": TextStringObject("<body><p>Crane <b>seven</b> &amp; eight</p><p>are broken</p></body>"),
            },
            "Berth: Crane seven & eight are broken",
        ),
        (
            {"FT": NameObject("/Tx"), "Rect": RECTANGLE, "RV": stream_of(b"<body><p>Crane <i>nine</i></p></body>")},
            "Berth: Crane nine",
        ),
        (
            {
                "FT": NameObject("/Sig"),
                "Rect": RECTANGLE,
                "V": DictionaryObject({NameObject(key): TextStringObject(text) for key, text in SIGNATURE.items()}),
            },
            "Berth: Ottilie Marsh, I approve the berths",
        ),
    ],
)
def test_signatures_rich_text_and_fields_on_no_page_are_read(entries: dict[str, object], added: str) -> None:
    data = with_field(drawn(lambda canvas: canvas.drawString(72, 700, OPENS)), T=TextStringObject("Berth"), **entries)
    document = read_bytes(data, "form.pdf")
    assert document.text == f"{OPENS}\n\n{added}"
    assert document.metadata.get("hidden_parts") == ({"form fields on no page": 1} if "hidden" in added else None)


@pytest.mark.parametrize("is_annotated", [True, False])
def test_fields_are_read_on_the_page_of_their_widget(is_annotated: bool) -> None:
    writer = PdfWriter(clone_from=io.BytesIO(drawn(*[lambda canvas: canvas.drawString(72, 700, OPENS)] * 3)))
    value = DictionaryObject({NameObject(key): TextStringObject(text) for key, text in SIGNATURE.items()})
    name = {NameObject("/FT"): NameObject("/Sig"), NameObject("/T"): TextStringObject("Berth")}
    field = writer._add_object(DictionaryObject({**name, NameObject("/V"): value}))
    page = writer.pages[1]
    entries = {"/Subtype": NameObject("/Widget"), "/Parent": field, "/Rect": RECTANGLE, "/P": page.indirect_reference}
    widget = writer._add_object(DictionaryObject({NameObject(key): entry for key, entry in entries.items()}))
    field.get_object()[NameObject("/Kids")] = ArrayObject([widget])
    if is_annotated:
        page[NameObject("/Annots")] = ArrayObject([widget])
    form = DictionaryObject({NameObject("/Fields"): ArrayObject([field])})
    writer.root_object[NameObject("/AcroForm")] = form
    document = read_bytes(write(writer), "form.pdf")
    _, start, end = document.pages[1]
    signed = "Berth: Ottilie Marsh, I approve the berths" + ("" if is_annotated else " (hidden)")
    assert document.text[start:end].strip() == f"{OPENS}\n\n{signed}"
    hidden = None if is_annotated else {"form fields on no page": 1}
    assert document.metadata.get("hidden_parts") == hidden


def test_text_in_the_pattern_that_fills_an_area_is_read() -> None:
    writer = PdfWriter(clone_from=io.BytesIO(drawn(lambda canvas: canvas.drawString(72, 700, OPENS))))
    resources = writer.pages[0]["/Resources"]
    pattern = form_of(writer, b"BT /F1 12 Tf 5 5 Td (Property of Kiel) Tj ET", {"/Font": resources.raw_get("/Font")})
    form = pattern.get_object()
    del form["/Subtype"]
    form[NameObject("/PatternType")] = NumberObject(1)
    resources[NameObject("/Pattern")] = DictionaryObject({NameObject("/P1"): pattern})
    assert read_bytes(write(writer), "tiles.pdf").text == f"{OPENS}\n\nProperty of Kiel"


def test_a_drawn_rectangle_with_text_is_read() -> None:
    square = {"Subtype": NameObject("/Square"), "AP": TextStringObject("Berth nine")}
    data = annotate(drawn(lambda canvas: canvas.drawString(72, 700, OPENS)), square)
    assert read_bytes(data, "plan.pdf").text == f"{OPENS}\n\nBerth nine"


def test_parts_after_a_damaged_annotation_and_a_damaged_tag_are_read() -> None:
    name, text = NameObject, TextStringObject
    data = annotate(
        drawn(lambda canvas: canvas.drawString(72, 700, OPENS)),
        {"Subtype": name("/FreeText"), "F": text("odd"), "Contents": text("First")},
        {"Subtype": name("/FreeText"), "F": NumberObject(2), "Contents": text("Hidden")},
        {"Subtype": name("/FreeText"), "Contents": text("Last")},
    )
    writer = PdfWriter(clone_from=io.BytesIO(data))
    writer.pages[0]["/Annots"].insert(0, NumberObject(7))
    tags = [
        DictionaryObject({name("/Alt"): value})
        for value in (text("Map"), DictionaryObject({name("/A"): NumberObject(1)}), text("Plan"))
    ]
    tree = DictionaryObject({name("/K"): ArrayObject([tags[0], tags[1], NumberObject(7), tags[2]])})
    writer.root_object[name("/StructTreeRoot")] = writer._add_object(tree)
    document = read_bytes(write(writer), "plan.pdf")
    assert document.text.split("\n\n") == [OPENS, "[Image: Map]", "[Image: Plan]", "First", "Last", "Hidden (hidden)"]


def test_boxes_at_the_start_of_lines_keep_their_state() -> None:
    pdfmetrics.registerFont(
        DejaVu("DejaVuSans", Path(matplotlib.__file__).parent / "mpl-data/fonts/ttf/DejaVuSans.ttf")
    )

    def draw(canvas: Canvas) -> None:
        canvas.setFont("DejaVuSans", 12)
        for place, line in enumerate(("□ life jackets", "■ lamps and ropes", "□ the anchor")):
            canvas.drawString(72, 700 - 20 * place, line)

    assert read_bytes(drawn(draw), "list.pdf").text == "- ☐ life jackets\n- ☒ lamps and ropes\n- ☐ the anchor"


@pytest.mark.parametrize("font", ["Wingdings", "Symbol-Like"])
def test_letters_of_wingdings_are_boxes_and_letters_of_other_fonts_are_not(font: str) -> None:
    writer = PdfWriter(clone_from=io.BytesIO(drawn(lambda canvas: canvas.drawString(72, 700, "Insured Yes"))))
    entries = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": f"/{font}", "/Encoding": "/WinAnsiEncoding"}
    page = writer.pages[0]
    font_entry = DictionaryObject({NameObject(key): NameObject(value) for key, value in entries.items()})
    page["/Resources"]["/Font"][NameObject("/W")] = writer._add_object(font_entry)
    boxes = add_stream(writer, b"BT /W 12 Tf 145 700 Td <fe> Tj 0 -30 Td <a8> Tj ET")
    page[NameObject("/Contents")] = ArrayObject([page.raw_get("/Contents"), boxes])
    text = read_bytes(write(writer), "cover.pdf").text
    assert ("☑" in text, "☐" in text) == (font == "Wingdings", font == "Wingdings"), text


def flip(packed: bytes) -> bytes:
    return packed[:120] + bytes(255 - byte for byte in packed[120:140]) + packed[140:]


@pytest.mark.parametrize("is_drawing", [False, True])
@pytest.mark.parametrize(
    ("damage", "filters"),
    [
        (lambda content: zlib.compress(content)[:-40], ["/FlateDecode"]),
        (lambda content: base64.a85encode(zlib.compress(content)[:-40]) + b"~>", ["/ASCII85Decode", "/FlateDecode"]),
        (lambda content: flip(zlib.compress(content)), ["/FlateDecode"]),
        (lambda content: content[:900] + bytes(100) + content[1000:], []),
    ],
)
def test_a_page_whose_contents_are_broken_is_read_in_part_and_noted(
    damage: Callable[[bytes], bytes], filters: list[str], is_drawing: bool
) -> None:
    lines = [f"Line {number} of the rules of the harbour." for number in range(30)]

    def draw(canvas: Canvas) -> None:
        for place, line in enumerate(lines):
            canvas.drawString(72, 800 - 14 * place, line)

    writer = PdfWriter(clone_from=io.BytesIO(drawn(draw)))
    page = writer.pages[0]
    content = page.get_contents().get_data()
    stream = EncodedStreamObject()
    stream._data = damage(content)
    stream |= {NameObject("/Filter"): ArrayObject(map(NameObject, filters))} if filters else {}
    placed = writer._add_object(stream)
    if is_drawing:
        box = ArrayObject(map(NumberObject, (0, 0, 595, 842)))
        stream |= {NameObject("/Subtype"): NameObject("/Form"), NameObject("/BBox"): box}
        stream[NameObject("/Resources")] = DictionaryObject(page["/Resources"])
        page["/Resources"][NameObject("/XObject")] = DictionaryObject({NameObject("/X1"): placed})
        placed = add_stream(writer, b"/X1 Do")
    page[NameObject("/Contents")] = placed
    document = read_bytes(write(writer), "rules.pdf")
    assert lines[0] in document.text and not all(line in document.text for line in lines)
    assert document.metadata["damaged_pages"] == [1]
    assert page_notes("rules.pdf", document.metadata) == (
        "rules.pdf: page 1 could be read only in part, because the file is damaged.",
    )


def test_zeros_after_the_last_instruction_are_no_damage_and_a_broken_drawing_is_one_of_each_page() -> None:
    writer = PdfWriter(clone_from=io.BytesIO(drawn(lambda canvas: canvas.drawString(72, 800, "Rules of the harbour."))))
    page = writer.pages[0]
    page[NameObject("/Contents")] = add_stream(writer, page.get_contents().get_data() + bytes(200))
    assert "damaged_pages" not in read_bytes(write(writer), "rules.pdf").metadata
    form = EncodedStreamObject()
    form._data = zlib.compress(b"q 1 0 0 1 0 0 cm 0 0 9 9 re f Q" * 40)[:-20]
    box = ArrayObject(map(NumberObject, (0, 0, 595, 842)))
    form |= {NameObject("/Subtype"): NameObject("/Form"), NameObject("/BBox"): box}
    form[NameObject("/Filter")] = NameObject("/FlateDecode")
    page["/Resources"][NameObject("/XObject")] = DictionaryObject({NameObject("/X1"): writer._add_object(form)})
    writer.add_page(page)
    assert read_bytes(write(writer), "rules.pdf").metadata["damaged_pages"] == [1, 2]


def test_the_pages_left_of_a_file_that_lost_its_tree_of_pages_are_read_and_noted() -> None:
    font = b"<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    data = b"%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 99 0 R>>endobj\n"
    for number in range(2, 40, 2):
        content = f"BT /F1 12 Tf 72 700 Td (Rule {number} of the harbour.) Tj ET".encode()
        data += b"%d 0 obj<</Type/Page/Parent 99 0 R/MediaBox[0 0 595 842]/Resources%s/Contents %d 0 R>>endobj\n" % (
            number, font, number + 1,
        )  # fmt: skip
        data += b"%d 0 obj<</Length %d>>stream\n%s\nendstream endobj\n" % (number + 1, len(content), content)
    document = read_bytes(data, "rules.pdf")
    assert "Rule 2 of the harbour." in document.text and "Rule 38 of the harbour." in document.text
    assert document.metadata["left_out"] == {"damaged parts of the file": 1}


def test_the_pages_left_of_a_file_whose_objects_are_in_streams_are_read_and_noted() -> None:
    page = "<</Type/Page/MediaBox[0 0 595 842]/Resources<</Font<</F1 1 0 R>>>>/Contents {} 0 R>>"
    data, packed = b"%PDF-1.7\n", {1: "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"}
    for number in range(4, 80, 4):
        packed[number] = page.format(number + 1)
        places = accumulate(map(len, packed.values()), initial=0)
        head = " ".join(f"{key} {place}" for key, place in zip(packed, places, strict=False))
        content = f"BT /F1 12 Tf 72 700 Td (Rule {number} of the harbour.) Tj ET".encode()
        streams = {number + 1: ("", content)}
        kind = f"/Type/ObjStm/N {len(packed)}/First {len(head)}"
        streams[number + 2] = (kind, (head + "".join(packed.values())).encode())
        for key, (entries, text) in streams.items():
            body = zlib.compress(text)
            data += f"{key} 0 obj<<{entries}/Filter/FlateDecode/Length {len(body)}>>stream\n".encode() + body
            data += b"\nendstream endobj\n"
        packed = {}
    document = read_bytes(data[:-200], "rules.pdf")
    assert "Rule 4 of the harbour." in document.text and "Rule 72 of the harbour." in document.text
    assert document.metadata["left_out"]["damaged parts of the file"] == 1


def test_the_pages_left_of_a_file_cut_in_a_stream_are_read_and_noted() -> None:
    data = drawn(*[lambda canvas: canvas.drawString(72, 700, OPENS)] * 20)
    document = read_bytes(data[: len(data) // 2], "rules.pdf")
    assert document.text.startswith(OPENS)
    assert document.metadata["left_out"] == {"damaged parts of the file": 1}
    assert document.metadata["unreadable_pages"]
