"""Items that come in: files, uploads and texts, each with a key that makes it the same document again."""

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

# --- Staying inside a folder: an agent may search nothing that a link brings in from elsewhere ---


def lies_inside(path: Path, folder: Path) -> bool:
    """Tell whether a path, with every link followed, lies below ``folder``, which is resolved already."""
    try:
        return path.resolve().is_relative_to(folder)
    except (OSError, RuntimeError):  # a link that leads in a circle
        return False


# --- The state of a folder's files as the file system tells it, which shows what has changed without reading ---

Stamp = tuple[int, int, int, int]  # device's file number, size, time of change of content and of entry
Stamps = dict[str, Stamp]  # by path below the folder


def stamps_of(folder: Path) -> Stamps:
    """Return what the file system says of every file below a resolved folder.

    Hidden files and folders do not count, nor do links that lead out of it.
    """
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
                except OSError:  # gone between the listing and now
                    continue
                stamps[prefix + name] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return stamps


# --- Zip archives of documents: each file in one that can be read is a document of its own, as in a folder ---

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


# Raise it when readers change what they make of the same bytes: everything, every PDF or every workbook is read again.
READING = "2"
PDF_READING = "7"
SHEET_READING = "3"
LARGE = 250 * KB  # bytes: larger items come after all smaller ones, which are written without waiting for them
TEXT_SHARE = 3  # PDFs of filings have a third of their bytes in text
SCAN_READING = "scans 4"  # beside the PDF's where the extra reads scans: installed later, it reads every PDF again


@dataclass(frozen=True, slots=True)
class Incoming:
    """One thing to ingest; ``load`` gives its bytes, ``key`` identifies it within its source.

    ``title``, ``url``, ``metadata`` and ``document_type`` win over what the reader finds (a crawled page comes as
    Markdown, and is HTML all the same).
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
    size: int = 0  # bytes, where they are known before loading

    @property
    def room(self) -> int:
        """The bytes of text that it is taken for while it waits: of a file whose original is kept, little is text."""
        return self.size // TEXT_SHARE if self.keep_file else self.size


@dataclass(frozen=True, slots=True)
class PathContents:
    """The contents of paths: files to read, what was asked for and cannot be read, and how many others of which kind.

    ``left_out`` counts the files below folders whose kind is not read, by suffix in lower case ("" for none).
    """

    items: list[Incoming]
    failures: list[IngestFailure]
    left_out: dict[str, int]


def content_hash(data: bytes) -> str:
    """Return the hash that tells whether a document changed."""
    reading = READING
    if data.startswith(b"%PDF-"):
        reading = PDF_READING + (SCAN_READING if reads_scans() else "")
    elif data.startswith(b"PK") and b"xl/worksheets/" in data:
        reading = SHEET_READING
    return hashlib.sha256(reading.encode() + data).hexdigest()


def read(
    item: Incoming, data: bytes, on_page: OnPage | None = None, parser: ParserProcess | None = None
) -> RawDocument:
    """Turn bytes into a document, the caller's title and metadata winning; the others as for ``read_bytes``.

    Raises:
        UnreadableDocument: the bytes cannot be turned into text.
    """
    raw = read_bytes(data, item.name, on_page=on_page, parser=parser)
    return replace(
        raw,
        title=item.title or raw.title,
        metadata={**raw.metadata, **item.metadata},
        document_type=item.document_type or raw.document_type,
    )


def files_under(paths: Iterable[Path | str]) -> PathContents:
    """Return the readable files under paths, keyed by path, and the failures of those that cannot be read.

    Files below a folder are keyed relative to it, so that a corpus keeps its identity when its folder moves; files of
    several paths that would share a key are keyed relative to what these paths have in common. A zip archive that is
    named itself is read as a folder.
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
            missed.append(
                IngestFailure(str(root), f"It holds no file of a kind that is read; these are: {kinds_read}.")
            )
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
    """Return the title of a source that is made for one folder or zip archive; None for a file or several paths."""
    path = Path(places[0])
    if len(places) > 1:
        return None
    if path.is_dir():
        return path.resolve().name
    return path.stem if is_zip(path.name) else None


def _files_of_zip(path: Path) -> PathContents:
    """Return the files of a zip archive that was named itself, keyed below its name."""
    try:
        members, others = zip_members(path)
    except UnreadableDocument as error:
        return PathContents([], [IngestFailure(readable(str(path)), str(error))], {})
    if not members:
        empty = IngestFailure(readable(str(path)), "It holds no file of a kind that is read.")
        return PathContents([], [empty], {})
    items = [
        Incoming(key, Path(key).name, member.load, path=key, keep_file=keeps_original(key), size=member.size)
        for key, member in ((readable(below(path.name, member.name)), member) for member in members)
    ]
    return PathContents(items, [], dict(Counter(Path(name).suffix.lower() for name in others)))


def _told_apart(keys: Mapping[Path, str]) -> dict[Path, str]:
    """Give files that share a key longer ones: two ``notes.md`` become ``2023/notes.md`` and ``2024/notes.md``."""
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
    """Return a path as text; bytes in it that are no UTF-8 (names out of old archives) are taken for Latin-1."""
    return "".join(chr(ord(char) - 0xDC00) if "\udc80" <= char <= "\udcff" else char for char in path)


def upload(name: str, data: bytes) -> Incoming:
    """Return an uploaded file as something to ingest."""
    clean = Path(name).name or "upload"
    return Incoming(
        key=clean, name=clean, load=lambda: data, path=clean, keep_file=keeps_original(clean), size=len(data)
    )


def text_item(
    key: str, text: str, *, title: str, url: str | None = None, metadata: Mapping[str, object] | None = None
) -> Incoming:
    """Return a text (Markdown) as something to ingest."""
    name = f"{title or 'text'}.md"
    return Incoming(key, name, lambda: text.encode(), title=title, url=url, metadata=metadata or {}, size=len(text))


def small_first(items: Sequence[Incoming]) -> list[tuple[int, Incoming]]:
    """Return (place, item), those over 250 kB after all others and by size; items of one key keep their order."""
    largest: dict[str, int] = {}
    for item in items:
        largest[item.key] = max(item.size, largest.get(item.key, 0))

    def weight(placed: tuple[int, Incoming]) -> int:
        size = largest[placed[1].key]
        return size if size > LARGE else 0

    return sorted(enumerate(items), key=weight)


def keeps_original(name: str) -> bool:
    """Tell by its name whether a file's original is kept beside its text, as a PDF's is."""
    return original_type(name) is not None


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # its loader says what is wrong with it
        return 0


def _reader_of(path: Path) -> Callable[[], bytes]:
    def load() -> bytes:
        try:
            size = path.stat().st_size
            if size > MAX_BYTES:
                raise UnreadableDocument(f"It is {size_text(size)}; at most {size_text(MAX_BYTES)} are read.")
            return path.read_bytes()
        except OSError as error:
            raise UnreadableDocument(
                f"It cannot be opened ({error.strerror or error}); check that it may be read."
            ) from error

    return load
