"""Conversations on disk: ``TYPE/YYYY-MM-DD/NNN-slug``, a folder or a file, each read as one document."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from workbench.errors import UnreadableDocument
from workbench.formatting import size_text
from workbench.ingestion.incoming import IngestItem
from workbench.ingestion.readers import MAX_BYTES, discover, read_bytes
from workbench.ingestion.stamps import is_inside

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_NUMBERED_NAME = re.compile(r"\d{1,6}-.+", re.DOTALL)
CONVERSATION_SUFFIXES = (".md", ".markdown", ".txt")  # of a conversation in a single file


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation.

    Attributes:
        key: Its path in the workspace.
        path: Its path on disk.
        type: Its type, or "".
        day: Its date, or None.
    """

    key: str
    path: Path
    type: str = ""
    day: date | None = None

    @property
    def name(self) -> str:
        """Its key without a file suffix: ``TYPE/YYYY-MM-DD/NNN-slug``."""
        return self.key.removesuffix(self.path.suffix) if self.path.suffix in CONVERSATION_SUFFIXES else self.key


def list_conversations(workspace: Path) -> list[Conversation]:
    """Return every conversation of a workspace by path, without hidden folders and links that lead out of it."""
    conversations = []
    for kind in _list_children(workspace, workspace):
        for day in _list_children(kind, workspace) if kind.is_dir() else ():
            if _parse_day(day.name) is not None and day.is_dir():
                children = _list_children(day, workspace)
                conversations += [
                    conversation for child in children if (conversation := find_conversation(child, workspace))
                ]
    return conversations


def find_conversations(path: Path, workspace: Path) -> list[Conversation]:
    """Return the conversations at a path inside a workspace.

    A path inside a conversation selects that conversation, and a folder above conversations selects all of them. Any
    other file is returned as a separate document.
    """
    for parent in (path, *path.parents):
        if parent == workspace:
            break
        conversation = find_conversation(parent, workspace)
        if conversation is not None:
            return [conversation]
    below = [conversation for conversation in list_conversations(workspace) if conversation.path.is_relative_to(path)]
    if below or path == workspace:
        return below
    files = [path] if path.is_file() else list(discover([path]))
    inside = (file for file in files if is_inside(file, workspace))
    return [Conversation(file.relative_to(workspace).as_posix(), file) for file in inside]


def find_conversation(path: Path, workspace: Path) -> Conversation | None:
    """Return the conversation exactly at a path, or None if the path does not have that form."""
    parts = path.relative_to(workspace).parts
    if len(parts) != 3 or not _NUMBERED_NAME.match(parts[2]):
        return None
    day = _parse_day(parts[1])
    if day is None or (path.is_file() and path.suffix.lower() not in CONVERSATION_SUFFIXES):
        return None
    return Conversation("/".join(parts), path, parts[0], day)


def make_item(conversation: Conversation, workspace: Path) -> IngestItem:
    """Return a conversation as an item: a single file unchanged, several joined under their names."""
    stem = conversation.path.stem if conversation.path.suffix in CONVERSATION_SUFFIXES else conversation.path.name
    metadata = {"conversation": conversation.name, "conversation_type": conversation.type}
    if conversation.day:
        metadata["date"] = conversation.day.isoformat()
    files = list_files(conversation, workspace)
    name = files[0].name if len(files) == 1 else f"{stem}.md"
    return IngestItem(
        key=conversation.key,
        name=name if len(files) == 1 and files[0] == conversation.path else f"{stem}{_item_suffix(files)}",
        load=lambda: _read_text(conversation, files),
        path=conversation.key,
        metadata=metadata,
    )


def list_files(conversation: Conversation, workspace: Path) -> list[Path]:
    """Return a conversation's readable files by path. Links that lead out of the workspace are skipped."""
    if conversation.path.is_file():
        return [conversation.path] if is_inside(conversation.path, workspace) else []
    return [file for file in discover([conversation.path]) if is_inside(file, workspace)]


def _read_text(conversation: Conversation, files: list[Path]) -> bytes:
    if not files:
        raise UnreadableDocument(f"'{conversation.key}' contains no readable file.")
    if len(files) == 1:
        return _read_bytes(files[0])
    pieces, failures = [], []
    for file in files:
        try:
            pieces.append(f"## {file.name}\n\n{read_bytes(_read_bytes(file), file.name).text}")
        except UnreadableDocument as error:
            failures.append(str(error))
    if not pieces:
        raise UnreadableDocument(failures[0])
    return "\n\n".join(pieces).encode("utf-8", "replace")


def _read_bytes(file: Path) -> bytes:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise UnreadableDocument(f"'{file.name}' is larger than the limit of {size_text(MAX_BYTES)}.")
        return file.read_bytes()
    except OSError as error:
        raise UnreadableDocument(f"Failed to open '{file.name}' ({error.strerror}).") from error


def _item_suffix(files: list[Path]) -> str:
    return files[0].suffix if len(files) == 1 else ".md"


def _parse_day(name: str) -> date | None:
    if not _DAY.match(name):
        return None
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None


def _list_children(folder: Path, workspace: Path) -> Iterator[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if not entry.name.startswith("."))
    except OSError:
        return
    yield from (folder / name for name in names if is_inside(folder / name, workspace))
