"""Real files of each format, created on demand."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection, Mapping, Sequence


def pdf(pages: Sequence[Sequence[str]], password: str | None = None) -> bytes:
    """Return a PDF with one heading and its paragraphs per page."""
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

    styles = getSampleStyleSheet()
    story = []
    for heading, *paragraphs in pages:
        story.append(Paragraph(heading, styles["Heading1"]))
        story.extend(Paragraph(text, styles["BodyText"]) for text in paragraphs)
        story.append(PageBreak())
    target = io.BytesIO()
    encryption = StandardEncryption(password, ownerPassword="owner") if password else None
    SimpleDocTemplate(target, encrypt=encryption).build(story)
    return target.getvalue()


def paged_pdf(pages: Sequence[Sequence[tuple[int, str]]]) -> bytes:
    """Return a PDF of lines in small print, each with its height on a page of 842 points."""
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(595, 842))
    for lines in pages:
        canvas.setFont("Helvetica", 10)
        for height, text in lines:
            canvas.drawString(72, height, text)
        canvas.showPage()
    canvas.save()
    return target.getvalue()


def spread_pdf(pages: Sequence[Sequence[tuple[int, int, str]]]) -> bytes:
    """Return a PDF of texts in small print, each with its left edge and its height on a page of 842 points."""
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(595, 842))
    for texts in pages:
        canvas.setFont("Helvetica", 7)
        for left, height, text in texts:
            canvas.drawString(left, height, text)
        canvas.showPage()
    canvas.save()
    return target.getvalue()


def pdf_with_heavy_pages(pages: int, heavy: Collection[int]) -> bytes:
    """Return a PDF with a line per page, and on the heavy ones so many shapes that 300 MB are not enough to read it."""
    shapes = "\n".join(f"{place % 590} {place // 590 % 840} 1 1 re f" for place in range(400_000))
    return _drawn_pdf(pages, dict.fromkeys(heavy, shapes))


def pdf_with_endless_page(pages: int, endless: int) -> bytes:
    """Return a PDF with a line per page, one of which has so many crossing lines that reading takes minutes."""
    lines = "\n".join(f"{n % 590} {n // 590 % 840} m {n * 7 % 590} {n * 3 % 840} l S" for n in range(200_000))
    return _drawn_pdf(pages, {endless: lines})


def _drawn_pdf(pages: int, drawings: Mapping[int, str]) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(595, 842), pageCompression=1)
    for page in range(1, pages + 1):
        canvas.setFont("Helvetica", 10)
        canvas.drawString(72, 700, f"The otter of page {page} sleeps.")
        if page in drawings:
            canvas._code.append(drawings[page])
        canvas.showPage()
    canvas.save()
    return target.getvalue()


def pdf_with_chart(caption: str = "") -> bytes:
    """Return a PDF page of prose with an image of a bar chart, whose words are pixels, and a caption below it."""
    from PIL import Image, ImageDraw, ImageFont
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    chart = Image.new("RGB", (900, 500), "white")
    draw, font = ImageDraw.Draw(chart), ImageFont.load_default(36)
    draw.text((150, 20), "Herring landed in Lerwick", fill="black", font=font)
    for place, (name, height) in enumerate((("North", 300), ("South", 180), ("East", 240))):
        left = 150 + 220 * place
        draw.rectangle((left, 420 - height, left + 120, 420), fill="steelblue")
        draw.text((left + 10, 430), name, fill="black", font=font)
    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(595, 842))
    canvas.setFont("Helvetica", 10)
    for line in range(8):
        canvas.drawString(72, 780 - 14 * line, "The boats are kept in sheds over the winter months, row upon row.")
        canvas.drawString(72, 310 - 14 * line, "The nets are mended in spring, when the days are longer than before.")
    canvas.drawImage(ImageReader(chart), 72, 380, 400, 222)
    if caption:
        canvas.setFont("Helvetica-Oblique", 9)
        canvas.drawString(72, 360, caption)
    canvas.showPage()
    canvas.save()
    return target.getvalue()


def scanned_pdf() -> bytes:
    """Return a PDF page with a drawing and no text."""
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target)
    canvas.rect(50, 50, 200, 200, fill=1)
    canvas.showPage()
    canvas.save()
    return target.getvalue()


def docx(title: str = "") -> bytes:
    """Return a Word file with headings, a list and a table."""
    import docx as word

    document = word.Document()
    document.core_properties.title = title
    document.core_properties.author = "Ada"
    document.add_heading("Field notes", level=1)
    document.add_paragraph("The otter keeps a favourite stone.")
    document.add_heading("Diet", level=2)
    document.add_paragraph("Clams", style="List Bullet")
    document.add_paragraph("Urchins", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip((c for row in table.rows for c in row.cells), ("Prey", "Share", "Clam", "40 %"), strict=True):
        cell.text = text
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def pptx() -> bytes:
    """Return two slides: bullets with notes, and a table."""
    from pptx import Presentation
    from pptx.util import Inches

    show = Presentation()
    first = show.slides.add_slide(show.slide_layouts[1])
    first.shapes.title.text = "Why otters float"
    frame = first.placeholders[1].text_frame
    frame.text = "Dense fur"
    nested = frame.add_paragraph()
    nested.text, nested.level = "a million hairs an inch", 1
    first.notes_slide.notes_text_frame.text = "Mention the raft."
    second = show.slides.add_slide(show.slide_layouts[5])
    second.shapes.title.text = "Numbers"
    table = second.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for place, text in zip(((0, 0), (0, 1), (1, 0), (1, 1)), ("Year", "Count", "2020", "3000"), strict=True):
        table.cell(*place).text = text
    target = io.BytesIO()
    show.save(target)
    return target.getvalue()


def xlsx() -> bytes:
    """Return two sheets, one of them empty."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "Prices"
    for row in (["Item", "Price"], ["Kelp", 3.0], ["Clam | large", 12.5]):
        book.active.append(row)
    book.create_sheet("Nothing")
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()


