"""Connect clients: add this workbench to a client's file, undo that, and report which clients have called."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import platformdirs

from workbench.app.connect.clients import SERVER_NAME, ClientSetup, stdio_entry
from workbench.errors import ConfigurationError, InvalidInput
from workbench.formatting import count_text
from workbench.runtime import replace_file
from workbench.storage.tool_calls import Caller
from workbench.types import JsonObject, JsonValue, as_object

# Where each client keeps its list of servers


def _settings_file(*names: str) -> Path:
    """Return a file in the user's settings: ~/Library/Application Support, %APPDATA%, or ~/.config."""
    return Path(platformdirs.user_config_dir(names[0], appauthor=False, roaming=True), *names[1:])


def _zed_file() -> Path:
    windows = platformdirs.user_config_dir("Zed", appauthor=False, roaming=True)
    return Path(windows, "settings.json") if Path.home().drive else Path.home() / ".config" / "zed" / "settings.json"


@dataclass(frozen=True, slots=True)
class ClientFile:
    """The configuration file of a client."""

    place: Callable[[], Path]  # returns its path for the current user
    section: str  # name of the object that holds the servers
    is_typed: bool = False  # true if an entry names its transport as "type"

    def entry(self, connection: ClientSetup) -> JsonObject:
        """Return the configuration entry with which the client starts this workbench."""
        return ({"type": "stdio"} if self.is_typed else {}) | stdio_entry(connection)


CLIENT_FILES: dict[str, ClientFile] = {
    "claude-desktop": ClientFile(lambda: _settings_file("Claude", "claude_desktop_config.json"), "mcpServers"),
    "claude-code": ClientFile(lambda: Path.home() / ".claude.json", "mcpServers", is_typed=True),
    "cursor": ClientFile(lambda: Path.home() / ".cursor" / "mcp.json", "mcpServers"),
    "vscode": ClientFile(lambda: _settings_file("Code", "User", "mcp.json"), "servers", is_typed=True),
    "zed": ClientFile(_zed_file, "context_servers"),
}


# Which file was written last, and when

MARKERS_FOLDER = "connections"  # in the data folder: for each connected client a file with the path of its file
BACKUP_SUFFIX = ".rag-workbench.bak"


