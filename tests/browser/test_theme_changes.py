"""If the system's theme changes, charts on open pages change their colours without a reload."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from workbench.app.evaluate.charts import INK_COLOURS

pytestmark = pytest.mark.browser


def name_in_chart(page: Page) -> Locator:
    """Return the first run's name in the chart of quality against time; names that would overlap are hidden."""
    names = page.locator('[data-testid="stEChartsChart"] svg text')
    return names.filter(has_text=re.compile("^(Vector|Keyword|Hybrid)$")).first


def turn(page: Page, scheme: str) -> None:
    """Change the system's theme, and wait until the page uses it."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function("scheme => document.documentElement.style.colorScheme === scheme", arg=scheme)


def test_a_chart_behind_a_dialog_takes_the_colours_once_that_is_closed(
    goto: Callable[[str], Page], measured: str
) -> None:
    page = goto(f"/evaluate?experiment={measured}")
    expect(name_in_chart(page)).to_have_attribute("fill", INK_COLOURS["light"])
    page.get_by_role("button", name="Delete").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    turn(page, "dark")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(name_in_chart(page)).to_have_attribute("fill", INK_COLOURS["dark"])
