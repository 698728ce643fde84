"""The names that documents have, for reading which of them a question says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workbench.storage.database import Connection
from workbench.storage.rows import read
from workbench.types import JsonValue

TOLD = 0.5  # the share of a name above which its text is fetched


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
class SaidName:
    """A passage's document, and the share (0..1, by idf) of its title or file name that a question says.

    ``name`` is the one of the two of which more is said, "" where no more than half is.
    """

    document_id: str
    name: str = ""
    share: float = 0.0


def names_of_documents(connection: Connection, index: str) -> list[DocumentNames]:
    """Return the names of every document that an index holds; long values of metadata are left out."""
    rows = read(connection, index, "names_of_documents", {"index": index})
    return [DocumentNames(**row) for row in rows]


def said_names(connection: Connection, index: str, query: str, ids: Sequence[int]) -> dict[int, SaidName]:
    """Return how much of its document's name a question says, by passage id, for each of the given passages."""
    rows = (
        read(connection, index, "said_names", {"index": index, "query": query, "ids": list(ids), "told": TOLD})
        if ids
        else []
    )
    return {row["id"]: SaidName(row["document_id"], row["name"] or "", float(row["share"] or 0.0)) for row in rows}
