"""How the pages look and whether everyone can use them: kept as pictures, checked by axe."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
SEEN = {
    "compare": ("/?q=tide gauge", ".card"),
    "library": ("/library", "tbody .open"),
    "crawl": ("/crawl", ".st-key-crawl_start input"),
    "plan": ("/evaluate?new=1", ".st-key-build_metrics [data-tag]"),
    "connect": ("/connect", "code .token.string"),
    "system": ("/system", "dl.wb-facts"),
    "judging": ("/?q=tide gauge&judge={harbour}", ".card .grades"),
    "answer": ("/?q=what keeps waves from the record?&answer=1", "blockquote"),
    "leaderboard": ("/evaluate?experiment={measured}", "table[aria-label=Leaderboard] tbody tr"),
}
SIZES = {1440: 1000, 1024: 800, 390: 844}


def settled(page):
    """Wait until the script is through: what it has not drawn anew yet is shown faded, which is no one's colour."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.wait_for_function("document.getAnimations().every((one) => one.playState !== 'running')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_without_serious_findings_and_fits_every_width(goto, page, keep, scheme, harbour, measured):
    page.emulate_media(color_scheme=scheme)
    for name, (path, landmark) in SEEN.items():
        page.set_viewport_size({"width": 1440, "height": 1000})
        goto(path.format(harbour=harbour, measured=measured))
        expect(page.locator(landmark).first).to_be_visible()
        settled(page)
        found = Axe().run(page).response["violations"]
        assert [
            (one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"])
            for one in found
            if one["impact"] in ("serious", "critical")
        ] == []
        for width, height in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            expect(page.locator(landmark).first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
            keep(f"{name}-{width}-{scheme}")


def test_the_chief_button_of_a_dialog_is_readable_in_the_dark(goto, page):
    page.emulate_media(color_scheme="dark")
    goto("/library?view=projects")
    page.get_by_role("button", name="New project").click()
    chief = page.get_by_role("dialog").locator('[data-testid^="stBaseButton-primary"]')
    page.get_by_role("dialog").get_by_role("textbox").first.fill("Quay")
    page.get_by_role("dialog").get_by_role("textbox").first.press("Tab")
    expect(chief).to_be_enabled()
    expect(chief).to_have_css("color", "rgb(23, 22, 20)")  # dark ink on the light accent
    page.keyboard.press("Escape")


def test_choosing_a_page_on_a_phone_closes_the_drawer_that_lists_them(goto, page):
    page.set_viewport_size({"width": 390, "height": 844})
    goto("/crawl")
    settled(page)
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Library").click()
    expect(page.get_by_role("heading", name="Library")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")


def test_the_fonts_and_everything_else_come_from_this_machine(goto, page, app):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    goto("/?q=tide gauge")
    expect(page.locator(".card").first).to_be_visible()
    page.evaluate("document.fonts.ready")
    assert any("source-sans-3-latin-wght-normal.woff2" in url for url in asked)
    assert [url for url in asked if not url.startswith((app, app.replace("http", "ws"), "data:", "blob:"))] == []
