"""One file or one text, as the item that ingestion takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import InvalidInput, UnreadableDocument
from workbench.storage.database import clean

if TYPE_CHECKING:
    from workbench.ingestion.incoming import Incoming


def single_item(
    path: Path | None, text: str | None, *, title: str | None, url: str | None, metadata: Mapping[str, object]
) -> Incoming:
    """Return what is to be ingested. Raises InvalidInput or UnreadableDocument; nothing was read or written."""
    from workbench.ingestion.incoming import content_hash, files_under, text_item

    if (path is None) == (text is None):
        raise InvalidInput("Give a file or a text, one of the two.")
    if text is not None:
        text = str(clean(text))  # unlike in a file, where a NUL tells that the whole is no text
        if not text.strip():
            raise InvalidInput("The text is empty; give the words of the document.")
        key = f"text:{content_hash(text.encode())}"
        return text_item(key, text, title=title or "", url=url, metadata=metadata)
    assert path is not None
    files = files_under([path])
    if not files.items:
        reason = files.failures[0].error if files.failures else "There is no such file."
        raise UnreadableDocument(f"{path.name}: {reason}")
    if path.is_dir():
        raise InvalidInput(f"{path.name} is a folder; give one file.")
    return replace(files.items[0], key=f"file:{path.resolve()}", title=title, url=url, metadata=metadata)
