"""The notes of what was written into clients' files and of what stood there before, by which it can be undone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from workbench.types import JsonValue, as_object, as_text, as_text_or_none

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
