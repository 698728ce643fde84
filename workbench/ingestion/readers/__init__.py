"""Reading files: a table of readers by suffix, and the functions that find and read."""

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
