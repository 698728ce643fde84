"""PDF, Word, PowerPoint, Excel and EPUB: the content that is read, and the messages for rejected files."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable
from datetime import datetime

import docx
import pptx
import pytest
from PIL import Image

from tests.ingestion import files
from workbench.errors import UnreadableDocument
from workbench.ingestion.metadata import document_date
from workbench.ingestion.raw import RawDocument
from workbench.ingestion.readers.formats import read_bytes, read_draft
from workbench.ingestion.readers.isolation import ReadingOptions

PAGES = (("Otters", "Otters hold hands while they sleep."), ("Beavers", "Beavers build dams of wood and mud."))


def test_a_pdf_keeps_its_headings_and_reports_where_each_page_is() -> None:
    document = read_bytes(files.pdf(PAGES), "animals.pdf")
    assert document.title == "Otters"
    assert document.document_type == "pdf"
    assert [number for number, _, _ in document.pages] == [1, 2]
    _, start, end = document.pages[1]
    assert "Beavers build dams" in document.text[start:end]
    assert "Otters hold hands" not in document.text[start:end]


def test_a_pdf_with_a_password_is_refused_and_the_sentence_names_the_remedy() -> None:
    with pytest.raises(UnreadableDocument, match=r"'secret\.pdf' is password-protected\. Save a copy without"):
        read_bytes(files.pdf(PAGES, password="hush"), "secret.pdf")


@pytest.mark.slow  # loads the OCR models
def test_a_pdf_of_pictures_without_words_is_refused_and_the_sentence_reports_that_ocr_read_none() -> None:
    with pytest.raises(UnreadableDocument, match=r"'scan\.pdf' has no text on any page\. OCR found none"):
        read_bytes(files.scanned_pdf(), "scan.pdf")


@pytest.mark.parametrize("keep", [20, 400, 1200])
def test_a_pdf_cut_off_in_the_middle_is_not_valid(keep: int) -> None:
    with pytest.raises(UnreadableDocument, match="is not a valid PDF"):
        read_bytes(files.pdf(PAGES)[:keep], "half.pdf")


def test_a_text_file_named_pdf_is_called_no_pdf() -> None:
    with pytest.raises(UnreadableDocument, match="is not a PDF file"):
        read_bytes(b"just words", "fake.pdf")


def test_a_word_file_keeps_headings_lists_tables_and_author() -> None:
    document = read_bytes(files.docx(), "notes.docx")
    assert document.title == "Field notes"
    assert document.metadata["author"] == "Ada"
    assert "# Field notes" in document.text and "## Diet" in document.text
    assert "- Clams\n- Urchins" in document.text
    assert "| Prey | Share |" in document.text and "| Clam | 40 % |" in document.text


def test_a_word_file_is_titled_by_its_properties_if_they_are_set() -> None:
    assert read_bytes(files.docx(title="Otter diary"), "notes.docx").title == "Otter diary"


def test_shapes_with_one_id_footers_without_an_index_and_shapes_without_properties_are_read() -> None:
    slide = '<p:sp><p:nvSpPr><p:cNvPr id="2" name="n"/><p:cNvSpPr/><p:nvPr>{}</p:nvPr></p:nvSpPr>{}<p:txBody>'
    slide += "<a:bodyPr/><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:txBody></p:sp>"
    shapes = [
        slide.format('<p:ph type="title"/>', "<p:spPr/>", "Tide tables"),
        slide.format(
            "", '<p:spPr><a:xfrm><a:off x="9" y="9"/><a:ext cx="9" cy="9"/></a:xfrm></p:spPr>', "High at nine."
        ),
        slide.format("", "", "Low at three."),
    ]
    document = read_bytes(_replace_slide("".join(shapes)), "tides.pptx")
    assert document.text.startswith("## Tide tables\n\nHigh at nine.\n\nLow at three.")
    footer = slide.format('<p:ph type="ftr"/>', "<p:spPr/>", "Pier office") + shapes[1]
    assert read_bytes(_replace_slide(footer), "tides.pptx").text.startswith("High at nine.\n\nPier office")


@pytest.mark.parametrize("gone", ["slideLayouts/", "slides/slide2.xml", "slides/_rels/slide2.xml.rels"])
def test_slides_are_read_without_their_layouts_and_a_missing_slide_is_counted(gone: str) -> None:
    document = read_bytes(_rewrite_pptx(lambda path, data: None if gone in path else data), "a.pptx")
    assert "Dense fur" in document.text
    left_out = document.metadata.get("left_out")
    assert left_out == ({"slides that are missing in the file": 1} if gone == "slides/slide2.xml" else None)


def _replace_slide(shapes: str) -> bytes:
    """Return a presentation whose first slide has other shapes, as XML."""

    def replace(path: str, data: bytes) -> bytes:
        start, end = data.find(b"<p:sp>"), data.rfind(b"</p:sp>") + len(b"</p:sp>")
        return data[:start] + shapes.encode() + data[end:] if path == "ppt/slides/slide1.xml" else data

    return _rewrite_pptx(replace)


def _rewrite_pptx(replace: Callable[[str, bytes], bytes | None]) -> bytes:
    """Return a presentation with other parts, or without those that become None."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(files.pptx())) as source, zipfile.ZipFile(target, "w") as copy:
        for path in source.namelist():
            if (data := replace(path, source.read(path))) is not None:
                copy.writestr(path, data)
    return target.getvalue()


