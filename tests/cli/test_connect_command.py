"""``workbench connect``: the change is shown, written and undone, and later calls are detected."""

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

from workbench.app.connect.clients import make_connection
from workbench.app.connect.connections import CLIENT_FILES, apply_change, plan_connection
from workbench.errors import ConfigurationError
from workbench.settings import Settings

SECTIONS = {client: file.section for client, file in CLIENT_FILES.items()}


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with an empty home folder and a separate data folder."""
    for variable in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return tmp_path / "person"


@pytest.fixture(autouse=True)
def data(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the notes about connections apart from those of other tests."""
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
    assert "no calls yet" in done.json["state"]
    assert workbench("connect", client, "--yes", "--with-database", "--json").json["changed"] is False
    assert workbench("connect", client, "--undo", "--yes").code == 0
    assert not path.exists()


def test_nothing_is_written_unasked(workbench: Callable[..., Ran], person: Path) -> None:
    refused = workbench("connect", "cursor", "--with-database")
    assert refused.code == 2
    assert "rag-workbench" in refused.err and "Use --yes" in refused.err
    assert not (person / ".cursor").exists()


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\ufeff"])
@pytest.mark.parametrize("client", SECTIONS)
def test_undo_restores_the_backup_to_the_byte(
    workbench: Callable[..., Ran], tmp_path: Path, client: str, line_end: str
) -> None:
    file, backup = tmp_path / "client's.json", tmp_path / "client's.json.rag-workbench.bak"
    text = (
        f'{{\n\t"{SECTIONS[client]}": {{"rag-workbench": {{ "command":"old" }},\n'
        '\t\t"other": {"command": "x"} }\n}\n'
    )
    before = (text.replace("\n", line_end) if "\n" in line_end else line_end + text).encode()
    file.write_bytes(before)
    file.chmod(0o640)
    for more in ([], ["--read-only"]):  # the second run replaces our own entry and keeps the first backup
        assert workbench("connect", client, "--file", str(file), "--yes", "--with-database", *more).code == 0
        assert backup.read_bytes() == before and backup.stat().st_mode & 0o777 == 0o640
    written = json.loads(file.read_text())[SECTIONS[client]]
    assert "--read-only" in written["rag-workbench"]["args"] and written["other"] == {"command": "x"}
    undone = workbench("connect", client, "--undo", "--yes")
    assert undone.out.strip() == f"Restored {file}."
    assert file.read_bytes() == before and file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [file.name]
    again = workbench("connect", client, "--undo", "--yes", "--file", str(file))
    assert "left unchanged" in again.out and file.read_bytes() == before


def test_undo_removes_only_our_entry_if_the_file_has_changed(workbench: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"context_servers": {"theirs": {"command": "t"}}, "size": 12}')
    assert workbench("connect", "zed", "--file", str(file), "--yes", "--with-database").code == 0
    servers = json.loads(file.read_text())["context_servers"]
    file.write_text(json.dumps({"context_servers": servers | {"new": {"command": "n"}}, "size": 14}))
    undone = workbench("connect", "zed", "--undo", "--yes")
    assert f"The file before 'workbench connect' is {file}.rag-workbench.bak." in undone.out
    assert json.loads(file.read_text()) == {
        "context_servers": {"theirs": {"command": "t"}, "new": {"command": "n"}},
        "size": 14,
    }


def test_undo_after_a_second_connect_keeps_edits_made_between(workbench: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"size": 12}')
    assert workbench("connect", "zed", "--file", str(file), "--yes", "--with-database").code == 0
    file.write_text(json.dumps(json.loads(file.read_text()) | {"size": 14}))
    assert workbench("connect", "zed", "--file", str(file), "--yes", "--with-database", "--read-only").code == 0
    assert workbench("connect", "zed", "--undo", "--yes").code == 0
    assert json.loads(file.read_text()) == {"context_servers": {}, "size": 14}


def test_each_file_of_a_client_is_undone_separately(workbench: Callable[..., Ran], tmp_path: Path, data: Path) -> None:
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for number, file in enumerate(files):
        file.write_text(f'{{"mcpServers": {{"rag-workbench": {{"command": "old {number}"}}}}}}')
        assert workbench("connect", "cursor", "--file", str(file), "--yes", "--with-database").code == 0
    marker = data / "connections" / "cursor"
    assert marker.read_text() == str(files[1]) and marker.stat().st_mode & 0o777 == 0o600
    assert workbench("connect", "cursor", "--undo", "--yes").code == 0
    assert "old 1" in files[1].read_text() and not marker.exists()
    assert "rag-workbench" in files[0].read_text() and "old 0" not in files[0].read_text()
    assert workbench("connect", "cursor", "--undo", "--yes", "--file", str(files[0])).code == 0
    assert "old 0" in files[0].read_text()


def test_a_file_that_its_client_wrote_while_one_was_asked_is_left_alone(person: Path, data: Path) -> None:
    connection = make_connection(Settings(_env_file=None), "stdio", (), False, client="claude-code")
    change = plan_connection("claude-code", connection)
    change.path.parent.mkdir(parents=True)
    change.path.write_text('{"numStartups": 7}')
    with pytest.raises(ConfigurationError, match="has changed in the meantime; nothing was written"):
        apply_change(change, data)
    assert change.path.read_text() == '{"numStartups": 7}'


def test_a_call_over_the_written_connection_is_seen(workbench: Callable[..., Ran], person: Path) -> None:
    written = workbench("connect", "cursor", "--yes", "--with-database", "--json").json
    entry = json.loads(Path(written["file"]).read_text())["mcpServers"]["rag-workbench"]
    assert "success" in called(entry)
    states = workbench("connect", "--json").json
    assert states["cursor"].startswith("Connected: 1 call, the last at ")
    assert states["zed"].startswith("Not connected")
    assert workbench("connect", "cursor", "--yes", "--with-database").out.count("Connected: 1 call") == 1


@pytest.mark.parametrize("text", ["{ not json", '{"a": 1} // mine', "[]", '{"mcpServers": 3}'])
def test_a_file_that_is_not_plain_json_is_left_alone_and_the_block_is_shown(
    workbench: Callable[..., Ran], tmp_path: Path, text: str
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    refused = workbench("connect", "cursor", "--file", str(file), "--yes", "--with-database")
    assert refused.code == 2 and "is not plain JSON, so it was not changed. Add this" in refused.err
    assert '"mcpServers": {' in refused.err and '"rag-workbench": {' in refused.err
    assert file.read_text() == text


def test_an_unknown_client_is_refused(workbench: Callable[..., Ran]) -> None:
    unknown = workbench("connect", "emacs")
    assert unknown.code == 2 and "'claude-desktop'" in unknown.err


def test_a_password_is_not_written_down_unasked(
    workbench: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, person: Path
) -> None:
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", "postgresql://me:s3cret@127.0.0.1:1/x")
    refused = workbench("connect", "cursor", "--yes")
    assert refused.code == 2 and "--with-database" in refused.err and "s3cret" not in refused.err
    assert not (person / ".cursor").exists()
