"""Scans: words read from images and marked in place; mixed and broken files; without the extra, and offline."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tests.ingestion import files
from tests.ingestion.scans.printed import PrintedPage, marked, printed, scan_pdf, scanned
from workbench import Workbench
from workbench.display import report_html, report_text
from workbench.errors import Cancelled, UnreadableDocument
from workbench.ingestion.metadata import page_notes, scan_note
from workbench.ingestion.ocr.document import PageText, ReadScans
from workbench.ingestion.raw import to_json_metadata
from workbench.ingestion.readers.formats import read_bytes
from workbench.types import ScannedPage

pytestmark = pytest.mark.slow  # OCR models take seconds a page
WORDS = (("Otters", "Otters hold hands while they sleep on the water."), ("Beavers", "Beavers build dams of wood."))
BLOCKED = """
import socket, sys
sys.modules["rapidocr"] = None
from pathlib import Path
from workbench.display import report_html, report_text
from workbench.errors import UnreadableDocument
from workbench.ingestion.readers.formats import READERS_BY_SUFFIX, discover, read_bytes
for name in sys.argv[1:]:
    try:
        print(read_bytes(Path(name).read_bytes(), Path(name).name).pages)
    except UnreadableDocument as error:
        print(error)
    print([skip.reason for skip in discover([name]).skipped])
