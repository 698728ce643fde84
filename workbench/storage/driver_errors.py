"""The driver's errors as ours: one sentence each, here and nowhere else, and never a password in it."""

from __future__ import annotations

import re
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


_SHARD = re.compile(r'server "shard_([0-9]+)"')
_REMOTE = "remote SQL command"  # in the context that postgres_fdw gives an error of the other server
_OTHER_PLACE = re.compile(r'relation "public\.(data|lexicon|postings)_[a-z0-9_]+(@[0-9]+)?" does not exist')
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
        if isinstance(error, psycopg.errors.UndefinedTable) and is_of_a_shard(error):
            raise StatementRefused(
                "A bucket of this index is being moved, or its move broke off in the middle; run 'workbench cluster "
                "rebalance' to end it."
            ) from error
        reason = error.diag.message_primary or str(error).strip().splitlines()[0]
        raise StatementRefused(f"The database refused a statement: {reason}.") from error


def is_of_a_shard(error: psycopg.Error) -> bool:
    """Tell whether a shard is to blame: it is away, or lacks a table of an index that is looked for there."""
    if isinstance(error, psycopg.errors.UndefinedTable):
        return bool(_OTHER_PLACE.search(str(error))) and _REMOTE in (error.diag.context or "")
    if isinstance(error, psycopg.OperationalError):
        return bool(_SHARD.search(str(error))) or _REMOTE in (error.diag.context or "")
    return False


def _connection_sentence(url: str, error: psycopg.OperationalError) -> str:
    text = str(error).lower()
    if shard := _SHARD.search(text):
        return (
            f"Shard {shard[1]} of the cluster cannot be reached; start it ('workbench cluster list' says where it is)."
        )
    if is_of_a_shard(error):
        return "A shard of the cluster cannot be reached; start it ('workbench cluster list' says which one it is)."
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
