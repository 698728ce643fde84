"""Many servers: shards that hold indexes by hash of their documents, as foreign tables of this database.

The database of the settings is the coordinator: sources, documents and jobs lie there. The migration ``0041_cluster``
says how an index is divided; Postgres routes what is written and asks all shards, by declarative partitions and
postgres_fdw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from workbench.errors import Conflict, NotFound, StorageError, choices
from workbench.storage.database import SESSION_OPTIONS, Connection, Database, connect, startup_options
from workbench.storage.driver_errors import describe, translated
from workbench.storage.migrate import migrate
from workbench.storage.statements import statement
from workbench.types import Value

BUCKETS = 32  # of an index, however many shards there are: so far can a cluster grow
LONGEST_NAME = 36  # of an index that is divided: its buckets' tables have their number behind the name
OF_MAPPING = ("user", "password")  # what of an address stands in a user mapping, not with the server

# Sorted rows of several shards are merged, so each must send them in order; a cursor fetches what a leg wants at once.
# A bucket's graph keeps 100 in view (hnsw.ef_search), one for every 1,600 of its passages up to 160,000 in a bucket.
SHARD_SESSION = {**SESSION_OPTIONS, "hnsw.iterative_scan": "strict_order"}
SERVER_OPTIONS = {
    "extensions": "vector",
    "async_capable": "true",
    "parallel_commit": "true",
    "fetch_size": "100",
    "batch_size": "500",
    "connect_timeout": "3",
    "options": startup_options(SHARD_SESSION),
}


@dataclass(frozen=True, slots=True)
class Shard(Value):
    """A server that holds buckets of indexes; ``place`` is its address without the password."""

    number: int
    place: str
    url: str = field(repr=False)


class Cluster:
    """The shards of a database; without any, every index lies in the database itself."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def shards(self) -> list[Shard]:
        """Return the shards in the order they were added."""
        return [_shard(row) for row in self.database.rows(statement("cluster_shards"))]

    def add(self, url: str) -> Shard:
        """Make a database a shard: bring it up to date and let this one reach it. Indexes made from now on use it.

        Raises:
            StorageError: it cannot be reached, or one of the two lacks an extension.
            Conflict: it is a shard already, is this database, or has indexes of its own.
        """
        self._check_extension()
        if any(_same(url, shard.url) for shard in self.shards()) or _same(url, self.database.url):
            raise Conflict(f"{describe(url)} is part of this cluster already; name another database.")
        migrate(url)
        with translated(url), connect(url) as connection:
            there = connection.execute(statement("cluster_newcomer")).fetchone()
        here = self.database.row(statement("cluster_newcomer")) or {}
        if there is None or there[0]:
            raise Conflict(f"{describe(url)} has indexes of its own; name an empty database.")
        if there[1] != here["character_type"]:
            raise Conflict(
                f"{describe(url)} reads characters by {there[1]!r} and this database by {here['character_type']!r}, so "
                "words would differ; create it with createdb --template template0 --lc-ctype and the same locale."
            )
        with self.database.transaction() as connection:
            connection.execute(statement("cluster_alone"))
            number = 1 + max([shard.number for shard in self.shards()], default=0)
            for step in _definitions(f"shard_{number}", url):
                connection.execute(step)
        return Shard(number, describe(url), url)

    def shard(self, named: str) -> Shard:
        """Return a shard by its number, or by its address with or without the password. Raises NotFound."""
        shards = self.shards()
        for shard in shards:
            if named in (str(shard.number), shard.place) or _same(named, shard.url):
                return shard
        valid = choices(f"{shard.number} ({shard.place})" for shard in shards) if shards else "there are none"
        raise NotFound("shard", describe(named) if "@" in named else named, f"Shards: {valid}.")

    def forget(self, shard: Shard) -> bool:
        """Let go of a shard and leave it without tables of indexes; False where it holds buckets."""
        with self.database.transaction() as connection:
            connection.execute(statement("cluster_alone"))
            if shard.number in self.buckets_held():
                return False
            with translated(shard.url), connect(shard.url) as there:
                there.execute(statement("cluster_empty_shard"))
            connection.execute(statement("cluster_forget_left_out"))
            self.drop_server(connection, shard)
        return True

    def drop_server(self, connection: Connection, shard: Shard) -> None:
        """Forget how a shard is reached, with its foreign tables, in the caller's transaction."""
        server = sql.Identifier(f"shard_{shard.number}")
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(server))
        connection.execute(sql.SQL("DROP SERVER {} CASCADE").format(server))

    def create_tables(self, connection: Connection, index: str, dimensions: int, buckets: int) -> None:
        """Make the tables of an index on all shards and here, in the caller's transaction that has noted the index."""
        shards = self.shards()
        for place, shard in enumerate(shards):
            held = list(range(place, buckets, len(shards)))
            values = {"name": index, "dimensions": dimensions, "buckets": buckets, "held": held, "shard": shard.number}
            connection.execute(statement("cluster_place_buckets"), values)
            migrate(shard.url)
            with translated(shard.url), connect(shard.url) as there:
                there.execute(statement("cluster_create_on_shard"), values)
        connection.execute(statement("cluster_create_here"), {"name": index, "dimensions": dimensions})

    def drop_tables(self, index: str, shards: Sequence[Shard]) -> None:
        """Drop what shards hold of an index; one that is away keeps it until an index of that name is made again."""
        for shard in shards:
            try:
                with translated(shard.url), connect(shard.url) as there:
                    there.execute(statement("cluster_drop_on_shard"), {"name": index})
            except StorageError:
                continue

    def buckets_held(self) -> dict[int, int]:
        """Return how many buckets of all indexes each shard holds, by its number; none where it holds none."""
        return {row["shard"]: row["buckets"] for row in self.database.rows(statement("cluster_buckets_held"))}

    def bytes_on_disk(self, index: str) -> int:
        """Return the bytes that shards hold of an index; those that are away count nothing."""
        total = 0
        for shard in self.shards():
            try:
                with translated(shard.url), connect(shard.url, connect_timeout=2) as there:
                    row = there.execute(statement("cluster_size_on_shard"), {"name": index}).fetchone()
            except StorageError:
                continue
            total += int(row[0]) if row else 0
        return total

    def clear_leftovers(self) -> int:
        """Delete passages of documents that their index does not hold; return how many.

        Shards commit one after the other, so a server that dies in between can leave them. Raises StorageError.
        """
        deleted = 0
        for row in self.database.rows(statement("cluster_indexes")):
            with self.database.transaction() as connection:
                connection.execute(statement("index_turn"), {"name": row["name"]})
                deleted += connection.execute(
                    statement("cluster_leftovers", row["name"]), {"index": row["name"]}
                ).rowcount
        return deleted

    def _check_extension(self) -> None:
        if not self.database.rows(statement("cluster_extension")):
            raise StorageError(
                f"The Postgres at {self.database.place} has no postgres_fdw, which a coordinator needs; name one with "
                "Postgres' contrib modules in WORKBENCH_DATABASE_URL."
            )


