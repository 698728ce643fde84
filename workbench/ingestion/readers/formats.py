"""The table of readers by suffix, and the functions that read a path or bytes."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import cast

from workbench.errors import Cancelled, InvalidInput, UnreadableDocument
from workbench.formatting import KB, MB, size_text
from workbench.ingestion.ocr.document import INSTALL_ADVICE, SAVED_AS, OnPage, is_ocr_installed
from workbench.ingestion.raw import Draft, RawDocument, join_pages, place_scans, to_json_metadata
from workbench.ingestion.readers.html import read_html
from workbench.ingestion.readers.isolation import DEFAULT_OPTIONS, ParserProcess, ReadingOptions
from workbench.ingestion.readers.mail import read_entries, read_mail, read_mailbox, read_saved_page
from workbench.ingestion.readers.office import UNDESCRIBED, read_docx, read_epub, read_pptx, read_rtf
from workbench.ingestion.readers.pdf.reader import read_pdf
from workbench.ingestion.readers.picture import read_picture
from workbench.ingestion.readers.plain_text import (
    LANGUAGES_BY_SUFFIX,
    read_code,
    read_json,
    read_json_lines,
    read_markdown,
    read_notebook,
    read_plain,
    read_separated,
    read_subtitles,
)
from workbench.ingestion.readers.spreadsheet import read_xlsx
from workbench.ingestion.text import (
    SURROGATE,
    detect_document_language,
    drop_encoded_data,
    leave_out,
    looks_binary,
    normalise,
    open_reading,
)
from workbench.types import format_left_out

MAX_BYTES = 50 * MB  # largest file that is read
MIN_ISOLATED_OFFICE_BYTES = 50 * KB  # bytes; smaller office files are read in less time than a process takes to start
MIN_ISOLATED_TEXT_BYTES = 2 * MB  # bytes; the same for texts, whose readers are faster
PACKED_RATIO = 40  # a package counts as its unpacked size divided by this, which only bombs and sparse sheets exceed
MAX_TITLE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of one format."""

    document_type: str  # type of the documents that it reads
    read: Callable[[bytes, str], Draft]  # function from (bytes, name) to a draft
    # File suffixes in lower case, with their dots. The first is used for a file known only by its media type.
    suffixes: tuple[str, ...]
    title: str = field(kw_only=True)  # name of the format for display. Rows with the same title are shown as one.
    media_types: tuple[str, ...] = ()  # media types of the format. The original is stored with the first one.
    is_prose: bool = False  # True for plain text and Markdown, whose bytes are the text
    keeps_original: bool = False  # True if the app shows the file itself next to its text
    # Reads as ``read`` does, reports its pages, and can leave pages out.
    read_pages: Callable[[bytes, str, OnPage | None, Collection[int]], Draft] | None = None
    needs_ocr: bool = False  # True if the format can only be read with the extra ``ocr``
    beside_from: int = MIN_ISOLATED_TEXT_BYTES  # minimum size in bytes for reading a file in a separate process


MARKDOWN_READER = Reader(
    "markdown",
    read_markdown,
    (".md", ".markdown", ".mdx", ".mdown", ".mkd", ".rmd", ".qmd"),
    title="Markdown",
    media_types=("text/markdown", "text/x-markdown"),
    is_prose=True,
)
TEXT_READER = Reader(
    "text",
    read_plain,
    (".txt", ".text", ".log", ".rst", ".rest", ".adoc", ".asciidoc", ".tex", ".org"),
    title="text",
    media_types=("text/plain",),
    is_prose=True,
)
HTML_READER = Reader(
    "html",
    read_html,
    (".html", ".htm", ".xhtml", ".shtml"),
    title="HTML",
    media_types=("text/html", "application/xhtml+xml", "application/xml+xhtml"),
)
OFFICE_MEDIA_TYPE_PREFIX = "application/vnd.openxmlformats-officedocument."

IMAGE_FORMATS = (
    ((".png",), "image/png"),
    ((".jpg", ".jpeg"), "image/jpeg"),
    ((".tif", ".tiff"), "image/tiff"),
    ((".webp",), "image/webp"),
)

