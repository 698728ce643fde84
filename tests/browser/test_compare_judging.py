"""Judging hits in a real browser: by key and click, quickly and repeatedly, into a test set."""

import re
from uuid import uuid4

import pytest
from looks import axe_findings, pick_option
from playwright.sync_api import expect

from evals.measures.metrics import measure_rankings
from evals.test_sets.store import TestSetStore

pytestmark = pytest.mark.browser
KEYS = "1230"


def judged(filled, title):
    """Return the contents of the test set: question -> (grade, quote) of every judgment."""
    dataset = TestSetStore(filled).load(title)
    return {q.text: [(j.grade, j.quote) for j in dataset.judgments if j.question_id == q.id] for q in dataset.questions}


def settled(page, count):
    """Return the page once all marks are stored and a fresh visit shows them."""
    page.wait_for_function(
        "count => { const root = [...document.querySelectorAll('*')].map(e => e.shadowRoot?.querySelector('.root')"
        " ?? (e.matches('.root') ? e : null)).find(r => r?.pending);"
        " return root && root.pending.length === 0 && root.data.judging.kept >= count }",
        arg=count,
    )


def open_board(page, question):
    """Return the page once its board shows the results for this question."""
    page.wait_for_function(
        "question => [...document.querySelectorAll('*')].some(e => (e.shadowRoot?.querySelector('.root') ?? e)"
        ".data?.judging?.about.endsWith(' ' + question))",
        arg=question,
    )


def test_a_test_set_is_created_while_judging_and_the_address_keeps_it(goto, filled, keep):
    page = goto("/?q=tide gauge")
    expect(page.get_by_text("then judge results with 1, 2, 3")).to_be_visible()
    page.get_by_label("New test set").fill("Harbour questions")
    page.get_by_role("button", name="Create and judge").dblclick()
    expect(page.get_by_text("Judging for Harbour questions")).to_be_visible()
    expect(page.get_by_role("button", name="Create and judge")).to_have_count(0)  # it no longer covers the board
    made = TestSetStore(filled).info("Harbour questions")
    expect(page).to_have_url(re.compile(f"judge={made.id}"))
    expect(page.locator(".card .grades").first).to_be_visible()
    expect(page.locator(".card .title").first).to_be_focused()  # the keys work at once
    keep("judging-1440-light")


def test_a_test_set_of_the_same_title_in_another_scope_is_another_one(goto, filled):
    title = f"Twice {uuid4().hex[:6]}"
    whole = TestSetStore(filled).create(title)
    source = next(entry.id for entry in filled.sources.list() if entry.title == "Harbour")
    page = goto(f"/?q=tide gauge&source={source}")
    page.get_by_label("New test set").fill(title)
    page.get_by_role("button", name="Create and judge").click()
    expect(page.get_by_text(f"Judging for {title} (2)")).to_be_visible()
    made = TestSetStore(filled).info(f"{title} (2)")
    assert (made.scope.scope.sources, whole.scope.scope.sources) == ((source,), None)


def test_a_test_set_is_chosen_and_judging_is_turned_off_again(goto, filled):
    made = TestSetStore(filled).create(f"Chosen {uuid4().hex[:6]}")
    page = goto("/?q=tide gauge")
    pick_option(page.get_by_role("combobox", name="Test set"), made.title, exact=True)
    expect(page.locator(".judging-hint")).to_be_visible()
    page.get_by_role("button", name="Stop judging").click()
    expect(page.locator(".judging-hint")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("judge="))


