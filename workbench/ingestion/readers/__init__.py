"""Readers by file suffix, and the discovery of files."""

from workbench.ingestion.readers.discovery import (
    Discovery,
    SkippedPath,
    absence,
    discover,
    expanded,
    passed_over,
    wanted,
)
from workbench.ingestion.readers.formats import MAX_BYTES, READERS, Reader, read_bytes, read_file, supported_suffixes

__all__ = [
    "MAX_BYTES",
    "READERS",
    "Discovery",
    "Reader",
    "SkippedPath",
    "absence",
    "discover",
    "expanded",
    "passed_over",
    "read_bytes",
    "read_file",
    "supported_suffixes",
    "wanted",
]
