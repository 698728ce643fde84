"""A hit in a PDF is shown on its page image, with links to the neighbouring pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.ingestion import files
from workbench import Workbench

pytestmark = pytest.mark.browser

LINES = [
    (680 - 14 * line, f"Entry {line}: the log of the lightship was kept by its mate and read aloud.")
    for line in range(14)
]
PAGES = [
    [(700, "Spring"), *LINES, (40, "101")],
    [(700, "Summer"), *LINES, (400, "The lightship's mast was stepped anew in July."), (40, "102")],
    [(700, "Autumn"), *LINES, (40, "103")],
]


def test_a_hit_is_marked_on_its_page_with_the_number_that_it_bears(
    filled: Workbench, goto: Callable[[str], Page], keep: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "vessel.pdf").write_bytes(files.paged_pdf(PAGES))
    (document,) = filled.ingest([tmp_path / "vessel.pdf"], source="Vessels").document_ids
    (hit, *_) = filled.search("lightship mast stepped anew in July", strategy="keyword").results
    assert hit.document_id == document
    page = goto(f"/?q=lightship mast stepped&s=keyword&doc={document}&at={hit.start}-{hit.end}")
    frame = page.frame_locator("iframe.original")
    expect(frame.get_by_text("Page 2 (102) (found passage highlighted)")).to_be_visible()
    picture = frame.locator("img")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 1000
    keep("page_of_a_pdf-1440-light")
    frame.get_by_role("link", name="Next page").click()
    expect(frame.get_by_text("Page 3 (103)")).to_be_visible()
    expect(frame.get_by_role("link", name="Next page")).to_have_count(0)
    frame.get_by_role("link", name="Previous page").click()
    expect(frame.get_by_text("Page 2 (102)")).to_be_visible()
