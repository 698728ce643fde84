"""Items to ingest: files, uploads and texts, each with a key that identifies its document in the source."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, cast

from workbench.errors import UnreadableDocument
from workbench.formatting import GB, KB, size_text
from workbench.ingestion.ocr.document import OnPage, is_ocr_installed
from workbench.ingestion.raw import RawDocument
from workbench.ingestion.readers.formats import (
    MAX_BYTES,
    check_path,
    check_size,
    discover,
    find_reader,
    is_skipped,
    is_wanted,
    list_format_titles,
    original_type,
    read_bytes,
)
from workbench.ingestion.readers.isolation import DEFAULT_OPTIONS, ParserProcess, ReadingOptions
from workbench.ingestion.stamps import is_inside
from workbench.ingestion.text import guess_name_encoding
from workbench.types import HIDDEN_FILES, IngestFailure, format_left_out

# --- Zip archives, read like folders ---

ZIP_SUFFIX = ".zip"
UTF8_NAME_FLAG = 0x800  # of a member; else zipfile decodes its name as CP437
MAX_BYTES_BY_CHANCE = 2  # more than characters, of a name in another encoding that is UTF-8 by chance
MAX_UNPACKED_BYTES = GB  # total bytes of an uploaded archive's files, which are held in memory


@dataclass(frozen=True, slots=True)
class UnpackedFiles:
    """Unpacked uploads."""

    files: list[tuple[str, bytes]]  # the files as (name, bytes)
    left_out: list[str]  # names of files in archives whose format is not supported


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A file in an archive."""

    name: str  # its path in the archive
    size: int  # its size in bytes according to the archive
    load: Callable[[], bytes]  # returns its contents
    date: date | None = None  # day of its last change according to the archive


def is_zip(name: str) -> bool:
    """Return whether a file name has the suffix of a zip archive."""
    return name.lower().endswith(ZIP_SUFFIX)


def list_zip_members(archive: Path | bytes) -> tuple[list[ZipMember], list[str]]:
    """Return the readable files of an archive, and the paths of the others, also of hidden ones that could be read.

    Raises:
        UnreadableDocument: It is damaged or not a zip archive.
    """
    try:
        with _open_zip(archive) as opened:
            infos = dict(_name_members(opened.infolist()))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnreadableDocument(f"It is damaged or not a zip archive ({error}). Zip the files again.") from error
    members = [
        ZipMember(name, info.file_size, partial(_read_member, archive, info), _member_date(info))
        for name, info in infos.items()
        if is_wanted(name)
    ]
    return members, [name for name in infos if not is_wanted(name) and _is_missed(name)]


def _name_members(infos: Sequence[zipfile.ZipInfo]) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    """Yield the files with their names, numbered if they repeat. Names not marked as UTF-8 are decoded like texts."""
    times: Counter[str] = Counter()
    decoded = _decode_names([info.filename for info in infos if not info.flag_bits & UTF8_NAME_FLAG])
    for info in infos:
        if info.is_dir():
            continue
        is_marked = info.flag_bits & UTF8_NAME_FLAG
        path = PurePosixPath(info.filename if is_marked else decoded.get(info.filename, info.filename))
        name = str(path)
        while times[name]:
            times[str(path)] += 1
            name = str(path.with_stem(f"{path.stem} ({times[str(path)]})"))
        times[name] = 1
        yield name, info


def _decode_names(names: Sequence[str]) -> dict[str, str]:
    """Return names of members, read as CP437, in their own encoding: UTF-8, or the code page of an old system.

    If some are not UTF-8, others may be by chance, unless they have several characters that are.
    """
    written = {name: name.encode("cp437", "replace") for name in names if not name.isascii()}
    decoded = {name: data.decode(errors="replace") for name, data in written.items()}
    if any(text.encode() != written[name] for name, text in decoded.items()):
        foreign = [
            name
            for name, text in decoded.items()
            if text.encode() != written[name] or len(written[name]) - len(text) <= MAX_BYTES_BY_CHANCE
        ]
        stems = "\n".join(str(PurePosixPath(name).with_suffix("")) for name in foreign).encode("cp437", "replace")
        codec = guess_name_encoding(stems)
        decoded |= {name: written[name].decode(codec, "replace") for name in foreign}
    return decoded


