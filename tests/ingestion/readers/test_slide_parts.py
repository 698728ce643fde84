"""Parts of slides read as text: charts, SmartArt, equations, superscripts, footers and alternative texts."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from datetime import date

from PIL import Image
from pptx import Presentation
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.enum.shapes import MSO_CONNECTOR
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.oxml import parse_xml
from pptx.slide import Slide
from pptx.util import Inches

from workbench.ingestion.raw import RawDocument
from workbench.ingestion.readers.formats import read_bytes

SCHEMAS = "http://schemas.openxmlformats.org"
BLANK = 6  # layout without placeholders


def read(*draw: Callable[[Slide], object], layout: int = BLANK) -> RawDocument:
    deck = Presentation()
    for one in draw:
        one(deck.slides.add_slide(deck.slide_layouts[layout]))
    target = io.BytesIO()
    deck.save(target)
    return read_bytes(target.getvalue(), "talk.pptx")


def add_box(slide: Slide, left: float, top: float, text: str, height: float = 0.5) -> None:
    slide.shapes.add_textbox(Inches(left), Inches(top), Inches(3), Inches(height)).text_frame.text = text


def add_xml(slide: Slide, content: str) -> None:
    body = (
        f'<p:sp xmlns:p="{SCHEMAS}/presentationml/2006/main" xmlns:a="{SCHEMAS}/drawingml/2006/main" '
        f'xmlns:m="{SCHEMAS}/officeDocument/2006/math" xmlns:mc="{SCHEMAS}/markup-compatibility/2006" '
        'xmlns:a14="http://schemas.microsoft.com/office/drawing/2010/main"><p:nvSpPr><p:cNvPr id="9" name="x"/>'
        "<p:cNvSpPr/>"
        f"<p:nvPr/></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:p>{content}</a:p></p:txBody></p:sp>"
    )
    slide.shapes._spTree.append(parse_xml(body))


def test_a_slide_show_is_read_under_either_suffix() -> None:
    deck = Presentation()
    add_box(deck.slides.add_slide(deck.slide_layouts[BLANK]), 0, 1, "The crane")
    deck.save(target := io.BytesIO())
    show = io.BytesIO()
    with zipfile.ZipFile(target) as package, zipfile.ZipFile(show, "w") as copy:
        for path in package.namelist():
            copy.writestr(path, package.read(path).replace(b"presentation.main", b"slideshow.main"))
    for name in ("talk.ppsx", "talk.pptx"):
        document = read_bytes(show.getvalue(), name)
        assert (document.text, document.document_type) == ("The crane", "pptx")


def test_shapes_are_read_by_rows_and_columns_whatever_their_order_in_the_file() -> None:
    def draw(slide: Slide) -> None:
        add_box(slide, 5, 3, "Third right")
        add_box(slide, 0, 3, "Second left")
        add_box(slide, 0, 1, "First")

    assert read(draw).text == "First\n\nSecond left\n\nThird right"

    def columns(slide: Slide) -> None:
        add_box(slide, 5, 1, "Right, one", 2)
        add_box(slide, 0, 1, "Left, one", 1)
        add_box(slide, 5, 3.2, "Right, two", 1)
        add_box(slide, 0, 2.2, "Left, two", 2)

    assert read(columns).text == "Left, one\n\nLeft, two\n\nRight, one\n\nRight, two"


def test_charts_are_tables_with_their_title() -> None:
    def draw(slide: Slide) -> None:
        data = CategoryChartData()
        data.categories = ["Gotland", "Faro"]
        data.add_series("2030", (88, 19.5))
        data.add_series("2031", (90, None))
        chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, Inches(5), Inches(4), data).chart
        chart.has_title = True
        chart.chart_title.text_frame.text = "Passengers"

    table = "|  | 2030 | 2031 |\n| --- | --- | --- |\n| Gotland | 88 | 90 |\n| Faro | 19.5 |  |"
    assert read(draw).text == f"Passengers\n\n{table}"

    def scatter(slide: Slide) -> None:
        data = XyChartData()
        for name, points in (("North", ((1, 5), (2, 7))), ("South", ((3, 9),))):
            series = data.add_series(name)
            for x, y in points:
                series.add_data_point(x, y)
        slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, 0, 0, Inches(5), Inches(4), data)

    rows = "| North | 1 | 5 |\n| North | 2 | 7 |\n| South | 3 | 9 |"
    assert read(scatter).text.endswith(f"|  | x | y |\n| --- | --- | --- |\n{rows}")


def test_equations_and_superscripts_are_read() -> None:
    formula = "<m:oMath><m:r><m:t>F=9</m:t></m:r></m:oMath>"
    run = "<a:r><a:rPr{}/><a:t>{}</a:t></a:r>"
    choice = (
        f'<mc:AlternateContent><mc:Choice Requires="a14"><a14:m>{formula}</a14:m></mc:Choice></mc:AlternateContent>'
    )
    power = run.format("", " of 10") + run.format(' baseline="30000"', "6") + run.format("", " N")
    assert read(lambda slide: add_xml(slide, run.format("", "Load ") + choice + power)).text == "Load $F=9$ of 10⁶ N"
    below = run.format("", "CO") + run.format(' baseline="-25000"', "2")
    assert read(lambda slide: add_xml(slide, below)).text == "CO2"


def test_footers_are_read_once_and_page_numbers_not() -> None:
    def draw(slide: Slide) -> None:
        add_box(slide, 0, 1, f"Slide {slide.slide_id}")
        for kind, text in (("ftr", "Harbour board"), ("sldNum", "7")):
            place = f'<p:nvPr xmlns:p="{SCHEMAS}/presentationml/2006/main"><p:ph type="{kind}" idx="11"/></p:nvPr>'
            add_xml(slide, f"<a:r><a:t>{text}</a:t></a:r>")
            properties = slide.shapes._spTree[-1][0]
            properties.replace(properties[2], parse_xml(place))

    assert read(draw, draw).text == "Slide 256\n\nHarbour board\n\nSlide 257"


def test_alternative_texts_are_read_and_what_is_left_out_is_counted() -> None:
    def draw(slide: Slide) -> None:
        for top, alt in ((1, "The pier from the east"), (3, "")):
            image = io.BytesIO()
            Image.new("RGB", (9, 9)).save(image, "PNG")
            picture = slide.shapes.add_picture(image, 0, Inches(top))
            picture._element.nvPicPr.cNvPr.set("descr", alt)
        add_box(slide, 0, 5, "End")

    document = read(draw)
    assert document.text == "[Image: The pier from the east]\n\nEnd"
    assert document.metadata["left_out"] == {"images without alternative text": 1}


INK = (
    f'<mc:AlternateContent xmlns:mc="{SCHEMAS}/markup-compatibility/2006"><mc:Choice Requires="p14"><p:contentPart '
    f'xmlns:p="{SCHEMAS}/presentationml/2006/main"/></mc:Choice></mc:AlternateContent>'
)


def test_ink_on_a_slide_or_its_notes_is_counted_and_the_words_are_read() -> None:
    def draw(slide: Slide) -> None:
        add_box(slide, 0, 1, "Tides")
        slide.notes_slide.notes_text_frame.text = "Slowly"
        for page in (slide, slide.notes_slide):
            page.shapes._spTree.append(parse_xml(INK))

    document = read(draw)
    assert document.text == "Tides\n\nNotes: Slowly" and document.metadata["left_out"] == {"ink drawings": 2}


def test_an_activex_control_of_a_slide_is_counted() -> None:
    control = f'<p:controls xmlns:p="{SCHEMAS}/presentationml/2006/main"><p:control name="Box"/></p:controls>'

    def draw(slide: Slide) -> None:
        add_box(slide, 0, 1, "Tides")
        slide._element.append(parse_xml(control))

    assert read(draw).metadata["left_out"] == {"ActiveX controls": 1}


def test_automatic_numbers_and_alternative_texts_of_shapes_are_read() -> None:
    def draw(slide: Slide) -> None:
        frame = slide.shapes.add_textbox(0, 0, 9, 9).text_frame
        forms = ((0, "arabicPeriod", 1), (1, "alphaLcParenR", 1), (0, "arabicPeriod", 1), (0, "romanUcParenBoth", 4))
        for place, (level, form, start) in enumerate(forms):
            line = frame.paragraphs[0] if not place else frame.add_paragraph()
            line.text, line.level = f"step {place}", level
            number = f'<a:buAutoNum xmlns:a="{SCHEMAS}/drawingml/2006/main" type="{form}" startAt="{start}"/>'
            line._p.get_or_add_pPr().append(parse_xml(number))
        line = slide.shapes.add_connector(MSO_CONNECTOR.STRAIGHT, 0, 99, 9, 999)
        line._element.nvCxnSpPr.cNvPr.set("descr", "From the quay to the boat")

    lines = ("- 1. step 0", "  - a) step 1", "- 2. step 2", "- (IV) step 3")
    assert read(draw).text == "\n".join(lines) + "\n\n[Image: From the quay to the boat]"


def test_boxes_of_notes_and_cells_merged_downwards_are_read() -> None:
    def draw(slide: Slide) -> None:
        table = slide.shapes.add_table(3, 2, 0, 0, 9, 9).table
        table.cell(1, 0).merge(table.cell(2, 0))
        for place, text in zip(
            ((0, 0), (0, 1), (1, 0), (1, 1), (2, 1)), ("Port", "Fish", "Ystad", "Cod", "Eel"), strict=True
        ):
            table.cell(*place).text = text
        slide.notes_slide.notes_text_frame.text = "Slowly"
        box = "<p:nvSpPr><p:cNvPr id='9' name='b'/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>"
        words = "<p:txBody><a:bodyPr/><a:p><a:r><a:t>And softly</a:t></a:r></a:p></p:txBody>"
        names = f'xmlns:p="{SCHEMAS}/presentationml/2006/main" xmlns:a="{SCHEMAS}/drawingml/2006/main"'
        slide.notes_slide.shapes._spTree.append(parse_xml(f"<p:sp {names}>{box}{words}</p:sp>"))

    table = "| Port | Fish |\n| --- | --- |\n| Ystad | Cod |\n| Ystad | Eel |"
    assert read(draw).text == f"{table}\n\nNotes: Slowly\n\nNotes: And softly"


def test_a_slide_without_a_title_does_not_stand_below_the_heading_of_a_hidden_one() -> None:
    def hide(slide: Slide) -> None:
        add_box(slide, 0, 1, "Costs")
        slide._element.set("show", "0")

    text = read(hide, lambda slide: add_box(slide, 0, 1, "Tides")).text
    assert text == "## (hidden slide)\n\nCosts\n\n## Slide 2\n\nTides"


def test_a_broken_slide_is_read_as_far_as_possible_and_counted() -> None:
    deck = Presentation()
    for text in ("One", "Two & three"):
        add_box(deck.slides.add_slide(deck.slide_layouts[BLANK]), 0, 1, text)
    deck.save(whole := io.BytesIO())
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(target := io.BytesIO(), "w") as copy:
        for path in source.namelist():
            copy.writestr(path, source.read(path).replace(b"&amp;", b"&"))
    document = read_bytes(target.getvalue(), "talk.pptx")
    assert document.text == "One\n\nTwo three" and document.metadata["left_out"] == {"damaged parts of the file": 1}


def test_the_titles_of_the_axes_of_a_chart_are_read() -> None:
    def draw(slide: Slide) -> None:
        data = CategoryChartData()
        data.categories = ["Cod"]
        data.add_series("2030", [71])
        chart = slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, 0, 0, 9, 9, data).chart
        chart.has_title, chart.chart_title.text_frame.text = True, "Catch"
        chart.value_axis.axis_title.text_frame.text = "tonnes"

    assert read(draw).text == "Catch (axes: tonnes)\n\n|  | 2030 |\n| --- | --- |\n| Cod | 71 |"


def test_labels_written_into_a_chart_are_read_and_drawings_on_it_are_counted() -> None:
    def draw(slide: Slide) -> None:
        data = CategoryChartData()
        data.categories = ["Cod", "Hake"]
        data.add_series("2030", [71, 5])
        chart = slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, 0, 0, 9, 9, data).chart
        chart.series[0].points[1].data_label.text_frame.text = "Strike in May"
        cells = f'<c:x xmlns:c="{SCHEMAS}/drawingml/2006/chart">{{}}</c:x>'
        cache = "<c:dlblRangeCache><c:pt><c:v>Lerwick</c:v></c:pt></c:dlblRangeCache>"
        chart.series[0]._element.append(parse_xml(cells.format(cache)))
        chart._chartSpace.append(parse_xml(cells.format("").replace("c:x", "c:userShapes")))

    document = read(draw)
    assert document.text == "(labels: Strike in May, Lerwick)\n\n|  | 2030 |\n| --- | --- |\n| Cod | 71 |\n| Hake | 5 |"
    assert document.metadata["left_out"] == {"drawings on charts": 1}


def test_odd_places_escaped_characters_and_subscripts_of_numbers_on_a_slide_are_read() -> None:
    def draw(slide: Slide) -> None:
        low = '<a:r><a:rPr baseline="-25000"/><a:t>2</a:t></a:r>'
        add_xml(slide, f"<a:r><a:t>CO</a:t></a:r>{low}<a:r><a:t> Bay_x000B_1010</a:t></a:r>{low}")
        frame = (
            f'<a:xfrm xmlns:a="{SCHEMAS}/drawingml/2006/main"><a:off x="12.5" y="9"/><a:ext cx="9" cy="9"/></a:xfrm>'
        )
        slide.shapes[0]._element.spPr.append(parse_xml(frame))

    assert read(draw).text == "CO2 Bay 1010_2"


def test_names_of_categories_on_two_levels_reach_each_category() -> None:
    def draw(slide: Slide) -> None:
        data = CategoryChartData()
        year = data.add_category("2030")
        year.add_sub_category("Q1"), year.add_sub_category("Q2")
        data.add_series("Catch", [71, 82])
        slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, 0, 0, 9, 9, data)

    assert "| 2030 Q1 | 71 |\n| 2030 Q2 | 82 |" in read(draw).text


def test_sections_of_a_deck_are_headings_and_their_entries_are_no_missing_slides() -> None:
    deck = Presentation()
    for text in ("Crane", "Hoist"):
        add_box(deck.slides.add_slide(deck.slide_layouts[BLANK]), 0, 1, text)
    last = deck.slides[1].slide_id
    deck.element.append(
        parse_xml(
            '<x:sectionLst xmlns:x="http://schemas.microsoft.com/office/powerpoint/2010/main">'
            f'<x:section name="Lifting"><x:sldIdLst><x:sldId id="{last}"/></x:sldIdLst></x:section></x:sectionLst>'
        )
    )
    deck.save(target := io.BytesIO())
    document = read_bytes(target.getvalue(), "talk.pptx")
    assert document.text == "Crane\n\n# Lifting\n\nHoist" and "left_out" not in document.metadata


def test_days_and_shares_of_a_chart_are_read_as_shown_and_a_category_without_a_value_is_kept() -> None:
    def draw(slide: Slide) -> None:
        data = CategoryChartData(number_format="0.0%")
        data.categories = [date(2030, 1, 31), date(2030, 2, 28), date(2030, 3, 31)]
        data.add_series("Full", (0.123, 1, None))
        slide.shapes.add_chart(XL_CHART_TYPE.LINE, 0, 0, Inches(5), Inches(4), data)

    assert read(draw).text.endswith("| 2030-01-31 | 12.3% |\n| 2030-02-28 | 100.0% |\n| 2030-03-31 |  |")


def test_a_hidden_group_is_marked() -> None:
    def draw(slide: Slide) -> None:
        for text, hidden in (("Closed", "1"), ("Open", "0")):
            group = slide.shapes.add_group_shape()
            group.shapes.add_textbox(0, Inches(len(text)), Inches(2), Inches(1)).text_frame.text = text
            group._element[0].cNvPr.set("hidden", hidden)

    document = read(draw)
    assert document.text.split("\n\n") == ["Open", "Closed (hidden)"]
    assert document.metadata["hidden_parts"] == {"shapes": 1}


def test_alternative_texts_of_charts_and_groups_are_read_as_well_as_their_text() -> None:
    def draw(slide: Slide) -> None:
        data = CategoryChartData()
        data.categories = ["Q1"]
        data.add_series("Boats", (5,))
        chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, Inches(3), Inches(2), data)
        group = slide.shapes.add_group_shape()
        group.shapes.add_textbox(0, Inches(3), Inches(2), Inches(1)).text_frame.text = "Quay"
        for shape, alt in ((chart, "Rising bars"), (group, "Plan of the port")):
            shape._element[0].cNvPr.set("descr", alt)

    text = read(draw).text
    assert "| Q1 | 5 |\n\n[Image: Rising bars]" in text and "[Image: Plan of the port]\n\nQuay" in text


def test_signs_of_a_symbol_font_on_a_slide_are_read_as_they_are_shown() -> None:
    run = '<a:r><a:rPr><a:{} typeface="Wingdings"/></a:rPr><a:t>{}</a:t></a:r>'
    runs = (
        run.format("latin", "ü")
        + "<a:r><a:t> load </a:t></a:r>"
        + run.format("sym", "J")
        + run.format("sym", " unload")
    )
    assert read(lambda slide: add_xml(slide, runs)).text == "✓ load ☺ unload"


def test_images_that_fill_shapes_and_backgrounds_are_counted() -> None:
    def draw(slide: Slide) -> None:
        namespaces = f'xmlns:p="{SCHEMAS}/presentationml/2006/main" xmlns:a="{SCHEMAS}/drawingml/2006/main"'
        fill = "<a:blipFill><a:blip/></a:blipFill>"
        slide._element.cSld.insert(0, parse_xml(f"<p:bg {namespaces}><p:bgPr>{fill}</p:bgPr></p:bg>"))
        add_box(slide, 0, 1, "Quay")
        slide.shapes[0]._element.spPr.append(parse_xml(fill.replace("Fill>", f"Fill {namespaces}>", 1)))

    document = read(draw)
    assert (document.text, document.metadata["left_out"]) == ("Quay", {"images without alternative text": 2})


def test_comments_in_the_formats_of_2010_and_2021_are_read() -> None:
    space = f'xmlns:p="{SCHEMAS}/presentationml/2006/main" xmlns:a="{SCHEMAS}/drawingml/2006/main"'
    old = f'<p:cmLst {space}><p:cm authorId="0" idx="1"><p:text>Use the new logo</p:text></p:cm></p:cmLst>'
    body = "<n:txBody><a:bodyPr/><a:p><a:r><a:t>{}</a:t></a:r></a:p></n:txBody>"
    reply = f"<n:replyLst><n:reply>{body.format('Done')}</n:reply></n:replyLst>"
    new = f'<n:cmLst {space} xmlns:n="urn:n"><n:cm>{reply}{body.format("Which year?")}</n:cm></n:cmLst>'

    def draw(slide: Slide) -> None:
        add_box(slide, 1, 1, "Plan")
        for place, content in enumerate((old, new)):
            name = PackURI(f"/ppt/comments/comment{place}.xml")
            part = Part(name, "application/xml", slide.part.package, content.encode())
            slide.part.relate_to(part, f"{SCHEMAS}/officeDocument/2006/relationships/comments")

    document = read(draw)
    assert document.text == "Plan\n\n[Comment: Use the new logo]\n\n[Comment: Which year?]\n\n[Comment: Done]"
    assert document.metadata["hidden_parts"] == {"comments": 3}
