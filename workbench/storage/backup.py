"""Everything in one file and back: a zip with the rows of every table as COPY writes them, and a manifest.

Vectors, token bits and the keyword index are rows like the others, so a restore embeds nothing. The tables and their
columns are read from the catalogue, so that a new migration needs no change here.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TypedDict

from psycopg import sql

from workbench.errors import Conflict, InvalidInput
from workbench.formatting import MB
from workbench.storage.database import Connection, Database, Row, only_row
from workbench.storage.jobs import Queue
from workbench.storage.migrate import SCHEMA
from workbench.storage.statements import statement
from workbench.types import OnProgress, Progress

FORMAT = 1
MANIFEST = "manifest.json"
_KINDS = ("data", "lexicon", "postings")  # the tables of one index
_FORGOTTEN = {"indexes": ("buckets",)}  # columns that exports from before this version may have, and nobody reads
_LEVEL = 3  # of compression: vectors written as text shrink by half, more effort gains little
_CHUNK = MB  # bytes copied at once


class TableRows(TypedDict):
    """One table of a backup, and how many rows of it there are."""

    name: str
    columns: list[str]
    rows: int


class Manifest(TypedDict):
    """The contents of a backup, as the file manifest.json in it says them."""

    format: int
    version: str
    created_at: str
    migrations: list[str]
    indexes: list[Row]
    tables: list[TableRows]


class Backup:
    """The writer and reader of one database's backups."""

    def __init__(self, database: Database, queue: Queue) -> None:
        self._database, self._queue = database, queue

    def write(self, path: Path, version: str, on_progress: OnProgress) -> Manifest:
        """Write everything into a new zip at ``path`` and return its manifest."""
        with (
            self._database.transaction() as connection,
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive,
        ):
            connection.execute(statement("backup_snapshot"))
            tables = connection.execute(statement("backup_tables")).fetchall()
            written: list[TableRows] = []
            for number, table in enumerate(tables):
                on_progress(Progress(number, len(tables), table["name"]))
                rows = _copy_out(connection, archive, table["name"], table["columns"])
                written.append({"name": table["name"], "columns": table["columns"], "rows": rows})
            manifest: Manifest = {
                "format": FORMAT,
                "version": version,
                "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "migrations": [row["name"] for row in connection.execute(statement("backup_migrations"))],
                "indexes": connection.execute(statement("backup_indexes")).fetchall(),
                "tables": written,
            }
            archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
        return manifest

    def read(self, path: Path, on_progress: OnProgress) -> Manifest:
        """Restore a backup into a database that holds nothing of a person's, in one transaction.

        The queue is no part of a backup: the jobs that waited or ran wait in the queue of this database afterwards.

        Raises:
            InvalidInput: no backup, a damaged one, or one of a newer version.
            Conflict: there are sources or projects already.
        """
        try:
            with zipfile.ZipFile(path) as archive:
                manifest = _manifest(path, archive)
                with self._database.transaction() as connection:
                    _restore(connection, archive, manifest, on_progress)
                    for job in connection.execute(statement("backup_unfinished_jobs")).fetchall():
                        self._queue.defer(connection, job["id"], job["kind"])
                return manifest
        except zipfile.BadZipFile:
            raise InvalidInput(f"{path.name} is damaged or no export of the workbench; nothing was changed.") from None


def _manifest(path: Path, archive: zipfile.ZipFile) -> Manifest:
    try:
        manifest = json.loads(archive.read(MANIFEST))
        if manifest["format"] == FORMAT and {"tables", "indexes", "migrations"} <= set(manifest):
            return manifest
    except (KeyError, ValueError, TypeError):
        pass
    raise InvalidInput(f"{path.name} is no export that this version reads; write it by 'workbench export FILE'.")