# Readers import their parsers (PDF, Word, ...) when they are called, so this table is cheap to import.
ALL_READERS = (
    MARKDOWN_READER,
    TEXT_READER,
    HTML_READER,
    Reader("code", read_code, tuple(LANGUAGES_BY_SUFFIX), title="code"),
    Reader("csv", read_separated, (".csv", ".tsv", ".tab"), title="CSV", media_types=("text/csv",)),
    Reader("json", read_json_lines, (".jsonl", ".ndjson"), title="JSON"),
    Reader("json", read_json, (".json", ".jsonld", ".geojson"), title="JSON", media_types=("application/json",)),
    Reader("notebook", read_notebook, (".ipynb",), title="notebooks"),
    Reader("mail", read_mail, (".eml",), title="mail", media_types=("message/rfc822",)),
    Reader("mail", read_mailbox, (".mbox",), title="mail", media_types=("application/mbox",)),
    Reader("html", read_saved_page, (".mhtml", ".mht"), title="HTML", media_types=("multipart/related",)),
    Reader(
        "text", read_subtitles, (".srt", ".vtt"), title="subtitles", media_types=("application/x-subrip", "text/vtt")
    ),
    Reader(
        "text",
        read_entries,
        (".ics", ".vcf"),
        title="calendars and contacts",
        media_types=("text/calendar", "text/vcard"),
    ),
    Reader("rtf", read_rtf, (".rtf",), title="Rich Text", media_types=("application/rtf", "text/rtf")),
    Reader(
        "pdf",
        read_pdf,
        (".pdf",),
        title="PDF",
        media_types=("application/pdf",),
        keeps_original=True,
        read_pages=read_pdf,
        beside_from=0,  # its native parser can crash
    ),
    *(
        Reader(
            "picture",
            read_picture,
            suffixes,
            title="pictures of pages",
            media_types=(media_type,),
            keeps_original=True,
            read_pages=read_picture,
            needs_ocr=True,
            beside_from=0,
        )
        for suffixes, media_type in IMAGE_FORMATS
    ),
    *(
        Reader(
            suffix,
            read,
            (f".{suffix}", f".{suffix[:-1]}m", *others),  # with macros; templates and slide shows
            title=title,
            media_types=(OFFICE_MEDIA_TYPE_PREFIX + media_type,),
            beside_from=MIN_ISOLATED_OFFICE_BYTES,
        )
        for suffix, read, title, media_type, others in (
            ("docx", read_docx, "Word", "wordprocessingml.document", (".dotx", ".dotm")),
            ("pptx", read_pptx, "PowerPoint", "presentationml.presentation", (".ppsx", ".ppsm", ".potx")),
            ("xlsx", read_xlsx, "Excel", "spreadsheetml.sheet", (".xltx", ".xltm")),
        )
    ),
    Reader(
        "epub",
        read_epub,
        (".epub",),
        title="EPUB",
        media_types=("application/epub+zip",),
        beside_from=MIN_ISOLATED_OFFICE_BYTES,
    ),
)
INSTALLED_READERS = tuple(reader for reader in ALL_READERS if not reader.needs_ocr or is_ocr_installed())
READERS_BY_SUFFIX: dict[str, Reader] = {suffix: reader for reader in INSTALLED_READERS for suffix in reader.suffixes}
READERS_BY_MEDIA_TYPE: dict[str, Reader] = {
    media_type: reader for reader in INSTALLED_READERS for media_type in reader.media_types
}
TEXT_FILE_NAMES = frozenset(
    ("readme", "license", "licence", "changelog", "authors", "contributing", "notice", "copying", "todo")
)


def list_format_titles() -> tuple[str, ...]:
    """Return the display names of the supported formats, without duplicates."""
    return tuple(dict.fromkeys(reader.title for reader in INSTALLED_READERS))


def find_reader(name: str) -> Reader | None:
    """Return the reader for a file name, or None if the format is not supported."""
    path = PurePath(name)
    if not path.suffix and path.name.lower() in TEXT_FILE_NAMES:
        return TEXT_READER
    return READERS_BY_SUFFIX.get(path.suffix.lower())


