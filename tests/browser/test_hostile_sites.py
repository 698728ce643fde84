"""Crawled sites and archives full of attacks load nothing, and none of their text becomes a link."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser_server import wait_until_up
from playwright.sync_api import Page, expect

from tests.browser.test_nothing_from_outside import every_attack, live, settled, trap, walk  # noqa: F401 - a fixture
from tests.crawling.conftest import site  # noqa: F401 - the fixture
from tests.crawling.site import QUICK, TestSite, reply
from workbench import Workbench
from workbench.settings import Settings

pytestmark = pytest.mark.browser
PATIENT = 60_000  # ms
LONGEST = 120.0  # seconds


def name_of(bait: str) -> str:
    return f'![t]({bait}/md.png)<img src="{bait}/html.png">[link]({bait}/link) {bait}/bare :material/home: $x$'


@pytest.fixture
def crawler(filled: Workbench, browser_database: str, test_home: Path, app: str) -> Iterator[Workbench]:
    """A workbench that may crawl this machine, next to the app, whose worker runs its jobs."""
    values = {"home": test_home, "database_url": browser_database, "embedding_model": "hash", "_env_file": None}
    settings = Settings(**values, crawl_allow_hosts="127.0.0.1")  # pyright: ignore
    with Workbench.open(settings=settings) as workbench:
        yield workbench


@pytest.fixture
def crawls(crawler: Workbench, site: TestSite, trap: tuple[str, list[str]]) -> Iterator[dict[str, str]]:  # noqa: F811
    """Crawls of a hostile site, and of one that redirects to the trap. Returns the jobs by what they show."""
    bait, name, attack = trap[0], name_of(trap[0]), f"to={trap[0]}/x&![g]({trap[0]}/g.png)"
    links = "".join(f"<a href='{path}'>{name}</a> " for path in ("/start/two", f"/start/gone?{attack}", bait))
    body = f"<main><h1>{name}</h1><p>The kraken {name}</p>{links}{every_attack(bait)}</main>"
    text = f"<html lang=en><head><title>{name}</title></head><body>{body}</body></html>"
    site.put({"/start/": text, "/start/two": text.replace("kraken", "squid")})
    site.put({"/away": reply("", 301, headers={"Location": f"{bait}/redirected"})})
    site.put({"/robots.txt": f"User-agent: *\nDisallow: /private ![r]({bait}/robots.png)"})
    started = [
        crawler.crawls.start(site.url + path, new_source=True, title=name, browser="never", **QUICK)
        for path in ("/start/", f"/nothing/![n]({bait}/nothing.png)", "/away")
    ]
    ended = [crawler.jobs.wait(job.id, timeout=LONGEST) for job in started]
    assert all(job.is_finished for job in ended) and ended[0].status == "completed_with_errors"
    assert sorted(page.outcome or "" for page in crawler.crawls.pages(started[0].id)) == ["added", "added", "failed"]
    yield {"crawled": started[0].id, "nothing": started[1].id, "away": started[2].id}
    for job in started:
        crawler.jobs.delete(job.id)
    for source in crawler.sources.list():
        if source.title.startswith("![t]"):
            crawler.sources.delete(source.id)


def test_a_hostile_site_is_shown_literally_where_its_crawl_is(
    page: Page,
    app: str,
    crawls: dict[str, str],
    trap: tuple[str, list[str]],  # noqa: F811
    keep: Callable[[str], None],
) -> None:
    bait, heard = trap
    heard.clear()  # the crawler, not the browser, may have requested the redirect
    walk(page, app, bait, {
        f"/crawl?job={crawls['nothing']}": ".st-key-crawl_status",
        f"/crawl?job={crawls['away']}": ".st-key-crawl_status",
        f"/crawl?job=![j]({bait}/job.png)": "[data-testid=stToast]",
        "/crawl": ".st-key-crawl_start",
        f"/crawl?job={crawls['crawled']}": ".st-key-crawl_status",
    })  # fmt: skip
    for tab in ("Pages", "Log", "Site"):
        page.get_by_role("tab", name=tab, exact=True).click()
        settled(page)
        assert live(page, bait) == 0, tab
        keep(f"hostile-crawl-{tab.lower()}-1440-light")
    assert heard == []


@pytest.fixture
def archives(filled: Workbench, folder: Callable[..., Path], trap: tuple[str, list[str]]) -> Iterator[Path]:  # noqa: F811
    """A folder of hostile archives that cite each other; its source is deleted afterwards."""
    bait, name = trap[0], name_of(trap[0])
    text = f"# {name}\n\nThe kraken {name} is in [the page](../../url-content/2025-05-21/page.md).\n\n"
    head = f"---\ntitle: '{name}'\n---\n\n"
    yield folder(
        {
            "research-archive/2025-05-20/kraken.md": text + every_attack(bait),
            f"research-archive/2025-05-20/![f]({bait.replace('//', '/')}/file.png).md": f"{head}The kraken {name}",
            "url-content/2025-05-21/page.md": f"# Page {name}\n\nURL: {bait}/page\n\nThe kraken {every_attack(bait)}",
        },
        "archives",
    )
    for source in filled.sources.list():
        if source.title == "archives":
            filled.sources.delete(source.id)


def test_hostile_archives_are_found_and_cited_literally(
    page: Page,
    serve: Callable[..., str],
    browser_database: str,
    archives: Path,
    trap: tuple[str, list[str]],  # noqa: F811
    keep: Callable[[str], None],
) -> None:
    bait, heard = trap
    address = serve(browser_database, WORKBENCH_ARCHIVES_DIR=str(archives))
    wait_until_up(address)
    walk(page, address, bait, {
        "/graph?view=archive": "h4, .wb-state",
        f"/graph?view=archive&q=kraken ![q]({bait}/question.png)": ".wb-archive",
        f"/graph?view=archive&q=karken ![q]({bait}/question.png)&exact=1": ".wb-archive, .wb-state",
        "/graph?view=archive&q=kraken&depth=3": ".wb-archive",
    })  # fmt: skip
    for cited in page.locator("[data-testid=stExpander] summary").all():
        cited.click()
    expect(page.locator(".wb-archive ul").first).to_be_visible(timeout=PATIENT)
    settled(page)
    assert live(page, bait) == 0
    keep("hostile-archives-1440-light")
    page.get_by_role("button", name="Open").first.click()
    expect(page.locator(".reader .body")).to_be_visible(timeout=PATIENT)
    settled(page)
    assert live(page, bait) == 0
    assert heard == []
