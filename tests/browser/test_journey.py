"""The whole workflow: judge hits, measure two strategies, promote the better one, and an agent gets it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from mcp import Client
from playwright.sync_api import Page, expect

from tests.mcp_app.processes import over_stdio
from workbench import Workbench

pytestmark = pytest.mark.browser
ASKED = {"tide gauge": "Tide gauge", "stilling well waves": "Stilling well", "knead the dough": "Bread"}
AGENT_ASKS = "tide gauge"
HITS = 4  # judged of each question: more than ten in all
SLOW = 90_000  # ms


def test_ten_judged_hits_choose_the_strategy_of_agents(
    goto: Callable[[str], Page], filled: Workbench, keep: Callable[[str], None]
) -> None:
    page = goto(f"/?q={next(iter(ASKED))}&s=keyword&s=hybrid")
    _make_test_set(page)
    judged = sum(_judge(page, question, title) for question, title in ASKED.items())
    assert judged >= 10
    keep("journey-judged")
    _run_two_strategies(page)
    keep("journey-leaderboard")
    first = page.get_by_role("table", name="Leaderboard").locator("tbody tr").first
    winner = first.locator("b").first.inner_text().lower()
    first.get_by_role("button", name="Promote").click()
    page.get_by_role("dialog").get_by_role("button", name="Promote").click()
    expect(page.get_by_text("is live (version")).to_be_visible()
    try:
        assert winner in ("keyword", "hybrid")
        served = _found_by_an_agent(filled)
        assert served["reranked"] is False  # the built-in default would also pass
        expected = [hit.passage_id for hit in filled.search(AGENT_ASKS, strategy=winner, limit=3)]
        assert [result["id"] for result in served["results"]] == expected
    finally:
        filled.promotions.undo()
    assert _found_by_an_agent(filled)["reranked"] is True


def _make_test_set(page: Page) -> None:
    expect(page.locator(".card").first).to_be_visible()
    page.get_by_label("New test set").fill("Journey")
    page.get_by_role("button", name="Create and judge").click()
    expect(page.get_by_text("Judging for")).to_be_visible()


def _judge(page: Page, question: str, title: str) -> int:
    """Ask, then press a key on each of the first hits of the second column; returns the number of judged hits."""
    page.get_by_label("Question", exact=True).fill(question)
    page.get_by_label("Question", exact=True).press("Enter")
    expect(page.locator("ol.column").nth(1).locator(".card").first).to_contain_text(title)
    cards = page.locator("ol.column").nth(1).locator(".card")
    count = min(HITS, cards.count())
    for place in range(count):
        card = cards.nth(place)
        card.locator(".title").focus()
        page.keyboard.press("1" if title in card.inner_text() else "3")
        expect(card).to_have_attribute("data-judged", "2" if title in card.inner_text() else "0")
    expect(page.locator(".tally").nth(1)).to_contain_text(f"{count} of")
    return count


def _run_two_strategies(page: Page) -> None:
    page.get_by_role("link", name="Evaluate").click()
    page.get_by_text("Test sets", exact=True).click()
    page.get_by_role("button", name="Journey", exact=True).click()
    page.get_by_role("button", name="Run experiment").click()
    expect(page.get_by_text("4 runs × 3 questions")).to_be_visible()
    for name in ("Vector", "Rerank"):
        page.get_by_role("button", name=name, exact=True).click()
    expect(page.get_by_text("2 runs × 3 questions")).to_be_visible()
    page.get_by_role("button", name="Run experiment").click()
    rows = page.get_by_role("table", name="Leaderboard").locator("tbody tr")
    expect(rows).to_have_count(2, timeout=SLOW)
    expect(page.get_by_text("6 questions run")).to_be_visible(timeout=SLOW)


def _found_by_an_agent(workbench: Workbench) -> dict[str, Any]:
    """Ask over MCP, in a separate process; no strategy is named, so the promoted one is used."""
    question = {"query": AGENT_ASKS, "return_mode": "chunks", "match_count": 3}

    async def script() -> Any:
        async with Client(over_stdio(workbench.settings)) as client:
            return await client.call_tool("rag_search_knowledge_base", question)

    with ThreadPoolExecutor(1) as pool:  # Playwright's loop runs in this thread
        answer = pool.submit(asyncio.run, script()).result()
    return json.loads(answer.content[0].text)
