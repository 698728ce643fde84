"""The Library in a real browser: files in, files out."""

from io import BytesIO

import pytest
from playwright.sync_api import expect
from reportlab.pdfgen.canvas import Canvas

pytestmark = pytest.mark.browser


def pdf(*pages: str) -> bytes:
    """A PDF with one line a page."""
    held = BytesIO()
    canvas = Canvas(held)
    for line in pages:
        canvas.drawString(72, 720, line)
        canvas.showPage()
    canvas.save()
    return held.getvalue()


def test_an_uploaded_pdf_is_found_read_beside_its_original_and_deleted_again(goto, keep, filled):
    page = goto("/library")
    files = [
        {
            "name": "lighthouse.pdf",
            "mimeType": "application/pdf",
            "buffer": pdf("The lighthouse lamp turns.", "Its lens"),
        },
        {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.4 nothing more"},
    ]
    page.locator("input[type=file]").set_input_files(files)
    page.get_by_role("combobox", name="Into source").fill("Lights")
    page.get_by_role("combobox", name="Into source").press("Enter")
    page.get_by_role("button", name="Add 2 files").click()
    progress = page.get_by_role("table", name="Adding 2 files to Lights")
    expect(progress.get_by_role("row", name="lighthouse.pdf")).to_contain_text("added, ", timeout=60_000)
    expect(progress.get_by_role("row", name="broken.pdf")).to_contain_text("damaged")
    page.get_by_role("link", name="Open its source").click()
    expect(page.get_by_role("heading", name="Lights")).to_be_visible()
    page.get_by_role("button", name="Put away").click()
    expect(page.get_by_role("button", name="Put away")).to_have_count(0)
    page.get_by_role("button", name="Library").click()
    keep("library-1440-light")

    page.get_by_role("link", name="Compare").click()
    page.get_by_label("Question").fill("lighthouse lamp")
    page.get_by_label("Question").press("Enter")
    page.locator(".card .title", has_text="lighthouse").first.click()
    frame = page.locator("iframe.original")
    expect(frame).to_be_visible()
    response = page.request.get(page.url.split("/?")[0] + frame.get_attribute("src").split("#")[0])
    assert response.headers["content-type"] == "application/pdf"
    assert response.body().startswith(b"%PDF")
    keep("reader-pdf-1440-light")
    page.keyboard.press("Escape")

    page.get_by_role("link", name="Library").click()
    page.get_by_role("checkbox", name="Select Lights").check()
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("removes 1 source with 1 document and")
    assert filled.knowledge.source("Lights").documents_count == 1
    dialog.get_by_role("button", name="Delete 1 source").click()
    expect(page.get_by_text("Removed 1 source, 1 document,")).to_be_visible()
    expect(page.get_by_role("row", name="Lights")).to_have_count(0)


def test_the_table_filters_sorts_and_opens_a_source(goto, filled):
    page = goto("/library")
    expect(page.get_by_role("row", name="Harbour")).to_be_visible()
    page.get_by_label("Filter sources").fill("nothing like it")
    expect(page.get_by_text("Nothing matches the filter.")).to_be_visible()
    kind, row = filled.knowledge.source("Harbour").source_type, page.get_by_role("row", name="Harbour")
    for part, rows in ((kind, 1), (kind[:-1], 0), ("every", 0), ("sea", 1)):
        page.get_by_label("Filter sources").fill(part)
        expect(row).to_have_count(rows)
    page.get_by_label("Filter sources").fill("harb")
    page.get_by_role("button", name="Harbour").click()
    expect(page.get_by_role("heading", name="Harbour")).to_be_visible()
    page.get_by_role("button", name="Document", exact=True).click()
    names = page.locator("tbody .open")
    expect(names.first).to_have_text("Bread")
    page.get_by_role("button", name="Document", exact=True).click()
    expect(names.first).to_have_text("Tide gauge")
    names.first.click()
    expect(page.get_by_role("region", name="Text of Tide gauge")).to_contain_text("six minutes")


def test_sources_are_moved_into_a_new_project_and_tagged(goto, filled):
    filled.knowledge.create_source("Movable")
    page = goto("/library?view=projects")
    page.get_by_role("button", name="New project").click()
    page.get_by_role("dialog").get_by_label("Title").fill("Coast")
    page.get_by_role("dialog").get_by_label("Title").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_text("Made the project Coast.")).to_be_visible()
    page.get_by_role("radio", name="Sources").click()
    page.get_by_role("checkbox", name="Select Movable").check()
    page.get_by_role("button", name="Move").click()
    page.get_by_role("dialog").get_by_role("combobox", name="Project").click()
    page.get_by_role("option", name="Coast").click()
    page.get_by_role("dialog").get_by_role("button", name="Move").click()
    expect(page.get_by_role("row", name="Movable")).to_contain_text("Coast")
    assert filled.knowledge.source("Movable").project_id == filled.projects.get("Coast").id
