"""Long work immediately returns a job, and readers never wait for writers."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from mcp_app.file_roots import FileRoots
from mcp_app.server import create_server
from mcp_app.tool import Call, format_follow_up
from mcp_app.tools import select_tools
from mcp_app.tools.knowledge import is_large, manage_document
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.opening import Opening
from workbench.services.checks import JOB_THRESHOLD_BYTES
from workbench.storage.jobs import JobParts
from workbench.text import MAX_PASSAGES_STEMMED_AT_ONCE

LONG = "A long text of many words. " * (JOB_THRESHOLD_BYTES // 27 + 1)


@pytest.mark.parametrize("form", ["content", "file_path"])
def test_a_large_document_answers_with_a_job_that_ends_with_the_document(
    agent: Agent, wb: Workbench, form: str
) -> None:
    (Path(wb.settings.file_roots) / "long.md").write_text(LONG)
    text = {"content": LONG} if form == "content" else {"file_path": "long.md"}
    answer = agent("manage_document", action="create", title="Long", metadata={"year": 2024}, **text)
    job = answer["job"]["job_id"]
    assert (answer["outcome"], answer["message"].endswith(f'Next: get_job(job_id="{job}")')) == ("queued", True)
    wb.work()
    wb.jobs.wait(job, timeout=120)
    ended = agent("get_job", job_id=job)["job"]
    assert (ended["status"], ended["result"]["outcome"]) == ("completed", "created")
    document = wb.documents.get(ended["result"]["document_id"])
    assert (document.title, document.text, document.metadata["year"]) == ("Long", LONG.strip(), 2024)


@pytest.mark.parametrize(
    ("name", "size", "large"),
    [
        ("a.txt", JOB_THRESHOLD_BYTES // 2, False),
        ("a.docx", JOB_THRESHOLD_BYTES // 2, True),
        ("a.pdf", JOB_THRESHOLD_BYTES // 9, False),
        ("a.png", 9, True),
    ],
)
def test_a_packed_file_is_large_by_what_it_may_hold(tmp_path: Path, name: str, size: int, large: bool) -> None:
    (tmp_path / name).write_bytes(b"x" * size)
    assert is_large(tmp_path / name, "") is large


@pytest.mark.parametrize("form", ["content", "file_path"])
def test_a_large_update_answers_with_a_job_that_ends_with_the_new_content(
    agent: Agent, wb: Workbench, form: str
) -> None:
    document = wb.documents.create(text="Few words.", title="Growing").document.id
    (Path(wb.settings.file_roots) / "long.md").write_text(LONG)
    given = {"content": LONG} if form == "content" else {"file_path": "long.md"}
    answer = agent("manage_document", action="update", document_id=document, metadata={"year": 2024}, **given)
    assert (answer["outcome"], wb.documents.get(document).text) == ("queued", "Few words.")
    wb.work()
    job = wb.jobs.wait(answer["job"]["job_id"], timeout=120)
    assert (job.status, job.result["document_id"], job.result["outcome"]) == ("completed", document, "updated")
    changed = wb.documents.get(document)
    assert (changed.title, changed.text, changed.metadata["year"]) == ("Growing", LONG.strip(), 2024)
    assert wb.documents.count() == 1


def test_a_long_conversation_answers_with_a_job_that_embeds_it_alone(agent: Agent, wb: Workbench) -> None:
    day = Path(wb.settings.file_roots) / "plan/2025-11-17"
    day.mkdir(parents=True)
    (day / "000-long.md").write_text(f"# Long talk\n\n{LONG}")
    (day / "001-other.md").write_text("# Other\n\nNot asked for.")
    where = {"path": "plan/2025-11-17/000-long.md", "workspace_path": wb.settings.file_roots}
    answer = agent("embed_document", **where)
    assert (answer["embedded"], answer["total_files"], answer["job"]["status"]) == (0, 1, "queued")
    assert agent("embed_document", **where)["job"]["job_id"] == answer["job"]["job_id"]
    wb.work()
    job = wb.jobs.wait(answer["job"]["job_id"], timeout=120)
    assert (job.status, job.result["embedded"]) == ("completed", 1)
    assert agent("embed_document", **where)["skipped"] == 1
    assert agent("get_embedding_status", workspace_path=wb.settings.file_roots)["num_documents"] == 1


def test_an_agent_stops_a_large_ingest_and_lets_it_continue(agent: Agent, wb: Workbench) -> None:
    job = wb.jobs.enqueue_document(text=LONG, title="Long").id
    stopped = agent("manage_crawl_job", action="cancel", job_id=job)
    assert (stopped["job"]["job_id"], wb.jobs.wait(job, timeout=120).status) == (job, "cancelled")
    assert wb.documents.count() == 0
    resumed = agent("manage_crawl_job", action="resume", job_id=job)
    assert resumed["job"]["status"] == "queued"
    wb.work()
    assert wb.jobs.wait(job, timeout=120).status == "completed"
    assert wb.documents.count() == 1


def test_a_small_document_answers_finished(agent: Agent) -> None:
    answer = agent("manage_document", action="create", content="Few words.")
    assert (answer["outcome"], answer["document"]["chunks_created"]) == ("created", 1)


def test_a_large_workspace_answers_with_a_job(agent: Agent, wb: Workbench) -> None:
    day = Path(wb.settings.file_roots) / "plan/2025-11-17"
    day.mkdir(parents=True)
    for number in range(3):
        (day / f"00{number}-talk.md").write_text(f"# Talk {number}\n\n{LONG}")
    before = agent("get_embedding_status", workspace_path=wb.settings.file_roots)
    assert (before["pending"], before["num_documents"]) == ({"new": 3, "changed": 0, "vanished": 0}, 0)
    answer = agent("embed_workspace", workspace_path=wb.settings.file_roots)
    assert (answer["embedded"], answer["total_files"], answer["job"]["status"]) == (0, 3, "queued")
    wb.work()
    wb.jobs.wait(answer["job"]["job_id"], timeout=180)
    after = agent("get_embedding_status", workspace_path=wb.settings.file_roots)
    assert (after["num_documents"], "note" in after) == (3, False)
    (day / "000-talk.md").write_text("# Talk 0\n\nChanged.")
    (day / "001-talk.md").unlink()
    changed = agent("get_embedding_status", workspace_path=wb.settings.file_roots)
    assert changed["pending"] == {"new": 0, "changed": 1, "vanished": 1}
    assert "Next: embed_workspace(" in changed["note"]


def test_a_list_is_answered_while_more_creates_run_than_may_write_at_once(wb: Workbench) -> None:
    begun, go = threading.Semaphore(0), threading.Event()

    def held(call: Any, action: str, **arguments: Any) -> Any:
        if action == "create":
            begun.release()
            assert go.wait(120)
        return manage_document.run(call, action, **arguments)

    server = create_server(wb, toolsets=["all"])
    server.tools["manage_document"] = replace(manage_document, run=held)

    async def script() -> Any:
        async with Client(server) as client:
            writes = [
                asyncio.create_task(client.call_tool("manage_document", {"action": "create", "content": f"Text {n}."}))
                for n in range(4)
            ]
            assert await anyio.to_thread.run_sync(lambda: begun.acquire(timeout=60) and begun.acquire(timeout=60))
            listed = await client.call_tool("manage_document", {"action": "list"})
            go.set()
            return listed, await asyncio.gather(*writes)

    listed, written = asyncio.run(script())
    assert not listed.is_error
    assert [answer.is_error for answer in written] == [False] * 4


def test_ten_equal_creates_at_once_make_one_document(wb: Workbench) -> None:
    async def script() -> list[str]:
        async with Client(create_server(wb, toolsets=["all"])) as client:
            arguments = {"action": "create", "content": "The very same words."}
            answers = await asyncio.gather(*(client.call_tool("manage_document", arguments) for _ in range(10)))
            return [answer.content[0].text.rpartition('"outcome":')[2].strip('"}') for answer in answers]

    assert sorted(asyncio.run(script())) == ["created"] + ["unchanged"] * 9


def test_a_job_reports_how_far_its_parts_are_and_how_many_workers_are_at_it(agent: Agent, wb: Workbench) -> None:
    job = wb.jobs.enqueue_ingest([Path(wb.settings.file_roots)], source="Any")
    assert "parts" not in agent("get_job", job_id=job.id)["job"]
    parts = JobParts(wb.corpus.database)
    parts.plan(job.id, [("first", 1), ("second", 1), ("third", 1)])
    parts.take(job.id, "somebody")
    told = agent("get_job", job_id=job.id)["job"]
    assert (told["parts"], told["parts_done"], told["hands"]) == (3, 0, 1)


def test_a_long_result_of_a_job_is_read_in_parts(agent: Agent, wb: Workbench, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("# Good\n\nOne that can be read.")
    for number in range(25):
        (tmp_path / f"{number:02}.pdf").write_bytes(b"%PDF-1.7 broken")
    job = wb.jobs.enqueue_ingest([tmp_path], source="Broken")
    wb.work()
    wb.jobs.wait(job.id, timeout=120)
    first = agent("get_job", job_id=job.id)["job"]["result"]
    going_on = f'get_job(job_id="{job.id}", limit=20, offset=20)'
    assert (len(first["failures"]), going_on in first["note"]) == (20, True)
    rest = agent("get_job", job_id=job.id, offset=20)["job"]["result"]
    assert len(rest["failures"]) == 5 and "note" not in rest


@pytest.mark.parametrize(("toolsets", "named"), [(["knowledge"], "manage_crawl_job"), (["workspace"], "")])
def test_an_answer_with_a_job_names_only_tools_that_are_offered(wb: Workbench, toolsets: list[str], named: str) -> None:
    offered = frozenset(tool.name for tool in select_tools(toolsets))
    call = Call(Opening.from_open_workbench(wb), wb.articles, FileRoots(), offered)
    sentence = format_follow_up(call, wb.jobs.enqueue_ingest([Path(wb.settings.file_roots)], source="Any"))
    assert named in sentence and ("Next:" in sentence) == bool(named) and "get_job" not in sentence


def test_a_large_source_that_gets_another_language_answers_with_the_job_that_stems_its_words(
    agent: Agent, wb: Workbench
) -> None:
    source = wb.sources.create("Texte")
    line = "Die Häuser stehen am Ufer. " * 40
    text = "\n\n".join(f"## Seite {number}\n\n{line}" for number in range(MAX_PASSAGES_STEMMED_AT_ONCE + 1))
    wb.documents.create(text=text, source=source.id, title="Lang")
    wb.sources.update(source.id, language="english")
    assert not wb.search("Haus", strategy="keyword")
    answer = agent("manage_source", action="update", source_id=source.id, language="german")
    (job,) = wb.jobs.list(kind="index_build")
    assert f'get_job(job_id="{job.id}")' in answer["message"]
    wb.work()
    assert wb.jobs.wait(job.id, timeout=120).status == "completed"
    assert wb.search("Haus", strategy="keyword") and wb.indexes.count_missing("main") == 0
