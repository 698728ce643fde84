"""Items to ingest: files, uploads and texts, each with a key that identifies its document in the source."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath

from workbench.errors import UnreadableDocument
from workbench.formatting import GB, KB, size_text
from workbench.ingestion.ocr.document import OnPage, reads_scans
from workbench.ingestion.raw import RawDocument
from workbench.ingestion.readers import MAX_BYTES, passed_over, read_bytes, wanted
from workbench.ingestion.readers.formats import format_titles, original_type
from workbench.ingestion.readers.isolation import ParserProcess
from workbench.types import IngestFailure

# --- Links that lead out of a folder ---


def lies_inside(path: Path, folder: Path) -> bool:
    """Return whether a path, after following every link, is below ``folder``, which must be resolved already."""
    try:
        return path.resolve().is_relative_to(folder)
    except (OSError, RuntimeError):  # a circular link
        return False


# --- File stamps, which show changes without reading ---

Stamp = tuple[int, int, int, int]  # inode, size, mtime and ctime
Stamps = dict[str, Stamp]  # by path below the folder


def stamps_of(folder: Path) -> Stamps:
    """Return the stamp of every file below a resolved folder, without hidden entries and links that lead out of it."""
    stamps: Stamps = {}
    waiting = [(str(folder), "")]
    while waiting:
        place, prefix = waiting.pop()
        try:
            entries = os.scandir(place)
        except OSError:
            continue
        with entries:
            for entry in entries:
                name = entry.name
                if name.startswith("."):
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, f"{prefix}{name}/"))
                        continue
                    if entry.is_symlink() and not lies_inside(Path(entry.path), folder):
                        continue
                    status = entry.stat()
                except OSError:  # deleted after it was listed
                    continue
                stamps[prefix + name] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return stamps


# --- Zip archives, read like folders ---

SUFFIX = ".zip"
MOST_UNPACKED = GB  # total bytes of an uploaded archive's files, which are held in memory


@dataclass(frozen=True, slots=True)
class UnpackedFiles:
    """Unpacked uploads.

    Attributes:
        files: The files as (name, bytes).
        left_out: Names of files in archives whose format is not supported.
    """

    files: list[tuple[str, bytes]]
    left_out: list[str]


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A file in an archive.

    Attributes:
        name: Its path in the archive.
        size: Its size in bytes according to the archive.
        load: Returns its contents.
    """

    name: str
    size: int
    load: Callable[[], bytes]


def is_zip(name: str) -> bool:
    """Return whether a file name is that of a zip archive."""
    return name.lower().endswith(SUFFIX)


def zip_members(archive: Path | bytes) -> tuple[list[ZipMember], list[str]]:
    """Return the readable files of an archive, and the paths of the others without hidden ones.

    Raises:
        UnreadableDocument: It is damaged or not a zip archive.
    """
    try:
        with _opened(archive) as opened:
            infos = [info for info in opened.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnreadableDocument(f"It is damaged or not a zip archive ({error}). Zip the files again.") from error
    members = [
        ZipMember(info.filename, info.file_size, partial(_read, archive, info))
        for info in infos
        if wanted(info.filename)
    ]
    others = [info.filename for info in infos if not wanted(info.filename) and not _is_hidden(info.filename)]
    return members, others


def unpacked(name: str, data: bytes) -> UnpackedFiles:
    """Return the files of an uploaded archive, named below the archive's name.

    Raises:
        UnreadableDocument: It is not a zip archive, a file in it cannot be read, none is supported, or it is over 1 GB.
    """
    try:
        members, others = zip_members(data)
        if sum(member.size for member in members) > MOST_UNPACKED:
            raise UnreadableDocument("It is over 1 GB when unpacked. Use 'workbench ingest', or split it.")
        if not members:
            raise UnreadableDocument("It contains no file in a supported format.")
        files = [(below(name, member.name), member.load()) for member in members]
        return UnpackedFiles(files, [below(name, other) for other in others])
    except UnreadableDocument as error:
        raise UnreadableDocument(f"{name}: {error}") from error


def taken_apart(uploads: Iterable[tuple[str, bytes]]) -> UnpackedFiles:
    """Return uploads with each zip archive replaced by its readable files.

    Raises:
        UnreadableDocument: As for ``unpacked``.
    """
    parts = [unpacked(name, data) if is_zip(name) else UnpackedFiles([(name, data)], []) for name, data in uploads]
    return UnpackedFiles(
        [file for part in parts for file in part.files], [name for part in parts for name in part.left_out]
    )


def below(archive: str, name: str) -> str:
    """Return a file's name prefixed by its archive's name, unless it is in a folder of that name."""
    stem = PurePosixPath(archive).stem
    return name if name.startswith(f"{stem}/") else f"{stem}/{name}"


def _opened(archive: Path | bytes) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(archive) if isinstance(archive, bytes) else archive)


