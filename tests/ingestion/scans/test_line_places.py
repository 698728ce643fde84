"""Lines of an image are detected in bands: a line in two bands counts once, and each has its position."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from tests.ingestion.scans.printed import printed, scan_pdf
from workbench.formatting import MB
from workbench.ingestion.ocr.document import BAND_OVERLAP_PX, MAX_BAND_PX, PageText, read_page
from workbench.ingestion.readers.formats import read_bytes
from workbench.ingestion.readers.isolation import ParserProcess

pytestmark = pytest.mark.slow  # OCR models take seconds a page
MOST = 300 * MB  # bytes that reading may hold


def read(picture: Image.Image) -> PageText:
    page = read_page(picture, 1)
    assert page is not None
    return page


def white(width: int, height: int) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    picture = Image.new("RGB", (width, height), "white")
    return picture, ImageDraw.Draw(picture)


def letters(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


@pytest.mark.parametrize("top", range(MAX_BAND_PX - BAND_OVERLAP_PX - 20, MAX_BAND_PX + 5, 9))
def test_a_line_at_the_edge_of_a_band_is_read_once(top: int) -> None:
    picture, draw = white(640, 800)
    draw.text((40, top), "Otters hold hands", fill="black", font=letters(32))
    page = read(picture)
    assert page.text.split()[-3:] == ["Otters", "hold", "hands"]
    assert len(page.scan.words) == 3
    middle = (page.scan.words[0].top + page.scan.words[0].bottom) / 2 * 800
    assert abs(middle - (top + 18)) < 8


def test_letters_higher_than_what_bands_share_are_one_line() -> None:
    picture, draw = white(1000, 900)
    draw.text((40, MAX_BAND_PX - 120), "OTTERS", fill="black", font=letters(180))
    page = read(picture)
    assert [page.text[word.start : word.end] for word in page.scan.words] == ["OTTERS"]


def test_a_word_in_a_picture_of_one_line_is_marked_where_it_is() -> None:
    picture, draw = white(1100, 60)
    draw.text((10, 14), "Beavers build dams of wood", fill="black", font=letters(28))
    page = read(picture)
    assert len(page.scan.words) == 5
    for word in page.scan.words:
        assert 0 < word.top * 60 < 24 and 36 < word.bottom * 60 <= 60


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_scanned_pages_are_read_within_300_megabytes() -> None:
    data = scan_pdf(printed(2))
    with ParserProcess(lambda: None) as process:
        document = read_bytes(data, "scan.pdf", parser=process)
        status = Path(f"/proc/{process.process_id}/status").read_text()
    highest = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert highest is not None and len(document.pages) == 2
    assert int(highest[1]) * 1024 < MOST


def test_a_blank_page_is_not_read() -> None:
    assert read_page(white(60, 80)[0], 1) is None
