"""One thread-safe pool of connections to a Postgres, and the values that its statements are bound to."""

from __future__ import annotations

import logging
import math
import re
import selectors
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, TypeAlias, TypeVar, cast

import psycopg
from pgvector import HalfVector
from pgvector.psycopg.halfvec import HalfVectorBinaryDumper
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool, PoolTimeout

from workbench.errors import Conflict, StatementRefused, StorageError

# --- The driver's errors as ours: one sentence each, here and nowhere else, and never a password in it ---


def _is_conninfo(url: str) -> bool:
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return False
    return True


def describe(url: str) -> str:
    """Return the URL's host, port and database for a message, never its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "the configured URL"
    where = str(parts.get("host") or "the local socket")
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{where}{port}/{parts.get('dbname') or parts.get('user') or ''}"


_KINDS = {
    "sources": "source",
    "projects": "project",
    "folders": "folder",
    "indexes": "index",
    "datasets": "test set",
}


@contextmanager
def translated(url: str) -> Generator[None]:
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
    except psycopg.errors.DiskFull as error:
        raise StorageError(
            f"The disk of the database at {describe(url)} is full; free some space there, then try again "
            f"({error.diag.message_primary})."
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
    if "the pooler gave no server" in text:
        return (
            f"The database behind {place} is down or fully busy ({error}); check it, or raise default_pool_size there."
        )
    if "unsupported startup parameter" in text:
        return f"The pooler at {place} refuses what the URL has beside the address; take it out of the URL ({error})."
    if any(
        sign in text
        for sign in (
            "refused",
            "could not translate",
            "timeout",
            "no such file",
            "unreachable",
            "resolve",
            "login has been failing",
        )
    ):
        return f"The database at {place} cannot be reached; start it or correct WORKBENCH_DATABASE_URL."
    return (
        f"The connection to the database at {place} failed ({str(error).strip().splitlines()[0]}); check that it is up."
    )


# --- Public ids: a prefix that says what it is, and 12 random hexadecimal digits ---

PREFIXES = {
    "project": "proj",
    "folder": "fold",
    "source": "src",
    "document": "doc",
    "job": "job",
    "hand": "hand",
    "run": "run",
    "dataset": "set",
    "question": "q",
    "experiment": "exp",
}


def new_id(kind: str) -> str:
    """Return a new id for a kind of thing, such as ``src_4fd2c0a91b7e``."""
    return f"{PREFIXES[kind]}_{uuid.uuid4().hex[:12]}"


# --- Service through a pooler, such as pgbouncer in transaction mode ---


class NoServerFree(psycopg.OperationalError):
    """A pooler takes connections of a server that is down or fully busy, and lets them wait."""


def is_pooled(connection: psycopg.Connection[object], timeout: float = 10.0) -> bool:
    """Tell whether a pooler stands between: then the server's process is not the one that the connection was told of.

    Raises:
        psycopg.OperationalError: nothing answered within ``timeout`` seconds, or no.
    """
    answer = answered_within(connection, b"SELECT pg_backend_pid()", timeout)
    return int(answer.get_value(0, 0) or 0) != connection.info.backend_pid


def answered_within(connection: psycopg.Connection[object], statement: bytes, timeout: float) -> PGresult:
    """Run statements without parameters and return the answer of the last; one that comes too late ends the connection.

    Raises:
        NoServerFree: nothing answered within ``timeout`` seconds. psycopg.OperationalError: the answer was an error.
    """
    asked, answer = connection.pgconn, None
    try:
        asked.send_query(statement)
        with selectors.DefaultSelector() as selector:
            selector.register(asked.socket, selectors.EVENT_READ)
            while True:
                while asked.is_busy():
                    if not selector.select(timeout):
                        raise NoServerFree(f"the pooler gave no server within {timeout:g} s")
                    asked.consume_input()
                latest = asked.get_result()
                if latest is None:
                    break
                answer = latest
                if answer.status == ExecStatus.FATAL_ERROR:
                    raise psycopg.OperationalError(answer.error_message.decode(errors="replace").strip())
    except psycopg.Error:
        connection.close()
        raise
    if answer is None:
        raise psycopg.OperationalError("the server gave no answer")
    return answer


def local_settings(settings: Mapping[str, str]) -> str:
    """Return the statements that make settings hold until their transaction ends; the names and values are ours."""
    lists = {name: ", ".join(f"'{part}'" for part in value.split(", ")) for name, value in settings.items()}
    return "; ".join(f"SET LOCAL {name} = {value}" for name, value in lists.items())


@contextmanager
def lock_held(
    connection: psycopg.Connection[tuple[object, ...]], number: sql.SQL, key: object, *, waits: bool
) -> Generator[bool]:
    """Hold an advisory lock while inside; yield False where somebody else has it and ``waits`` is false.

    ``number`` makes the lock's number of ``key``. The connection commits by itself, and is closed afterwards; the lock
    ends with it, or with its process. Through a pooler all of it is one open transaction, which the pooler keeps for
    it; no row is kept from being vacuumed by that.
    """
    pooled = is_pooled(connection)
    name = f"pg_{'' if waits else 'try_'}advisory_{'xact_' if pooled else ''}lock"
    taking = sql.SQL("SELECT {}({})::text").format(sql.Identifier(name), number)
    with connection.transaction() if pooled else nullcontext():
        if pooled:
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        row = connection.execute(taking, [key]).fetchone()
        yield row is not None and row[0] != "false"


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
