"""A thread-safe connection pool, SQLAlchemy engines, sessions, named statements, errors, ids and bound values."""

from __future__ import annotations

import functools
import logging
import math
import re
import selectors
import socket
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

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

from workbench.errors import Conflict, ConnectionLost, InvalidInput, NotFound, StatementRejected, StorageError
from workbench.storage.postgres import describe_rejection, last_line, quote_last_line

if TYPE_CHECKING:
    from sqlalchemy import Connection as SqlConnection
    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

CONNECT_TIMEOUT_S = 10.0  # seconds

# Errors of the driver as our own, one sentence each and never with a password


def read_connect_timeout(url: str, default: float = CONNECT_TIMEOUT_S) -> float:
    """Return the seconds that a URL allows for connecting by its ``connect_timeout``, or ``default``."""
    given = str(conninfo_to_dict(url).get("connect_timeout") or "") if _is_conninfo(url) else ""
    return float(given) if given.isdecimal() and int(given) else default


def _is_conninfo(url: str) -> bool:
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return False
    return True


def describe_url(url: str) -> str:
    """Return the URL's host, port and database for a message, without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "the configured URL"
    where = str(parts.get("host") or "the local socket")
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{where}{port}/{parts.get('dbname') or parts.get('user') or ''}"


_INVALID_NUMBERS = (  # rejected by the database, such as a negative offset
    psycopg.errors.InvalidRowCountInLimitClause,
    psycopg.errors.InvalidRowCountInResultOffsetClause,
    psycopg.errors.NumericValueOutOfRange,
)
_KINDS = {
    "sources": "source", "documents": "document", "projects": "project", "folders": "folder", "indexes": "index",
    "datasets": "test set",
}  # fmt: skip


@contextmanager
def translate_errors(url: str) -> Generator[None]:
    """Convert the driver's errors to ours, one sentence each."""
    try:
        yield
    except PoolTimeout as error:
        raise StorageError(
            f"The database at {describe_url(url)} provided no connection within 30 s; it may be down or overloaded: "
            "check it, or raise WORKBENCH_POOL_SIZE."
        ) from error
    except psycopg.errors.UniqueViolation as error:
        kind = _KINDS.get(error.diag.table_name or "", error.diag.table_name or "row")
        article = "an" if kind[0] in "aeiou" else "a"
        raise Conflict(
            f"There is already {article} {kind} with that name; choose another name, or use the existing one."
        ) from error
    except psycopg.errors.ForeignKeyViolation as error:
        detail = error.diag.message_detail or ""  # 'Key (source_id)=(src_…) is not present in table "sources".'
        kind = next((kind for table, kind in _KINDS.items() if f'table "{table}"' in detail), "row")
        raise StatementRejected(f"The {kind} has just been deleted; choose or create another one.") from error
    except psycopg.errors.DiskFull as error:
        raise StorageError(
            f"The disk of the database at {describe_url(url)} is full; free some space on it, then try again."
            f"{quote_last_line(f'ERROR:  {error.diag.message_primary}')}"
        ) from error
    except (psycopg.OperationalError, psycopg.InternalError) as error:
        if error.diag.severity_nonlocalized == "ERROR":
            raise StorageError(_statement_sentence(url, error)) from error
        raise ConnectionLost(_connection_sentence(url, error)) from error
    except _INVALID_NUMBERS as error:
        raise InvalidInput(f"Invalid number ({error.diag.message_primary}); use another one.") from error
    except psycopg.Error as error:
        if not _is_conninfo(url):  # the driver's message would contain the password
            raise StorageError(
                "WORKBENCH_DATABASE_URL is invalid: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE."
            ) from None
        reason = error.diag.message_primary or str(error).strip().splitlines()[0]
        raise StatementRejected(f"The database rejected a statement: {reason}.") from error


_STATEMENT_REMEDIES = (  # by the beginning of the SQLSTATE
    ("25006", "it only allows reading: use the primary, or turn off default_transaction_read_only"),
    ("53", "free memory, disk space or connections there"),
    ("58", "check its disk; its files may be damaged: restore a backup"),
    ("XX", "its files may be damaged: restore a backup"),
    ("", "try again"),  # such as after a deadlock
)


def _statement_sentence(url: str, error: psycopg.Error) -> str:
    """Return the sentence for a statement that failed because of the server's state, not because of its text."""
    remedy = next(remedy for sign, remedy in _STATEMENT_REMEDIES if (error.sqlstate or "").startswith(sign))
    line = last_line(f"ERROR:  {error.diag.message_primary}")
    return f"The database at {describe_url(url)} could not finish a statement; {remedy}.{quote_last_line(line)}"


