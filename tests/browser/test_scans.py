"""A hit in a scan is marked on its page image."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.ingestion import files
from tests.ingestion.scans.printed import PrintedPage, scan_pdf, scanned
from workbench import Workbench

pytestmark = pytest.mark.browser

STORY = (
    "Moorings",
    "A mooring line that is too short snatches at every swell and breaks in the first autumn storm.",
    "Splice a new eye once a year, and look at the shackle below the water whenever a diver is there.",
)


def scan() -> PrintedPage:
    """Return a skewed scan of a page."""
    return scanned(files.pdf([STORY]), turned=2, blurred=0.7)


def test_the_reader_shows_the_page_of_a_scan_with_the_passage_marked(
    filled: Workbench, goto: Callable[[str], Page], keep: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "moorings.pdf").write_bytes(scan_pdf([scan()]))
    (document,) = filled.ingest([tmp_path / "moorings.pdf"], source="Scans of the harbour").document_ids
    (hit, *_) = filled.search("mooring shackle diver", strategy="keyword").results
    assert hit.document_id == document
    start, end = hit.start, hit.end
    page = goto(f"/?doc={document}&at={start}-{end}")
    expect(page.locator("p.wb-kind", has_text="page 1 read by OCR, ")).to_contain_text("% confidence")
    frame = page.frame_locator("iframe.original")
    expect(frame.get_by_text("Page 1 (found passage highlighted)")).to_be_visible()
    picture = frame.locator("img")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 1000
    keep("scan_in_the_reader")

    answer = page.request.get(page.url.split("/?")[0] + f"/originals/{document}/pages/1?at={start}-{end}")
    shown = np.asarray(Image.open(io.BytesIO(answer.body())).convert("RGB"), dtype=int)
    yellow = (shown[:, :, 0] > 200) & (shown[:, :, 2] < 180)
    marks = np.argwhere(yellow)
    top, left = marks.min(axis=0) / shown.shape[:2]
    assert marks.size and 0.05 < top < 0.2 and 0.05 < left < 0.2
