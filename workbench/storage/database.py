"""One thread-safe pool of connections to a Postgres, and the values that its statements are bound to."""

from __future__ import annotations

import logging
import math
import re
import selectors
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, TypeAlias, TypeVar, cast

import psycopg
from pgvector import HalfVector
from pgvector.psycopg.halfvec import HalfVectorBinaryDumper
from psycopg import sql
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool, PoolTimeout

from workbench.errors import StorageError
from workbench.storage.driver_errors import describe, translated
from workbench.storage.pooler import answered_within, is_pooled, local_settings

Row: TypeAlias = DictRow  # a dict by column name, as psycopg makes it of what a statement selects
Values: TypeAlias = Mapping[str, object] | Sequence[object]  # bound to a statement, by name or by place
Connection: TypeAlias = psycopg.Connection[Row]  # of the pool
Parameters = TypeVar("Parameters")

Query = sql.SQL | sql.Composed

logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # people get our sentence, not its lines
psycopg.adapters.register_dumper(HalfVector, HalfVectorBinaryDumper)  # before a connection takes its copy of them

# Sent with every connection, so that any server behaves alike. JIT and parallel workers cost more than they give
# at these sizes and would let concurrent callers take each other's core. The server keeps a plan of what is asked
# often, unless it expects more of one for the values: what narrows by values that may be absent is not prepared.
# The last block holds what a role, a database or a server may set otherwise, and our statements or their driver need:
# tables are in the schema public, moments are read in ISO 8601, and a long build is not cut off.
SESSION_OPTIONS = {
    "application_name": "rag-workbench",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "plan_cache_mode": "auto",
    "random_page_cost": "1.1",
    "work_mem": "64MB",
    "hnsw.ef_search": "100",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.max_scan_tuples": "40000",
    "search_path": "public, extensions",  # where Supabase keeps pgvector
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "gin_fuzzy_search_limit": "0",
    "default_transaction_isolation": "read committed",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}


SETTINGS_OF_TRANSACTION = local_settings(SESSION_OPTIONS)
_SETTINGS_OF_SESSION = SETTINGS_OF_TRANSACTION.replace("SET LOCAL", "SET").encode()
_ESCAPED_SPACE = "\\ "
_BEGINNING = f"BEGIN; {SETTINGS_OF_TRANSACTION}".encode()
_HALVES = re.compile("[\ud800-\udfff]")  # lone surrogates: the rest of a text that was cut within an emoji
RESTED = 2.0  # seconds after which a pooled connection is tried before it is lent
PATIENCE = 2.0  # seconds without a free connection after which it is asked whether the database is there at all
NO_TIME = 0.001  # seconds for a connection that nobody needs
LONGEST_WAIT = 30.0  # seconds for a connection of a database that is there and busy
_returned: dict[int, float] = {}