def test_keys_on_the_hovered_and_the_focused_card_judge_its_span(goto, filled):
    made = TestSetStore(filled).create("By keys")
    page = goto(f"/?q=stilling well&judge={made.id}&s=keyword&s=hybrid")
    cards = page.locator("ol.column").nth(1).locator(".card")
    cards.first.hover()
    page.keyboard.press("1")
    expect(cards.first.get_by_role("button", name="relevant", exact=True)).to_have_attribute("aria-pressed", "true")
    cards.nth(1).locator(".title").focus()
    page.keyboard.press("3")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("2")
    settled(page, 3)
    found = judged(filled, "By keys")["stilling well"]
    assert sorted(grade for grade, _ in found) == [0, 1, 2]
    text = next(quote for grade, quote in found if grade == 2)
    assert "stilling well keeps waves from the record" in text
    page.keyboard.press("0")
    settled(page, 4)
    assert sorted(grade for grade, _ in judged(filled, "By keys")["stilling well"]) == [0, 2]
    page.reload()
    expect(cards.first).to_have_attribute("data-judged", "2")


def test_every_mark_of_a_quick_hand_is_kept_and_nothing_is_drawn_again(goto, filled, keep):
    made = TestSetStore(filled).create("Quick")
    page = goto(f"/?q=gauge bread&judge={made.id}&s=vector&s=keyword&s=hybrid&s=rerank")
    cards = page.locator("ol.column").last.locator(".card")
    expect(cards.first).to_be_visible()
    page.set_viewport_size({"width": 700, "height": 500})
    cards.first.evaluate("card => { window.mine = card; card.querySelector('.title').focus(); card.scrollIntoView(); }")
    place = (
        "[window.mine.isConnected, window.mine.getBoundingClientRect().top, window.mine.getBoundingClientRect().left]"
    )
    before = page.evaluate(place)
    for number in range(12):  # faster than marks are stored; the last one of each card counts
        page.keyboard.press("1230"[number % 4])
    page.keyboard.down("3")
    for _ in range(20):
        page.keyboard.down("3")  # held down: the browser repeats it
    page.keyboard.up("3")
    settled(page, 13)
    assert page.evaluate(place) == before
    cards.first.get_by_role("button", name="partly").dblclick()
    settled(page, 14)
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert [grade for grade, _ in judged(filled, "Quick")["gauge bread"]] == [1]
    page.emulate_media(color_scheme="dark")
    assert TestSetStore(filled).info("Quick").version <= 2 + 14
    keep("judging-700-dark")


def test_a_judgment_shows_quietly_on_a_passage_that_another_index_cut_differently(goto, filled, keep):
    made = TestSetStore(filled).create("Through an overlap")
    filled.indexes.create("by_sentences", chunker="sentence", options={"size": 20})
    filled.indexes.build("by_sentences")
    page = goto(f"/?q=gauge every month&judge={made.id}&s=keyword&on=main&on=by_sentences")
    whole, pieces = (page.locator("ol.column").nth(place).locator(".card") for place in (0, 1))
    judge_of = whole.filter(has_text="Tide gauge").first
    judge_of.get_by_role("button", name="relevant", exact=True).click()
    through = pieces.get_by_text("judged relevant via an overlapping passage")
    expect(through.first).to_be_visible()
    settled(page, 1)
    assert len(judged(filled, made.title)["gauge every month"]) == 1  # nothing was written for the others
    page.reload()
    expect(through.first).to_be_visible()
    expect(page.locator(".tally").nth(1)).not_to_contain_text("0 of")
    keep("judging-through-1440-light")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(
        "() => document.querySelector('.st-key-strategybar').getBoundingClientRect().left === Math.min(..."
        "[...document.querySelectorAll('*')].flatMap(e => [...(e.shadowRoot ?? e).querySelectorAll('.head')])"
        ".map(head => head.getBoundingClientRect().left))"
    )  # the first column starts at the common left edge
    keep("judging-through-390-light")
    of_its_own = through.first.locator("xpath=ancestor::li")
    of_its_own.get_by_role("button", name="not relevant").click()  # a judgment of its own goes before what overlaps
    settled(page, 1)  # a new visit counts from the beginning
    assert sorted(grade for grade, _ in judged(filled, made.title)["gauge every month"]) == [0, 2]
    filled.indexes.delete("by_sentences")


