"""Citations: links in documents, and the documents they lead to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from psycopg.types.json import Jsonb

from workbench.storage.database import Connection, Row, Table, clean_parameters, statement
from workbench.storage.passages import choose_scope_predicate, scope_parameters
from workbench.types import ResolvedScope, Value

WHOLE_CORPUS = ResolvedScope()
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
class DocumentCitation(Value):
    source_id: str
    target_id: str
    target_url: str
    context: str  # the sentence with the citation
    confidence: float  # 1.0 for a link, 0.9 for a bare path, 0.6 for a title in plain text
    kind: str
    depth: int = 1


@dataclass(frozen=True, slots=True)
class GraphNode(Value):
    id: str
    title: str
    source_id: str
    source_title: str
    cites: int = 0  # documents in the graph's sources
    cited_by: int = 0
    document_type: str = ""


@dataclass(frozen=True, slots=True)
class Edge(Value):
    """All citations of one document by another."""

    source: str  # id of the citing document
    target: str  # id of the cited document
    confidence: float  # the highest of them, 0..1
    links: int  # number of citations
    context: str


@dataclass(frozen=True, slots=True)
class BrokenLink(Value):
    """A link to a document of its source that does not exist."""

    document_id: str
    title: str
    target: str
    context: str


class Citations(Table):
    """The tables ``citations``, ``document_addresses`` and ``document_mentions``."""

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
        connection.execute(statement("mentions_insert"), owner | {"keys": clean_parameters(list(mentions))})

    def list_links(self, ids: Sequence[str], *, forward: bool) -> list[DocumentCitation]:
        """Return the links from given documents, or to them, at most 1,000."""
        name = "citations_from" if forward else "citations_to"
        rows = self._rows(name, {"ids": list(ids), "limit": MAX_ROWS}) if ids else []
        return [DocumentCitation(**row) for row in rows]

    def list_mentions(self, ids: Sequence[str], *, forward: bool) -> list[tuple[str, str, str]]:
        """Return (document, mentioned document, title key) for titles in the texts of given documents, or of others."""
        name = "mentions_from" if forward else "mentions_to"
        rows = self._rows(name, {"ids": list(ids), "limit": MAX_ROWS}) if ids else []
        return [(row["document_id"], row["to_document"], row["key"]) for row in rows]

    def mention_contexts(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, int]]:
        """Return the text around a mention and the title's position in it, by (document id, lower-case title)."""
        values = {"documents": [key for key, _ in pairs], "titles": [title for _, title in pairs]}
        rows = self._rows("mention_contexts", values)
        return {(row["document_id"], row["title"]): (row["around"], int(row["start"])) for row in rows}

    def documents(self, ids: Iterable[str]) -> dict[str, GraphNode]:
        rows = self._rows("cited_documents", {"ids": list(dict.fromkeys(ids))})
        return {row["id"]: GraphNode(**row) for row in rows}

    def document_ids(self, scope: ResolvedScope) -> list[str]:
        return [row["id"] for row in self._read("documents_to_cite", scope)]

    def pairs(self, scope: ResolvedScope) -> list[Edge]:
        """Return every pair of documents in a scope in which one cites the other."""
        return [Edge(**row) for row in self._read("citation_pairs", scope)]

    def broken(self, scope: ResolvedScope = WHOLE_CORPUS, limit: int = 200) -> list[BrokenLink]:
        """Return links that should lead to a document of the same source but do not."""
        return [BrokenLink(**row) for row in self._read("broken_links", scope, limit=limit)]

    def counts(self, scope: ResolvedScope) -> dict[str, int]:
        """Return the number of all links, and of resolved, external and broken ones.

        A link to a document outside the scope is counted as one to the web.
        """
        return {name: int(value) for row in self._read("citation_counts", scope) for name, value in row.items()}

    def link_count(self, ids: Sequence[str] = (), source_id: str | None = None) -> int:
        """Return the number of links of given documents or of a source, which a deletion would remove."""
        return int(self._value("citations_held", {"ids": list(ids), "source_id": source_id}))

    def _read(self, name: str, scope: ResolvedScope, **values: object) -> list[Row]:
        query = statement(name, scope=choose_scope_predicate(scope))
        return self._database.rows(query, {**scope_parameters(scope), **values})