def suggest_remedy(name: str) -> str | None:
    """Return what to do about a file without a reader: install an extra, or save it in another format; or None."""
    suffix = PurePath(name).suffix.lower()
    if any(reader.needs_ocr and suffix in reader.suffixes for reader in ALL_READERS if reader not in INSTALLED_READERS):
        return f"It is an image. {INSTALL_ADVICE}"
    return f"Its format is not supported ({suffix}). Save it as {SAVED_AS[suffix]}." if suffix in SAVED_AS else None


def is_prose(name: str) -> bool:
    """Return whether a file name is for plain text or Markdown, whose bytes are the text."""
    reader = find_reader(name)
    return reader is not None and reader.is_prose


def original_type(name: str) -> str | None:
    """Return the media type under which a file's original is stored, or None if it is not stored."""
    reader = find_reader(name)
    return reader.media_types[0] if reader is not None and reader.keeps_original else None


def read_bytes(
    data: bytes,
    name: str,
    on_page: OnPage | None = None,
    parser: ParserProcess | None = None,
    options: ReadingOptions = DEFAULT_OPTIONS,
) -> RawDocument:
    """Read an uploaded file.

    Args:
        data: Contents of the file.
        name: File name; its suffix selects the reader.
        on_page: Called for each page of a PDF or an image; may raise ``Cancelled``.
        parser: Separate process for formats whose parser can crash or use much memory.
        options: Encoding of texts, and whether hidden parts are left out.

    Raises:
        UnreadableDocument: The file is too large, damaged, encrypted, without text, or of an unsupported format.
    """
    reader = find_reader(name)
    if reader is None:
        kinds = f"({PurePath(name).suffix or 'no suffix'}). Supported: {', '.join(list_format_titles())}."
        remedy = suggest_remedy(name)
        raise UnreadableDocument(
            f"Failed to read '{name}'. {remedy}" if remedy else f"'{name}' has an unsupported format {kinds}"
        )
    check_size(name, len(data))
    if not data:
        raise UnreadableDocument(f"'{name}' is empty.")
    if parser is not None and _measure_unpacked(data) >= reader.beside_from:
        draft = parser.draft(data, name, on_page, options)
    else:
        draft = read_draft(data, name, on_page, options=options)
    return _finish_draft(draft, reader.document_type, name)