def test_a_test_set_that_is_gone_is_reported_and_the_board_shows_what_is_kept(goto, filled):
    made = TestSetStore(filled).create("Short lived")
    page = goto(f"/?q=tide&judge={made.id}")
    expect(page.locator(".grades").first).to_be_visible()
    TestSetStore(filled).delete("Short lived")
    page.locator(".card").first.get_by_role("button", name="partly").click()
    expect(page.get_by_text("Test set not found").first).to_be_visible()
    expect(page.locator('.grade[aria-pressed="true"]')).to_have_count(0)


def test_who_replaces_a_grade_that_another_browser_stored_sees_it(goto, filled, page, app):
    store = TestSetStore(filled)
    made = store.create(f"Two browsers {uuid4().hex[:6]}")
    other = page.context.new_page()
    for one in (page, other):
        one.goto(f"{app}/?q=stilling well&judge={made.id}&s=keyword")
        expect(one.locator(".card .grades").first).to_be_visible()
    for one, name in ((page, "relevant"), (other, "not relevant")):
        one.locator(".card").first.get_by_role("button", name=name, exact=True).click()
        settled(one, 1)
    expect(other.get_by_test_id("stToast")).to_contain_text('"Stilling well" was relevant')
    other.locator(".card").first.get_by_role("button", name="partly").click()  # its own grade needs no notice
    expect(other.locator(".card").first).to_have_attribute("data-judged", "1")
    settled(other, 2)
    expect(other.get_by_text("was not relevant")).to_have_count(0)
    expect(page.get_by_test_id("stToast")).to_have_count(0)
    other.close()


def test_each_column_shows_its_score_so_far_as_evaluation_measures_it(goto, filled, keep):
    store = TestSetStore(filled)
    made = store.create("Live")
    page = goto(f"/?q=stilling well&judge={made.id}&s=keyword&s=vector")
    cards = page.locator("ol.column").first.locator(".card")
    expect(cards.first).to_be_visible()
    expect(page.locator(".tally .live")).to_have_count(0)  # nothing relevant is judged
    for place, key in ((1, "1"), (2, "2"), (0, "3")):
        cards.nth(place).locator(".title").focus()
        page.keyboard.press(key)
    settled(page, 3)
    dataset = store.load("Live")
    qrels = {"q": dataset.qrels[dataset.questions[0].id]}
    columns = page.evaluate(
        "[...document.querySelectorAll('*')].map(e => e.shadowRoot?.querySelector('.root') ?? e)"
        ".find(e => e.pending).data.columns.map(c => c.hits.map(h => h.document))"
    )
    expect(page.locator(".judging-hint")).to_contain_text("uses each document's best passage")
    depth = min(10, max(len(documents) for documents in columns))
    for column, documents in enumerate(columns):
        value = measure_rankings(qrels, {"q": documents}, [f"ndcg@{depth}"])[f"ndcg@{depth}"]["q"]
        told = page.locator(".tally .live").nth(column)
        expect(told).to_have_text(f"nDCG@{depth} {value:.2f}".replace(" 0.", " ."))
    keep("judging-live-1440-light")


def test_a_round_goes_from_question_to_question_by_key_and_ends_in_an_experiment(goto, filled, keep):
    store = TestSetStore(filled)
    made = store.create("Round")
    store.add_questions(made.id, ["tide gauge", "stilling well", "bread oven"])
    page = goto(f"/?q=stilling well&judge={made.id}&s=keyword&s=hybrid")
    cards = page.locator("ol.column").first.locator(".card")
    expect(page.get_by_text("0 of 3 questions judged")).to_be_visible()
    for question, done in (("stilling well", 1), ("bread oven", 2), ("tide gauge", 3)):
        expect(page.get_by_label("Question", exact=True)).to_have_value(question)
        open_board(page, question)
        cards.first.locator(".title").focus()
        page.keyboard.press("1")
        expect(page.get_by_text(f"{done} of 3 questions judged")).to_be_visible()
        page.keyboard.press("n")
    expect(page.get_by_role("button", name="Next unjudged")).to_be_disabled()
    listed = page.get_by_role("table", name="Queue").locator("tbody tr")
    expect(listed).to_have_count(3)
    expect(listed.and_(page.locator("[aria-current]"))).to_contain_text("tide gauge")
    keep("judging-round-1440-light")
    page.get_by_role("button", name="Run experiment").click()
    expect(page.get_by_text("4 runs × 3 questions")).to_be_visible()