def _connection_sentence(url: str, error: psycopg.Error) -> str:
    """Return the sentence for a connection that failed or was lost; it ends with the server's last line, if any."""
    text, place = str(error).lower(), describe_url(url)
    line = last_line(str(error)) if re.search(r"\b(FATAL|PANIC|ERROR):", str(error)) else ""
    if reason := describe_rejection(url, line):
        return reason
    end = quote_last_line(line)
    if "unsupported startup parameter" in text:
        return f"The pooler at {place} rejects the URL's parameters; remove them from the URL ({error})."
    if re.search('password authentication|no password supplied|role ".*" does not exist|pg_hba.conf', line or text):
        return f"The database at {place} rejected the user or password; correct WORKBENCH_DATABASE_URL.{end}"
    if re.search('database ".*" does not exist', line) and "DETAIL" not in line:
        return f"The server at {place} has no such database; create it or correct WORKBENCH_DATABASE_URL.{end}"
    if "the pooler gave no server" in text:
        return (
            f"The database behind {place} is down or overloaded ({error}); check it, or raise default_pool_size there."
        )
    away = "refused|could not translate|timeout|no such file|unreachable|resolve|login has been failing"
    if re.search(away, text):
        return f"The database at {place} is unreachable; start it or correct WORKBENCH_DATABASE_URL.{end}"
    reason = "" if line else f" ({str(error).strip().splitlines()[0]})"
    return f"The connection to the database at {place} failed{reason}; check that it is running.{end}"


# Public ids: a prefix for the kind, and 12 random hexadecimal digits

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
    """Return a new id for a kind of object, such as ``src_4fd2c0a91b7e``."""
    return f"{PREFIXES[kind]}_{uuid.uuid4().hex[:12]}"


# Connections through a pooler, such as pgbouncer in transaction mode


class PoolerTimeout(psycopg.OperationalError):
    """A pooler accepted the connection, but its server is down or fully busy."""


def is_pooled(connection: psycopg.Connection[object], timeout: float = 10.0) -> bool:
    """Return whether there is a pooler, in which case the server's process id differs from the connection's.

    Raises:
        psycopg.OperationalError: No valid answer arrived within ``timeout`` seconds.
    """
    answer = execute_with_timeout(connection, b"SELECT pg_backend_pid()", timeout)
    return int(answer.get_value(0, 0) or 0) != connection.info.backend_pid


def execute_with_timeout(connection: psycopg.Connection[object], statement: bytes, timeout: float) -> PGresult:
    """Run statements without parameters and return the last result; a timeout closes the connection.

    Raises:
        PoolerTimeout: There was no answer within ``timeout`` seconds.
        psycopg.OperationalError: The answer was an error.
    """
    asked, answer = connection.pgconn, None
    try:
        asked.send_query(statement)
        with selectors.DefaultSelector() as selector:
            selector.register(asked.socket, selectors.EVENT_READ)
            while True:
                while asked.is_busy():
                    if not selector.select(timeout):
                        raise PoolerTimeout(f"the pooler gave no server within {timeout:g} s")
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
        raise psycopg.OperationalError("the server did not answer")
    return answer


def local_settings(settings: Mapping[str, str]) -> str:
    """Return the statements that apply settings until the end of the transaction; names and values are trusted."""
    lists = {name: ", ".join(f"'{part}'" for part in value.split(", ")) for name, value in settings.items()}
    return "; ".join(f"SET LOCAL {name} = {value}" for name, value in lists.items())


@contextmanager
def hold_lock(
    connection: psycopg.Connection[tuple[object, ...]], number: sql.SQL, key: object, *, waits: bool, shared: bool
) -> Generator[bool]:
    """Hold an advisory lock inside the block; yield False if it is taken and ``waits`` is false.

    The connection is in autocommit mode and is closed afterwards; the lock ends with it or with its process. Through a
    pooler, the block is one open transaction, which makes the pooler keep the server connection; it does not prevent
    vacuuming.

    Args:
        number: Expression for the lock's number, with ``key`` as its parameter.
        key: What is locked.
        waits: Whether to wait for the lock.
        shared: Whether others may hold it too, who also share it.
    """
    pooled = is_pooled(connection)
    name = f"pg_{'' if waits else 'try_'}advisory_{'xact_' if pooled else ''}lock{'_shared' if shared else ''}"
    taking = sql.SQL("SELECT {}({})::text").format(sql.Identifier(name), number)
    with connection.transaction() if pooled else nullcontext():
        if pooled:
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        row = connection.execute(taking, [key]).fetchone()
        yield row is not None and row[0] != "false"


