"""Zip archives of documents: each file in one that can be read is a document of its own, as in a folder."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from workbench.errors import UnreadableDocument
from workbench.ingestion.readers import MAX_BYTES, passed_over, wanted
from workbench.sizes import GB, size_text

SUFFIX = ".zip"
MOST_UNPACKED = GB  # bytes of an uploaded archive's files together, which are held in memory


@dataclass(frozen=True, slots=True)
class UnpackedFiles:
    """Uploaded files as (name, bytes), and the names of what their archives hold beside them that is not read."""

    files: list[tuple[str, bytes]]
    left_out: list[str]


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A file in an archive: its path there, its size in bytes as the archive says, and the function that reads it."""

    name: str
    size: int
    load: Callable[[], bytes]


def is_zip(name: str) -> bool:
    """Tell by its name whether a file is a zip archive."""
    return name.lower().endswith(SUFFIX)


def zip_members(archive: Path | bytes) -> tuple[list[ZipMember], list[str]]:
    """Return the files of an archive that can be read, and the paths of the others (hidden ones left out).

    Raises:
        UnreadableDocument: it is no zip archive, or is damaged.
    """
    try:
        with _opened(archive) as opened:
            infos = [info for info in opened.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnreadableDocument(f"It is no zip archive or damaged ({error}); pack the files anew.") from error
    members = [
        ZipMember(info.filename, info.file_size, partial(_read, archive, info))
        for info in infos
        if wanted(info.filename)
    ]
    others = [info.filename for info in infos if not wanted(info.filename) and not _is_hidden(info.filename)]
    return members, others


def unpacked(name: str, data: bytes) -> UnpackedFiles:
    """Return the files of an uploaded archive, named below the archive's own name.

    Raises:
        UnreadableDocument: it is no zip archive, a file in it cannot be read, it holds none that is read, or more than
            1 GB.
    """
    try:
        members, others = zip_members(data)
        if sum(member.size for member in members) > MOST_UNPACKED:
            raise UnreadableDocument("It unpacks to more than 1 GB; add it by 'workbench ingest', or split it.")
        if not members:
            raise UnreadableDocument("It holds no file of a kind that is read.")
        files = [(below(name, member.name), member.load()) for member in members]
        return UnpackedFiles(files, [below(name, other) for other in others])
    except UnreadableDocument as error:
        raise UnreadableDocument(f"{name}: {error}") from error


def taken_apart(uploads: Iterable[tuple[str, bytes]]) -> UnpackedFiles:
    """Return uploads with the readable files of each zip archive in its place. Raises UnreadableDocument."""
    parts = [unpacked(name, data) if is_zip(name) else UnpackedFiles([(name, data)], []) for name, data in uploads]
    return UnpackedFiles(
        [file for part in parts for file in part.files], [name for part in parts for name in part.left_out]
    )


def below(archive: str, name: str) -> str:
    """Return a file's name with the archive's before it, where its files do not lie in a folder of that name."""
    stem = PurePosixPath(archive).stem
    return name if name.startswith(f"{stem}/") else f"{stem}/{name}"


def _opened(archive: Path | bytes) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(archive) if isinstance(archive, bytes) else archive)


def _read(archive: Path | bytes, info: zipfile.ZipInfo) -> bytes:
    if info.flag_bits & 1:
        raise UnreadableDocument(f"{info.filename} is protected by a password; pack the files without one.")
    try:
        with _opened(archive) as opened, opened.open(info) as file:
            data = file.read(MAX_BYTES + 1)  # the size that the archive states is not believed
    except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError, EOFError, ValueError, NotImplementedError) as error:
        raise UnreadableDocument(f"{info.filename} is damaged in the archive ({error}); pack it anew.") from error
    if len(data) > MAX_BYTES:
        raise UnreadableDocument(
            f"{info.filename} is more than {size_text(MAX_BYTES)}, which is the most that is read."
        )
    return data


def _is_hidden(name: str) -> bool:
    return passed_over(name) or "__MACOSX" in name.split("/")
