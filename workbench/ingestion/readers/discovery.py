"""The files to read under the paths a person named, and those that were left out, with the reason."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import InvalidInput
from workbench.ingestion.readers.formats import format_titles, lacking_extra, reader_for
from workbench.ingestion.text import looks_binary

SKIPPED_FOLDERS = frozenset(("node_modules", "__pycache__", "venv", "site-packages"))


@dataclass(frozen=True, slots=True)
class SkippedPath:
    """A path that was left out; ``missed`` when it was named itself or is a folder that cannot be opened.

    ``unread_kind`` tells that it is a file, of a kind that is not read.
    """

    path: Path
    reason: str
    missed: bool = False
    unread_kind: bool = False


@dataclass(frozen=True, slots=True)
class Discovery:
    """The files to read, in order and once each, and what was left out. Iterating gives the files."""

    files: tuple[Path, ...]
    skipped: tuple[SkippedPath, ...]

    def __iter__(self) -> Iterator[Path]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def discover(paths: Iterable[Path | str]) -> Discovery:
    """Walk folders in sorted order; hidden files and folders, links that lead in circles and unknown kinds stay out.

    A path that was named itself is taken even where it is hidden; one that does not exist is listed as skipped.
    """
    files: dict[Path, Path] = {}
    skipped: list[SkippedPath] = []
    for path in (Path(path) for path in paths if str(path)):
        if _is(path.is_dir):
            for file in _walk(path, (), skipped):
                files.setdefault(file.resolve(), file)
        elif not os.path.lexists(path):
            skipped.append(SkippedPath(path, "It does not exist.", missed=True))
        elif (reason := _refusal(path)) is not None:
            skipped.append(SkippedPath(path, reason, missed=True))
        else:
            files.setdefault(path.resolve(), path)
    return Discovery(tuple(files.values()), tuple(skipped))


def expanded(path: Path | str) -> Path | str:
    """Return a path with its "~" read as a person's home, where there is such a home and no file of that very name.

    Raises:
        InvalidInput: it is no path.
    """
    if not isinstance(path, Path | str):
        raise InvalidInput(f"A path cannot be {path!r}; give a text or a Path.")
    if not str(path).startswith("~") or _is(Path(path).exists):
        return path
    try:
        return Path(path).expanduser()
    except RuntimeError:  # nobody here has that name
        return path


def absence(paths: Sequence[Path | str]) -> str | None:
    """Say that none of the paths leads to anything; None where one does. An empty path is none, not this folder."""
    reasons = [_absence(path) for path in paths]
    if any(reason is None for reason in reasons):
        return None
    return f"There is no such file or folder: {', '.join(filter(None, reasons)) or 'no path was given'}."


def _absence(path: Path | str) -> str | None:
    try:
        return None if str(path) and Path(path).exists() else f"'{path}'"
    except OSError as error:  # behind a closed folder, or a name too long
        return f"'{path}' ({error.strerror})"


def wanted(relative: str) -> bool:
    """Tell of a file in an uploaded folder, by its path there, whether ``discover`` would have read it."""
    return not passed_over(relative) and reader_for(relative.rpartition("/")[2]) is not None


def passed_over(relative: str) -> bool:
    """Tell of a file in an uploaded folder whether it is hidden or lies among installed packages, whatever its kind."""
    *folders, name = relative.split("/")
    hidden = any(part.startswith(".") for part in (*folders, name))
    return hidden or bool(SKIPPED_FOLDERS.intersection(folders))


def _walk(folder: Path, parents: tuple[Path, ...], skipped: list[SkippedPath]) -> Iterator[Path]:
    real = folder.resolve()
    if real in parents:
        skipped.append(SkippedPath(folder, "It is a link to a folder above it."))
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        skipped.append(SkippedPath(folder, f"It cannot be opened: {error.strerror}.", missed=True))
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith("."):
            skipped.append(SkippedPath(path, "It is hidden."))
        elif _is(path.is_dir):
            if entry.name in SKIPPED_FOLDERS:
                skipped.append(SkippedPath(path, "It holds installed packages."))
            else:
                yield from _walk(path, (*parents, real), skipped)
        elif (reason := _refusal(path)) is not None:
            skipped.append(SkippedPath(path, reason, unread_kind=_is(path.is_file)))
        else:
            yield path


def _is(kind: Callable[[], bool]) -> bool:
    """Ask a path what it is; one that cannot be asked (behind a closed folder, of a name too long) is nothing."""
    try:
        return kind()
    except OSError:
        return False


def _refusal(path: Path) -> str | None:
    """Say why a file is not read, or None where it is."""
    if not _is(path.is_file):
        return "It is no file (a broken link, a socket or a device)."
    if reader_for(path.name) is not None:
        return None
    suffix = path.suffix or "without suffix"
    try:
        with path.open("rb") as file:
            binary = looks_binary(file.read(4096))
    except OSError as error:
        return f"It cannot be opened: {error.strerror}."
    if (sentence := lacking_extra(path.name)) is not None:
        return sentence
    if binary:
        return f"It is a binary file ({suffix})."
    return f"Its kind is not known ({suffix}); these are: {', '.join(format_titles())}."