def _definitions(name: str, url: str) -> list[sql.Composed]:
    """Return what makes a database reachable as foreign server ``name``, with a schema of the same name."""
    parts = {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
    mapping = {key: parts.pop(key) for key in OF_MAPPING if key in parts}
    server = sql.Identifier(name)
    return [
        sql.SQL("CREATE EXTENSION IF NOT EXISTS postgres_fdw").format(),
        sql.SQL("CREATE SERVER {} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({})").format(
            server, _options(parts | SERVER_OPTIONS)
        ),
        sql.SQL("CREATE USER MAPPING FOR CURRENT_USER SERVER {} OPTIONS ({})").format(server, _options(mapping)),
        sql.SQL("CREATE SCHEMA {}").format(server),
        sql.SQL(
            "CREATE FOREIGN TABLE {}.index_statistics (index_name text, language text, passages bigint, terms bigint) "
            "SERVER {} OPTIONS (schema_name 'public')"
        ).format(server, server),
    ]


def _options(values: dict[str, str]) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(key), sql.Literal(value)) for key, value in values.items()
    )


def _shard(row: dict[str, object]) -> Shard:
    pairs = [str(option).split("=", 1) for option in [*row["server"], *row["mapping"]]]  # pyright: ignore
    given = {key: value for key, value in pairs if key not in SERVER_OPTIONS}
    url = make_conninfo(**given)
    return Shard(int(str(row["number"])), describe(url), url)


def _same(url: str, other: str) -> bool:
    try:
        ours, theirs = conninfo_to_dict(url), conninfo_to_dict(other)
    except psycopg.ProgrammingError:
        return False
    return all(ours.get(key) == theirs.get(key) for key in ("host", "port", "dbname"))
