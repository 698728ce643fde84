"""Every control is fewer than nine Tabs away."""

import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser
QUESTION = "tide gauge"
NINE = 9
FOCUSED = """() => {
    let at = document.activeElement;
    while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
    return (at?.textContent || at?.getAttribute("aria-label") || "").replace(/\\s+/g, " ").trim();
}"""


def _passed(page: Page, key: str, presses: int) -> list[str]:
    """Press a key several times; returns the text of the focused element after each press."""
    words = []
    for _ in range(presses):
        page.keyboard.press(key)
        words.append(page.evaluate(FOCUSED))
    return words


def _asked(page: Page) -> Page:
    """Ask with Enter, which moves the focus to the first passage."""
    page.wait_for_function("window.workbenchShortcuts")
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_label("Question").press("Enter")
    expect(page.locator(".card .title").first).to_be_focused()
    return page


def _find(page: Page, words: str) -> None:
    page.wait_for_function("window.workbenchShortcuts")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find").fill(words)


@pytest.mark.usefixtures("harbour")  # a test set to choose, one more control
def test_from_the_first_passage_every_control_of_the_board_is_fewer_than_nine_tabs_away(goto):
    page = _asked(goto("/"))
    expect(page.get_by_role("button", name="Promote Vector")).to_be_visible()
    passed = " ".join(_passed(page, "Shift+Tab", NINE - 1))
    for control in ("Promote", "Export", "Create and judge"):
        assert control in passed
    assert passed.count("Promote") == 1  # one stop for all of them
    page.get_by_label("Question").focus()
    passed = " ".join(_passed(page, "Tab", NINE - 1))
    for control in ("Answer", "Figures", "Settings", "Judge"):
        assert control in passed


def test_the_arrows_lead_from_the_first_passage_to_promote_and_back(goto):
    page = _asked(goto("/"))
    expect(page.get_by_role("button", name="Promote Vector")).to_be_visible()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("button", name="Promote Vector")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="Promote Keyword")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".column").nth(1).locator(".title").first).to_be_focused()


def test_the_focus_is_never_lost_by_a_promotion(goto, filled):
    page = goto(f"/?q={QUESTION}")
    button, dialog = page.get_by_role("button", name="Promote Keyword"), page.get_by_role("dialog")
    button.focus()
    page.keyboard.press("Enter")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Promote").press("Enter")
    try:
        expect(page.locator(".head", has_text="Keyword").locator(".badge")).to_have_text("live")
        expect(page.locator(".card .title:focus")).to_have_count(1)
        page.get_by_role("button", name="Undo").press("Enter")
        expect(page.get_by_role("button", name="Undo")).to_have_count(0)
        expect(page.locator(".card .title:focus")).to_have_count(1)
    finally:
        for _ in filled.promotions.current():
            filled.promotions.undo()


def test_the_focus_follows_from_a_lost_question_to_compare(goto, measured):
    page = goto(f"/evaluate?experiment={measured}")
    page.get_by_role("button", name="Explain on Compare").press("Enter")
    expect(page.locator(".st-key-pane_inspector")).to_be_visible()
    expect(page.locator(".card .title:focus")).to_have_count(1)


@pytest.mark.parametrize(
    ("path", "focused"),
    [
        ("/", ".st-key-question input"),
        ("/?q=tide gauge", ".card .title"),
        ("/library", "h1"),
        ("/system?view=setup", "h1"),
        ("/nowhere", ".wb-state h2"),
        ("/?q=tide gauge&source=none", ".wb-state h2"),
    ],
)
def test_a_page_that_is_opened_by_its_address_has_the_focus_on_its_content(goto, path, focused):
    expect(goto(path).locator(focused).first).to_be_focused()


def test_a_question_that_is_opened_by_its_address_shows_its_focus_to_the_keyboard_only(goto):
    page = goto("/?q=tide gauge")
    expect(page.locator(".card .title").first).to_be_focused()
    expect(page.locator(".title:focus-visible, .card.lit")).to_have_count(0)
    page.keyboard.press("ArrowDown")
    expect(page.locator(".title:focus-visible")).to_have_count(1)
    expect(page.locator(".card.lit").first).to_be_visible()


@pytest.mark.parametrize(
    ("path", "typed", "opened"),
    [
        ("/?q=tide gauge", "export", "[data-testid=stPopoverBody] >> text=Markdown"),
        ("/?q=tide gauge", "promote vector", "[role=dialog] >> text=Vector"),
        ("/library?view=projects", "new proj", "[role=dialog] textarea"),
        ("/system", "new index", "[role=dialog] input"),
    ],
)
def test_the_finder_presses_what_is_on_the_page(goto, path, typed, opened):
    page = goto(path)
    landmark = page.get_by_role("button", name=re.compile(typed, re.IGNORECASE)).first
    expect(landmark).to_be_visible()
    _find(page, typed)
    expect(page.get_by_role("option", name=re.compile(f"^Here.*{typed}", re.IGNORECASE)).first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator(opened).first).to_be_visible()


def test_the_finder_goes_by_what_was_typed_however_soon_enter_follows(goto, harbour):
    page = goto(f"/evaluate?new=1&dataset={harbour}")
    expect(page.get_by_role("button", name="Run experiment")).to_be_enabled()
    _find(page, "title")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Title")).to_be_focused()
    _find(page, "run exp")
    expect(page.get_by_role("option", name="Here Run experiment")).to_be_visible()


def test_ctrl_enter_submits_a_form_with_what_was_typed_last_from_any_of_its_fields(goto, harbour):
    page = goto(f"/evaluate?new=1&dataset={harbour}")
    expect(page.get_by_role("button", name="Run experiment")).to_be_visible()
    page.wait_for_function("window.workbenchShortcuts")
    page.get_by_label("Title").fill("By two keys")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="By two keys")).to_be_visible()
    goto("/crawl")
    page.wait_for_function("window.workbenchShortcuts")
    expect(page.get_by_role("button", name="Start crawl")).to_be_visible()
    page.get_by_label("Start page").focus()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Enter a start page.")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("click the main button")


def test_ctrl_enter_deletes_nothing(goto, filled):
    made = filled.sources.create("Kept by Ctrl Enter")
    page = goto(f"/library?open={made.id}")
    page.wait_for_function("window.workbenchShortcuts")
    page.get_by_role("button", name="Delete", exact=True).first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Delete").first).to_be_visible()
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(1_000)  # for what must not happen
    expect(dialog).to_be_visible()
    assert filled.sources.get(made.id).title == "Kept by Ctrl Enter"
    filled.sources.delete(made.id)


def test_ctrl_enter_leaves_alone_what_is_behind_the_list_of_keys(goto):
    page = goto("/crawl")
    page.wait_for_function("window.workbenchShortcuts")
    expect(page.get_by_role("button", name="Start crawl")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(1_000)  # for what must not happen
    expect(page.get_by_text("Enter a start page.")).to_have_count(0)


def test_a_table_is_two_stops_of_the_tab_key_and_the_arrows_continue_inside_of_it(goto):
    page = goto("/library")
    expect(page.locator("tbody .open").first).to_be_visible()
    page.get_by_label("Filter sources").focus()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Select all shown")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("tbody input").first).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("tbody .open").first).to_be_focused()
    page.get_by_label("Filter sources").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("tbody .open").first).to_be_focused()