Row: TypeAlias = DictRow  # a row as a dict by column name
Values: TypeAlias = Mapping[str, object] | Sequence[object]  # bound to a statement, by name or position
Connection: TypeAlias = psycopg.Connection[Row]  # of the pool
Parameters = TypeVar("Parameters")

Query = sql.SQL | sql.Composed

logging.getLogger("psycopg.pool").disabled = True  # users get our message instead of its lines
psycopg.adapters.register_dumper(HalfVector, HalfVectorBinaryDumper)  # before connections copy the adapters

# Sent with every connection, so that all servers behave alike. JIT and parallel workers cost more than they gain at
# these sizes, and concurrent callers would compete for cores. The server caches plans of frequent statements unless it
# expects more of a plan for the values; statements with optional filters are therefore not prepared.
# The last block resets what a role, database or server may have changed and our statements or the driver require:
# tables are in the schema public, timestamps are ISO 8601, and long builds are not interrupted.
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
    "search_path": "public, extensions",  # Supabase installs pgvector in extensions
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
    "idle_session_timeout": "0",
}


SETTINGS_OF_TRANSACTION = local_settings(SESSION_OPTIONS)
_SETTINGS_OF_SESSION = SETTINGS_OF_TRANSACTION.replace("SET LOCAL", "SET").encode()
_ESCAPED_SPACE = "\\ "
_BEGIN_STATEMENT = f"BEGIN; {SETTINGS_OF_TRANSACTION}".encode()
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")  # lone surrogates, such as the rest of a truncated emoji
IDLE_CHECK_AFTER_S = 2.0  # seconds of idleness after which a pooled connection is checked before reuse
POOL_CHECK_AFTER_S = 2.0  # seconds without a free connection after which the database is checked
POOL_TIMEOUT_S = 30.0  # seconds to wait for a connection of a busy database
RETRY_AFTER_S = 1.0  # seconds after a timeout in which further calls, such as the rest of a page, fail at once
WATCH_INTERVAL_S = 2.0  # seconds between checks for statements that a silent server will not answer
SILENCE_FACTOR = 3  # connect timeouts without an answer after which a server counts as silent, not as busy
_return_times: dict[int, float] = {}


