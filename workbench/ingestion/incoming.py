"""What comes in: files, uploads and texts, each with a key that makes it the same document again."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.errors import UnreadableDocument
from workbench.ingestion.raw import RawDocument
from workbench.ingestion.readers import MAX_BYTES, read_bytes
from workbench.types import IngestFailure

# Raise it when readers change what they make of the same bytes: everything, or every PDF, is then read again.
READING = "1"
PDF_READING = "2"


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
    metadata: Mapping[str, Any] = field(default_factory=dict)
    keep_file: bool = False
    document_type: str | None = None
    size: int = 0  # bytes, where they are known before loading


@dataclass(frozen=True, slots=True)
class Found:
    """What lies under paths: files to read, what was asked for and cannot be read, and how many others of which kind.

    ``left_out`` counts the files below folders whose kind is not read, by suffix in lower case ("" for none).
    """

    items: list[Incoming]
    failures: list[IngestFailure]
    left_out: dict[str, int]


def content_hash(data: bytes) -> str:
    """Return the hash that tells whether a document changed."""
    reading = PDF_READING if data.startswith(b"%PDF-") else READING
    return hashlib.sha256(reading.encode() + data).hexdigest()


def read(item: Incoming, data: bytes) -> RawDocument:
    """Turn bytes into a document, the caller's title and metadata winning. Raises UnreadableDocument."""
    raw = read_bytes(data, item.name)
    return replace(
        raw,
        title=item.title or raw.title,
        metadata={**raw.metadata, **item.metadata},
        document_type=item.document_type or raw.document_type,
    )


def files_under(paths: Iterable[Path | str]) -> Found:
    """Return the readable files under paths, keyed by their path, and what was named or looked into and cannot be read.

    Files below a folder are keyed relative to it, so that a corpus keeps its identity when its folder moves; files of
    several paths that would share a key are keyed relative to what these paths have in common.
    """
    from workbench.ingestion.readers import discover, supported_suffixes

    found: dict[Path, str] = {}
    failures: list[IngestFailure] = []
    real: set[Path] = set()
    unread: set[Path] = set()
    for root in (Path(path) for path in paths if str(path)):
        discovery = discover([root])
        missed = [IngestFailure(str(skip.path), skip.reason) for skip in discovery.skipped if skip.missed]
        if not discovery.files and not missed:
            supported = ", ".join(supported_suffixes())
            missed.append(IngestFailure(str(root), f"It holds no file of a kind that is read; these are {supported}."))
        failures += [replace(failure, path=readable(failure.path)) for failure in missed]
        unread |= {skip.path.resolve() for skip in discovery.skipped if skip.unread_kind}
        for path in discovery.files:
            if path.resolve() not in real:
                real.add(path.resolve())
                found[path] = readable(path.relative_to(root).as_posix() if path != root else path.name)
    items = [_file(path, key) for path, key in _told_apart(found).items()]
    kinds = Counter(readable(path.suffix.lower()) for path in unread)
    return Found(items, failures, dict(sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))))


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
    return Incoming(key=key, name=name, load=_reader_of(path), path=key, keep_file=is_pdf(name), size=_size_of(path))


def readable(path: str) -> str:
    """Return a path as text; bytes in it that are no UTF-8 (names out of old archives) are taken for Latin-1."""
    return "".join(chr(ord(char) - 0xDC00) if "\udc80" <= char <= "\udcff" else char for char in path)


def upload(name: str, data: bytes, **fields: Any) -> Incoming:
    """Return an uploaded file as something to ingest."""
    clean = Path(name).name or "upload"
    return Incoming(key=clean, name=clean, load=lambda: data, path=clean, keep_file=is_pdf(clean), **fields)


def text_item(key: str, text: str, *, title: str, **fields: Any) -> Incoming:
    """Return a text (Markdown) as something to ingest."""
    return Incoming(key=key, name=f"{title or 'text'}.md", load=lambda: text.encode(), title=title, **fields)


def is_pdf(name: str) -> bool:
    """Tell by its name whether a file is a PDF, whose original is kept."""
    return name.lower().endswith(".pdf")


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # whoever loads it says what is wrong with it
        return 0


def _reader_of(path: Path) -> Callable[[], bytes]:
    def load() -> bytes:
        try:
            size = path.stat().st_size
            if size > MAX_BYTES:
                raise UnreadableDocument(f"It is {size / 2**20:.0f} MB; at most {MAX_BYTES // 2**20} MB are read.")
            return path.read_bytes()
        except OSError as error:
            raise UnreadableDocument(
                f"It cannot be opened ({error.strerror or error}); check that it may be read."
            ) from error

    return load
