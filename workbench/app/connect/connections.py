"""Connect clients: add this workbench to a client's file, undo that, and report which clients have called."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import platformdirs

from workbench.app.connect.clients import SERVER_NAME, ClientSetup
from workbench.errors import ConfigurationError, InvalidInput
from workbench.runtime import replace_file
from workbench.storage.tool_calls import Caller
from workbench.types import JsonObject, JsonValue, as_object, as_text, as_text_or_none

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
        kind: JsonObject = {"type": "stdio"} if self.is_typed else {}
        return kind | {"command": connection.command, "args": connection.words, "env": dict(connection.environment)}


CLIENT_FILES: dict[str, ClientFile] = {
    "claude-desktop": ClientFile(lambda: _settings_file("Claude", "claude_desktop_config.json"), "mcpServers"),
    "claude-code": ClientFile(lambda: Path.home() / ".claude.json", "mcpServers", is_typed=True),
    "cursor": ClientFile(lambda: Path.home() / ".cursor" / "mcp.json", "mcpServers"),
    "vscode": ClientFile(lambda: _settings_file("Code", "User", "mcp.json"), "servers", is_typed=True),
    "zed": ClientFile(_zed_file, "context_servers"),
}


# Notes about written files, needed for undo

NOTES_FILE = "connections.json"  # in the data folder, readable by its owner only
BACKUP_SUFFIX = ".rag-workbench.bak"


@dataclass(frozen=True, slots=True)
class ConnectionNote:
    """A record of what ``connect`` changed in one file of a client."""

    file: str  # path of the file
    at: str  # time of the change, in ISO format
    digest: str  # SHA-256 of the file as written; "" if others had changed it between two runs of ``connect``
    backup: str | None  # path of the file as it was before; None if there was no file

    @property
    def time(self) -> datetime:
        """The time of the change."""
        return datetime.fromisoformat(self.at)


def read_notes(home: Path) -> dict[str, list[ConnectionNote]]:
    """Return the notes of each connected client, one for each file, newest last."""
    try:
        stored = as_object(json.loads((home / NOTES_FILE).read_text(encoding="utf-8")))
        return {client: _parse_notes(notes) for client, notes in stored.items()}
    except (OSError, ValueError, TypeError):  # missing or damaged
        return {}


def _find_note(home: Path, client: str, file: Path) -> ConnectionNote | None:
    return next((note for note in read_notes(home).get(client, []) if note.file == str(file)), None)


def _store_note(home: Path, client: str, file: Path, note: ConnectionNote | None) -> None:
    """Replace the note of a file; None removes it."""
    notes = read_notes(home)
    others = [other for other in notes.pop(client, []) if other.file != str(file)]
    remaining = [*others, note] if note is not None else others
    notes |= {client: remaining} if remaining else {}
    text = json.dumps({name: [asdict(one) for one in ones] for name, ones in notes.items()}, indent=1) + "\n"
    _write(home / NOTES_FILE, text, is_private=True)


def _parse_notes(stored: JsonValue) -> list[ConnectionNote]:
    if not isinstance(stored, list):
        raise TypeError(stored)
    return [_parse_note(as_object(one)) for one in stored]


def _parse_note(stored: Mapping[str, JsonValue]) -> ConnectionNote:
    note = ConnectionNote(
        file=as_text(stored.get("file")),
        at=as_text(stored.get("at")),
        digest=as_text(stored.get("digest", "")),
        backup=as_text_or_none(stored.get("backup")),
    )
    datetime.fromisoformat(note.at)
    return note


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
    note: ConnectionNote | None = None  # the note to keep afterwards; None removes it
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


def plan_connection(client: str, connection: ClientSetup, home: Path, path: Path | None = None) -> FileChange:
    """Return the change that connects a client.

    Raises:
        InvalidInput: The file is not plain JSON, such as JSON with comments. The message has the block to paste.
    """
    file = CLIENT_FILES[client]
    place = _absolute(path or file.place())
    text, entry = _read_text(place), file.entry(connection)
    root = _parse(text)
    servers = None if root is None else root.get(file.section, {})
    if root is None or not isinstance(servers, dict):
        block = json.dumps({file.section: {SERVER_NAME: entry}}, indent=2, ensure_ascii=False)
        raise InvalidInput(f"{place} is not plain JSON, so it was not changed. Add this to it yourself:\n{block}")
    current, known = servers.get(SERVER_NAME), _find_note(home, client, place)
    if current == entry:
        return FileChange(client, place, text, text, "unchanged", known)
    after = _dump(root | {file.section: servers | {SERVER_NAME: entry}}, text)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    if known is not None and _is_ours(current, client):  # keep the first backup, unless it is out of date
        digest = _digest(after) if known.digest == _digest(text) else ""
        return FileChange(client, place, text, after, "written", ConnectionNote(str(place), now, digest, known.backup))
    backup = place.with_name(place.name + BACKUP_SUFFIX) if place.exists() else None
    note = ConnectionNote(str(place), now, _digest(after), str(backup) if backup else None)
    return FileChange(client, place, text, after, "written", note, backup)


def plan_undo(client: str, home: Path, path: Path | None = None) -> FileChange:
    """Return the change that undoes ``connect``: restore the backup, or remove the entry if the file has changed since.

    Args:
        path: The file to undo; by default the one that was written last.

    Raises:
        InvalidInput: The file has changed and is not plain JSON.
    """
    file = CLIENT_FILES[client]
    notes = read_notes(home).get(client, [])
    place = _absolute(path or (Path(notes[-1].file) if notes else file.place()))
    note, text = _find_note(home, client, place), _read_text(place)
    backup = Path(note.backup) if note is not None and note.backup else None
    if note is not None and note.digest == _digest(text) and (backup is None or backup.exists()):
        return FileChange(client, place, text, _read_text(backup) if backup else None, "restored", backup=backup)
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
    remaining = {name: entry for name, entry in servers.items() if name != SERVER_NAME}
    after = _dump(root | {file.section: remaining}, text)
    return FileChange(client, place, text, after, "removed", backup=backup if backup and backup.exists() else None)


def apply_change(change: FileChange, home: Path) -> None:
    """Write a change, and the note about it.

    Raises:
        ConfigurationError: A file is not writable, or the client has written its own since the change was planned.
    """
    if _read_text(change.path) != change.before:
        raise ConfigurationError(f"{change.path} has changed in the meantime; nothing was written. Try again.")
    known = _find_note(home, change.client, change.path)
    try:
        if change.outcome == "written" and change.backup is not None:
            _write(change.backup, change.before, mode=change.path.stat().st_mode & 0o777)
        if change.note is not None and change.note != known:  # first, so that a full disk does not lose it
            _store_note(home, change.client, change.path, change.note)
        try:
            _write_file(change)
        except OSError:
            _store_note(home, change.client, change.path, known)
            raise
        if change.note is None and known is not None:
            _store_note(home, change.client, change.path, None)
        if change.outcome == "restored" and change.backup is not None:
            change.backup.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(f"Cannot write {error.filename or change.path} ({error.strerror}).") from error


def describe_state(client: str, home: Path, callers: Mapping[str, Caller]) -> str:
    """Return a sentence on whether a client is connected, and whether it has called since."""
    notes, caller = read_notes(home).get(client, []), callers.get(client)
    if caller is not None and (not notes or caller.last >= notes[-1].time):
        last = caller.last.astimezone().strftime("%Y-%m-%d %H:%M")
        return f"Connected: {caller.calls:,} call{'' if caller.calls == 1 else 's'}, the last at {last}."
    if not notes:
        return "Not connected yet."
    files = ", ".join(note.file for note in notes)
    return f"Connected in {files}; no calls yet. Restart the client and ask it something."


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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _read_text(place: Path) -> str:
    """Return a file's text with its original line endings; "" if there is no file."""
    try:
        return place.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"Cannot read {place} ({error}).") from error


def _write_file(change: FileChange) -> None:
    if change.after is None:
        change.path.unlink(missing_ok=True)
    elif not change.is_none:
        _write(change.path, change.after)


def _write(path: Path, text: str, *, is_private: bool = False, mode: int | None = None) -> None:
    """Write a file in one step. It keeps its mode; a new or private one is readable by its owner only."""
    if path.exists() and not is_private:
        mode = path.stat().st_mode & 0o777
    replace_file(path, text.encode("utf-8"), mode)
