"""Readers by file suffix, and file discovery."""

from workbench.ingestion.readers.discovery import (
    Discovery,
    SkippedPath,
    describe_missing,
    discover,
    expand_home,
    is_skipped,
    is_wanted,
)
from workbench.ingestion.readers.formats import (
    MAX_BYTES,
    READERS_BY_SUFFIX,
    Reader,
    list_suffixes,
    read_bytes,
    read_file,
)

__all__ = [
    "MAX_BYTES",
    "READERS_BY_SUFFIX",
    "Discovery",
    "Reader",
    "SkippedPath",
    "describe_missing",
    "discover",
    "expand_home",
    "is_skipped",
    "read_bytes",
    "read_file",
    "list_suffixes",
    "is_wanted",
]
