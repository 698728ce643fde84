"""Rows that go into an index's table and come out of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from workbench.storage.database import Connection, Row, clean
from workbench.storage.embedded_text import embedded_text
from workbench.storage.statements import statement
from workbench.types import JsonValue, ResolvedScope, as_whole

PROPERTIES = "scope_properties"  # the predicate that looks at what documents say of themselves


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A passage before it is stored; ``text`` is exactly the document's ``[start:end]``.

    ``context`` (title and headings) is embedded and indexed with the text but not shown as text.
    """

    document_id: str
    source_id: str
    text: str
    context: str
    start: int
    end: int
    ordinal: int
    language: str
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def embedded_text(self) -> str:
        """The text the model reads."""
        return embedded_text(self.context, self.text)

    @property
    def passage_hash(self) -> bytes:
        """16 bytes that are equal where the embedded text is equal."""
        return hashlib.blake2b(self.embedded_text.encode(), digest_size=16).digest()

    def node_id(self, index: str) -> str:
        """Return the public id: the same text at the same place of the same document keeps it across rebuilds."""
        place = f"{index}|{self.document_id}|{self.start}|{self.end}|".encode() + self.passage_hash
        return "psg_" + hashlib.blake2b(place, digest_size=9).hexdigest()

    def stored_metadata(self, index: str) -> Jsonb:
        """Return the JSON of ``metadata_``, with what the table's generated columns and LlamaIndex read."""
        return Jsonb(
            {
                **self.metadata,
                "document_id": self.document_id,
                "ref_doc_id": self.document_id,
                "source_id": self.source_id,
                "index": index,
                "context": self.context,
                "start": self.start,
                "end": self.end,
                "ordinal": self.ordinal,
                "language": self.language,
            }
        )


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as it is stored, with what its document says of itself."""

    id: int
    node_id: str
    text: str
    metadata: Mapping[str, JsonValue]
    document_id: str
    source_id: str
    title: str
    path: str | None
    url: str | None
    document_type: str
    document_date: date | None = None

    @property
    def span(self) -> tuple[int, int]:
        """Its start and end in its document's text, in characters."""
        return as_whole(self.metadata["start"]), as_whole(self.metadata["end"])

    @property
    def ordinal(self) -> int:
        """Its place among its document's passages, from 0."""
        return as_whole(self.metadata["ordinal"])


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A term of the query and what the lexicon knows of it; ``id`` None where no passage has the term.

    ``position`` counts the query's words from 1 and says which one the term comes from (the first, if several).
    ``passages`` is how many passages are in a language whose analysis makes this term of the query; ``df`` is
    measured against it, or a stop word of most passages' language would look rare because few others keep it.
    """

    term: str
    id: int | None
    df: int
    position: int = 0
    passages: int = 0


@dataclass(frozen=True, slots=True)
class IndexTotals:
    """The whole index, as BM25 needs it; ``average_length`` in terms, ``changed`` when a document was last written."""

    passages: int
    average_length: float
    languages: tuple[str, ...]
    changed: datetime | None = None


@dataclass(frozen=True, slots=True)
class TermWeights:
    """BM25 prepared for the postings: score = sum of weight * tf / (tf + a + c * length) over the terms.

    ``counts`` are the passages that have each term, ``passages`` is how many the whole index has.
    """

    ids: tuple[int, ...]
    weights: tuple[float, ...]
    counts: tuple[int, ...]
    a: float
    c: float
    passages: int

    def weight(self, term: int) -> float:
        """Return the weight of a term by its id; one that was meant twice has the sum."""
        return sum(weight for of, weight in zip(self.ids, self.weights, strict=True) if of == term)

    def count(self, term: int) -> int:
        """Return how many passages have a term, by its id."""
        return self.counts[self.ids.index(term)]


def read(
    connection: Connection,
    index: str,
    name: str,
    parameters: Mapping[str, object],
    /,
    **parts: str,
) -> list[Row]:
    """Run a named statement over the tables of an index and return its rows as dicts; ``parts`` as in statements."""
    # planned for its values: a scope is of ten passages or of a million, and a graph is only walked for a few
    prepare = False if parts.keys() & {"scope", "breadth"} else None
    return connection.execute(statement(name, index, **parts), clean(parameters), prepare=prepare).fetchall()


def insert_passages(
    connection: Connection,
    index: str,
    passages: Sequence[NewPassage],
    vectors: Iterable[NDArray[np.float32]],
    token_bits: Sequence[bytes | None],
) -> list[str]:
    """Store passages by COPY in the caller's transaction; triggers keep the keyword index. Returns their ids."""
    ids = [passage.node_id(index) for passage in passages]
    with connection.cursor() as cursor, cursor.copy(statement("copy_passages", index)) as copy:
        for node_id, passage, vector, bits in zip(ids, passages, vectors, token_bits, strict=True):
            metadata, embedding = passage.stored_metadata(index), vector_value(vector)
            copy.write_row((node_id, clean(passage.text), metadata, embedding, passage.passage_hash, bits))
    return ids


def vector_value(vector: NDArray[np.float32]) -> HalfVector:
    """Return a vector as a bound value: two bytes a number, which neither side has to write out or read as text."""
    return HalfVector(vector)


def vector_from(literal: str) -> NDArray[np.float32]:
    """Read a vector as pgvector writes it."""
    return np.array(literal[1:-1].split(","), dtype=np.float32)


def vector_received(sent: bytes) -> NDArray[np.float32]:
    """Read what ``halfvec_send`` sends: two numbers of 16 bits, then each half float, high byte first."""
    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float32)


def scope_statement(scope: ResolvedScope) -> str:
    """Name the cheapest predicate that holds a scope."""
    if scope.is_everything:
        return "scope_everything"
    if scope.document_types or scope.languages or scope.since is not None or scope.until is not None:
        return PROPERTIES
    return "scope_sources" if scope.document_ids is None and not scope.without_documents else "scope_documents"


def scope_parameters(scope: ResolvedScope) -> dict[str, object]:
    """Return the bound parameters of the scope predicates."""
    return {
        "source_ids": None if scope.source_ids is None else list(scope.source_ids),
        "document_ids": None if scope.document_ids is None else list(scope.document_ids),
        "document_types": list(scope.document_types) or None,
        "languages": list(scope.languages) or None,
        "without": list(scope.without_documents) or None,
        "since": scope.since,
        "until": scope.until,
    }