def epub(chapters: Sequence[str], encrypted: str = "") -> bytes:
    """Return a book with one XHTML file per chapter; ``encrypted`` names a file listed in its encryption.xml."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as package:
        package.writestr("mimetype", "application/epub+zip")
        container = '<container xmlns="urn:c"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
        package.writestr("META-INF/container.xml", container)
        if encrypted:
            reference = f'<encryption xmlns:e="urn:e"><e:CipherReference URI="{encrypted}"/></encryption>'
            package.writestr("META-INF/encryption.xml", reference)
        numbers = range(len(chapters))
        items = "".join(f'<item id="c{n}" href="text/c{n}.xhtml"/>' for n in numbers)
        spine = "".join(f'<itemref idref="c{n}"/>' for n in reversed(numbers))
        described = (
            '<metadata xmlns:dc="urn:dc"><dc:title>The Raft</dc:title><dc:creator>A. Lontra</dc:creator></metadata>'
        )
        package.writestr(
            "OEBPS/book.opf",
            f'<package xmlns="urn:o">{described}<manifest>{items}</manifest><spine>{spine}</spine></package>',
        )
        for number, chapter in enumerate(chapters):
            package.writestr(f"OEBPS/text/c{number}.xhtml", f"<html><body>{chapter}</body></html>")
    return target.getvalue()


def statement_pdf(caption: str, units: str, years: Sequence[str], rows: int) -> bytes:
    """Return a PDF of a cover and one financial statement in columns, without ruling lines."""
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(595, 842))
    canvas.setFont("Helvetica", 10)
    canvas.drawString(72, 700, "This report tells what a family of otters earned in the year.")
    canvas.showPage()
    canvas.setFont("Helvetica-Bold", 10)
    canvas.drawCentredString(297, 745, caption)
    canvas.drawCentredString(297, 730, units)
    columns = [350 + 70 * place for place in range(len(years))]
    for right, year in zip(columns, years, strict=True):
        canvas.drawRightString(right, 705, year)
    canvas.setFont("Helvetica", 9)
    for row in range(rows):
        height = 690 - 15 * row
        canvas.drawString(72, height, f"Cost of line {row}")
        for place, right in enumerate(columns):
            canvas.drawRightString(right, height, f"{1_000 + 37 * row + place:,}")
    canvas.showPage()
    canvas.save()
    return target.getvalue()


def bomb_xlsx(size: int) -> bytes:
    """Return a small workbook with one cell of ``size`` characters."""
    import openpyxl

    book = openpyxl.Workbook()
    book.worksheets[0].append(["MARK"])
    plain = io.BytesIO()
    book.save(plain)
    target = io.BytesIO()
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for path in source.namelist():
            copy.writestr(path, source.read(path).replace(b"MARK", b"pump " * (size // 5)))
    return target.getvalue()
