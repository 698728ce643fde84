"""Export and import of a whole database: a zip with the rows of every table in COPY format, and a manifest.

Vectors, token bits and the keyword index are included, so an import embeds nothing. Tables and columns are read from
the catalogue, so a new migration requires no change here.
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
from workbench.storage.database import Connection, Database, Row, fetch_one, statement
from workbench.storage.jobs import Queue
from workbench.storage.migrate import SCHEMA_NAME
from workbench.types import OnProgress, Progress

BACKUP_FORMAT = 1
MANIFEST = "manifest.json"
_TABLE_KINDS = ("data", "lexicon", "postings")  # the tables of one index
# columns of older exports that are ignored
_DROPPED_COLUMNS = {"indexes": ("buckets",), "document_mentions": ("reading",)}
_COMPRESSION_LEVEL = 3  # compression level: vectors as text shrink by half, higher levels gain little
_CHUNK_BYTES = MB  # bytes per copy


class TableRows(TypedDict):
    name: str
    columns: list[str]
    rows: int


class Manifest(TypedDict):
    """The contents of manifest.json in a backup."""

    format: int
    version: str
    created_at: str
    migrations: list[str]
    indexes: list[Row]
    tables: list[TableRows]


def write_backup(database: Database, path: Path, version: str, on_progress: OnProgress) -> Manifest:
    """Write everything to a new zip at ``path`` and return its manifest."""
    with (
        database.transaction() as connection,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION_LEVEL) as archive,
    ):
        connection.execute(statement("backup_snapshot"))
        tables = connection.execute(statement("backup_tables")).fetchall()
        written: list[TableRows] = []
        for number, table in enumerate(tables):
            on_progress(Progress(number, len(tables), table["name"]))
            rows = _copy_out(connection, archive, table["name"], table["columns"])
            written.append({"name": table["name"], "columns": table["columns"], "rows": rows})
        manifest: Manifest = {
            "format": BACKUP_FORMAT,
            "version": version,
            "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "migrations": [row["name"] for row in connection.execute(statement("backup_migrations"))],
            "indexes": connection.execute(statement("backup_indexes")).fetchall(),
            "tables": written,
        }
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
    return manifest


def read_backup(database: Database, queue: Queue, path: Path, on_progress: OnProgress) -> Manifest:
    """Restore a backup into an empty database, in one transaction.

    The queue is not part of a backup; unfinished jobs are requeued in this database.

    Raises:
        InvalidInput: The file is not a backup, is damaged, or comes from a newer version.
        Conflict: The database has sources or projects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _read_manifest(path, archive)
            with database.transaction() as connection:
                _restore(connection, archive, manifest, on_progress)
                for job in connection.execute(statement("backup_unfinished_jobs")).fetchall():
                    queue.defer(connection, job["id"], job["kind"])
            return manifest
    except zipfile.BadZipFile:
        raise InvalidInput(f"{path.name} is damaged or not an export; nothing was changed.") from None


def _read_manifest(path: Path, archive: zipfile.ZipFile) -> Manifest:
    try:
        manifest = json.loads(archive.read(MANIFEST))
        if manifest["format"] == BACKUP_FORMAT and {"tables", "indexes", "migrations"} <= set(manifest):
            return manifest
    except (KeyError, ValueError, TypeError):
        pass
    raise InvalidInput(f"{path.name} is not an export of a supported format; create one with 'workbench export FILE'.")


