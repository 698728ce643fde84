"""SQLAlchemy engines for the queries PGVectorStore brings along; one pair a database, nothing connected before use."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from workbench.storage.database import SESSION_OPTIONS

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

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
    arguments["options"] = " ".join(f"-c {name}={value}" for name, value in SESSION_OPTIONS.items())
    # keyword arguments instead of a rewritten URL: sockets, passwords and options pass unharmed
    sync_engine = create_engine("postgresql+psycopg://", connect_args=arguments, pool_size=4, pool_pre_ping=True)
    async_engine = create_async_engine("postgresql+psycopg://", connect_args=arguments, pool_size=4, pool_pre_ping=True)
    return sync_engine, async_engine
