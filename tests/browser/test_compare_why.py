"""The tab Why of the inspector: the explanation of a passage, and the trace of an expected document."""

import re

import pytest
from looks import assert_fits, axe_findings
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
QUESTION = "how is the level of the sea recorded by the gauge?"
SIZES = {1440: 1000, 1024: 800, 390: 844}


@pytest.fixture
def ranked(filled):
    """Return the hits of Rerank as shown on the board."""
    return filled.search(QUESTION, "rerank", 10)


@pytest.fixture
def linked(goto, ranked):
    """Open the panel of the second hit by its address."""

    def go(further: str = ""):
        page = goto(f"/?q={QUESTION}&s=keyword&s=rerank&why={ranked[1].passage_id}&by=rerank{further}")
        expect(page.locator(".st-key-pane_inspector")).to_contain_text("Score breakdown")
        return page

    return go


def test_a_card_opens_the_panel_and_its_contributions_add_up_to_the_score(goto, ranked, keep):
    page = goto(f"/?q={QUESTION}&s=keyword&s=rerank")
    page.locator("ol.column").nth(1).get_by_role("button", name="Why").first.click()
    panel = page.locator(".st-key-pane_inspector")
    own = panel.locator(".barrow.own")
    expect(own.locator(".total")).to_have_text(f"{ranked[0].score:.3f}")
    adds = own.locator("[data-adds]").evaluate_all("(parts) => parts.map((part) => Number(part.dataset.adds))")
    assert sum(adds) == pytest.approx(ranked[0].score, abs=0.001) and len(adds) >= 3
    expect(panel.get_by_role("listitem").filter(has_text="Meaning").first).to_contain_text("cosine")
    expect(page).to_have_url(re.compile(rf"why={ranked[0].passage_id}&by=rerank"))
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page).not_to_have_url(re.compile("why="))
    expect(page.locator("ol.column").nth(1).locator(".title").first).to_be_focused()


def test_the_panel_shows_what_a_ranker_weighed_and_what_each_feature_adds(goto, filled, keep):
    hit = filled.search(QUESTION, "learned", 10)[0]
    why = filled.explain(QUESTION, hit.passage_id, strategy="learned")
    page = goto(f"/?q={QUESTION}&s=learned&why={hit.passage_id}&by=learned")
    rows = page.locator(".st-key-pane_inspector").locator(".feature")
    weighed = [view for view in why.features if view.weight]
    expect(rows).to_have_count(len(weighed))
    expect(rows.first).to_contain_text(weighed[0].title)
    expect(rows.first.locator(".total")).to_have_text(f"{round(100 * weighed[0].share)}%")
    for width, height in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        assert_fits(page, f"the features at {width}", page.locator(".st-key-pane_inspector").locator(".features"))
    keep("why_features")


def test_the_items_of_a_list_keep_their_dots_in_the_panel(goto, filled, tmp_path):
    (tmp_path / "moorings.md").write_text("# Moorings\n\nA mooring holds a buoy:\n\n- a chain\n- a sinker of iron\n")
    source = filled.ingest(tmp_path, source="Lists of moorings", on_progress=lambda _: None).source_id
    try:
        page = goto("/?q=mooring sinker&s=keyword")
        page.locator(".card").filter(has_text="Moorings").get_by_role("button", name="Why").first.click()
        item = page.locator(".st-key-pane_inspector").locator(".rendered li").first
        expect(item).to_have_css("list-style-type", "disc")
        expect(page.locator(".st-key-pane_inspector").locator(".rendered ul").first).not_to_have_css(
            "padding-left", "0px"
        )
    finally:
        filled.sources.delete(source)


def test_a_link_opens_the_panel_and_it_turns_to_the_neighbouring_hit(linked, ranked):
    page = linked()
    panel = page.locator(".st-key-pane_inspector")
    expect(panel.locator(".barrow.own .rank")).to_have_text("2")
    panel.get_by_role("button", name=re.compile("^1")).click()
    expect(panel.locator(".barrow.own .rank")).to_have_text("1")
    expect(page).to_have_url(re.compile(f"why={ranked[0].passage_id}"))
    page.reload()
    expect(panel.locator(".barrow.own .rank")).to_have_text("1")
    panel.get_by_role("button", name="Open document").click()
    expect(page.locator(".reader .found").first).to_be_in_viewport()


