"""The ready configuration for each client, with this machine's paths; the token only by the name of its variable."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.errors import InvalidInput
from workbench.settings import Settings

NAME = "rag-workbench"
TOKEN = "WORKBENCH_MCP_TOKEN"
DATABASE = "WORKBENCH_DATABASE_URL"
URL = "http://127.0.0.1:8765/mcp"


@dataclass(frozen=True, slots=True)
class ClientSetup:
    """The facts a client needs: a command to start (stdio) or an address to call (http)."""

    transport: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    with_token: bool = False

    @property
    def command(self) -> str:
        """The program that serves."""
        beside = Path(sys.executable).with_name("workbench")
        return str(beside) if beside.exists() else sys.executable

    @property
    def words(self) -> list[str]:
        """Its arguments."""
        start = ["mcp"] if Path(self.command).name == "workbench" else ["-m", "mcp_app"]
        return [*start, *self.arguments]


@dataclass(frozen=True, slots=True)
class Client:
    """A program that speaks MCP: where its configuration goes and how it is written."""

    title: str
    where: str
    language: str
    write: Callable[[ClientSetup], str]


def connection_of(
    settings: Settings, transport: str, toolsets: tuple[str, ...], read_only: bool, client: str = ""
) -> ClientSetup:
    """Return the connection to this workbench; settings that are not the defaults go into the environment.

    ``client`` is the name under which calls over stdio are logged.
    """
    arguments = (
        *(("--client", client) if client and transport == "stdio" else ()),
        *(("--transport", "http") if transport == "http" else ()),
        *(("--toolsets", ",".join(toolsets)) if toolsets else ()),
        *(("--read-only",) if read_only else ()),
    )
    return ClientSetup(transport, arguments, tuple(_environment(settings).items()), settings.mcp_token is not None)


def with_database(connection: ClientSetup, settings: Settings, *, password: bool) -> ClientSetup:
    """Return the connection with the database's own address in it.

    Raises:
        InvalidInput: the address has a password, and nobody said that it may be written down.
    """
    url = settings.database_url.get_secret_value() if settings.database_url is not None else ""
    if ":" in url.partition("://")[2].rpartition("@")[0] and not password:
        raise InvalidInput("WORKBENCH_DATABASE_URL has a password; --with-database writes it into the client's file.")
    return replace(connection, environment=tuple((dict(connection.environment) | {DATABASE: url}).items()))


def serve_command(connection: ClientSetup) -> str:
    """Return the line that starts the HTTP server by hand."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in connection.environment]
    return " ".join([*variables, shlex.join([connection.command, *connection.words])])


def _environment(settings: Settings) -> dict[str, str]:
    values = {"WORKBENCH_HOME": str(settings.home)}
    if settings.database_url is not None:
        values[DATABASE] = "postgresql://USER:PASSWORD@HOST/DATABASE"
    if settings.embedding_model != "minilm":
        values["WORKBENCH_EMBEDDING_MODEL"] = settings.embedding_model
    if settings.file_roots:
        values["WORKBENCH_FILE_ROOTS"] = settings.file_roots
    return values


def _stdio(connection: ClientSetup) -> dict[str, Any]:
    return {"command": connection.command, "args": connection.words, "env": dict(connection.environment)}


def _http(connection: ClientSetup, token: str) -> dict[str, Any]:
    headers = {"headers": {"Authorization": f"Bearer {token}"}} if connection.with_token else {}
    return {"url": URL, **headers}


def _written(key: str, entry: dict[str, Any], **more: Sequence[Mapping[str, object]]) -> str:
    return json.dumps({key: {NAME: entry}, **more}, indent=2)


def _servers(token: str) -> Callable[[ClientSetup], str]:
    def write(connection: ClientSetup) -> str:
        entry = _http(connection, token) if connection.transport == "http" else _stdio(connection)
        return _written("mcpServers", entry)

    return write


def _desktop(connection: ClientSetup) -> str:
    if connection.transport == "stdio":
        return _written("mcpServers", _stdio(connection))
    return f"Settings > Connectors > Add custom connector\nName: {NAME}\nURL:  {URL}"


def _code(connection: ClientSetup) -> str:
    if connection.transport == "http":
        header = f' --header "Authorization: Bearer ${TOKEN}"' if connection.with_token else ""
        return f"claude mcp add --transport http {NAME} {URL}{header}"
    variables = " ".join(f"--env {shlex.quote(f'{name}={value}')}" for name, value in connection.environment)
    return f"claude mcp add {NAME} {variables} -- {shlex.join([connection.command, *connection.words])}"


def _zed(connection: ClientSetup) -> str:
    entry = _http(connection, f"YOUR_{TOKEN}") if connection.transport == "http" else _stdio(connection)
    return _written("context_servers", entry)


def _vscode(connection: ClientSetup) -> str:
    if connection.transport == "stdio":
        return _written("servers", {"type": "stdio", **_stdio(connection)})
    entry = {"type": "http", **_http(connection, "${input:workbench-token}")}
    if not connection.with_token:
        return _written("servers", entry)
    ask = {"type": "promptString", "id": "workbench-token", "description": "The workbench's token", "password": True}
    return _written("servers", entry, inputs=[ask])


CLIENTS: dict[str, Client] = {
    "claude-desktop": Client(
        "Claude Desktop", "Settings > Developer > Edit Config (claude_desktop_config.json)", "json", _desktop
    ),
    "claude-code": Client("Claude Code", "In a terminal, in the folder of your project", "bash", _code),
    "cursor": Client(
        "Cursor", "~/.cursor/mcp.json, or .cursor/mcp.json in a project", "json", _servers(f"${{env:{TOKEN}}}")
    ),
    "vscode": Client("VS Code", ".vscode/mcp.json in a folder, or the command MCP: Add Server", "json", _vscode),
    "zed": Client("Zed", "~/.config/zed/settings.json, or the command zed: open settings", "json", _zed),
    "other": Client("Another", "The client's own list of MCP servers", "json", _servers(f"YOUR_{TOKEN}")),
}
