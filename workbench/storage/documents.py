"""Documents: whole texts, and writing a new version in one transaction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import date, datetime

from psycopg.types.json import Jsonb

from workbench.errors import Ambiguous, Conflict, NotFound
from workbench.storage.database import Connection, Table, bind_json, clean_parameters, fetch_one, new_id, statement
from workbench.storage.passages import choose_scope_predicate, fetch_rows, scope_parameters
from workbench.types import APART_TYPES, Document, JsonValue, ResolvedScope, ScannedPage, Value, WordPlace


@dataclass(frozen=True, slots=True)
class SourcePlace(Value):
    """A source's project and folder."""

    source_id: str
    source_title: str
    scope: str
    project_id: str | None  # None for a global source
    folder_name: str | None  # None outside folders
    tags: Sequence[str]


_HINT = "List the documents to see the valid ids."
_LISTED_FIELDS = tuple(name for name in Document.__dataclass_fields__ if name != "text")


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document before it is stored."""

    source_id: str
    key: str  # identifies the document within its source
    title: str
    text: str
    content_hash: str
    document_type: str = "text"
    path: str | None = None
    url: str | None = None
    language: str = "english"
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    pages: tuple[tuple[int, int, int], ...] = ()  # number, start, end in characters of the text
    document_date: date | None = None
    scans: tuple[ScannedPage, ...] = ()  # pages that OCR read
    file: tuple[str, str, bytes] | None = None  # name, media type, bytes of an original that is worth showing


@dataclass(frozen=True, slots=True)
class DocumentRecord(Document):
    """A document with everything stored; ``pages`` are [number, start, end] in characters of ``text``."""

    text: str = ""
    key: str = ""
    language: str = ""
    pages: Sequence[Sequence[int]] = ()


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A stored document as seen by an ingest; ``indexed_hash`` is the version that the index holds."""

    id: str
    content_hash: str
    indexed_hash: str | None


