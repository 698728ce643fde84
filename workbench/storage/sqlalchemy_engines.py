"""SQLAlchemy engines for the queries PGVectorStore brings along; one pair a database, nothing connected before use."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from workbench.storage.database import SETTINGS_OF_TRANSACTION, check_reachable, session_arguments

if TYPE_CHECKING:
    from sqlalchemy import Connection as SqlConnection
    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

_CONNECT_TIMEOUT = 10.0  # seconds
_engines: dict[str, tuple[Engine, AsyncEngine]] = {}
_lock = threading.Lock()


def engines(url: str) -> tuple[Engine, AsyncEngine]:
    """Return the (sync, async) engines for a libpq URL, both on psycopg 3."""
    with _lock:
        if url not in _engines:
            _engines[url] = _create(url)
        return _engines[url]


def dispose(url: str) -> None:
    """Close the sync engine's connections; the next use opens new ones."""
    with _lock:
        pair = _engines.pop(url, None)
    if pair is not None:
        pair[0].dispose()


def _create(url: str) -> tuple[Engine, AsyncEngine]:
    from psycopg.conninfo import conninfo_to_dict
    from sqlalchemy import create_engine
    from sqlalchemy.ext.asyncio import create_async_engine

    arguments = {key: value for key, value in conninfo_to_dict(url).items() if value is not None}
    # keyword arguments instead of a rewritten URL: sockets, passwords and options pass unharmed
    sync_engine = create_engine("postgresql+psycopg://", connect_args=arguments, pool_size=4, pool_pre_ping=True)
    async_engine = create_async_engine("postgresql+psycopg://", connect_args=arguments, pool_size=4, pool_pre_ping=True)
    for engine in (sync_engine, async_engine.sync_engine):
        _with_settings(engine, url)
    return sync_engine, async_engine


def _with_settings(engine: Engine, url: str) -> None:
    """Let an engine's connections have our settings: with the session, or in each transaction through a pooler."""
    from sqlalchemy import event

    pooled = functools.cache(functools.partial(check_reachable, url, _CONNECT_TIMEOUT))  # known with the first use

    def connecting(_dialect: object, _record: object, _values: object, arguments: dict[str, Any]) -> None:
        arguments.update(session_arguments(pooled()))

    def beginning(connection: SqlConnection) -> None:
        if pooled():
            connection.exec_driver_sql(SETTINGS_OF_TRANSACTION)

    event.listen(engine, "do_connect", connecting)
    event.listen(engine, "begin", beginning)