def test_the_panel_turns_to_another_columns_view_of_the_passage(linked, filled, ranked):
    page = linked()
    panel = page.locator(".st-key-pane_inspector")
    in_words = filled.explain(QUESTION, ranked[1].passage_id, strategy="keyword")
    expect(panel.get_by_role("button", name="Rerank")).to_have_attribute("aria-pressed", "true")
    panel.get_by_role("button", name="Keyword").click()
    expect(panel.get_by_role("button", name="Keyword")).to_have_attribute("aria-pressed", "true")
    expect(panel.locator(".barrow.own .total")).to_have_text(f"{in_words.score:.3f}")
    expect(page).to_have_url(re.compile("by=keyword"))


def test_pointing_at_a_word_of_the_question_lights_its_likes_in_the_passage(goto, filled):
    [hit] = filled.search("calibrate the float", "rerank", 1)
    page = goto(f"/?q=calibrate the float&s=rerank&why={hit.passage_id}&by=rerank")
    panel = page.locator(".st-key-pane_inspector")
    word = panel.get_by_role("button", name="float")
    word.hover()
    expect(panel.locator(".piece.on").first).to_have_text("float")
    expect(panel.locator(".likes")).to_have_text(re.compile(r"^float matches float 1\.00"))
    panel.locator(".top h2").hover()
    expect(panel.locator(".piece.on")).to_have_count(0)
    panel.get_by_role("button", name="calibrate").focus()
    expect(panel.locator(".piece.on").first).to_have_text("Calibrate")
    expect(panel.get_by_role("button", name="the", exact=True)).to_have_count(0)


def test_the_passage_is_rendered_with_its_words_marked_and_raw_at_one_click(goto, filled, keep):
    [hit] = filled.search("calibrate the float", "rerank", 1)
    page = goto(f"/?q=calibrate the float&s=rerank&why={hit.passage_id}&by=rerank")
    passage = page.locator(".st-key-pane_inspector").locator(".passage")
    heading = passage.locator(".rendered").get_by_role("heading", name="Calibrating")
    expect(heading.locator("mark")).to_have_text("Calibrating")
    expect(passage.locator(".rendered p mark").filter(has_text="float")).to_be_visible()
    keep("why-rendered-1440-light")
    page.get_by_role("button", name="Raw text").click()
    expect(passage.locator(".read")).to_contain_text("## Calibrating")
    page.get_by_role("button", name="Rendered").click()
    expect(heading).to_be_visible()


def test_matched_words_have_their_shares_and_other_strategies_their_ranks(linked, filled, ranked):
    why = filled.explain(QUESTION, ranked[1].passage_id, strategy="rerank")
    panel = linked().locator(".st-key-pane_inspector")
    expect(panel.locator(".term")).to_have_count(len(why.terms))
    expect(panel.locator(".term .total").first).to_have_text(f"{round(100 * why.terms[0].share)}%")
    expect(panel.locator(".rankrow")).to_have_count(1 + len(why.elsewhere))
    expect(panel.get_by_role("listitem", name=f"Vector: rank {why.elsewhere['vector']}")).to_be_visible()