class Database:
    """A connection pool on one Postgres, opened at first use. Thread-safe."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 8,
        connect_timeout: float = CONNECT_TIMEOUT_S,
        revive: Callable[[], object] | None = None,
    ) -> None:
        """Configure the pool; nothing is connected before the first use.

        Args:
            url: A libpq URL or keyword string.
            pool_size: Maximum number of connections.
            connect_timeout: Seconds, if the URL has no `connect_timeout` of its own.
            revive: Restarts the embedded server if it has become unreachable.
        """
        self._revive = revive
        self.url = url
        self.connect_timeout = read_connect_timeout(url, connect_timeout)
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._pool_size = pool_size
        self._pooled = False  # known once the pool is open
        self._in_use: dict[Connection, float] = {}  # connections in use, and since when
        self._timeout: tuple[float, StorageError | None] = (
            0.0,
            None,
        )  # when a server last gave no answer, and its error

    @property
    def place(self) -> str:
        """The address of the database without its password, for display."""
        return describe_url(self.url)

    def _open_pool(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._pool is None:
                self._pooled = check_reachable(self.url, self.connect_timeout)
                self._pool = ConnectionPool(
                    self.url,
                    min_size=1,
                    max_size=self._pool_size,
                    open=True,
                    reconnect_timeout=POOL_CHECK_AFTER_S,  # afterwards the next request tries again
                    check=_check_socket if self._pooled else _check_connection,
                    configure=None if self._pooled else _allow_long_transactions,
                    kwargs={
                        "row_factory": dict_row,
                        "connect_timeout": int(self.connect_timeout),
                        "autocommit": True,  # a single statement then takes one round trip instead of three
                        **session_arguments(self._pooled),
                    },
                    name="rag-workbench",
                )
                threading.Thread(target=self._watch, args=(self._pool,), name="watch-database", daemon=True).start()
            return self._pool

    def _watch(self, pool: ConnectionPool[Connection]) -> None:
        """Cut connections on which a statement waits for a server that has fallen silent, such as a frozen one.

        No timeout of the server or of the network's protocol ends such a statement.
        """
        while self._pool is pool:
            time.sleep(WATCH_INTERVAL_S)
            limit = time.monotonic() - self.connect_timeout
            late = [(each, since) for each, since in list(self._in_use.items()) if since < limit]
            try:
                if late:
                    check_reachable(self.url, SILENCE_FACTOR * self.connect_timeout)
            except StorageError as error:
                if isinstance(error.__cause__, psycopg.errors.ConnectionTimeout | PoolerTimeout):  # not if it rejects
                    for connection, since in late:
                        if self._in_use.get(connection) == since:
                            _cut(connection)

    @contextmanager
    def transaction(self) -> Generator[Connection]:
        """Yield a connection inside one transaction: committed at the end, rolled back on any exception.

        Raises:
            StorageError: The database is unreachable or rejected a statement.
            Conflict: A unique name is taken.
        """
        with self._connection() as connection, nullcontext() if self._pooled else connection.transaction():
            yield connection

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Yield a connection for several reads, each in its own transaction; through a pooler they share one.

        Raises:
            StorageError: The database is unreachable or rejected a statement.
        """
        with self._connection() as connection:
            yield connection

    @contextmanager
    def _connection(self) -> Generator[Connection]:
        pool = self._pool or self._open_pool()
        with translate_errors(self.url):
            connection = self._acquire(pool)
            self._in_use[connection] = time.monotonic()
            try:
                with connection:  # ends a transaction with commit or rollback
                    if self._pooled:
                        execute_with_timeout(connection, _BEGIN_STATEMENT, self.connect_timeout)
                    yield connection
            finally:  # instead of the pool's reset hook, which hands every return to a thread
                del self._in_use[connection]
                _return_times[id(connection)] = time.monotonic()
                pool.putconn(connection)

    def _acquire(self, pool: ConnectionPool[Connection]) -> Connection:
        failed_at, failure = self._timeout
        if failure is not None and time.monotonic() - failed_at < RETRY_AFTER_S:
            raise failure
        try:
            return pool.getconn(timeout=POOL_CHECK_AFTER_S)
        except PoolTimeout:
            started = time.monotonic()
            try:
                if self._revive is not None:
                    self._revive()  # does nothing if the server is running
                check_reachable(self.url, self.connect_timeout)
            except StorageError as error:
                if time.monotonic() - started > self.connect_timeout / 2:
                    self._timeout = (time.monotonic(), error)
                raise
            return pool.getconn(timeout=POOL_TIMEOUT_S - POOL_CHECK_AFTER_S)

    def rows(self, query: Query, parameters: Values = ()) -> list[Row]:
        """Run one statement in its own transaction and return its rows."""
        with self.reading() as connection:
            cursor = connection.execute(query, clean_parameters(parameters), prepare=False)  # planned for its values
            return cursor.fetchall() if cursor.description else []

    def row(self, query: Query, parameters: Values = ()) -> Row | None:
        """Run one statement and return its first row, or None."""
        rows = self.rows(query, parameters)
        return rows[0] if rows else None

    def check(self) -> None:
        """Connect once outside the pool, without reviving the server.

        Raises:
            StorageError: The database is unreachable.
        """
        check_reachable(self.url, self.connect_timeout)

    def autocommit(self, query: Query) -> None:
        """Run a statement that is not allowed in a transaction (VACUUM)."""
        with translate_errors(self.url), connect(self.url) as connection:
            connection.execute(query)

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None


# of a lock; the same expression is in job_parts.sql
NAME_AS_NUMBER = sql.SQL("hashtextextended(%s, 7215004)")


class Table:
    """One or more tables of a database, with their statements; arguments as in ``statement``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _rows(self, name: str, values: Values = (), index: str | None = None, **parts: str) -> list[Row]:
        return self._database.rows(statement(name, index, **parts), values)

    def _row(self, name: str, values: Values = (), index: str | None = None, **parts: str) -> Row | None:
        return self._database.row(statement(name, index, **parts), values)

    def _get(self, name: str, values: Values, missing: NotFound, **parts: str) -> Row:
        """Return a statement's first row; raise ``missing`` if it has none."""
        row = self._row(name, values, **parts)
        if row is None:
            raise missing
        return row

    def _column(self, name: str, values: Values = (), **parts: str) -> list[Any]:
        return [next(iter(row.values())) for row in self._rows(name, values, **parts)]

    def _value(self, name: str, values: Values = (), **parts: str) -> Any:  # noqa: ANN401 - the type of its column
        return next(iter(self._column(name, values, **parts)), None)

    @contextmanager
    def hold(self, name: str, *, shared: bool = False) -> Generator[bool]:
        """Hold a name, such as a job's id, for this process inside the block; yields False if another process holds it.

        The lock belongs to a separate connection, so it always ends with the process. Others may hold it if ``shared``.
        """
        with (
            translate_errors(self._database.url),
            connect(self._database.url) as connection,
            hold_lock(connection, NAME_AS_NUMBER, name, waits=False, shared=shared) as ours,
        ):
            yield ours


