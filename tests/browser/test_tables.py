"""A table of figures in the app: on a card whose passage lacks the table's header, and in the reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from looks import assert_fits
from playwright.sync_api import Page, expect

from tests.ingestion import files
from workbench import Workbench

pytestmark = pytest.mark.browser

ROW = "Cost of line 27"
FIGURES = ("1,999", "2,000")  # of that row, in 2021 and 2022
NAMES = ("2021", "2022")


@pytest.fixture
def statement(filled: Workbench, tmp_path: Path) -> str:
    """The id of a PDF with a statement, of which one passage contains only rows."""
    (tmp_path / "otters.pdf").write_bytes(files.statement_pdf("Statement of income", "(in millions)", NAMES, 40))
    (document,) = filled.ingest([tmp_path / "otters.pdf"], source="Otters").document_ids
    return document


def test_a_row_is_in_columns_below_their_names_on_its_card_and_in_the_reader(
    filled: Workbench, statement: str, goto: Callable[[str], Page], keep: Callable[[str], None]
) -> None:
    (hit, *_) = filled.search(ROW, strategy="keyword").results
    assert hit.document_id == statement and hit.text.startswith("| ") and "---" not in hit.text
    page = goto(f"/?q={ROW}&s=keyword&s=vector")
    table = page.locator(".card .rows").filter(has_text=ROW).first
    expect(table.locator(".row").first.locator(".cell")).to_have_text(["", *NAMES])
    expect(table.locator(".row").filter(has_text=ROW).locator(".cell")).to_have_text([ROW, *FIGURES])
    expect(table).to_have_css("display", "table")
    expect(table.locator(".row").first.locator(".cell").last).to_have_css("text-align", "right")
    keep("table-card-1440-light")
    page.locator(".card .title").first.click()
    reader = page.locator(".reader .body.rendered")
    line = reader.locator("tr").filter(has_text=ROW)
    expect(line.locator("td.to-right")).to_have_text([*FIGURES])
    expect(line.locator(".stretch.found").first).to_be_visible()
    assert_fits(page, "the reader of a report")
    keep("table-reader-1440-light")
