"""The reader of EPUB books: the chapters of the spine in order, as Markdown."""

from __future__ import annotations

import posixpath
import zipfile
from urllib.parse import unquote

from workbench.errors import UnreadableDocument
from workbench.ingestion.decoding import decode
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.html import declared_charset, fragment_to_markdown
from workbench.ingestion.readers.package import XmlElement, open_package, parse_xml

EPUB_PROPERTIES = {"creator": "author", "publisher": "publisher", "date": "date", "language": "language"}


def read_epub(data: bytes, name: str) -> Draft:
    """Return a book's text; title and author from its own description.

    Raises:
        UnreadableDocument: no book inside, or its chapters are encrypted (DRM).
    """
    with open_package(data, name) as package:
        opf_path = _opf_path(package, name)
        opf = parse_xml(package.read(opf_path))
        if opf is None:
            raise UnreadableDocument(f"'{name}' is no EPUB book: it does not list its chapters. Fetch it anew.")
        chapters = _spine(opf, posixpath.dirname(opf_path))
        if set(chapters) & _encrypted(package):
            raise UnreadableDocument(f"'{name}' is locked by copy protection (DRM). Only books without it can be read.")
        present = [chapter for chapter in chapters if chapter in package.namelist()]
        sources = ((package.read(chapter), chapter) for chapter in present)
        texts = [fragment_to_markdown(decode(data, name, declared_charset(data))) for data, name in sources]
        described = _described(opf)
    title = described.pop("title", "")
    return Draft("\n\n".join(text.strip() for text in texts if text.strip()), title, described)


def _opf_path(package: zipfile.ZipFile, name: str) -> str:
    try:
        container = parse_xml(package.read("META-INF/container.xml"))
        rootfile = container.find(".//{*}rootfile") if container is not None else None
        if rootfile is None:
            raise KeyError("rootfile")
        return str(rootfile.get("full-path"))
    except KeyError as error:
        raise UnreadableDocument(f"'{name}' is no EPUB book: its table of files is missing. Fetch it anew.") from error


def _spine(opf: XmlElement, folder: str) -> list[str]:
    items = {item.get("id"): item for item in opf.iterfind(".//{*}manifest/{*}item")}
    order = [items.get(entry.get("idref")) for entry in opf.iterfind(".//{*}spine/{*}itemref")]
    chapters = [item for item in order if item is not None and "nav" not in (item.get("properties") or "").split()]
    return [posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or ""))) for item in chapters]


def _encrypted(package: zipfile.ZipFile) -> set[str]:
    """Return the files that are encrypted; fonts often are, and do not matter here."""
    if "META-INF/encryption.xml" not in package.namelist():
        return set()
    root = parse_xml(package.read("META-INF/encryption.xml"))
    return (
        {unquote(element.get("URI") or "") for element in root.iterfind(".//{*}CipherReference")}
        if root is not None
        else set()
    )


def _described(opf: XmlElement) -> dict[str, str]:
    properties: dict[str, str] = {}
    for element in opf.iterfind(".//{*}metadata/*"):
        name = str(element.tag).rpartition("}")[2]
        key = "title" if name == "title" else EPUB_PROPERTIES.get(name)
        if key and key not in properties and element.text and element.text.strip():
            properties[key] = element.text.strip()
    return properties
