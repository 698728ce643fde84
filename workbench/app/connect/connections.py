"""Connections to clients: the change of a client's file, the note that lets it be undone, and calls seen since."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from workbench.app.connect.client_files import CLIENT_FILES, ClientFile
from workbench.app.connect.clients import ClientSetup
from workbench.app.connect.connection_notes import FILE, Note, note_of, notes_of, with_note
from workbench.app.connect.json_members import BLANK, Splice, member, raw_member, setting, with_raw, without_member
from workbench.errors import ConfigurationError, InvalidInput
from workbench.services.tool_calls import Caller


@dataclass(frozen=True, slots=True)
class FileChange:
    """A client's file before and after; ``after`` None takes the file away. ``note`` is what is kept of it then."""

    client: str
    path: Path
    before: str
    after: str | None
    note: Note | None

    @property
    def is_none(self) -> bool:
        """True where the file says all of it already."""
        return self.before == self.after

    @property
    def entry(self) -> str | None:
        """The entry of this workbench's name as it stands in the file afterwards; None where there is none."""
        return raw_member(self.after or "", CLIENT_FILES[self.client].path)

    @property
    def difference(self) -> str:
        """The change line by line, as ``diff -u`` shows it."""
        before, after = self.before.splitlines(), (self.after or "").splitlines()
        return "\n".join(difflib.unified_diff(before, after, str(self.path), str(self.path), lineterm="", n=2))


def planned(client: str, connection: ClientSetup, home: Path, path: Path | None = None) -> FileChange:
    """Return the change that connects a client. Raises InvalidInput where its file is not to be understood."""
    file = CLIENT_FILES[client]
    place = _absolute(path or file.place())
    text = _text(place)
    try:
        entry = file.entry(connection)
        stands = member(text, file.path)
        splice = Splice(0, "", "") if stands == entry else setting(text, file.path, entry)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if _is_ours(stands, client):
            note = note_of(home, client, place)
            at = note.at if note is not None and stands == entry else now  # calls since then count
            former = replace(note or Note(str(place), now, made=False, entry=None), at=at)
            written = former.written.replace(splice.removed, splice.written) if splice.removed else former.written
            note = replace(former, written=written)
        else:
            raw = raw_member(text, file.path)
            note = Note(str(place), now, not place.exists(), raw, splice.removed, splice.written)
    except InvalidInput as error:
        raise _left(place, error) from error
    return FileChange(client, place, text, splice.applied(text), note)


def undoing(client: str, home: Path, path: Path | None = None) -> FileChange:
    """Return the change that takes this workbench out again, and puts back the entry that stood there before, if any.

    Without ``path`` it is the file that was written last. An entry that ``connect`` does not write stays.
    """
    file = CLIENT_FILES[client]
    kept = notes_of(home).get(client, [])
    place = _absolute(path or (Path(kept[-1].file) if kept else file.place()))
    note, text = note_of(home, client, place), _text(place)
    try:
        if not _is_ours(member(text, file.path), client):
            return FileChange(client, place, text, text, None)
        after = _undone(text, file, note or Note(str(place), "", made=False, entry=None))
    except InvalidInput as error:
        raise _left(place, error) from error
    is_ours_alone = note is not None and note.made and not after.strip(" {}" + BLANK)
    return FileChange(client, place, text, None if is_ours_alone else after, None)


def apply(change: FileChange, home: Path) -> None:
    """Write a change, and note it.

    Raises:
        ConfigurationError: a file cannot be written, or the client has written its own since the change was made.
    """
    if _text(change.path) != change.before:
        raise ConfigurationError(f"{change.path} has changed meanwhile; nothing was written. Try again.")
    known = note_of(home, change.client, change.path)
    try:
        if change.note is not None:  # kept first, or what stood there would be lost with a full disk
            _write_note(change, home, change.note)
        try:
            _put(change)
        except OSError:
            _write_note(change, home, known)
            raise
        _write_note(change, home, change.note)
    except OSError as error:
        raise ConfigurationError(f"{error.filename or change.path} cannot be written ({error.strerror}).") from error


def seen(client: str, home: Path, callers: Mapping[str, Caller]) -> str:
    """Say whether a client is connected, and whether it has called since."""
    notes, caller = notes_of(home).get(client, []), callers.get(client)
    if caller is not None and (not notes or caller.last >= notes[-1].time):
        last = caller.last.astimezone().strftime("%Y-%m-%d %H:%M")
        return f"Connection seen: {caller.calls:,} call{'' if caller.calls == 1 else 's'}, the last at {last}."
    if not notes:
        return "Not connected by 'workbench connect', and no call of it was seen."
    files = ", ".join(note.file for note in notes)
    return f"Connected in {files}; no call seen since. Start the client again, and ask it something."


def _is_ours(entry: object, client: str) -> bool:
    """Tell whether an entry is one that ``connect`` writes: it names the client that calls are logged under."""
    words = entry.get("args") if isinstance(entry, dict) else None
    return isinstance(words, list) and ["--client", client] in [words[at : at + 2] for at in range(len(words))]


def _undone(text: str, file: ClientFile, note: Note) -> str:
    """Return the text as it was before; where it has changed since, all that others wrote stays."""
    if note.written and text.count(note.written) == 1:
        back = text.replace(note.written, note.removed)
        try:
            if raw_member(back, file.path) == note.entry:
                return back
        except InvalidInput:  # others have written beside our entry, which their commas show
            pass
    return without_member(text, file.path) if note.entry is None else with_raw(text, file.path, note.entry)


def _left(place: Path, error: InvalidInput) -> InvalidInput:
    return InvalidInput(f"{place} was left as it is: {error} Correct it, then try again.")


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _text(place: Path) -> str:
    """Return a file's text with its own ends of lines; "" where there is none."""
    try:
        return place.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{place} cannot be read ({error}).") from error


def _write_note(change: FileChange, home: Path, note: Note | None) -> None:
    if note != note_of(home, change.client, change.path):
        _write(home / FILE, with_note(home, change.client, change.path, note), is_private=True)


def _put(change: FileChange) -> None:
    if change.after is None:
        change.path.unlink(missing_ok=True)
    elif not change.is_none:
        _write(change.path, change.after)


def _write(path: Path, text: str, *, is_private: bool = False) -> None:
    """Write a file in one step, with the rights that it had; a new or private one is for its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()
    number, beside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(text.encode("utf-8"))
        if target.exists() and not is_private:
            Path(beside).chmod(target.stat().st_mode & 0o777)
        Path(beside).replace(target)
    except OSError:
        Path(beside).unlink(missing_ok=True)
        raise
