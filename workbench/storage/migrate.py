"""The schema and its numbered migrations, applied once, in order and under a lock."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files

import psycopg
from psycopg import sql

from workbench.errors import OtherVersion, StorageError
from workbench.storage import jobs
from workbench.storage.database import SETTINGS_OF_TRANSACTION, connect, describe_url, hold_lock, translate_errors

_LOCK = 7_215_004  # arbitrary number of the advisory lock for migrations
SCHEMA_NAME = "schema.sql"  # number 0, for an empty database
_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")


def list_migrations() -> list[tuple[int, str, str]]:
    """Return (number, file name, SQL) of the schema and of every migration, in order.

    Raises:
        ValueError: Two files have the same number.
    """
    folder = files("workbench.storage")
    migrations = [(0, SCHEMA_NAME, folder.joinpath(SCHEMA_NAME).read_text(encoding="utf-8"))]
    for file in folder.joinpath("migrations").iterdir():
        match = _NAME.match(file.name)
        if match:
            migrations.append((int(match.group(1)), file.name, file.read_text(encoding="utf-8")))
    migrations.sort()
    if len({number for number, _, _ in migrations}) != len(migrations):
        raise ValueError("two migrations have the same number")
    return migrations


def migrate(url: str) -> list[str]:
    """Bring the database at ``url`` up to date and return the names of the migrations that ran.

    Raises:
        StorageError: It is unreachable, is not UTF-8, has no pgvector, or an applied migration has changed since.
    """
    wanted = list_migrations()
    with translate_errors(url), connect(url) as connection:
        _check_encoding(connection, url)
        if _fetch_applied(connection) == _checksums(wanted) and jobs.is_current(connection):
            return []
        with hold_lock(connection, sql.SQL("%s::bigint"), _LOCK, waits=True, shared=False):  # one transaction if pooled
            connection.execute(SETTINGS_OF_TRANSACTION.encode())  # needed through a pooler, harmless otherwise
            ran = _apply(connection, wanted)
            jobs.migrate_queue(connection)
            return ran


def _check_encoding(connection: psycopg.Connection, url: str) -> None:
    """Reject a database whose encoding is not UTF-8, because it cannot store every character."""
    encoding = connection.info.parameter_status("server_encoding") or "UTF8"
    if encoding != "UTF8":
        raise StorageError(
            f"The database at {describe_url(url)} has the encoding {encoding} instead of UTF8; create one "
            "with 'createdb --encoding UTF8 --template template0 NAME' and use it in WORKBENCH_DATABASE_URL."
        )


def _checksums(wanted: list[tuple[int, str, str]]) -> dict[str, str]:
    return {name: hashlib.sha256(body.encode()).hexdigest() for _, name, body in wanted}


def _fetch_applied(connection: psycopg.Connection) -> dict[str, str]:
    if connection.execute("SELECT to_regclass('schema_migrations')").fetchone() == (None,):
        return {}
    return dict(connection.execute("SELECT name, checksum FROM schema_migrations").fetchall())


def _apply(connection: psycopg.Connection, wanted: list[tuple[int, str, str]]) -> list[str]:
    available = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone()
    if available is None:
        raise StorageError(
            "This Postgres has no pgvector; install the extension, or leave WORKBENCH_DATABASE_URL empty "
            "to use the embedded server."
        )
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations (number integer PRIMARY KEY, name text NOT NULL UNIQUE, "
        "checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    done = _fetch_applied(connection)
    if done and SCHEMA_NAME not in done:
        raise OtherVersion(
            "This database is from before the first release, which is not supported. Export it with "
            "the version that made it ('workbench export FILE'), and import the file into an empty database."
        )
    checksums = _checksums(wanted)
    changed = [name for name, checksum in done.items() if name in checksums and checksums[name] != checksum]
    if changed:
        raise OtherVersion(
            f"This database is from another version: {changed[0]} has changed since it was applied to this database. "
            "Run 'workbench export FILE' with that version, and 'workbench import FILE' with this one and an empty "
            "home or database."
        )
    ran = []
    for number, name, body in wanted:
        if name in done:
            continue
        with connection.transaction():
            connection.execute(body)  # pyright: ignore[reportArgumentType, reportCallIssue]
            connection.execute(
                "INSERT INTO schema_migrations (number, name, checksum) VALUES (%s, %s, %s)",
                (number, name, checksums[name]),
            )
        ran.append(name)
    return ran