def test_an_expected_document_is_searched_by_name_and_the_funnel_reports_where_it_was_dropped(goto, filled, keep):
    [hit] = filled.search("tide gauge", "keyword", 1)
    page = goto(f"/?q=tide gauge&s=keyword&why={hit.passage_id}&by=keyword")
    panel = page.locator(".st-key-pane_inspector")
    box = panel.get_by_role("combobox", name="Expected document")
    box.fill("bread.md")
    expect(panel.get_by_role("option")).to_have_text(["Breadbread.md"])
    box.press("Enter")
    steps = panel.get_by_role("list", name="Trace through the strategy").get_by_role("listitem")
    expect(steps.filter(has_text="dropped here")).to_contain_text("Found")
    expect(steps.last).to_contain_text("not reached")
    expect(steps.last).to_be_in_viewport()
    expect(panel.locator(".verdict").last).to_contain_text("no match by BM25")
    missed = next(document.id for document in filled.documents.list() if document.title == "Bread")
    expect(page).to_have_url(re.compile(f"missed={missed}"))
    keep("why-expected-1440-light")
    page.reload()
    expect(steps.filter(has_text="dropped here")).to_contain_text("Found")
    box.fill("gauge")
    expect(panel.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Escape")  # closes the list and not yet the panel
    expect(panel.get_by_role("option")).to_have_count(0)
    expect(panel).to_be_visible()
    box.fill("no such thing")
    expect(panel.get_by_text("No document has these words")).to_be_visible()


def test_without_a_passage_the_tab_names_how_to_get_one(goto):
    page = goto("/?q=tide gauge&look=why")
    expect(page.locator(".st-key-pane_inspector").get_by_text("Press Why on a result")).to_be_visible()


def test_if_nothing_is_found_an_expected_document_can_still_be_traced(goto):
    page = goto("/?q=zirconium&s=keyword&s=vector")
    page.get_by_role("button", name="Find an expected document").click()
    panel = page.locator(".st-key-pane_inspector")
    box = panel.get_by_role("combobox", name="Expected document")
    expect(box).to_be_visible()
    expect(panel.get_by_text("Press Why on a result")).to_be_hidden()  # there is none
    box.fill("stilling")
    expect(panel.get_by_role("option")).to_have_count(1)
    box.press("Enter")
    expect(panel.locator(".step.lost")).to_contain_text("dropped here")
    expect(panel.locator(".barrow")).to_have_count(0)
    panel.get_by_role("button", name="Explain its best passage").click()
    expect(panel).to_contain_text("Not retrieved")


def test_a_passage_that_runs_from_right_to_left_is_laid_out_so(goto, filled, folder, keep):
    project = filled.projects.create("Arabic tides")
    files = folder({"madd.md": "# المد والجزر\n\nيسجل المقياس مستوى البحر كل ست دقائق."})
    filled.ingest(files, source="Arabic tides", project=project.id, on_progress=lambda progress: None)
    question = "مستوى البحر"
    [hit] = filled.search(question, "keyword", 1)
    page = goto(f"/?q={question}&project={project.id}&s=keyword&why={hit.passage_id}&by=keyword")
    panel = page.locator(".st-key-pane_inspector")
    for text in (".read", ".asked", ".top h2"):
        expect(panel.locator(text)).to_have_css("direction", "rtl")
    expect(panel.locator(".read mark").first).to_be_visible()
    keep("why-arabic-1440-light")
    filled.projects.delete(project.id)


def test_whatever_documents_hold_is_text_in_the_panel(goto, filled):
    [hit] = filled.search("gauge script alert", "keyword", 1)
    page = goto(f"/?q=gauge <b>script alert&s=keyword&why={hit.passage_id}&by=keyword&missed={hit.document_id}")
    panel = page.locator(".st-key-pane_inspector")
    expect(panel.locator(".top h2", has_text="<script>alert(1)</script>")).to_be_visible()
    expect(panel.locator(".passage")).to_contain_text("<img src=x onerror=\"document.title='x'\"> & <b>.")
    expect(panel.locator(".asked")).to_have_text("gauge <b>script alert")
    expect(panel.locator(".fell")).to_contain_text("<script>alert(1)</script>")
    assert panel.locator(".root img, .root script, .root b b").count() == 0
    assert page.title() != "x"


def test_what_cannot_be_explained_is_one_sentence(goto):
    page = goto("/?q=tide gauge&s=keyword&why=psg_nowhere&by=keyword")
    expect(page.locator(".st-key-pane_inspector").get_by_role("alert")).to_contain_text(
        "Passage not found: psg_nowhere"
    )
    expect(page.locator(".st-key-pane_inspector").get_by_text("Traceback")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_panel_is_without_findings_and_fits_every_width(linked, filled, page, keep, scheme):
    page.emulate_media(color_scheme=scheme)
    bread = next(document.id for document in filled.documents.list() if document.title == "Bread")
    linked(f"&missed={bread}")
    panel = page.locator(".st-key-pane_inspector")
    expect(panel.locator(".funnel")).to_be_visible()
    assert axe_findings(page) == []
    for width, height in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        expect(panel.locator(".barrow.own")).to_be_visible()
        assert_fits(page, f"why at {width}", panel.locator(".why"))
        keep(f"why-{width}-{scheme}")


def test_a_hit_whose_document_was_deleted_reports_it_and_the_board_is_asked_again(goto, filled, tmp_path):
    (tmp_path / "buoy.md").write_text("# Buoy\n\nThe buoy reports the swell of the outer harbour by radio.")
    gone = filled.ingest(tmp_path, source="Buoys", on_progress=lambda progress: None)
    page = goto("/?q=swell of the outer harbour by radio&s=keyword&s=hybrid")
    expect(page.locator(".card .title").first).to_contain_text("Buoy")
    filled.sources.delete(gone.source_id)
    page.get_by_role("button", name="Why").first.click()
    expect(page.locator(".st-key-pane_inspector")).to_contain_text("its document was changed or deleted")
    page.keyboard.press("Escape")
    expect(page.locator(".st-key-pane_inspector")).to_have_count(0)
    expect(page.locator(".card .title", has_text="Buoy")).to_have_count(0)
