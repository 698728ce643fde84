"""Citations: links in documents, and the documents they lead to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from psycopg.types.json import Jsonb

from workbench.storage.database import Connection, Database, Row, clean_parameters, statement
from workbench.storage.passages import ResolvedScope, choose_scope_predicate, scope_parameters

MAX_ROWS = 1_000  # edges per step, so that a page with very many links does not slow searches down


@dataclass(frozen=True, slots=True)
class NewCitation:
    """A link before it is stored."""

    position: int  # in the document's text, in characters
    kind: str
    target: str  # as written
    url: str | None
    label: str
    context: str  # the sentence around it
    confidence: float  # 0..1
    keys: tuple[str, ...]  # addresses it may mean, the likeliest first


@dataclass(frozen=True, slots=True)
class StoredCitation:
    """A document citing another; ``context`` is the sentence around the link."""

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
    """A document that cites another by ``links`` links; ``confidence`` (0..1) is the best link's."""

    document_id: str
    to_document: str
    confidence: float
    links: int
    context: str


@dataclass(frozen=True, slots=True)
class UnresolvedLink:
    """A link that should lead to a document of the same source but does not; ``target`` is as written."""

    document_id: str
    title: str
    path: str | None
    kind: str
    target: str
    label: str
    context: str


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A document in a citation graph."""

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
        """Replace the stored links of a document, in the caller's transaction."""
        owner = {"document_id": document_id, "source_id": source_id}
        keys, depths = [key for key, _ in addresses], [depth for _, depth in addresses]
        connection.execute(statement("citations_forget"), owner)
        connection.execute(statement("addresses_insert"), owner | clean_parameters({"keys": keys, "depths": depths}))
        if links:
            rows = [clean_parameters({name: getattr(link, name) for name in NewCitation.__slots__}) for link in links]
            connection.execute(statement("citations_insert"), owner | {"links": Jsonb(rows)})
        values = {"keys": clean_parameters(list(mentions))}
        connection.execute(statement("mentions_insert"), owner | values)

    def list_outgoing(self, ids: Sequence[str]) -> list[StoredCitation]:
        """Return the links from given documents, at most 1,000."""
        return self._read_stored("citations_from", ids)

    def list_incoming(self, ids: Sequence[str]) -> list[StoredCitation]:
        """Return the links to given documents, at most 1,000."""
        return self._read_stored("citations_to", ids)

    def list_outgoing_mentions(self, ids: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return (document, mentioned document, title key) for titles that given documents mention in their text."""
        return self._mentions("mentions_from", ids)

    def list_incoming_mentions(self, ids: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return (document, mentioned document, title key) for documents that mention given documents' titles."""
        return self._mentions("mentions_to", ids)

    def mention_contexts(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, int]]:
        """Return the text around a mention and the title's position in it, by (document id, lower-case title)."""
        values = {"documents": [key for key, _ in pairs], "titles": [title for _, title in pairs]}
        rows = self._database.rows(statement("mention_contexts"), values)
        return {(row["document_id"], row["title"]): (row["around"], int(row["start"])) for row in rows}

    def documents(self, ids: Sequence[str]) -> dict[str, CitedDocument]:
        """Return given documents for a citation graph."""
        rows = self._database.rows(statement("cited_documents"), {"ids": list(ids)})
        return {row["id"]: CitedDocument(**row) for row in rows}

    def document_ids(self, scope: ResolvedScope) -> list[str]:
        """Return the ids of all documents in a scope, oldest first."""
        return [row["id"] for row in self._read("documents_to_cite", scope)]

    def pairs(self, scope: ResolvedScope) -> list[CitingPair]:
        """Return every pair of documents in a scope in which one cites the other."""
        return [CitingPair(**row) for row in self._read("citation_pairs", scope)]

    def broken(self, scope: ResolvedScope, limit: int) -> list[UnresolvedLink]:
        """Return links that should lead to a document of the same source but do not."""
        return [UnresolvedLink(**row) for row in self._read("broken_links", scope, limit=limit)]

    def counts(self, scope: ResolvedScope) -> dict[str, int]:
        """Return the number of all links, and of resolved, external and broken ones.

        A link to a document outside the scope is counted as one to the web.
        """
        return {name: int(value) for row in self._read("citation_counts", scope) for name, value in row.items()}

    def link_count(self, ids: Sequence[str] = (), source_id: str | None = None) -> int:
        """Return the number of links of given documents or of a source, which a deletion would remove."""
        row = self._database.row(statement("citations_held"), {"ids": list(ids), "source_id": source_id})
        return int(row["held"]) if row else 0

    def _read(self, name: str, scope: ResolvedScope, **values: object) -> list[Row]:
        """Run a statement over a scope."""
        query = statement(name, links="links_in_scope", scope=choose_scope_predicate(scope))
        return self._database.rows(query, {**scope_parameters(scope), **values})

    def _read_stored(self, name: str, ids: Sequence[str]) -> list[StoredCitation]:
        rows = self._database.rows(statement(name), {"ids": list(ids), "limit": MAX_ROWS}) if ids else []
        return [StoredCitation(**row) for row in rows]

    def _mentions(self, name: str, ids: Sequence[str]) -> list[tuple[str, str, str]]:
        rows = self._database.rows(statement(name), {"ids": list(ids), "limit": MAX_ROWS}) if ids else []
        return [(row["document_id"], row["to_document"], row["key"]) for row in rows]
