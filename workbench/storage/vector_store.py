"""One index's passages: LlamaIndex's PGVectorStore with bound filters, COPY inserts and the keyword index beside it.

The inherited queries serve ``llamaindex-hybrid`` and those who build on LlamaIndex. The strategies read the same table
by statements of their own: ``ranking``, ``scores``, ``passages`` and ``lexicon`` over a connection from ``reading``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import MetadataFilter, VectorStoreQuery, VectorStoreQueryResult
from llama_index.vector_stores.postgres import PGVectorStore
from llama_index.vector_stores.postgres.base import DBEmbeddingRow
from numpy.typing import NDArray
from pydantic import PrivateAttr

from workbench.errors import InvalidInput
from workbench.storage.database import Connection, Database, clean
from workbench.storage.driver_errors import translated
from workbench.storage.filters import bound_clause
from workbench.storage.replica import Replica
from workbench.storage.rows import NewPassage, vector_from, vector_value
from workbench.storage.side_read import Fetched, side_read
from workbench.storage.sqlalchemy_engines import engines
from workbench.storage.statements import statement
from workbench.types import Index

if TYPE_CHECKING:
    from sqlalchemy import TextClause


class PassageStore(PGVectorStore):
    """The table ``data_<index>`` with its lexicon and postings."""

    _database: Database = PrivateAttr()
    _reader: Database = PrivateAttr()
    _index: Index = PrivateAttr()

    def __init__(self, database: Database, index: Index, reader: Database | None = None) -> None:
        """Take ``reader``, the database for searches (a replica), by default the same one. Opens no connection."""
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
        """The URL of the database for searches: with the index's name it says which lexicon is whose."""
        return self._reader.url

    @property
    def replica_is_away(self) -> bool:
        """True while searches go to the primary, because the replica cannot be reached."""
        return isinstance(self._reader, Replica) and self._reader.is_away

    # --- LlamaIndex's interface -------------------------------------------------------------------------------------

    def _build_filter_clause(self, filter_: MetadataFilter) -> TextClause:
        return bound_clause(filter_)

    def _db_rows_to_query_result(self, rows: list[DBEmbeddingRow]) -> VectorStoreQueryResult:
        """Keep our metadata as it is: the rows hold no serialised LlamaIndex node."""
        from llama_index.core.schema import TextNode

        nodes = [TextNode(id_=row.node_id, text=row.text, metadata=dict(row.metadata)) for row in rows]
        return VectorStoreQueryResult(
            nodes=nodes, similarities=[float(row.similarity) for row in rows], ids=[row.node_id for row in rows]
        )

    def query(self, query: VectorStoreQuery, **kwargs: object) -> VectorStoreQueryResult:
        """Answer as the framework does; a refusal of the database is told as everywhere in the house."""
        from sqlalchemy.exc import DBAPIError

        if isinstance(self._reader, Replica):
            with self._reader.reading():  # says whether it is away
                pass
            if self._reader.is_away:
                return PassageStore(self._database, self._index).query(query, **kwargs)
        with translated(self._reader.url):
            try:
                return super().query(query, **kwargs)
            except DBAPIError as error:
                raise (error.orig or error) from error

    def add(self, nodes: Sequence[BaseNode], **add_kwargs: object) -> list[str]:
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
        connection: Connection,
        passages: Sequence[NewPassage],
        vectors: Iterable[NDArray[np.float32]],
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
    def bulk_load(self) -> Generator[None]:
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
    def reading(self) -> Generator[Connection]:
        """Yield one connection for the statements of one search."""
        with self._reader.reading() as connection:
            yield connection

    def beside(self, connection: Connection, read: Callable[[Connection], Fetched]) -> Callable[[], Fetched]:
        """Begin a read of a search beside what goes on over its ``connection``; return the call for its result."""
        return side_read(self._reader, connection, read)


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
