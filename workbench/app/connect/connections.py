"""Connections to clients: the change of a client's file, the note that lets it be undone, and calls seen since."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from workbench.app.connect.client_files import CLIENT_FILES, ClientFile
from workbench.app.connect.clients import ClientSetup
from workbench.app.connect.json_members import member, with_member, without_member
from workbench.errors import ConfigurationError, InvalidInput
from workbench.services.tool_calls import Caller
from workbench.types import JsonObject, JsonValue, as_text

NOTES = "connections.json"  # in the data folder: client -> file, when, and the entry that stood there before


@dataclass(frozen=True, slots=True)
class FileChange:
    """A client's file before and after; ``after`` None takes the file away."""

    client: str
    path: Path
    before: str
    after: str | None

    @property
    def is_none(self) -> bool:
        """True where the file says all of it already."""
        return self.before == self.after

    @property
    def difference(self) -> str:
        """The change line by line, as ``diff -u`` shows it."""
        before, after = self.before.splitlines(), (self.after or "").splitlines()
        return "\n".join(difflib.unified_diff(before, after, str(self.path), str(self.path), lineterm="", n=2))


def planned(client: str, connection: ClientSetup, path: Path | None = None) -> FileChange:
    """Return the change that connects a client. Raises InvalidInput where its file is not to be understood."""
    file, place, text = _opened(client, path)
    return FileChange(client, place, text, _edited(place, text, file, file.entry(connection)))


def undoing(client: str, home: Path, path: Path | None = None) -> FileChange:
    """Return the change that takes this workbench out again, and back the entry that stood there before, if one did."""
    note = notes_of(home).get(client, {})
    file, place, text = _opened(client, path or (Path(as_text(note["file"])) if "file" in note else None))
    after = _edited(place, text, file, note.get("before"))
    is_ours_alone = bool(note.get("made")) and not after.strip(" {}\n")
    return FileChange(client, place, text, None if is_ours_alone else after)


def apply(change: FileChange, home: Path, *, undo: bool = False) -> None:
    """Write a change, and note it. Raises ConfigurationError where a file cannot be written."""
    notes = notes_of(home)
    file = CLIENT_FILES[change.client]
    if undo:
        notes.pop(change.client, None)
    elif not change.is_none or change.client not in notes:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        former = notes.get(change.client, {}).get("before", member(change.before, file.path))
        made = bool(notes.get(change.client, {}).get("made", not change.path.exists()))
        notes[change.client] = {"file": str(change.path), "at": now, "before": former, "made": made}
    try:
        if change.after is None:
            change.path.unlink(missing_ok=True)
        elif not change.is_none:
            _write(change.path, change.after)
        _write(home / NOTES, json.dumps(notes, indent=1) + "\n")
    except OSError as error:
        raise ConfigurationError(f"{error.filename or change.path} cannot be written ({error.strerror}).") from error


def notes_of(home: Path) -> dict[str, JsonObject]:
    """Return what was noted of each client that was connected."""
    try:
        notes = json.loads((home / NOTES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}


def seen(client: str, home: Path, callers: Mapping[str, Caller]) -> str:
    """Say whether a client is connected, and whether it has called since."""
    note, caller = notes_of(home).get(client), callers.get(client)
    if caller is not None and (note is None or caller.last >= datetime.fromisoformat(as_text(note["at"]))):
        last = caller.last.astimezone().strftime("%Y-%m-%d %H:%M")
        return f"Connection seen: {caller.calls:,} call{'' if caller.calls == 1 else 's'}, the last at {last}."
    if note is None:
        return "Not connected by 'workbench connect', and no call of it was seen."
    return f"Connected in {note['file']}; no call seen since. Start the client again, and ask it something."


def _opened(client: str, path: Path | None) -> tuple[ClientFile, Path, str]:
    file = CLIENT_FILES[client]
    place = (path or file.place()).expanduser().absolute()
    try:
        return file, place, place.read_text(encoding="utf-8")
    except FileNotFoundError:
        return file, place, ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{place} cannot be read ({error}).") from error


def _edited(place: Path, text: str, file: ClientFile, entry: JsonValue) -> str:
    try:
        if entry is None:
            return without_member(text, file.path) if text.strip() else text
        return text if member(text, file.path) == entry else with_member(text, file.path, entry)
    except InvalidInput as error:
        raise InvalidInput(f"{place} was left as it is: {error} Correct it, then try again.") from error


def _write(path: Path, text: str) -> None:
    """Write a file in one step, with the rights that it had."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()
    beside = target.with_name(f".{target.name}.new")
    beside.write_text(text, encoding="utf-8")
    if target.exists():
        beside.chmod(target.stat().st_mode & 0o777)
    beside.replace(target)