class Documents(Table):
    """The tables ``documents``, ``document_files`` and ``scanned_pages``."""

    def list(
        self,
        *,
        source_id: str | None = None,
        document_type: str | None = None,
        contains: str | None = None,
        named: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Document]:
        """Return documents without their text, oldest first.

        Args:
            source_id: Only documents of this source.
            document_type: Only documents of this type.
            contains: Part of a title, or the beginning of an id.
            named: Words that must all be in the title, path or URL.
            offset: Number of documents to skip.
        """
        parameters = _conditions(source_id, document_type, contains, named)
        parameters |= {"limit": limit, "offset": offset}
        return [Document(**row) for row in self._rows("document_list", parameters)]

    def count(self, **conditions: str | None) -> int:
        """Return the number of documents that ``list`` would return with the same conditions, without a limit."""
        return int(self._value("document_count", _conditions(**conditions)))

    def find_lines(
        self, ids: Sequence[str], text: str, *, match_case: bool, limit: int, offset: int
    ) -> list[tuple[str, int, int]]:
        """Return (document id, line number from 1, number of all lines) of lines that contain a text, by title."""
        pattern = "%" + re.sub(r"([\\%_])", r"\\\1", text) + "%"
        parameters = {"ids": list(ids), "text": text, "pattern": pattern, "match_case": match_case}
        rows = self._rows("document_lines", clean_parameters(parameters) | {"limit": limit, "offset": offset})
        return [(row["id"], row["number"], row["total"]) for row in rows]

    def get(self, document_id: str) -> Document:
        """Return a document with its text. Raises NotFound."""
        record = self.record(document_id)
        return Document(**{name: getattr(record, name) for name in _LISTED_FIELDS}, text=record.text)

    def record(self, document_id: str) -> DocumentRecord:
        """Return a document with everything stored (language, pages, date). Raises NotFound."""
        return DocumentRecord(
            **self._get("document_get", {"id": document_id}, NotFound("document", document_id, _HINT))
        )

    def file(self, document_id: str) -> tuple[str, str, bytes] | None:
        """Return (name, media type, bytes) of the original, or None if it was not kept."""
        row = self._row("document_file", {"document_id": document_id})
        return (row["name"], row["media_type"], bytes(row["bytes"])) if row else None

    def scans(self, document_id: str, number: int | None = None) -> list[ScannedPage]:
        """Return the pages that OCR read, in order, or the one with this number; positions refer to its text."""
        rows = self._rows("scanned_pages_of_document", {"document_id": document_id, "number": number})
        return [
            ScannedPage(row["number"], row["confidence"], tuple(WordPlace(*word) for word in row["words"]))
            for row in rows
        ]

    def by_key(self, source_id: str, index: str) -> dict[str, KnownDocument]:
        """Return a source's documents by key, with the version that an index holds."""
        rows = self._rows("document_hashes", {"source_id": source_id, "index": index})
        return {row["key"]: KnownDocument(row["id"], row["content_hash"], row["indexed_hash"]) for row in rows}

    def with_content(self, source_id: str, content_hash: str) -> str | None:
        return self._value("document_by_hash", {"source_id": source_id, "content_hash": content_hash})

    def at(self, url: str) -> str:
        """Return the id of the document with a URL. Raises NotFound, or Ambiguous if there are several."""
        rows = self._rows("document_by_url", {"url": url})
        if not rows:
            raise NotFound("document", url, _HINT)
        if len(rows) > 1:
            raise Ambiguous("document", url, {row["id"]: f"source {row['source_title']!r}" for row in rows})
        return rows[0]["id"]

    def list_elsewhere(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """Return (name, source, or document of the same source) of those documents whose content is stored twice."""
        rows = self._rows("documents_elsewhere", {"ids": list(ids), "apart": list(APART_TYPES)})
        return [(row["name"], row["place"]) for row in rows]

    def list_missing(self, index: str, dataset: str | None = None) -> list[str]:
        return self._column("documents_missing_from_index", {"index": index, "dataset": dataset})

    def sizes(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the size of documents' texts in bytes, by id."""
        return {row["id"]: row["size"] for row in self._rows("documents_sizes", {"ids": list(ids)})}

    def list_changed(self, moment: datetime | None, limit: int) -> tuple[dict[str, str], datetime]:
        """Return documents changed after a moment, with their sources (none without a moment), and the current time."""
        rows = self._rows("documents_changed_since", {"since": moment, "limit": limit})
        return {row["id"]: row["source_id"] for row in rows if row["id"] is not None}, rows[0]["at"]

    def last_change(self) -> datetime | None:
        """Return when a document was last added or changed; None if there are no documents."""
        return self._value("documents_last_change")

    def places(self, source_ids: Iterable[str]) -> dict[str, SourcePlace]:
        """Return projects and folders of sources, by source id."""
        rows = self._rows("source_places", {"ids": sorted(set(source_ids))})
        return {row["source_id"]: SourcePlace(**row) for row in rows}

    def word_counts(self, document_ids: Iterable[str]) -> dict[str, int]:
        rows = self._rows("document_word_counts", {"ids": sorted(set(document_ids))})
        return {row["id"]: int(row["words"]) for row in rows}

    def write(self, connection: Connection, document: NewDocument) -> tuple[str, bool, bool]:
        """Store a document in the caller's transaction.

        Returns:
            (id, whether it is new, whether this version was already stored).
        """
        names = (
            name for name in NewDocument.__dataclass_fields__ if name not in ("metadata", "pages", "scans", "file")
        )
        values = clean_parameters({name: getattr(document, name) for name in names}) | {"id": new_id("document")}
        values |= {"metadata": bind_json(document.metadata), "pages": Jsonb(list(document.pages))}
        row = fetch_one(connection.execute(statement("document_upsert"), values))
        if document.file is not None:
            name, media_type, data = document.file
            connection.execute(
                statement("document_file_upsert"),
                {"document_id": row["id"], "name": clean_parameters(name), "media_type": media_type, "bytes": data},
            )
        if not row["added"]:
            connection.execute(statement("scanned_pages_delete"), {"document_id": row["id"]})
        for page in document.scans:
            words = [list(astuple(word)) for word in page.words]
            connection.execute(
                statement("scanned_page_insert"),
                {"document_id": row["id"], "number": page.number, "confidence": page.confidence, "words": Jsonb(words)},
            )
        return row["id"], bool(row["added"]), bool(row["same"])

    def update(
        self,
        document_id: str,
        *,
        title: str | None = None,
        url: str | None = None,
        metadata: Mapping[str, object] | None = None,
        unchanged_since: datetime | None = None,
    ) -> Document:
        """Change title, URL or metadata (merged with the stored metadata). Raises NotFound or Conflict."""
        values = {"id": document_id, "title": title, "url": url, "metadata": bind_json(metadata or {})}
        changed = self._rows("document_update", values | {"unchanged_since": unchanged_since})
        document = self.get(document_id)
        if not changed:
            raise Conflict(f'"{document.title}" was changed by someone else at the same time. Open it again.')
        return document

    def languages(self, document_ids: Sequence[str]) -> list[str]:
        return self._column("languages_of_documents", {"ids": list(document_ids)})

    def set_language(self, source_id: str, language: str) -> int:
        """Set the language of a source's documents; return how many had another and are thus in no index now."""
        values = {"source_id": source_id, "language": language}
        return int(self._value("documents_to_restem", values, changed="documents_of_language"))

    def fetch_reading(self, source_id: str) -> tuple[str, str]:
        """Return the encoding of a source's texts ("" to detect it), and "read" or "skip" for hidden parts."""
        row = self._row("reading_of_source", {"source_id": source_id})
        return ("", "read") if row is None else (row["encoding"], row["hidden"])

    def language_of_source(self, source_id: str) -> str | None:
        """Return the language that a user chose for a source, or None if the language of each text is identified."""
        return self._value("language_of_source", {"source_id": source_id})

    def beginnings(self, source_id: str, characters: int) -> Iterator[list[tuple[str, str, str]]]:
        """Yield a source's documents in batches of 100, each as (id, document type, beginning of its text)."""
        after = ""
        while True:
            parameters = {"source_id": source_id, "characters": characters, "after": after, "limit": 100}
            rows = self._rows("beginnings_of_documents", parameters)
            if not rows:
                return
            yield [(row["id"], row["document_type"], row["beginning"]) for row in rows]
            after = rows[-1]["id"]

    def set_languages(self, languages: Mapping[str, str]) -> int:
        """Set languages by document id; return how many had another and are thus in no index now."""
        values = {"ids": list(languages), "languages": list(languages.values())}
        return int(self._value("documents_to_restem", values, changed="documents_of_languages"))

    def delete(self, document_ids: Sequence[str]) -> None:
        with self._database.transaction() as connection:
            connection.execute(statement("index_turn"), {"name": None})
            connection.execute(statement("document_delete"), {"ids": list(document_ids)})


def _conditions(
    source_id: str | None = None,
    document_type: str | None = None,
    contains: str | None = None,
    named: str | None = None,
) -> dict[str, object]:
    words = " ".join((named or "").replace("\x00", " ").split()) or None
    conditions = {"source_id": source_id, "document_type": document_type, "contains": contains, "named": words}
    return {**conditions, "apart": list(APART_TYPES)}


# Document names, which are recognised in questions


@dataclass(frozen=True, slots=True)
class DocumentNames:
    id: str
    title: str
    file: str = ""  # file name as words; "" for a URL
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)


def fetch_document_names(connection: Connection, index: str) -> list[DocumentNames]:
    """Return the names of every document in an index; long metadata values are omitted."""
    return [DocumentNames(**row) for row in fetch_rows(connection, index, "names_of_documents", {"index": index})]


def list_document_ids(connection: Connection, index: str, scope: ResolvedScope) -> frozenset[str]:
    if scope.is_empty:
        return frozenset()
    parameters = {"index": index, **scope_parameters(scope)}
    rows = fetch_rows(connection, index, "documents_listed", parameters, scope=choose_scope_predicate(scope))
    return frozenset(row["document_id"] for row in rows)


def fetch_title_terms(connection: Connection, ids: Sequence[str]) -> dict[str, list[tuple[str, list[str]]]]:
    """Return the title and the file name of given documents with the terms of each; names without terms are omitted."""
    rows = connection.execute(statement("terms_of_titles"), {"ids": list(ids)}, binary=True).fetchall()
    return {
        row["id"]: [
            (text, terms)
            for text, terms in ((row["title"], row["title_terms"]), (row["file"], row["file_terms"]))
            if terms
        ]
        for row in rows
    }
