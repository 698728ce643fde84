"""An index as LlamaIndex's PGVectorStore over the same table, with bound filters.

It is used by ``llamaindex-hybrid`` and by code that builds on LlamaIndex. Other strategies need neither this module nor
the drivers and dialects that it imports.
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
from sqlalchemy import (
    Column,
    Integer,
    MetaData,
    Select,
    Table,
    TextClause,
    bindparam,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import REGCONFIG, TSVECTOR
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import cast

from workbench.errors import InvalidInput, list_choices
from workbench.storage.database import Database, clean_parameters, get_engines, statement, translate_errors
from workbench.storage.passages import NewPassage, insert_passages
from workbench.storage.replica import Replica
from workbench.types import Index

# Metadata filters as SQL with bound parameters, so that values never become SQL

_COMPARISONS = ("==", "!=", ">", "<", ">=", "<=")
_CONDITIONS = {
    "in": "metadata_ ->> :key = ANY(:value)",
    "nin": "NOT (metadata_ ->> :key = ANY(:value))",
    "any": "jsonb_exists_any(metadata_::jsonb -> :key, :value)",
    "all": "jsonb_exists_all(metadata_::jsonb -> :key, :value)",
    "contains": "jsonb_exists(metadata_::jsonb -> :key, :value)",
    "text_match": "strpos(metadata_ ->> :key, :value) > 0",
    "text_match_insensitive": "strpos(lower(metadata_ ->> :key), :value) > 0",
    "is_empty": "metadata_ ->> :key IS NULL",
}


def make_filter_clause(filter_: MetadataFilter) -> TextClause:
    """Return a SQLAlchemy condition on ``metadata_`` for one filter.

    Numbers are compared with numeric values only (other rows do not match), texts as text.

    Raises:
        InvalidInput: The operator is not supported.
    """
    operator, value = filter_.operator.value, filter_.value
    if operator in _COMPARISONS:
        sign = operator.replace("==", "=")
        condition = f"metadata_ ->> :key {sign} :value"
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, int | float):
            condition = (
                "CASE WHEN jsonb_typeof(metadata_::jsonb -> :key) = 'number' "
                f"THEN (metadata_::jsonb ->> :key)::float8 {sign} :value ELSE false END"
            )
    elif operator in _CONDITIONS:
        condition = _CONDITIONS[operator]
    else:
        valid = list_choices([*_COMPARISONS, *_CONDITIONS], 20)
        raise InvalidInput(f"Unsupported operator {operator!r} in a metadata filter; use one of {valid}.")
    bound: dict[str, object] = {"key": clean_parameters(str(filter_.key))}
    if operator in ("in", "nin", "any", "all"):
        bound["value"] = [
            clean_parameters(str(item)) for item in (value if isinstance(value, list | tuple) else [value])
        ]
    elif operator in _COMPARISONS and isinstance(value, int | float):
        bound["value"] = float(value)
    elif operator != "is_empty":
        shown = clean_parameters(str(value))
        bound["value"] = shown.lower() if operator == "text_match_insensitive" else shown
    # under unique names, since several filters may be joined
    return text(condition).bindparams(*(bindparam(name, one, unique=True) for name, one in bound.items()))


_NO_WORD = re.compile(r"(?!\b\.\b)\W+")  # as in the framework: dots inside words are kept


class LlamaStore(PGVectorStore):
    """The table ``data_<index>`` for LlamaIndex; its nodes have our metadata, not a serialised node.

    The framework's full text is in a separate table, ``full_text_<index>``, which the first keyword query creates.
    """

    _database: Database = PrivateAttr()
    _reader: Database = PrivateAttr()
    _index: Index = PrivateAttr()

    def __init__(self, database: Database, index: Index, reader: Database | None = None) -> None:
        """Configure the store without connecting; ``reader`` is the database for queries (default: the same)."""
        sync_engine, async_engine = get_engines((reader or database).url)
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
        """Answer like the framework; database errors are translated as elsewhere in the workbench."""
        if isinstance(self._reader, Replica):
            with self._reader.reading():  # finds out whether the replica is available
                pass
            if self._reader.is_away:
                return self._of_primary().query(query, **kwargs)
        watched = self._reader.detect_loss() if isinstance(self._reader, Replica) else nullcontext()
        with translate_errors(self._reader.url), watched:
            try:
                return super().query(query, **kwargs)
            except DBAPIError as error:
                if isinstance(error.orig, UndefinedTable) and isinstance(self._reader, Replica):
                    return self._of_primary().query(query, **kwargs)  # the full text has just been created
                raise (error.orig or error) from error

    def add(self, nodes: Sequence[BaseNode], **add_kwargs: object) -> list[str]:
        """Store embedded nodes whose metadata contain an existing ``document_id`` and its ``source_id``.

        Raises:
            InvalidInput: A node has no embedding, or lacks those ids.
        """
        passages, vectors = [], []
        for ordinal, node in enumerate(nodes):
            passages.append(_make_passage(node, ordinal))
            vectors.append(node.get_embedding())
        embedded = np.asarray(vectors, dtype=np.float32)
        with self._database.transaction() as connection:
            return insert_passages(connection, self._index.name, passages, embedded, [None] * len(passages))

    def _of_primary(self) -> LlamaStore:
        return LlamaStore(self._database, self._index)

    def _build_sparse_query(
        self, query_str: str | None, limit: int, metadata_filters: MetadataFilters | None = None, **kwargs: object
    ) -> Select[Any]:
        """Select like the framework, using the terms in ``full_text_<index>``."""
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
        self._database.rows(statement("full_text_create"), {"name": self._index.name})
        columns = Column("passage_id", Integer), Column("text_search_tsv", TSVECTOR)
        return Table(f"full_text_{self._index.name}", MetaData(), *columns)

    def _build_filter_clause(self, filter_: MetadataFilter) -> TextClause:
        return make_filter_clause(filter_)

    def _db_rows_to_query_result(self, rows: list[DBEmbeddingRow]) -> VectorStoreQueryResult:
        nodes = [TextNode(id_=row.node_id, text=row.text, metadata=dict(row.metadata)) for row in rows]
        return VectorStoreQueryResult(
            nodes=nodes, similarities=[float(row.similarity) for row in rows], ids=[row.node_id for row in rows]
        )


def _make_passage(node: BaseNode, ordinal: int) -> NewPassage:
    metadata = dict(node.metadata)
    try:
        document_id, source_id = str(metadata.pop("document_id")), str(metadata.pop("source_id"))
    except KeyError as error:
        raise InvalidInput(
            f"A node has no {error} in its metadata, but every passage needs a stored document."
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
