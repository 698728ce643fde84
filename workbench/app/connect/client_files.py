"""The file that each client keeps its list of servers in, and the entry of this workbench in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from workbench.app.connect.clients import NAME, ClientSetup
from workbench.types import JsonObject


def _roaming(*names: str) -> Path:
    """Return a file in the person's settings: ~/Library/Application Support, %APPDATA%, or ~/.config."""
    return Path(platformdirs.user_config_dir(names[0], appauthor=False, roaming=True), *names[1:])


def _zed() -> Path:
    windows = platformdirs.user_config_dir("Zed", appauthor=False, roaming=True)
    return Path(windows, "settings.json") if Path.home().drive else Path.home() / ".config" / "zed" / "settings.json"


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A client's own file: where it lies for the person who runs this, and the name of the object with its servers."""

    place: Callable[[], Path]
    section: str
    is_typed: bool = False

    @property
    def path(self) -> tuple[str, str]:
        """The place of this workbench's entry in the file."""
        return self.section, NAME

    def entry(self, connection: ClientSetup) -> JsonObject:
        """Return the entry that lets the client start this workbench."""
        kind: JsonObject = {"type": "stdio"} if self.is_typed else {}
        return kind | {
            "command": connection.command,
            "args": connection.words,
            "env": dict(connection.environment),
        }


CLIENT_FILES: dict[str, ClientFile] = {
    "claude-desktop": ClientFile(lambda: _roaming("Claude", "claude_desktop_config.json"), "mcpServers"),
    "claude-code": ClientFile(lambda: Path.home() / ".claude.json", "mcpServers", is_typed=True),
    "cursor": ClientFile(lambda: Path.home() / ".cursor" / "mcp.json", "mcpServers"),
    "vscode": ClientFile(lambda: _roaming("Code", "User", "mcp.json"), "servers", is_typed=True),
    "zed": ClientFile(_zed, "context_servers"),
}
