"""Configurations for MCP clients, with this machine's paths; the token appears only as a variable name."""

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
from workbench.types import JsonObject

SERVER_NAME = "rag-workbench"
TOKEN_VARIABLE = "WORKBENCH_MCP_TOKEN"
DATABASE_VARIABLE = "WORKBENCH_DATABASE_URL"
SERVER_URL = "http://127.0.0.1:8765/mcp"


@dataclass(frozen=True, slots=True)
class ClientSetup:
    """How a client connects."""

    transport: str  # "stdio" (the client starts a command) or "http" (it calls a URL)
    arguments: tuple[str, ...]  # arguments of ``workbench mcp``
    environment: tuple[tuple[str, str], ...]  # names and values of environment variables
    with_token: bool = False  # true if a bearer token is required

    @property
    def command(self) -> str:
        """Path of the program to start."""
        program = Path(sys.executable).with_name("workbench")
        return str(program) if program.exists() else sys.executable

    @property
    def words(self) -> list[str]:
        """Arguments of the program."""
        start = ["mcp"] if Path(self.command).name == "workbench" else ["-m", "mcp_app"]
        return [*start, *self.arguments]


@dataclass(frozen=True, slots=True)
class Client:
    """An MCP client: its title, the location and syntax of its configuration, and the function that writes it."""

    title: str
    where: str
    language: str
    write: Callable[[ClientSetup], str]


def make_connection(
    settings: Settings, transport: str, toolsets: tuple[str, ...], read_only: bool, client: str = ""
) -> ClientSetup:
    """Return the connection to this workbench; settings that are not the defaults become environment variables.

    Args:
        settings: Settings of this workbench.
        transport: "stdio" or "http".
        toolsets: Names of toolsets; () for the default ones.
        read_only: True to offer only tools that change nothing.
        client: Name under which calls over stdio are logged.
    """
    arguments = (
        *(("--client", client) if client and transport == "stdio" else ()),
        *(("--transport", "http") if transport == "http" else ()),
        *(("--toolsets", ",".join(toolsets)) if toolsets else ()),
        *(("--read-only",) if read_only else ()),
    )
    return ClientSetup(transport, arguments, tuple(_environment(settings).items()), settings.mcp_token is not None)


def add_database_url(connection: ClientSetup, settings: Settings, *, password: bool) -> ClientSetup:
    """Return the connection with the database URL.

    Raises:
        InvalidInput: The URL has a password, and ``password`` is false.
    """
    url = settings.database_url.get_secret_value() if settings.database_url is not None else ""
    if ":" in url.partition("://")[2].rpartition("@")[0] and not password:
        raise InvalidInput(
            "WORKBENCH_DATABASE_URL has a password. Use --with-database to write it into the client's file."
        )
    return replace(connection, environment=tuple((dict(connection.environment) | {DATABASE_VARIABLE: url}).items()))


def format_serve_command(connection: ClientSetup) -> str:
    """Return the shell command that starts the HTTP server."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in connection.environment]
    return " ".join([*variables, shlex.join([connection.command, *connection.words])])


def _environment(settings: Settings) -> dict[str, str]:
    values = {"WORKBENCH_HOME": str(settings.home)}
    if settings.database_url is not None:
        values[DATABASE_VARIABLE] = "postgresql://USER:PASSWORD@HOST/DATABASE"
    if settings.embedding_model != "minilm":
        values["WORKBENCH_EMBEDDING_MODEL"] = settings.embedding_model
    if settings.file_roots:
        values["WORKBENCH_FILE_ROOTS"] = settings.file_roots
    return values


def stdio_entry(connection: ClientSetup) -> JsonObject:
    """Return the entry with which a client starts this workbench."""
    return {"command": connection.command, "args": connection.words, "env": dict(connection.environment)}


def _http_entry(connection: ClientSetup, token: str) -> dict[str, Any]:
    headers = {"headers": {"Authorization": f"Bearer {token}"}} if connection.with_token else {}
    return {"url": SERVER_URL, **headers}


def _format_json(key: str, entry: dict[str, Any], **more: Sequence[Mapping[str, object]]) -> str:
    return json.dumps({key: {SERVER_NAME: entry}, **more}, indent=2)


def _servers_writer(section: str, token: str) -> Callable[[ClientSetup], str]:
    def write(connection: ClientSetup) -> str:
        entry = _http_entry(connection, token) if connection.transport == "http" else stdio_entry(connection)
        return _format_json(section, entry)

    return write


def _write_desktop(connection: ClientSetup) -> str:
    if connection.transport == "stdio":
        return _format_json("mcpServers", stdio_entry(connection))
    return f"Settings > Connectors > Add custom connector\nName: {SERVER_NAME}\nURL:  {SERVER_URL}"


def _write_code(connection: ClientSetup) -> str:
    if connection.transport == "http":
        header = f' --header "Authorization: Bearer ${TOKEN_VARIABLE}"' if connection.with_token else ""
        return f"claude mcp add --transport http {SERVER_NAME} {SERVER_URL}{header}"
    variables = " ".join(f"--env {shlex.quote(f'{name}={value}')}" for name, value in connection.environment)
    return f"claude mcp add {SERVER_NAME} {variables} -- {shlex.join([connection.command, *connection.words])}"


def _write_vscode(connection: ClientSetup) -> str:
    if connection.transport == "stdio":
        return _format_json("servers", {"type": "stdio", **stdio_entry(connection)})
    entry = {"type": "http", **_http_entry(connection, "${input:workbench-token}")}
    if not connection.with_token:
        return _format_json("servers", entry)
    ask = {"type": "promptString", "id": "workbench-token", "description": "Workbench token", "password": True}
    return _format_json("servers", entry, inputs=[ask])


YOUR_TOKEN = f"YOUR_{TOKEN_VARIABLE}"
CLIENTS: dict[str, Client] = {
    "claude-desktop": Client(
        "Claude Desktop", "Settings > Developer > Edit Config (claude_desktop_config.json)", "json", _write_desktop
    ),
    "claude-code": Client("Claude Code", "Run in a terminal in your project folder", "bash", _write_code),
    "cursor": Client(
        "Cursor",
        "~/.cursor/mcp.json, or .cursor/mcp.json in a project",
        "json",
        _servers_writer("mcpServers", f"${{env:{TOKEN_VARIABLE}}}"),
    ),
    "vscode": Client("VS Code", ".vscode/mcp.json in a project, or the command MCP: Add Server", "json", _write_vscode),
    "zed": Client(
        "Zed",
        "~/.config/zed/settings.json, or the command zed: open settings",
        "json",
        _servers_writer("context_servers", YOUR_TOKEN),
    ),
    "other": Client(
        "Other", "The client's MCP server configuration", "json", _servers_writer("mcpServers", YOUR_TOKEN)
    ),
}
