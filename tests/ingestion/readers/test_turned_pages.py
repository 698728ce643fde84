"""PDF pages with text rotated by 90 or 180 degrees are read, shown and marked upright."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from workbench import Workbench
from workbench.ingestion.readers.formats import read_bytes

TITLE = "Harbour masters of the northern coast"
LINES = [f"Line {line}: boat {line * 37} is kept in a shed over the winter months, row upon row." for line in range(14)]


def turned_pdf(turn: str, before: int = 0) -> bytes:
    """Return a PDF whose last page is rotated: by its page entry, or as drawn, by degrees counterclockwise."""
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(595, 842))
    for page in range(before + 1):
        if page == before and turn == "by entry":
            canvas.setPageRotation(90)
        elif page == before and turn:
            across, down = {"90": (595, 0), "180": (595, 842), "270": (0, 842)}[turn]
            canvas.translate(across, down)
            canvas.rotate(int(turn))
        canvas.setFont("Helvetica", 22)
        canvas.drawString(60, 520, TITLE)
        canvas.setFont("Helvetica", 10)
        for place, line in enumerate(LINES):
            canvas.drawString(60, 480 - 14 * place, line)
        canvas.showPage()
    canvas.save()
    return target.getvalue()


@pytest.mark.parametrize("turn", ["by entry", "90", "180", "270"])
def test_a_turned_page_reads_as_it_does_upright(turn: str) -> None:
    upright = read_bytes(turned_pdf("", before=1), "harbour.pdf")
    turned = read_bytes(turned_pdf(turn, before=1), "harbour.pdf")
    assert turned.text == upright.text
    assert turned.text.count(TITLE) == 2
    assert "turned_pages" not in upright.metadata
    assert list(turned.metadata["turned_pages"]) == ["2"]


@pytest.mark.parametrize("turn", ["by entry", "90", "180"])
def test_a_hit_on_a_turned_page_is_marked_on_the_page_upright(wb: Workbench, tmp_path: Path, turn: str) -> None:
    (tmp_path / "harbour.pdf").write_bytes(turned_pdf(turn))
    wb.ingest([tmp_path])
    document = wb.documents.list()[0]
    start = (wb.documents.get(document.id).text or "").index(LINES[4])
    picture = wb.pages.picture(document.id, 1, (start, start + len(LINES[4])))
    shown = np.asarray(picture, dtype=int)
    marks = np.argwhere((shown[:, :, 0] > 200) & (shown[:, :, 2] < 180))
    (top, left), (bottom, right) = marks.min(axis=0), marks.max(axis=0)
    assert right - left > 5 * (bottom - top)
    ink = np.argwhere(shown[top:bottom, left:right].sum(axis=2) < 300)
    assert len(ink) > 100
