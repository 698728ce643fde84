"""Words in images on a page with text are read and put after their caption; the page's own text is unchanged."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.ingestion import files
from workbench import Workbench
from workbench.formatting import MB
from workbench.ingestion.metadata import page_notes
from workbench.ingestion.readers.formats import read_bytes
from workbench.ingestion.readers.isolation import ParserProcess
from workbench.ingestion.readers.pdf.pages import read_pages
from workbench.ingestion.readers.pdf.reader import _read_chart_words

pytestmark = pytest.mark.slow  # OCR models take seconds a page
MOST = 280 * MB  # bytes that reading a report may hold
CAPTION = "Figure 3: Landings by coast, in thousand crans."


def test_the_words_of_a_chart_follow_its_caption_and_the_prose_is_stated_once() -> None:
    text = read_bytes(files.pdf_with_chart(CAPTION), "year.pdf").text
    [figure] = [block for block in text.split("\n\n") if CAPTION in block]
    assert all(word in figure for word in ("Herring landed in Lerwick", "North", "South", "East"))
    assert (text.count("kept in sheds"), text.count("nets are mended")) == (8, 8)


def test_the_words_of_a_chart_without_a_caption_end_the_page() -> None:
    text = read_bytes(files.pdf_with_chart(), "year.pdf").text
    assert text.count("Herring landed in Lerwick") == 1
    assert text.index("Herring landed in Lerwick") > text.rindex("nets are mended")


def test_pages_whose_pictures_cannot_be_read_are_named() -> None:
    file = read_pages(files.pdf_with_chart(CAPTION), "year.pdf", ())
    words, failed = _read_chart_words(b"no longer there", file, None)
    assert (words, failed) == ({}, [1])
    said = "year.pdf: images on page 1 could not be read; the text was."
    assert page_notes("year.pdf", {"unread_pictures": failed}) == (said,)


def test_a_search_for_words_in_a_chart_finds_its_caption(wb: Workbench, tmp_path: Path) -> None:
    (tmp_path / "year.pdf").write_bytes(files.pdf_with_chart(CAPTION))
    wb.ingest([tmp_path])
    assert CAPTION in wb.search("herring landed in Lerwick", "keyword")[0].text


@pytest.mark.parametrize("caption", ["", CAPTION])
def test_words_in_a_chart_are_marked_on_the_picture_of_their_page(wb: Workbench, tmp_path: Path, caption: str) -> None:
    (tmp_path / "year.pdf").write_bytes(files.pdf_with_chart(caption))
    [document] = wb.ingest([tmp_path]).document_ids
    text = wb.documents.get(document).text or ""
    start = text.index("Herring landed in Lerwick")
    words = marked_places(wb.pages.picture(document, 1, (start, start + len("Herring landed in Lerwick"))))
    # drawn 150 of 900 and 20 of 500 into a chart 400 by 222 at 72, 380 of a page 595 by 842
    assert np.allclose(words.min(axis=0), (0.295, 138 / 595), atol=0.02)
    assert np.allclose(words.max(axis=0), (0.315, 0.55), atol=0.04)
    bars = marked_places(wb.pages.picture(document, 1, (text.index("North"), text.index("North") + 5)))
    assert bars[:, 0].min() > 0.5 and bars[:, 1].max() < 0.35
    prose = text.index("The nets are mended")
    assert marked_places(wb.pages.picture(document, 1, (prose, prose + 40))).min(axis=0)[0] > 0.6


def test_each_word_of_a_chart_has_its_characters_in_the_text(wb: Workbench, tmp_path: Path) -> None:
    (tmp_path / "year.pdf").write_bytes(files.pdf_with_chart(CAPTION))
    [document] = wb.ingest([tmp_path]).document_ids
    text = wb.documents.get(document).text or ""
    [page] = wb.pages.scans(document)
    assert [text[word.start : word.end] for word in page.words] == [
        "Herring",
        "landed",
        "in",
        "Lerwick",
        "North",
        "South",
        "East",
    ]
    assert page.confidence > 0.9 and "scanned_pages" not in wb.documents.get(document).metadata


def marked_places(picture: Image.Image) -> np.ndarray:
    """Return the marked (top, left) positions, in shares of a page's image."""
    shown = np.asarray(picture.convert("RGB"), dtype=int)
    return np.argwhere((shown[:, :, 0] > 200) & (shown[:, :, 2] < 180)) / shown.shape[:2]


def report_with_charts(pages: int, charts: int) -> bytes:
    """Return a PDF of pages full of figures, each run placed separately, the first of them with a large chart."""
    from PIL import ImageDraw, ImageFont
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(612, 792))
    for page in range(pages):
        has_chart = page < charts
        if has_chart:
            picture = Image.new("RGB", (4000, 2000), "white")
            draw = ImageDraw.Draw(picture)
            for line in range(6):
                said = f"Landings of coast {line} in year {page}"
                draw.text((300, 100 + 320 * line), said, fill="black", font=ImageFont.load_default(120))
            canvas.drawImage(ImageReader(picture), 50, 500, 500, 250)
        canvas.setFont("Times-Roman", 7)
        for row in range(15 if has_chart else 35):
            height = (480 if has_chart else 750) - 20 * row
            canvas.drawString(50, height, f"Dues of harbour {row} on quay {page}")
            for column in range(6):
                canvas.drawRightString(260 + 60 * column, height, f"{(row + 1) * (page + 7) * (column + 3) * 37:,}")
        canvas.showPage()
    canvas.save()
    return target.getvalue()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_report_of_200_pages_with_charts_is_read_in_less_than_280_megabytes() -> None:
    with ParserProcess(lambda: None) as process:
        document = read_bytes(report_with_charts(200, 3), "harbours.pdf", parser=process)
        status = Path(f"/proc/{process.process_id}/status").read_text()
    highest = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert highest is not None and "Landings of coast 5 in year 2" in document.text
    assert int(highest[1]) * 1024 < MOST
