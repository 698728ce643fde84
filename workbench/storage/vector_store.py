"""One index's passages: LlamaIndex's PGVectorStore with bound filters, COPY inserts and the keyword index beside it.

The inherited queries serve ``llamaindex-hybrid`` and whoever builds on LlamaIndex; the strategies use the statements
in ``sql/search.sql`` through the methods below, each in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import MetadataFilter, VectorStoreQuery, VectorStoreQueryResult
from llama_index.vector_stores.postgres import PGVectorStore
from llama_index.vector_stores.postgres.base import DBEmbeddingRow
from numpy.typing import NDArray
from pydantic import PrivateAttr

from workbench.errors import InvalidInput
from workbench.storage.database import Database, clean, translated
from workbench.storage.filters import bound_clause
from workbench.storage.ranking import BRIEF, EXACT_UP_TO, Rows, around, best_rows, nearest_rows
from workbench.storage.rows import (
    Candidate,
    IndexTotals,
    NewPassage,
    QueryTerm,
    Scored,
    StoredPassage,
    TermWeights,
    scope_parameters,
    scope_statement,
    vector_from,
    vector_value,
)
from workbench.storage.sqlalchemy_engines import engines
from workbench.storage.statements import statement
from workbench.types import Index, ResolvedScope

_SHOWN = {"passage": "passage_columns", "document": "document_columns"}


class PassageStore(PGVectorStore):
    """The table ``data_<index>`` with its lexicon and postings."""

    _database: Database = PrivateAttr()
    _reader: Database = PrivateAttr()
    _index: Index = PrivateAttr()

    def __init__(self, database: Database, index: Index, reader: Database | None = None) -> None:
        """``reader`` is where searches go (a replica), by default the same database. Opens no connection."""
        sync_engine, async_engine = engines((reader or database).url)
        super().__init__(
            connection_string="postgresql+psycopg://",
            async_connection_string="postgresql+psycopg://",
            table_name=index.name,
            embed_dim=index.dimensions,
            hybrid_search=True,
            use_jsonb=True,
            use_halfvec=True,
            perform_setup=False,
            engine=sync_engine,
            async_engine=async_engine,
        )
        self._database, self._reader, self._index = database, reader or database, index

    @property
    def index(self) -> Index:
        """The index whose passages these are."""
        return self._index

    @property
    def database_url(self) -> str:
        """Where searches go: with the index's name it says which lexicon is whose."""
        return self._reader.url

    # --- LlamaIndex's interface -------------------------------------------------------------------------------------

    def _build_filter_clause(self, filter_: MetadataFilter) -> Any:
        return bound_clause(filter_)

    def _db_rows_to_query_result(self, rows: list[DBEmbeddingRow]) -> VectorStoreQueryResult:
        """Keep our metadata as it is: the rows hold no serialised LlamaIndex node."""
        from llama_index.core.schema import TextNode

        nodes = [TextNode(id_=row.node_id, text=row.text, metadata=dict(row.metadata)) for row in rows]
        return VectorStoreQueryResult(
            nodes=nodes, similarities=[float(row.similarity) for row in rows], ids=[row.node_id for row in rows]
        )

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Answer as the framework does; what the database refuses is told as everywhere in the house."""
        from sqlalchemy.exc import DBAPIError

        with translated(self._reader.url):
            try:
                return super().query(query, **kwargs)
            except DBAPIError as error:
                raise (error.orig or error) from error

    def add(self, nodes: Sequence[BaseNode], **add_kwargs: Any) -> list[str]:
        """Store embedded nodes whose metadata name an existing ``document_id`` and its ``source_id``.

        Raises:
            InvalidInput: a node without an embedding or without those two.
        """
        passages, vectors = [], []
        for ordinal, node in enumerate(nodes):
            passages.append(_passage_of(node, ordinal))
            vectors.append(node.get_embedding())
        with self._database.transaction() as connection:
            return self.insert(connection, passages, np.asarray(vectors, dtype=np.float32), [None] * len(passages))

    # --- writing ----------------------------------------------------------------------------------------------------

    def insert(
        self,
        connection: Any,
        passages: Sequence[NewPassage],
        vectors: NDArray[np.float32],
        token_bits: Sequence[bytes | None],
    ) -> list[str]:
        """Store passages by COPY in the caller's transaction; triggers keep the keyword index. Returns their ids."""
        ids = [passage.node_id(self._index.name) for passage in passages]
        copying = statement("copy_passages", self._index.name)
        with connection.cursor() as cursor, cursor.copy(copying) as copy:
            for node_id, passage, vector, bits in zip(ids, passages, vectors, token_bits, strict=True):
                copy.write_row(
                    (
                        node_id,
                        clean(passage.text),
                        passage.stored_metadata(self._index.name),
                        vector_value(vector),
                        passage.passage_hash,
                        bits,
                    )
                )
        return ids

    def known_embeddings(self, hashes: Sequence[bytes]) -> dict[bytes, tuple[NDArray[np.float32], bytes | None]]:
        """Return vector and token bits of the texts this index has embedded before, by passage hash."""
        rows = self._database.rows(statement("embeddings_by_hash", self._index.name), {"hashes": list(hashes)})
        return {bytes(row["passage_hash"]): (vector_from(row["embedding"]), row["token_bits"]) for row in rows}

    @contextmanager
    def bulk_load(self) -> Iterator[None]:
        """Leave the HNSW graph out while many passages come in, and build it at the end in one go.

        Searches by vector meanwhile read every row: for loads into an index that is not in use yet.
        """
        name = self._index.name
        self._database.rows(statement("vector_index_drop", name))
        try:
            yield
        finally:
            self._database.rows(statement("vector_index_create", name))
            self._database.autocommit(statement("analyse", name))

    # --- reading ----------------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Yield one connection for the statements of one search."""
        with self._reader.reading() as connection:
            yield connection

    def query_terms(self, connection: Any, query: str) -> tuple[IndexTotals, tuple[QueryTerm, ...]]:
        """Return the index's size and the query's terms in every language it holds."""
        rows = self._all(connection, "query_terms", {"index": self._index.name, "query": query})
        first = rows[0]
        totals = IndexTotals(int(first["all_passages"]), float(first["average_length"]), tuple(first["languages"]))
        terms = tuple(
            QueryTerm(row["term"], row["id"], int(row["df"]), int(row["position"] or 0), int(row["passages"]))
            for row in rows
            if row["term"] is not None
        )
        return totals, terms

    def held(self, connection: Any, scope: ResolvedScope) -> int:
        """Return how many passages a scope holds, counted no further than one more than ``EXACT_UP_TO``."""
        parameters = {**scope_parameters(scope), "cap": EXACT_UP_TO + 1}
        return self._all(connection, "count_in_scope", parameters, scope=scope_statement(scope))[0]["n"]

    def nearest(
        self,
        connection: Any,
        vector: NDArray[np.float32],
        scope: ResolvedScope,
        limit: int,
        held: int,
        terms: TermWeights | None = None,
    ) -> list[Scored]:
        """Return the passages in scope nearest to a vector, best first: cosine, and BM25 where ``terms`` are given.

        ``held`` is what the method of that name says of the scope.
        """
        read = partial(self._all, connection)
        if terms is not None and terms.ids:
            read = around(read, "nearest_with_bm25", terms.parameters())
        return _scored(nearest_rows(read, vector, scope, limit, held))

    def best_by_terms(
        self,
        connection: Any,
        terms: TermWeights,
        scope: ResolvedScope,
        limit: int,
        held: int,
        vector: NDArray[np.float32] | None = None,
        brief: int = BRIEF,
    ) -> list[Scored]:
        """Return the passages in scope with the highest BM25 scores, best first; cosine where a ``vector`` is given.

        ``held`` is as for ``nearest``. Up to ``brief`` postings of all terms together are read without a bar.
        """
        read = partial(self._all, connection)
        if vector is not None:
            read = around(read, "best_with_cosine", {"vector": vector_value(vector)})
        inside = partial(self.in_scope, connection, scope)
        return _scored(best_rows(read, inside, terms, scope, limit, held, brief))

    def cosines(self, connection: Any, vector: NDArray[np.float32], ids: Sequence[int]) -> dict[int, float]:
        """Return the cosine similarity of given passages with a vector."""
        return dict(self._candidates(connection, "cosines_of", {"vector": vector_value(vector), "ids": list(ids)}))

    def term_scores(self, connection: Any, terms: TermWeights, ids: Sequence[int]) -> dict[int, float]:
        """Return the BM25 scores of given passages; those without any of the terms are left out."""
        if not terms.ids:
            return {}
        return dict(self._candidates(connection, "bm25_of", {**terms.parameters(), "ids": list(ids)}))

    def term_shares(self, connection: Any, terms: TermWeights, passage: int) -> list[tuple[str, int, float]]:
        """Return (term, frequency, share of the BM25 score) for one passage, largest first."""
        rows = self._all(connection, "bm25_by_term", {**terms.parameters(), "passage": passage}) if terms.ids else []
        return [(row["term"], int(row["tf"]), float(row["score"])) for row in rows]

    def passages(self, connection: Any, ids: Sequence[int], *, only_same: bool = False) -> dict[int, StoredPassage]:
        """Return given passages with what their documents say of themselves.

        With ``only_same`` none where the index's row is no longer the one that this store was made for.
        """
        rows = self._shown(connection, "passages_by_id", {"ids": list(ids)}, only_same)
        return {row["id"]: StoredPassage(**row) for row in rows}

    def nearest_passages(
        self, connection: Any, vector: NDArray[np.float32], limit: int, *, only_same: bool = False
    ) -> list[tuple[StoredPassage, float]]:
        """Return the passages of the whole index nearest to a vector with their cosines, best first.

        What ``nearest`` and ``passages`` do in one statement; ``only_same`` as there.
        """
        parameters = {"vector": vector_value(vector), "limit": limit}
        rows = self._shown(connection, "nearest_passages", parameters, only_same)
        rows.sort(key=lambda row: (-row["score"], row["id"]))  # here rather than by a sort node that is planned anew
        scores = [float(row.pop("score")) for row in rows]
        return [(StoredPassage(**row), score) for row, score in zip(rows, scores, strict=True)]

    def passages_of_document(self, document_id: str) -> list[StoredPassage]:
        """Return all passages of a document in reading order."""
        with self.reading() as connection:
            rows = self._all(connection, "passages_of_document", {"document_id": document_id}, **_SHOWN)
        return [StoredPassage(**row) for row in rows]

    def token_bits(self, connection: Any, ids: Sequence[int]) -> dict[int, bytes]:
        """Return the one-bit token vectors of given passages, where they have some."""
        rows = self._all(connection, "token_bits_by_id", {"ids": list(ids)})
        return {row["id"]: bytes(row["token_bits"]) for row in rows if row["token_bits"] is not None}

    def vectors(self, connection: Any, ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """Return the stored vectors of given passages."""
        rows = self._all(connection, "embeddings_by_id", {"ids": list(ids)})
        return {row["id"]: vector_from(row["embedding"]) for row in rows}

    def in_scope(self, connection: Any, scope: ResolvedScope, ids: Sequence[int]) -> set[int]:
        """Return which of the given passages lie in a scope."""
        if scope.is_empty:
            return set()
        parameters = {"ids": list(ids), **scope_parameters(scope)}
        return {row["id"] for row in self._all(connection, "ids_in_scope", parameters, scope=scope_statement(scope))}

    def documents_in_scope(self, connection: Any, scope: ResolvedScope) -> list[str]:
        """Return the ids of the documents that have passages in a scope."""
        rows = self._all(connection, "documents_in_scope", scope_parameters(scope), scope=scope_statement(scope))
        return [row["document_id"] for row in rows]

    def internal_ids(self, connection: Any, passage_ids: Sequence[str]) -> dict[str, int]:
        """Return the internal ids behind public passage ids, of those that there are."""
        rows = self._all(connection, "ids_of_passages", {"node_ids": list(passage_ids)})
        return {row["node_id"]: row["id"] for row in rows}

    def _all(self, connection: Any, name: str, parameters: Mapping[str, Any], **parts: str) -> Rows:
        return connection.execute(statement(name, self._index.name, **parts), clean(parameters)).fetchall()

    def _shown(self, connection: Any, name: str, parameters: Mapping[str, Any], only_same: bool) -> Rows:
        if not only_same:
            return self._all(connection, name, parameters, **_SHOWN, condition="any_index")
        row = ("created_at", "is_default", "embedding_model")
        same = {"index": self._index.name, **{name: getattr(self._index, name) for name in row}}
        return self._all(connection, name, {**parameters, **same}, **_SHOWN, condition="same_index")

    def _candidates(self, connection: Any, name: str, parameters: Mapping[str, Any], **parts: str) -> list[Candidate]:
        return [(row["id"], float(row["score"])) for row in self._all(connection, name, parameters, **parts)]


def _scored(rows: Rows) -> list[Scored]:
    return [(row["id"], float(row["score"]), row.get("other")) for row in rows]


def _passage_of(node: BaseNode, ordinal: int) -> NewPassage:
    metadata = dict(node.metadata)
    try:
        document_id, source_id = str(metadata.pop("document_id")), str(metadata.pop("source_id"))
    except KeyError as error:
        raise InvalidInput(
            f"A node needs {error} in its metadata: every passage belongs to a stored document."
        ) from error
    text = node.get_content(MetadataMode.NONE)
    return NewPassage(
        document_id=document_id,
        source_id=source_id,
        text=text,
        context=str(metadata.pop("context", "")),
        start=int(metadata.pop("start", 0)),
        end=int(metadata.pop("end", len(text))),
        ordinal=int(metadata.pop("ordinal", ordinal)),
        language=str(metadata.pop("language", "english")),
        metadata=metadata,
    )
