"""Facts that a result tells of its document: where its source stands, how long it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.storage.database import Database, Row
from workbench.storage.statements import statement
from workbench.types import Value


@dataclass(frozen=True, slots=True)
class SourcePlace(Value):
    """The place of a source; ``project_id`` and ``folder_name`` are None for a global one."""

    source_id: str
    source_title: str
    scope: str
    project_id: str | None
    folder_name: str | None
    tags: tuple[str, ...]


def _place(row: Row) -> SourcePlace:
    fields: Row = {**row, "tags": tuple(row["tags"])}
    return SourcePlace(**fields)


class DocumentFacts:
    """Facts about found documents, one statement a list."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def places(self, source_ids: Iterable[str]) -> dict[str, SourcePlace]:
        """Return where sources stand, by id."""
        rows = self._database.rows(statement("source_places"), {"ids": sorted(set(source_ids))})
        return {row["source_id"]: _place(row) for row in rows}

    def word_counts(self, document_ids: Iterable[str]) -> dict[str, int]:
        """Return the number of words of documents, by id."""
        rows = self._database.rows(statement("document_word_counts"), {"ids": sorted(set(document_ids))})
        return {row["id"]: int(row["words"]) for row in rows}
