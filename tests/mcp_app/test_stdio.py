"""The server as a client starts it: a process on stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.mcp_app.agent import MODES
from tests.mcp_app.processes import environment, over_stdio
from workbench import Workbench
from workbench.settings import Settings

HEAVY = ("llama_index", "psycopg", "numpy", "onnxruntime", "streamlit", "crawl4ai", "pandas", "workbench.workbench")


@pytest.mark.parametrize("mode", ["auto", *MODES])
def test_a_client_starts_the_server_searches_and_leaves(wb: Workbench, mode: str) -> None:
    wb.documents.create(text="Some words on stdio.", title="T")

    async def script() -> Any:
        async with Client(over_stdio(wb.settings), mode=mode) as client:
            tools = await client.list_tools()
            found = await client.call_tool("search_knowledge_base", {"query": "words"})
            return tools, found

    tools, found = asyncio.run(script())
    assert "search_knowledge_base" in {tool.name for tool in tools.tools}
    assert json.loads(found.content[0].text)["results"][0]["document_title"] == "T"


@pytest.mark.slow
def test_nothing_heavy_is_imported_before_the_first_reply() -> None:
    code = (
        "import json, sys; from workbench.opening import Opening; from mcp_app.serving import create_server;"
        "create_server(Opening()); print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert "mcp.server" in loaded
    assert [name for name in loaded if name in HEAVY or name.split(".")[0] in HEAVY] == []


def test_a_dot_as_workspace_is_the_clients_working_directory(
    make_settings: Callable[..., Settings], tmp_path: Path
) -> None:
    day = tmp_path / "plan/2025-11-17"
    day.mkdir(parents=True)
    (day / "001-here.md").write_text("# Here\n\nWords in this very folder.")
    server = over_stdio(make_settings(file_roots=str(tmp_path))).model_copy(update={"cwd": tmp_path})

    async def script() -> list[Any]:
        async with Client(server) as client:
            told = await client.call_tool("embed_workspace", {"workspace_path": "."})
            places = [{"workspace_path": place} for place in (".", "", str(tmp_path))]
            return [told, *[await client.call_tool("get_embedding_status", place) for place in places]]

    embedded, *statuses = [json.loads(answer.content[0].text) for answer in asyncio.run(script())]
    assert (embedded["success"], embedded["embedded"]) == (True, 1)
    assert [status["num_documents"] for status in statuses] == [1, 1, 1]


def test_the_first_call_waits_for_the_workbench_instead_of_failing(make_settings: Callable[..., Settings]) -> None:
    async def script() -> Any:
        async with Client(over_stdio(make_settings()), mode="legacy") as client:
            calls = [client.call_tool("manage_source", {"action": "list"}) for _ in range(3)]
            return await asyncio.gather(*calls)

    assert [json.loads(answer.content[0].text)["success"] for answer in asyncio.run(script())] == [True] * 3


def test_an_unreachable_database_is_one_sentence_and_can_be_retried(
    make_settings: Callable[..., Settings],
) -> None:
    settings = make_settings(database_url="postgresql://nobody@127.0.0.1:1/none")

    async def script() -> Any:
        async with Client(over_stdio(settings)) as client:
            return [await client.call_tool("manage_source", {"action": "list"}) for _ in range(2)]

    for answer in asyncio.run(script()):
        assert answer.is_error
        assert "is unreachable" in json.loads(answer.content[0].text)["error"]


def test_a_client_that_leaves_while_the_workbench_opens_leaves_no_noise(make_settings: Callable[..., Settings]) -> None:
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"name": "manage_source", "arguments": {"action": "list"}}
    messages = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},  # starts to open the engine; no one waits for the answer
    ]
    sent = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    command = [sys.executable, "-m", "mcp_app"]
    done = subprocess.run(
        command, input=sent, env=environment(make_settings()), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout.splitlines()[0])["id"] == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--toolsets", "nope"], "Unknown toolset: 'nope'"),
        (["--transport", "pigeon"], "Unknown transport: 'pigeon'"),
        (["--transport", "http", "--host", "0.0.0.0", "--port", "0"], "Set WORKBENCH_MCP_TOKEN, or listen on"),
    ],
)
def test_a_wrong_start_is_refused_with_one_sentence(
    make_settings: Callable[..., Settings], options: list[str], sentence: str
) -> None:
    command = [sys.executable, "-m", "mcp_app", *options]
    done = subprocess.run(command, env=environment(make_settings()), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": ABOUT}
UNUSUAL = [
    (b"garbage", None, -32700),
    (b'{"jsonrpc":"2.0","id":5,"method":"ping"', None, -32700),
    (b"\xff\xfe{", None, -32700),
    (b"[]", None, -32600),
    (b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]', 7, -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
    (b'{"id":8,"method":"ping"}', 8, -32600),
    (b"42", None, -32600),
]


@pytest.mark.parametrize("through", ["pipes", "files"])
def test_every_unusual_line_gets_an_error_and_the_session_continues(
    make_settings: Callable[..., Settings], tmp_path: Path, through: str
) -> None:
    ping = b'\xef\xbb\xbf{"jsonrpc":"2.0","id":99,"method":"ping"}\r'
    lines = [b"\xef\xbb\xbf" + json.dumps(INITIALIZE).encode(), *(line for line, _, _ in UNUSUAL), b"", ping]
    sent = b"\n".join([*lines, json.dumps({**INITIALIZE, "id": 100}).encode(), b""])
    command, env = [sys.executable, "-m", "mcp_app"], environment(make_settings())
    if through == "pipes":
        output = subprocess.run(command, input=sent, env=env, capture_output=True, check=True).stdout
    else:
        (tmp_path / "in").write_bytes(sent)
        with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
            subprocess.run(command, stdin=stdin, stdout=stdout, env=env, check=True)
        output = (tmp_path / "out").read_bytes()
    answers = [json.loads(line) for line in output.splitlines()]
    errors = [(answer["id"], answer["error"]["code"]) for answer in answers if answer.get("error", {}).get("code")]
    assert errors[: len(UNUSUAL)] == [(key, code) for _, key, code in UNUSUAL]
    assert {1, 99} <= {answer["id"] for answer in answers if "result" in answer}
