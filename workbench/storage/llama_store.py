"""One index's passages as a store of LlamaIndex: its PGVectorStore over the same table, with bound filters.

It serves ``llamaindex-hybrid`` and those who build on LlamaIndex. The strategies need none of it, nor of the drivers
and dialects that it brings along.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from llama_index.vector_stores.postgres import PGVectorStore
from llama_index.vector_stores.postgres.base import DBEmbeddingRow
from psycopg.errors import UndefinedTable
from pydantic import PrivateAttr
from sqlalchemy import Column, Integer, MetaData, Select, Table, TextClause, func, literal_column, select
from sqlalchemy.dialects.postgresql import REGCONFIG, TSVECTOR
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import cast

from workbench.errors import InvalidInput
from workbench.storage.database import Database
from workbench.storage.driver_errors import translated
from workbench.storage.filters import bound_clause
from workbench.storage.replica import Replica
from workbench.storage.rows import NewPassage, insert_passages
from workbench.storage.sqlalchemy_engines import engines
from workbench.storage.statements import statement
from workbench.types import Index

_NO_WORD = re.compile(r"(?!\b\.\b)\W+")  # as the framework has it: points within words stay


class LlamaStore(PGVectorStore):
    """The table ``data_<index>`` to LlamaIndex; its nodes carry our metadata, not a serialised node.

    The framework's full text lies in a table beside it, ``full_text_<index>``, which the first query by words makes.
    """

    _database: Database = PrivateAttr()
    _reader: Database = PrivateAttr()
    _index: Index = PrivateAttr()

    def __init__(self, database: Database, index: Index, reader: Database | None = None) -> None:
        """Take ``reader``, the database for queries (a replica), by default the same one. Opens no connection."""
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

    def query(self, query: VectorStoreQuery, **kwargs: object) -> VectorStoreQueryResult:
        """Answer as the framework does; a refusal of the database is told as everywhere in the house."""
        if isinstance(self._reader, Replica):
            with self._reader.reading():  # says whether it is away
                pass
            if self._reader.is_away:
                return self._of_primary().query(query, **kwargs)
        watched = self._reader.noticing_loss() if isinstance(self._reader, Replica) else nullcontext()
        with translated(self._reader.url), watched:
            try:
                return super().query(query, **kwargs)
            except DBAPIError as error:
                if isinstance(error.orig, UndefinedTable) and isinstance(self._reader, Replica):
                    return self._of_primary().query(query, **kwargs)  # the full text was only just made
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
        embedded = np.asarray(vectors, dtype=np.float32)
        with self._database.transaction() as connection:
            return insert_passages(connection, self._index.name, passages, embedded, [None] * len(passages))

    def _of_primary(self) -> LlamaStore:
        return LlamaStore(self._database, self._index)

    def _build_sparse_query(
        self,
        query_str: str | None,
        limit: int,
        metadata_filters: MetadataFilters | None = None,
        **kwargs: object,
    ) -> Select[Any]:
        """Select as the framework does, from the terms that ``full_text_<index>`` keeps."""
        words = _NO_WORD.sub(" ", query_str or "").strip().replace(" ", "|")
        asked = func.to_tsquery(cast(self.text_search_config, REGCONFIG), words)
        passages, full_text = self._table_class, self._full_text()
        chosen = select(
            passages.id,
            passages.node_id,
            passages.text,
            passages.metadata_,
            func.ts_rank(full_text.c.text_search_tsv, asked).label("rank"),
        ).join_from(full_text, passages, passages.id == full_text.c.passage_id)
        matching = chosen.where(full_text.c.text_search_tsv.op("@@")(asked)).order_by(literal_column("rank").desc())
        return self._apply_filters_and_limit(matching, limit, metadata_filters)

    def _full_text(self) -> Table:
        """Return the table of the passages' terms, made where nothing has asked for it before."""
        self._database.rows(statement("full_text_create"), {"name": self._index.name})
        columns = Column("passage_id", Integer), Column("text_search_tsv", TSVECTOR)
        return Table(f"full_text_{self._index.name}", MetaData(), *columns)

    def _build_filter_clause(self, filter_: MetadataFilter) -> TextClause:
        return bound_clause(filter_)

    def _db_rows_to_query_result(self, rows: list[DBEmbeddingRow]) -> VectorStoreQueryResult:
        nodes = [TextNode(id_=row.node_id, text=row.text, metadata=dict(row.metadata)) for row in rows]
        return VectorStoreQueryResult(
            nodes=nodes, similarities=[float(row.similarity) for row in rows], ids=[row.node_id for row in rows]
        )


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
