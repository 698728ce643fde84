"""Checks that wait until the browser has finished layout and colours, which takes some frames."""

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Locator, Page, TimeoutError, expect

TWO_FRAMES = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
STILL = """() => document.getAnimations().every((one) => one.timeline !== document.timeline ||
  one.playState !== "running" || one.effect.getComputedTiming().iterations === Infinity)"""
# The page, its main part and further elements: each holds at most what is as wide as itself.
FITS = """(others) => [document.documentElement, document.querySelector('[data-testid="stMain"]'), ...others].every(
  (part) => part.scrollWidth <= part.clientWidth)"""
# Only the findings leave the page, since a description of all that passed is hundreds of times as long.
# Streamlit's own place for overlays is outside the landmarks of the page, which the app cannot change.
FINDINGS = """async (options) => (await axe.run(options)).violations
  .map(({ id, nodes }) =>
    [id, nodes.filter(({ html }) => id !== "region" || !html.includes("stFloatingOverlayPortal"))])
  .filter(([, nodes]) => nodes.length)
  .map(([id, nodes]) => [id, nodes[0].html, nodes[0].failureSummary])"""


def visit(page: Page, address: str) -> Page:
    """Go to a page of the app, and return it once it is drawn."""
    page.goto(address)
    expect(page.locator(".st-key-scopebar, h1").first).to_be_visible()
    return page


def settled(page: Page) -> None:
    """Wait until the script has finished: elements that are not redrawn yet are faded, which changes their colours."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.evaluate(TWO_FRAMES)  # another theme is drawn a frame after it was asked for, and only then fades in
    page.wait_for_function(STILL)


def pick_option(box: Locator, name: str, exact: bool = False) -> None:
    """Choose from a list once the page is still.

    Streamlit closes a list if anything around it scrolls, as an expander does until it is unfolded (0.5 s). A person is
    slower than that, a test on a quick machine is not.
    """
    settled(box.page)
    box.click()
    box.page.get_by_role("option", name=name, exact=exact).first.click()


def assert_fits(page: Page, name: str, *others: Locator) -> None:
    """Fail if anything scrolls sideways after layout; tables redraw themselves at another width."""
    try:
        page.wait_for_function(FITS, arg=[other.element_handle() for other in others])
    except TimeoutError:
        raise AssertionError(f"{name} scrolls sideways") from None


def axe_findings(page: Page, *rules: str) -> list[tuple[str, str, str]]:
    """Return what axe finds on a page, by all rules or by these: rule, element, advice.

    A fade during the check changes contrasts, so a finding counts only if it is still there seconds later.
    """
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found = []
    for pause in (0, 1_000, 3_000):  # ms
        page.wait_for_timeout(pause)
        settled(page)
        if not page.evaluate("() => 'axe' in window"):
            page.evaluate(AXE_SCRIPT)
        found = [(rule, html, advice) for rule, html, advice in page.evaluate(FINDINGS, options)]
        if not found:
            break
    return found
