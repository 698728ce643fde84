"""The names that documents have, for reading which of them a question says."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from workbench.storage.database import Connection, numbers_value
from workbench.storage.rows import read, scope_parameters, scope_statement
from workbench.storage.statements import statement
from workbench.types import JsonValue, ResolvedScope


@dataclass(frozen=True, slots=True)
class DocumentNames:
    """A document's title, its file's name as words ("" for an address), its source's title, type and metadata."""

    id: str
    title: str
    file: str = ""
    source: str = ""
    document_type: str = ""
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A passage's document: its title and its file's name, each by the terms it has, and the terms of the question."""

    id: str
    names: tuple[tuple[str, frozenset[str]], ...]
    asked: frozenset[str]


def names_of_documents(connection: Connection, index: str) -> list[DocumentNames]:
    """Return the names of every document that an index holds; long values of metadata are left out."""
    rows = read(connection, index, "names_of_documents", {"index": index})
    return [DocumentNames(**row) for row in rows]


def documents_listed(connection: Connection, index: str, scope: ResolvedScope) -> frozenset[str]:
    """Return the ids of the documents of an index that lie in a scope."""
    if scope.is_empty:
        return frozenset()
    query = statement("documents_listed", index, scope=scope_statement(scope))
    rows = connection.execute(query, {"index": index, **scope_parameters(scope)}).fetchall()
    return frozenset(row["document_id"] for row in rows)


def named_documents(
    connection: Connection, index: str, query: str, languages: Sequence[str], ids: Sequence[int], *, every: bool
) -> dict[int, NamedDocument]:
    """Return the documents of given passages that have a term of a question in a name, by passage id; or ``every`` one.

    ``languages`` are those in which the question is read, as Postgres names them.
    """
    parameters = {"query": query, "languages": list(languages), "ids": numbers_value(ids), "every": every}
    rows = read(connection, index, "named_documents", parameters) if ids else []
    documents: dict[str, NamedDocument] = {}
    for row in rows:
        if row["document_id"] not in documents:
            names = ((row["title"], row["title_terms"]), (row["file"], row["file_terms"]))
            documents[row["document_id"]] = NamedDocument(
                row["document_id"],
                tuple((text, frozenset(terms)) for text, terms in names if terms),
                frozenset(row["asked"] or ()),
            )
    return {row["id"]: documents[row["document_id"]] for row in rows}


def document_frequencies(connection: Connection, index: str, terms: Collection[str]) -> dict[str, int]:
    """Return how many passages of an index have each of given terms, those that it knows."""
    rows = read(connection, index, "document_frequencies", {"terms": list(terms)}) if terms else []
    return {row["term"]: row["df"] for row in rows}
