"""``workbench connect``: the change is shown, written, undone; and calls that came since are seen."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Ran
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from workbench.app.connect.client_files import CLIENT_FILES

SECTIONS = {client: file.section for client, file in CLIENT_FILES.items()}


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person with an empty home folder and a data folder of their own."""
    for variable in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return tmp_path / "person"


@pytest.fixture(autouse=True)
def data(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the notes of connections apart from other tests'."""
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def called(entry: dict[str, Any]) -> str:
    """Start the server as a client reads it from its file, and call a tool."""
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env={**os.environ, **entry["env"]})

    async def script() -> Any:
        async with Client(server) as client:
            return await client.call_tool("rag_get_available_sources", {})

    return asyncio.run(script()).content[0].text


@pytest.mark.parametrize("client", SECTIONS)
def test_a_client_without_a_file_gets_one_and_undo_takes_it_away(
    workbench: Callable[..., Ran], client: str, person: Path
) -> None:
    done = workbench("connect", client, "--yes", "--with-database", "--json")
    assert done.code == 0, done.err
    path = Path(done.json["file"])
    assert path.is_relative_to(person)
    entry = json.loads(path.read_text())[SECTIONS[client]]["rag-workbench"]
    assert entry["args"][-2:] == ["--client", client] and Path(entry["command"]).exists()
    assert '+    "rag-workbench": {' in done.err
    assert "no call seen since" in done.json["state"]
    assert workbench("connect", client, "--yes", "--with-database", "--json").json["changed"] is False
    assert workbench("connect", client, "--undo", "--yes").code == 0
    assert not path.exists()


def test_nothing_is_written_unasked(workbench: Callable[..., Ran], person: Path) -> None:
    refused = workbench("connect", "cursor", "--with-database")
    assert refused.code == 2
    assert "rag-workbench" in refused.err and "--yes writes it" in refused.err
    assert not (person / ".cursor").exists()


def test_other_servers_comments_and_an_entry_of_before_come_back(workbench: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(
        '{\n  // mine\n  "context_servers": {"rag-workbench": {"command": "old"}, "other": {"command": "x"}},\n}\n'
    )
    before = file.read_text()
    assert workbench("connect", "zed", "--file", str(file), "--yes", "--with-database").code == 0
    assert "// mine" in file.read_text() and '"other": {"command": "x"}' in file.read_text()
    assert '"old"' not in file.read_text()
    assert workbench("connect", "zed", "--undo", "--yes").code == 0
    assert '"command": "old"' in file.read_text() and "// mine" in file.read_text()
    assert before.count("\n") <= file.read_text().count("\n")


def test_a_call_over_the_written_connection_is_seen(workbench: Callable[..., Ran], person: Path) -> None:
    written = workbench("connect", "cursor", "--yes", "--with-database", "--json").json
    entry = json.loads(Path(written["file"]).read_text())["mcpServers"]["rag-workbench"]
    assert "success" in called(entry)
    states = workbench("connect", "--json").json
    assert states["cursor"].startswith("Connection seen: 1 call, the last at ")
    assert states["zed"].startswith("Not connected")
    assert workbench("connect", "cursor", "--yes", "--with-database").out.count("Connection seen") == 1


def test_what_cannot_be_understood_is_left_alone(workbench: Callable[..., Ran], tmp_path: Path) -> None:
    broken = tmp_path / "mcp.json"
    broken.write_text("{ not json")
    refused = workbench("connect", "cursor", "--file", str(broken), "--yes", "--with-database")
    assert refused.code == 2 and "was left as it is" in refused.err
    assert broken.read_text() == "{ not json"
    unknown = workbench("connect", "emacs")
    assert unknown.code == 2 and "'claude-desktop'" in unknown.err


def test_a_password_is_not_written_down_unasked(
    workbench: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, person: Path
) -> None:
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", "postgresql://me:s3cret@127.0.0.1:1/x")
    refused = workbench("connect", "cursor", "--yes")
    assert refused.code == 2 and "--with-database" in refused.err and "s3cret" not in refused.err
    assert not (person / ".cursor").exists()
