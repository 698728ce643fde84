"""The Library in a real browser: adding and deleting files."""

import re
from io import BytesIO
from zipfile import ZipFile

import psycopg
import pytest
from looks import pick_option, settled, visit
from playwright.sync_api import expect
from reportlab.pdfgen.canvas import Canvas

pytestmark = pytest.mark.browser


def pdf(*pages: str) -> bytes:
    """Return a PDF with one line per page."""
    held = BytesIO()
    canvas = Canvas(held)
    for line in pages:
        canvas.drawString(72, 720, line)
        canvas.showPage()
    canvas.save()
    return held.getvalue()


def test_an_uploaded_pdf_is_found_read_next_to_its_original_and_deleted_again(goto, keep, filled):
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
    expect(progress.get_by_role("row", name="broken.pdf")).to_contain_text("not a valid PDF")
    expect(page.get_by_role("link", name="Ask a question")).to_have_attribute("href", re.compile(r"^\./\?"))
    page.get_by_role("link", name="Open source").click()
    expect(page.get_by_role("heading", name="Lights")).to_be_visible()
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_role("button", name="Dismiss")).to_have_count(0)
    page.get_by_role("button", name="Library").click()
    keep("library-1440-light")

    page.get_by_role("link", name="Compare").click()
    page.get_by_label("Question").fill("lighthouse lamp")
    page.get_by_label("Question").press("Enter")
    page.locator(".card .title", has_text="lighthouse").first.click()
    frame = page.frame_locator("iframe.original")
    expect(frame.get_by_text("Page 1 (found passage highlighted)")).to_be_visible()
    expect(frame.locator("img")).to_be_visible()
    original = frame.get_by_role("link", name="Open file").get_attribute("href")
    response = page.request.get(page.url.split("/?")[0] + original)
    assert response.headers["content-type"] == "application/pdf"
    assert response.body().startswith(b"%PDF")
    keep("reader-pdf-1440-light")
    page.keyboard.press("Escape")

    page.get_by_role("link", name="Library").click()
    page.get_by_role("checkbox", name="Select Lights").check()
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("deletes 1 source with 1 document and")
    assert filled.sources.get("Lights").documents_count == 1
    dialog.get_by_role("button", name="Delete 1 source").click()
    expect(page.get_by_text("Deleted 1 source, 1 document,")).to_be_visible()
    expect(page.get_by_role("row", name="Lights")).to_have_count(0)


def test_an_upload_is_kept_if_the_page_is_reloaded_after_the_click(goto, filled):
    page = goto("/library")
    page.locator("input[type=file]").set_input_files(
        [{"name": f"{n}.md", "mimeType": "text/markdown", "buffer": f"# Buoy {n}".encode()} for n in range(9)]
    )
    add = page.get_by_role("button", name="Add 9 files")
    expect(add).to_be_visible(timeout=60_000)
    page.get_by_role("combobox", name="Into source").fill("Buoys")
    page.get_by_role("combobox", name="Into source").press("Enter")
    page.wait_for_timeout(2_000)  # the run for the new name has ended
    with filled.corpus.database.transaction() as connection:
        connection.execute("LOCK TABLE indexes IN ACCESS EXCLUSIVE MODE")  # the page is not drawn as far as its button
        add.dblclick()
        page.wait_for_timeout(500)
        page.reload()
        page.wait_for_timeout(1_000)  # the server stops the script of the former page
    expect(page.get_by_text("Adding 9 files to Buoys").first).to_be_visible(timeout=60_000)
    page.get_by_role("row", name="Buoys").get_by_role("button", name="Buoys").click()
    page.get_by_role("button", name="Add files").click()
    dialog = page.get_by_role("dialog", name="Add files to Buoys")
    dialog.locator("input[type=file]").set_input_files(
        [{"name": "more.md", "mimeType": "text/markdown", "buffer": b"# More buoys"}]
    )
    dialog.get_by_role("button", name="Add 1 file").click(timeout=60_000)
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("Adding 1 file to Buoys").first).to_be_visible()
    jobs = filled.jobs.list(kind="ingest", source="Buoys")
    assert len(jobs) == 2
    for job in jobs:
        assert filled.jobs.wait(job.id, timeout=60).status == "completed"
    source = filled.sources.get("Buoys")
    assert source.documents_count == 10
    filled.sources.delete(source.id)


