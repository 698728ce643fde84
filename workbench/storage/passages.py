"""Stored passages by id, by document and by nearness, with what their documents say of themselves."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from workbench.errors import NotFound
from workbench.storage.database import Connection, Row, clean, numbers_value
from workbench.storage.graph import SERVING
from workbench.storage.statements import statement
from workbench.types import Index, JsonValue, ResolvedScope, as_whole

# --- The text of a passage that the model reads: its context, a blank line, and the text, its tables without ---

BAR = re.compile(r"(?<!\\)\|")
RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")


def embedded_text(context: str, text: str) -> str:
    """Return what the model reads of a passage with this context ("" for none)."""
    words = without_rules(text)
    return f"{context}\n\n{words}" if context else words


def without_rules(text: str) -> str:
    """Blank the bars between cells and the rules under headers, in lines that begin or end with a bar.

    The result is as long as the text.
    """
    if "|" not in text:
        return text
    return "\n".join(_blanked(line) if _is_row(line) else line for line in text.split("\n"))


def _is_row(line: str) -> bool:
    bare = line.strip()
    return bare.startswith("|") or bare.endswith("|")


def _blanked(line: str) -> str:
    return " " * len(line) if RULE.fullmatch(line) else BAR.sub(" ", line)


# --- Rows that go into an index's table and come out of it ---

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


_SHOWN = {"passage": "passage_columns", "document": "document_columns"}
NO_PARTS: Mapping[str, str] = {}
LIKENESS_SAMPLE = 2000  # passages whose mean stands for an index


def passages_by_id(
    connection: Connection, index: str, ids: Sequence[int], same_as: Index | None = None
) -> dict[int, StoredPassage]:
    """Return given passages; with ``same_as`` none where the index's row is no longer that one."""
    rows = _shown(connection, index, "passages_by_id", {"ids": numbers_value(ids)}, same_as)
    return {row["id"]: StoredPassage(**row) for row in rows}


def nearest_passages(
    connection: Connection, index: Index, vector: NDArray[np.float32], limit: int, same_as: Index | None = None
) -> list[tuple[StoredPassage, float]]:
    """Return the passages of the whole index nearest to a vector with their cosines, best first.

    This is ``ranking.nearest`` and ``passages_by_id`` in one statement; ``same_as`` as there.
    """
    values = {"vector": vector_value(vector), "limit": limit, "index": index.name}
    name, parts = (
        ("nearest_passages", {"breadth": "breadth_by_size"}) if index.has_graph else ("nearest_passages_exact", {})
    )
    rows = _shown(connection, index.name, name, values, same_as, parts)
    rows.sort(key=lambda row: (-row["score"], row["id"]))  # here rather than by a sort node that is planned anew
    scores = [float(row.pop("score")) for row in rows]
    return [(StoredPassage(**row), score) for row, score in zip(rows, scores, strict=True)]


def passages_of_document(connection: Connection, index: str, document_id: str) -> list[StoredPassage]:
    """Return all passages of a document in reading order."""
    rows = read(connection, index, "passages_of_document", {"document_id": document_id}, **_SHOWN)
    return [StoredPassage(**row) for row in rows]


def passage_named(connection: Connection, index: str, passage_id: str) -> StoredPassage:
    """Return the passage of an id as searches name it. Raises NotFound."""
    number = internal_ids(connection, index, [passage_id]).get(passage_id)
    if number is None:
        raise NotFound("passage", passage_id, "Searches name the ids.")
    return passages_by_id(connection, index, [number])[number]


def internal_ids(connection: Connection, index: str, passage_ids: Sequence[str]) -> dict[str, int]:
    """Return the internal ids behind public passage ids, of those that there are."""
    rows = read(connection, index, "ids_of_passages", {"node_ids": list(passage_ids)})
    return {row["node_id"]: row["id"] for row in rows}


def token_bits(connection: Connection, index: str, ids: Sequence[int]) -> dict[int, bytes]:
    """Return the one-bit token vectors of given passages, 16 bytes a token, where they have some."""
    rows = read(connection, index, "token_bits_by_id", {"ids": numbers_value(ids)})
    return {row["id"]: bytes(row["token_bits"]) for row in rows if row["token_bits"] is not None}


def vectors(connection: Connection, index: str, ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    """Return the stored vectors of given passages."""
    rows = read(connection, index, "embeddings_by_id", {"ids": numbers_value(ids)})
    return {row["id"]: vector_received(row["embedding"]) for row in rows}


def likeness_to_all(connection: Connection, index: Index, ids: Sequence[int], passages: int) -> dict[int, float]:
    """Return how alike each passage is to the mean of a sample of the index's ``passages``, -1..1."""
    percent = min(100.0, 100.0 * LIKENESS_SAMPLE / max(1, passages))
    rows = read(connection, index.name, "likeness_to_all", {"ids": numbers_value(ids), "percent": percent})
    return {row["id"]: float(row["likeness"]) for row in rows}


def documents_in_scope(connection: Connection, index: str, scope: ResolvedScope) -> list[str]:
    """Return the ids of the documents that have passages in a scope."""
    rows = read(connection, index, "documents_in_scope", scope_parameters(scope), scope=scope_statement(scope))
    return [row["document_id"] for row in rows]


def _shown(
    connection: Connection,
    index: str,
    name: str,
    parameters: Mapping[str, object],
    same_as: Index | None,
    parts: Mapping[str, str] = NO_PARTS,
) -> list[Row]:
    if same_as is None:
        return read(connection, index, name, parameters, **_SHOWN, **parts, condition="any_index")
    row = {
        "index": same_as.name,
        "created_at": same_as.created_at,
        "is_default": same_as.is_default,
        "embedding_model": same_as.embedding_model,
        "has_graph": same_as.has_graph,
        **SERVING,
    }
    named = {**_SHOWN, **parts, "condition": "same_index", "graph_serves": "graph_serves"}
    return read(connection, index, name, {**parameters, **row}, **named)
