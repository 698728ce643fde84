"""Parts of Word files read as text: equations, numbers, fields, text boxes, charts, headers and others."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import docx
import pytest

from workbench.ingestion.metadata import page_notes
from workbench.ingestion.raw import RawDocument
from workbench.ingestion.readers import office
from workbench.ingestion.readers.formats import read_bytes
from workbench.ingestion.readers.isolation import ParserProcess, ReadingOptions

SCHEMAS = "http://schemas.openxmlformats.org"
NAMESPACES = (
    f'xmlns:w="{SCHEMAS}/wordprocessingml/2006/main" xmlns:m="{SCHEMAS}/officeDocument/2006/math" '
    f'xmlns:r="{SCHEMAS}/officeDocument/2006/relationships" xmlns:a="{SCHEMAS}/drawingml/2006/main" '
    f'xmlns:wp="{SCHEMAS}/drawingml/2006/wordprocessingDrawing" xmlns:pic="{SCHEMAS}/drawingml/2006/picture" '
    f'xmlns:c="{SCHEMAS}/drawingml/2006/chart" xmlns:dgm="{SCHEMAS}/drawingml/2006/diagram" '
    f'xmlns:mc="{SCHEMAS}/markup-compatibility/2006" xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:o="urn:schemas-microsoft-com:office:office" '
    'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
)


def word_file(body: str, parts: Mapping[str, tuple[str, str]] | None = None) -> bytes:
    """Return a Word file with a body and additional parts: path in ``word``, (type of the reference, XML).

    A part's reference has its file name without suffix as id.
    """
    plain = io.BytesIO()
    docx.Document().save(plain)
    parts = parts or {}
    target = io.BytesIO()
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for path in source.namelist():
            data = source.read(path)
            if path == "word/document.xml":
                data = f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>".encode()
            if path == "word/_rels/document.xml.rels":
                added = "".join(
                    f'<Relationship Id="{name.rpartition("/")[2].partition(".")[0]}" Target="{name}" '
                    f'Type="{SCHEMAS}/officeDocument/2006/relationships/{kind}"/>'
                    for name, (kind, _) in parts.items()
                )
                data = data.replace(b"</Relationships>", added.encode() + b"</Relationships>")
            if path.removeprefix("word/") not in parts:
                copy.writestr(path, data)
        for name, (_, content) in parts.items():
            copy.writestr(f"word/{name}", content)
    return target.getvalue()


def read(body: str, parts: Mapping[str, tuple[str, str]] | None = None) -> RawDocument:
    return read_bytes(word_file(body, parts), "plan.docx")


def test_a_control_shows_the_value_that_it_is_bound_to() -> None:
    controls = ""
    for path, text in (("/n:order/n:client", "[Client]"), ("/n:order/n:none", "[None]"), ("///", "[Broken]")):
        binding = f"<w:dataBinding w:xpath='{path}' w:storeItemID='{{7}}' w:prefixMappings='xmlns:n=\"urn:o\"'/>"
        content = f"<w:sdtContent><w:r><w:t>{text}</w:t></w:r></w:sdtContent>"
        controls += f"<w:p><w:sdt><w:sdtPr>{binding}<w:text/></w:sdtPr>{content}</w:sdt></w:p>"
    target = io.BytesIO(word_file(controls))
    with zipfile.ZipFile(target, "a") as package:
        package.writestr("customXml/item7.xml", '<order xmlns="urn:o"><client>Meridian</client></order>')
        package.writestr("customXml/itemProps7.xml", '<d:datastoreItem xmlns:d="urn:d" d:itemID="{7}"/>')
    assert read_bytes(target.getvalue(), "order.docx").text.split() == ["Meridian", "[None]", "[Broken]"]


def paragraph(text: str, numbering: str = "") -> str:
    return f"<w:p><w:pPr>{numbering}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def numbered(text: str, level: int = 0, number: int = 1) -> str:
    return paragraph(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


@pytest.mark.parametrize(
    ("equation", "latex"),
    [
        (
            "<m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>",
            r"$\frac{a+b}{2}$",
        ),
        (
            "<m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
            "<m:r><m:t>=9</m:t></m:r>",
            "$x^2=9$",
        ),
        (
            '<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub><m:r><m:t>i=1</m:t></m:r></m:sub>'
            "<m:sup><m:r><m:t>n</m:t></m:r></m:sup><m:e><m:r><m:t>i</m:t></m:r></m:e></m:nary>",
            "$∑_{i=1}^n i$",
        ),
        ("<m:rad><m:deg/><m:e><m:r><m:t>2gh</m:t></m:r></m:e></m:rad>", r"$\sqrt{2gh}$"),
    ],
    ids=["fraction", "power", "sum", "root"],
)
def test_equations_are_latex(equation: str, latex: str) -> None:
    assert read(f"<w:p><w:r><w:t>Load </w:t></w:r><m:oMath>{equation}</m:oMath></w:p>").text == f"Load {latex}"


LEVEL = '<w:lvl w:ilvl="{0}"><w:start w:val="{3}"/><w:numFmt w:val="{1}"/><w:lvlText w:val="{2}"/></w:lvl>'


def numbering(*levels: tuple[str, str], start: int = 1) -> dict[str, tuple[str, str]]:
    definitions = "".join(LEVEL.format(place, form, text, start) for place, (form, text) in enumerate(levels))
    return {
        "numbering.xml": (
            "numbering",
            f'<w:numbering {NAMESPACES}><w:abstractNum w:abstractNumId="0">{definitions}</w:abstractNum>'
            '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>',
        )
    }


def test_clauses_keep_their_automatic_numbers() -> None:
    body = numbered("Scope") + numbered("Crew", 1) + numbered("Boats", 1) + numbered("the cook", 2) + numbered("Fees")
    text = read(body, numbering(("decimal", "%1"), ("decimal", "%1.%2"), ("lowerLetter", "(%3)"))).text
    assert text == "1 Scope\n\n1.1 Crew\n\n1.2 Boats\n\n(a) the cook\n\n2 Fees"


def test_numbers_continue_after_other_paragraphs_and_start_as_set() -> None:
    body = numbered("Oars") + numbered("Sails") + paragraph("A note.") + numbered("Ropes")
    text = read(body, numbering(("upperRoman", "Article %1."), start=4)).text
    assert text == "Article IV. Oars\n\nArticle V. Sails\n\nA note.\n\nArticle VI. Ropes"
    text = read(body, numbering(("decimal", "%1."))).text
    assert text == "1. Oars\n2. Sails\n\nA note.\n\n3. Ropes"


def test_headings_keep_the_numbers_of_their_style() -> None:
    heading = '<w:p><w:pPr><w:pStyle w:val="Heading1"/>{}</w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'
    number = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
    body = heading.format(number, "Scope") + heading.format("", "Preface") + heading.format(number, "Fees")
    assert read(body, numbering(("decimal", "§ %1"))).text == "# § 1 Scope\n\n# Preface\n\n# § 2 Fees"


@pytest.mark.parametrize("levels", [(1, None), (9, 1)], ids=["its base", "its own"])
def test_headings_are_read_by_the_outline_level_of_their_style(levels: tuple[int, int | None]) -> None:
    outlines = [f'<w:pPr><w:outlineLvl w:val="{level}"/></w:pPr>' if level is not None else "" for level in levels]
    styles = '<w:style w:type="paragraph" w:styleId="Base"><w:name w:val="Base"/>' + outlines[0] + "</w:style>"
    styles += '<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="Base"/>' + outlines[1]
    parts = {"styles.xml": ("styles", f"<w:styles {NAMESPACES}>{styles}</w:style></w:styles>")}
    line = '<w:p><w:pPr><w:pStyle w:val="Own"/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'
    clause = "The office keeps the keys of every gate. " * 4
    table = f"<w:tbl><w:tr><w:tc>{line.format('Gate')}</w:tc><w:tc>{line.format('Key')}</w:tc></w:tr></w:tbl>"
    text = read(line.format("Keys") + line.format(clause) + table, parts).text
    assert text == f"## Keys\n\n{clause.strip()}\n\n| Gate | Key |\n| --- | --- |"


def test_headers_and_footers_are_read_once_and_page_numbers_not() -> None:
    page = '<w:r><w:t>Page </w:t></w:r><w:fldSimple w:instr=" PAGE "><w:r><w:t>7</w:t></w:r></w:fldSimple>'
    section = '<w:sectPr><w:headerReference r:id="header1"/><w:footerReference r:id="footer1"/></w:sectPr>'
    parts = {
        "header1.xml": ("header", f"<w:hdr {NAMESPACES}>{paragraph('CASE 88-KESTREL')}<w:p>{page}</w:p></w:hdr>"),
        "footer1.xml": ("footer", f"<w:ftr {NAMESPACES}>{paragraph('Keep dry')}<w:p>{page}</w:p></w:ftr>"),
    }
    body = f"<w:p><w:pPr>{section}</w:pPr><w:r><w:t>First.</w:t></w:r></w:p>{paragraph('Second.')}{section}"
    assert read(body, parts).text == "CASE 88-KESTREL\n\nFirst.\n\nSecond.\n\nKeep dry"


def test_moved_text_is_read_at_its_new_place() -> None:
    run = "<w:r><w:t>the north gate</w:t></w:r>"
    body = (
        f"<w:p><w:r><w:t>Meet at </w:t></w:r><w:moveTo>{run}</w:moveTo></w:p>"
        f"<w:p><w:r><w:t>Leave from </w:t></w:r><w:moveFrom>{run}</w:moveFrom></w:p>"
    )
    assert read(body).text == "Meet at the north gate\n\nLeave from"


def test_superscripts_stay_apart_from_their_word() -> None:
    raised = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>{}</w:t></w:r>'
    body = f"<w:p><w:r><w:t>Area 3 × 10</w:t></w:r>{raised.format('6')}<w:r><w:t> m</w:t></w:r>{raised.format(2)}</w:p>"
    assert read(body).text == "Area 3 × 10⁶ m²"
    assert read(f"<w:p><w:r><w:t>413 crowns</w:t></w:r>{raised.format('7')}</w:p>").text == "413 crowns[7]"


def test_check_boxes_and_lists_of_forms_keep_their_state() -> None:
    box = '<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="{}"/></w14:checkbox></w:sdtPr><w:sdtContent/></w:sdt>'
    old = (
        '<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:default w:val="1"/></w:checkBox></w:ffData>'
        "</w:fldChar></w:r><w:r><w:instrText> FORMCHECKBOX </w:instrText></w:r>"
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )
    choice = (
        '<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="red"/>'
        '<w:listEntry w:val="green"/></w:ddList></w:ffData></w:fldChar></w:r><w:r><w:instrText> FORMDROPDOWN '
        '</w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )
    lines = [(box.format(1), "Oars"), (box.format(0), "Sails"), (old, "Ropes"), (choice, "flag")]
    body = "".join(f"<w:p>{field}<w:r><w:t> {text}</w:t></w:r></w:p>" for field, text in lines)
    assert read(body).text == "☒ Oars\n\n☐ Sails\n\n☒ Ropes\n\ngreen flag"


def drawing(inner: str, properties: str = "") -> str:
    graphic = f"<a:graphic><a:graphicData>{inner}</a:graphicData></a:graphic>"
    return f"<w:r><w:drawing><wp:inline><wp:docPr {properties}/>{graphic}</wp:inline></w:drawing></w:r>"


def test_a_text_box_is_read_once_after_its_paragraph() -> None:
    content = f"<w:txbxContent>{paragraph('The tide turns at six.')}</w:txbxContent>"
    choice = drawing(f"<wps:wsp><wps:txbx>{content}</wps:txbx></wps:wsp>")
    fallback = f"<w:r><w:pict><v:shape><v:textbox>{content}</v:textbox></v:shape></w:pict></w:r>"
    both = (
        f'<w:r><mc:AlternateContent><mc:Choice Requires="wps">{choice[5:-6]}</mc:Choice>'
        f"<mc:Fallback>{fallback[5:-6]}</mc:Fallback></mc:AlternateContent></w:r>"
    )
    for box in (choice, fallback, both):
        text = read(f"<w:p><w:r><w:t>Read this.</w:t></w:r>{box}</w:p>{paragraph('Then go.')}").text
        assert text == "Read this.\n\nThe tide turns at six.\n\nThen go."


CHART = (
    f'<c:chartSpace xmlns:c="{SCHEMAS}/drawingml/2006/chart" xmlns:a="{SCHEMAS}/drawingml/2006/main"><c:chart><c:title>'
    "<c:tx><c:rich><a:p><a:r><a:t>Landings</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser>"
    "<c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>2030</c:v></c:pt></c:strCache></c:strRef></c:tx>"
    "<c:cat><c:strRef><c:strCache><c:pt idx='0'><c:v>Cod</c:v></c:pt><c:pt idx='1'><c:v>Eel</c:v></c:pt></c:strCache>"
    "</c:strRef></c:cat><c:val><c:numRef><c:numCache><c:pt idx='0'><c:v>88</c:v></c:pt>"
    "<c:pt idx='1'><c:v>0.10000000000000001</c:v></c:pt></c:numCache></c:numRef></c:val>"
    "</c:ser></c:barChart></c:plotArea></c:chart></c:chartSpace>"
)
DIAGRAM = (
    f'<dgm:dataModel xmlns:dgm="{SCHEMAS}/drawingml/2006/diagram" xmlns:a="{SCHEMAS}/drawingml/2006/main"><dgm:ptLst>'
    '<dgm:pt modelId="0" type="doc"/><dgm:pt modelId="2"><dgm:t><a:p><a:r><a:t>Sort</a:t></a:r></a:p></dgm:t></dgm:pt>'
    '<dgm:pt modelId="1"><dgm:t><a:p><a:r><a:t>Catch</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst><dgm:cxnLst>'
    '<dgm:cxn modelId="8" srcId="0" destId="1" srcOrd="0"/><dgm:cxn modelId="9" srcId="0" destId="2" srcOrd="1"/>'
    "</dgm:cxnLst></dgm:dataModel>"
)


def test_charts_are_tables_and_smartart_is_text_in_its_order() -> None:
    chart = drawing('<c:chart r:id="chart1"/>')
    text = read(f"<w:p>{chart}</w:p>", {"charts/chart1.xml": ("chart", CHART)}).text
    assert text == "Landings\n\n|  | 2030 |\n| --- | --- |\n| Cod | 88 |\n| Eel | 0.1 |"
    art = drawing('<dgm:relIds r:dm="data1"/>')
    assert read(f"<w:p>{art}</w:p>", {"diagrams/data1.xml": ("diagramData", DIAGRAM)}).text == "Catch\n\nSort"


def test_alternative_texts_are_read_and_what_is_left_out_is_counted() -> None:
    picture = "<pic:pic><pic:blipFill><a:blip r:embed='none'/></pic:blipFill></pic:pic>"
    comments = f"<w:comments {NAMESPACES}><w:comment w:id='1'>{paragraph('Really?')}</w:comment></w:comments>"
    lost = drawing('<c:chart r:id="gone"/>') + '<w:r><w:object><w:control w:name="Box"/></w:object></w:r><w:subDoc/>'
    described = drawing(picture, 'descr="The pier from the east"')
    body = f"<w:p><w:r><w:t>Map.</w:t></w:r>{described}</w:p>"
    body += (
        f"<w:p><w:r><w:t>Logo.</w:t></w:r>{drawing(picture)}{lost}<w:r><w:object><o:OLEObject/></w:object></w:r></w:p>"
    )
    document = read(body, {"comments.xml": ("comments", comments)})
    assert document.text == "Map.\n\n[Image: The pier from the east]\n\nLogo."
    left_out = {"embedded files": 1, "images without alternative text": 1, "charts": 1, "comments": 1}
    left_out |= {"linked subdocuments": 1, "ActiveX controls": 1}
    assert document.metadata["left_out"] == left_out
    (note,) = page_notes("plan.docx", document.metadata)
    assert all(f"{what} (1)" in note for what in left_out)


def test_each_picture_of_a_group_is_described() -> None:
    def picture(alt: str) -> str:
        return f"<pic:pic><pic:nvPicPr><pic:cNvPr id='1' name='p' descr='{alt}'/></pic:nvPicPr></pic:pic>"

    group = f"<wpg:wgp xmlns:wpg='urn:group'>{picture('The pier')}{picture('The lighthouse')}</wpg:wgp>"
    assert read(f"<w:p>{drawing(group)}</w:p>").text == "[Image: The pier]\n\n[Image: The lighthouse]"


def test_fields_ruby_and_content_of_other_markup_are_read() -> None:
    ruby = (
        "<w:ruby><w:rt><w:r><w:t>としょ</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>図書</w:t></w:r></w:rubyBase></w:ruby>"
    )
    field = '<w:fldSimple w:instr=" SEQ Figure "><w:r><w:t>12</w:t></w:r></w:fldSimple>'
    smart = "<w:customXml><w:smartTag><w:r><w:t> of Faro</w:t></w:r></w:smartTag></w:customXml>"
    body = f"<w:p><w:r>{ruby}</w:r><w:r><w:t> Figure </w:t></w:r>{field}{smart}</w:p>"
    document = read(body)
    assert document.text == "図書 Figure 12 of Faro" and document.metadata["left_out"] == {"ruby readings": 1}


def test_the_strict_variant_is_read_like_the_usual_one() -> None:
    equation = "<w:p><m:oMath><m:r><m:t>F=9</m:t></m:r></m:oMath><w:r><w:t> holds</w:t></w:r></w:p>"
    strict = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(word_file(equation))) as source, zipfile.ZipFile(strict, "w") as copy:
        for path in source.namelist():
            data = source.read(path)
            for name in (b"wordprocessingml", b"officeDocument", b"drawingml"):
                data = data.replace(
                    b"http://schemas.openxmlformats.org/" + name + b"/2006/",
                    b"http://purl.oclc.org/ooxml/" + name + b"/",
                )
            copy.writestr(path, data)
    assert read_bytes(strict.getvalue(), "strict.docx").text == "$F=9$ holds"


@pytest.mark.parametrize("renamed", ["word/Document.xml", "Word\\Document.XML"])
def test_part_names_in_another_case_or_with_other_slashes_are_found(renamed: str) -> None:
    target = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(word_file("<w:p><w:r><w:t>The quay is of granite.</w:t></w:r></w:p>"))) as source,
        zipfile.ZipFile(target, "w") as copy,
    ):
        for path in source.namelist():
            copy.writestr(renamed if path == "word/document.xml" else path, source.read(path))
    assert read_bytes(target.getvalue(), "quay.docx").text == "The quay is of granite."


def test_parts_with_other_names_are_found_by_what_refers_to_them() -> None:
    body = numbered("Scope") + "<w:p><w:r><w:commentReference w:id='0'/><w:t>Text</w:t></w:r></w:p>"
    note = f"<w:comments {NAMESPACES}><w:comment w:id='0'>{paragraph('Check.')}</w:comment></w:comments>"
    numbers = numbering(("decimal", "Clause %1"))
    parts = {path.replace(".xml", "2.xml"): part for path, part in numbers.items()}
    source = io.BytesIO(word_file(body, parts | {"comments2.xml": ("comments", note)}))
    assert read_bytes(source.getvalue(), "a.docx").text == "Clause 1 Scope\n\nText\n\n[Comment: Check.]"


def test_text_struck_twice_is_struck() -> None:
    assert read("<w:p><w:r><w:rPr><w:dstrike/></w:rPr><w:t>Void</w:t></w:r></w:p>").text == "~~Void~~"


def test_hidden_text_and_fields_of_a_header_follow_the_option_and_are_counted_once() -> None:
    field = run_field("DOCPROPERTY Client")
    header = f"<w:hdr {NAMESPACES}><w:p>{field}<w:r><w:t>Quay</w:t></w:r>"
    header += "<w:r><w:rPr><w:vanish/></w:rPr><w:t> of Visby</w:t></w:r></w:p></w:hdr>"
    body = paragraph("Text.") + "<w:sectPr><w:headerReference r:id='head'/></w:sectPr>"
    data = word_file(body, {"head.xml": ("header", header)})
    document = read_bytes(data, "plan.docx")
    assert document.text == "Quay of Visby (hidden)\n\nText."
    assert document.metadata["hidden_parts"] == {"parts of the text": 1}
    assert document.metadata["left_out"] == {"fields without a result": 1}
    assert read_bytes(data, "plan.docx", options=ReadingOptions(skip_hidden=True)).text == "Quay\n\nText."


def test_deleted_parts_of_an_equation_are_not_read_and_comments_may_be_equations() -> None:
    deleted = "<w:del w:id='1'><m:r><m:t>+z</m:t></m:r></w:del>"
    equation = f"<m:oMath><m:r><m:t>x</m:t></m:r>{deleted}</m:oMath>"
    notes = f"<w:comment w:id='0'><w:p>{equation.replace(deleted, '')}</w:p></w:comment>"
    notes += "<w:comment w:id='1'><w:p/></w:comment>"
    parts = {"comments.xml": ("comments", f"<w:comments {NAMESPACES}>{notes}</w:comments>")}
    marks = "".join(f"<w:r><w:commentReference w:id='{key}'/></w:r>" for key in "01")
    document = read(f"<w:p>{equation}{marks}</w:p>", parts)
    assert document.text == "$x$\n\n[Comment: $x$]"
    assert document.metadata["left_out"] == {"texts deleted under change tracking": 1, "comments without text": 1}


def test_references_to_missing_notes_links_and_images_spoil_nothing() -> None:
    note = '<w:r><w:footnoteReference w:id="77"/></w:r>'
    link = '<w:hyperlink r:id="gone"><w:r><w:t> here</w:t></w:r></w:hyperlink>'
    image = drawing("<pic:pic><pic:blipFill><a:blip r:embed='gone'/></pic:blipFill></pic:pic>")
    assert read(f"<w:p><w:r><w:t>Moor</w:t></w:r>{note}{link}{image}</w:p>").text == "Moor here"


@pytest.mark.parametrize(("form", "start", "label"), [
    ("upperRoman", 3_999, "MMMCMXCIX)"), ("upperRoman", 2_000_000_000, "2000000000)"),
    ("lowerLetter", 28, "bb)"), ("upperLetter", 2_000_000_000, "2000000000)"),
])  # fmt: skip
def test_numbers_of_too_many_letters_are_decimal(form: str, start: int, label: str) -> None:
    assert read(numbered("Scope"), numbering((form, "%1)"), start=start)).text == f"{label} Scope"


def test_a_figure_raised_by_a_distance_is_an_exponent() -> None:
    def run(text: str, position: int) -> str:
        return f'<w:r><w:rPr><w:position w:val="{position}"/></w:rPr><w:t>{text}</w:t></w:r>'

    assert read(f"<w:p>{run('10', 0)}{run('9', 8)}{run(' and 10', 0)}{run('9', -8)}</w:p>").text == "10⁹ and 109"


def run_field(instruction: str, result: str = "", form: str = "") -> str:
    mark = '<w:r><w:fldChar w:fldCharType="{}">{}</w:fldChar></w:r>'
    shown = mark.format("separate", "") + result if result else ""
    return f"{mark.format('begin', form)}{instruction}{shown}{mark.format('end', '')}"


def instruct(text: str) -> str:
    return f"<w:r><w:instrText>{text}</w:instrText></w:r>"


def test_fields_without_a_result_are_counted_and_their_instructions_are_not_read() -> None:
    inner = run_field(instruct("MERGEFIELD G"), "<w:r><w:t>F</w:t></w:r>")
    condition = run_field(f"{instruct('IF')}{inner}{instruct('= F')}", "<w:r><w:t>Ms</w:t></w:r>")
    box = run_field(instruct("FORMCHECKBOX"), form="<w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData>")
    empty = (
        run_field(instruct("=SUM(ABOVE)"))
        + run_field(instruct("XE anchor"))
        + "<w:fldSimple w:instr='QUOTE x'/><w:fldSimple w:instr=' PAGE '/>"
    )
    document = read(f"<w:p>{condition}<w:r><w:t> Ada </w:t></w:r>{box}{empty}</w:p>")
    assert document.text == "Ms Ada ☒" and document.metadata["left_out"] == {"fields without a result": 2}


def test_cells_left_out_before_a_row_header_rows_and_captions_of_tables_are_read() -> None:
    def row(*cells: str, before: int = 0) -> str:
        return f'<w:tr><w:trPr><w:gridBefore w:val="{before}"/></w:trPr>{"".join(cells)}</w:tr>'

    def cell(text: str, properties: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"

    merged = cell("Region", '<w:vMerge w:val="restart"/>'), cell("", "<w:vMerge/>")
    rows = (
        row(merged[0], cell("2030", '<w:gridSpan w:val="2"/>')), row(merged[1], cell("Q1"), cell("Q2")),
        row(cell("North"), cell("11"), cell("12")), row(cell("21"), cell("22"), before=1),
    )  # fmt: skip
    text = read(f"<w:tbl><w:tblPr><w:tblCaption w:val='Tides'/></w:tblPr>{''.join(rows)}</w:tbl>").text
    lines = ["| Region | 2030 Q1 | 2030 Q2 |", "| --- | --- | --- |", "| North | 11 | 12 |", "|  | 21 | 22 |"]
    assert text.split("\n") == ["Tides", "", *lines]


def test_a_hidden_shape_is_marked() -> None:
    shape = (
        "<w:r><w:drawing><wp:anchor><wp:docPr id='1' name='x' hidden='1'/><wps:txbx><w:txbxContent>"
        f"{paragraph('Costs')}</w:txbxContent></wps:txbx></wp:anchor></w:drawing></w:r>"
    )
    document = read(f"<w:p><w:r><w:t>Quay</w:t></w:r>{shape}</w:p>")
    assert document.text == "Quay\n\nCosts\n\n(hidden)" and document.metadata["hidden_parts"] == {"shapes": 1}


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("<w:p><w:r><w:t>Second", "First\n\nSecond"),
        ("<w:p><w:r><w:t>a\x01b &none; c</w:t></w:r></w:p>", "First\n\nab c"),
    ],
)
def test_a_damaged_document_is_read_up_to_its_damage_and_counted_once(end: str, text: str) -> None:
    document = read(paragraph("First") + end)
    assert document.text == text and document.metadata["left_out"] == {"damaged parts of the file": 1}


def test_parts_that_a_file_refers_to_and_lacks_are_counted() -> None:
    body = f"{paragraph('Moor')}<w:p><w:r><w:footnoteReference w:id='77'/></w:r></w:p>"
    document = read(f"{body}<w:sectPr><w:headerReference w:type='default' r:id='gone'/></w:sectPr>")
    names = ("footnotes", "headers and footers")
    assert document.metadata["left_out"] == {f"{name} that are missing in the file": 1 for name in names}


@pytest.mark.parametrize(
    ("form", "third", "twelfth"),
    [
        ("hebrew1", "ג", "12"),
        ("russianLower", "в", "м"),
        ("arabicAbjad", "ج", "ل"),
        ("japaneseCounting", "三", "十二"),
        ("decimalEnclosedCircle", "③", "⑫"),
    ],
)
def test_items_of_a_list_have_the_letters_of_its_script(form: str, third: str, twelfth: str) -> None:
    items = read("".join(numbered("Rope") for _ in range(12)), numbering((form, "%1)"))).text.split("\n\n")
    assert (items[2], items[11]) == (f"{third}) Rope", f"{twelfth}) Rope")


@pytest.mark.parametrize(
    ("equation", "latex"),
    [
        ('<m:d><m:dPr><m:begChr m:val="{"/><m:endChr m:val=""/></m:dPr><m:e>x</m:e></m:d>', r"$\{x$"),
        ('<m:bar><m:barPr><m:pos m:val="top"/></m:barPr><m:e>x</m:e></m:bar>', r"$\overline{x}$"),
        ("<m:bar><m:e>x</m:e></m:bar>", r"$\underline{x}$"),
        ("<m:groupChr><m:e>x</m:e></m:groupChr>", r"$\underbrace{x}$"),
        ('<m:r><m:t>y</m:t></m:r><m:phant><m:phantPr><m:show m:val="0"/></m:phantPr><m:e>x</m:e></m:phant>', "$y$"),
        ('<m:r><w:sym w:font="Symbol" w:char="F061"/><m:t>=2</m:t></m:r>', "$α=2$"),
    ],
)
def test_braces_bars_and_symbols_of_equations(equation: str, latex: str) -> None:
    equation = equation.replace("<m:e>x</m:e>", "<m:e><m:r><m:t>x</m:t></m:r></m:e>")
    assert read(f"<w:p><m:oMath>{equation}</m:oMath></w:p>").text == latex


def test_a_drop_cap_joins_its_word_and_a_page_break_divides_words() -> None:
    cap = '<w:p><w:pPr><w:framePr w:dropCap="drop"/></w:pPr><w:r><w:t>O</w:t></w:r></w:p>'
    rest = '<w:p><w:r><w:t>nce the tide</w:t><w:br w:type="page"/><w:t>rose</w:t></w:r></w:p>'
    alone = '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:br w:type="page"/></w:r></w:p>'
    assert read(cap + rest + alone).text == "Once the tide rose"


def test_signs_of_a_symbol_font_are_read_as_they_are_shown() -> None:
    run = '<w:r><w:rPr><w:rFonts w:ascii="{}"/></w:rPr><w:t>{}</w:t></w:r>'
    signs = run.format("Wingdings", "\uf0fc") + run.format("Symbol", "m") + run.format("Arial", "m wide")
    assert read(f"<w:p>{signs}</w:p>").text == "✓μm wide"


@pytest.mark.parametrize("kind", ["paragraph", "character"])
def test_signs_of_the_symbol_font_of_a_style_are_read_and_those_of_an_unknown_font_counted(kind: str) -> None:
    fonts = '<w:rPr><w:rFonts w:hAnsi="Symbol"/></w:rPr>'
    style = f'<w:style w:type="{kind}" w:styleId="Greek"><w:name w:val="Greek"/>{fonts}</w:style>'
    styles = {"styles.xml": ("styles", f"<w:styles {NAMESPACES}>{style}</w:styles>")}
    own, outer = ('<w:rPr><w:rStyle w:val="Greek"/></w:rPr>', "") if kind == "character" else ("", "Greek")
    run = f"<w:r>{own}<w:t>\uf061 is wide</w:t></w:r>"
    lost = '<w:p><w:r><w:rPr><w:rFonts w:ascii="Odd Symbols"/></w:rPr><w:t>\uf0fe</w:t></w:r></w:p>'
    body = f'<w:p><w:pPr><w:pStyle w:val="{outer}"/></w:pPr>{run}</w:p>{lost}'
    document = read(body, styles)
    assert document.text == "α is wide\n\n\uf0fe"
    assert document.metadata["left_out"] == {"symbols of an unknown font": 1}


def test_the_address_of_a_simple_field_of_a_link_is_read() -> None:
    link = (
        '<w:fldSimple w:instr=" HYPERLINK &quot;https://tide.test/a&quot; "><w:r><w:t>Tides</w:t></w:r></w:fldSimple>'
    )
    assert read(f"<w:p>{link}</w:p>").text == "[Tides](https://tide.test/a)"


def test_alternative_texts_of_boxes_and_charts_are_read_as_well_as_their_text() -> None:
    box = (
        "<wps:wsp><wps:txbx><w:txbxContent><w:p><w:r><w:t>Gate 7</w:t></w:r></w:p></w:txbxContent></wps:txbx></wps:wsp>"
    )
    model = '<x:model3d xmlns:x="urn:x"/>'
    drawing = (
        '<w:p><w:r><w:drawing><wp:inline><wp:docPr id="1" name="x" descr="{}"/>{}</wp:inline></w:drawing></w:r></w:p>'
    )
    document = read(drawing.format("Sign at the gate", box) + drawing.format("", model + box + "<a:blip/>"))
    assert document.text == "[Image: Sign at the gate]\n\nGate 7\n\nGate 7"
    assert document.metadata["left_out"] == {"images without alternative text": 2}


def test_a_long_document_is_read_in_slices_with_notes_and_lists_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "MAX_ELEMENTS_AT_ONCE", 8)
    notes = "".join(f'<w:footnote w:id="{n}"><w:p><w:r><w:t>Note {n}</w:t></w:r></w:p></w:footnote>' for n in (1, 2))
    reference = '<w:p><w:r><w:t>Rope</w:t></w:r><w:r><w:footnoteReference w:id="{}"/></w:r></w:p>'
    field = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    start, end = (f"<w:p>{field * n}</w:p>" for n in (2, 1))
    body = [reference.format(1), paragraph("Knot"), *(numbered(f"Item {n}") for n in range(1, 5)), paragraph("Sail")]
    body += [start.format("begin", "separate"), paragraph("Ebb"), paragraph("Flow"), end.format("end")]
    body += [paragraph("Moor"), reference.format(2)]
    parts = {
        **numbering(("decimal", "%1.")),
        "footnotes.xml": ("footnotes", f"<w:footnotes {NAMESPACES}>{notes}</w:footnotes>"),
    }
    text = read("".join(body), parts).text.replace(" ↑", "")
    items = [f"{n}. Item {n}" for n in range(1, 5)]
    lines = ["Rope[1]", "Knot", *items, "Sail", "Ebb", "Flow", "Moor", "Rope[2]"]
    found = [line for line in text.split("\n") if line]
    assert [line for line in found if "Note" not in line] == lines
    assert [line for line in found if "Note" in line] == ["1. Note 1", "2. Note 2"]
    assert found.index("1. Note 1") < found.index("Ebb")  # at the end of the slice that refers to it


def test_comments_follow_their_paragraphs_and_the_option_for_hidden_parts_leaves_them_out() -> None:
    comments = "".join(
        f"<w:comment w:id='{place}' w:author='Ana'>{paragraph(text)}</w:comment>"
        for place, text in enumerate(("Check the price.", "Done."))
    )
    parts = {"comments.xml": ("comments", f"<w:comments {NAMESPACES}>{comments}</w:comments>")}
    marks = "".join(f"<w:r><w:commentReference w:id='{place}'/></w:r>" for place in range(2))
    body = f"<w:p><w:r><w:t>It costs 5.</w:t></w:r>{marks}</w:p>" + paragraph("The end.")
    document = read(body, parts)
    assert document.text == "It costs 5.\n\n[Comment by Ana: Check the price.]\n\n[Comment by Ana: Done.]\n\nThe end."
    assert document.metadata["hidden_parts"] == {"comments": 2}
    unnamed = {"comments.xml": ("comments", parts["comments.xml"][1].replace(" w:author='Ana'", ""))}
    assert "\n\n[Comment: Done.]\n\n" in read(body, unnamed).text
    without = read_bytes(word_file(body, parts), "plan.docx", options=ReadingOptions(skip_hidden=True))
    assert without.text == "It costs 5.\n\nThe end."
    assert without.metadata["left_out"] == {"comments": 2}


@pytest.mark.parametrize("versions", [("0", "0"), ("0", "1"), ("01", "0")])
def test_a_comment_in_a_text_box_stored_in_two_versions_is_read_once(versions: tuple[str, str]) -> None:
    notes = "".join(f"<w:comment w:id='{key}'>{paragraph(f'Note {key}')}</w:comment>" for key in "01")
    comments = {"comments.xml": ("comments", f"<w:comments {NAMESPACES}>{notes}</w:comments>")}
    boxes = [
        "<w:pict><v:textbox><w:txbxContent><w:p><w:r><w:t>Box</w:t></w:r>"
        + "".join(f"<w:r><w:commentReference w:id='{key}'/></w:r>" for key in keys)
        + "</w:p></w:txbxContent></v:textbox></w:pict>"
        for keys in versions
    ]
    both = f"<mc:Choice Requires='wps'>{boxes[0]}</mc:Choice><mc:Fallback>{boxes[1]}</mc:Fallback>"
    document = read(f"<w:p><w:r><mc:AlternateContent>{both}</mc:AlternateContent></w:r></w:p>", comments)
    shown = [f"[Comment: Note {key}]" for key in versions[0]]
    assert document.text.split("\n\n") == ["Box", *shown]
    assert document.metadata.get("left_out", {}) == ({} if len(shown) == 2 else {"comments": 1})


def test_files_that_word_inserts_are_read_in_their_place() -> None:
    parts = {
        "page.html": ("aFChunk", "<table><tr><td>Rope</td><td>12 m</td></tr></table>"),
        "note.txt": ("aFChunk", "Ötzi's rope"),
        "old.rtf": ("aFChunk", r"{\rtf1 From an old memo.}"),
        "mail.mht": ("aFChunk", "MIME-Version: 1.0\r\n\r\nHello"),
    }
    chunks = "".join(f"<w:altChunk r:id='{name}'/>" for name in ("page", "note", "old", "mail"))
    document = read(paragraph("First.") + chunks + paragraph("Last."), parts)
    assert document.text == "First.\n\n| Rope | 12 m |\n| --- | --- |\n\nÖtzi's rope\n\nFrom an old memo.\n\n\n\nLast."
    assert document.metadata["left_out"] == {"embedded files": 1}
    cells = f"<w:tc>{paragraph('Rope')}</w:tc><w:tc><w:altChunk r:id='rows'/></w:tc>"
    rows = {"rows.html": ("aFChunk", "<p>Twelve | 12</p><p>metres</p>")}
    table = read(f"<w:tbl><w:tr>{cells}</w:tr><w:tr>{cells}</w:tr></w:tbl>{paragraph('Last.')}", rows)
    assert table.text.count("| Rope | Twelve \\| 12 metres |") == 2


def test_inserted_files_that_are_elsewhere_or_missing_are_counted_also_in_a_header() -> None:
    outside = "<w:altChunk r:id='gone'/><w:altChunk r:id='none'/><w:altChunk/>"
    header = f"<w:hdr {NAMESPACES}>{outside}</w:hdr>"
    reference = "<w:sectPr><w:headerReference r:id='head'/></w:sectPr>"
    source = io.BytesIO(word_file(outside + paragraph("Text.") + reference, {"head.xml": ("header", header)}))
    targets = (("gone", 'Target="gone.docx"'), ("none", 'Target="https://a.example/" TargetMode="External"'))
    links = (
        f'<Relationship Id="{key}" Type="{SCHEMAS}/officeDocument/2006/relationships/aFChunk" {target}/>'
        for key, target in targets
    )
    relations = f'<Relationships xmlns="{SCHEMAS}/package/2006/relationships">{"".join(links)}</Relationships>'
    with zipfile.ZipFile(source, "a") as package:
        package.writestr("word/_rels/head.xml.rels", relations)
    document = read_bytes(source.getvalue(), "plan.docx")
    assert document.text == "Text."
    assert document.metadata["left_out"] == {"inserted files that are missing in the file": 6}


def test_an_arrow_above_a_group_is_no_brace() -> None:
    group = "<m:oMath><m:groupChr><m:groupChrPr><m:chr m:val='→'/><m:pos m:val='top'/></m:groupChrPr>"
    group += "<m:e><m:r><m:t>yields</m:t></m:r></m:e></m:groupChr></m:oMath>"
    assert read(f"<w:p>{group}</w:p>").text == r"$\overset{→}{yields}$"


def test_a_picture_without_alternative_text_is_counted_next_to_one_with_two() -> None:
    alts = "<pic:nvPicPr><pic:cNvPr id='1' name='a' descr='{}'/></pic:nvPicPr>"
    blip = "<pic:blipFill><a:blip r:embed='none'/></pic:blipFill>"
    shape = "<wps:wsp><wps:cNvPr id='3' name='b' descr='A box'/></wps:wsp>"
    group = f"{shape}<pic:pic>{alts.format('A pier')}{blip}</pic:pic><pic:pic>{alts.format('')}{blip}</pic:pic>"
    document = read(f"<w:p>{drawing(group)}</w:p>")
    assert document.text == "[Image: A box]\n\n[Image: A pier]"
    assert document.metadata["left_out"] == {"images without alternative text": 1}


def test_runs_of_one_format_keep_the_tabs_and_paragraphs_between_them() -> None:
    bold = "<w:r><w:rPr><w:b/></w:rPr>{}</w:r>"
    tab, texts = bold.format("<w:tab/>"), [bold.format(f"<w:t>{text}</w:t>") for text in ("Item", "one", "two")]
    assert read(f"<w:p>{tab.join(texts)}</w:p>").text == "**Item one two**"
    assert read("".join(f"<w:p>{text}{tab}</w:p>" for text in texts)).text.split() == ["**Item**", "**one**", "**two**"]


def test_a_file_of_360_000_runs_is_read_in_500_mb() -> None:
    layout = "<w:rPr>{}<w:rFonts w:ascii='Arial' w:hAnsi='Arial' w:cs='Arial'/><w:lang w:val='en-US'/></w:rPr>"
    run = f"<w:r w:rsidR='00A1'>{layout}<w:t xml:space='preserve'>word </w:t></w:r>".replace("'", '"')
    plain, bold = run.format(""), run.format("<w:i/>")
    body = f"<w:p>{plain * 10}</w:p>" * 34_000 + f"<w:p>{(plain + bold) * 10}</w:p>" * 1_000
    with ParserProcess(lambda: None) as parser:
        text = read_bytes(word_file(body), "long.docx", parser=parser).text
    assert text.count("word") == 360_000
