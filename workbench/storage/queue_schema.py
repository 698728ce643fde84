"""The queue's own tables: procrastinate's schema, brought up to the installed version under the migrations' lock.

A fresh database gets procrastinate's whole schema; an older one gets, in order, the steps that its installed
version has gained since. Which steps a database has is noted in ``queue_migrations``.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import psycopg

_NOTED = "SELECT to_regclass('queue_migrations') IS NOT NULL"


def is_current(connection: psycopg.Connection) -> bool:
    """Tell whether the database has every step of the installed version."""
    if connection.execute(_NOTED).fetchone() == (False,):
        return False
    noted = {row[0] for row in connection.execute("SELECT name FROM queue_migrations").fetchall()}
    return set(_steps()) <= noted


def bring_up_to_date(connection: psycopg.Connection) -> None:
    """Apply the missing steps, in one transaction. The caller holds the migrations' lock."""
    with connection.transaction():
        fresh = connection.execute(_NOTED).fetchone() == (False,)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS queue_migrations (name text PRIMARY KEY, "
            "applied_at timestamptz NOT NULL DEFAULT now())"
        )
        noted = {row[0] for row in connection.execute("SELECT name FROM queue_migrations").fetchall()}
        missing = [name for name in _steps() if name not in noted]
        bodies = [_whole_schema()] if fresh else [_step(name) for name in missing]
        for body in bodies:
            connection.execute(body)  # pyright: ignore[reportArgumentType, reportCallIssue]
        for name in missing:
            connection.execute("INSERT INTO queue_migrations (name) VALUES (%s)", (name,))


def _steps() -> list[str]:
    return sorted(file.name for file in (_folder() / "migrations").iterdir() if file.name.endswith(".sql"))


def _step(name: str) -> str:
    return (_folder() / "migrations" / name).read_text(encoding="utf-8")


def _whole_schema() -> str:
    return (_folder() / "schema.sql").read_text(encoding="utf-8")


def _folder() -> Path:
    """Return the folder of procrastinate's statements; the package is not imported, for which every start would wait.

    Raises:
        FileNotFoundError: the package is not installed.
    """
    spec = find_spec("procrastinate")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("procrastinate is not installed")
    return Path(spec.origin).parent / "sql"