def _read(archive: Path | bytes, info: zipfile.ZipInfo) -> bytes:
    if info.flag_bits & 1:
        raise UnreadableDocument(f"{info.filename} is password-protected. Zip the files without a password.")
    try:
        with _opened(archive) as opened, opened.open(info) as file:
            data = file.read(MAX_BYTES + 1)  # the size stated by the archive may be wrong
    except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError, EOFError, ValueError, NotImplementedError) as error:
        raise UnreadableDocument(f"{info.filename} is damaged in the archive ({error}). Zip it again.") from error
    if len(data) > MAX_BYTES:
        raise UnreadableDocument(f"{info.filename} is larger than the limit of {size_text(MAX_BYTES)}.")
    return data


def _is_hidden(name: str) -> bool:
    return passed_over(name) or "__MACOSX" in name.split("/")


# Increment when a reader's output changes, so that all files, PDFs or workbooks are read again.
READING = "2"
PDF_READING = "7"
SHEET_READING = "3"
LARGE = 250 * KB  # bytes; larger items are ingested last, so that smaller ones do not wait for them
TEXT_SHARE = 3  # a third of the bytes of a PDF is text, measured on filings
SCAN_READING = "scans 4"  # added if the extra ``ocr`` is installed, so that installing it reads every PDF again


@dataclass(frozen=True, slots=True)
class Incoming:
    """An item to ingest.

    The given title, URL, metadata and document type take precedence over the reader's. A crawled page, for example,
    comes as
    Markdown but has the type HTML.

    Attributes:
        key: Identifies the document within its source.
        name: File name; its suffix selects the reader.
        load: Returns the contents.
        path: Path to store with the document.
        url: Address of the document.
        title: Title of the document.
        metadata: Metadata of the document.
        keep_file: True to store the original.
        document_type: Type of the document.
        size: Bytes, if known before loading, else 0.
    """

    key: str
    name: str
    load: Callable[[], bytes]
    path: str | None = None
    url: str | None = None
    title: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    keep_file: bool = False
    document_type: str | None = None
    size: int = 0

    @property
    def room(self) -> int:
        """Estimated bytes of text while it waits. Only part of a file whose original is kept is text."""
        return self.size // TEXT_SHARE if self.keep_file else self.size


@dataclass(frozen=True, slots=True)
class PathContents:
    """The files found under some paths.

    Attributes:
        items: Files to read.
        failures: Given paths that cannot be read.
        left_out: Number of files with unsupported formats below folders, by suffix in lower case ("" for none).
    """

    items: list[Incoming]
    failures: list[IngestFailure]
    left_out: dict[str, int]


def content_hash(data: bytes) -> str:
    """Return the hash that shows whether a document has changed."""
    reading = READING
    if data.startswith(b"%PDF-"):
        reading = PDF_READING + (SCAN_READING if reads_scans() else "")
    elif data.startswith(b"PK") and b"xl/worksheets/" in data:
        reading = SHEET_READING
    return hashlib.sha256(reading.encode() + data).hexdigest()


def read(
    item: Incoming, data: bytes, on_page: OnPage | None = None, parser: ParserProcess | None = None
) -> RawDocument:
    """Convert bytes to a document. The item's title and metadata take precedence.

    Raises:
        UnreadableDocument: The bytes cannot be read.
    """
    raw = read_bytes(data, item.name, on_page=on_page, parser=parser)
    return replace(
        raw,
        title=item.title or raw.title,
        metadata={**raw.metadata, **item.metadata},
        document_type=item.document_type or raw.document_type,
    )


def files_under(paths: Iterable[Path | str]) -> PathContents:
    """Return the readable files under paths, keyed by path, and failures for those that cannot be read.

    Keys of files below a folder are relative to it, so they stay the same if the folder is moved. If several paths give
    the
    same key, keys are relative to the common parent of these paths. A zip archive is read like a folder.
    """
    from workbench.ingestion.readers import discover

    keys: dict[Path, str] = {}
    failures: list[IngestFailure] = []
    real: set[Path] = set()
    unread: set[Path] = set()
    packed: list[Incoming] = []
    kinds: Counter[str] = Counter()
    for root in (Path(path) for path in paths if str(path)):
        if is_zip(root.name) and root.is_file():
            inside = _files_of_zip(root)
            packed += inside.items
            failures += inside.failures
            kinds.update(inside.left_out)
            continue
        discovery = discover([root])
        missed = [IngestFailure(str(skip.path), skip.reason) for skip in discovery.skipped if skip.missed]
        if not discovery.files and not missed:
            kinds_read = ", ".join(format_titles())
            missed.append(IngestFailure(str(root), f"It contains no file in a supported format: {kinds_read}."))
        failures += [replace(failure, path=readable(failure.path)) for failure in missed]
        unread |= {skip.path.resolve() for skip in discovery.skipped if skip.unread_kind}
        for path in discovery.files:
            if path.resolve() not in real:
                real.add(path.resolve())
                keys[path] = readable(path.relative_to(root).as_posix() if path != root else path.name)
    items = [*(_file(path, key) for path, key in _told_apart(keys).items()), *packed]
    kinds.update(readable(path.suffix.lower()) for path in unread)
    return PathContents(items, failures, dict(sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))))


