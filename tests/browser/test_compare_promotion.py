"""Promoting a strategy on Compare: shown, used by every search of the scope, and undone with one click."""

import re

import pytest
from playwright.sync_api import expect

from workbench import Scope

pytestmark = pytest.mark.browser


@pytest.fixture
def port(filled, folder):
    """A separate project, so that no other test's searches change."""
    project = filled.projects.create("Port <b>")
    files = folder({"locks.md": "# Locks\n\nThe lock keeper opens the gate at high water."})
    filled.ingest(files, source="Locks", project=project.id, on_progress=lambda progress: None)
    yield project
    filled.projects.delete(project.id)


def test_a_promotion_serves_the_scope_is_shown_and_undone_in_one_click(goto, filled, port, keep):
    scope = Scope(project=port.id)
    page = goto(f"/?q=lock keeper&project={port.id}&s=keyword&s=hybrid&s=rerank&set=hybrid.fusion%3Drrf")
    line = page.locator(".st-key-servingline .wb-serving")
    expect(line).to_have_text("Nothing promoted yet: the app searches with Rerank, agents with Hybrid.")
    page.get_by_role("button", name="Promote Hybrid").dblclick()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Current scope: project Port")
    expect(dialog).to_contain_text("No experiment includes both it and Rerank, which is live")
    dialog.get_by_role("button", name="Promote").click()
    expect(line).to_have_text(re.compile(r"Hybrid is live in the project Port <b> · since .+ · version 1 · fusion rrf"))
    expect(page.locator(".head", has_text="Hybrid").locator(".badge")).to_have_text("live")
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    keep("promoted-1440-light")
    served = filled.search("lock", scope=scope)
    assert (served.strategy, len(filled.promotions.history(scope))) == ("hybrid", 1)
    page.get_by_role("button", name="Promote Keyword").click()
    dialog.get_by_role("button", name="Promote").click()
    expect(line).to_have_text(re.compile("Keyword is live in the project .+ version 2"))
    page.get_by_role("button", name="Undo").click()
    expect(line).to_have_text(re.compile("Hybrid is live in the project .+ version 1"))
    assert filled.search("lock", scope=scope).strategy == "hybrid"
    page.get_by_role("button", name="Undo").click()
    expect(line).to_contain_text("Nothing promoted yet")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    assert filled.search("lock", scope=scope).strategy == "rerank"


def test_a_scope_that_can_have_no_promotion_explains_why(goto):
    page = goto("/?q=gauge&tag=sea&s=keyword")
    button = page.get_by_role("button", name="Promote Keyword")
    expect(button).to_be_disabled()
    expect(button).to_have_attribute("title", re.compile("everywhere, for a project, a folder or one source"))
