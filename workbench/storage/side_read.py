"""A read beside another one: on a further thread and connection, where a core and a connection are free.

The legs of a search are apart from each other, and Postgres serves each connection by a process of its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from workbench.storage.database import Connection, Database

Fetched = TypeVar("Fetched")

# One for each core but the caller's. With every core at work a second thread only takes another caller's turn.
_MOST = max(0, (os.cpu_count() or 1) - 1)
_free = threading.Semaphore(_MOST)
_threads = ThreadPoolExecutor(max(1, _MOST), thread_name_prefix="side-read")


def side_read(
    database: Database, connection: Connection, read: Callable[[Connection], Fetched]
) -> Callable[[], Fetched]:
    """Begin a read and return the call that waits for it, and raises what it raises.

    Where nothing is free for it, that call reads over the given ``connection``.
    """
    if not _free.acquire(blocking=False):
        return lambda: read(connection)
    begun = _threads.submit(copy_context().run, _apart, database, read)

    def result() -> Fetched:
        done = begun.result()
        return read(connection) if done is None else done[0]

    return result


def _apart(database: Database, read: Callable[[Connection], Fetched]) -> tuple[Fetched] | None:
    """Read over a spare connection; None where there is none."""
    try:
        with database.spare() as connection:
            return None if connection is None else (read(connection),)
    finally:
        _free.release()
