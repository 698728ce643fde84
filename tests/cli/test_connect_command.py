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

from workbench.app.connect.clients import connection_of
from workbench.app.connect.connections import CLIENT_FILES, apply, planned
from workbench.errors import ConfigurationError
from workbench.settings import Settings

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
    assert "rag-workbench" in refused.err and "use --yes to write" in refused.err
    assert not (person / ".cursor").exists()


@pytest.mark.parametrize("odd", ["\n", "\r\n", "\ufeff"])
@pytest.mark.parametrize("client", SECTIONS)
def test_undo_gives_the_file_back_to_the_byte_with_the_entry_that_was_replaced(
    workbench: Callable[..., Ran], tmp_path: Path, client: str, odd: str
) -> None:
    file = tmp_path / "client's.json"
    text = (
        f'{{\n\t// mine\n\t"{SECTIONS[client]}": {{"rag-workbench": {{ "command":"old", /* by hand */ }},\n'
        '\t\t"other": {"command": "x"}, },\n}\n'
    )
    before = (text.replace("\n", odd) if "\n" in odd else odd + text).encode()
    file.write_bytes(before)
    file.chmod(0o640)
    for more in ([], ["--read-only"]):  # the second time it is our own entry that is replaced
        assert workbench("connect", client, "--file", str(file), "--yes", "--with-database", *more).code == 0
    assert b"// mine" in file.read_bytes() and b"--read-only" in file.read_bytes()
    assert b'"old"' not in file.read_bytes() and b'"other": {"command": "x"}, }' in file.read_bytes()
    undone = workbench("connect", client, "--undo", "--yes")
    assert undone.out.startswith("Restored the previous entry")
    assert file.read_bytes() == before and file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [file.name]
    again = workbench("connect", client, "--undo", "--yes", "--file", str(file))
    assert "it was not changed" in again.out and file.read_bytes() == before


def test_what_others_wrote_meanwhile_stays_when_it_is_undone(workbench: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"context_servers": {"rag-workbench": {"command": "old" /* mine */}}, "size": 12}')
    assert workbench("connect", "zed", "--file", str(file), "--yes", "--with-database").code == 0
    servers = json.loads(file.read_text())["context_servers"]  # an editor writes the file anew, with more in it
    file.write_text(json.dumps({"context_servers": servers | {"new": {"command": "n"}}, "size": 14}))
    assert workbench("connect", "zed", "--undo", "--yes").code == 0
    expected = (
        '{"context_servers": {"rag-workbench": {"command": "old" /* mine */}, "new": {"command": "n"}}, "size": 14}'
    )
    assert file.read_text() == expected


def test_each_file_of_a_client_is_undone_by_itself(workbench: Callable[..., Ran], tmp_path: Path, data: Path) -> None:
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for number, file in enumerate(files):
        file.write_text(f'{{"mcpServers": {{"rag-workbench": {{"command": "old {number}"}}}}}}')
        assert workbench("connect", "cursor", "--file", str(file), "--yes", "--with-database").code == 0
    assert (data / "connections.json").stat().st_mode & 0o777 == 0o600
    first = workbench("connect", "cursor", "--undo", "--yes")
    assert "old 1" in files[1].read_text() and f"It is also in {files[0]}; use --undo again" in first.out
    assert workbench("connect", "cursor", "--undo", "--yes").code == 0
    assert "old 0" in files[0].read_text()


def test_a_connection_of_an_older_version_is_undone(workbench: Callable[..., Ran], tmp_path: Path, data: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"rag-workbench": {"command": "w", "args": ["mcp", "--client", "cursor"]}}}')
    note = {"file": str(file), "at": "2026-01-01T00:00:00+00:00", "before": {"command": "old"}, "made": False}
    (data / "connections.json").write_text(json.dumps({"cursor": note}))
    assert workbench("connect", "--json").json["cursor"].startswith(f"Connected in {file};")
    assert workbench("connect", "cursor", "--undo", "--yes").code == 0
    assert json.loads(file.read_text()) == {"mcpServers": {"rag-workbench": {"command": "old"}}}


def test_a_file_that_its_client_wrote_while_one_was_asked_is_left_alone(person: Path, data: Path) -> None:
    connection = connection_of(Settings(_env_file=None), "stdio", (), False, client="claude-code")
    change = planned("claude-code", connection, data)
    change.path.parent.mkdir(parents=True)
    change.path.write_text('{"numStartups": 7}')
    with pytest.raises(ConfigurationError, match="has changed meanwhile; nothing was written"):
        apply(change, data)
    assert change.path.read_text() == '{"numStartups": 7}'


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