def test_slides_become_pages_with_bullets_tables_and_notes() -> None:
    document = read_bytes(files.pptx(), "talk.pptx")
    assert document.title == "Why otters float"
    first, second = (document.text[start:end] for _, start, end in document.pages)
    assert first == "## Why otters float\n\n- Dense fur\n  - a million hairs an inch\n\nNotes: Mention the raft."
    assert second == "## Numbers\n\n| Year | Count |\n| --- | --- |\n| 2020 | 3000 |"


def test_a_workbook_gives_a_table_a_sheet_and_leaves_empty_sheets_out() -> None:
    document = read_bytes(files.xlsx(), "prices.xlsx")
    table = "| Item | Price |\n| --- | --- |\n| Kelp | 3 |\n| Clam \\| large | 12.5 |"
    assert document.text == f"## Prices\n\n{table}"


def test_a_book_is_read_in_the_order_of_its_spine() -> None:
    document = read_bytes(files.epub(["<h1>Second</h1><p>Drift.</p>", "<h1>First</h1><p>Launch.</p>"]), "raft.epub")
    assert document.text == "# First\n\nLaunch.\n\n# Second\n\nDrift."
    assert (document.title, document.metadata["author"]) == ("The Raft", "A. Lontra")


def test_a_book_with_locked_chapters_is_refused_and_one_with_locked_fonts_is_not() -> None:
    with pytest.raises(UnreadableDocument, match="protected by DRM"):
        read_bytes(files.epub(["<p>Hidden.</p>"], encrypted="OEBPS/text/c0.xhtml"), "locked.epub")
    assert read_bytes(files.epub(["<p>Open.</p>"], encrypted="OEBPS/font.otf"), "open.epub").text == "Open."
    part = read_bytes(files.epub(["<p>Hidden.</p>", "<p>Open.</p>"], encrypted="OEBPS/text/c0.xhtml"), "part.epub")
    assert (part.text, part.metadata["left_out"]) == ("Open.", {"chapters that are encrypted": 1})


def test_a_chapter_in_a_foreign_format_is_replaced_by_its_fallback() -> None:
    foreign = '<item id="c1" href="drift.bin" media-type="application/x-drift" fallback="f"/>'
    target = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(files.epub(["<p>Drift.</p>", "<p>Launch.</p>"]))) as book,
        zipfile.ZipFile(target, "w") as copy,
    ):
        for name in book.namelist():
            own = '<item id="c1" href="text/c1.xhtml"/>'
            copy.writestr(name, book.read(name).replace(own.encode(), (foreign + own.replace("c1", "f", 1)).encode()))
        copy.writestr("OEBPS/drift.bin", b"%junk")
    assert read_bytes(target.getvalue(), "raft.epub").text == "Launch.\n\nDrift."


@pytest.mark.parametrize("suffix", ["docx", "xlsx", "pptx", "epub"])
def test_office_files_that_are_locked_broken_or_something_else_are_refused(suffix: str) -> None:
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as package:
        package.writestr("hello.txt", "hello")
    locked = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    for data, reason in ((locked, "password"), (b"PK\x03\x04 cut off", "damaged"), (other.getvalue(), f"x.{suffix}")):
        with pytest.raises(UnreadableDocument, match=reason):
            read_bytes(data, f"x.{suffix}")


