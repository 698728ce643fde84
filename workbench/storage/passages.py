"""Stored passages by id, by document and by similarity, with the metadata of their documents."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from workbench.errors import NotFound
from workbench.storage.database import Connection, Row, bind_integers, bind_json, clean_parameters, statement
from workbench.storage.graph import SERVING_PARAMETERS
from workbench.types import Index, JsonValue, ResolvedScope, as_integer

# The text that the model reads: context, a blank line, and the text without table markup

BAR = re.compile(r"(?<!\\)\|")
RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")


def text_to_embed(context: str, text: str) -> str:
    """Return the text that the model encodes for a passage with this context ("" for none)."""
    words = blank_table_markup(text)
    return f"{context}\n\n{words}" if context else words


def blank_table_markup(text: str) -> str:
    """Replace table bars and header rules with spaces; the length does not change."""
    if "|" not in text:
        return text
    lines = text.split("\n")
    for place, line in enumerate(lines):
        if line.strip().startswith("|") or line.strip().endswith("|"):
            lines[place] = " " * len(line) if RULE.fullmatch(line) else BAR.sub(" ", line)
    return "\n".join(lines)


# Rows of an index's table

PROPERTIES_PREDICATE = "scope_properties"  # the predicate on properties of documents
SOURCE_PREDICATES = ("scope_everything", "scope_sources")  # those without conditions on documents


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A passage before it is stored."""

    document_id: str
    source_id: str
    text: str  # the document's text from ``start`` to ``end``
    context: str  # title and headings: embedded and indexed with the text, but not shown as text
    start: int
    end: int
    ordinal: int  # from 0 within the document
    language: str
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def text_to_embed(self) -> str:
        return text_to_embed(self.context, self.text)

    @property
    def passage_hash(self) -> bytes:
        """16 bytes that are equal if the embedded text is equal."""
        return hashlib.blake2b(self.text_to_embed.encode(), digest_size=16).digest()

    def node_id(self, index: str) -> str:
        """Return the public id; a passage with the same text at the same position keeps it across rebuilds."""
        place = f"{index}|{self.document_id}|{self.start}|{self.end}|".encode() + self.passage_hash
        return "psg_" + hashlib.blake2b(place, digest_size=9).hexdigest()

    def to_metadata(self, index: str) -> Jsonb:
        """Return the JSON of ``metadata_``, with what the table's generated columns and LlamaIndex need."""
        names = ("document_id", "source_id", "context", "start", "end", "ordinal", "language")
        own = {name: getattr(self, name) for name in names}
        return Jsonb({**self.metadata, **own, "ref_doc_id": self.document_id, "index": index})


def make_row_id(index: str, key: str) -> str:
    """Return the public id of the passage that is a row of an attached table, by the row's id."""
    return "psg_" + hashlib.blake2b(f"{index}|row|{key}".encode(errors="replace"), digest_size=9).hexdigest()


@dataclass(frozen=True, slots=True)
class RowPassage(NewPassage):
    """A row of an attached table before it is stored; its vector stays in the table."""

    key: str = ""  # the row's id
    row_hash: bytes = b""  # of its text and metadata

    @property
    def passage_hash(self) -> bytes:
        """The hash that reveals a change of the row."""
        return self.row_hash

    def node_id(self, index: str) -> str:
        """Return the public id, which does not change with the text."""
        return make_row_id(index, self.key)