print(".png" in READERS_BY_SUFFIX)
"""
NOTES = """
import sys
sys.modules["rapidocr"] = None
from pathlib import Path
from workbench.ingestion.metadata import page_notes
from workbench.ingestion.readers.formats import read_bytes
path = Path(sys.argv[1])
print(*page_notes(path.name, read_bytes(path.read_bytes(), path.name).metadata), sep="\\n")
"""
OFFLINE = """
import socket, sys
def refuse(*_, **__): raise AssertionError("a look at the network")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from pathlib import Path
from workbench.ingestion.readers.formats import read_bytes
print(read_bytes(Path(sys.argv[1]).read_bytes(), "scan.png").text)
print("torch" in sys.modules)
"""


@pytest.fixture(scope="module")
def pages() -> list[PrintedPage]:
    return printed(2)


def small_page(words: tuple[str, str] = WORDS[0]) -> Image.Image:
    """Return a small image with a few words, quick to read."""
    picture = printed_page(words).picture
    return picture.crop((0, 0, picture.width, picture.height // 4))


def printed_page(words: tuple[str, str]) -> PrintedPage:
    from tests.ingestion.scans.printed import scanned

    return scanned(files.pdf([words]), turned=0, blurred=0)


def png(picture: Image.Image) -> bytes:
    target = io.BytesIO()
    picture.save(target, "PNG")
    return target.getvalue()


def make_pdf(*pictures: Image.Image) -> bytes:
    target = io.BytesIO()
    pictures[0].save(target, "PDF", resolution=150, save_all=True, append_images=pictures[1:])
    return target.getvalue()


def test_of_two_pages_askew_and_blurred_98_words_of_a_hundred_are_found_by_search_and_marked_in_place(
    minilm_wb: Workbench, folder: Callable[..., Path], pages: list[PrintedPage]
) -> None:
    told: list[str] = []
    root = folder({"scan.pdf": scan_pdf(pages)})
    report = minilm_wb.ingest(root, source="Scans", on_progress=lambda progress: told.append(progress.message))
    (document,) = report.document_ids
    text = minilm_wb.documents.get(document).text or ""
    scans = minilm_wb.pages.scans(document)
    assert [scan.number for scan in scans] == [1, 2]
    outcomes = [outcome for page, scan in zip(pages, scans, strict=True) for outcome in marked(page, scan, text)]
    assert sum(right for _, right in outcomes) >= 0.98 * len(outcomes) > 500
    assert any("(page 2 of 2)" in message for message in told)

    (hit, *_) = minilm_wb.search("pairs of sentences through a cross-encoder", strategy="hybrid", limit=3)
    assert hit.document_id == document
    assert hit.metadata["page"] == 1
    words = [place for place in scans[0].words if hit.start <= place.start < hit.end]
    assert words and "sentences" in {text[place.start : place.end].casefold() for place in words}
    metadata = minilm_wb.documents.get(document).metadata
    assert metadata["scanned_pages"] == [1, 2]
    assert float(str(metadata["ocr_confidence"])) > 0.9


@pytest.mark.parametrize("turned", [91.0, 180.0, 269.0])
def test_a_scan_that_is_on_its_side_or_its_head_is_read_and_marked_where_its_words_are(turned: float) -> None:
    page = scanned(
        files.pdf([("Otters", *(f"{sentence} Otter {n} agrees." for n, sentence in enumerate([WORDS[0][1]] * 6)))]),
        turned,
        0.3,
    )
    document = read_bytes(png(page.picture), "otters.png")
    assert document.text.index("Otter 0 agrees") < document.text.index("Otter 5 agrees")
    outcomes = [found for _, found in marked(page, document.scans[0], document.text)]
    assert sum(outcomes) >= 0.98 * len(outcomes)


def test_a_mixed_pdf_keeps_its_text_and_reads_only_the_pages_that_lack_it() -> None:
    asked: list[tuple[int, int, bool]] = []
    data = mixed_pdf(small_page(WORDS[1]))
    raw = read_bytes(data, "mixed.pdf", on_page=lambda *page: asked.append(page))
    assert asked == [(1, 2, False), (2, 2, False), (2, 2, True)]
    first, second = (raw.text[start:end] for _, start, end in raw.pages)
    assert "A page of letters." in first and "Beavers build dams of wood." in second
    assert [scan.number for scan in raw.scans] == [2]
    assert [raw.text[word.start : word.end] for word in raw.scans[0].words][-5:] == [
        "Beavers",
        "build",
        "dams",
        "of",
        "wood.",
    ]


def mixed_pdf(picture: Image.Image) -> bytes:
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(595, 842))
    canvas.drawString(72, 700, "A page of letters.")
    canvas.showPage()
    canvas.drawImage(ImageReader(picture), 0, 600, 595, 595 * picture.height / picture.width)
    canvas.showPage()
    canvas.save()
    return target.getvalue()


def damaged_tiff() -> bytes:
    """Return an image file of two pages, the second of which cannot be rendered."""
    target = io.BytesIO()
    first, second = small_page(), small_page(WORDS[1])
    first.save(target, "TIFF", save_all=True, append_images=[second], compression="tiff_deflate")
    data = target.getvalue()
    begins = data.rindex(b"\x78\x9c")  # of the second page's last compressed stretch
    return data[: begins + 2] + bytes(100) + data[begins + 102 :]


def test_a_page_that_cannot_be_drawn_costs_that_page_and_the_report_names_it(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    report = wb.ingest(folder({"two.tif": damaged_tiff()}), source="Poor scans")
    document = wb.documents.get(report.document_ids[0])
    assert "Otters hold hands" in (document.text or "") and "Beavers" not in (document.text or "")
    assert document.metadata["unreadable_pages"] == [2]
    assert report.notes == ("two.tif: page 2 could not be read.",)
    assert report.to_dict()["notes"] == list(report.notes)
    assert report.notes[0] in report_text(report)
    assert report.notes[0] in report_html(report)


def test_a_page_of_little_confidence_is_named() -> None:
    sure, unsure = ScannedPage(1, 0.99, ()), ScannedPage(2, 0.7, ())
    scans = ReadScans({1: PageText("Otters hold hands.", sure), 2: PageText("Bevvers buld", unsure)})
    metadata = to_json_metadata(scans.metadata())
    assert metadata["uncertain_pages"] == [2]
    assert page_notes("poor.pdf", metadata) == (
        "poor.pdf: OCR is uncertain about page 2; compare with the page image.",
    )
    assert scan_note(metadata) == "pages 1, 2 read by OCR, 87% confidence"
    assert scan_note({}) == ""


@pytest.mark.parametrize(("suffix", "kind"), [("png", "PNG"), ("jpg", "JPEG"), ("tiff", "TIFF"), ("webp", "WEBP")])
def test_a_picture_of_a_page_is_a_document(suffix: str, kind: str) -> None:
    target = io.BytesIO()
    small_page().save(target, kind)
    raw = read_bytes(target.getvalue(), f"otters.{suffix}")
    assert raw.document_type == "picture"
    assert (raw.title, raw.language) == ("Otters", "english")
    assert "Otters hold hands while they sleep on the water." in raw.text


def test_pictures_without_words_and_damaged_ones_are_refused_with_the_reason() -> None:
    with pytest.raises(UnreadableDocument, match=r"OCR found no text in 'grey\.png'"):
        read_bytes(png(Image.new("L", (300, 200), 128)), "grey.png")
    with pytest.raises(UnreadableDocument, match=r"'half\.png' .*damaged"):
        read_bytes(png(small_page())[:300], "half.png")
    with pytest.raises(UnreadableDocument, match=r"'words\.png' is damaged or not an image"):
        read_bytes(b"only words", "words.png")


def test_a_page_of_an_image_without_words_is_counted() -> None:
    document = read_bytes(mixed_pdf(Image.new("L", (300, 200), 128)), "mixed.pdf")
    assert document.text == "A page of letters."
    assert document.metadata["left_out"] == {"pages of images in which OCR found no text": 1}


def test_reading_stops_before_the_next_page_when_asked() -> None:
    asked: list[int] = []

    def stop(page: int, pages: int, is_slow: bool) -> None:
        asked.extend([page] if is_slow else [])
        if is_slow and page == 2:
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        read_bytes(make_pdf(*[small_page()] * 4), "scan.pdf", on_page=stop)
    assert asked == [1, 2]


def test_without_the_extra_the_sentence_names_it_and_a_mixed_pdf_keeps_its_text(tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("scan.pdf", "mixed.pdf", "page.png")]
    for path, data in zip(names, (make_pdf(small_page()), mixed_pdf(small_page()), png(small_page())), strict=True):
        path.write_bytes(data)
    scan, _, mixed, _, picture, picture_skip, png_read = run(BLOCKED, *map(str, names))
    assert scan.startswith("'scan.pdf' has no text on any page. It is probably scanned.")
    assert all("pip install 'rag-workbench[ocr]'" in said for said in (scan, picture, picture_skip))
    assert mixed == "((1, 0, 18),)"
    assert png_read == "False"


def test_without_the_extra_a_page_that_needs_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "mixed.pdf").write_bytes(mixed_pdf(small_page()))
    assert run(NOTES, str(tmp_path / "mixed.pdf")) == [
        "mixed.pdf: page 2 could not be read.",
        "mixed.pdf: not fully read: pages that need OCR, which is not installed (1).",
    ]


def test_reading_a_scan_looks_at_no_network_and_brings_no_torch(tmp_path: Path) -> None:
    (tmp_path / "scan.png").write_bytes(png(small_page()))
    *_, sentence, torch = run(OFFLINE, str(tmp_path / "scan.png"))
    assert sentence == "Otters hold hands while they sleep on the water."
    assert torch == "False"


def run(script: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
