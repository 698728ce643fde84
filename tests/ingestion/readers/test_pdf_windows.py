"""A PDF with many pages is read in windows, with the same result as when read whole."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from workbench.ingestion.readers.isolation import MAX_LOST_PAGES, TRIAL_PAGES, find_lost_pages
from workbench.ingestion.readers.pdf.layout import strip_running_lines
from workbench.ingestion.readers.pdf.pages import read_pages

PROSE = "The otter sleeps on its back and holds a stone in its paws while the river carries it."


def chaptered_pdf(pages: int) -> bytes:
    """Return a PDF with a title on its first page, a chapter on every fourth, and a bold heading and header on each."""
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(595, 842))
    for page in range(pages):
        height = 780
        lines = [(24, "Helvetica", "The animals that live along the river")] if page == 0 else []
        lines += [(18, "Helvetica", f"Chapter of the otters on page {page}")] if page % 4 == 1 else []
        for size, font, text in [*lines, (10, "Helvetica-Bold", f"Habits of otter {page}")]:
            canvas.setFont(font, size)
            canvas.drawString(72, height, text)
            height -= 40
        canvas.setFont("Helvetica", 10)
        canvas.drawString(72, 815, "Animals of the river")
        for line in range(12):
            canvas.drawString(72, height - 14 * line, PROSE)
        canvas.showPage()
    canvas.save()
    return target.getvalue()


def read_page_texts(data: bytes, window: int, left_out: Sequence[int] = ()) -> list[str]:
    """Return the pages, with all headings at one level, because levels count within a window."""
    pages = strip_running_lines([page.texts for page in read_pages(data, "river.pdf", left_out, window).pages])
    return [re.sub("(?m)^#+ ", "# ", page) for page in pages]


def test_a_file_read_in_windows_has_the_text_and_the_headings_that_it_has_whole() -> None:
    data = chaptered_pdf(12)
    whole = read_page_texts(data, 250)
    assert re.findall(r"(?m)^#+ .*", whole[0] + "\n\n" + whole[1]) == [
        "# The animals that live along the river",
        "# Habits of otter 0",
        "# Chapter of the otters on page 1",
        "# Habits of otter 1",
    ]
    assert read_page_texts(data, 4) == whole
    assert sum("Animals of the river" in text for text in whole) == 1


def test_omitted_pages_are_named_and_the_others_are_unchanged() -> None:
    data = chaptered_pdf(12)
    whole = read_page_texts(data, 250)
    file = read_pages(data, "river.pdf", (3, 9), 5)
    assert (file.failed, file.total) == ((3, 9), 12)
    assert read_page_texts(data, 5, (3, 9)) == [text for page, text in enumerate(whole, 1) if page not in (3, 9)]


def test_the_pages_over_which_a_process_ends_are_distinguished_from_all_others() -> None:
    bad = {1, TRIAL_PAGES, TRIAL_PAGES + 1, 77}

    def try_pages(first: int, last: int) -> int | None:
        return None if bad.intersection(range(first, last + 1)) else 100

    assert find_lost_pages(try_pages) == tuple(sorted(bad))


def test_a_file_is_given_up_when_most_of_its_first_pages_end_the_process() -> None:
    tried: list[int] = []

    def try_pages(first: int, last: int) -> int | None:
        tried.append(first)

    assert find_lost_pages(try_pages) is None
    assert len(tried) == MAX_LOST_PAGES + 1
