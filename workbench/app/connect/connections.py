"""Connections to clients: the change of a client's file, the note that lets it be undone, and calls seen since."""

from __future__ import annotations

import difflib
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

from workbench.app.connect.clients import NAME, ClientSetup
from workbench.errors import ConfigurationError, InvalidInput
from workbench.storage.tool_calls import Caller
from workbench.types import JsonObject, JsonValue, as_object, as_text, as_text_or_none

# --- The file that each client keeps its list of servers in, and the entry of this workbench in it ---


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


# --- The notes of what was written into clients' files and of what stood there before, by which it can be undone ---

FILE = "connections.json"  # in the data folder, readable by its owner only: entries of clients may hold passwords


@dataclass(frozen=True, slots=True)
class Note:
    """A change that was made to one file of a client.

    ``entry`` is what stood in place of this workbench's entry before, letter by letter; None where nothing did.
    ``written`` is the piece of the file that took the place of ``removed``; "" where that is not known.
    """

    file: str
    at: str
    made: bool
    entry: str | None
    removed: str = ""
    written: str = ""

    @property
    def time(self) -> datetime:
        """When it was written."""
        return datetime.fromisoformat(self.at)


def notes_of(home: Path) -> dict[str, list[Note]]:
    """Return the notes of each client that is connected, a note for each of its files, the newest last."""
    try:
        stored = as_object(json.loads((home / FILE).read_text(encoding="utf-8")))
        return {client: _read(kept) for client, kept in stored.items()}
    except (OSError, ValueError, TypeError):  # not there, or no longer as it was written
        return {}


def note_of(home: Path, client: str, file: Path) -> Note | None:
    """Return the note of one file of a client."""
    return next((note for note in notes_of(home).get(client, []) if note.file == str(file)), None)


def with_note(home: Path, client: str, file: Path, note: Note | None) -> str:
    """Return the notes as they are to be kept once a file of a client has this note, or none."""
    notes = notes_of(home)
    others = [other for other in notes.pop(client, []) if other.file != str(file)]
    kept = [*others, note] if note is not None else others
    notes |= {client: kept} if kept else {}
    return json.dumps({name: [asdict(one) for one in ones] for name, ones in notes.items()}, indent=1) + "\n"


def _read(stored: JsonValue) -> list[Note]:
    if isinstance(stored, list):
        return [_read_note(as_object(one)) for one in stored]
    one = as_object(stored)  # as it was kept while a client had one note: the former entry as a value
    before = one.get("before")
    return [_read_note({**one, "entry": None if before is None else json.dumps(before, indent=2, ensure_ascii=False)})]


def _read_note(stored: Mapping[str, JsonValue]) -> Note:
    note = Note(
        file=as_text(stored.get("file")),
        at=as_text(stored.get("at")),
        made=bool(stored.get("made")),
        entry=as_text_or_none(stored.get("entry")),
        removed=as_text(stored.get("removed", "")),
        written=as_text(stored.get("written", "")),
    )
    datetime.fromisoformat(note.at)
    return note


# --- One member of a JSON file set or taken out, every other letter kept: clients' files have comments and an order ---

BLANK = " \t\r\n\ufeff"  # what a file without a value may hold; Windows' editors begin files with the last one
UNIT = "  "  # the indent of a file that shows none

_SPACE = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}/]+")


@dataclass(slots=True)
class JsonPlace:
    """A value of a text, from ``start`` to ``end``; each member of an object with the place where its name begins."""

    start: int
    end: int
    members: dict[str, tuple[int, JsonPlace]] = field(default_factory=dict)
    is_object: bool = False


@dataclass(frozen=True, slots=True)
class Splice:
    """One piece of a text in place of another: at character ``at`` stood ``removed``, and ``written`` comes there."""

    at: int
    removed: str
    written: str

    def applied(self, text: str) -> str:
        """Return the text with the new piece."""
        return text[: self.at] + self.written + text[self.at + len(self.removed) :]


@dataclass(frozen=True, slots=True)
class _Style:
    """How a text is written: what each level is indented by, and what ends a line."""

    unit: str
    ending: str

    def value(self, value: JsonValue, indent: str) -> str:
        """Return a value as JSON whose further lines begin with ``indent``."""
        return json.dumps(value, indent=self.unit, ensure_ascii=False).replace("\n", self.ending + indent)


def setting(text: str, path: tuple[str, str], value: JsonValue) -> Splice:
    """Return what sets ``value`` at ``path``, a name in the object of a name, in the text's own indents and line ends.

    Objects that lack are made; a value that stands there is the piece that is removed, and nothing else is.

    Raises:
        InvalidInput: the text is no JSON object, or the first name is none. Comments and trailing commas are allowed.
    """
    ending = "\r\n" if "\r\n" in text else "\n"
    if not text.strip(BLANK):
        empty = "{}" + ending
        return Splice(0, text, setting(empty, path, value).applied(empty))
    root = _object(text)
    style = _Style(_indent(text, root) or UNIT, ending)
    if path[0] not in root.members:
        made = style.value({path[1]: value}, style.unit)
        return _inserted(text, root, style, f"{json.dumps(path[0])}: {made}", (style.unit, ""))
    begun, section = root.members[path[0]]
    if not section.is_object:
        raise InvalidInput(f"'{path[0]}' is no object there.")
    outer = _own_indent(text, begun) or style.unit
    inner = _indent(text, section) or outer + style.unit
    made = style.value(value, inner)
    if path[1] in section.members:
        entry = section.members[path[1]][1]
        return Splice(entry.start, text[entry.start : entry.end], made)
    return _inserted(text, section, style, f"{json.dumps(path[1])}: {made}", (inner, outer))


