"""The Connect page in a real browser: configurations to copy, tools to try, and the log of calls."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from looks import assert_fits
from playwright.sync_api import expect

from workbench.storage.tool_calls import ToolCall

pytestmark = pytest.mark.browser
SLOW = 60_000  # ms: the first visit imports the MCP app


def code(page, holding):
    """Return the text of the code block that contains some words; it is drawn after the rest of the page."""
    block = page.locator("[data-testid=stCode] code", has_text=holding).first
    expect(block).to_be_visible(timeout=SLOW)
    return block.inner_text()


def test_a_configuration_with_real_paths_is_ready_to_copy_for_every_client(goto, keep, filled):
    page = goto("/connect")
    expect(page.get_by_text("claude_desktop_config.json")).to_be_visible(timeout=SLOW)
    server = json.loads(code(page, "mcpServers"))["mcpServers"]["rag-workbench"]
    assert Path(server["command"]).exists()
    assert server["env"]["WORKBENCH_HOME"] == str(filled.settings.home)
    assert "PASSWORD" in server["env"]["WORKBENCH_DATABASE_URL"]
    keep("connect-1440-light")

    expect(page.get_by_text("Not connected yet")).to_be_visible()

    page.get_by_role("radio", name="VS Code").click()
    expect(page.get_by_text(".vscode/mcp.json")).to_be_visible()
    expect(page.get_by_text("workbench connect vscode")).to_be_visible()
    assert json.loads(code(page, '"servers"'))["servers"]["rag-workbench"]["type"] == "stdio"
    page.get_by_text("HTTP (standalone)").click()
    expect(page.get_by_text("Start the server first")).to_be_visible()
    assert json.loads(code(page, '"url"'))["servers"]["rag-workbench"]["url"].endswith(":8765/mcp")
    expect(page.get_by_text("listens on this machine only")).to_be_visible()
    page.get_by_text("Read-only", exact=True).click()
    expect(page.locator("[data-testid=stCode]", has_text="--read-only")).to_be_visible()
    page.reload()
    expect(page.get_by_text(".vscode/mcp.json")).to_be_visible()
    expect(page.get_by_text("Start the server first")).to_be_visible()
    expect(page.locator("[data-testid=stCode]", has_text="--read-only")).to_be_visible()


def test_a_client_that_called_is_seen(goto, filled):
    called = ToolCall(
        tool="search_knowledge_base", called_at=datetime.now(UTC), duration_ms=1, answer_chars=2, client="zed"
    )
    page = goto("/connect?client=zed")
    expect(page.get_by_text("Not connected yet")).to_be_visible(timeout=SLOW)
    filled.tool_calls.add([called])  # while the page is open
    expect(page.get_by_text("Connected: 1 call, the last at")).to_be_visible(timeout=SLOW)


def test_a_tool_is_tried_and_its_exact_answer_is_among_the_calls(goto, keep):
    page = goto("/connect?view=tools")
    expect(page.get_by_role("table", name="Tools")).to_contain_text("searchLocalArchives", timeout=SLOW)
    keep("connect-tools-1440-light")
    page.get_by_role("button", name="search_knowledge_base", exact=True).click()
    expect(page.get_by_role("heading", name="search_knowledge_base")).to_be_visible()
    page.get_by_role("textbox", name="query (required)").fill("tide gauge of the harbour")
    page.get_by_role("spinbutton", name="match_count").fill("2")
    page.get_by_role("button", name="Call tool").click()
    expect(page.get_by_text("tokens")).to_be_visible(timeout=SLOW)
    answer = json.loads(code(page, '"success":'))
    assert (answer["success"], answer["count"], answer["query"]) == (True, 2, "tide gauge of the harbour")
    keep("connect-try-1440-light")

    page.get_by_role("radio", name="Calls").click()
    row = page.get_by_role("row", name="tide gauge of the harbour")
    expect(row).to_contain_text("search_knowledge_base")
    keep("connect-calls-1440-light")
    row.get_by_role("button").first.click()
    expect(page.get_by_label("Question")).to_have_value("tide gauge of the harbour")


def test_a_refused_call_is_shown_as_the_agent_gets_it(goto):
    page = goto("/connect?view=tools&tool=rag_list_project_folders")
    expect(page.get_by_role("heading", name="rag_list_project_folders")).to_be_visible(timeout=SLOW)
    page.get_by_role("button", name="Call tool").click()
    expect(page.get_by_text("isError: true")).to_be_visible(timeout=SLOW)
    answer = json.loads(code(page, '"success":'))
    assert answer["error"] == "Missing required parameter: project_id"


@pytest.mark.parametrize("width", [390, 1024])
def test_it_fits_narrow_screens_and_the_dark(goto, keep, page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark")
    goto("/connect?client=claude-code")
    expect(page.get_by_text("Run in a terminal")).to_be_visible(timeout=SLOW)
    assert_fits(page, f"Connect at {width}")
    assert str(Path(sys.executable).parent) in code(page, "claude mcp add")
    keep(f"connect-{width}-dark")


def test_a_proposal_of_an_agent_is_accepted_or_rejected(goto, filled, keep):
    first = filled.promotions.propose("keyword", "As good and faster", proposed_by="small-model")
    second = filled.promotions.propose("vector", "Better", proposed_by="small-model")
    page = goto("/connect")
    offer = page.locator(f".st-key-proposal_{first.id}")
    expect(offer).to_contain_text("small-model proposes Keyword for everywhere: As good and faster", timeout=SLOW)
    keep("connect-proposals-1440-light")
    offer.get_by_role("button", name="Accept").click()
    expect(offer).to_have_count(0)
    expect(page.locator(".wb-servings")).to_contain_text("As good and faster (proposed by small-model)")
    offer = page.locator(f".st-key-proposal_{second.id}")
    offer.get_by_label("Why").fill("Slower")
    offer.get_by_role("button", name="Reject").click()
    expect(offer).to_have_count(0)
    assert filled.promotions.proposals(decided=True)[-1].reason == "Rejected: Slower | Better"
    assert [one.strategy for one in filled.promotions.current() if one.scope == "everywhere"] == ["keyword"]
    filled.promotions.undo()
    assert filled.promotions.proposals() == []
