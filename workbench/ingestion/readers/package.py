"""Open the zip archives that office files and books are, and read the properties they share."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from workbench.errors import UnreadableDocument

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # an encrypted office file, or the binary format of before 2007
MAX_UNPACKED = 1024 * 1024 * 1024
PROPERTIES = {"title": "title", "creator": "author", "created": "created", "modified": "modified", "subject": "subject"}


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


def parse_xml(data: bytes) -> Any:
    """Parse XML without entities and without network."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no stubs

    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, recover=True))


def core_properties(package: zipfile.ZipFile) -> dict[str, str]:
    """Return title, author and dates of an office file, those that are set."""
    if "docProps/core.xml" not in package.namelist():
        return {}
    root = parse_xml(package.read("docProps/core.xml"))
    found: dict[str, str] = {}
    for element in root if root is not None else ():
        key = PROPERTIES.get(str(element.tag).rpartition("}")[2])
        if key and element.text and element.text.strip():
            found[key] = element.text.strip()
    return found


def without_title(properties: dict[str, str]) -> dict[str, str]:
    """Return the properties as metadata; the title has a field of its own."""
    return {key: value for key, value in properties.items() if key != "title"}
