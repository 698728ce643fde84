"""The zip archives that office files and books are, and the properties they share."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Protocol

from workbench.errors import UnreadableDocument
from workbench.sizes import GB

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # an encrypted office file, or the binary format of before 2007
MAX_UNPACKED = GB
MADE = re.compile(r"\s*generated (?:by|using|with) ", re.IGNORECASE)  # a program's word on itself, no description
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
    """Open an archive after a look at its size and its locks.

    Raises:
        UnreadableDocument: encrypted, an old binary format, no archive at all, or more than 1 GB when unpacked.
    """
    if data.startswith(OLE):
        raise UnreadableDocument(
            f"'{name}' is protected by a password or in the format of before 2007. Save it without a password, as "
            "docx, xlsx or pptx."
        )
    try:
        package = zipfile.ZipFile(io.BytesIO(data))
        entries = package.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnreadableDocument(f"'{name}' is damaged or no file of this kind. Save it anew.") from error
    if any(entry.flag_bits & 1 for entry in entries):
        raise UnreadableDocument(f"'{name}' is protected by a password. Save a copy without one.")
    if sum(entry.file_size for entry in entries) > MAX_UNPACKED:
        raise UnreadableDocument(f"'{name}' unpacks to more than 1 GB and is not read. Split it.")
    return package


class XmlElement(Protocol):
    """The part that is used of an element of lxml, which has no types."""

    @property
    def tag(self) -> object:
        """The element's name, ``{namespace}local``; of a comment no text but a function."""
        ...

    @property
    def text(self) -> str | None:
        """The text before the first child; None where there is none."""
        ...

    def get(self, key: str) -> str | None:
        """Return the value of an attribute; None where it is not set."""
        ...

    def find(self, path: str) -> XmlElement | None:
        """Return the first element at an ElementPath below this one; None where there is none."""
        ...

    def findtext(self, path: str) -> str | None:
        """Return the text of the first element at an ElementPath ("" of an empty one); None where there is none."""
        ...

    def iterfind(self, path: str) -> Iterator[XmlElement]:
        """Yield every element at an ElementPath below this one, in document order."""
        ...

    def __iter__(self) -> Iterator[XmlElement]: ...


def parse_xml(data: bytes) -> XmlElement | None:
    """Parse XML without entities and without network; None where nothing can be read."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no stubs

    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, recover=True))


def core_properties(package: zipfile.ZipFile) -> dict[str, str]:
    """Return title, author and dates of an office file, those that are set."""
    if "docProps/core.xml" not in package.namelist():
        return {}
    root = parse_xml(package.read("docProps/core.xml"))
    properties: dict[str, str] = {}
    for element in root if root is not None else ():
        key = OFFICE_PROPERTIES.get(str(element.tag).rpartition("}")[2])
        if key and element.text and element.text.strip() and not MADE.match(element.text):
            properties[key] = element.text.strip()
    return properties


def without_title(properties: dict[str, str]) -> dict[str, str]:
    """Return the properties as metadata; the title has a field of its own."""
    return {key: value for key, value in properties.items() if key != "title"}
