"""SQLAlchemy engines for PGVectorStore's queries, one pair per database.

They are apart from ``llamaindex`` so that closing a workbench does not import that framework: another thread may be in
the middle of importing it, and then closing would fail.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from workbench.storage.database import SETTINGS_OF_TRANSACTION, check_reachable, session_arguments

if TYPE_CHECKING:
    from sqlalchemy import Connection as SqlConnection
    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

_CONNECT_TIMEOUT_S = 10.0  # seconds
_engines: dict[str, tuple[Engine, AsyncEngine]] = {}
_lock = threading.Lock()


def get_engines(url: str) -> tuple[Engine, AsyncEngine]:
    """Return the (sync, async) engines for a libpq URL, both on psycopg 3."""
    with _lock:
        if url not in _engines:
            _engines[url] = _create(url)
        return _engines[url]


def dispose_engine(url: str) -> None:
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
    # keyword arguments instead of a rewritten URL, which keeps sockets, passwords and options intact
    sync_engine = create_engine("postgresql+psycopg://", connect_args=arguments, pool_size=4, pool_pre_ping=True)
    async_engine = create_async_engine("postgresql+psycopg://", connect_args=arguments, pool_size=4, pool_pre_ping=True)
    for engine in (sync_engine, async_engine.sync_engine):
        _apply_settings(engine, url)
    return sync_engine, async_engine


def _apply_settings(engine: Engine, url: str) -> None:
    """Apply our settings to an engine's connections: per session, or per transaction through a pooler."""
    from sqlalchemy import event

    pooled = functools.cache(functools.partial(check_reachable, url, _CONNECT_TIMEOUT_S))  # evaluated at first use

    def connecting(_dialect: object, _record: object, _values: object, arguments: dict[str, Any]) -> None:
        arguments.update(session_arguments(pooled()))

    def beginning(connection: SqlConnection) -> None:
        if pooled():
            connection.exec_driver_sql(SETTINGS_OF_TRANSACTION)

    event.listen(engine, "do_connect", connecting)
    event.listen(engine, "begin", beginning)
