"""Citations: the links that documents hold, and where they lead now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from psycopg.types.json import Jsonb

from workbench.storage.database import Connection, Database, clean
from workbench.storage.statements import statement

READING = 1  # raise it when links are read differently: documents of an older reading are read again
MOST_ROWS = 1_000  # edges of one step; a page that links to everything must not make a search slow


@dataclass(frozen=True, slots=True)
class NewCitation:
    """A link before it is stored; ``keys`` are the addresses it may mean, the likeliest first."""

    position: int
    kind: str
    target: str
    url: str | None
    label: str
    context: str
    confidence: float
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredCitation:
    """One document citing another; ``context`` is the sentence around."""

    document_id: str
    to_document: str
    kind: str
    target: str
    url: str | None
    context: str
    confidence: float
    position: int = 0


@dataclass(frozen=True, slots=True)
class CitingPair:
    """A document that cites another: ``links`` times, the surest of them at ``confidence`` (0..1)."""

    document_id: str
    to_document: str
    confidence: float
    links: int
    context: str


@dataclass(frozen=True, slots=True)
class UnresolvedLink:
    """A link that should lead to a document of its source and does not; ``target`` as it was written."""

    document_id: str
    title: str
    path: str | None
    kind: str
    target: str
    label: str
    context: str


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A document as a graph shows it."""

    id: str
    title: str
    path: str | None
    url: str | None
    source_id: str
    source_title: str
    document_date: date | None
    document_type: str
    source_type: str


class Citations:
    """The tables ``citations``, ``document_addresses`` and ``document_mentions``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(
        self,
        connection: Connection,
        document_id: str,
        source_id: str,
        addresses: Sequence[tuple[str, int]],
        links: Sequence[NewCitation],
        mentions: Sequence[str],
    ) -> None:
        """Put the links that were read of a document in place of its stored ones, in the caller's transaction."""
        owner = {"document_id": document_id, "source_id": source_id}
        keys, depths = [key for key, _ in addresses], [depth for _, depth in addresses]
        connection.execute(statement("citations_forget"), owner)
        connection.execute(statement("addresses_insert"), owner | clean({"keys": keys, "depths": depths}))
        if links:
            rows = [clean({name: getattr(link, name) for name in NewCitation.__slots__}) for link in links]
            connection.execute(statement("citations_insert"), owner | {"links": Jsonb(rows)})
        values = {"reading": READING, "keys": clean(list(mentions))}
        connection.execute(statement("mentions_insert"), owner | values)

    def unread(self, limit: int) -> list[str]:
        """Return the ids of documents whose links were not read yet by this version."""
        rows = self._database.rows(statement("documents_without_links_read"), {"reading": READING, "limit": limit})
        return [row["id"] for row in rows]

    def leading_from(self, ids: Sequence[str]) -> list[StoredCitation]:
        """Return what given documents cite by link, at most 1,000."""
        return self._stored("citations_from", ids)

    def leading_to(self, ids: Sequence[str]) -> list[StoredCitation]:
        """Return what cites given documents by link, at most 1,000."""
        return self._stored("citations_to", ids)

    def mentioned_by(self, ids: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return (document, mentioned document, title key) of titles that given documents mention in words."""
        return self._mentions("mentions_from", ids)

    def mentioning(self, ids: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return (document, mentioned document, title key) of documents that mention given documents' titles."""
        return self._mentions("mentions_to", ids)

    def mention_contexts(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, int]]:
        """Return, by (document id, lower-case title), the text around the mention and where in it the title begins."""
        values = {"documents": [key for key, _ in pairs], "titles": [title for _, title in pairs]}
        rows = self._database.rows(statement("mention_contexts"), values)
        return {(row["document_id"], row["title"]): (row["around"], int(row["start"])) for row in rows}

    def documents(self, ids: Sequence[str]) -> dict[str, CitedDocument]:
        """Return given documents as a graph shows them."""
        rows = self._database.rows(statement("cited_documents"), {"ids": list(ids)})
        return {row["id"]: CitedDocument(**row) for row in rows}

    def document_ids(self, source_ids: Sequence[str] | None) -> list[str]:
        """Return the ids of all documents of sources, oldest first."""
        rows = self._database.rows(statement("documents_to_cite"), {"source_ids": _list(source_ids)})
        return [row["id"] for row in rows]

    def pairs(self, source_ids: Sequence[str] | None, document_ids: Sequence[str] | None = None) -> list[CitingPair]:
        """Return every pair of documents in sources of which one cites the other."""
        values = {"source_ids": _list(source_ids), "document_ids": _list(document_ids)}
        return [CitingPair(**row) for row in self._database.rows(statement("citation_pairs"), values)]

    def broken(self, source_ids: Sequence[str] | None, limit: int) -> list[UnresolvedLink]:
        """Return links that should lead to a document of their source and do not."""
        values = {"source_ids": _list(source_ids), "limit": limit}
        return [UnresolvedLink(**row) for row in self._database.rows(statement("broken_links"), values)]

    def counts(self, source_ids: Sequence[str] | None) -> dict[str, int]:
        """Return the number of links, and of those resolved, external and broken."""
        row = self._database.row(statement("citation_counts"), {"source_ids": _list(source_ids)}) or {}
        return {name: int(value) for name, value in row.items()}

    def link_count(self, ids: Sequence[str] = (), source_id: str | None = None) -> int:
        """Return the number of links of given documents, or of all of a source's: they go when these go."""
        row = self._database.row(statement("citations_held"), {"ids": list(ids), "source_id": source_id})
        return int(row["held"]) if row else 0

    def _stored(self, name: str, ids: Sequence[str]) -> list[StoredCitation]:
        rows = self._database.rows(statement(name), {"ids": list(ids), "limit": MOST_ROWS}) if ids else []
        return [StoredCitation(**row) for row in rows]

    def _mentions(self, name: str, ids: Sequence[str]) -> list[tuple[str, str, str]]:
        rows = self._database.rows(statement(name), {"ids": list(ids), "limit": MOST_ROWS}) if ids else []
        return [(row["document_id"], row["to_document"], row["key"]) for row in rows]


def _list(ids: Sequence[str] | None) -> list[str] | None:
    return None if ids is None else list(ids)