def own_title(places: Sequence[Path | str]) -> str | None:
    """Return the title of a source for one folder or zip archive, or None for a file or several paths."""
    path = Path(places[0])
    if len(places) > 1:
        return None
    if path.is_dir():
        return path.resolve().name
    return path.stem if is_zip(path.name) else None


def _files_of_zip(path: Path) -> PathContents:
    """Return the files of a zip archive, with keys below its name."""
    try:
        members, others = zip_members(path)
    except UnreadableDocument as error:
        return PathContents([], [IngestFailure(readable(str(path)), str(error))], {})
    if not members:
        empty = IngestFailure(readable(str(path)), "It contains no file in a supported format.")
        return PathContents([], [empty], {})
    items = [
        Incoming(key, Path(key).name, member.load, path=key, keep_file=keeps_original(key), size=member.size)
        for key, member in ((readable(below(path.name, member.name)), member) for member in members)
    ]
    return PathContents(items, [], dict(Counter(Path(name).suffix.lower() for name in others)))


def _told_apart(keys: Mapping[Path, str]) -> dict[Path, str]:
    """Lengthen equal keys: two ``notes.md`` become ``2023/notes.md`` and ``2024/notes.md``."""
    times = Counter(keys.values())
    shared = {path: Path.cwd() / path for path, key in keys.items() if times[key] > 1}
    if not shared:
        return dict(keys)
    common = Path(os.path.commonpath(list(shared.values())))
    return {
        path: readable(shared[path].relative_to(common).as_posix()) if path in shared else keys[path] for path in keys
    }


def _file(path: Path, key: str) -> Incoming:
    name = readable(path.name)
    return Incoming(
        key=key, name=name, load=_reader_of(path), path=key, keep_file=keeps_original(name), size=_size_of(path)
    )


def readable(path: str) -> str:
    """Return a path as text. Bytes that are not UTF-8 (names from old archives) are decoded as Latin-1."""
    return "".join(chr(ord(char) - 0xDC00) if "\udc80" <= char <= "\udcff" else char for char in path)


def upload(name: str, data: bytes) -> Incoming:
    """Return an uploaded file as an item."""
    clean = Path(name).name or "upload"
    return Incoming(
        key=clean, name=clean, load=lambda: data, path=clean, keep_file=keeps_original(clean), size=len(data)
    )


def text_item(
    key: str, text: str, *, title: str, url: str | None = None, metadata: Mapping[str, object] | None = None
) -> Incoming:
    """Return a Markdown text as an item."""
    name = f"{title or 'text'}.md"
    return Incoming(key, name, lambda: text.encode(), title=title, url=url, metadata=metadata or {}, size=len(text))


def small_first(items: Sequence[Incoming]) -> list[tuple[int, Incoming]]:
    """Return (index, item) with items over 250 kB last, by size. Items with the same key keep their order."""
    largest: dict[str, int] = {}
    for item in items:
        largest[item.key] = max(item.size, largest.get(item.key, 0))

    def weight(placed: tuple[int, Incoming]) -> int:
        size = largest[placed[1].key]
        return size if size > LARGE else 0

    return sorted(enumerate(items), key=weight)


def keeps_original(name: str) -> bool:
    """Return whether the original of a file is stored next to its text, as for a PDF."""
    return original_type(name) is not None


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # its loader reports the error
        return 0


def _reader_of(path: Path) -> Callable[[], bytes]:
    def load() -> bytes:
        try:
            size = path.stat().st_size
            if size > MAX_BYTES:
                raise UnreadableDocument(f"It is {size_text(size)}; the limit is {size_text(MAX_BYTES)}.")
            return path.read_bytes()
        except OSError as error:
            raise UnreadableDocument(
                f"It cannot be opened ({error.strerror or error}). Check its permissions."
            ) from error

    return load
