"""LlamaIndex's PGVectorStore as it comes, in a table of its own: what the bench compares with."""

from __future__ import annotations

from llama_index.vector_stores.postgres import PGVectorStore

from workbench.storage.database import Database
from workbench.storage.statements import statement
from workbench.types import Index

# As the framework's documentation shows: HNSW as pgvector's defaults have it, full vectors, English full text.
HNSW = {"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 40, "hnsw_dist_method": "vector_cosine_ops"}


def framework_copy(database: Database, index: Index) -> PGVectorStore:
    """Copy an index's passages into the framework's own table and return its store, HNSW built at the end."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from sqlalchemy import create_engine
    from sqlalchemy.ext.asyncio import create_async_engine

    arguments: dict[str, object] = {
        key: value for key, value in conninfo_to_dict(database.url).items() if value is not None
    }
    arguments["cursor_factory"] = psycopg.ClientCursor  # the framework binds a parameter in SET, which a server refuses
    sync_engine = create_engine("postgresql+psycopg://", connect_args=arguments)
    async_engine = create_async_engine("postgresql+psycopg://", connect_args=arguments | {"cursor_factory": None})
    store = PGVectorStore(
        table_name=f"framework_{index.name}",
        embed_dim=index.dimensions,
        hybrid_search=True,
        hnsw_kwargs=None,
        engine=sync_engine,
        async_engine=async_engine,
    )
    database.rows(statement("bench_framework_drop", index.name))
    store._initialize()  # pyright: ignore[reportPrivateUsage]
    database.rows(statement("bench_copy_to_framework", index.name))
    store.hnsw_kwargs = dict(HNSW)
    store._create_hnsw_index()  # pyright: ignore[reportPrivateUsage]
    database.autocommit(statement("bench_framework_analyse", index.name))
    return store
