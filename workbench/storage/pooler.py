"""Service through a pooler, such as pgbouncer in transaction mode.

There each transaction may run in another process of the server, and nothing of a session is ours: settings are made
anew in each transaction, a transaction that stays open holds locks, statements are not prepared, and nobody listens
for notifications.
"""

from __future__ import annotations

import selectors
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext

import psycopg
from psycopg import sql
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult


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