@dataclass(frozen=True, slots=True)
class StoredPassage:
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
        """Its start and end in the document's text, in characters."""
        return as_integer(self.metadata["start"]), as_integer(self.metadata["end"])

    @property
    def ordinal(self) -> int:
        """Its position among the document's passages, from 0."""
        return as_integer(self.metadata["ordinal"])


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A term of the query with its entry in the lexicon."""

    term: str
    id: int | None  # None if no passage in scope has the term
    df: int  # passages in scope with the term
    position: int = 0  # of its word in the query, from 1 (the first, if several words have the term)
    # Passages in languages whose analysis gives this term. ``df`` is relative to these: relative to all, a stop word of
    # most passages' language would seem rare, because only the few others index it.
    passages: int = 0
    postings: int = 0  # passages of the whole index with the term, which is what reading them costs
    entries: bytes | None = None  # these postings; None if they were not read with the term
    replaces: int = 0  # number of words, from its position, of which it is another spelling; 0 if it was typed


@dataclass(frozen=True, slots=True)
class ScopeTotals:
    passages: int
    average_length: float  # in terms
    languages: tuple[str, ...]
    version: tuple[str, datetime | None] = ("", None)  # changes whenever documents of the index do


@dataclass(frozen=True, slots=True)
class TermWeights:
    """BM25 weights in the form postings need: score = sum of weight * tf / (tf + a + c * length) over the terms."""

    ids: tuple[int, ...]
    weights: tuple[float, ...]
    counts: tuple[int, ...]  # postings of each term
    a: float
    c: float
    passages: int  # in scope
    # postings read with the terms
    entries: Mapping[int, bytes] = field(default_factory=dict[int, bytes], compare=False)

    def weight(self, term: int) -> float:
        """Return the weight of a term, given its id, summed over its occurrences in the query."""
        return sum(weight for of, weight in zip(self.ids, self.weights, strict=True) if of == term)

    @property
    def postings(self) -> dict[int, int]:
        """The number of passages with each term, by its id."""
        return dict(zip(self.ids, self.counts, strict=True))


def fetch_rows(
    connection: Connection, index: str, name: str, parameters: Mapping[str, object], /, **parts: str | int
) -> list[Row]:
    """Run a named statement over the tables of an index and return its rows; ``parts`` as in ``statement``."""
    # Planned for its values, because a scope contains ten passages or a million. The graph only pays for few results,
    # so the limit of its walk is part of the text, and the plan can be kept: planning took a quarter of the statement.
    prepare = None if parts.get("scope", "scope_everything") == "scope_everything" else False
    return connection.execute(statement(name, index, **parts), clean_parameters(parameters), prepare=prepare).fetchall()


def insert_passages(
    connection: Connection,
    index: str,
    passages: Sequence[NewPassage],
    vectors: Iterable[NDArray[np.float32] | None],
    token_bits: Sequence[bytes | None],
) -> list[str]:
    """Store passages by COPY in the caller's transaction and return their ids; triggers update the keyword index."""
    ids = [passage.node_id(index) for passage in passages]
    with connection.cursor() as cursor, cursor.copy(statement("copy_passages", index)) as copy:
        for node_id, passage, vector, bits in zip(ids, passages, vectors, token_bits, strict=True):
            metadata, embedding = passage.to_metadata(index), None if vector is None else bind_vector(vector)
            copy.write_row((node_id, clean_parameters(passage.text), metadata, embedding, passage.passage_hash, bits))
    return ids


def bind_vector(vector: NDArray[np.float32]) -> HalfVector:
    """Return a vector as a bound value of two bytes per number, without converting it to text."""
    return HalfVector(vector)


def parse_vector(literal: str) -> NDArray[np.float32]:
    """Parse a vector in pgvector's text form."""
    return np.array(literal[1:-1].split(","), dtype=np.float32)


def parse_sent_vector(sent: bytes) -> NDArray[np.float32]:
    """Parse the output of ``halfvec_send``: two 16-bit numbers, then big-endian half floats."""
    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float32)


def choose_scope_predicate(scope: ResolvedScope) -> str:
    if scope.is_everything:
        return "scope_everything"
    if scope.document_types or scope.languages or scope.metadata or scope.since is not None or scope.until is not None:
        return PROPERTIES_PREDICATE
    return "scope_sources" if scope.document_ids is None and not scope.without_documents else "scope_documents"


def scope_parameters(scope: ResolvedScope) -> dict[str, object]:
    return {
        "source_ids": None if scope.source_ids is None else list(scope.source_ids),
        "document_ids": None if scope.document_ids is None else list(scope.document_ids),
        "document_types": list(scope.document_types) or None,
        "languages": list(scope.languages) or None,
        "metadata": bind_json({name: list(values) for name, values in scope.metadata}) if scope.metadata else None,
        "without": list(scope.without_documents) or None,
        "since": scope.since,
        "until": scope.until,
    }


HUBNESS_SAMPLE_SIZE = 2000  # passages whose mean represents an index


def fetch_passages(
    connection: Connection, index: str, ids: Sequence[int], same_as: Index | None = None
) -> dict[int, StoredPassage]:
    """Return given passages; with ``same_as``, none if the index has changed since then."""
    rows = _fetch_shown(connection, index, "passages_by_id", {"ids": bind_integers(ids)}, same_as)
    return {row["id"]: StoredPassage(**row) for row in rows}


def find_nearest_passages(
    connection: Connection, index: Index, vector: NDArray[np.float32], limit: int, same_as: Index | None = None
) -> list[tuple[StoredPassage, float]]:
    """Return the passages of the whole index nearest to a vector with their cosines, best first.

    It combines ``ranking.nearest`` and ``fetch_passages`` in one statement; ``same_as`` as in the latter.
    """
    values = {"vector": bind_vector(vector), "limit": limit, "index": index.name}
    name = "nearest_passages" if index.has_graph else "nearest_passages_exact"
    parts = {"limit": limit} if index.has_graph else {}
    rows = _fetch_shown(connection, index.name, name, values, same_as, **parts)
    rows.sort(key=lambda row: (-row["score"], row["id"]))  # cheaper than planning a sort node
    scores = [float(row.pop("score")) for row in rows]
    return [(StoredPassage(**row), score) for row, score in zip(rows, scores, strict=True)]