def test_a_question_without_a_relevant_result_is_judged_but_not_run(goto, filled):
    store = TestSetStore(filled)
    made = store.create("Half relevant")
    one, two = store.add_questions(made.id, ["tide gauge", "stilling well"])
    document = filled.documents.list()[0].id
    store.judge(made.id, one.id, document, "relevant")
    store.judge(made.id, two.id, document, "not")
    page = goto(f"/?q=tide gauge&judge={made.id}&s=keyword")
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(
        page.get_by_text("2 of 2 questions judged. An experiment runs the 1 with a relevant result.")
    ).to_be_visible()
    expect(page.get_by_role("button", name="Run experiment")).to_be_in_viewport(ratio=1)


def test_the_strategies_stay_on_one_line_while_judging_with_an_answer(goto, filled):
    made = TestSetStore(filled).create(f"A title as long as titles of test sets often are {uuid4().hex[:6]}")
    page = goto(f"/?q=tide gauge&judge={made.id}&look=answer&s=keyword&s=hybrid")
    expect(page.locator(".judging-hint")).to_be_visible()
    expect(page.get_by_role("region", name="Answer")).to_be_visible()
    page.wait_for_function(
        "() => new Set([...document.querySelectorAll('.st-key-strategybar [role=toolbar] button')]"
        ".map((pill) => pill.offsetTop)).size === 1"
    )
    goto(f"/?judge={made.id}")  # without a question, no board shows the test set
    expect(page.get_by_role("combobox", name="Test set")).to_have_value(made.title)


def test_the_board_has_no_fault_on_a_phone_while_one_judges(goto, filled):
    made = TestSetStore(filled).create(f"On a phone {uuid4().hex[:6]}")
    page = goto(f"/?q=tide gauge&judge={made.id}")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".card .grades").first).to_be_visible()
    assert axe_findings(page) == []


def test_two_raters_judge_blind_on_a_scale_of_four_and_their_disagreement_is_shown(goto, filled, keep):
    store = TestSetStore(filled)
    made = store.create("Two raters", grades=4)
    page = goto(f"/?q=stilling well&judge={made.id}&s=keyword")
    cards = page.locator("ol.column").first.locator(".card")
    for name, key in (("Ada", "1"), ("Bo", "4")):
        page.get_by_role("textbox", name="Your name").fill(name)
        page.get_by_role("textbox", name="Your name").press("Enter")
        page.get_by_role("textbox", name="Your name").blur()  # the keys are for the cards now
        expect(page).to_have_url(re.compile(f"rater={name}"))
        expect(cards.first).to_have_attribute("data-judged", "")  # what the other one said is not shown
        page.mouse.move(0, 0)  # a pointer that rests does not choose a card
        cards.first.hover()
        page.keyboard.press(key)
        expect(cards.first).to_have_attribute("data-judged", "3" if name == "Ada" else "0")
        settled(page, 1)
    page.reload()
    expect(page.get_by_text("Disagreements to settle: 1.")).to_be_visible()
    expect(page.get_by_role("textbox", name="Your name")).to_have_value("Bo")
    keep("judging-two-raters-1440-light")
    assert [(one.rater, one.judgment.grade) for one in store.ratings(made.id)] == [("Ada", 3), ("Bo", 0)]
