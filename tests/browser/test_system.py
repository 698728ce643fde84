"""The System page in a real browser: checks as wide as their text, and each server listed once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from browser_server import FIRST, wait_until_up
from playwright.sync_api import Page, expect

from workbench import Workbench

pytestmark = pytest.mark.browser


def test_the_checks_are_as_wide_as_their_names_and_their_text_gets_the_rest(
    goto: Callable[[str], Page],
) -> None:
    page = goto("/system")
    page.set_viewport_size({"width": 1600, "height": 1000})
    checks = page.get_by_role("table", name="Health checks")
    name, detail = checks.locator("tbody tr").first.locator("td").first, checks.locator("tbody td:last-child").first
    expect(name).to_have_text("Database")
    assert name.evaluate("cell => cell.offsetWidth") < 200
    assert detail.evaluate("cell => cell.offsetWidth") > 1000


def test_a_replica_is_reported_once(
    serve: Callable[..., str], filled: Workbench, browser_database: str, page: Page
) -> None:
    address = serve(browser_database, WORKBENCH_READ_DATABASE_URL=browser_database)
    wait_until_up(address)
    page.goto(f"{address}/system", timeout=FIRST)
    expect(page.locator("dl.wb-facts").first).to_be_visible(timeout=FIRST)
    expect(page.get_by_role("table", name="Health checks").get_by_text("Replica", exact=True)).to_be_visible()
    expect(page.get_by_text("Replica", exact=True)).to_have_count(1)
