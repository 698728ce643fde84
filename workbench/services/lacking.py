"""The number of documents that an index lacks, for the note on its searches: counted when it may have changed.

Counting compares all documents with what the index holds, 1 ms for a thousand; the vector strategy takes 2.
"""

from __future__ import annotations

import time
from datetime import datetime

from workbench.storage.documents import Documents
from workbench.types import Index

STALE = 5.0  # seconds after which it is counted in any case: a write before a count may be committed after it


class Lacking:
    """A memory of which indexes were complete, and as of which change to the documents; thread-safe."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._complete: dict[str, tuple[datetime | None, datetime | None, float]] = {}

    def missing(self, index: Index) -> list[str]:
        """Return the ids of the documents that the index does not hold in their present version."""
        changed = self._documents.last_change()
        created_at, as_of, looked_at = self._complete.get(index.name, (None, None, float("-inf")))
        if (created_at, as_of) == (index.created_at, changed) and time.monotonic() - looked_at < STALE:
            return []
        lacking = self._documents.missing_from(index.name)
        if not lacking:
            self._complete[index.name] = (index.created_at, changed, time.monotonic())
        return lacking
