"""An unknown path gets the app's own message, with links to the existing pages."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_a_path_that_no_page_has_is_reported_and_leads_to_the_pages(goto, page):
    goto("/nowhere<b>")
    expect(page.get_by_role("heading", name="Page /nowhere<b> not found")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    links = page.get_by_test_id("stPageLink")
    expect(links).to_have_text(["Compare", "Library", "Crawl", "Evaluate", "Graph", "Connect", "System"])
    links.filter(has_text="Library").get_by_role("link").click()
    expect(page.get_by_role("heading", name="Library")).to_be_visible()
    expect(page).to_have_url(re.compile("/library$"))
    expect(page).to_have_title("Library · RAG Workbench")
    expect(page.get_by_test_id("stTopNavLink")).to_have_count(7)


@pytest.mark.parametrize("path", ["/harbour/gauges", "/library/gauges/1/?q=tide"])
def test_a_path_of_several_parts_is_reported_and_leads_to_the_pages(goto, page, path):
    goto(path)
    told = path.partition("?")[0].rstrip("/")
    expect(page.get_by_role("heading", name=f"Page {told} not found")).to_be_visible()
    page.get_by_test_id("stPageLink").filter(has_text="Library").get_by_role("link").click()
    expect(page.get_by_role("heading", name="Library")).to_be_visible()
    expect(page).to_have_url(re.compile("/library$"))


@pytest.mark.parametrize(
    ("path", "served"), [("/compare", "/"), ("/Compare", "/"), ("/Evaluate", "/evaluate"), ("/LIBRARY/", "/library")]
)
def test_names_as_people_type_them_lead_to_their_page(goto, page, path, served):
    goto(f"{path}?q=a+lost+ticket")
    expect(page).to_have_url(re.compile(rf"//[^/]+{served}\?"))
    assert "q=a+lost+ticket" in page.url.replace("%20", "+")
    expect(page.get_by_text("not found")).to_have_count(0)


def test_no_request_of_a_page_fails(goto, page):
    failed = []
    page.on("response", lambda response: failed.append(response.url) if response.status >= 400 else None)
    for path in ("/", "/library", "/crawl", "/evaluate", "/graph", "/connect?view=tools", "/system"):
        goto(path)
    assert failed == []


def test_the_title_of_the_tab_names_the_view(goto, page):
    goto("/connect?view=tools")
    expect(page).to_have_title("Tools · Connect · RAG Workbench")
    page.get_by_role("radio", name="Calls").click()
    expect(page).to_have_title("Calls · Connect · RAG Workbench")
    page.get_by_role("radio", name="Clients").click()
    expect(page).to_have_title("Connect · RAG Workbench")
