"""The Evaluate page in a real browser: from questions to a leaderboard, question by question, to what serves."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from evals.store import DatasetStore
from workbench import Workbench
from workbench.types import Scope

pytestmark = pytest.mark.browser


def test_an_experiment_is_planned_run_and_read_in_the_page(
    goto: Callable[[str], Page], harbour: str, keep: Callable[[str], None]
) -> None:
    page = goto(f"/evaluate?new=1&dataset={harbour}")
    expect(page.get_by_text("4 runs of 4 questions: 16 searches at most")).to_be_visible()
    page.get_by_label("Title").fill("Planned here")
    page.get_by_label("Title").press("Tab")
    keep("evaluate_plan")
    page.get_by_role("button", name="Run experiment").click()
    table = page.get_by_role("table", name="Leaderboard")
    expect(table.locator("tbody tr")).to_have_count(4, timeout=90_000)
    expect(page.get_by_text("16 questions asked")).to_be_visible(timeout=90_000)
    assert "experiment=" in page.url
    keep("evaluate_leaderboard")


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
    rankings = page.locator("section h3")
    expect(rankings).to_have_count(2)
    expect(page.locator(".grade.relevant").first).to_be_visible()
    page.locator("section .open").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    keep("evaluate_rankings")


def test_a_promoted_winner_serves_searches_that_name_no_strategy(
    goto: Callable[[str], Page], measured: str, filled: Workbench
) -> None:
    source = next(one.id for one in filled.knowledge.sources() if one.title == "Harbour")
    page = goto(f"/evaluate?experiment={measured}&source={source}")
    badge = page.get_by_role("table", name="Leaderboard").locator("tr", has=page.locator(".badge"))
    expect(badge).to_have_count(0)
    page.get_by_role("button", name="Promote Keyword").click()
    expect(page.get_by_role("dialog")).to_contain_text("nDCG@10")
    page.get_by_role("dialog").get_by_role("button", name="Promote").click()
    expect(page.get_by_text("Keyword serves now")).to_be_visible()
    expect(badge).to_contain_text("Keyword")
    assert filled.search("gauge", scope=Scope(sources=(source,))).strategy == "keyword"
    filled.promotions.undo(Scope(sources=(source,)))


def test_questions_are_typed_in_and_taken_along(
    goto: Callable[[str], Page], filled: Workbench, keep: Callable[[str], None]
) -> None:
    made = DatasetStore(filled).create("Typed questions")
    page = goto(f"/evaluate?open={made.id}")
    page.get_by_role("tab", name="Add").click()
    page.get_by_label("Questions, one a line").fill('What is a gauge?\n\nWhere is "the" well? <script>')
    page.get_by_label("Questions, one a line").press("Tab")
    page.get_by_role("button", name="Add questions").click()
    expect(page.get_by_text("2 questions and 0 judgments added.")).to_be_visible()
    keep("evaluate_dataset")
    page.get_by_role("tab", name="Export and versions").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    text = download.value.path().read_text()
    assert text.splitlines()[0].startswith("question,id")
    assert 'Where is ""the"" well? <script>' in text


def test_an_experiment_can_be_taken_along_as_csv_and_as_a_notebook(goto: Callable[[str], Page], measured: str) -> None:
    page = goto(f"/evaluate?experiment={measured}")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    assert len(download.value.path().read_text().splitlines()) == 4
    with page.expect_download() as download:
        page.get_by_role("button", name="Notebook").click()
    notebook = json.loads(download.value.path().read_text())
    assert any("Words or vectors" in "".join(cell["source"]) for cell in notebook["cells"])
