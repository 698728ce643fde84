"""The finder (Ctrl+K) finds everything by part of its name."""

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from evals.test_sets.store import TestSetStore
from workbench.app.frame.main import PAGES
from workbench.app.shell import finder
from workbench.app.shell.finder import ACTIONS, ROUTES, find_all
from workbench.app.state.shared import OPENING
from workbench.opening import Opening


@pytest.fixture
def harbour(wb, folder):
    wb.ingest(folder({"gauge.md": "# Tide gauge\n\nIt records the sea."}), source="Tide tables")
    TestSetStore(wb).create("Tide questions")
    return wb


def test_sources_documents_and_test_sets_are_found_by_a_part_of_their_name(harbour):
    kinds = {find.kind: find for find in find_all(harbour, "tide")}
    assert kinds["Source"].title == "Tide tables"
    assert kinds["Document"].title == "Tide gauge"
    assert kinds["Test set"].title == "Tide questions"
    assert kinds["Question"].href == ".?q=tide"


def test_actions_are_listed_before_the_database_is_open_and_found_by_their_words(harbour, monkeypatch):
    empty = Opening(lambda: pytest.fail("The list of actions opened the workbench."))
    monkeypatch.setattr(finder, "OPENING", empty)
    answer = TestClient(Starlette(routes=ROUTES)).get("/find", params={"q": " "})
    assert [row["title"] for row in answer.json()] == [action.title for action in ACTIONS]
    assert [find.title for find in find_all(harbour, "new exp") if find.kind == "Action"] == ["New experiment"]


def test_every_page_but_home_has_an_action_and_every_action_a_page():
    home, *others = (entry.name for entry in PAGES)
    reached = {action.href.partition("?")[0] for action in ACTIONS}
    for name in others:
        assert name in reached, f"Add an action that leads to the page {name!r} to ACTIONS in app/shell/finder.py."
    assert reached <= {home, *others}, f"ACTIONS in app/shell/finder.py lead to no page: {reached - {home, *others}}"


def test_the_route_answers_with_json_and_needs_no_exact_case(harbour):
    OPENING.use(harbour)
    answer = TestClient(Starlette(routes=ROUTES)).get("/find", params={"q": "TIDE TAB"})
    assert [row["title"] for row in answer.json() if row["kind"] == "Source"] == ["Tide tables"]
