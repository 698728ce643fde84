"""``workbench serve``: pages, MCP, HTTP API and health checks at one address, below a path, with a token."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from browser_server import free_port, wait_until_up
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from playwright.sync_api import Page, expect

from workbench import Workbench

pytestmark = pytest.mark.browser
TOKEN = "a-token-for-tests"
WITH_TOKEN = {"Authorization": f"Bearer {TOKEN}"}
A_PAGE = {"accept": "text/html"}
SLOW = 200_000  # ms: the first search of a process imports the framework


@pytest.fixture(scope="module")
def address(filled: Workbench, browser_database: str, test_home: Path) -> Iterator[str]:
    """The address of a server under the path /tools, with a token."""
    port = free_port()
    settings = {
        "WORKBENCH_HOME": str(test_home),
        "WORKBENCH_DATABASE_URL": browser_database,
        "WORKBENCH_EMBEDDING_MODEL": "hash",
        "WORKBENCH_MCP_TOKEN": TOKEN,
        "WORKBENCH_MCP_ALLOWED_HOSTS": "wiki.lan",
    }
    command = [sys.executable, "-m", "workbench.cli", "serve", "--port", str(port), "--base-path", "/tools"]
    process = subprocess.Popen(command, env={**os.environ, **settings}, cwd=test_home)
    wait_until_up(f"http://127.0.0.1:{port}/tools")
    yield f"http://127.0.0.1:{port}/tools"
    process.terminate()
    assert process.wait(30) in (0, 130)


def test_an_agent_with_the_token_is_served_and_one_without_is_not(address: str) -> None:
    async def script() -> Any:
        async with httpx2.AsyncClient(headers=WITH_TOKEN, timeout=60) as carrier:
            transport = streamable_http_client(f"{address}/mcp", http_client=carrier)
            async with Client(transport) as client:
                return await client.call_tool("search_knowledge_base", {"query": "level of the sea"})

    with ThreadPoolExecutor(1) as pool:  # the browser's loop runs in this thread
        answer = pool.submit(lambda: asyncio.run(script())).result()
    assert json.loads(answer.content[0].text)["results"][0]["document_title"] == "Tide gauge"
    assert httpx.post(f"{address}/mcp", json={}).status_code == 401


def test_the_http_api_wants_the_token_and_health_does_not(address: str) -> None:
    assert httpx.get(f"{address}/api/rag/sources").status_code == 401
    assert httpx.get(f"{address}/api/rag/sources", headers=WITH_TOKEN).json()["success"] is True
    assert httpx.get(f"{address}/health").json()["status"] == "ok"
    assert httpx.get(f"{address}/_stcore/health").status_code == 200


def test_other_hosts_and_callers_without_the_password_stay_outside(address: str) -> None:
    assert httpx.get(f"{address}/", headers={"host": "evil.example"}).status_code == 421
    assert httpx.get(f"{address}/find?q=a").status_code == 401
    assert "password" in httpx.get(f"{address}/library", headers={**A_PAGE, "host": "wiki.lan"}).text
    assert '/tools/login?wanted=%2F%3Fq%3Dwhy%3F"' in httpx.get(f"{address}/?q=why?", headers=A_PAGE).text
    assert httpx.get(f"{address}/find?q=gauge", headers=WITH_TOKEN).status_code == 200


def test_a_person_gives_the_password_once_and_works_under_the_path(address: str, page: Page) -> None:
    page.goto(f"{address}/?q=what keeps waves out?")
    page.get_by_label("Password").fill("guessed")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_have_text("Wrong password.")
    page.get_by_label("Password").fill(TOKEN)
    page.get_by_role("button", name="Open").click()
    expect(page.locator(".st-key-scopebar")).to_be_visible(timeout=SLOW)
    expect(page.locator(".card").first).to_be_visible(timeout=SLOW)  # the question outlasts the form
    with page.expect_response(lambda response: response.url.endswith("source-sans-3-latin-wght-normal.woff2")) as font:
        page.goto(f"{address}/?q=level of the sea")
    assert font.value.status == 200 and font.value.url.startswith(f"{address}/app/static/")
    expect(page.locator(".card").first).to_contain_text("Tide gauge", timeout=SLOW)
    page.get_by_role("link", name="Library").click()
    expect(page.get_by_text("Harbour").first).to_be_visible(timeout=SLOW)
    assert page.url.startswith(f"{address}/library")
    page.keyboard.press("Control+k")
    page.keyboard.type("gauge")
    expect(page.get_by_role("option", name="Tide gauge").first).to_be_visible()


def test_beyond_this_machine_a_token_is_required(test_home: Path) -> None:
    command = [sys.executable, "-m", "workbench.cli", "serve", "--host", "0.0.0.0", "--port", str(free_port())]
    environment = {**os.environ, "WORKBENCH_HOME": str(test_home), "WORKBENCH_MCP_TOKEN": ""}
    refused = subprocess.run(command, env=environment, cwd=test_home, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1
    assert "Set WORKBENCH_MCP_TOKEN, or listen on 127.0.0.1" in refused.stderr