@pytest.mark.parametrize(
    "suffix",
    [pytest.param("pdf", marks=pytest.mark.slow), "docx", "xlsx", "pptx", "epub"],  # what is left of pages is scanned
)
def test_damaged_bytes_never_raise_anything_but_the_one_error(suffix: str) -> None:
    make = {"pdf": lambda: files.pdf(PAGES), "epub": lambda: files.epub(["<p>Text.</p>"])}
    data = make.get(suffix, getattr(files, suffix))()
    chance = random.Random(suffix)
    outcomes = set()
    for _ in range(12):
        damaged = bytearray(data)
        for _ in range(40):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            read_bytes(bytes(damaged), f"x.{suffix}")
            outcomes.add("read")
        except UnreadableDocument as error:
            assert f"'x.{suffix}'" in str(error)
            outcomes.add("refused")
    assert outcomes <= {"read", "refused"} and outcomes


RTF = rb"""{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fnil\fcharset0 Arial;}{\f1\fnil\fcharset204 Arial;}}
{\info{\title Pier \'fcbersicht}{\author J\'f6rg}}{\header\pard Harbour board\par}
\pard\f0 The caretaker\'92s flat costs \u8364?40 \u-10179?\u-8704?\par {\f1\'cf\'f0\'e8\'e2\'e5\'f2}\par
Rooms{\footnote\pard Only in summer.} are heated{\deleted\revauthdel1  no more}.\par
\trowd\cellx1000\cellx2000\intbl Day\cell Keeper\cell\row\trowd\cellx1000\cellx2000\intbl Monday\cell Ada\cell\row
\pard After the table.\par{\pict\pngblip 89504e47}}"""


def test_rich_text_is_paragraphs_and_tables_and_the_rest_is_counted() -> None:
    document = read_bytes(RTF, "a.rtf")
    assert (document.title, document.metadata["author"]) == ("Pier übersicht", "Jörg")
    table = "| Day | Keeper |\n| --- | --- |\n| Monday | Ada |"
    paragraphs = ["The caretaker’s flat costs €40 😀", "Привет", "Rooms are heated.", table, "After the table."]
    assert [one for one in document.text.split("\n\n") if one.strip()] == paragraphs
    assert document.metadata["left_out"] == {
        "texts deleted under change tracking": 1, "headers and footers": 1, "footnotes": 1,
        "images without alternative text": 1
    }  # fmt: skip
    with pytest.raises(UnreadableDocument, match="is not a Rich Text file"):
        read_bytes(b"The caretaker's flat.", "a.rtf")


@pytest.mark.parametrize(("name", "advice"), [("a.msg", ".eml"), ("b.doc", ".docx"), ("c.ods", ".xlsx")])
def test_formats_that_are_not_read_name_one_that_is(name: str, advice: str) -> None:
    with pytest.raises(UnreadableDocument, match=f"Save it as {advice}"):
        read_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", name)


def read_rich(text: bytes) -> RawDocument:
    return read_bytes(
        rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0 Arial;}{\f1\fcharset238 Arial CE;}}" + text + b"}", "a.rtf"
    )


@pytest.mark.parametrize(("source", "text"), [
    (rb"Area 10{\super 6} litres", "Area 10⁶ litres"),
    (rb"41\super 3\nosupersub  million, CO{\sub 2}", "41³ million, CO2"),
    (rb"10{\b\up6 9}, 10{\super \'2d4}, crowns{\super 3}", "10⁹, 10⁻⁴, crowns[3]"),
    (rb"{\f1 \'b3\'f3d\'9f} \'cf", "łódź П"),
    (rb"{\pntext\f0 3.\tab}Moor", "3.	Moor"),
    (rb"a|b\par\trowd\intbl A|1\cell B1\par B2\cell\row\trowd\intbl A2\cell C\cell\row\pard End\par",
     "a|b\n\n| A\\|1 | B1 B2 |\n| --- | --- |\n| A2 | C |\n\nEnd"),
    (rb"left\column right", "left\n\nright"),
    (rb"C:\\column and \\columnwidth", r"C:\column and \columnwidth"),
])  # fmt: skip
def test_raised_figures_fonts_list_numbers_and_cells_of_rich_text(source: bytes, text: str) -> None:
    assert read_rich(source).text.strip() == text