def test_an_upload_ends_with_a_toast_a_title_and_one_line_that_vanishes(goto, filled):
    page, tray = goto("/library"), goto("/library").locator(".st-key-tray")
    page.locator("input[type=file]").set_input_files(
        {"name": "groyne.md", "mimeType": "text/markdown", "buffer": b"# Groyne\n\nThe groyne holds the sand."}
    )
    page.get_by_role("combobox", name="Into source").fill("Groynes")
    page.get_by_role("combobox", name="Into source").press("Enter")
    page.get_by_role("button", name="Add 1 file").click()
    try:
        expect(page.get_by_test_id("stToast")).to_contain_text("Done: Adding 1 file to Groynes", timeout=60_000)
        expect(page).to_have_title(re.compile(r"^\(done\) Library"))
        expect(tray.get_by_role("link", name="Ask a question")).to_be_visible()
        page.wait_for_function("document.querySelector('.st-key-tray')?.offsetHeight < 50")
        expect(tray).to_have_count(0)
        page.get_by_role("radio", name="Projects and folders").click()
        expect(page).to_have_title(re.compile("^Projects and folders · Library"))
    finally:
        filled.sources.delete(filled.sources.get("Groynes").id)


def test_files_are_added_from_the_page_of_their_source_and_unread_ones_are_named(goto, filled, tmp_path, keep):
    (tmp_path / "mole.md").write_text("# Mole\n\nThe mole shelters the basin.")
    source = filled.ingest([tmp_path / "mole.md"], source="Basin", on_progress=lambda _: None).source_id
    stream = BytesIO()
    with ZipFile(stream, "w") as archive:
        archive.writestr("quay.md", "# Quay\n\nShips lie at the quay.")
        archive.writestr("setup.exe", "MZ")
    try:
        page = goto(f"/library?open={source}")
        page.get_by_role("button", name="Add files").click()
        dialog = page.get_by_role("dialog", name="Add files to Basin")
        files = [
            {"name": "plans.zip", "mimeType": "application/zip", "buffer": stream.getvalue()},
            {"name": "clip.mp4", "mimeType": "video/mp4", "buffer": b"film"},
        ]
        dialog.locator("input[type=file]").set_input_files(files)
        named = "Unsupported file types: clip.mp4 and plans/setup.exe."
        expect(dialog.get_by_text(named)).to_be_visible()
        keep("add-to-source-1440-light")
        dialog.get_by_role("button", name="Add 1 file", exact=True).click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        tray = page.locator(".st-key-tray")
        expect(tray.get_by_text("completed: 1 added")).to_be_visible(timeout=60_000)
        expect(tray.get_by_text(named)).to_be_visible()
        expect(page.get_by_role("table", name="Documents").get_by_role("row", name="Quay")).to_be_visible()
        assert {document.title for document in filled.documents.list(source_id=source)} == {"Mole", "Quay"}
        tray.get_by_role("button", name="Dismiss").click()
    finally:
        filled.sources.delete(source)


def test_the_table_filters_sorts_and_opens_a_source(goto, filled):
    page = goto("/library")
    expect(page.get_by_role("row", name="Harbour")).to_be_visible()
    page.get_by_label("Filter sources").fill("nothing like it")
    expect(page.get_by_text("No matches.")).to_be_visible()
    kind, row = filled.sources.get("Harbour").source_type, page.get_by_role("row", name="Harbour")
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
    filled.sources.create("Movable")
    page = goto("/library?view=projects")
    page.get_by_role("button", name="New project").click()
    page.get_by_role("dialog").get_by_label("Title").fill("Coast")
    page.get_by_role("dialog").get_by_label("Title").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_text('Project "Coast" created.')).to_be_visible()
    page.get_by_role("radio", name="Sources").click()
    page.get_by_role("checkbox", name="Select Movable").check()
    page.get_by_role("button", name="Move").click()
    pick_option(page.get_by_role("dialog").get_by_role("combobox", name="Project"), "Coast")
    page.get_by_role("dialog").get_by_role("button", name="Move").click()
    expect(page.get_by_role("row", name="Movable")).to_contain_text("Coast")
    assert filled.sources.get("Movable").project_id == filled.projects.get("Coast").id