def _check_connection(connection: psycopg.Connection[Any]) -> None:
    """Check idle connections, and those with unread data, before reuse, since their server may be gone.

    The server sends nothing to an idle connection until it closes it, so polling the socket detects a dead server at a
    thousandth of the cost of a statement.
    """
    rested = time.monotonic() - _return_times.get(id(connection), 0.0) > IDLE_CHECK_AFTER_S
    if rested or _has_pending_data(connection):
        execute_with_timeout(connection, b"SELECT 1", POOL_CHECK_AFTER_S)  # a frozen server answers nothing


def _check_socket(connection: psycopg.Connection[Any]) -> None:
    """Check whether a pooler has closed a connection; otherwise a statement could wait for the server forever."""
    if _has_pending_data(connection):
        raise psycopg.OperationalError("the pooler closed the connection")


def _has_pending_data(connection: psycopg.Connection[Any]) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        return bool(selector.select(timeout=0))


def _cut(connection: psycopg.Connection[Any]) -> None:
    """Close a connection's socket under the thread that waits for it."""
    with (
        suppress(OSError, psycopg.Error),  # it has just ended
        socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as duplicate,
    ):
        duplicate.shutdown(socket.SHUT_RDWR)


def fetch_one(cursor: psycopg.Cursor[Row]) -> Row:
    """Return the row of a statement that always returns exactly one."""
    row = cursor.fetchone()
    assert row is not None, cursor.statusmessage
    return row


def clean_parameters(parameters: Parameters) -> Parameters:
    """Clean text parameters that Postgres cannot store: remove NUL characters, replace lone surrogates with U+FFFD."""
    return cast("Parameters", _clean(parameters))


