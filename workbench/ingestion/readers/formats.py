"""The readers by suffix, and the two functions that read: from a path and from bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from workbench.errors import Cancelled, UnreadableDocument
from workbench.formatting import KB, MB, size_text
from workbench.ingestion.ocr.document import ADVICE, OnPage, reads_scans
from workbench.ingestion.raw import Draft, RawDocument, normalised_pages, placed_scans, plain_metadata
from workbench.ingestion.readers.html import read_html
from workbench.ingestion.readers.isolation import ParserProcess
from workbench.ingestion.readers.office import read_docx, read_epub, read_pptx
from workbench.ingestion.readers.pdf.reader import read_pdf
from workbench.ingestion.readers.picture import read_picture
from workbench.ingestion.readers.plain_text import (
    LANGUAGES,
    read_code,
    read_json,
    read_json_lines,
    read_markdown,
    read_notebook,
    read_plain,
    read_separated,
)
from workbench.ingestion.readers.spreadsheet import read_xlsx
from workbench.ingestion.text import language_of_text, normalise

MAX_BYTES = 50 * MB  # of a file
LARGE = 50 * KB  # bytes of an office file that is worth a process: a smaller one is read before a process has started
TITLE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Reader:
    """One way of reading: the type its documents get, the function from (bytes, name) to a draft, and its files.

    ``title`` is what people call the format; rows of one title are shown as one.
    ``suffixes`` are in lower case with their dots; a file known only by one of ``media_types`` gets the first.
    ``is_prose`` is true of plain text and Markdown, whose bytes are the text. ``keeps_original`` when the app shows
    the file itself beside its text; it is then stored under the first of ``media_types``. ``read_pages`` reads as
    ``read`` does, tells of each page that takes long, and leaves some out; ``needs_ocr`` when nothing is read without
    the extra; ``beside_from`` are the bytes from which on a file is read in a process beside this one, None for never.
    """

    document_type: str
    read: Callable[[bytes, str], Draft]
    suffixes: tuple[str, ...]
    title: str = field(kw_only=True)
    media_types: tuple[str, ...] = ()
    is_prose: bool = False
    keeps_original: bool = False
    read_pages: Callable[[bytes, str, OnPage | None, Collection[int]], Draft] | None = None
    needs_ocr: bool = False
    beside_from: int | None = None


MARKDOWN = Reader(
    "markdown",
    read_markdown,
    (".md", ".markdown", ".mdx", ".mdown"),
    title="Markdown",
    media_types=("text/markdown", "text/x-markdown"),
    is_prose=True,
)
TEXT = Reader(
    "text",
    read_plain,
    (".txt", ".text", ".log", ".rst", ".adoc", ".tex", ".org"),
    title="text",
    media_types=("text/plain",),
    is_prose=True,
)
HTML = Reader(
    "html",
    read_html,
    (".html", ".htm", ".xhtml"),
    title="HTML",
    media_types=("text/html", "application/xhtml+xml", "application/xml+xhtml"),
)
OFFICE = "application/vnd.openxmlformats-officedocument."

PICTURES = (
    ((".png",), "image/png"),
    ((".jpg", ".jpeg"), "image/jpeg"),
    ((".tif", ".tiff"), "image/tiff"),
    ((".webp",), "image/webp"),
)

# The readers' own imports (PDF, Word, ...) happen inside them: naming a reader here costs nothing.
ALL_ROWS = (
    MARKDOWN,
    TEXT,
    HTML,
    Reader("code", read_code, tuple(LANGUAGES), title="code"),
    Reader("csv", read_separated, (".csv", ".tsv"), title="CSV", media_types=("text/csv",)),
    Reader("json", read_json_lines, (".jsonl", ".ndjson"), title="JSON"),
    Reader("json", read_json, (".json",), title="JSON", media_types=("application/json",)),
    Reader("notebook", read_notebook, (".ipynb",), title="notebooks"),
    Reader(
        "pdf",
        read_pdf,
        (".pdf",),
        title="PDF",
        media_types=("application/pdf",),
        keeps_original=True,
        read_pages=read_pdf,
        beside_from=0,  # its parser is not of Python, and may crash
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
        for suffixes, media_type in PICTURES
    ),
    *(
        Reader(suffix, read, (f".{suffix}",), title=title, media_types=(OFFICE + media_type,), beside_from=LARGE)
        for suffix, read, title, media_type in (
            ("docx", read_docx, "Word", "wordprocessingml.document"),
            ("pptx", read_pptx, "PowerPoint", "presentationml.presentation"),
            ("xlsx", read_xlsx, "Excel", "spreadsheetml.sheet"),
        )
    ),
    Reader("epub", read_epub, (".epub",), title="EPUB", media_types=("application/epub+zip",)),
)
ROWS = tuple(reader for reader in ALL_ROWS if not reader.needs_ocr or reads_scans())
READERS: dict[str, Reader] = {suffix: reader for reader in ROWS for suffix in reader.suffixes}
BY_MEDIA_TYPE: dict[str, Reader] = {media_type: reader for reader in ROWS for media_type in reader.media_types}
PLAIN_NAMES = frozenset(
    ("readme", "license", "licence", "changelog", "authors", "contributing", "notice", "copying", "todo")
)


def supported_suffixes() -> tuple[str, ...]:
    """Return the suffixes that can be read, sorted, each with its dot."""
    return tuple(sorted(READERS))


def format_titles() -> tuple[str, ...]:
    """Return what people call the formats that can be read, each once."""
    return tuple(dict.fromkeys(reader.title for reader in ROWS))


def reader_for(name: str) -> Reader | None:
    """Return the reader for a file name, or None where its kind is unknown."""
    path = PurePath(name)
    if not path.suffix and path.name.lower() in PLAIN_NAMES:
        return TEXT
    return READERS.get(path.suffix.lower())


def lacking_extra(name: str) -> str | None:
    """Return the sentence that names the extra which reads such a file; None where nothing is lacking."""
    suffix = PurePath(name).suffix.lower()
    wants = any(reader.needs_ocr and suffix in reader.suffixes for reader in ALL_ROWS)
    return f"It is a picture. {ADVICE}" if wants and suffix not in READERS else None


def is_prose(name: str) -> bool:
    """Tell by its name whether a file is plain text or Markdown, whose bytes are the text."""
    reader = reader_for(name)
    return reader is not None and reader.is_prose


def original_type(name: str) -> str | None:
    """Return the media type under which a file's original is kept beside its text; None where it is not kept."""
    reader = reader_for(name)
    return reader.media_types[0] if reader is not None and reader.keeps_original else None