class Database:
    """A pool on one Postgres; opens lazily, closes once, may be used from any thread."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 8,
        connect_timeout: float = 10.0,
        revive: Callable[[], object] | None = None,
    ) -> None:
        """Take ``url``, a libpq URL or keyword string; nothing is connected before the first use.

        ``revive`` starts the server again where it is ours and cannot be reached any more.
        """
        self._revive = revive
        self.url = url
        self._connect_timeout = connect_timeout
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._pool_size = pool_size
        self._pooled = False  # known with the pool

    @property
    def place(self) -> str:
        """The address of the database without its password, for people to read."""
        return describe(self.url)

    def _open_pool(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._pool is None:
                self._pooled = check_reachable(self.url, self._connect_timeout)
                self._pool = ConnectionPool(
                    self.url,
                    min_size=1,
                    max_size=self._pool_size,
                    open=True,
                    reconnect_timeout=PATIENCE,  # from then on the next question tries again, and not a clock
                    check=_check_socket if self._pooled else _check_connection,
                    kwargs={
                        "row_factory": dict_row,
                        "connect_timeout": int(self._connect_timeout),
                        "autocommit": True,  # a single statement then costs one round trip, not three
                        **session_arguments(self._pooled),
                    },
                    name="rag-workbench",
                )
            return self._pool

    @contextmanager
    def transaction(self) -> Generator[Connection]:
        """Yield a connection inside one transaction: committed at the end, rolled back when anything is raised.

        Raises:
            StorageError: the database is unreachable or refused a statement.
            Conflict: a unique name is taken.
        """
        with self._lent() as connection, nullcontext() if self._pooled else connection.transaction():
            yield connection

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Yield a connection for several reads, each in a transaction of its own; through a pooler they share one.

        Raises StorageError.
        """
        with self._lent() as connection:
            yield connection

    @contextmanager
    def spare(self) -> Generator[Connection | None]:
        """Yield a connection that is free now, or None: then the pool grows, as far as it may, for the next time.

        Raises StorageError where a statement is refused.
        """
        pool = self._pool or self._open_pool()
        with translated(self.url), ExitStack() as stack:
            connection = _free_one(pool)
            yield None if connection is None else stack.enter_context(self._given_back(pool, connection))

    @contextmanager
    def _lent(self) -> Generator[Connection]:
        pool = self._pool or self._open_pool()
        with translated(self.url), self._given_back(pool, self._borrowed(pool)) as connection:
            yield connection

    @contextmanager
    def _given_back(self, pool: ConnectionPool[Connection], connection: Connection) -> Generator[Connection]:
        try:
            with connection:  # at its end a transaction is committed, or rolled back
                if self._pooled:
                    answered_within(connection, _BEGINNING, self._connect_timeout)
                yield connection
        finally:  # not by the pool's reset hook, which hands every return to a thread
            _returned[id(connection)] = time.monotonic()
            pool.putconn(connection)

    def _borrowed(self, pool: ConnectionPool[Connection]) -> Connection:
        """Return a connection of the pool. Raises StorageError as soon as it is clear that the database is gone."""
        try:
            return pool.getconn(timeout=PATIENCE)
        except PoolTimeout:
            try:
                check_reachable(self.url, self._connect_timeout)
            except StorageError:
                if self._revive is None:
                    raise
                self._revive()
            return pool.getconn(timeout=LONGEST_WAIT - PATIENCE)

    def rows(self, query: Query, parameters: Values = ()) -> list[Row]:
        """Run one statement in a transaction of its own and return its rows as dicts."""
        with self.reading() as connection:
            cursor = connection.execute(query, clean(parameters), prepare=False)  # planned for its values
            return cursor.fetchall() if cursor.description else []

    def row(self, query: Query, parameters: Values = ()) -> Row | None:
        """Run one statement and return its first row, or None."""
        rows = self.rows(query, parameters)
        return rows[0] if rows else None

    def check(self) -> None:
        """Connect once, beside the pool; a server that is down is not revived. Raises StorageError where it is."""
        check_reachable(self.url, self._connect_timeout)

    def autocommit(self, query: Query) -> None:
        """Run a statement that may not stand in a transaction (VACUUM)."""
        with translated(self.url), connect(self.url) as connection:
            connection.execute(query)

    def close(self) -> None:
        """Close every connection; a closed database opens again on its next use."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None


def _free_one(pool: ConnectionPool[Connection]) -> Connection | None:
    stats = pool.get_stats()
    if not stats["pool_available"] and stats["pool_size"] >= stats["pool_max"]:
        return None
    try:
        return pool.getconn(timeout=NO_TIME)
    except PoolTimeout:
        return None


def _check_connection(connection: psycopg.Connection[Any]) -> None:
    """Try a connection before it is lent again if it rested for a while, or was told something: its server may be gone.

    An idle connection is told nothing but that it ends, so that a look at its socket finds a server that died a moment
    ago, at a thousandth of what a statement costs.
    """
    rested = time.monotonic() - _returned.get(id(connection), 0.0) > RESTED
    if rested or _was_told_something(connection):
        ConnectionPool.check_connection(connection)


def _check_socket(connection: psycopg.Connection[Any]) -> None:
    """Look whether a pooler ended a connection; a statement would wait for one of its servers, without an end."""
    if _was_told_something(connection):
        raise psycopg.OperationalError("the pooler ended the connection")


def _was_told_something(connection: psycopg.Connection[Any]) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        return bool(selector.select(timeout=0))


def only_row(cursor: psycopg.Cursor[Row]) -> Row:
    """Return the one row of a statement that always has one."""
    row = cursor.fetchone()
    assert row is not None, cursor.statusmessage
    return row


def clean(parameters: Parameters) -> Parameters:
    """Take out of text parameters what Postgres cannot hold: NUL characters, and halves of a character (U+FFFD)."""
    return cast("Parameters", _clean(parameters))


def _clean(value: object) -> object:
    if isinstance(value, str):
        text = value.replace("\x00", "")
        return text if text.isascii() else _HALVES.sub("\ufffd", text)
    if isinstance(value, Mapping):
        return {_clean(key): _clean(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        if not (items and isinstance(items[0], int | float)):
            return type(value)(_clean(item) for item in items)
    return cast("object", value)


def numbers_value(numbers: Iterable[int]) -> str:
    """Return whole numbers as a bound array, written out at once: psycopg takes ten times as long for a list."""
    return "{" + ",".join(map(str, numbers)) + "}"


def as_json(value: Mapping[str, object]) -> Jsonb:
    """Return a value for a jsonb column: without NUL, and with null for NaN and infinity, which JSON lacks."""
    return Jsonb(clean(_finite(value)))


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in cast("Sequence[object]", value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def session_arguments(pooled: bool) -> dict[str, object]:
    """Return what the driver is given with each connection: the settings of its session, unless a pooler owns it."""
    if pooled:
        return {"prepare_threshold": None, "client_encoding": "UTF8"}
    return {"options": startup_options(SESSION_OPTIONS), "client_encoding": "UTF8"}


def startup_options(settings: Mapping[str, str]) -> str:
    """Return settings as the ``options`` of a connection; they win over those of its role and database."""
    return " ".join(f"-c {name}={value.replace(' ', _ESCAPED_SPACE)}" for name, value in settings.items())


def connect(url: str, *, connect_timeout: float = 10.0) -> psycopg.Connection:
    """Return a connection of its own, which commits by itself and prepares nothing, with the settings of its session.

    Through a pooler the settings are the caller's, in each transaction. Raises psycopg.Error.
    """
    connection = psycopg.connect(
        url, autocommit=True, prepare_threshold=None, connect_timeout=int(connect_timeout), client_encoding="UTF8"
    )
    if not is_pooled(connection, connect_timeout):
        connection.execute(_SETTINGS_OF_SESSION)
    return connection


def check_reachable(url: str, timeout: float) -> bool:
    """Connect once, ask something and leave; return whether a pooler stands between.

    Raises:
        StorageError: one sentence for each common cause: unreachable, wrong password, no such database.
    """
    with translated(url), psycopg.connect(url, connect_timeout=int(timeout), client_encoding="UTF8") as connection:
        return is_pooled(connection, timeout)