def with_member(text: str, path: tuple[str, str], value: JsonValue) -> str:
    """Return the text with ``value`` at ``path``, as ``setting`` says. Raises InvalidInput."""
    return setting(text, path, value).applied(text)


def with_raw(text: str, path: tuple[str, str], raw: str) -> str:
    """Return the text with the value at ``path`` written as ``raw`` has it, letter by letter. Raises InvalidInput."""
    placed = with_member(text, path, None)
    place = _object(placed).members[path[0]][1].members[path[1]][1]
    return placed[: place.start] + raw + placed[place.end :]


def without_member(text: str, path: tuple[str, str]) -> str:
    """Return the text without the member at ``path``, and without an object that is empty then. Raises InvalidInput."""
    root = _object(text)
    section = root.members.get(path[0])
    if section is None or path[1] not in section[1].members:
        return text
    if len(section[1].members) == 1:
        return _cut(text, root, path[0])
    return _cut(text, section[1], path[1])


def raw_member(text: str, path: tuple[str, str]) -> str | None:
    """Return the letters of the value at ``path``; None where there is none. Raises InvalidInput."""
    section = _object(text).members.get(path[0]) if text.strip(BLANK) else None
    entry = section[1].members.get(path[1]) if section else None
    return text[entry[1].start : entry[1].end] if entry else None


def member(text: str, path: tuple[str, str]) -> JsonValue:
    """Return the value at ``path``; None where there is none. Raises InvalidInput."""
    raw = raw_member(text, path)
    return None if raw is None else json.loads(_bare(raw))


def _inserted(text: str, parent: JsonPlace, style: _Style, made: str, indents: tuple[str, str]) -> Splice:
    """Return what puts a member behind the last one; comments stay with what they stand beside."""
    inner, outer = indents
    line = style.ending + inner + made
    if not parent.members:
        inside = text[parent.start + 1 : parent.end - 1]
        return Splice(parent.start + 1, inside, inside.rstrip() + line + style.ending + outer)
    last = max(node.end for _, node in parent.members.values())
    kept = text[last : parent.end - 1].rstrip()
    if text[_skipped(text, last)] == ",":
        return Splice(last, kept, f"{kept}{line},")
    return Splice(last, kept, f",{kept}{line}")


def _indent(text: str, parent: JsonPlace) -> str:
    """Return the indent of an object's first member; "" where it stands behind something else, or there is none."""
    return _own_indent(text, next(iter(parent.members.values()))[0]) if parent.members else ""


def _own_indent(text: str, start: int) -> str:
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return before if not before.strip(" \t") else ""


def _cut(text: str, parent: JsonPlace, name: str) -> str:
    """Take a member out with one comma, and with the line it stood on."""
    start, node = parent.members[name]
    end = _skipped(text, node.end)
    if text[end] == ",":
        return text[:start].rstrip() + text[end + 1 :]
    former = [other.end for begun, other in parent.members.values() if begun < start]
    if not former:
        return text[:start].rstrip() + text[node.end :]
    comma = _skipped(text, max(former))
    return text[:comma] + text[comma + 1 : start].rstrip() + text[node.end :]


def _object(text: str) -> JsonPlace:
    try:
        node, end = _value(text, _skipped(text, 0))
    except (IndexError, ValueError) as error:
        raise InvalidInput("It is no JSON.") from error
    if not node.is_object or _skipped(text, end) != len(text):
        raise InvalidInput("It is no JSON object.")
    return node


def _value(text: str, at: int) -> tuple[JsonPlace, int]:
    if text[at] in "{[":
        return _container(text, at)
    match = _STRING.match(text, at) if text[at] == '"' else _SCALAR.match(text, at)
    if match is None:
        raise ValueError(at)
    json.loads(match.group())
    return JsonPlace(at, match.end()), match.end()


def _container(text: str, start: int) -> tuple[JsonPlace, int]:
    is_object = text[start] == "{"
    node, at = JsonPlace(start, start, is_object=is_object), _skipped(text, start + 1)
    while text[at] not in "}]":
        begun, name = at, ""
        if is_object:
            match = _STRING.match(text, at)
            if match is None:
                raise ValueError(at)
            name, at = json.loads(match.group()), _skipped(text, match.end())
            if text[at] != ":":
                raise ValueError(at)
            at = _skipped(text, at + 1)
        inner, at = _value(text, at)
        if is_object:
            node.members[name] = (begun, inner)
        at = _skipped(text, at)
        if text[at] == ",":
            at = _skipped(text, at + 1)
        elif text[at] not in "}]":
            raise ValueError(at)
    if text[at] != ("}" if is_object else "]"):
        raise ValueError(at)
    node.end = at + 1
    return node, at + 1


def _skipped(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


def _bare(text: str) -> str:
    """Return JSON without comments and trailing commas."""
    kept = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda found: found.group(1) or "", text, flags=re.DOTALL)
    return re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', lambda found: found.group(1) or "", kept)


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