def _measure_unpacked(data: bytes) -> int:
    """Return the larger of the size of a file and, if it is a zip package, of its unpacked files."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            return max(len(data), sum(entry.file_size for entry in package.infolist()) // PACKED_RATIO)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return len(data)


def read_draft(
    data: bytes,
    name: str,
    on_page: OnPage | None = None,
    left_out: Collection[int] = (),
    options: ReadingOptions = DEFAULT_OPTIONS,
) -> Draft:
    """Read a file except for the pages in ``left_out``. Parser errors become ``UnreadableDocument``.

    Raises:
        UnreadableDocument: The file is damaged, encrypted, without text, or of an unsupported format.
    """
    reader = find_reader(name)
    if reader is None:
        raise UnreadableDocument(f"'{name}' has an unsupported format.")
    try:
        with open_reading(options.encoding, skip_hidden=options.skip_hidden) as reading:
            if reader.read_pages is None:
                draft = reader.read(data, name)
                draft = replace(draft, text=drop_encoded_data(draft.text))
            else:
                draft = reader.read_pages(data, name, on_page, left_out)
            leave_out("halves of characters (unpaired surrogates)", len(SURROGATE.findall(draft.text)))
            return replace(draft, metadata={**draft.metadata, **reading.metadata})
    except (UnreadableDocument, Cancelled, MemoryError):
        raise
    except RecursionError as error:
        raise UnreadableDocument(
            f"'{name}' has parts that are nested too deeply. Save it in another format, such as PDF."
        ) from error
    except Exception as error:  # parsers raise exceptions of any type
        if re.search("memory|^unknown error", str(error), re.IGNORECASE):  # expat and libxml2
            raise MemoryError from error
        raise UnreadableDocument(
            f"'{name}' is not a valid {reader.document_type} file. It is damaged or has the wrong suffix; re-save it."
        ) from error


def _finish_draft(draft: Draft, document_type: str, name: str) -> RawDocument:
    text, pages = join_pages(draft.pages) if draft.pages else (normalise(draft.text), ())
    if not text.strip():
        left_out = cast("dict[str, int]", draft.metadata.get("left_out") or {})
        unread = f" Not read: {format_left_out(left_out)}." if left_out else ""
        if UNDESCRIBED in left_out:
            unread += " To read text in images, save it as PDF." + ("" if is_ocr_installed() else f" {INSTALL_ADVICE}")
        raise UnreadableDocument(f"'{name}' contains no text.{unread}")
    titles = (" ".join(normalise(words).split()) for words in (draft.title, PurePath(name).stem, name))
    title = next(filter(None, titles), "")[:MAX_TITLE_CHARS]
    language = detect_document_language(text, document_type)
    scans = place_scans(draft.scans, pages)
    return RawDocument(title, text, document_type, to_json_metadata(draft.metadata), language, pages, scans)


def check_size(name: str, size: int) -> None:
    """Raise an error if a file is too large to be read.

    Raises:
        UnreadableDocument: It is over 50 MB.
    """
    if size > MAX_BYTES:
        raise UnreadableDocument(
            f"'{name}' is too large ({size_text(size)}; the limit is {size_text(MAX_BYTES)}). Split it."
        )


# Finding the files to read under the given paths, and listing what was skipped and why

SKIPPED_FOLDERS = frozenset(("node_modules", "__pycache__", "venv", "site-packages"))


@dataclass(frozen=True, slots=True)
class SkippedPath:
    """A path that is not read."""

    path: Path  # the path
    reason: str  # the reason, as a sentence
    missed: bool = False  # True if it was given explicitly, or would be read if it were accessible
    unread_kind: bool = False  # True if it is a file of an unsupported format
    hidden_file: bool = False  # True if it would be read if it were not hidden


@dataclass(frozen=True, slots=True)
class Discovery:
    """The files to read, in order and without duplicates, and the skipped paths."""

    files: tuple[Path, ...]
    skipped: tuple[SkippedPath, ...]


def discover(paths: Iterable[Path | str]) -> Discovery:
    """Walk folders in sorted order; skip hidden entries, circular links and unsupported formats.

    A path that is given directly is read even if it is hidden. If it does not exist, it is listed as skipped.
    """
    files: dict[Path, Path] = {}
    skipped: list[SkippedPath] = []
    for path in (Path(path) for path in paths if str(path)):
        if check_path(path.is_dir):
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
    if not str(path).startswith("~") or check_path(Path(path).exists):
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
            hidden_file = find_reader(entry.name) is not None and check_path(entry.is_file)
            skipped.append(SkippedPath(path, "It is hidden.", hidden_file=hidden_file))
        elif check_path(entry.is_dir):
            if entry.name in SKIPPED_FOLDERS:
                skipped.append(SkippedPath(path, "It contains installed packages."))
            else:
                yield from _walk_folder(path, (*parents, real), skipped)
        elif (reason := _skip_reason(path)) is not None:
            missed = find_reader(entry.name) is not None  # only its kind or its place keeps it from being read
            skipped.append(SkippedPath(path, reason, missed, unread_kind=not missed and check_path(entry.is_file)))
        else:
            yield path


def check_path(kind: Callable[[], bool]) -> bool:
    """Return the result of a check on a path; False if it is inaccessible (no permission, or the name is too long)."""
    try:
        return kind()
    except OSError:
        return False


def _skip_reason(path: Path) -> str | None:
    """Return why a file is not read, or None if it is."""
    suffix = path.suffix or "without suffix"
    try:
        if not path.is_file():
            return "It is not a regular file (a broken link, socket or device)."
        if find_reader(path.name) is not None:
            return None
        with path.open("rb") as file:
            binary = looks_binary(file.read(4096))
    except OSError as error:
        return f"Opening failed: {error.strerror}."
    if (sentence := suggest_remedy(path.name)) is not None:
        return sentence
    if binary:
        return f"It is a binary file ({suffix})."
    return f"Its format is not supported ({suffix}). Supported: {', '.join(list_format_titles())}."
