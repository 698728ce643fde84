"""Finding the files to read under the given paths, and listing what was skipped and why."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import InvalidInput
from workbench.ingestion.readers.formats import describe_missing_extra, find_reader, list_format_titles
from workbench.ingestion.text import looks_binary

SKIPPED_FOLDERS = frozenset(("node_modules", "__pycache__", "venv", "site-packages"))


@dataclass(frozen=True, slots=True)
class SkippedPath:
    """A path that is not read.

    Attributes:
        path: The path.
        reason: The reason, as a sentence.
        missed: True if the path was given explicitly, or is an unreadable folder.
        unread_kind: True if it is a file of an unsupported format.
    """

    path: Path
    reason: str
    missed: bool = False
    unread_kind: bool = False


@dataclass(frozen=True, slots=True)
class Discovery:
    """The files to read, in order and without duplicates, and the skipped paths. Iterates over the files."""

    files: tuple[Path, ...]
    skipped: tuple[SkippedPath, ...]

    def __iter__(self) -> Iterator[Path]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def discover(paths: Iterable[Path | str]) -> Discovery:
    """Walk folders in sorted order; skip hidden entries, circular links and unsupported formats.

    A path that is given directly is read even if it is hidden. If it does not exist, it is listed as skipped.
    """
    files: dict[Path, Path] = {}
    skipped: list[SkippedPath] = []
    for path in (Path(path) for path in paths if str(path)):
        if _check_path(path.is_dir):
            for file in _walk_folder(path, (), skipped):
                files.setdefault(file.resolve(), file)
        elif not os.path.lexists(path):
            skipped.append(SkippedPath(path, "It does not exist.", missed=True))
        elif (reason := _skip_reason(path)) is not None:
            skipped.append(SkippedPath(path, reason, missed=True))
        else:
            files.setdefault(path.resolve(), path)
    return Discovery(tuple(files.values()), tuple(skipped))


def expand_home(path: Path | str) -> Path | str:
    """Return a path with a leading "~" expanded, unless there is no such home or a file has that exact name.

    Raises:
        InvalidInput: The value is neither a str nor a Path.
    """
    if not isinstance(path, Path | str):
        raise InvalidInput(f"Invalid path {path!r}: expected str or Path.")
    if not str(path).startswith("~") or _check_path(Path(path).exists):
        return path
    try:
        return Path(path).expanduser()
    except RuntimeError:  # no user of that name
        return path


def describe_missing(paths: Sequence[Path | str]) -> str | None:
    """Return an error message if none of the paths exists, else None. An empty path does not exist."""
    reasons = [_describe_missing(path) for path in paths]
    if any(reason is None for reason in reasons):
        return None
    return f"There is no such file or folder: {', '.join(filter(None, reasons)) or 'no path was given'}."


def _describe_missing(path: Path | str) -> str | None:
    try:
        return None if str(path) and Path(path).exists() else f"'{path}'"
    except OSError as error:  # no permission for a parent folder, or the name is too long
        return f"'{path}' ({error.strerror})"


def is_wanted(relative: str) -> bool:
    """Return whether ``discover`` would read a file, given its path relative to an uploaded folder."""
    return not is_skipped(relative) and find_reader(relative.rpartition("/")[2]) is not None


def is_skipped(relative: str) -> bool:
    """Return whether a file of an uploaded folder is hidden or in a folder of installed packages."""
    *folders, name = relative.split("/")
    hidden = any(part.startswith(".") for part in (*folders, name))
    return hidden or bool(SKIPPED_FOLDERS.intersection(folders))


def _walk_folder(folder: Path, parents: tuple[Path, ...], skipped: list[SkippedPath]) -> Iterator[Path]:
    real = folder.resolve()
    if real in parents:
        skipped.append(SkippedPath(folder, "It links to one of its parent folders."))
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        skipped.append(SkippedPath(folder, f"Opening failed: {error.strerror}.", missed=True))
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith("."):
            skipped.append(SkippedPath(path, "It is hidden."))
        elif _check_path(path.is_dir):
            if entry.name in SKIPPED_FOLDERS:
                skipped.append(SkippedPath(path, "It contains installed packages."))
            else:
                yield from _walk_folder(path, (*parents, real), skipped)
        elif (reason := _skip_reason(path)) is not None:
            skipped.append(SkippedPath(path, reason, unread_kind=_check_path(path.is_file)))
        else:
            yield path


def _check_path(kind: Callable[[], bool]) -> bool:
    """Return the result of a check on a path; False if it is inaccessible (no permission, or the name is too long)."""
    try:
        return kind()
    except OSError:
        return False


def _skip_reason(path: Path) -> str | None:
    """Return why a file is not read, or None if it is."""
    if not _check_path(path.is_file):
        return "It is not a regular file (a broken link, socket or device)."
    if find_reader(path.name) is not None:
        return None
    suffix = path.suffix or "without suffix"
    try:
        with path.open("rb") as file:
            binary = looks_binary(file.read(4096))
    except OSError as error:
        return f"Opening failed: {error.strerror}."
    if (sentence := describe_missing_extra(path.name)) is not None:
        return sentence
    if binary:
        return f"It is a binary file ({suffix})."
    return f"Its format is not supported ({suffix}). Supported: {', '.join(list_format_titles())}."
