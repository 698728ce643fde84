"""The Evaluate page in a real browser: from questions to a leaderboard, single questions, and promotion."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from browser_server import ASKED, FIRST
from looks import assert_fits, pick_option
from playwright.sync_api import Page, expect

from evals.experiments.catalogue import Experiments, make_cells
from evals.experiments.leaderboard import Verdict
from evals.test_set import Judgment, Question
from evals.test_sets.store import TestSetStore
from workbench import Workbench
from workbench.types import Scope

pytestmark = pytest.mark.browser


def test_an_experiment_is_planned_run_and_read_in_the_page(
    goto: Callable[[str], Page], harbour: str, keep: Callable[[str], None]
) -> None:
    page = goto(f"/evaluate?new=1&dataset={harbour}")
    expect(page.get_by_text("4 runs × 4 questions = up to 16 searches")).to_be_visible()
    expect(page.get_by_text("Scope: all your documents")).to_be_visible()
    few = "4 questions cannot show any difference: it takes at least 8, corrected for 6 comparisons."
    expect(page.get_by_text(few)).to_be_visible()
    page.get_by_label("Title").fill("Planned here")
    page.get_by_label("Title").press("Tab")
    page.get_by_text("More options").click()
    page.get_by_text("Answer the questions with quoted sentences").click()
    keep("evaluate_plan")
    page.get_by_role("button", name="Run experiment").click()
    table = page.get_by_role("table", name="Leaderboard")
    expect(table.locator("tbody tr")).to_have_count(4, timeout=90_000)
    told = re.compile("16 questions run, 0 cached|4 questions run, 12 cached")  # three may have been measured before
    expect(page.get_by_text(told)).to_be_visible(timeout=90_000)
    assert "experiment=" in page.url
    keep("evaluate_leaderboard")
    expect(page.get_by_role("table", name="Answers").locator("tbody tr")).to_have_count(4, timeout=90_000)
    expect(page.get_by_text("questions, of whose answers").first).to_be_visible()
    page.get_by_role("button", name="Citation recall").click()
    expect(page.get_by_role("columnheader", name="Citation recall").first).to_be_visible()


def test_the_threshold_of_refusals_is_measured_and_set(
    goto: Callable[[str], Page], filled: Workbench, keep: Callable[[str], None]
) -> None:
    store, experiments = TestSetStore(filled), Experiments(filled)
    made = store.create("With refusals")
    store.add_questions(
        made.id,
        [Question("q0", next(iter(ASKED))), Question("n1", "Who won the cup?", metadata={"answerable": False})],
    )
    title = next(iter(ASKED.values()))
    store.judge(made.id, "q0", next(one.id for one in filled.documents.list() if one.title == title), "relevant")
    done = experiments.run(experiments.create("Refused", made.id, make_cells(["hybrid"]), answers=True).id)
    page = goto(f"/evaluate?experiment={done.id}")
    expect(page.get_by_text(re.compile(r"Hybrid: Refused \d of 1 question"))).to_be_visible(timeout=FIRST)
    page.get_by_text("Refusals of Hybrid by threshold").click()
    expect(page.get_by_role("table", name="Refusals by threshold")).to_be_visible()
    keep("evaluate_refusals")
    page.get_by_role("button", name=re.compile("Refuse below .* in index main")).click()
    expect(page.get_by_text("Answers from index main are refused below a similarity of")).to_be_visible()
    assert (filled.indexes.get("main").nearness or {})["chosen"] == 1
    filled.indexes.set_threshold("main", None)
    experiments.delete(done.id)
    store.delete(made.id)


def test_the_form_says_how_many_questions_a_difference_needs_and_makes_it_a_bar(
    goto: Callable[[str], Page], filled: Workbench, keep: Callable[[str], None]
) -> None:
    store, experiments = TestSetStore(filled), Experiments(filled)
    ids = {one.title: one.id for one in filled.documents.list()}
    made = store.create("Wanted difference")
    asked = [(f"{question} Part {number}", ids[title]) for number in range(3) for question, title in ASKED.items()]
    store.add_questions(made.id, [Question(f"q{place}", text) for place, (text, _) in enumerate(asked)])
    for place, (_, document_id) in enumerate(asked):
        store.judge(made.id, f"q{place}", document_id, "relevant")
    done = experiments.run(experiments.create("Small pilot", made.id, make_cells(["keyword", "vector"])).id)
    page = goto(f"/evaluate?new=1&dataset={made.id}")
    expect(page.get_by_text("Based on Small pilot.")).to_be_visible(timeout=FIRST)
    page.get_by_text("More options").click()
    page.get_by_role("spinbutton", name="Difference to show").fill("0.05")
    page.get_by_role("spinbutton", name="Difference to show").press("Enter")
    expect(page.get_by_text(re.compile(r"A difference of 0\.05 needs about [\d,]+ questions"))).to_be_visible()
    pick_option(page.get_by_role("combobox", name="As a bar over"), "Keyword")
    page.get_by_role("textbox", name="Hypothesis").fill("Vector is better")
    page.get_by_role("textbox", name="Hypothesis").press("Enter")
    keep("evaluate_bar")
    page.get_by_role("button", name="Run experiment").click()
    bars = page.get_by_role("table", name="Bars")
    expect(bars.get_by_text("NDCG@10 at least 0.05 above keyword").first).to_be_visible(timeout=FIRST)
    expect(page.get_by_text("Hypothesis: Vector is better")).to_be_visible()
    keep("evaluate_bars_of_the_form")
    planned = experiments.list(made.id)[0]
    assert {bar.against for bar in planned.planned_bars} == {"keyword"}
    experiments.delete(planned.id)
    experiments.delete(done.id)
    store.delete(made.id)


def test_picking_two_runs_shows_what_changed_and_both_rankings(
    goto: Callable[[str], Page], measured: str, keep: Callable[[str], None]
) -> None:
    page = goto(f"/evaluate?experiment={measured}")
    leaders = page.get_by_role("table", name="Leaderboard")
    expect(leaders.locator("tbody tr")).to_have_count(3)
    for name in ("Keyword", "Vector"):
        button = leaders.get_by_role("button", name=f"Compare {name} question by question")
        if button.get_attribute("aria-pressed") == "false":
            button.click()
            expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_text("the same.").first).to_be_visible()
    expect(leaders.get_by_text("Unjudged@10")).to_be_visible()
    sentence = (
        leaders.locator(".against")
        .filter(has_text="would decide it.")
        .or_(leaders.locator(".against").filter(has_text="Tie: equal on"))
    )
    expect(sentence.first).to_be_visible()
    rankings = page.get_by_role("table", name=re.compile("^Ranking [AB]$"))
    expect(rankings).to_have_count(2)
    expect(rankings.locator(".state.done").first).to_contain_text("relevant")
    rankings.locator(".open").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    keep("evaluate_rankings")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="What keeps waves from the record?", exact=True).click()
    expect(page.locator("strong", has_text="What keeps waves from the record?")).to_be_visible()
    question = "What keeps waves from the record?"
    page.get_by_role("button", name="Explain on Compare").click()
    expect(page.get_by_label("Question", exact=True)).to_have_value(question)
    expect(page.locator(".why .funnel")).to_be_visible()
    expect(page).to_have_url(re.compile("look=why&by=(keyword|vector)&missed=doc_"))


def test_a_cell_of_the_heat_map_shows_its_own_pair_and_a_question_leads_to_why(
    goto: Callable[[str], Page], measured: str, filled: Workbench, keep: Callable[[str], None]
) -> None:
    page = goto(f"/evaluate?experiment={measured}")
    runs = {cell.cell.strategy: cell.run_id for cell in Experiments(filled).results(measured)}
    order = page.get_by_role("table", name="Leaderboard").locator("tbody tr")
    expect(order).to_have_count(3)
    last = order.nth(2).get_attribute("data-id")
    first = order.nth(0).get_attribute("data-id")
    assert {first, last} <= set(runs.values())
    heat = page.locator("[class*=st-key-heat_] canvas").first
    expect(heat).to_be_visible()
    heat.scroll_into_view_if_needed()
    page.wait_for_timeout(1_000)  # the chart is drawn on a canvas, whose content no locator sees
    box = heat.bounding_box()
    assert box is not None
    high = (box["height"] - 54) / 3  # of a row, between the margins of the chart
    page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + 8 + high * 2.5)
    expect(page).to_have_url(re.compile(f"ab={last}&ab={first}"))
    expect(page.locator("tr[aria-current=true]")).to_have_count(1)
    keep("evaluate_heat")
    questions = page.get_by_role("table", name="Questions of A and B")
    expect(questions.locator("tbody tr")).to_have_count(4)
    questions.get_by_role("button", name="Why How do I bake?").click()
    expect(page.get_by_label("Question", exact=True)).to_have_value("How do I bake?")
    expect(page.locator(".why .funnel")).to_be_visible()


def test_the_scope_of_a_test_set_goes_with_it_to_compare_and_back(
    goto: Callable[[str], Page], filled: Workbench, keep: Callable[[str], None]
) -> None:
    source = next(entry.id for entry in filled.sources.list() if entry.title == "Harbour")
    store, experiments = TestSetStore(filled), Experiments(filled)
    made = store.create("Of one source", scope=Scope(sources=(source,)))
    wanted = next(one for one in filled.documents.list() if one.title == "Bread")
    [question] = store.add_questions(made.id, ["How do I bake?"])
    store.judge(made.id, question.id, wanted.id, "relevant")
    measured = experiments.run(experiments.create("Baking", made.id, make_cells(["keyword", "vector"])).id)
    page = goto(f"/evaluate?experiment={measured.id}")
    expect(page.get_by_text("Scope: source Harbour")).to_be_visible()
    expect(page.locator(".st-key-scopebar")).to_have_count(0)
    expect(page.get_by_role("button", name="Find")).to_be_visible()
    page.get_by_role("button", name="Why How do I bake?").click()
    expect(page.locator(".why .funnel")).to_be_visible()
    expect(page.locator(".st-key-scopebar")).to_contain_text("Harbour")
    expect(page).to_have_url(re.compile(f"source={source}"))
    expect(page).to_have_url(re.compile(f"judge={made.id}"))
    page = goto(f"/?q=bake&tag=sea&judge={made.id}")
    expect(page.get_by_text("These results are from tag sea")).to_be_visible()
    keep("judging_other_scope")
    page.get_by_role("button", name="Use its scope").click()
    expect(page).to_have_url(re.compile(f"source={source}"))
    expect(page).not_to_have_url(re.compile("tag=sea"))
    expect(page.get_by_text("These results are from")).to_have_count(0)
    page.get_by_role("button", name="Run experiment").click()
    expect(page.get_by_text("Scope: source Harbour")).to_be_visible()
    store.delete(made.id)


def test_notes_tags_and_a_view_are_saved_and_trends_list_the_experiments(
    goto: Callable[[str], Page], harbour: str, filled: Workbench, keep: Callable[[str], None]
) -> None:
    experiments = Experiments(filled)
    made = experiments.run(experiments.create("To be noted", harbour, make_cells(["keyword", "fuzzy"])).id)
    page = goto(f"/evaluate?experiment={made.id}")
    page.get_by_role("button", name="Notes", exact=True).click()
    pick_option(page.get_by_role("combobox", name="For"), "Fuzzy")
    tags = page.locator(".st-key-note_tags_fuzzy input")  # once the form is that of the run
    tags.fill("candidate")
    tags.press("Enter")
    page.locator(".st-key-note_text_fuzzy textarea").fill("Typos only")
    page.get_by_role("button", name="Save note").click()
    expect(page.get_by_text("Note saved.")).to_be_visible()
    board = page.get_by_role("table", name="Leaderboard")
    expect(board.get_by_text("#candidate · Typos only")).to_be_visible()
    page.get_by_role("radio", name="#candidate").or_(page.get_by_role("button", name="#candidate")).first.click()
    expect(board.locator("tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Save view").click()
    expect(page.get_by_text("View saved.")).to_be_visible()
    assert experiments.get(made.id).view.tag == "candidate"
    page = goto(f"/evaluate?experiment={made.id}")
    expect(board.locator("tbody tr")).to_have_count(1)
    keep("evaluate_view")
    page = goto(f"/evaluate?view=trends&dataset={harbour}")
    expect(page.get_by_text("over time")).to_be_visible()
    page.get_by_role("table", name="Trend").get_by_role("button", name="To be noted").click()
    expect(page).to_have_url(re.compile(f"experiment={made.id}"))
    experiments.delete(made.id)


def test_a_run_file_of_another_system_is_added_to_the_leaderboard(
    goto: Callable[[str], Page], filled: Workbench, harbour: str, keep: Callable[[str], None]
) -> None:
    experiments = Experiments(filled)
    made = experiments.run(experiments.create("With a run file", harbour, make_cells(["keyword"])).id)
    paths = {document.title: document.path for document in filled.documents.list()}
    best = [(f"q{n}", Path(paths[title] or "").name) for n, title in enumerate(ASKED.values())]
    page = goto(f"/evaluate?experiment={made.id}")
    page.get_by_role("button", name="Add run file").click()
    rows = "\n".join(f"{question} Q0 {document} 1 1.0 theirs" for question, document in best[1:])
    page.locator("input[type=file]").set_input_files(
        [{"name": "theirs.trec", "mimeType": "text/plain", "buffer": f"{rows}\nq99 Q0 x 1 1.0 theirs".encode()}]
    )
    page.get_by_role("button", name="Add to leaderboard").click()
    notice = page.get_by_text("Added run file theirs.")
    expect(notice).to_contain_text("theirs has no answer to 1 question")
    expect(notice).to_contain_text("theirs answers 1 question that the test set lacks")
    row = page.get_by_role("table", name="Leaderboard").locator("tbody tr", has_text="theirs")
    expect(row).to_contain_text("0.750")
    expect(row.locator("td.number").nth(2)).to_have_text("–")  # a run file has no times
    expect(row.locator("td.number").nth(3)).to_have_text("–")
    expect(row.get_by_role("button", name="Promote theirs")).to_have_count(0)
    expect(page.get_by_role("button", name="Add to leaderboard")).to_have_count(0)  # the form has closed
    keep("evaluate_run_file")


def test_a_promoted_winner_serves_searches_that_name_no_strategy(
    goto: Callable[[str], Page], measured: str, filled: Workbench
) -> None:
    source = next(entry.id for entry in filled.sources.list() if entry.title == "Harbour")
    store, experiments = TestSetStore(filled), Experiments(filled)
    narrow = store.create("Asked of one source", scope=Scope(sources=(source,)))
    everything = store.load(experiments.get(measured).test_set_id)
    store.add_questions(narrow.id, everything.questions)
    store.judge_all(narrow.id, everything.judgments)
    made = experiments.run(experiments.create("One source", narrow.id, make_cells(["keyword", "vector"])).id)
    page = goto(f"/evaluate?experiment={made.id}")
    expect(page.get_by_text("Scope: source Harbour").first).to_be_visible()
    badge = page.get_by_role("table", name="Leaderboard").locator("tr", has=page.locator(".badge"))
    expect(badge).to_have_count(0)
    page.get_by_role("button", name="Promote Keyword").click()
    expect(page.get_by_role("dialog")).to_contain_text("nDCG@10")
    expect(page.get_by_role("dialog")).to_contain_text("This experiment does not include Rerank, which is live")
    expect(page.get_by_role("radio", name="Measured scope: source Harbour")).to_be_checked()
    page.get_by_role("dialog").get_by_text("All documents", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("measured on source Harbour, so its scores may not hold")
    page.get_by_role("dialog").get_by_text("Measured scope").click()
    page.get_by_role("dialog").get_by_role("button", name="Promote").click()
    expect(page.get_by_text("Keyword is live")).to_be_visible()
    expect(badge).to_contain_text("Keyword")
    assert filled.search("gauge", scope=Scope(sources=(source,))).strategy == "keyword"
    filled.promotions.undo(Scope(sources=(source,)))
    store.delete(narrow.id)


@pytest.mark.usefixtures("measured")
def test_what_has_no_score_is_last_in_either_order(
    goto: Callable[[str], Page], filled: Workbench, harbour: str
) -> None:
    made = Experiments(filled).create("Not run", harbour, make_cells(["keyword"]))
    rows = goto("/evaluate").get_by_role("table", name="Experiments").get_by_role("row")
    for order in ("descending", "ascending"):
        rows.first.get_by_role("button", name="Score").click()
        expect(rows.first.get_by_role("columnheader", name="Score")).to_have_attribute("aria-sort", order)
        expect(rows.last).to_contain_text("Not run")
    Experiments(filled).delete(made.id)


@pytest.mark.usefixtures("harbour")  # without a test set, the form is open
def test_a_new_test_set_keeps_the_scope_of_the_bar(goto: Callable[[str], Page], filled: Workbench) -> None:
    source = next(entry.id for entry in filled.sources.list() if entry.title == "Harbour")
    page = goto(f"/evaluate?view=datasets&source={source}")
    page.get_by_text("New test set").click()
    expect(page.get_by_text("Searches source Harbour. The test set keeps this scope")).to_be_visible()
    page.get_by_role("textbox", name="Title").fill("Made in a scope")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_text("Scope: source Harbour", exact=True)).to_be_visible()
    assert TestSetStore(filled).delete("Made in a scope").scope.scope == Scope(sources=(source,))


def test_a_pool_is_judged_by_keys_without_names_of_strategies(
    goto: Callable[[str], Page], filled: Workbench, keep: Callable[[str], None]
) -> None:
    store = TestSetStore(filled)
    made = store.create("Pool of tides")
    store.add_questions(made.id, ["tide gauge"])
    page = goto(f"/evaluate?open={made.id}")
    page.get_by_role("tab", name="Judge a pool").click()
    page.get_by_role("button", name="Collect documents").click()
    item = page.locator(".st-key-pool_item")
    expect(item).to_contain_text("tide gauge", timeout=FIRST)
    assert not re.search("vector|keyword|hybrid|rerank", item.inner_text(), re.IGNORECASE)
    total = int(re.search(r"0 of (\d+) judged", page.get_by_test_id("stMain").inner_text()).group(1))  # pyright: ignore
    page.keyboard.press("1")
    expect(page.get_by_text(f"1 of {total} judged")).to_be_visible()
    assert [one.grade for one in store.load(made.id).judgments] == [2]
    keep("evaluate_pool")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text(f"0 of {total} judged")).to_be_visible()
    assert store.load(made.id).judgments == ()
    for number in range(total):
        page.keyboard.press("3")
        expect(page.get_by_text(f"{number + 1} of {total} judged")).to_be_visible()
    expect(page.get_by_text("Nothing left to judge.")).to_be_visible()
    assert [one.grade for one in store.load(made.id).judgments] == [0] * total
    store.delete(made.id)


def test_two_raters_judge_one_queue_and_settle_what_they_disagree_on(
    goto: Callable[[str], Page], filled: Workbench, keep: Callable[[str], None]
) -> None:
    store = TestSetStore(filled)
    made = store.create(f"Pool of two raters {time.time_ns()}")  # another for a second try
    store.add_questions(made.id, [{"text": "tide gauge", "turns": ["the tide gauge", "It is a long answer. " * 90]}])
    page = goto(f"/evaluate?open={made.id}")
    page.get_by_role("tab", name="Judge a pool").click()
    queues: list[list[str]] = []
    for rater, keys in (("Ada", "13"), ("Bo", "23")):  # they agree on the second document only
        page.get_by_role("textbox", name="Rater").fill(rater)
        page.get_by_role("textbox", name="Rater").press("Tab")
        page.get_by_role("button", name="Collect documents").click()
        item = page.locator(".st-key-pool_item")
        queue: list[str] = []
        for number, key in enumerate(keys):
            expect(page.get_by_text(re.compile(f"^{number} of "))).to_be_visible(timeout=FIRST)
            expect(item.locator("h3")).to_have_text("tide gauge")
            expect(item.get_by_text("the tide gauge", exact=True)).to_be_visible()
            queue.append(item.locator("strong").inner_text())
            expect(item.get_by_role("textbox", name="Why")).to_have_value("")
            if key == "1":
                item.get_by_role("textbox", name="Why").fill("Names the gauge")
                item.get_by_role("textbox", name="Why").press("Tab")
            page.keyboard.press(key)
        expect(page.get_by_text(re.compile("^2 of "))).to_be_visible()
        queues.append(queue)
        page.get_by_role("button", name="New pool").click()
    assert queues[0] == queues[1]
    page.get_by_role("tab", name="Raters", exact=True).click()
    pair = page.get_by_role("table", name="Agreement of each two raters").locator("tbody tr").first
    expect(pair).to_contain_text(re.compile(r"Ada, Bo.*3 grades.*2.*50%", re.DOTALL))
    keep("evaluate_raters")
    page.get_by_role("table", name="Disagreements").get_by_role("button", name="tide gauge").click()
    expect(page.get_by_role("dialog")).to_contain_text("Ada: relevant, Bo: partly. Until it is settled, partly counts.")
    expect(page.get_by_role("dialog").get_by_text("the tide gauge", exact=True)).to_be_visible()
    expect(page.get_by_role("dialog")).to_contain_text("Ada: Names the gauge")
    page.get_by_role("dialog").get_by_role("textbox", name="Why").fill("It only names it")
    page.get_by_role("dialog").get_by_role("textbox", name="Why").press("Tab")
    keep("evaluate_settle")
    page.get_by_role("dialog").get_by_role("button", name="Partly").click()
    expect(page.get_by_text("Disagreements to settle: 0.")).to_be_visible()
    assert [one.grade for one in store.load(made.id).judgments if one.grade] == [1]
    assert [(one.rater, one.reason) for one in store.ratings(made.id) if one.reason] == [
        ("Ada", "Names the gauge"), ("", "It only names it"),
    ]  # fmt: skip
    store.delete(made.id)


def test_questions_are_typed_in_and_taken_along(
    goto: Callable[[str], Page], filled: Workbench, keep: Callable[[str], None]
) -> None:
    made = TestSetStore(filled).create("Typed questions")
    page = goto(f"/evaluate?open={made.id}")
    page.get_by_role("tab", name="Add").click()
    page.get_by_label("One question per line").fill('What is a gauge?\n\nWhere is "the" well? <script>')
    page.get_by_label("One question per line").press("Tab")
    page.get_by_role("button", name="Add questions").click()
    expect(page.get_by_text("2 questions and 0 judgments added.")).to_be_visible()
    keep("evaluate_dataset")
    page.get_by_role("tab", name="Export and versions").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    text = download.value.path().read_text()
    assert text.splitlines()[0].startswith("question,id")
    assert 'Where is ""the"" well? <script>' in text
    page.get_by_role("tab", name="Add", exact=True).click()
    question = TestSetStore(filled).load(made.id).questions[0]
    document = filled.documents.list(limit=1)[0].id
    page.locator(".st-key-add_csv input").set_input_files(
        {"name": "ada.qrels", "mimeType": "text/plain", "buffer": f"{question.id} 0 {document} 1\n".encode()}
    )
    page.get_by_role("textbox", name="Rater").fill("Ada")
    page.get_by_role("textbox", name="Rater").press("Tab")
    page.get_by_role("button", name="Add from file").click()
    expect(page.get_by_text("0 questions and 1 judgment added.")).to_be_visible()
    page.get_by_role("button", name="Edit", exact=True).click()
    pick_option(page.get_by_role("dialog").get_by_role("combobox", name="Grades"), "not relevant, relevant", exact=True)
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_text('Saved "Typed questions".')).to_be_visible()
    assert TestSetStore(filled).info(made.id).grades == 2
    page.get_by_role("tab", name="Export and versions").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="TREC qrels").click()
    assert download.value.path().read_text() == f"{question.id} 0 {document} 1\n"


def test_an_experiment_can_be_taken_along_as_csv_and_as_a_notebook(goto: Callable[[str], Page], measured: str) -> None:
    page = goto(f"/evaluate?experiment={measured}")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    assert len(download.value.path().read_text().splitlines()) == 4
    with page.expect_download() as download:
        page.get_by_role("button", name="Notebook").click()
    notebook = json.loads(download.value.path().read_text())
    assert any("Words or vectors" in "".join(cell["source"]) for cell in notebook["cells"])


def test_the_hypothesis_and_the_bars_of_a_check_are_shown(
    goto: Callable[[str], Page], filled: Workbench, harbour: str, keep: Callable[[str], None]
) -> None:
    experiments = Experiments(filled)
    made = experiments.run(experiments.create("Checked in CI", harbour, make_cells(["keyword"])).id)
    bars = [("ndcg@10", "at least 0.7", "passed", "0.8 is not below it"), ("hit@1", "at least 2", "failed", "")]
    verdicts = [Verdict(made.title, "keyword", metric, bar, 0.8, *outcome) for metric, bar, *outcome in bars]
    experiments.save_bars(made.id, verdicts)
    experiments.annotate(made.id, note="Hypothesis: Words <b>are</b> enough.")
    page = goto(f"/evaluate?experiment={made.id}")
    expect(page.get_by_text("Hypothesis: Words <b>are</b> enough.")).to_be_visible()
    rows = page.get_by_role("table", name="Bars").locator("tbody tr")
    expect(rows).to_have_text(
        [
            re.compile("Keyword.*passed.*nDCG@10 at least 0.7.*0.8 is not below it"),
            re.compile("Keyword.*failed.*Hit rate@1 at least 2"),
        ]
    )
    keep("evaluate_bars")
    page = goto("/evaluate")
    row = page.get_by_role("table", name="Experiments").locator("tbody tr", has_text="Checked in CI")
    expect(row).to_contain_text("1 bar failed")
    experiments.delete(made.id)


@pytest.mark.parametrize(
    "path",
    ["/evaluate", "/evaluate?view=datasets", "/evaluate?view=trends", "/library", "/crawl", "/connect?view=calls"],
)
def test_no_table_is_cut_on_a_phone(goto: Callable[[str], Page], measured: str, path: str) -> None:
    page = goto(path)
    table = page.locator(".holder").last
    expect(table).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    assert_fits(page, path, table)


def test_the_list_reports_who_won_and_two_experiments_are_side_by_side(
    goto: Callable[[str], Page], measured: str, harbour: str, filled: Workbench, keep: Callable[[str], None]
) -> None:
    experiments = Experiments(filled)
    narrow = experiments.create("Fuzzy joins", harbour, make_cells(["keyword", "fuzzy"]))
    experiments.run(narrow.id)
    page = goto("/evaluate")
    listed = page.get_by_role("table", name="Experiments", exact=True)
    row = listed.locator(f'tr[data-id="{narrow.id}"]')
    winner = experiments.winners([experiments.get(narrow.id)])[narrow.id]
    expect(row.locator("span.strategy")).to_contain_text("Tie of 2 runs" if winner.tied == 2 else winner.label.title())
    interval = row.get_by_role("img", name="95% interval")
    expect(interval).to_be_visible()
    expect(interval).to_have_css("border-bottom-width", "0px")  # the scale runs through the mean, not below it
    keep("evaluate_list")
    for chosen in (measured, narrow.id):
        listed.locator(f'tr[data-id="{chosen}"] input[type=checkbox]').check()
    page.get_by_role("button", name="Compare selected").click()
    expect(page).to_have_title("Words or vectors → Fuzzy joins · Evaluate · RAG Workbench")
    beside = page.get_by_role("table", name="Runs of both experiments")
    expect(beside.locator("tbody tr")).to_have_count(4)
    expect(beside.locator('tr[data-id="keyword"]')).to_contain_text("Tie: equal on all 4 questions")
    expect(beside.locator('tr[data-id="fuzzy"]')).to_contain_text("only in B")
    assert f"experiment={measured}" in page.url and f"second={narrow.id}" in page.url
    keep("evaluate_side_by_side")
    expect(page.get_by_role("button", name="Open A", exact=True)).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    assert_fits(page, "two experiments side by side", beside.locator("xpath=.."))
    tie = beside.locator('tr[data-id="keyword"]').get_by_text("Tie: equal on all 4 questions")
    tie.scroll_into_view_if_needed()  # runs with equal scores are in any order, so it may be below others
    expect(tie).to_be_in_viewport(ratio=1)
    keep("evaluate_side_by_side_390")


def test_the_form_offers_every_combination_of_several_parameters(
    goto: Callable[[str], Page], harbour: str, keep: Callable[[str], None]
) -> None:
    page = goto(f"/evaluate?new=1&dataset={harbour}")
    expect(page.get_by_text("4 runs × 4 questions")).to_be_visible()
    varied = page.get_by_role("combobox", name="Vary parameters")
    for name in ("Hybrid: ", "Rerank: "):
        pick_option(varied, name)
    page.keyboard.press("Escape")
    expect(page.locator("[class*=st-key-build_values_]")).to_have_count(2)
    expect(page.get_by_text(re.compile(r"^([5-9]|\d\d) runs × 4 questions"))).to_be_visible()
    keep("evaluate_matrix")


def test_tune_starts_with_the_persons_own_test_set_and_reports_what_it_did_in_its_time(
    goto: Callable[[str], Page], filled: Workbench, harbour: str, keep: Callable[[str], None]
) -> None:
    store = TestSetStore(filled)
    made = store.create("Asked often enough to tune by")
    wanted = next(iter(filled.documents.list()))
    questions = store.add_questions(made.id, [f"Which tide gauge is number {n}?" for n in range(20)])
    store.judge_all(made.id, [Judgment(question.id, wanted.id, 2) for question in questions])
    page = goto("/evaluate?view=tune")
    expect(page.get_by_role("combobox", name="Test set")).to_have_value(made.title)
    page.get_by_label("Minutes").fill("0.1")
    page.get_by_label("Minutes").press("Tab")
    page.get_by_role("button", name="Start tuning").click()
    told = re.compile(r"Tried \d+ settings in \d+ s of 6, \d+ of them non-default")
    expect(page.get_by_text(told)).to_be_visible(timeout=FIRST)
    finalists = page.get_by_role("table", name="Finalists")
    expect(finalists.locator("tbody tr").first).to_be_visible()
    keep("evaluate_tune")
    page.set_viewport_size({"width": 390, "height": 844})
    assert_fits(page, "the finalists of a search", finalists.locator("xpath=.."))
    keep("evaluate_tune_390")
    page.get_by_role("button", name="Dismiss").first.click()
    expect(finalists).to_have_count(0)
    store.delete(made.id)


def test_learn_trains_a_ranker_reports_what_it_is_worth_and_keeps_it(
    goto: Callable[[str], Page], filled: Workbench, harbour: str, keep: Callable[[str], None]
) -> None:
    page = goto("/evaluate?view=learn")
    expect(page.get_by_text("It needs a test set with 30 judged questions")).to_be_visible()
    store = TestSetStore(filled)
    made = store.create("Asked often enough to learn from")
    wanted = next(iter(filled.documents.list()))
    questions = store.add_questions(made.id, [f"Which tide gauge is number {n}?" for n in range(30)])
    store.judge_all(made.id, [Judgment(question.id, wanted.id, 2) for question in questions])
    page = goto("/evaluate?view=learn")
    expect(page.get_by_role("combobox", name="Test set")).to_have_value(made.title)
    page.get_by_role("button", name="Start training").click()
    figures = page.get_by_role("table", name="Scores")
    expect(figures.locator("tbody tr")).to_have_count(4, timeout=FIRST)
    expect(page.get_by_text(re.compile(r"(Not w|W)orth promoting")).first).to_be_visible()
    expect(page.get_by_role("list", name="Weights").locator("li")).to_have_count(16)
    keep("evaluate_learn")
    page.get_by_label("Name", exact=True).fill("tides")
    page.get_by_label("Name", exact=True).press("Tab")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text('Ranker "tides" saved')).to_be_visible()
    assert filled.rankers.get("tides").trained_on == made.title
    page.locator(".st-key-ranker_tides").get_by_role("button", name="Promote").click()
    expect(page.get_by_role("dialog").get_by_text("ranker tides")).to_be_visible()
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 390, "height": 844})
    assert_fits(page, "the figures of a training", figures.locator("xpath=.."))
    keep("evaluate_learn_390")
    store.delete(made.id)  # what was learned from it stays
    filled.rankers.delete("tides")
    page.get_by_role("button", name="Dismiss").first.click()
    expect(figures).to_have_count(0)
