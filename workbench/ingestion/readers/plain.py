"""The reader of plain text, which is taken as it stands."""

from __future__ import annotations

from workbench.ingestion.decoding import decode
from workbench.ingestion.raw import Draft


def read_plain(data: bytes, name: str) -> Draft:
    """Return the decoded text; the title is the file's name."""
    return Draft(decode(data, name))
