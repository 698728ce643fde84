"""One thread-safe pool of connections; every driver error becomes a StorageError here and nowhere else."""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from pgvector import HalfVector
from pgvector.psycopg.halfvec import HalfVectorBinaryDumper
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool, PoolTimeout

from workbench.errors import Conflict, StatementRefused, StorageError

Query = sql.SQL | sql.Composed

logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # whoever asks gets our sentence, not its lines
psycopg.adapters.register_dumper(HalfVector, HalfVectorBinaryDumper)  # before a connection takes its copy of them

# Sent with every connection, so that any server behaves alike. JIT and parallel workers cost more than they give
# at these sizes and would let concurrent callers take each other's core; custom plans because the same statement
# serves a scope of ten passages and one of a million.
SESSION_OPTIONS = {
    "application_name": "rag-workbench",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "plan_cache_mode": "force_custom_plan",
    "random_page_cost": "1.1",
    "work_mem": "64MB",
    "hnsw.ef_search": "100",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.max_scan_tuples": "40000",
}


_HALVES = re.compile("[\ud800-\udfff]")  # lone surrogates: what is left of a text that was cut within an emoji
RESTED = 2.0  # seconds after which a pooled connection is tried before it is lent
PATIENCE = 2.0  # seconds without a free connection after which it is asked whether the database is there at all
LONGEST_WAIT = 30.0  # seconds for a connection of a database that is there and busy
_returned: dict[int, float] = {}


