"""Words in the pictures of a page of text are read and stand with their caption; what the page says stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingestion import files
from workbench import Workbench
from workbench.ingestion.page_notes import page_notes
from workbench.ingestion.readers import read_bytes
from workbench.ingestion.readers.pdf import _chart_words
from workbench.ingestion.readers.pdf_pages import read_pages

pytestmark = pytest.mark.slow  # OCR models take seconds a page
CAPTION = "Figure 3: Landings by coast, in thousand crans."


def test_the_words_of_a_chart_follow_its_caption_and_the_prose_is_said_once() -> None:
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
    words, failed = _chart_words(b"no longer there", file, None)
    assert (words, failed) == ({}, [1])
    said = "year.pdf: words in the pictures of page 1 could not be read; the text beside them was."
    assert page_notes("year.pdf", {"unread_pictures": failed}) == (said,)


def test_a_search_for_words_in_a_chart_finds_its_caption(wb: Workbench, tmp_path: Path) -> None:
    (tmp_path / "year.pdf").write_bytes(files.pdf_with_chart(CAPTION))
    wb.ingest([tmp_path])
    assert CAPTION in wb.search("herring landed in Lerwick", "keyword")[0].text
