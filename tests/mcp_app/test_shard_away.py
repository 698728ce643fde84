"""Agents of a cluster one of whose shards was killed: every answer says what was not seen, or is one sentence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from tests.mcp_app.processes import over_http, over_stdio
from tests.mcp_app.test_every_tool import GUIDE, PLAN
from tests.storage.conftest import fresh, running
from tests.storage.shards import Server
from workbench import Workbench
from workbench.settings import Settings

__all__ = ["fresh", "running"]
UNSEEN = "shard 2"
SCOPED = {"query": "vector index", "project_id": "proj_123"}


class Bereft:
    """A cluster's settings after its second shard was killed, and a passage and a job that it had."""

    def __init__(self, settings: Settings, archives: Path, passage: str, job: str) -> None:
        self.settings, self.passage, self.job = settings, passage, job
        self.more = {"WORKBENCH_RUN_WORKER": "false", "WORKBENCH_ARCHIVES_DIR": str(archives)}


@pytest.fixture
def bereft(
    fresh: list[Server], make_settings: Callable[..., Settings], folder: Callable[..., Path]
) -> Iterator[Bereft]:
    root = folder({f"{PLAN}-{number}/conversation.md": f"{GUIDE} part {number}" for number in range(12)})
    notes = {f"research/2025-05-{day:02}/one.md": f"# One {day}\n\n{GUIDE}" for day in range(1, 13)}
    archives = folder(notes, "archives")
    settings = make_settings(database_url=fresh[0].url, file_roots=str(root), archives_dir=archives)
    with Workbench.open(settings=settings) as wb:
        for server in fresh[1:3]:
            wb.shards.add(server.url)
        wb.projects.create("Harbour", id="proj_123")
        sources = [wb.sources.create("Endpoints", project="proj_123").id, wb.sources.create("Hooks").id]
        for number in range(12):
            wb.documents.create(text=f"{GUIDE} part {number}", title=f"Guide {number}", source=sources[number % 2])
        wb.workspaces.embed(root)
        wb.archives.search("vector index")
        before = {hit.passage_id for hit in wb.search("vector index", limit=200)}
        job = wb.jobs.enqueue_ingest([root], source="Later").id
        fresh[2].kill()
        lost = before - {hit.passage_id for hit in wb.search("vector index", limit=200)}
        yield Bereft(settings, archives, lost.pop(), job)


def test_every_answer_over_stdio_says_what_was_not_seen(bereft: Bereft) -> None:
    calls: dict[str, dict[str, Any]] = {
        "search_knowledge_base": {"query": "vector index"},
        "rag_search_knowledge_base": SCOPED,
        "rag_search_project_knowledge": SCOPED,
        "rag_search_global_knowledge": {"query": "vector index"},
        "rag_search_code_examples": {"query": "vector index"},
        "search": {"query": "vector index"},
        "search_semantic": {"query": "vector index", "workspace_path": bereft.settings.file_roots},
        "searchLocalArchives": {"query": "vector index"},
    }

    async def script() -> tuple[dict[str, Any], Any, Any, Any]:
        async with Client(over_stdio(bereft.settings, **bereft.more)) as client:
            found = {name: await client.call_tool(name, arguments) for name, arguments in calls.items()}
            around = await client.call_tool("rag_read_neighbours", {"chunk_id": bereft.passage})
            job = await client.call_tool("get_job", {"job_id": bereft.job})
            written = await client.call_tool("manage_document", {"action": "create", "content": "Nobody keeps this."})
            return found, around, job, written

    found, around, job, written = asyncio.run(script())
    for name, answer in found.items():
        told = json.loads(answer.content[0].text)
        assert not answer.is_error and told["results"], name
        degraded = told.get("degraded") or told.get("metadata", {}).get("degraded") or ()
        assert any(UNSEEN in note for note in degraded), name
    assert not job.is_error and json.loads(job.content[0].text)["job"]["status"] == "queued"
    for refused in (around, written):
        assert refused.is_error
        assert UNSEEN in json.loads(refused.content[0].text)["error"].lower()


def test_answers_over_http_say_what_was_not_seen_and_the_server_is_healthy(bereft: Bereft) -> None:
    with over_http(bereft.settings, **bereft.more) as base:
        answer = httpx.post(f"{base}/api/rag/query", json=SCOPED, timeout=120)
        assert answer.status_code == 200 and answer.json()["results"]
        assert any(UNSEEN in note for note in answer.json()["degraded"])
        assert httpx.get(f"{base}/api/rag/sources", timeout=120).status_code == 200
        health = httpx.get(f"{base}/health", timeout=120)
        assert (health.status_code, health.json()["database"]) == (200, "ok")


def test_a_workbench_warms_up_over_the_shards_that_are_there(bereft: Bereft) -> None:
    with Workbench.open(settings=bereft.settings) as wb:
        wb.warm()
        assert [shard.number for shard in wb.corpus.outage.away] == [2]
