"""The appearance and accessibility of the pages: saved in contact sheets and checked by axe."""

import psycopg
import pytest
from looks import assert_fits, settled, visit
from pictures import pictures, write_sheets
from playwright.sync_api import expect
from states import PAGES, STATES

from evals.experiments.catalogue import Experiments, make_cells
from tests.ingestion import files
from workbench import Scope

pytestmark = pytest.mark.browser
ROWS = 240
LIGHTSHIP = [[(700, "Summer"), (400, "The mast of the lightship was stepped anew in July."), (40, "102")]]
SLOW = 120_000  # ms
ENDS_ABOVE_TRAY = """() => {
  const [page, tray] = ['[data-testid="stMain"]', ".st-key-tray"].map((one) => document.querySelector(one));
  return page.getBoundingClientRect().bottom <= tray.getBoundingClientRect().top + 1;
}"""
TOP_OF_QUESTION = """() => document.querySelector(".st-key-question").getBoundingClientRect().top"""
SIZED_STATES = ("why", "reader", "new-index", "scope", "answer")  # besides every page
# The texts of a page with their sizes, in whole pixels; icons are letters of a font, and formulas shrink as they must.
TYPE_SIZES = """() => {
  const sizes = {};
  const look = (root) => root.querySelectorAll("*").forEach((node) => {
    if (node.shadowRoot) look(node.shadowRoot);
    const words = [...node.childNodes].map((one) => (one.nodeType === 3 ? one.textContent.trim() : "")).join("");
    const { right, bottom } = node.getBoundingClientRect();
    if (!words || right < 2 || bottom < 2 || node.closest("style, script, noscript, math, option")) return;
    const style = getComputedStyle(node);
    if (!/Material|icon/i.test(style.fontFamily)) {
      sizes[Math.round(parseFloat(style.fontSize))] = `${node.outerHTML.slice(0, 80)} ${words.slice(0, 40)}`;
    }
  });
  look(document);
  return sizes;
}"""


@pytest.fixture(scope="module")
def names(filled, harbour, measured, tmp_path_factory):
    """The ids that the addresses of states need, a second experiment, and a source that fills pages of a table."""
    experiments = Experiments(filled)
    narrow = experiments.run(experiments.create("Fuzzy joins", harbour, make_cells(["keyword", "fuzzy"])).id)
    folder = tmp_path_factory.mktemp("rows")
    for number in range(ROWS):
        (folder / f"{number:04}.md").write_text(f"# Row {number}\n\nNothing but row {number}.")
    rows = filled.ingest(folder, source="Many rows", on_progress=lambda _: None).source_id
    (scan := tmp_path_factory.mktemp("pdf") / "vessel.pdf").write_bytes(files.paged_pdf(LIGHTSHIP))
    vessel = filled.ingest([scan], source="Vessels of the sheet", on_progress=lambda _: None)
    mast = filled.search("lightship mast", strategy="keyword", scope=Scope(sources=(vessel.source_id,)))[0]
    project = filled.projects.create("A project of the sheet")
    filled.projects.create_folder(project.id, "Drafts")
    filled.indexes.create("spare", chunker="structure")
    yield {
        "harbour": harbour, "measured": measured, "narrow": narrow.id, "many": rows,
        "vessel": mast.document_id, "mast": f"{mast.start}-{mast.end}",
    }  # fmt: skip
    experiments.delete(narrow.id)
    filled.indexes.delete("spare")
    filled.projects.delete(project.id)
    for source in (rows, vessel.source_id):
        filled.sources.delete(source)


@pytest.fixture(scope="module")
def sheets():
    """Collect the pictures of the states by kind, and write a sheet of each kind at the end."""
    rows = {"pages": {}, "states": {}}
    yield rows
    for kind, taken in rows.items():
        if taken:
            write_sheets(taken, kind)


@pytest.mark.parametrize("name", [*PAGES, *STATES])
def test_every_state_is_without_findings_fits_every_width_and_has_four_sizes_of_type(own_tab, app, names, sheets, name):
    kind = "pages" if name in PAGES else "states"
    state = PAGES.get(name) or STATES[name]
    state.reach(lambda path: visit(own_tab, app + path), names)
    if kind == "pages" or name in SIZED_STATES:
        assert list_other_sizes(own_tab) == {}
    sheets[kind][name] = pictures(own_tab, name, state.landmark)