def _read_marker(marker: Path) -> Path | None:
    """Return the client's file that was written last, or None if the client is not connected."""
    try:
        return Path(marker.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


# Changes of a client's file

Outcome = Literal["written", "unchanged", "restored", "removed", "foreign", "nothing"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A planned change of a client's file."""

    client: str  # key of the client in ``CLIENT_FILES``
    path: Path  # absolute path of the file
    before: str  # its text now; "" if there is no file
    after: str | None  # its text afterwards; None deletes the file
    outcome: Outcome  # what the change does. "foreign": the entry was not written by ``connect``, so it stays.
    backup: Path | None = None  # the backup that connecting writes, or undoing restores from

    @property
    def is_none(self) -> bool:
        """True if the file stays as it is."""
        return self.before == self.after

    @property
    def difference(self) -> str:
        """The change as a unified diff."""
        before, after = self.before.splitlines(), (self.after or "").splitlines()
        return "\n".join(difflib.unified_diff(before, after, str(self.path), str(self.path), lineterm="", n=2))


def plan_connection(client: str, connection: ClientSetup, path: Path | None = None) -> FileChange:
    """Return the change that connects a client.

    Raises:
        InvalidInput: The file is not plain JSON, such as JSON with comments. The message has the block to paste.
    """
    file = CLIENT_FILES[client]
    place = (path or file.place()).expanduser().absolute()
    text, entry = _read_text(place), file.entry(connection)
    root = _parse(text)
    servers = None if root is None else root.get(file.section, {})
    if root is None or not isinstance(servers, dict):
        block = json.dumps({file.section: {SERVER_NAME: entry}}, indent=2, ensure_ascii=False)
        raise InvalidInput(f"{place} is not plain JSON, so it was not changed. Add this to it yourself:\n{block}")
    current = servers.get(SERVER_NAME)
    if current == entry:
        return FileChange(client, place, text, text, "unchanged")
    after = _dump(root | {file.section: servers | {SERVER_NAME: entry}}, text)
    has_backup = _is_ours(current, client) or not place.exists()  # of the file before the first connection
    return FileChange(client, place, text, after, "written", None if has_backup else _backup_path(place))


def plan_undo(client: str, home: Path, path: Path | None = None) -> FileChange:
    """Return the change that undoes ``connect``: restore the backup, or remove the entry if the file has changed since.

    Args:
        path: The file to undo; by default the one that was written last.

    Raises:
        InvalidInput: The file has changed and is not plain JSON.
    """
    file = CLIENT_FILES[client]
    place = (path or _read_marker(home / MARKERS_FOLDER / client) or file.place()).expanduser().absolute()
    text = _read_text(place)
    root = _parse(text)
    if root is None:
        raise InvalidInput(
            f"{place} is not plain JSON, so it was not changed. Remove '{SERVER_NAME}' from it yourself."
        )
    servers = root.get(file.section)
    if not isinstance(servers, dict) or SERVER_NAME not in servers:
        return FileChange(client, place, text, text, "nothing")
    if not _is_ours(servers[SERVER_NAME], client):
        return FileChange(client, place, text, text, "foreign")
    remaining = root | {file.section: {name: entry for name, entry in servers.items() if name != SERVER_NAME}}
    backup = _backup_path(place) if _backup_path(place).exists() else None
    if backup is None and remaining == {file.section: {}}:  # ``connect`` created the file
        return FileChange(client, place, text, None, "restored")
    former = _read_text(backup) if backup else ""
    if backup and _without_ours(former, file.section) == _without_ours(text, file.section):
        return FileChange(client, place, text, former, "restored", backup)
    return FileChange(client, place, text, _dump(remaining, text), "removed", backup)


def _backup_path(place: Path) -> Path:
    return place.with_name(place.name + BACKUP_SUFFIX)


def _without_ours(text: str, section: str) -> JsonObject:
    """Return the object of a file without the entry of this workbench, and without a section that is empty then."""
    root = _parse(text) or {}
    servers = {name: entry for name, entry in as_object(root.get(section, {})).items() if name != SERVER_NAME}
    return {name: value for name, value in (root | {section: servers}).items() if name != section or value}


def apply_change(change: FileChange, home: Path) -> None:
    """Write a change, and which file of the client it was.

    Raises:
        ConfigurationError: A file is not writable, or the client has written its own since the change was planned.
    """
    if _read_text(change.path) != change.before:
        raise ConfigurationError(f"{change.path} has changed in the meantime; nothing was written. Try again.")
    marker = home / MARKERS_FOLDER / change.client
    mode = change.path.stat().st_mode & 0o777 if change.path.exists() else None
    try:
        if change.outcome == "written":
            if change.backup is not None:
                replace_file(change.backup, change.before.encode(), mode)
            replace_file(marker, str(change.path).encode())  # first, so that a full disk does not lose it
        if change.after is None:
            change.path.unlink()
        elif not change.is_none:
            replace_file(change.path, change.after.encode(), mode)
        if change.outcome == "restored" and change.backup is not None:
            change.backup.unlink()
        if change.outcome not in ("written", "unchanged") and _read_marker(marker) == change.path:
            marker.unlink()
    except OSError as error:
        raise ConfigurationError(f"Cannot write {error.filename or change.path} ({error.strerror}).") from error


def describe_state(client: str, home: Path, callers: Mapping[str, Caller]) -> str:
    """Return a sentence on whether a client is connected, and whether it has called since."""
    marker, caller = home / MARKERS_FOLDER / client, callers.get(client)
    file = _read_marker(marker)
    if caller is not None and (file is None or caller.last.timestamp() >= marker.stat().st_mtime):
        last = caller.last.astimezone().strftime("%Y-%m-%d %H:%M")
        return f"Connected: {count_text(caller.calls, 'call')}, the last at {last}."
    if file is None:
        return "Not connected yet."
    return f"Connected in {file}; no calls yet. Restart the client and ask it something."


def _is_ours(entry: object, client: str) -> bool:
    """Return whether ``connect`` wrote an entry, which then names the client for the call log."""
    words = entry.get("args") if isinstance(entry, dict) else None
    return isinstance(words, list) and ["--client", client] in [words[at : at + 2] for at in range(len(words))]


def _parse(text: str) -> dict[str, JsonValue] | None:
    """Return the object of a file, empty for an empty file; None if it is not plain JSON."""
    plain = text.removeprefix("\ufeff")  # editors on Windows write it first
    try:
        root = json.loads(plain) if plain.strip() else {}
    except ValueError:
        return None
    return root if isinstance(root, dict) else None


def _dump(root: Mapping[str, JsonValue], former: str) -> str:
    """Return an object as JSON with the indent of the former text."""
    indent = re.search(r'^([ \t]+)"', former, re.MULTILINE)
    return json.dumps(root, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"


def _read_text(place: Path) -> str:
    """Return a file's text with its original line endings; "" if there is no file."""
    try:
        return place.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"Cannot read {place} ({error}).") from error