class Database:
    """A pool on one Postgres; opens lazily, closes once, may be used from any thread."""

    def __init__(self, url: str, *, pool_size: int = 8, connect_timeout: float = 10.0) -> None:
        """``url`` is a libpq URL or keyword string; nothing is connected before the first use."""
        self.url = url
        self._connect_timeout = connect_timeout
        self._lock = threading.Lock()
        self._pool: ConnectionPool[psycopg.Connection[dict[str, Any]]] | None = None
        self._pool_size = pool_size

    @property
    def place(self) -> str:
        """Where the database is, without its password, for people to read."""
        return describe(self.url)

    def _open_pool(self) -> ConnectionPool[psycopg.Connection[dict[str, Any]]]:
        with self._lock:
            if self._pool is None:
                check_reachable(self.url, self._connect_timeout)
                options = " ".join(f"-c {name}={value}" for name, value in SESSION_OPTIONS.items())
                self._pool = ConnectionPool(
                    self.url,
                    min_size=1,
                    max_size=self._pool_size,
                    open=True,
                    reconnect_timeout=PATIENCE,  # from then on whoever asks next tries again, and not a clock
                    check=_check_after_rest,
                    kwargs={
                        "row_factory": dict_row,
                        "options": options,
                        "connect_timeout": int(self._connect_timeout),
                        "autocommit": True,  # a single statement then costs one round trip, not three
                    },
                    name="rag-workbench",
                )
            return self._pool

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[dict[str, Any]]]:
        """Yield a connection inside one transaction: committed at the end, rolled back when anything is raised.

        Raises:
            StorageError: the database is unreachable or refused a statement.
            Conflict: a unique name is taken.
        """
        with self._lent() as connection, connection.transaction():
            yield connection

    @contextmanager
    def reading(self) -> Iterator[psycopg.Connection[dict[str, Any]]]:
        """Yield a connection for several reads, each in a transaction of its own. Raises StorageError."""
        with self._lent() as connection:
            yield connection

    @contextmanager
    def _lent(self) -> Iterator[psycopg.Connection[dict[str, Any]]]:
        pool = self._pool or self._open_pool()
        with translated(self.url):
            connection = self._borrowed(pool)
            try:
                with connection:
                    yield connection
            finally:  # not by the pool's reset hook, which hands every return to a thread
                _returned[id(connection)] = time.monotonic()
                pool.putconn(connection)

    def _borrowed(self, pool: ConnectionPool[psycopg.Connection[dict[str, Any]]]) -> psycopg.Connection[dict[str, Any]]:
        """Return a connection of the pool. Raises StorageError as soon as it is clear that the database is gone."""
        try:
            return pool.getconn(timeout=PATIENCE)
        except PoolTimeout:
            check_reachable(self.url, self._connect_timeout)
            return pool.getconn(timeout=LONGEST_WAIT - PATIENCE)

    def rows(self, query: Query, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Run one statement in a transaction of its own and return its rows as dicts."""
        with self.reading() as connection:
            cursor = connection.execute(query, clean(parameters))
            return cursor.fetchall() if cursor.description else []

    def row(self, query: Query, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> dict[str, Any] | None:
        """Run one statement and return its first row, or None."""
        found = self.rows(query, parameters)
        return found[0] if found else None

    def autocommit(self, query: Query) -> None:
        """Run a statement that may not stand in a transaction (VACUUM)."""
        with translated(self.url), psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(query)

    def close(self) -> None:
        """Close every connection; a closed database opens again on its next use."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None


def _check_after_rest(connection: psycopg.Connection[Any]) -> None:
    """Try a connection that rested for a while before it is lent again: the server may have gone meanwhile."""
    if time.monotonic() - _returned.get(id(connection), 0.0) > RESTED:
        ConnectionPool.check_connection(connection)


def clean(parameters: Any) -> Any:
    """Take out of text parameters what Postgres cannot hold: NUL characters, and halves of a character (U+FFFD)."""
    if isinstance(parameters, str):
        text = parameters.replace("\x00", "")
        return text if text.isascii() else _HALVES.sub("\ufffd", text)
    if isinstance(parameters, Mapping):
        return {clean(key): clean(value) for key, value in parameters.items()}
    if isinstance(parameters, list | tuple) and not (parameters and isinstance(parameters[0], int | float)):
        return type(parameters)(clean(value) for value in parameters)
    return parameters


def as_json(value: Mapping[str, Any]) -> Jsonb:
    """Return a value for a jsonb column: without NUL, and with null for NaN and infinity, which JSON lacks."""
    return Jsonb(clean(_finite(value)))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_reachable(url: str, timeout: float) -> None:
    """Connect once and leave.

    Raises:
        StorageError: one sentence for each common cause: unreachable, wrong password, no such database.
    """
    with translated(url), psycopg.connect(url, connect_timeout=int(timeout)):
        pass


def _is_conninfo(url: str) -> bool:
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return False
    return True


def describe(url: str) -> str:
    """Return the URL's host, port and database for a message, never its password."""
    try:
        known = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "the configured URL"
    where = str(known.get("host") or "the local socket")
    port = f":{known['port']}" if known.get("port") else ""
    return f"{where}{port}/{known.get('dbname') or known.get('user') or ''}"


_KINDS = {
    "sources": "source",
    "projects": "project",
    "folders": "folder",
    "indexes": "index",
    "datasets": "test set",
}


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turn the driver's errors into ours, one sentence each."""
    try:
        yield
    except PoolTimeout as error:
        raise StorageError(
            f"The database at {describe(url)} gave no connection within 30 s; it may be down or fully busy: "
            "check it, or raise WORKBENCH_POOL_SIZE."
        ) from error
    except psycopg.errors.UniqueViolation as error:
        kind = _KINDS.get(error.diag.table_name or "", error.diag.table_name or "row")
        article = "an" if kind[0] in "aeiou" else "a"
        raise Conflict(
            f"There is {article} {kind} of that name already; choose another name, or use that one."
        ) from error
    except psycopg.OperationalError as error:
        raise StorageError(_connection_sentence(url, error)) from error
    except psycopg.Error as error:
        if not _is_conninfo(url):  # the driver's words would repeat the URL, with its password
            raise StorageError(
                "WORKBENCH_DATABASE_URL is no Postgres URL; write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE."
            ) from None
        reason = error.diag.message_primary or str(error).strip().splitlines()[0]
        raise StatementRefused(f"The database refused a statement: {reason}.") from error


def _connection_sentence(url: str, error: psycopg.OperationalError) -> str:
    text = str(error).lower()
    place = describe(url)
    if "password authentication failed" in text or "no password supplied" in text:
        return f"The database at {place} refused the user or password; correct WORKBENCH_DATABASE_URL."
    if "does not exist" in text and "database" in text:
        return f"There is no such database at {place}; create it or correct WORKBENCH_DATABASE_URL."
    if any(
        sign in text for sign in ("refused", "could not translate", "timeout", "no such file", "unreachable", "resolve")
    ):
        return f"The database at {place} cannot be reached; start it or correct WORKBENCH_DATABASE_URL."
    return (
        f"The connection to the database at {place} failed ({str(error).strip().splitlines()[0]}); check that it is up."
    )