RERUN = """() => new Promise((drawn) => {
  const app = document.querySelector('[data-testid="stApp"]');
  new MutationObserver(() => {
    if (app.dataset.testScriptState === "notRunning") requestAnimationFrame(() => requestAnimationFrame(drawn));
  }).observe(app, { attributes: true, attributeFilter: ["data-test-script-state"] });
  history.pushState(null, "", "?view=sources");
  window.dispatchEvent(new PopStateEvent("popstate"));
})"""


def test_a_press_on_a_source_opens_it_although_the_list_grows_before_its_release(goto, filled):
    page = goto("/library")
    page.get_by_role("button", name="Harbour", exact=True).hover()
    page.mouse.down()
    added = filled.sources.create("A jetty")
    page.evaluate(RERUN)
    page.mouse.up()
    expect(page.get_by_role("heading", name="Harbour")).to_be_visible()
    filled.sources.delete(added.id)


def test_the_language_of_a_source_is_chosen_and_its_words_are_stemmed_again(goto, filled, tmp_path, keep):
    text = "# Haus\n\nDas Haus steht am Ufer, und die Kinder gehen am Morgen über die Brücke zur Schule."
    (tmp_path / "haus.md").write_text(text)
    report = filled.ingest(tmp_path, source="Ufer", on_progress=lambda progress: None)
    page = goto(f"/library?open={report.source_id}")
    page.get_by_role("button", name="Language").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Set language")).to_be_disabled()
    dialog.get_by_role("combobox", name="Language").fill("Fren")
    dialog.get_by_role("combobox", name="Language").press("Enter")
    expect(dialog.get_by_role("button", name="Set language")).to_be_enabled()
    keep("source-language-1440-light")
    dialog.get_by_role("button", name="Set language").click()
    expect(page.get_by_text("Stemmed 1 document as French.")).to_be_visible()
    assert filled.indexes.languages()["french"] == 1
    assert filled.indexes.count_missing("main") == 0

    page.get_by_role("button", name="Language").click()
    expect(dialog.get_by_text("Current: French for all documents.")).to_be_visible()
    dialog.get_by_role("combobox", name="Language").fill("Detect")
    dialog.get_by_role("combobox", name="Language").press("Enter")
    dialog.get_by_role("button", name="Set language").click()
    expect(page.get_by_text("Stemmed 1 document by the detected language of each.")).to_be_visible()
    assert filled.indexes.languages()["german"] == 1
    filled.sources.delete(report.source_id)


WRITERS = """SELECT count(*) FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE documents%' AND datname = current_database()"""


def test_of_two_people_who_save_a_document_at_the_same_moment_the_second_is_asked_to_open_it_again(
    goto, filled, tmp_path, browser_database
):
    (tmp_path / "shared.md").write_text("# Shared\n\nA text that two people edit.")
    report = filled.ingest(tmp_path, source="Edited by two", on_progress=lambda progress: None)
    [document_id] = report.document_ids
    tabs = [goto(f"/library?open={report.source_id}")]
    tabs.append(visit(tabs[0].context.new_page(), tabs[0].url))
    for tab, title in zip(tabs, ("Ada's title", "Bo's title"), strict=True):
        tab.get_by_role("checkbox", name="Select Shared").check()
        tab.get_by_role("button", name="Edit document").click()
        tab.get_by_role("dialog").get_by_label("Title").fill(title)
        tab.get_by_role("dialog").get_by_label("Title").press("Tab")
        settled(tab)
    with psycopg.connect(browser_database) as holder, psycopg.connect(browser_database, autocommit=True) as observer:
        holder.execute("SELECT FROM documents WHERE id = %s FOR UPDATE", [document_id])
        for tab in tabs:
            tab.get_by_role("dialog").get_by_role("button", name="Save").click()
        while observer.execute(WRITERS).fetchone() != (2,):  # both have read the document and wait to write it
            tabs[0].wait_for_timeout(50)
    saved = [tab.get_by_text(re.compile('^"(Ada|Bo)\'s title" saved.')) for tab in tabs]
    refused = [tab.get_by_text("was changed by someone else at the same time. Open it again.") for tab in tabs]
    for tab_saved, tab_refused in zip(saved, refused, strict=True):
        expect(tab_saved.or_(tab_refused)).to_be_visible()
    assert sorted(one.count() for one in saved) == sorted(one.count() for one in refused) == [0, 1]
    assert filled.documents.get(document_id).title == ("Ada's title", "Bo's title")[saved[1].count()]
    filled.sources.delete(report.source_id)