def _restore(connection: Connection, archive: zipfile.ZipFile, manifest: Manifest, on_progress: OnProgress) -> None:
    connection.execute(statement("backup_alone"))
    _check_state(connection, manifest)
    _forget_indexes(connection)
    tables = {table["name"]: table for table in manifest["tables"]}
    order = _parents_first(connection)
    for name in reversed(order):
        connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))
    done = 0
    for name in [name for name in order if name in tables]:
        on_progress(Progress(done, len(tables), name))
        _copy_in(connection, archive, tables[name], _of_before(tables[name]))
        done += 1
    for index in connection.execute(statement("backup_indexes")).fetchall():
        connection.execute(statement("index_create_tables"), index)
        # an export of an index that was on several servers has its passages alone
        has_words = f"{_KINDS[-1]}_{index['name']}" in tables
        for name in [f"{kind}_{index['name']}" for kind in (_KINDS if has_words else _KINDS[:1])]:
            on_progress(Progress(done, len(tables), name))
            _copy_in(connection, archive, tables[name])
            done += 1
        if not has_words:
            connection.execute(statement("backup_read_again"), index)


def _of_before(table: TableRows) -> tuple[str, ...]:
    """Return the columns of an export's table that this version no longer has."""
    return tuple(column for column in _FORGOTTEN.get(table["name"], ()) if column in table["columns"])


def _check_state(connection: Connection, manifest: Manifest) -> None:
    if only_row(connection.execute(statement("backup_people_have")))["n"]:
        raise Conflict(
            "This workbench holds sources or projects already; import into an empty one (another WORKBENCH_HOME), "
            "so that nothing is mixed."
        )
    applied = {row["name"] for row in connection.execute(statement("backup_migrations"))}
    newer = [name for name in manifest["migrations"] if name not in applied]
    if newer and SCHEMA in manifest["migrations"]:  # else it was written before the first release
        raise InvalidInput(f"The export comes from a newer version (it has {newer[-1]}); update this one first.")


def _forget_indexes(connection: Connection) -> None:
    for index in connection.execute(statement("backup_indexes")).fetchall():
        connection.execute(statement("index_delete"), index)
        connection.execute(statement("index_drop_tables"), index)


def _parents_first(connection: Connection) -> list[str]:
    names = [row["name"] for row in connection.execute(statement("backup_tables"))]
    graph: dict[str, set[str]] = {name: set() for name in names}
    for row in connection.execute(statement("backup_references")):
        if row["child"] in graph and row["parent"] in graph:
            graph[row["child"]].add(row["parent"])
    return list(TopologicalSorter(graph).static_order())


def _copy_out(connection: Connection, archive: zipfile.ZipFile, name: str, columns: Sequence[str]) -> int:
    copying = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(_columns(columns), sql.Identifier(name))
    with (
        connection.cursor() as cursor,
        archive.open(f"{name}.copy", "w", force_zip64=True) as entry,
    ):
        with cursor.copy(copying) as copy:
            for piece in copy:
                entry.write(piece)
        return int(cursor.rowcount)


def _copy_in(connection: Connection, archive: zipfile.ZipFile, table: TableRows, forgotten: Sequence[str] = ()) -> None:
    """Fill one table without its triggers: the backup holds the rows that they would derive.

    ``forgotten`` columns are read and left out.
    """
    name = table["name"]
    ours = {row["name"]: row for row in connection.execute(statement("backup_tables"))}[name]
    unknown = set(table["columns"]) - set(ours["columns"]) - set(forgotten)
    if unknown:
        raise InvalidInput(f"The export has a column {name}.{min(unknown)} that this version does not know.")
    place = sql.Identifier(name)
    connection.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(place))
    for column in forgotten:
        connection.execute(sql.SQL("ALTER TABLE {} ADD COLUMN {} text").format(place, sql.Identifier(column)))
    copying = sql.SQL("COPY {} ({}) FROM STDIN").format(place, _columns(table["columns"]))
    try:
        with archive.open(f"{name}.copy") as entry, connection.cursor() as cursor, cursor.copy(copying) as copy:
            while piece := entry.read(_CHUNK):
                copy.write(piece)
    except KeyError:
        raise InvalidInput(f"The export lacks the rows of {name}; it is damaged, and nothing was changed.") from None
    for column in forgotten:
        connection.execute(sql.SQL("ALTER TABLE {} DROP COLUMN {}").format(place, sql.Identifier(column)))
    connection.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(place))
    for column in ours["identities"] or ():
        last = sql.SQL("SELECT max({}) AS last FROM {}").format(sql.Identifier(column), place)
        value = only_row(connection.execute(last))["last"]
        connection.execute(statement("backup_advance"), {"table": name, "column": column, "last": value})


def _columns(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(name) for name in names)
