"""Crawls through the tools: the specification's example on a local site, and rejected addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crawling.conftest import site  # noqa: F401 - the fixture
from tests.crawling.site import TestSite, page, redirect, reply
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.settings import Settings

TEXT = "Async context managers open a thing, hand it over and close it again, whatever happens in between. " * 4


@pytest.fixture
def wb(make_settings: Callable[..., Settings], tmp_path: Path) -> Iterator[Workbench]:
    """A workbench that may crawl this machine."""
    settings = make_settings(crawl_allow_hosts="127.0.0.1", file_roots=str(tmp_path), run_worker=False)
    with Workbench.open(settings=settings) as workbench:
        yield workbench


@pytest.fixture
def docs(site: TestSite) -> str:  # noqa: F811
    """A small documentation site with an archive that should not be crawled."""
    site.put(
        {
            "/3/": page("Docs", TEXT, ["/3/async", "/3/archives/old"]),
            "/3/async": page("Async", TEXT + "Nested ones close in reverse."),
            "/3/archives/old": page("Old", TEXT + "Nobody reads this."),
        }
    )
    return f"{site.url}/3/"


def finished(agent: Agent, wb: Workbench, job_id: str) -> dict[str, Any]:
    """Run the job here, and return it as the tool shows it after its end."""
    wb.work()
    wb.jobs.wait(job_id, timeout=120)
    return agent("manage_crawl_job", action="get", job_id=job_id)["crawl_job"]


def test_example_2_documentation_crawling(agent: Agent, wb: Workbench, docs: str) -> None:
    crawl = agent(
        "crawl_website",
        url=docs,
        recursive=True,
        max_pages=1000,
        title="Python Official Docs",
        exclude_patterns='["/archives/", "/download/"]',
    )
    job = crawl["crawl_job"]
    assert (job["status"], job["recursive"], job["max_pages"]) == ("running", True, 100)
    assert job["id"] in crawl["message"]
    done = finished(agent, wb, job["id"])
    assert (done["status"], done["pages_crawled"], done["pages_failed"], done["documents_created"]) == (
        "completed", 2, 0, 2,
    )  # fmt: skip
    assert done["total_chunks"] >= 2
    found = agent("search_knowledge_base", query="async context managers", search_type="hybrid", match_count=5)
    assert {hit["metadata"]["url"] for hit in found["results"]} == {docs, f"{docs}async"}
    source = agent("manage_source", action="get", source_id=job["source_id"])["source"]
    assert (source["title"], source["source_type"]) == ("Python Official Docs", "crawl")


@pytest.mark.parametrize("pattern", ["/archives/", "*/old", "127.0.0.1"])
def test_an_excluded_first_page_is_not_fetched(agent: Agent, wb: Workbench, docs: str, pattern: str) -> None:
    crawl = agent("crawl_website", url=f"{docs}archives/old", exclude_patterns=[pattern])
    done = finished(agent, wb, crawl["crawl_job"]["id"])
    assert (done["status"], done["pages_crawled"], done["documents_created"]) == ("failed", 0, 0)
    assert done["error_message"] == f"Nothing could be crawled. {docs}archives/old: excluded by the pattern {pattern!r}"
    assert wb.documents.count() == 0


def test_an_excluded_first_page_that_is_redirected_to_is_not_stored(
    agent: Agent,
    wb: Workbench,
    site: TestSite,  # noqa: F811
) -> None:
    site.put({"/": redirect("/private/home"), "/private/home": page("Home", TEXT)})
    crawl = agent("crawl_website", url=f"{site.url}/", exclude_patterns=["/private/"])
    assert finished(agent, wb, crawl["crawl_job"]["id"])["documents_created"] == 0


def test_a_site_is_crawled_without_its_excluded_first_page(
    agent: Agent,
    wb: Workbench,
    site: TestSite,  # noqa: F811
) -> None:
    listed = f"<urlset><url><loc>{site.url}/start.html</loc></url><url><loc>{site.url}/async</loc></url></urlset>"
    site.put(
        {
            "/start.html": page("Home", TEXT),
            "/async": page("Async", TEXT),
            "/sitemap.xml": reply(listed, headers={"Content-Type": "application/xml"}),
        }
    )
    crawl = agent(
        "crawl_website", url=f"{site.url}/start.html", recursive=True, exclude_patterns=["start.html"], title="Site"
    )
    done = finished(agent, wb, crawl["crawl_job"]["id"])
    assert [document.url for document in wb.documents.list(source_id=done["source_id"])] == [f"{site.url}/async"]


def test_a_single_page_goes_into_an_existing_source(agent: Agent, wb: Workbench, docs: str) -> None:
    source = agent("manage_source", action="create", title="Mine", source_type="crawl")["source"]["id"]
    job = agent("crawl_website", url=f"{docs}async", source_id=source)["crawl_job"]
    done = finished(agent, wb, job["id"])
    assert (done["source_id"], done["documents_created"]) == (source, 1)
    assert [item["id"] for item in agent("manage_crawl_job", action="list")["crawl_jobs"]] == [job["id"]]


def test_a_page_that_fails_is_shown_with_its_reason(agent: Agent, wb: Workbench, site: TestSite) -> None:  # noqa: F811
    site.put({"/": page("Home", TEXT, ["/gone"])})
    job = agent("crawl_website", url=f"{site.url}/", recursive=True)["crawl_job"]
    done = finished(agent, wb, job["id"])
    assert (done["status"], done["state"]) == ("completed", "completed_with_errors")
    assert [failure["url"] for failure in done["failures"]] == [f"{site.url}/gone"]


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/", "http://169.254.169.254/latest/", "http://[::1]/", "http://localhost:1/"]
)
def test_a_private_address_is_refused_at_once_and_leaves_nothing_behind(agent: Agent, wb: Workbench, url: str) -> None:
    assert "WORKBENCH_CRAWL_ALLOW_HOSTS" in str(agent.failure("crawl_website", url=url))
    assert (wb.sources.count(), wb.jobs.list()) == (0, [])


def test_a_crawl_without_a_source_makes_a_new_one_each_time(agent: Agent, wb: Workbench, docs: str) -> None:
    jobs = [agent("crawl_website", url=docs)["crawl_job"] for _ in range(2)]
    jobs += [agent("crawl_website", url=docs, title="Docs")["crawl_job"] for _ in range(2)]
    sources = [agent("manage_source", action="get", source_id=job["source_id"])["source"] for job in jobs]
    host = docs.split("/")[2]
    assert [source["title"] for source in sources] == [f"Crawled: {host}", f"Crawled: {host} (2)", "Docs", "Docs (2)"]
    for job in jobs:
        assert finished(agent, wb, job["id"])["documents_created"] == 1


def test_an_unknown_job_is_named(agent: Agent) -> None:
    for action in ("get", "cancel", "resume", "retry_failed"):
        found = agent.failure("manage_crawl_job", action=action, job_id="job_x")
        assert found["error"] == "Crawl job not found: job_x"


def test_one_page_is_fetched_in_parts_and_nothing_is_stored(agent: Agent, wb: Workbench, docs: str) -> None:
    whole = agent("fetch_url", url=docs)
    assert (whole["title"], "Async context managers" in whole["content"]) == ("Docs", True)
    first = agent("fetch_url", url=docs, length=100)
    rest = agent("fetch_url", url=docs, offset=100)
    assert first["note"] == f"Characters 0 to 100 of {whole['total_chars']}. Next: " + (
        f'fetch_url(url="{docs}", length=100, offset=100)'
    )
    assert first["content"] + rest["content"] == whole["content"]
    assert wb.sources.list() == wb.documents.list() == []
    assert "answered 404" in agent.failure("fetch_url", url=f"{docs}none")["error"]


def test_a_crawl_goes_into_a_projects_folder(agent: Agent, wb: Workbench, docs: str) -> None:
    wb.projects.create("Shop", id="proj_1")
    wb.projects.create_folder("proj_1", "API")
    job = agent("crawl_website", url=docs, project_id="Shop", folder_name="API")["crawl_job"]
    finished(agent, wb, job["id"])
    source = wb.sources.get(job["source_id"])
    assert (source.project_id, source.folder_name) == ("proj_1", "API")


def test_an_agent_sees_and_accepts_held_removals(
    agent: Agent,
    wb: Workbench,
    docs: str,
    site: TestSite,  # noqa: F811
) -> None:
    crawl = agent("crawl_website", url=docs, recursive=True)["crawl_job"]
    assert finished(agent, wb, crawl["id"])["documents_created"] == 3
    site.put({"/3/archives/old": reply("", 404)})
    again = agent("crawl_website", url=docs, recursive=True, source_id=crawl["source_id"], refresh=True)["crawl_job"]
    held = finished(agent, wb, again["id"])
    assert [page["url"] for page in held["held"]] == [f"{site.url}/3/archives/old"]
    assert "accept_removals" in held["held_note"]
    assert wb.documents.count() == 3
    agent("manage_crawl_job", action="accept_removals", job_id=again["id"])
    assert finished(agent, wb, again["id"])["report"]["removed"] == 1
    assert wb.documents.count() == 2