def unpack_uploads(uploads: Iterable[tuple[str, bytes]]) -> UnpackedFiles:
    """Return uploads with each zip archive replaced by its readable files, named below the archive's name.

    Raises:
        UnreadableDocument: An archive is damaged or over 1 GB, a file in it is unreadable, or none is supported.
    """
    unpacked = UnpackedFiles([], [])
    for name, data in uploads:
        if not is_zip(name):
            unpacked.files.append((name, data))
            continue
        try:
            members, others = list_zip_members(data)
            if sum(member.size for member in members) > MAX_UNPACKED_BYTES:
                raise UnreadableDocument("It is over 1 GB when unpacked. Use 'workbench ingest', or split it.")
            if not members:
                raise UnreadableDocument("It contains no file in a supported format.")
            unpacked.files.extend((name_below(name, member.name), member.load()) for member in members)
        except UnreadableDocument as error:
            raise UnreadableDocument(f"{name}: {error}") from error
        unpacked.left_out.extend(name_below(name, other) for other in others if not is_skipped(other))
    return unpacked


def name_below(archive: str, name: str) -> str:
    """Return a file's name prefixed by its archive's name, unless it is in a folder of that name."""
    stem = PurePosixPath(archive).stem
    return name if name.startswith(f"{stem}/") else f"{stem}/{name}"


def _open_zip(archive: Path | bytes) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(archive) if isinstance(archive, bytes) else archive)


def _read_member(archive: Path | bytes, info: zipfile.ZipInfo) -> bytes:
    if info.flag_bits & 1:
        raise UnreadableDocument(f"{info.filename} is password-protected. Zip the files without a password.")
    try:
        with _open_zip(archive) as opened, opened.open(info) as file:
            data = file.read(MAX_BYTES + 1)  # the size stated by the archive may be wrong
    except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError, EOFError, ValueError, NotImplementedError) as error:
        raise UnreadableDocument(f"{info.filename} is damaged in the archive ({error}). Zip it again.") from error
    if len(data) > MAX_BYTES:
        raise UnreadableDocument(f"{info.filename} is larger than the limit of {size_text(MAX_BYTES)}.")
    return data


def _member_date(info: zipfile.ZipInfo) -> date | None:
    """Return the day of a file's last change; None for 1980-01-01, which archives without dates have."""
    try:
        return date(*info.date_time[:3]) if info.date_time[:3] > (1980, 1, 1) else None
    except ValueError:
        return None


def _is_missed(name: str) -> bool:
    return "__MACOSX" not in name.split("/") and (not is_skipped(name) or find_reader(name) is not None)


GIT_TIMEOUT_S = 20.0  # seconds for the history of a folder
COMMIT_DAY = re.compile(r"\d{4}-\d\d-\d\d")

# Increment when a reader's output changes, so that all files, PDFs or workbooks are read again.
READER_VERSION = "20"
PDF_READER_VERSION = "16"
SHEET_READER_VERSION = "13"
LARGE_ITEM_BYTES = 250 * KB  # bytes; larger items are ingested last, so that smaller ones do not wait for them
BYTES_PER_TEXT_BYTE = 3  # a third of the bytes of a PDF is text, measured on filings
SCAN_READER_VERSION = "scans 4"  # added if the extra ``ocr`` is installed, so that installing it reads every PDF again


@dataclass(frozen=True, slots=True)
class IngestItem:
    """An item to ingest.

    A title, URL, metadata and document type given here take precedence over the reader's. A crawled page, for example,
    arrives as Markdown but has the type HTML.
    """

    key: str  # identifies the document within its source
    name: str  # file name; its suffix selects the reader
    load: Callable[[], bytes]  # returns the contents
    path: str | None = None  # path to store with the document
    url: str | None = None  # address of the document
    title: str | None = None  # title of the document
    metadata: Mapping[str, object] = field(default_factory=dict)  # metadata of the document
    document_type: str | None = None  # type of the document
    size: int = 0  # bytes, if known before loading, else 0
    file_date: date | None = None  # day of its last commit or change, used if the document itself has no date

    @property
    def room(self) -> int:
        """Estimated bytes of its text while it waits. If a file's original is kept, only part of it is text."""
        return self.size // BYTES_PER_TEXT_BYTE if original_type(self.name) else self.size


@dataclass(frozen=True, slots=True)
class PathContents:
    """The files found under some paths."""

    items: list[IngestItem]  # files to read
    failures: list[IngestFailure]  # unreadable paths
    # Number of files with unsupported formats below folders, by suffix in lower case ("" for none).
    left_out: dict[str, int]