def _clean(value: object) -> object:
    if isinstance(value, str):
        text = value.replace("\x00", "")
        return text if text.isascii() else _LONE_SURROGATES.sub("\ufffd", text)
    if isinstance(value, Mapping):
        return {_clean(key): _clean(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        if not (items and isinstance(items[0], int | float)):
            return type(value)(_clean(item) for item in items)
    return cast("object", value)


def bind_integers(numbers: Iterable[int]) -> str:
    """Return integers as a bound array in text form: psycopg takes ten times as long for a list."""
    return "{" + ",".join(map(str, numbers)) + "}"


def bind_json(value: Mapping[str, object]) -> Jsonb:
    """Return a value for a jsonb column: without NUL, and with null for NaN and infinity."""
    return Jsonb(clean_parameters(_replace_nonfinite(value)))


def _replace_nonfinite(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _replace_nonfinite(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_replace_nonfinite(item) for item in cast("Sequence[object]", value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def session_arguments(pooled: bool) -> dict[str, object]:
    """Return the driver's arguments for a new connection: session settings, unless a pooler owns the session."""
    if pooled:
        return {"prepare_threshold": None, "client_encoding": "UTF8"}
    return {"options": startup_options(SESSION_OPTIONS), "client_encoding": "UTF8"}


def startup_options(settings: Mapping[str, str]) -> str:
    """Return settings as the ``options`` of a connection; they override the settings of the role and the database."""
    return " ".join(f"-c {name}={value.replace(' ', _ESCAPED_SPACE)}" for name, value in settings.items())


def connect(url: str) -> psycopg.Connection:
    """Return a connection outside the pool, with autocommit, without prepared statements, with session settings.

    Through a pooler, the caller applies the settings in each transaction.

    Raises:
        psycopg.Error: The connection failed.
    """
    timeout = read_connect_timeout(url)
    connection = psycopg.connect(
        url, autocommit=True, prepare_threshold=None, connect_timeout=int(timeout), client_encoding="UTF8"
    )
    if not is_pooled(connection, timeout):
        connection.execute(_SETTINGS_OF_SESSION)
        _allow_long_transactions(connection)
    return connection


def _allow_long_transactions(connection: psycopg.Connection[Any]) -> None:
    """Reset a setting that does not exist before Postgres 17, which would refuse a connection that names it."""
    if connection.info.server_version >= 170_000:
        connection.execute("SET transaction_timeout = 0")


def check_reachable(url: str, timeout: float) -> bool:
    """Connect once and run a statement; return whether there is a pooler.

    Raises:
        StorageError: It failed; the message names the cause: unreachable, wrong password, no such database.
    """
    with (
        translate_errors(url),
        psycopg.connect(url, connect_timeout=int(timeout), client_encoding="UTF8") as connection,
    ):
        return is_pooled(connection, timeout)


# SQLAlchemy engines for PGVectorStore's queries, one pair per database. They are in this module because
# closing a workbench must not import the framework, which another thread may be importing.

_engines: dict[str, tuple[Engine, AsyncEngine]] = {}
_engines_lock = threading.Lock()


def get_engines(url: str) -> tuple[Engine, AsyncEngine]:
    """Return the (sync, async) engines for a libpq URL, both on psycopg 3."""
    with _engines_lock:
        if url not in _engines:
            _engines[url] = _create_engines(url)
        return _engines[url]


def dispose_engine(url: str) -> None:
    """Close the sync engine's connections; the next use opens new ones."""
    with _engines_lock:
        pair = _engines.pop(url, None)
    if pair is not None:
        pair[0].dispose()


def _create_engines(url: str) -> tuple[Engine, AsyncEngine]:
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

    pooled = functools.cache(lambda: check_reachable(url, read_connect_timeout(url)))  # evaluated at first use

    def add_session_arguments(_dialect: object, _record: object, _values: object, arguments: dict[str, Any]) -> None:
        arguments.update(session_arguments(pooled()))

    def apply_to_transaction(connection: SqlConnection) -> None:
        if pooled():
            connection.exec_driver_sql(SETTINGS_OF_TRANSACTION)

    event.listen(engine, "do_connect", add_session_arguments)
    event.listen(engine, "begin", apply_to_transaction)


# Named SQL statements from ``sql/*.sql``.
#
# A file consists of blocks that start with ``-- name: purpose``. The tables of an index are written as the placeholders
# ``{data}``, ``{lexicon}`` and ``{postings}``, and another block by its name; values are always bound parameters.

_HEAD = re.compile(r"^-- ([a-z0-9_]+): .*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"(?<!\{)\{([a-z0-9_]+)\}(?!\})")
_PURPOSE = re.compile(r"\A(\s*--.*\n)*")  # further comment lines, which are not sent to the server


@cache
def _statements() -> dict[str, str]:
    bodies: dict[str, str] = {}
    for file in sorted(files("workbench.storage").joinpath("sql").iterdir(), key=lambda item: item.name):
        if not file.name.endswith(".sql"):
            continue
        pieces = _HEAD.split(file.read_text(encoding="utf-8"))
        for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
            if name in bodies:
                raise ValueError(f"there are two statements {name!r}")
            bodies[name] = _PURPOSE.sub("", body).strip()
    return bodies


@cache
def statement(name: str, index: str | None = None, **parts: str | int) -> sql.SQL:
    """Return a named statement with the tables of ``index`` and the statements that it names filled in.

    Args:
        name: Name of the statement.
        index: Name of the index whose tables it uses.
        parts: Names of statements that replace ``{keyword}``, such as a scope's predicate. A part may contain later
            ones. A number is inserted as it is, if the plan depends on it.
    """
    tables = {}
    if index is not None:
        tables = {kind: sql.Identifier(f"{kind}_{index}") for kind in ("data", "lexicon", "postings")}
        tables["postings_key"] = sql.Identifier(f"postings_{index}_pkey")
    body, given = _statements()[name], list(parts.items())
    nested = {other: statement(other, index, **parts) for other in _PLACEHOLDER.findall(body) if other in _statements()}
    for place, (key, part) in enumerate(given):
        later = dict(given[place + 1 :])
        nested[key] = sql.SQL(str(part)) if isinstance(part, int) else statement(part, index, **later)  # pyright: ignore[reportArgumentType] - a number
    composed = sql.SQL(body).format(**tables, **nested)  # pyright: ignore[reportArgumentType]
    return sql.SQL(composed.as_string())  # pyright: ignore[reportArgumentType] - composed once, not per call
