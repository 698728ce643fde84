"""The Crawl page in a real browser: preview, start, watch, cancel, resume, repeat."""

import re

import pytest
from looks import assert_fits, axe_findings
from playwright.sync_api import expect

from tests.crawling.conftest import site  # noqa: F401 - the fixture
from tests.crawling.site import page as html
from tests.crawling.site import reply

pytestmark = pytest.mark.browser
SLOW = 200_000  # ms: a busy machine stores slowly


@pytest.fixture
def docs(site) -> str:  # noqa: F811
    """A site of forty pages, a dead link, and a rule that forbids a folder."""
    names = [f"/guide/part{number // 10}/p{number}" for number in range(40)]
    site.put({name: reply(html(f"Lesson {name[-3:]}"), headers={"ETag": f'"{name}"'}) for name in names})
    site.put(
        {
            "/guide/": html("Guide", links=[*names, "/guide/dead", "/guide/private/x"]),
            "/robots.txt": "User-agent: *\nCrawl-delay: 0.25\nDisallow: /guide/private/",
        }
    )
    return f"{site.url}/guide/"


def status(page):
    """Return the line with the status of the crawl."""
    return page.locator(".st-key-crawl_status p").first


def test_a_crawl_is_looked_at_started_watched_cancelled_and_resumed(goto, keep, docs, filled):
    page = goto("/crawl")
    page.get_by_label("Start page").fill(docs)
    page.get_by_label("Start page").press("Enter")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name=re.compile("would fetch at least 42 pages"))).to_be_visible(timeout=SLOW)
    page.get_by_role("tab", name="Not fetched (1)").click()
    expect(page.get_by_role("row", name="/guide/private/x")).to_contain_text("robots.txt forbids /guide/private/")
    keep("crawl-look-1440-light")
    page.get_by_role("tab", name="Samples").click()

    page.get_by_role("button", name="Start crawl").click()
    expect(status(page)).to_contain_text("Running", timeout=SLOW)
    expect(page.get_by_role("log")).to_contain_text("fetched", timeout=SLOW)
    keep("crawl-running-1440-light")
    page.get_by_role("button", name="Cancel").click()
    expect(status(page)).to_contain_text("Cancelled", timeout=SLOW)
    keep("crawl-cancelled-1440-light")
    [job] = filled.crawls.list()
    assert 0 < job.pages_crawled < 41

    page.goto("about:blank")  # closing the browser stops nothing, and the address leads back
    page.goto(f"{docs_app(page, goto)}/crawl?job={job.id}")
    page.get_by_role("button", name="Resume").click()
    expect(status(page)).to_contain_text("Completed with errors", timeout=SLOW)
    tree = page.get_by_role("group", name="Pages of the site")
    expect(tree.get_by_text("part3", exact=True)).to_be_visible()
    expect(tree).to_contain_text("failed: It answered 404.")
    expect(page.get_by_text("41 pages added · 1 page failed")).to_be_visible()
    expect(page.get_by_role("link", name="Open source")).to_have_attribute("href", re.compile("open=src_"))
    keep("crawl-done-1440-light")
    assert axe_findings(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert_fits(page, "a crawl at 390")
    keep("crawl-done-390-light")
    page.set_viewport_size({"width": 1440, "height": 1000})

    page.get_by_role("button", name="Crawl again", exact=True).click()
    expect(page.get_by_text("41 pages unchanged · 1 page failed")).to_be_visible(timeout=SLOW)
    page.get_by_role("tab", name="Pages").click()
    page.get_by_label("Filter pages").fill("dead")
    expect(page.get_by_role("row", name="/guide/dead")).to_contain_text("It answered 404.")
    page.get_by_role("button", name="All crawls").click()
    expect(page.get_by_role("table", name="Crawls").locator("tbody tr")).to_have_count(2)
    expect(page.get_by_role("heading", name="Changes")).to_have_count(0)
    keep("crawl-history-1440-light")


def docs_app(page, goto):
    """The address of the app."""
    return re.match(r"http://[^/]+", goto("/crawl").url).group()


def test_the_form_shows_whole_values_at_200_percent(goto):
    page = goto("/crawl")
    page.set_viewport_size({"width": 720, "height": 450})  # a window of 1440 x 900
    for field in ("crawl_source", "crawl_project", "crawl_within"):
        shown = page.locator(f".st-key-{field} input").first
        expect(shown).to_be_visible()
        page.wait_for_function("(field) => field.closest('[data-testid=stColumn]').clientWidth > 280",
                               arg=shown.element_handle())  # fmt: skip


def test_what_cannot_be_crawled_is_reported_on_the_page(goto):
    page = goto("/crawl")
    page.get_by_label("Start page").fill("http://10.0.0.1/")
    page.get_by_label("Start page").press("Enter")
    page.get_by_role("button", name="Start crawl").click()
    expect(page.get_by_role("alert")).to_contain_text("not on the public internet")