def content_hash(data: bytes, options: ReadingOptions = DEFAULT_OPTIONS) -> str:
    """Return the hash that shows whether a document, or how it is read, has changed."""
    reading = READER_VERSION
    if data.startswith(b"%PDF-"):
        reading = PDF_READER_VERSION + (SCAN_READER_VERSION if is_ocr_installed() else "")
    elif data.startswith(b"PK") and b"xl/worksheets/" in data:
        reading = SHEET_READER_VERSION
    if options != DEFAULT_OPTIONS:
        reading += f" {options.encoding} {options.skip_hidden}"
    return hashlib.sha256(reading.encode() + data).hexdigest()


def _add_counts(first: Mapping[str, object], second: Mapping[str, object]) -> dict[str, dict[str, int]]:
    """Return the counts of two readings of a page, as it was crawled and as it is stored, as one."""
    sums: dict[str, dict[str, int]] = {}
    for key in ("left_out", "hidden_parts"):
        one, other = first.get(key), second.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            sums[key] = dict(Counter(cast("dict[str, int]", one)) + Counter(cast("dict[str, int]", other)))
    return sums


def read_item(
    item: IngestItem,
    data: bytes,
    on_page: OnPage | None = None,
    parser: ParserProcess | None = None,
    options: ReadingOptions = DEFAULT_OPTIONS,
) -> RawDocument:
    """Convert bytes to a document. The item's title and metadata take precedence.

    Raises:
        UnreadableDocument: The bytes are unreadable.
    """
    raw = read_bytes(data, item.name, on_page=on_page, parser=parser, options=options)
    return replace(
        raw,
        title=item.title or raw.title,
        metadata={**raw.metadata, **item.metadata, **_add_counts(raw.metadata, item.metadata)},
        document_type=item.document_type or raw.document_type,
    )


def list_files(paths: Iterable[Path | str]) -> PathContents:
    """Return the readable files under paths, keyed by path, and failures for unreadable ones.

    Keys of files below a folder are relative to it, so they stay the same if the folder is moved. If files under
    several paths have the same key, keys are relative to the common parent of these paths. A zip archive is read like a
    folder.
    """
    keys: dict[Path, str] = {}
    failures: list[IngestFailure] = []
    real: set[Path] = set()
    unread: set[Path] = set()
    hidden: set[Path] = set()
    packed: list[IngestItem] = []
    kinds: Counter[str] = Counter()
    roots = [Path(path) for path in paths if str(path)]
    for root in roots:
        if is_zip(root.name) and check_path(root.is_file):
            inside = _list_zip_files(root)
            packed += inside.items
            failures += inside.failures
            kinds.update(inside.left_out)
            continue
        discovery = discover([root])
        missed = [IngestFailure(str(skip.path), skip.reason) for skip in discovery.skipped if skip.missed]
        if not discovery.files and not missed:
            kinds_read = ", ".join(list_format_titles())
            missed.append(IngestFailure(str(root), f"It contains no file in a supported format: {kinds_read}."))
        failures += [replace(failure, path=readable_path(failure.path)) for failure in missed]
        unread |= {skip.path.resolve() for skip in discovery.skipped if skip.unread_kind}
        hidden |= {skip.path.resolve() for skip in discovery.skipped if skip.hidden_file}
        for path in discovery.files:
            if path.resolve() not in real:
                real.add(path.resolve())
                keys[path] = readable_path(path.relative_to(root).as_posix() if path != root else path.name)
    dates = _commit_dates(_list_repositories(roots, keys))
    items = [*(_file_item(path, key, dates) for path, key in _make_keys_unique(keys).items()), *packed]
    kinds.update(readable_path(path.suffix.lower()) for path in unread)
    kinds.update(HIDDEN_FILES for _path in hidden)
    return PathContents(items, failures, dict(sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))))


def source_title(places: Sequence[Path | str]) -> str | None:
    """Return the title of a source for one folder or zip archive, or None for a file or several paths."""
    path = Path(places[0])
    if len(places) > 1:
        return None
    if check_path(path.is_dir):
        return path.resolve().name
    return path.stem if is_zip(path.name) else None


