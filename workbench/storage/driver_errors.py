"""The driver's errors as ours: one sentence each, here and nowhere else, and never a password in it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import PoolTimeout

from workbench.errors import Conflict, StatementRefused, StorageError


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
