"""The readers by suffix, and the two functions that read: from a path and from bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath

from workbench.errors import UnreadableDocument, choices
from workbench.ingestion.language import detect_language
from workbench.ingestion.normalise import normalise
from workbench.ingestion.raw import Draft, RawDocument, normalised_pages, plain_metadata
from workbench.ingestion.readers.code import LANGUAGES, read_code
from workbench.ingestion.readers.docx import read_docx
from workbench.ingestion.readers.epub import read_epub
from workbench.ingestion.readers.html import read_html
from workbench.ingestion.readers.json_tree import read_json, read_json_lines
from workbench.ingestion.readers.markdown import read_markdown
from workbench.ingestion.readers.notebook import read_notebook
from workbench.ingestion.readers.pdf import read_pdf
from workbench.ingestion.readers.plain import read_plain
from workbench.ingestion.readers.pptx import read_pptx
from workbench.ingestion.readers.separated import read_separated
from workbench.ingestion.readers.xlsx import read_xlsx

MAX_BYTES = 50 * 1024 * 1024
TITLE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Reader:
    """One way of reading: the type its documents get, and the function from (bytes, name) to a draft."""

    document_type: str
    read: Callable[[bytes, str], Draft]


MARKDOWN = Reader("markdown", read_markdown)
TEXT = Reader("text", read_plain)
HTML = Reader("html", read_html)
SEPARATED = Reader("csv", read_separated)
LINES = Reader("json", read_json_lines)

# The readers' own imports (PDF, Word, ...) happen inside them: naming a reader here costs nothing.
READERS: dict[str, Reader] = {
    **dict.fromkeys(LANGUAGES, Reader("code", read_code)),
    **dict.fromkeys((".md", ".markdown", ".mdx", ".mdown"), MARKDOWN),
    **dict.fromkeys((".txt", ".text", ".log", ".rst", ".adoc", ".tex", ".org"), TEXT),
    **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
    **dict.fromkeys((".csv", ".tsv"), SEPARATED),
    **dict.fromkeys((".jsonl", ".ndjson"), LINES),
    ".json": Reader("json", read_json),
    ".ipynb": Reader("notebook", read_notebook),
    ".pdf": Reader("pdf", read_pdf),
    ".docx": Reader("docx", read_docx),
    ".pptx": Reader("pptx", read_pptx),
    ".xlsx": Reader("xlsx", read_xlsx),
    ".epub": Reader("epub", read_epub),
}
PLAIN_NAMES = frozenset(
    ("readme", "license", "licence", "changelog", "authors", "contributing", "notice", "copying", "todo")
)


def supported_suffixes() -> tuple[str, ...]:
    """Return the suffixes that can be read, sorted, each with its dot."""
    return tuple(sorted(READERS))


def reader_for(name: str) -> Reader | None:
    """Return the reader for a file name, or None where its kind is unknown."""
    path = PurePath(name)
    if not path.suffix and path.name.lower() in PLAIN_NAMES:
        return TEXT
    return READERS.get(path.suffix.lower())


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


def read_bytes(data: bytes, name: str, max_bytes: int = MAX_BYTES) -> RawDocument:
    """Read an upload; ``name`` decides by its suffix how.

    Raises:
        UnreadableDocument: as for ``read_file``.
    """
    reader = reader_for(name)
    if reader is None:
        kind = PurePath(name).suffix or "no suffix"
        raise UnreadableDocument(
            f"'{name}' is of a kind that cannot be read ({kind}). Supported: {choices(supported_suffixes(), limit=99)}."
        )
    if len(data) > max_bytes:
        raise UnreadableDocument(_too_large(name, len(data), max_bytes))
    if not data:
        raise UnreadableDocument(f"'{name}' is empty.")
    draft = _guarded(reader, data, name)
    return _finish(draft, reader.document_type, name)


def _guarded(reader: Reader, data: bytes, name: str) -> Draft:
    """Read, turning whatever a parser throws at a damaged file into the one error that callers expect."""
    try:
        return reader.read(data, name)
    except UnreadableDocument:
        raise
    except Exception as error:  # parsers of foreign formats fail in any way they like
        raise UnreadableDocument(
            f"'{name}' cannot be read as {reader.document_type}: it is damaged, or something else. Save it anew."
        ) from error


def _finish(draft: Draft, document_type: str, name: str) -> RawDocument:
    text, pages = normalised_pages(draft.pages) if draft.pages else (normalise(draft.text), ())
    if not text.strip():
        raise UnreadableDocument(f"'{name}' has no text in it.")
    given = (" ".join(normalise(words).split()) for words in (draft.title, PurePath(name).stem, name))
    title = next(filter(None, given), "")[:TITLE_CHARACTERS]
    language = "english" if document_type == "code" else detect_language(text)
    return RawDocument(title, text, document_type, plain_metadata(draft.metadata), language, pages)


def _too_large(name: str, size: int, max_bytes: int) -> str:
    return (
        f"'{name}' is too large ({size / 1_048_576:.1f} MB; at most {max_bytes / 1_048_576:g} MB are read). Split it."
    )
