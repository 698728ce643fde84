"""A job ingests a large folder of archives or articles, which is searched as far as it is indexed meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from streamlit.testing.v1 import AppTest

from mcp_app.server import create_server
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.app.state.shared import OPENING
from workbench.services.checks import JOB_THRESHOLD_BYTES
from workbench.settings import Settings

LONG = "A long text of the zebra and the gnu. " * (JOB_THRESHOLD_BYTES // 2 // 38 + 1)


def article(title: str, text: str) -> str:
    return f"---\ntitle: {title}\ndescription: On {title}.\ntags: [x]\nstatus: Live\n---\n\n{text}\n"


@pytest.fixture
def settings(make_settings: Callable[..., Settings], folder: Callable[..., Path]) -> Settings:
    notes = {f"research-archive/2025-05-2{day}/notes.md": f"# Notes {day}\n\n{LONG}" for day in range(3)}
    articles = {f"concepts/zebra-{day}.md": article(f"Zebra {day}", LONG) for day in range(3)}
    return make_settings(
        archives_dir=folder(notes, "archives"), articles_dir=folder(articles, "articles"), run_worker=False
    )


@pytest.fixture
def wb(settings: Settings) -> Iterator[Workbench]:
    with Workbench.open(settings=settings) as workbench:
        yield workbench


def test_archives_answer_with_what_is_there_and_the_job_that_brings_in_the_rest(wb: Workbench, agent: Agent) -> None:
    async def at_once(client: Client) -> list[dict[str, Any]]:
        calls = (client.call_tool("searchLocalArchives", {"query": "zebra"}) for _ in range(4))
        return [json.loads(answer.content[0].text) for answer in await asyncio.gather(*calls)]

    answers = agent.talk(at_once)
    (job,) = wb.jobs.list(kind="ingest")
    for answer in answers:
        assert (answer["results"], answer["metadata"]["totalResults"], answer["job"]["job_id"]) == ([], 0, job.id)
        assert answer["message"].endswith(f'searches use their previous state. Next: get_job(job_id="{job.id}")')
    assert (job.parameters["paths"], job.source_id) == ([], wb.sources.get("archives").id)
    wb.work()
    ended = wb.jobs.wait(job.id, timeout=180)
    assert (ended.status, agent("get_job", job_id=job.id)["job"]["result"]["documents"]["added"]) == ("completed", 3)
    after = agent("searchLocalArchives", query="zebra")
    assert (after["metadata"]["totalResults"], "job" in after, "message" in after) == (3, False, False)


def test_articles_stay_an_array_whose_first_names_the_job(wb: Workbench, agent: Agent) -> None:
    first = json.loads(agent.text("search_articles", query="zebra", mode="semantic"))
    (job,) = wb.jobs.list(kind="ingest")
    assert (len(first), first[0]["job"]["job_id"], "job" in first[1]) == (3, job.id, False)
    assert len(json.loads(agent.text("search_articles", query="zebra"))) == 3
    wb.work()
    assert wb.jobs.wait(job.id, timeout=180).status == "completed"
    found = json.loads(agent.text("search_articles", query="zebra", mode="semantic"))
    assert len(found) == 3 and "job" not in found[0]
    place = wb.articles.place()
    for number in (3, 4, 5):
        (place / f"concepts/zebra-{number}.md").write_text(article(f"Zebra {number}", LONG))
    meanwhile = json.loads(agent.text("search_articles", query="zebra", mode="semantic"))
    second = meanwhile[0]["job"]["job_id"]
    assert (len(meanwhile), second != job.id, f'get_job(job_id="{second}")' in meanwhile[0]["message"]) == (
        3,
        True,
        True,
    )
    assert wb.jobs.wait(second, timeout=180).result["documents"] == {
        "added": 3, "updated": 0, "unchanged": 3, "removed": 0,
    }  # fmt: skip
    assert len(json.loads(agent.text("search_articles", query="zebra", mode="semantic"))) == 6


def test_before_any_article_is_embedded_words_alone_find_them_in_the_files(
    make_settings: Callable[..., Settings], settings: Settings
) -> None:
    alone = make_settings(articles_dir=settings.articles_dir, run_worker=False)
    with Workbench.open(settings=alone) as wb:
        (wb.articles.place() / "concepts/okapi.md").write_text(article("Okapi", "Where gnus and zebras meet."))
        agent = Agent(create_server(wb, toolsets=["all"]))
        asked = {"query": "which zebras are striped like an okapi?", "mode": "semantic"}
        found = json.loads(agent.text("search_articles", **asked))
        (job,) = wb.jobs.list(kind="ingest")
        assert [each["slug"] for each in found] == ["okapi", "zebra-0", "zebra-1", "zebra-2"]
        assert (found[0]["job"]["job_id"], "job" in found[1], "content" in found[0]) == (job.id, False, False)
        assert found[0]["message"].startswith("No article is embedded yet; these contain words")
        assert found[0]["message"].endswith(f'Next: get_job(job_id="{job.id}")')
        rest = json.loads(agent.text("search_articles", **asked, limit=2, offset=2))
        assert [each["slug"] for each in rest] == ["zebra-1", "zebra-2"]
        none = agent.talk(lambda client: client.call_tool("search_articles", asked | {"query": "qwxyz"}))
        assert none.is_error and "none contains a word of the query" in none.content[0].text
        assert f'Next: get_job(job_id="{job.id}")' in none.content[0].text


def test_a_small_change_is_in_the_answer_and_a_stopped_job_is_named_until_it_continues(
    make_settings: Callable[..., Settings], settings: Settings
) -> None:
    alone = make_settings(archives_dir=settings.archives_dir, run_worker=False)
    with Workbench.open(settings=alone) as wb:
        agent = Agent(create_server(wb, toolsets=["all"]))
        job = agent("searchLocalArchives", query="zebra")["job"]["job_id"]
        agent("manage_crawl_job", action="cancel", job_id=job)
        stopped = agent("searchLocalArchives", query="zebra")
        assert (stopped["job"]["job_id"], stopped["job"]["status"]) == (job, "cancelled")
        call = f'Next: manage_crawl_job(action="resume", job_id="{job}")'
        assert "is cancelled" in stopped["message"] and stopped["message"].endswith(call)
        readers = Agent(create_server(wb, toolsets=["all"], read_only=True))
        assert readers("searchLocalArchives", query="zebra")["message"].endswith(f'get_job(job_id="{job}")')
        agent("manage_crawl_job", action="resume", job_id=job)
        wb.work()
        assert wb.jobs.wait(job, timeout=180).status == "completed"
        (wb.archives.resolve_folder() / "research-archive/2025-05-20/okapi.md").write_text("# Okapi\n\nThe okapi.")
        assert agent("searchLocalArchives", query="okapi")["results"][0]["document"]["title"] == "Okapi"
        assert len(wb.jobs.list(kind="ingest")) == 1


def test_what_cannot_be_read_is_tried_once_and_not_again(
    make_settings: Callable[..., Settings], folder: Callable[..., Path]
) -> None:
    files = {
        "research-archive/2025-05-20/bad.pdf": b"%PDF-1.7 broken " * JOB_THRESHOLD_BYTES,
        "url-content/a.md": "# A\n\nZebra.",
    }
    with Workbench.open(settings=make_settings(archives_dir=folder(files, "archives"))) as wb:
        wb.work()
        agent = Agent(create_server(wb, toolsets=["all"]))
        job = agent("searchLocalArchives", query="zebra")["job"]["job_id"]
        assert wb.jobs.wait(job, timeout=180).status == "completed_with_errors"
        for _ in range(2):
            answer = agent("searchLocalArchives", query="zebra")
            assert ("job" in answer, len(answer["results"])) == (False, 1)
        assert len(wb.jobs.list(kind="ingest")) == 1


def graph_page() -> None:
    from workbench.app.graph.page import page

    page()


def test_the_page_of_archives_leaves_a_large_folder_to_a_job_too(wb: Workbench) -> None:
    OPENING.use(wb)
    script = AppTest.from_function(graph_page, default_timeout=60)
    script.query_params["view"], script.query_params["q"] = "archive", "zebra"
    shown = script.run()
    assert not shown.exception
    assert any("are being ingested" in element.value for element in shown.caption)
    assert (wb.documents.count(), len(wb.jobs.list(kind="ingest"))) == (0, 1)
