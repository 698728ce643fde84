"""The Compare page in a real browser."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
import pytest
from browser_server import wait_until_up
from looks import settled
from playwright.sync_api import Locator, Page, expect
from urllib3 import PoolManager

from evals.test_sets.store import TestSetStore
from workbench.storage.tool_calls import ToolCall

pytestmark = pytest.mark.browser
QUESTION = "tide gauge"


def test_enter_runs_the_question_and_four_columns_answer(goto, keep):
    page = goto("/?tag=sea")  # the four documents there; other tests add more
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_label("Question").press("Enter")
    for name in ("Vector", "Keyword", "Hybrid", "Rerank"):
        expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_role("list", name="Keyword: 3 passages").locator("mark").first).to_be_visible()
    expect(page.get_by_role("list", name="Rerank: 4 passages").locator("mark u.like3").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"q=tide(\+|%20)gauge"))
    expect(page).to_have_title("tide gauge · Compare · RAG Workbench")
    keep("compare-1440-light")


def test_tab_leads_from_the_question_past_the_buttons_to_the_first_passage(goto):
    page = goto(f"/?q={QUESTION}")
    expect(page.locator(".card").first).to_be_visible()
    page.get_by_label("Question").focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to results")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".card .title").first).to_be_focused()


def test_hovering_a_hit_lights_the_same_passage_everywhere(goto):
    page = goto(f"/?q={QUESTION}&s=vector&s=keyword")
    first = page.locator(".card").first
    first.hover()
    key = first.get_attribute("data-id")
    expect(page.locator(f'.card.lit[data-id="{key}"]')).to_have_count(2)
    expect(page.locator(f'.trail.lit[data-id="{key}"]')).to_have_count(1)
    expect(page.locator(".caption")).to_contain_text("Keyword")


def test_keys_alone_ask_move_explain_and_open(goto, keep):
    page = goto(f"/?q={QUESTION}")
    expect(page.locator(".card").first).to_be_visible()
    settled(page)  # the keys are the last part of a page to come
    page.locator("body").press("/")
    expect(page.get_by_label("Question")).to_be_focused()
    page.locator(".card .title").first.focus()
    page.keyboard.press("ArrowDown")
    focused = page.locator(".card:has(.title:focus)")
    expect(focused.locator(".rank")).to_have_text("2")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("list", name="Keyword: 3 passages").locator(".title:focus")).to_have_count(1)
    page.keyboard.press("w")
    inspector = page.locator(".st-key-pane_inspector")
    expect(inspector).to_contain_text("Score breakdown")
    expect(page.locator(".bump.following")).to_have_count(0)  # the focus lights its line and dims no other
    page.keyboard.press("Escape")
    expect(inspector).to_have_count(0)
    expect(page.get_by_role("list", name="Keyword: 3 passages").locator(".title:focus")).to_have_count(1)
    page.locator(".card .title").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".reader")).to_be_visible()
    page.keyboard.press("Escape")
    expect(inspector).to_have_count(0)
    expect(page).not_to_have_url(re.compile("doc="))
    expect(page.locator(".card .title").first).to_be_focused()


def test_one_strategy_is_side_by_side_on_two_indexes(goto, filled, keep):
    filled.indexes.create("by_sentence", chunker="sentence")
    filled.indexes.build("by_sentence")
    page = goto(f"/?q={QUESTION}&s=hybrid")
    page.get_by_role("button", name="Settings").click()
    choice = page.get_by_role("combobox", name="Compare on indexes")
    for name in ("main", "by_sentence"):
        choice.fill(name)
        choice.press("Enter")
    page.keyboard.press("Escape")  # closes the list and not the inspector
    expect(page.get_by_role("listbox")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"on=main&on=by_sentence"))
    expect(page.get_by_role("heading", name="Hybrid")).to_have_text(["Hybrid A main", "Hybrid B by_sentence"])
    first = page.locator("ol.column").nth(0).locator(".card").first
    first.hover()
    expect(page.locator("ol.column").nth(1).locator(".card.lit").first).to_contain_text("Tide gauge")
    page.get_by_role("button", name="Figures", exact=True).click()
    agreement = page.get_by_role("table", name="Agreement")
    expect(agreement.get_by_role("columnheader", name="Same documents")).to_be_visible()
    expect(agreement.locator("tbody tr")).to_contain_text("Hybrid on main · Hybrid on by_sentence")
    page.locator("ol.column").nth(1).locator(".title").first.click()
    expect(page).to_have_url(re.compile("cut=by_sentence"))
    expect(page.locator(".reader .found").first).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(page.locator(".st-key-pane_inspector")).to_have_count(0)
    page.get_by_role("button", name="Keyword").click()
    expect(page.locator(".head")).to_have_count(4)
    keep("two-indexes-1440-light")
    filled.indexes.delete("by_sentence")


def test_a_hit_opens_its_document_at_the_passage(goto, keep):
    page = goto("/?q=calibrate the float")
    page.locator("ol.column").nth(1).locator(".title").first.click()
    found = page.locator(".reader .found").first
    expect(found).to_be_in_viewport()
    expect(page.locator(".reader .found")).to_contain_text(["Calibrat"])
    expect(page).to_have_url(re.compile(r"doc=doc_\w+&at=\d+-\d+"))
    keep("reader-1440-light")


def test_a_document_is_one_step_forth_and_one_back_in_the_browser(goto):
    page = goto(f"/?q={QUESTION}")
    page.locator(".card .title").first.click()
    drawer, opened = page.locator(".st-key-pane_inspector"), re.compile("[?&](doc|at)=")
    expect(drawer).to_be_visible()
    page.go_back()
    expect(drawer).to_have_count(0)
    expect(page).not_to_have_url(opened)
    page.go_forward()
    expect(drawer).to_be_visible()
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(opened)
    page.go_back()
    expect(drawer).to_be_visible()


def test_a_press_opens_what_lay_under_it_although_other_hits_arrive_before_its_release(goto):
    page = goto(f"/?q={QUESTION}&s=keyword&s=vector")
    pressed = page.locator(".card").first
    expect(pressed.locator(".title")).to_contain_text("Tide gauge")
    document = page.evaluate("card => card.hit.document", pressed.element_handle())
    pressed.hover()
    page.mouse.down()
    page.get_by_label("Question").fill("stilling well")
    page.get_by_label("Question").press("Enter")
    expect(page).to_have_url(re.compile(r"q=stilling(\+|%20)well"))
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.mouse.up()
    expect(page).to_have_url(re.compile(f"doc={document}"))
    page.keyboard.press("Escape")
    expect(page.locator(".card .title").first).to_contain_text("Stilling well")


def test_a_press_next_to_the_cards_holds_the_board_no_longer_than_it_lasts(goto):
    page = goto(f"/?q={QUESTION}&s=keyword&s=vector")
    page.locator(".head").first.hover()
    page.mouse.down()
    page.mouse.move(5, 5)
    page.mouse.up()
    page.get_by_label("Question").fill("stilling well")
    page.get_by_label("Question").press("Enter")
    expect(page.locator(".card .title").first).to_contain_text("Stilling well")


def test_an_address_brings_back_the_opened_document(goto, filled):
    document = next(entry for entry in filled.documents.list() if entry.path == "well.md")
    page = goto(f"/?q={QUESTION}&doc={document.id}&at=0-15")
    expect(page.locator(".st-key-pane_inspector")).to_contain_text("Stilling well")
    expect(page.locator(".reader .found").first).to_be_in_viewport()


def test_whatever_a_passage_holds_is_text(goto):
    page = goto("/?q=gauge script alert")
    expect(page.locator(".card .title", has_text="<script>alert(1)</script>").first).to_be_visible()
    expect(page.locator(".text", has_text="<img src=x").first).to_be_visible()
    assert page.locator(".card img").count() == 0
    assert page.title() != "x"


def test_the_question_and_the_scope_are_there_again_after_another_page(goto):
    page = goto(f"/?q={QUESTION}&tag=sea")
    expect(page.locator(".card").first).to_be_visible()
    page.get_by_role("link", name="System").click()
    expect(page.get_by_role("heading", name="System")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/system\?tag=sea$"))
    page.get_by_role("link", name="Compare").click()
    expect(page.get_by_label("Question")).to_have_value(QUESTION)
    expect(page.locator(".card").first).to_be_visible()
    expect(page.locator(".st-key-scopebar")).to_contain_text("#sea")


def test_a_language_of_the_scope_follows_to_another_page_and_through_the_box_that_finds(goto):
    page = goto(f"/?q={QUESTION}&language=english")
    expect(page.locator(".card").first).to_be_visible()
    page.get_by_role("link", name="System").click()
    expect(page).to_have_url(re.compile(r"/system\?language=english$"))
    expect(page.locator(".st-key-scopebar")).to_contain_text("English")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find").fill("harbour")
    page.get_by_role("option", name="Source Harbour").first.click()
    expect(page).to_have_url(re.compile(r"/library\?.*language=english"))
    expect(page.get_by_role("heading", name="Harbour").first).to_be_visible()
    page.wait_for_function("window.workbenchShortcuts")  # the shortcuts of a reloaded page
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find").fill("tide gauge")
    page.get_by_role("option", name="Question tide gauge").click()
    expect(page).to_have_url(re.compile(r":\d+/\?q=tide(\+|%20)gauge&language=english$"))


def test_dates_limit_the_scope_and_an_invalid_one_is_reported(goto, keep):
    page = goto(f"/?q={QUESTION}&until=2001-02-03")
    bar = page.locator(".st-key-scopebar")
    expect(bar).to_contain_text("until 3 Feb 2001")
    expect(page.get_by_text("Nothing found").first).to_be_visible()
    bar.get_by_role("button", name="Scope").click()
    popover = page.get_by_test_id("stPopoverBody")
    expect(popover.get_by_text("Until")).to_be_visible()
    keep("scope_dates")
    popover.get_by_role("button", name="Clear scope").click()
    expect(page.locator(".card").first).to_be_visible()
    page = goto(f"/?q={QUESTION}&since=tomorrow")
    expect(page.get_by_text("Invalid date in the address: since=tomorrow. Use YYYY-MM-DD.")).to_be_visible()
    expect(page).not_to_have_url(re.compile("since="))
    expect(page.locator(".card").first).to_be_visible()


def test_a_scope_that_does_not_exist_is_widened_by_one_click(goto):
    page = goto(f"/?q={QUESTION}&project=nowhere")
    expect(page.get_by_text("Project not found: nowhere")).to_be_visible()
    page.get_by_role("button", name="Clear scope").click()
    expect(page.locator(".card").first).to_be_visible()
    expect(page).not_to_have_url(re.compile("project="))


def test_a_database_that_is_down_is_one_sentence_with_a_way_out(page, serve, keep):
    address = serve("postgresql://nobody@127.0.0.1:1/nothing")
    wait_until_up(address)
    page.goto(f"{address}/system")  # the very first visit of a process, and not to the home page
    expect(page.get_by_role("heading", name="Database not available")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("is unreachable; start it or correct WORKBENCH_DATABASE_URL")).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)
    keep("database-down")


def test_a_request_under_a_foreign_name_is_refused(app):
    pool = PoolManager()
    statuses = {name: pool.request("GET", app, headers={"Host": name}).status for name in ("localhost", "evil.example")}
    assert statuses == {"localhost": 200, "evil.example": 400}


def test_a_comparison_is_taken_along_as_a_file_and_as_a_link(goto, keep):
    page = goto(f"/?q={QUESTION}&tag=sea&s=keyword&s=hybrid")
    expect(page.locator(".card").first).to_be_visible()
    page.get_by_role("button", name="Export").click()
    keep("compare-export-1440-light")
    for title, ending in (("Markdown", ".md"), ("JSON", ".json"), ("Notebook", ".ipynb")):
        with page.expect_download() as download:
            page.get_by_role("button", name=title).click()
        assert download.value.suggested_filename.endswith(ending)
        assert "keyword" in download.value.path().read_text()
    page.mouse.move(0, 0)  # not over the link, on which the sign would come by itself
    expect(page.get_by_role("button", name="Copy to clipboard")).to_be_visible()
    address = page.locator(".st-key-export_popover code, [data-testid=stPopoverBody] code").first.inner_text()
    page.goto(address)
    expect(page.locator(".card").first).to_be_visible()
    expect(page.get_by_label("Question")).to_have_value(QUESTION)
    expect(page.locator(".st-key-scopebar")).to_contain_text("#sea")


def _queued(page: Page) -> Locator:
    return page.get_by_role("table", name="Queue").locator("tbody tr")


def test_the_history_brings_back_a_comparison_with_its_strategies(goto, filled):
    filled.history.clear()
    page = goto(f"/?q={QUESTION}&s=keyword&s=vector&queue=history")
    expect(page.locator(".card").first).to_be_visible()
    page.locator(".st-key-strategies").get_by_role(
        "button", name="Keyword"
    ).click()  # another comparison of the same question
    expect(page.locator(".head")).to_have_count(1)
    page.get_by_label("Question").fill("stilling well")
    page.get_by_label("Question").press("Enter")
    expect(page.locator(".card .title").first).to_contain_text("Stilling well")
    page.reload()
    rows = _queued(page)
    expect(rows).to_have_text([re.compile("stilling well"), re.compile("tide gauge"), re.compile("tide gauge")])
    expect(rows.first).to_have_attribute("aria-current", "true")
    rows.last.get_by_role("button").click()
    expect(page.get_by_label("Question")).to_have_value(QUESTION)
    expect(page.locator(".head h2")).to_have_text(["Vector", "Keyword"])


def test_a_comparison_is_saved_found_again_and_removed(goto, filled):
    page = goto(f"/?q={QUESTION}&s=keyword&queue=saved")
    page.get_by_role("button", name="Save this comparison").click()
    expect(_queued(page)).to_contain_text(QUESTION)
    page = goto("/?queue=saved")
    _queued(page).get_by_role("button", name=QUESTION).click()
    expect(page.locator(".head h2")).to_have_text(["Keyword"])
    page.get_by_role("button", name="Remove from saved").click()
    expect(_queued(page)).to_have_count(0)
    assert filled.history.list(saved_only=True) == []


def test_questions_of_agents_that_found_nothing_are_asked_by_a_click(goto, filled):
    empty = ToolCall("search_knowledge_base", datetime.now(UTC), 3.0, 20, query="where is the lighthouse?", results=0)
    filled.tool_calls.add([empty, empty, replace(empty, query="tide gauge", results=3)])
    page = goto("/?queue=agents")
    expect(_queued(page)).to_have_text("where is the lighthouse?2")
    _queued(page).get_by_role("button").click()
    expect(page.get_by_label("Question")).to_have_value("where is the lighthouse?")
    filled.tool_calls.clear()


def test_two_cards_fit_while_judging_and_the_heads_stay_when_the_results_scroll(goto, harbour):
    page = goto(f"/?q={QUESTION}&judge={harbour}&tag=sea")
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(page.locator(".card .grades").first).to_be_visible()
    expect(page.locator(".bump")).not_to_have_attribute("open", "")
    for place in (0, 1):
        expect(page.locator("ol.column").first.locator(".card").nth(place)).to_be_in_viewport(ratio=1)
    page.locator(".st-key-board_scroll").evaluate("pane => { pane.scrollTop = 200; }")
    expect(page.locator(".heads")).to_be_in_viewport(ratio=1)
    expect(page.get_by_label("Question", exact=True)).to_be_in_viewport(ratio=1)


def test_two_cards_fit_while_judging_what_is_not_close_and_the_reason_is_a_click_away(goto, filled, folder):
    sentence = "A sextant measures the angle between the sun and the horizon, and with the time it gives the latitude"
    text = f"# Sextant\n\n{sentence} of a ship. Mirrors bring both into view; turn the drum until the sun touches it."
    filled.ingest(folder({f"{name}.md": text for name in "abc"}), source="Sextants", on_progress=lambda step: None)
    made = TestSetStore(filled).create("On a scale of five", grades=5)
    page = goto(f"/?q=sextant violin lamb bees football gauge&judge={made.id}&look=why")
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(page.locator("ol.column")).to_have_count(4)
    expect(page.locator(".copies summary").first).to_have_text("+2 copies of Sextant")
    expect(page.locator(".bump")).not_to_have_attribute("open", "")
    for column in (0, 1, 2, 3):
        for place in (0, 1):
            expect(page.locator("ol.column").nth(column).locator(".card").nth(place)).to_be_in_viewport(ratio=1)
    second = page.locator("ol.column").first.locator(".card").nth(1).bounding_box()
    assert second["y"] + second["height"] < 900 - 16 - 62  # a job in the tray has room below it
    note = page.locator(".note")  # one for all columns
    expect(note.locator("summary")).to_have_text("Nothing close was found")
    note.locator("summary").press("Enter")
    expect(note).to_have_attribute("open", "")
    expect(note).to_contain_text("(threshold 60%)")
    page.set_viewport_size({"width": 720, "height": 450})  # the same at 200 %
    page.goto(page.url.replace("&look=why", ""))
    expect(page.locator(".card").first).to_be_in_viewport(ratio=0.7)
    expect(page.get_by_role("button", name="Export")).to_be_attached()


def test_two_cards_fit_over_a_job_while_judging_and_its_bar_is_never_hidden(goto, filled, folder):
    text = "# Compass\n\nA compass shows the north; turn the rose until the needle is on it, then read the bearing."
    filled.ingest(folder({f"{name}.md": text for name in "abc"}), source="Compasses", on_progress=lambda step: None)
    made = TestSetStore(filled).create("A test set with a long title", grades=5)
    pages = [(f"{place}.md", b"# Log\n\n" + b"word another thing. " * 5_000) for place in range(60)]
    work = filled.jobs.enqueue_ingest(files=pages, source="Logs", title="Long work")
    for look in ("&look=why", ""):
        page = goto(f"/?q=compass violin lamb bees football gauge&judge={made.id}{look}")
        expect(page.locator("ol.column")).to_have_count(4)
        expect(page.locator(".note summary")).to_have_text("Nothing close was found")
        tray = page.locator(".st-key-tray")
        for width in (1440, 1280, 1100):
            page.set_viewport_size({"width": width, "height": 900})
            expect(tray.get_by_test_id("stProgressBarTrack")).to_be_in_viewport(ratio=0.4)
            for place in (0, 1):
                expect(page.locator("ol.column").first.locator(".card").nth(place)).to_be_in_viewport(ratio=1)
            board = page.locator(".st-key-board_scroll").bounding_box()
            assert board["y"] + board["height"] <= tray.bounding_box()["y"]
    page.set_viewport_size({"width": 720, "height": 450})
    expect(tray.get_by_test_id("stProgressBarTrack")).to_be_in_viewport(ratio=0.4)
    filled.jobs.cancel(work.id)
    filled.jobs.wait(work.id, timeout=60)
    filled.jobs.put_away(work.id)


def test_four_columns_fit_beside_the_inspector_while_the_queue_is_a_rail(goto):
    page = goto(f"/?q={QUESTION}&look=figures")
    expect(page.locator(".head")).to_have_count(4)
    board, queue = page.locator(".st-key-board_scroll"), page.locator(".st-key-pane_queue")
    for width in (1440, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("(board) => board.scrollWidth <= board.clientWidth", arg=board.element_handle())
        assert queue.bounding_box()["width"] < 40
    queue.hover()
    page.wait_for_function("(queue) => queue.clientWidth > 260", arg=queue.element_handle())
    page.get_by_label("Question").focus()
    page.mouse.move(700, 20)
    page.wait_for_function("(queue) => queue.clientWidth < 40", arg=queue.element_handle())
    page.get_by_role("radio", name="History").focus()  # by keyboard, too
    page.wait_for_function("(queue) => queue.clientWidth > 260", arg=queue.element_handle())


def test_the_results_of_before_are_dim_while_a_search_runs(goto, browser_database):
    page = goto(f"/?q={QUESTION}")
    expect(page.locator(".card").first).to_be_visible()
    with psycopg.connect(browser_database) as lock:  # the search waits for it
        lock.execute("LOCK TABLE data_main IN ACCESS EXCLUSIVE MODE")
        page.get_by_label("Question").fill("stilling well")
        page.get_by_label("Question").press("Enter")
        page.wait_for_function("() => getComputedStyle(document.querySelector('.st-key-board_scroll')).opacity < 0.5")
    expect(page.locator(".card .title").first).to_contain_text("Stilling well")
    expect(page.locator(".st-key-board_scroll")).to_have_css("opacity", "1")


def test_on_a_phone_the_panes_are_tabs(goto):
    page = goto(f"/?q={QUESTION}")
    page.set_viewport_size({"width": 390, "height": 844})
    queue, inspector = page.locator(".st-key-pane_queue"), page.locator(".st-key-pane_inspector")
    expect(page.locator(".card").first).to_be_visible()
    expect(queue).to_be_hidden()
    page.locator(".card .title").first.click()
    expect(inspector.locator(".reader")).to_be_visible()
    expect(page.locator(".card").first).to_be_hidden()
    results = page.locator(".card").first
    for name, pane, shown in (
        ("Queue", "queue", queue),
        ("Results", "results", results),
        ("Answer · Why", "inspector", inspector),
    ):
        page.get_by_role("radio", name=name, exact=True).click()
        expect(shown).to_be_visible()
        expect(page).to_have_url(re.compile(f"pane={pane}"))
    page.set_viewport_size({"width": 1440, "height": 1000})
    for shown in (queue, page.locator(".card").first, inspector):
        expect(shown).to_be_visible()
    expect(page.get_by_role("radio", name="Results", exact=True)).to_be_hidden()


def test_on_a_phone_the_answer_is_one_tap_away_and_a_long_question_is_whole(goto):
    question = "How is the level of the sea recorded by the tide gauge in the harbour?"
    page = goto(f"/?q={question}&s=keyword")
    expect(page.locator(".card").first).to_be_visible()
    whole = page.locator("p.wb-asked")
    expect(whole).to_be_hidden()  # the field shows all of it
    page.set_viewport_size({"width": 390, "height": 844})
    expect(whole).to_have_text(question)
    expect(whole).to_be_visible()
    field = page.locator(".st-key-question")
    expect(field).to_have_css("opacity", "0")  # the part that fits is not shown a second time
    box = whole.bounding_box()
    page.mouse.click(box["x"] + 40, box["y"] + box["height"] - 15)
    expect(field.locator("input")).to_be_focused()
    expect(field).to_have_css("opacity", "1")
    expect(whole).to_be_hidden()
    page.get_by_role("radio", name="Answer · Why", exact=True).click()
    expect(page.get_by_role("region", name="Answer")).to_be_visible()


def test_at_200_percent_the_first_card_is_on_the_screen_and_the_strategies_are_one_line(goto):
    page = goto(f"/?q={QUESTION}")
    page.set_viewport_size({"width": 720, "height": 450})  # a window of 1440 x 900
    expect(page.locator(".card").first).to_be_visible()
    page.wait_for_function(
        "(card) => card.getBoundingClientRect().top < 380", arg=page.locator(".card").first.element_handle()
    )
    assert page.get_by_role("toolbar", name="Strategies").bounding_box()["height"] < 50
    page.wait_for_function("(board) => board.scrollWidth <= board.clientWidth",
                           arg=page.locator(".st-key-board_scroll").element_handle())  # fmt: skip
    expect(page.get_by_role("button", name="Settings")).to_be_hidden()  # a tab of the inspector


def test_at_200_percent_the_first_card_is_on_the_screen_while_judging(goto, harbour):
    page = goto(f"/?q={QUESTION}&judge={harbour}")
    page.set_viewport_size({"width": 720, "height": 450})
    card = page.locator(".card").first
    expect(card.locator(".grades")).to_be_visible()
    expect(page.locator(".judging-hint")).to_be_hidden()
    expect(card).to_be_in_viewport(ratio=0.9)