def test_characters_for_private_use_are_kept() -> None:
    """Icon fonts use them, and readers once used them to mark places of the text."""
    icons = "\ue000styles.xml\ue001 " + "".join(map(chr, range(0xE000, 0xE010))) + "\ue0f0"
    document = docx.Document()
    document.add_paragraph(icons)
    target = io.BytesIO()
    document.save(target)
    rich = "".join(f"\\u{ord(sign) - 0x1_0000}?" if sign > "\x7f" else sign for sign in icons)
    for data, name in (
        (target.getvalue(), "a.docx"),
        (f"{{\\rtf1\\ansi {rich}}}".encode(), "a.rtf"),
        (f"<pre><code>{icons}</code></pre>".encode(), "a.html"),
    ):
        read = read_bytes(data, name)
        assert icons in read.text and "left_out" not in read.metadata


def test_rich_text_of_a_mac_is_decoded_and_what_is_lost_in_rich_text_is_counted() -> None:
    assert read_bytes(rb"{\rtf1\mac\ansicpg10000 caf\'8e \'d1 \u8364?}", "a.rtf").text == "café — €"
    box = rb"{\field{\*\fldinst FORMCHECKBOX {\*\formfield{\fftype1\ffres1}}}{\fldrslt }}"
    document = read_rich(rb"Sum {\mmath{\*\moMath{\mr x=1}}}" + box + rb"{\f1 \'81 }end")
    assert document.metadata["left_out"] == {"equations": 1, "form fields": 1, "bytes that are not valid text": 1}


def test_hidden_rich_text_is_marked_or_left_out() -> None:
    source = rb"{\rtf1\ansi Fee {\v of {\b old}} due}"
    document = read_bytes(source, "a.rtf")
    assert document.text == "Fee of old (hidden) due" and document.metadata["hidden_parts"] == {"parts of the text": 1}
    draft = read_draft(source, "a.rtf", options=ReadingOptions(skip_hidden=True))
    assert " ".join(draft.text.split()) == "Fee due" and draft.metadata["left_out"] == {"hidden parts of the text": 1}


def test_names_of_chapters_may_be_composed_in_another_way_and_a_book_has_all_its_authors() -> None:
    data, target = files.epub(["<p>Ebb.</p>"]), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as package, zipfile.ZipFile(target, "w") as copy:
        for path in package.namelist():
            content = package.read(path).replace(b"text/c0", "text/ü".encode())
            content = content.replace(b"</dc:creator>", b"</dc:creator><dc:creator>B. Lutra</dc:creator>")
            copy.writestr(path.replace("text/c0", "text/u\u0308"), content)
    document = read_bytes(target.getvalue(), "raft.epub")
    assert document.text == "Ebb." and document.metadata["author"] == "A. Lontra, B. Lutra"


def test_a_book_has_the_date_of_its_last_change_and_templates_have_none() -> None:
    data, target = files.epub(["<p>Ebb.</p>"]), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as book, zipfile.ZipFile(target, "w") as changed:
        for name in book.namelist():
            meta = b'<meta property="dcterms:modified">2031-02-03T04:05:06Z</meta></metadata>'
            changed.writestr(name, book.read(name).replace(b"</metadata>", meta))
    assert str(document_date(read_bytes(target.getvalue(), "ebb.epub").metadata)) == "2031-02-03"
    document, slides = docx.Document(), pptx.Presentation()
    document.add_paragraph("Ebb and flow.")
    slides.slides.add_slide(slides.slide_layouts[0]).shapes.title.text = "Ebb"  # pyright: ignore[reportOptionalMemberAccess]
    for made, name in ((document, "ebb.docx"), (slides, "ebb.pptx")):
        target = io.BytesIO()
        made.save(target)
        assert document_date(read_bytes(target.getvalue(), name).metadata) is None
        made.core_properties.modified = datetime(2031, 2, 3)
        target = io.BytesIO()
        made.save(target)
        assert str(document_date(read_bytes(target.getvalue(), name).metadata)) == "2031-02-03"


def test_a_document_of_nothing_but_an_image_names_it_and_what_to_do() -> None:
    picture, target = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (60, 60), "red").save(picture, "PNG")
    document = docx.Document()
    document.add_picture(picture)
    document.save(target)
    with pytest.raises(UnreadableDocument, match=r"no text. Not read: images without .* \(1\). .* save it as PDF"):
        read_bytes(target.getvalue(), "scan.docx")
