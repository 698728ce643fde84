"""Readers of Word, EPUB and PowerPoint files, and the zip packages that they are stored in."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from workbench.errors import UnreadableDocument
from workbench.formatting import GB
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import drop_empty, format_cell, format_markdown_table
from workbench.ingestion.readers.header_rows import merge_header_rows
from workbench.ingestion.readers.html import convert_fragment, declared_charset
from workbench.ingestion.readers.plain_text import find_first_heading
from workbench.ingestion.text import decode_text, leave_out

if TYPE_CHECKING:
    from pptx.shapes.base import BaseShape
    from pptx.slide import Slide

OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # an encrypted office file, or a binary format from before 2007
MAX_UNPACKED_BYTES = GB
GENERATOR_NOTE = re.compile(
    r"\s*generated (?:by|using|with) ", re.IGNORECASE
)  # written by a program, not a description
OFFICE_PROPERTIES = {
    "title": "title",
    "creator": "author",
    "created": "created",
    "modified": "modified",
    "subject": "subject",
    "keywords": "keywords",
    "description": "description",
}


def open_package(data: bytes, name: str) -> zipfile.ZipFile:
    """Open a package after checking its size and encryption.

    Raises:
        UnreadableDocument: It is encrypted, in an old binary format, not a zip archive, or over 1 GB when unpacked.
    """
    if data.startswith(OLE_SIGNATURE):
        raise UnreadableDocument(
            f"'{name}' is password-protected or in a format from before 2007. "
            "Save it without a password as docx, xlsx or pptx."
        )
    try:
        package = zipfile.ZipFile(io.BytesIO(data))
        entries = package.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnreadableDocument(f"'{name}' is damaged or has the wrong suffix. Re-save it.") from error
    if any(entry.flag_bits & 1 for entry in entries):
        raise UnreadableDocument(f"'{name}' is password-protected. Save a copy without a password.")
    if sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
        raise UnreadableDocument(f"'{name}' is over 1 GB when unpacked. Split it.")
    return package


class XmlElement(Protocol):
    """The methods of lxml's elements that are used here; lxml has no type stubs."""

    @property
    def tag(self) -> object:
        """The element's name as ``{namespace}local``; for a comment, a function."""
        ...

    @property
    def attrib(self) -> Mapping[str, str]:
        """The attributes by name, ``{namespace}local`` if it has a namespace."""
        ...

    @property
    def text(self) -> str | None:
        """The text before the first child, or None."""
        ...

    def get(self, key: str) -> str | None:
        """Return the value of an attribute, or None if it is not set."""
        ...

    def find(self, path: str) -> XmlElement | None:
        """Return the first element that matches an ElementPath, or None."""
        ...

    def findtext(self, path: str) -> str | None:
        """Return the text of the first element that matches an ElementPath, or None if none matches."""
        ...

    def iterfind(self, path: str) -> Iterator[XmlElement]:
        """Yield every element that matches an ElementPath, in document order."""
        ...

    def __iter__(self) -> Iterator[XmlElement]: ...