def read_file(path: Path, max_bytes: int = MAX_BYTES) -> RawDocument:
    """Read a file.

    Raises:
        UnreadableDocument: it is missing, too large, of unknown kind, broken, encrypted or without text.
    """
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise UnreadableDocument(_too_large(path.name, size, max_bytes))
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableDocument(f"'{path.name}' cannot be opened: {reason}.") from error
    return read_bytes(data, path.name, max_bytes)


def read_bytes(
    data: bytes,
    name: str,
    max_bytes: int = MAX_BYTES,
    on_page: OnPage | None = None,
    parser: ParserProcess | None = None,
) -> RawDocument:
    """Read an upload; ``name`` decides by its suffix how, ``parser`` reads in its process what is better read there.

    ``on_page(page, pages)`` is called before each page that takes long (a scan), and may raise ``Cancelled``.

    Raises:
        UnreadableDocument: as for ``read_file``.
    """
    reader = reader_for(name)
    if reader is None and (sentence := lacking_extra(name)) is not None:
        raise UnreadableDocument(f"'{name}' cannot be read. {sentence}")
    if reader is None:
        kind = PurePath(name).suffix or "no suffix"
        raise UnreadableDocument(
            f"'{name}' is of a kind that cannot be read ({kind}); these are: {', '.join(format_titles())}."
        )
    if len(data) > max_bytes:
        raise UnreadableDocument(_too_large(name, len(data), max_bytes))
    if not data:
        raise UnreadableDocument(f"'{name}' is empty.")
    beside = reader.beside_from is not None and len(data) >= reader.beside_from
    draft = parser.draft(data, name, on_page) if parser is not None and beside else draft_of(data, name, on_page)
    return _finish(draft, reader.document_type, name)


def draft_of(data: bytes, name: str, on_page: OnPage | None = None, left_out: Collection[int] = ()) -> Draft:
    """Read a file but for the pages in ``left_out``; a parser's error becomes the one error that callers expect.

    Raises:
        UnreadableDocument: it is broken, encrypted or without text, or of a kind that is not read.
    """
    reader = reader_for(name)
    if reader is None:
        raise UnreadableDocument(f"'{name}' is of a kind that cannot be read.")
    try:
        if reader.read_pages is None:
            return reader.read(data, name)
        return reader.read_pages(data, name, on_page, left_out)
    except (UnreadableDocument, Cancelled, MemoryError):
        raise
    except Exception as error:  # parsers of foreign formats fail in any way they like
        raise UnreadableDocument(
            f"'{name}' cannot be read as {reader.document_type}: it is damaged, or something else. Save it anew."
        ) from error


def _finish(draft: Draft, document_type: str, name: str) -> RawDocument:
    text, pages = normalised_pages(draft.pages) if draft.pages else (normalise(draft.text), ())
    if not text.strip():
        raise UnreadableDocument(f"'{name}' has no text in it.")
    titles = (" ".join(normalise(words).split()) for words in (draft.title, PurePath(name).stem, name))
    title = next(filter(None, titles), "")[:TITLE_CHARACTERS]
    language = language_of_text(text, document_type)
    scans = placed_scans(draft.scans, pages)
    return RawDocument(title, text, document_type, plain_metadata(draft.metadata), language, pages, scans)


def _too_large(name: str, size: int, max_bytes: int) -> str:
    return f"'{name}' is too large ({size_text(size)}; at most {size_text(max_bytes)} are read). Split it."