@pytest.mark.parametrize("name", ["library", "leaderboard", "side-by-side", "parts", "system"])
def test_no_table_continues_behind_the_edge_of_a_page_at_200_percent(own_tab, app, names, name):
    own_tab.set_viewport_size({"width": 720, "height": 450})
    (PAGES.get(name) or STATES[name]).reach(lambda path: visit(own_tab, app + path), names)
    settled(own_tab)
    assert_fits(own_tab, name, *own_tab.locator(".holder").all())


def list_other_sizes(page):
    """Return the sizes of type on a page other than the four, each with a text that has it."""
    settled(page)
    return {size: words for size, words in page.evaluate(TYPE_SIZES).items() if size not in ("13", "15", "20", "28")}


def test_a_search_that_waits_and_work_that_fails_and_continues_are_shown_in_the_tray(
    goto, page, filled, browser_database
):
    """A lock on the passages keeps the search and the work running while the test checks them."""
    goto("/")
    expect(page.locator(".st-key-question input")).to_be_visible()
    settled(page)
    top = page.evaluate(TOP_OF_QUESTION)
    broken = filled.jobs.enqueue_ingest(files=[("broken.pdf", b"nothing")], source="Long work", title="Broken work")
    tray = page.locator(".st-key-tray")
    expect(tray).to_contain_text("1 failed", timeout=SLOW)
    expect(tray).to_contain_text("'broken.pdf' is not a PDF file")  # the reason itself, not only that there is one
    page.wait_for_function(f"(top) => ({TOP_OF_QUESTION})() === top", arg=top)  # it does not move anything
    with psycopg.connect(browser_database) as lock:
        lock.execute("LOCK TABLE data_main IN ACCESS EXCLUSIVE MODE")
        work = filled.jobs.enqueue_ingest(
            files=[("long.md", b"# Long\n\nWork.")], source="Long work", title="Long work"
        )
        page.get_by_label("Question").fill("tide gauge")
        page.get_by_label("Question").press("Enter")
        expect(page.get_by_text("Still searching.")).to_be_visible()
        expect(tray).to_contain_text("1 failed · 1 running")
        expect(tray.get_by_role("button")).to_have_text(["Resume", "Dismiss", "Cancel"])  # failures first
        page.wait_for_function(ENDS_ABOVE_TRAY)  # it covers nothing
        write_sheets({"waiting": pictures(page, "waiting", ".st-key-slow")}, "waiting")
        lock.rollback()
    expect(page.locator(".card").first).to_be_visible(timeout=SLOW)
    expect(tray).to_contain_text("1 failed · 1 completed", timeout=SLOW)
    for job in (broken, work):
        filled.jobs.put_away(job.id)
    filled.sources.delete(filled.sources.get("Long work").id)


def test_the_chief_button_of_a_dialog_is_readable_in_the_dark(goto, page):
    page.emulate_media(color_scheme="dark")
    goto("/library?view=projects")
    page.get_by_role("button", name="New project").click()
    chief = page.get_by_role("dialog").locator('[data-testid^="stBaseButton-primary"]')
    page.get_by_role("dialog").get_by_role("textbox").first.fill("Quay")
    page.get_by_role("dialog").get_by_role("textbox").first.press("Tab")
    expect(chief).to_be_enabled()
    expect(chief).to_have_css("color", "rgb(23, 22, 20)")  # dark ink on the light accent
    page.keyboard.press("Escape")


def test_choosing_a_page_on_a_phone_closes_the_drawer_that_lists_them(goto, page):
    page.set_viewport_size({"width": 390, "height": 844})
    goto("/crawl")
    settled(page)
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Library").click()
    expect(page.get_by_role("heading", name="Library")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")


def test_the_fonts_and_everything_else_come_from_this_machine(goto, page, app):
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    goto("/?q=tide gauge")
    expect(page.locator(".card").first).to_be_visible()
    page.evaluate("document.fonts.ready")
    assert any("source-sans-3-latin-wght-normal.woff2" in url for url in addresses)
    assert [url for url in addresses if not url.startswith((app, app.replace("http", "ws"), "data:", "blob:"))] == []