def _list_zip_files(path: Path) -> PathContents:
    """Return the files of a zip archive, with keys below its name."""
    try:
        members, others = list_zip_members(path)
    except UnreadableDocument as error:
        return PathContents([], [IngestFailure(readable_path(str(path)), str(error))], {})
    if not members:
        empty = IngestFailure(readable_path(str(path)), "It contains no file in a supported format.")
        return PathContents([], [empty], {})
    items = [
        IngestItem(
            key,
            Path(key).name,
            member.load,
            path=key,
            size=member.size,
            file_date=member.date,
        )
        for key, member in ((readable_path(name_below(path.name, member.name)), member) for member in members)
    ]
    kinds = Counter(HIDDEN_FILES if is_skipped(name) else Path(name).suffix.lower() for name in others)
    return PathContents(items, [], dict(kinds))


def _make_keys_unique(keys: Mapping[Path, str]) -> dict[Path, str]:
    """Lengthen duplicate keys: two ``notes.md`` become ``2023/notes.md`` and ``2024/notes.md``."""
    times = Counter(keys.values())
    shared = {path: Path.cwd() / path for path, key in keys.items() if times[key] > 1}
    if not shared:
        return dict(keys)
    common = Path(os.path.commonpath(list(shared.values())))
    return {
        path: readable_path(shared[path].relative_to(common).as_posix()) if path in shared else keys[path]
        for path in keys
    }


def _file_item(path: Path, key: str, commit_dates: Mapping[Path, date]) -> IngestItem:
    size, changed = 0, None
    with suppress(OSError, ValueError, OverflowError):  # its loader reports an error
        size = path.stat().st_size
        day = datetime.fromtimestamp(path.stat().st_mtime).date()
        changed = day if day > date(1970, 1, 1) else None  # the first of 1970 is written by builds without dates
    return IngestItem(
        key=key,
        name=readable_path(path.name),
        load=partial(_load_file, path),
        path=key,
        size=size,
        file_date=commit_dates.get(path) or changed,
    )


def _list_repositories(roots: Iterable[Path], files: Iterable[Path]) -> list[Path]:
    """Return the folders that are or may be in a git repository: those given, and repositories below them."""
    given = {root if check_path(root.is_dir) else root.parent for root in roots}
    parents = {parent for file in files for parent in file.parents}
    below = {
        parent for parent in parents if not given.isdisjoint(parent.parents) and check_path((parent / ".git").exists)
    }
    return sorted(given | below)


def _commit_dates(folders: Iterable[Path]) -> dict[Path, date]:
    """Return the day of the last commit of each file below these folders that git knows."""
    dates: dict[Path, date] = {}
    for folder in folders:
        command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), "log"]
        command += ["--no-show-signature", "--format=%x00%cs", "--name-only", "--relative", "-z", "--", "."]
        try:
            done = subprocess.run(command, capture_output=True, timeout=GIT_TIMEOUT_S, check=True)
        except (OSError, subprocess.SubprocessError):  # no git, or no repository
            continue
        day: date | None = None
        for field_ in done.stdout.decode(errors="surrogateescape").split("\0"):
            text = field_.strip("\n")
            if COMMIT_DAY.fullmatch(text):
                day = date.fromisoformat(text)
            elif text and day is not None:
                dates.setdefault(folder / text, day)
    return dates


def readable_path(path: str) -> str:
    """Return a path as text. Bytes that are not UTF-8 (names from old archives) are decoded as Latin-1."""
    return "".join(chr(ord(char) - 0xDC00) if "\udc80" <= char <= "\udcff" else char for char in path)


def text_item(
    key: str, text: str, *, title: str, url: str | None = None, metadata: Mapping[str, object] | None = None
) -> IngestItem:
    """Return a Markdown text as an item."""
    name = f"{title or 'text'}.md"
    return IngestItem(key, name, lambda: text.encode(), title=title, url=url, metadata=metadata or {}, size=len(text))


def sort_small_first(items: Sequence[IngestItem]) -> list[tuple[int, IngestItem]]:
    """Return (index, item) with items over 250 kB last, by size. Items with the same key keep their order."""
    largest: dict[str, int] = {}
    for item in items:
        largest[item.key] = max(item.size, largest.get(item.key, 0))

    def weight(placed: tuple[int, IngestItem]) -> int:
        size = largest[placed[1].key]
        return size if size > LARGE_ITEM_BYTES else 0

    return sorted(enumerate(items), key=weight)


