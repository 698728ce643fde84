"""Parts of slides read as text: charts, SmartArt, equations, superscripts, footers and alternative texts."""

from __future__ import annotations

import io
from collections.abc import Callable

from PIL import Image
from pptx import Presentation
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
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