def parse_xml(data: bytes) -> XmlElement | None:
    """Parse XML without entities or network access; return None if it cannot be parsed."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no stubs

    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, recover=True))


def read_core_properties(package: zipfile.ZipFile) -> dict[str, str]:
    """Return title, author and dates of an office file, if set."""
    if "docProps/core.xml" not in package.namelist():
        return {}
    root = parse_xml(package.read("docProps/core.xml"))
    properties: dict[str, str] = {}
    for element in root if root is not None else ():
        key = OFFICE_PROPERTIES.get(str(element.tag).rpartition("}")[2])
        if key and element.text and element.text.strip() and not GENERATOR_NOTE.match(element.text):
            properties[key] = element.text.strip()
    return properties


def drop_title(properties: dict[str, str]) -> dict[str, str]:
    """Return the properties as metadata without the title, which has its own field."""
    return {key: value for key, value in properties.items() if key != "title"}


# --- Word: converted to HTML by mammoth, then to Markdown ---

DOCX_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"


def read_docx(data: bytes, name: str) -> Draft:
    """Return headings, paragraphs, lists, tables and footnotes, without images."""
    with open_package(data, name) as package:
        properties = read_core_properties(package)
    import mammoth

    html = mammoth.convert_to_html(
        io.BytesIO(data), style_map=DOCX_STYLES, convert_image=mammoth.images.img_element(lambda image: {})
    ).value
    text = convert_fragment(html)
    heading = find_first_heading(text)
    return Draft(text, properties.get("title") or heading, drop_title(properties))


# --- EPUB: the chapters in spine order, as Markdown ---

EPUB_PROPERTIES = {"creator": "author", "publisher": "publisher", "date": "date", "language": "language"}


def read_epub(data: bytes, name: str) -> Draft:
    """Return a book's text, with title and author from its package description.

    Raises:
        UnreadableDocument: It is not an EPUB book, or its chapters are encrypted (DRM).
    """
    with open_package(data, name) as package:
        opf_path = _find_opf_path(package, name)
        opf = parse_xml(package.read(opf_path))
        if opf is None:
            raise UnreadableDocument(f"'{name}' is not an EPUB book: it has no list of chapters. Download it again.")
        chapters = _list_spine(opf, posixpath.dirname(opf_path))
        if set(chapters) & _encrypted_files(package):
            raise UnreadableDocument(f"'{name}' is protected by DRM. Only books without DRM can be read.")
        names = {entry.lower(): entry for entry in package.namelist()}
        present = [names[chapter.lower()] for chapter in chapters if chapter.lower() in names]
        leave_out("chapters that are missing in the file", len(chapters) - len(present))
        sources = ((package.read(chapter), chapter) for chapter in present)
        texts = [convert_fragment(decode_text(data, name, declared_charset(data))) for data, name in sources]
        described = _read_description(opf)
    title = described.pop("title", "")
    return Draft("\n\n".join(text.strip() for text in texts if text.strip()), title, described)


def _find_opf_path(package: zipfile.ZipFile, name: str) -> str:
    try:
        names = {entry.lower(): entry for entry in package.namelist()}
        container = parse_xml(package.read(names["meta-inf/container.xml"]))
        rootfile = container.find(".//{*}rootfile") if container is not None else None
        if rootfile is None:
            raise KeyError("rootfile")
        path = unquote(str(rootfile.get("full-path"))).replace("\\", "/").lstrip("/")
        return names[path.lower()]
    except KeyError as error:
        raise UnreadableDocument(
            f"'{name}' is not an EPUB book: it has no container file. Download it again."
        ) from error


def _list_spine(opf: XmlElement, folder: str) -> list[str]:
    items = {item.get("id"): item for item in opf.iterfind(".//{*}manifest/{*}item")}
    order = [items.get(entry.get("idref")) for entry in opf.iterfind(".//{*}spine/{*}itemref")]
    chapters = [item for item in order if item is not None and "nav" not in (item.get("properties") or "").split()]
    return [posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or ""))) for item in chapters]


def _encrypted_files(package: zipfile.ZipFile) -> set[str]:
    """Return the encrypted files. Fonts often are, which does not matter here."""
    if "META-INF/encryption.xml" not in package.namelist():
        return set()
    root = parse_xml(package.read("META-INF/encryption.xml"))
    return (
        {unquote(element.get("URI") or "") for element in root.iterfind(".//{*}CipherReference")}
        if root is not None
        else set()
    )


def _read_description(opf: XmlElement) -> dict[str, str]:
    properties: dict[str, str] = {}
    for element in opf.iterfind(".//{*}metadata/*"):
        name = str(element.tag).rpartition("}")[2]
        key = "title" if name == "title" else EPUB_PROPERTIES.get(name)
        if key and key not in properties and element.text and element.text.strip():
            properties[key] = element.text.strip()
    return properties


# --- PowerPoint: one page per slide, with tables and speaker notes ---


def read_pptx(data: bytes, name: str) -> Draft:
    """Return the slides in order."""
    with open_package(data, name) as package:
        properties = read_core_properties(package)
    from pptx import Presentation

    presentation = Presentation(io.BytesIO(data))
    pages = tuple((number, _slide_text(slide)) for number, slide in enumerate(presentation.slides, 1))
    first = next((_slide_title(slide) for slide in presentation.slides if _slide_title(slide)), "")
    title = properties.get("title", "")
    # the title in python-pptx's default template
    return Draft(
        title=first if title in ("", "PowerPoint Presentation") else title,
        pages=pages,
        metadata=drop_title(properties),
    )


def _slide_title(slide: Slide) -> str:
    shape = slide.shapes.title
    return format_cell(shape.text_frame.text) if shape is not None and shape.has_text_frame else ""


def _slide_text(slide: Slide) -> str:
    title = _slide_title(slide)
    parts = [f"## {title}"] if title else []
    title_id = slide.shapes.title.shape_id if slide.shapes.title is not None else None
    parts.extend(
        text for shape in _flatten_shapes(slide.shapes) if shape.shape_id != title_id and (text := _shape_text(shape))
    )
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            parts.append(f"Notes: {notes}")
    return "\n\n".join(parts)


def _flatten_shapes(shapes: Iterable[BaseShape]) -> Iterator[BaseShape]:
    """Yield shapes in reading order, including those inside groups."""
    from pptx.shapes.group import GroupShape

    for shape in shapes:
        if isinstance(shape, GroupShape):
            yield from _flatten_shapes(shape.shapes)
        else:
            yield shape


def _shape_text(shape: BaseShape) -> str:
    from pptx.shapes.autoshape import Shape
    from pptx.shapes.graphfrm import GraphicFrame

    if isinstance(shape, GraphicFrame) and shape.has_table:
        rows = drop_empty([[format_cell(cell.text) for cell in row.cells] for row in shape.table.rows])
        return format_markdown_table(merge_header_rows(rows)) if rows else ""
    if not isinstance(shape, Shape):
        return ""
    lines = [(paragraph.level, format_cell(paragraph.text)) for paragraph in shape.text_frame.paragraphs]
    lines = [(level, text) for level, text in lines if text]
    if len(lines) == 1:
        return lines[0][1]
    return "\n".join(f"{'  ' * level}- {text}" for level, text in lines)
