"""Archives on disk: dated research notes and saved pages, with metadata from their paths and first lines."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from workbench.ingestion.incoming import IngestItem, list_files
from workbench.ingestion.stamps import is_inside

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
    if dated and _is_date(dated.group(1)):
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


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