def _load_file(path: Path) -> bytes:
    try:
        check_size(path.name, path.stat().st_size)
        return path.read_bytes()
    except OSError as error:
        raise UnreadableDocument(
            f"Failed to open '{path.name}' ({error.strerror or error}). Check its permissions."
        ) from error


# --- Archives on disk: dated research notes and saved pages, with metadata from their paths and first lines ---

_PATH_DATE = re.compile(r"(?:\A|/)(\d{4}-\d{2}-\d{2})(?=[/_.-]|\Z)")
_URL_LINE = re.compile(
    rb"^\W{0,6}(?:source[ _]?url|url|source|link|original)\W{1,6}(https?://[^\s>\")\]]{1,2000})", re.I | re.M
)
_HEAD_BYTES = 2_048  # bytes of a saved page searched for its address


def list_archive_items(folder: Path) -> list[IngestItem]:
    """Return the files below an archive folder as items, with archive, date and address.

    ``folder`` must already be resolved. Links that lead out of it are skipped.
    """
    items = list_files([folder]).items
    return [_add_metadata(item, folder) for item in items if is_inside(folder / item.key, folder)]


def _add_metadata(item: IngestItem, folder: Path) -> IngestItem:
    kind = "url" if item.key.startswith("url-content/") else "research"
    metadata: dict[str, Any] = {**item.metadata, "archive": kind}
    dated = _PATH_DATE.search(item.key)
    if dated and _parse_day(dated.group(1)) is not None:
        metadata["date"] = dated.group(1)
    url = item.url
    if kind == "url":
        try:
            with (folder / item.key).open("rb") as file:
                address = _URL_LINE.search(file.read(_HEAD_BYTES))
        except OSError:
            address = None
        url = address.group(1).decode("utf-8", "replace").rstrip(".,;") if address else url
    return replace(item, metadata=metadata, url=url)


# Conversations on disk: TYPE/YYYY-MM-DD/NNN-slug, a folder or a file, each read as one document

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_NUMBERED_NAME = re.compile(r"\d{1,6}-.+", re.DOTALL)
CONVERSATION_SUFFIXES = (".md", ".markdown", ".txt")  # of a conversation in a single file


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation."""

    key: str  # its path in the workspace
    path: Path  # its path on disk
    type: str = ""  # its type, or ""
    day: date | None = None  # its date, or None

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
    files = [path] if path.is_file() else discover([path]).files
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


def make_conversation_item(conversation: Conversation, workspace: Path) -> IngestItem:
    """Return a conversation as an item: a single file unchanged, several joined under their names."""
    stem = conversation.path.stem if conversation.path.suffix in CONVERSATION_SUFFIXES else conversation.path.name
    metadata = {"conversation": conversation.name, "conversation_type": conversation.type}
    if conversation.day:
        metadata["date"] = conversation.day.isoformat()
    files = list_conversation_files(conversation, workspace)
    suffix = files[0].suffix if len(files) == 1 else ".md"
    return IngestItem(
        key=conversation.key,
        name=conversation.path.name if files == [conversation.path] else f"{stem}{suffix}",
        load=lambda: _read_text(conversation, files),
        path=conversation.key,
        metadata=metadata,
    )


def list_conversation_files(conversation: Conversation, workspace: Path) -> list[Path]:
    """Return a conversation's readable files by path. Links that lead out of the workspace are skipped."""
    if conversation.path.is_file():
        return [conversation.path] if is_inside(conversation.path, workspace) else []
    return [file for file in discover([conversation.path]).files if is_inside(file, workspace)]


def _read_text(conversation: Conversation, files: list[Path]) -> bytes:
    if not files:
        raise UnreadableDocument(f"'{conversation.key}' contains no readable file.")
    if len(files) == 1:
        return _load_file(files[0])
    pieces, failures = [], []
    for file in files:
        try:
            raw = read_bytes(_load_file(file), file.name)
            pieces.append(f"## {file.name}\n\n{raw.text}")
            if isinstance(counts := raw.metadata.get("left_out"), dict):
                pieces.append(f"({file.name} is not fully read: {format_left_out(cast('dict[str, int]', counts))})")
        except UnreadableDocument as error:
            failures.append(str(error))
            pieces.append(f"## {file.name}\n\n(not read: {error})")
    if len(failures) == len(files):
        raise UnreadableDocument(failures[0])
    return "\n\n".join(pieces).encode("utf-8", "replace")


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