def _restore(connection: Connection, archive: zipfile.ZipFile, manifest: Manifest, on_progress: OnProgress) -> None:
    connection.execute(statement("backup_alone"))
    _check_state(connection, manifest)
    for index in connection.execute(statement("backup_indexes")).fetchall():
        connection.execute(statement("index_delete"), index)
        connection.execute(statement("index_drop_tables"), index)
    tables = {table["name"]: table for table in manifest["tables"]}
    order = _sort_parents_first(connection)
    for name in reversed(order):
        connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))
    done = 0
    for name in [name for name in order if name in tables]:
        on_progress(Progress(done, len(tables), name))
        dropped = [column for column in _DROPPED_COLUMNS.get(name, ()) if column in tables[name]["columns"]]
        _restore_table(connection, archive, tables[name], dropped)
        done += 1
    for index in connection.execute(statement("backup_indexes")).fetchall():
        connection.execute(statement("index_create_tables"), index)
        # an export of an index on several servers contains only its passages
        has_words = f"{_TABLE_KINDS[-1]}_{index['name']}" in tables
        for name in [f"{kind}_{index['name']}" for kind in (_TABLE_KINDS if has_words else _TABLE_KINDS[:1])]:
            on_progress(Progress(done, len(tables), name))
            _restore_table(connection, archive, tables[name])
            done += 1
        if not has_words:
            connection.execute(statement("backup_read_again"), index)


def _check_state(connection: Connection, manifest: Manifest) -> None:
    if fetch_one(connection.execute(statement("backup_people_have")))["n"]:
        raise Conflict(
            "This workbench already has sources or projects; import into an empty one (set another WORKBENCH_HOME), "
            "so that nothing is mixed."
        )
    applied = {row["name"] for row in connection.execute(statement("backup_migrations"))}
    newer = [name for name in manifest["migrations"] if name not in applied]
    if newer and SCHEMA_NAME in manifest["migrations"]:  # otherwise it was written before the first release
        raise InvalidInput(f"The export comes from a newer version (it has {newer[-1]}); update this one first.")


def _sort_parents_first(connection: Connection) -> list[str]:
    names = [row["name"] for row in connection.execute(statement("backup_tables"))]
    graph: dict[str, set[str]] = {name: set() for name in names}
    for row in connection.execute(statement("backup_references")):
        if row["child"] in graph and row["parent"] in graph:
            graph[row["child"]].add(row["parent"])
    return list(TopologicalSorter(graph).static_order())


def _copy_out(connection: Connection, archive: zipfile.ZipFile, name: str, columns: Sequence[str]) -> int:
    copying = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(_columns(columns), sql.Identifier(name))
    with connection.cursor() as cursor, archive.open(f"{name}.copy", "w", force_zip64=True) as entry:
        with cursor.copy(copying) as copy:
            for piece in copy:
                entry.write(piece)
        return int(cursor.rowcount)


def _restore_table(
    connection: Connection, archive: zipfile.ZipFile, table: TableRows, forgotten: Sequence[str] = ()
) -> None:
    """Fill one table without its triggers, since the backup contains the rows that they would derive."""
    name = table["name"]
    ours = {row["name"]: row for row in connection.execute(statement("backup_tables"))}[name]
    unknown = set(table["columns"]) - set(ours["columns"]) - set(forgotten)
    if unknown:
        raise InvalidInput(f"The export has an unknown column {name}.{min(unknown)}; update this version first.")
    place = sql.Identifier(name)
    connection.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(place))
    for column in forgotten:
        connection.execute(sql.SQL("ALTER TABLE {} ADD COLUMN {} text").format(place, sql.Identifier(column)))
    copying = sql.SQL("COPY {} ({}) FROM STDIN").format(place, _columns(table["columns"]))
    try:
        with archive.open(f"{name}.copy") as entry, connection.cursor() as cursor, cursor.copy(copying) as copy:
            while piece := entry.read(_CHUNK_BYTES):
                copy.write(piece)
    except KeyError:
        raise InvalidInput(f"The export is damaged: {name} has no rows. Nothing was changed.") from None
    for column in forgotten:
        connection.execute(sql.SQL("ALTER TABLE {} DROP COLUMN {}").format(place, sql.Identifier(column)))
    connection.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(place))
    for column in ours["identities"] or ():
        last = sql.SQL("SELECT max({}) AS last FROM {}").format(sql.Identifier(column), place)
        value = fetch_one(connection.execute(last))["last"]
        connection.execute(statement("backup_advance"), {"table": name, "column": column, "last": value})


def _columns(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(name) for name in names)
