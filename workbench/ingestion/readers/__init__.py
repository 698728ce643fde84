"""Reading files: a table of readers by suffix, and the functions that find and read."""

from workbench.ingestion.readers.discovery import Discovery, Skipped, absence, discover, expanded, wanted
from workbench.ingestion.readers.table import MAX_BYTES, READERS, Reader, read_bytes, read_file, supported_suffixes

__all__ = [
    "MAX_BYTES",
    "READERS",
    "Discovery",
    "Reader",
    "Skipped",
    "absence",
    "discover",
    "expanded",
    "read_bytes",
    "read_file",
    "supported_suffixes",
    "wanted",
]
