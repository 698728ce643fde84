"""A database that dies under a server: calls report it, and are answered again once it is back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from mcp import Client

from tests.mcp_app.processes import over_stdio
from tests.shared_home import postmaster
from workbench import Workbench
from workbench.settings import Settings

LONG = 120  # seconds: an upper bound that only failures reach


def own(home: Path) -> dict[str, str]:
    """Return the environment of a server with a separate embedded database."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("WORKBENCH_")}
    return {**others, "WORKBENCH_HOME": str(home), "WORKBENCH_EMBEDDING_MODEL": "hash", "WORKBENCH_RUN_WORKER": "false"}


@contextmanager
def serving(home: Path) -> Generator[str]:
    """Run a server over HTTP on an embedded database; yields its base URL."""
    command = [sys.executable, "-m", "mcp_app", "--transport", "http", "--port", "0"]
    process = subprocess.Popen(command, env=own(home), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield process.stderr.readline().removeprefix("Serving MCP at ").strip().removesuffix("/mcp")
    finally:
        process.terminate()
        process.communicate(timeout=LONG)


def called(base: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool over HTTP with the SDK's client."""

    async def script() -> Any:
        async with Client(f"{base}/mcp") as client:
            return await client.call_tool(tool, arguments)

    answer = asyncio.run(script())
    assert not answer.is_error, answer.content[0].text
    return json.loads(answer.content[0].text)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_health_reports_that_the_database_died_and_the_next_call_starts_it_again(
    shared_home: Path, number: signal.Signals
) -> None:
    with serving(shared_home) as base:
        document = called(base, "manage_document", action="create", content="Kept words.")["document"]["id"]
        assert httpx.get(f"{base}/health", timeout=LONG).status_code == 200
        server = postmaster(shared_home)
        assert server is not None
        os.kill(server, number)
        while postmaster(shared_home) is not None:
            time.sleep(0.05)
        down = httpx.get(f"{base}/health", timeout=LONG)
        assert (down.status_code, down.json()["database"], down.json()["ready"]) == (503, "down", False)
        listed = called(base, "manage_document", action="list")
        assert [one["id"] for one in listed["documents"]] == [document]
        assert postmaster(shared_home) not in (None, server)
        up = httpx.get(f"{base}/health", timeout=LONG)
        assert (up.status_code, up.json()["database"], up.json()["ready"]) == (200, "ok", True)


def test_a_session_ends_in_time_though_the_database_answers_nothing(shared_home: Path) -> None:
    command, pipe = [sys.executable, "-m", "mcp_app"], subprocess.PIPE
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    listing = {"name": "manage_source", "arguments": {"action": "list"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": listing},
    ]
    with subprocess.Popen(command, env=own(shared_home), stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.writelines(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
        process.stdin.flush()
        assert [json.loads(process.stdout.readline())["id"] for _ in range(2)] == [1, 2]
        number = postmaster(shared_home)
        assert number is not None
        server = psutil.Process(number)
        frozen = [server, *server.children(recursive=True)]
        for each in frozen:
            each.suspend()
        try:
            process.stdin.close()  # the call is not yet in the log, which is written when the session ends
            started = time.monotonic()
            process.wait(LONG)
            assert time.monotonic() - started < 4  # as a whole; writing the log alone would wait 5 s
        finally:
            for each in frozen:
                each.resume()


def test_a_database_elsewhere_that_is_down_is_an_error_that_explains_what_to_do(settings_nowhere: Settings) -> None:
    async def script() -> Any:
        async with Client(over_stdio(settings_nowhere)) as client:
            return await client.call_tool("search_knowledge_base", {"query": "words"})

    answer = asyncio.run(script())
    told = json.loads(answer.content[0].text)
    assert (answer.is_error, told["success"]) == (True, False)
    assert "is unreachable" in told["error"]
    assert told["suggestion"].startswith("The call is valid: start the database")


@pytest.fixture
def settings_nowhere(wb: Workbench) -> Settings:
    """Settings with a database that does not exist."""
    nowhere: Any = "postgresql://nobody@127.0.0.1:1/none"
    return wb.settings.model_copy(update={"database_url": Settings(database_url=nowhere, _env_file=None).database_url})


def test_equal_creates_of_several_processes_at_once_make_one_document(wb: Workbench) -> None:
    given = {"action": "create", "content": "The very same words, from everywhere."}

    async def creates(count: int) -> list[str]:
        async with Client(over_stdio(wb.settings)) as client:
            answers = await asyncio.gather(*(client.call_tool("manage_document", given) for _ in range(count)))
        return [json.loads(answer.content[0].text)["outcome"] for answer in answers]

    async def script() -> list[list[str]]:
        return await asyncio.gather(creates(4), creates(3), creates(3))

    outcomes = [outcome for some in asyncio.run(script()) for outcome in some]
    assert sorted(outcomes) == ["created"] + ["unchanged"] * 9
    assert wb.documents.count() == 1