def fetch_document_passages(connection: Connection, index: str, document_id: str) -> list[StoredPassage]:
    rows = fetch_rows(connection, index, "passages_of_document", {"document_id": document_id})
    return [StoredPassage(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A stored document that a foreign retriever's hit may refer to; ``inside`` if it is in the index and the scope."""

    id: str
    key: str
    path: str | None
    url: str | None
    indexed: bool
    inside: bool


def find_named_documents(
    connection: Connection, index: str, scope: ResolvedScope, ids: Sequence[str], urls: Sequence[str], path: str
) -> list[NamedDocument]:
    """Return the stored documents that have one of the ids, keys or URLs, or the file name of a path."""
    file = path.replace("\\", "/").rpartition("/")[2]
    values = {"ids": list(ids), "urls": list(urls), "file": file, "index": index, **scope_parameters(scope)}
    rows = fetch_rows(connection, index, "named_by_hits", values, scope=choose_scope_predicate(scope))
    documents = [NamedDocument(**row) for row in rows]
    return [replace(document, inside=False) for document in documents] if scope.is_empty else documents


def fetch_passage(connection: Connection, index: str, passage_id: str) -> StoredPassage:
    """Return a passage by its public id. Raises NotFound."""
    number = fetch_internal_ids(connection, index, [passage_id]).get(passage_id)
    if number is None:
        raise NotFound("passage", passage_id, "Search results contain the ids.")
    return fetch_passages(connection, index, [number])[number]


def fetch_document_ids(connection: Connection, index: str, ids: Sequence[int]) -> dict[int, str]:
    rows = fetch_rows(connection, index, "documents_of_passages", {"ids": bind_integers(ids)})
    return {row["id"]: row["document_id"] for row in rows}


def fetch_internal_ids(connection: Connection, index: str, passage_ids: Sequence[str]) -> dict[str, int]:
    """Return internal ids by public passage id; unknown ones are omitted."""
    rows = fetch_rows(connection, index, "ids_of_passages", {"node_ids": list(passage_ids)})
    return {row["node_id"]: row["id"] for row in rows}


def fetch_token_bits(connection: Connection, index: str, ids: Sequence[int]) -> dict[int, bytes]:
    """Return the one-bit token vectors of given passages, 16 bytes per token; passages without any are omitted."""
    rows = fetch_rows(connection, index, "token_bits_by_id", {"ids": bind_integers(ids)})
    return {row["id"]: bytes(row["token_bits"]) for row in rows if row["token_bits"] is not None}


def fetch_vectors(connection: Connection, index: str, ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    rows = fetch_rows(connection, index, "embeddings_by_id", {"ids": bind_integers(ids)})
    return {row["id"]: parse_sent_vector(row["embedding"]) for row in rows}


def hubness(
    connection: Connection, index: str, scope: ResolvedScope, ids: Sequence[int], passages: int
) -> dict[int, float]:
    """Return the cosine (-1..1) between each passage and the mean of a sample of the ``passages`` of a scope."""
    percent = min(100.0, 100.0 * HUBNESS_SAMPLE_SIZE / max(1, passages))
    step = max(1, passages // HUBNESS_SAMPLE_SIZE)
    sample = "sample_of_index" if scope.is_everything else "sample_of_scope"
    values = {"ids": bind_integers(ids), "percent": percent, "step": step, **scope_parameters(scope)}
    rows = fetch_rows(connection, index, "hubness", values, sample=sample, scope=choose_scope_predicate(scope))
    return {row["id"]: float(row["likeness"]) for row in rows}


def fetch_documents_in_scope(connection: Connection, index: str, scope: ResolvedScope) -> list[str]:
    predicate = choose_scope_predicate(scope)
    rows = fetch_rows(connection, index, "documents_in_scope", scope_parameters(scope), scope=predicate)
    return [row["document_id"] for row in rows]


def _fetch_shown(
    connection: Connection,
    index: str,
    name: str,
    parameters: Mapping[str, object],
    same_as: Index | None,
    **parts: int,
) -> list[Row]:
    if same_as is None:
        return fetch_rows(connection, index, name, parameters, **parts, condition="any_index")
    checked = ("created_at", "is_default", "embedding_model", "has_graph")
    row = {"index": same_as.name, **{name: getattr(same_as, name) for name in checked}, **SERVING_PARAMETERS}
    return fetch_rows(connection, index, name, {**parameters, **row}, **parts, condition="same_index")
