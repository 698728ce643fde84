"""Documents: whole texts, and the writing of a new version in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from psycopg.types.json import Jsonb

from workbench.errors import NotFound
from workbench.storage.database import Database, as_json, clean
from workbench.storage.ids import new_id
from workbench.storage.statements import statement
from workbench.types import Document

_HINT = "List the documents to see the valid ids."
_LISTED = tuple(name for name in Document.__dataclass_fields__ if name != "text")


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document before it is stored; ``key`` makes it the same one again within its source."""

    source_id: str
    key: str
    title: str
    text: str
    content_hash: str
    document_type: str = "text"
    path: str | None = None
    url: str | None = None
    language: str = "english"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pages: tuple[tuple[int, int, int], ...] = ()
    document_date: date | None = None
    file: tuple[str, str, bytes] | None = None  # name, media type, bytes: where showing the original says more


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """What an ingest needs to know of a document that is there: ``indexed_hash`` is the version the index holds."""

    id: str
    content_hash: str
    indexed_hash: str | None


class Documents:
    """The tables ``documents`` and ``document_files``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(
        self,
        *,
        source_id: str | None = None,
        document_type: str | None = None,
        contains: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Document]:
        """Return documents without their text, oldest first; ``contains`` looks into titles."""
        parameters = {"source_id": source_id, "document_type": document_type, "contains": contains}
        rows = self._database.rows(statement("document_list"), parameters | {"limit": limit, "offset": offset})
        return [Document(**row) for row in rows]

    def count(
        self, *, source_id: str | None = None, document_type: str | None = None, contains: str | None = None
    ) -> int:
        """Return how many documents ``list`` would give without a limit."""
        parameters = {"source_id": source_id, "document_type": document_type, "contains": contains}
        row = self._database.row(statement("document_count"), parameters)
        return int(row["n"]) if row else 0

    def get(self, document_id: str) -> Document:
        """Return a document, whole. Raises NotFound."""
        row = self.record(document_id)
        return Document(**{name: row[name] for name in _LISTED}, text=row["text"])

    def record(self, document_id: str) -> dict[str, Any]:
        """Return a document's row with everything stored (language, pages, date). Raises NotFound."""
        row = self._database.row(statement("document_get"), {"id": document_id})
        if row is None:
            raise NotFound("document", document_id, _HINT)
        return row

    def file(self, document_id: str) -> tuple[str, str, bytes] | None:
        """Return (name, media type, bytes) of the original, where it was kept."""
        row = self._database.row(statement("document_file"), {"document_id": document_id})
        return (row["name"], row["media_type"], bytes(row["bytes"])) if row else None

    def known(self, source_id: str, index: str) -> dict[str, KnownDocument]:
        """Return a source's documents by key, with the version that an index holds."""
        rows = self._database.rows(statement("document_hashes"), {"source_id": source_id, "index": index})
        return {row["key"]: KnownDocument(row["id"], row["content_hash"], row["indexed_hash"]) for row in rows}

    def with_content(self, source_id: str, content_hash: str) -> str | None:
        """Return the id of a source's document with the same content, or None."""
        row = self._database.row(statement("document_by_hash"), {"source_id": source_id, "content_hash": content_hash})
        return row["id"] if row else None

    def missing_from(self, index: str, dataset: str | None = None) -> list[str]:
        """Return the ids of documents that an index does not hold in their present version."""
        rows = self._database.rows(statement("documents_missing_from_index"), {"index": index, "dataset": dataset})
        return [row["id"] for row in rows]

    def last_change(self) -> datetime | None:
        """Return when a document was last added or changed; None where there is none."""
        row = self._database.row(statement("documents_last_change"))
        return row["at"] if row else None

    def write(self, connection: Any, document: NewDocument) -> tuple[str, bool]:
        """Store a document in the caller's transaction; returns (id, whether it is new)."""
        values = {
            "id": new_id("document"),
            "source_id": document.source_id,
            "key": document.key,
            "title": document.title,
            "path": document.path,
            "url": document.url,
            "document_type": document.document_type,
            "content_hash": document.content_hash,
            "text": document.text,
            "language": document.language,
            "document_date": document.document_date,
        }
        values = clean(values) | {
            "metadata": as_json(document.metadata),
            "pages": Jsonb(list(document.pages)),
        }
        row = connection.execute(statement("document_upsert"), values).fetchone()
        if document.file is not None:
            name, media_type, data = document.file
            connection.execute(
                statement("document_file_upsert"),
                {"document_id": row["id"], "name": clean(name), "media_type": media_type, "bytes": data},
            )
        return row["id"], bool(row["added"])

    def update(
        self,
        document_id: str,
        *,
        title: str | None = None,
        url: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Document:
        """Change title, URL or metadata (merged into what is there). Raises NotFound."""
        self.record(document_id)
        values = {"id": document_id, "title": title, "url": url}
        self._database.rows(
            statement("document_update"),
            values | {"metadata": None if metadata is None else as_json(metadata)},
        )
        return self.get(document_id)

    def delete(self, document_ids: Sequence[str]) -> None:
        """Delete documents with their passages in every index."""
        with self._database.transaction() as connection:
            connection.execute(statement("index_turn"), {"name": None})
            connection.execute(statement("document_delete"), {"ids": list(document_ids)})
