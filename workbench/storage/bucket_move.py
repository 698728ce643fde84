"""One bucket's way from shard to shard, by Postgres' own logical replication, while others search and write.

The bucket is copied and followed first. Then its writers wait, and once nothing is left to apply, one transaction on
each of the three servers changes where it lies. They commit one after the other; whoever dies in between leaves a
coordinator whose foreign tables name tables that are gone, so that nobody reads too little, and ``clear`` goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from workbench.errors import ConfigurationError, StorageError
from workbench.storage.bucket_plan import PlannedMove
from workbench.storage.cluster import Cluster, Shard
from workbench.storage.database import Connection, Row, only_row
from workbench.storage.driver_errors import translated
from workbench.storage.statements import statement
from workbench.types import Value

PAUSE = 0.05  # seconds between two looks at how far a copy is
PATIENCE = 3.0  # seconds for which writers are kept waiting for the last of what they wrote
LEAST_WAIT, LONGEST_WAIT = 1000, 8000  # milliseconds for the locks of a switch, twice as long at each try
FAILURES = 5  # of the target to copy or follow, five seconds apart, after which a move is given up

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BucketMove(Value):
    """A move that was begun; ``name`` is that of the publication, the slot and the subscription."""

    id: int
    index: str
    bucket: int
    source: int
    target: int
    name: str

    @property
    def sentence(self) -> str:
        """The move in a few words."""
        return f"bucket {self.bucket} of {self.index} from shard {self.source} to shard {self.target}"


class BucketMover:
    """Moves buckets, one after the other; whoever calls it keeps other movers away."""

    def __init__(self, cluster: Cluster) -> None:
        self._database = cluster.database
        self._shards = {shard.number: shard for shard in cluster.shards()}

    def move(self, planned: PlannedMove, say: Tell) -> bool:
        """Move a bucket; return False where its index went meanwhile. A failed move is taken back.

        Raises:
            StorageError: a server cannot be reached, or refused a step.
            ConfigurationError: a server is not set up for logical replication.
        """
        row = self._database.row(statement("bucket_move_note"), planned.to_dict())
        if row is None:
            return False
        move = BucketMove(**row)
        try:
            moved = self._copied(move, say) and self._switched(move)
        except BaseException:
            with suppress(StorageError):
                self.clear(move)
            raise
        self.clear(move)
        return moved

    def clear(self, move: BucketMove) -> None:
        """Leave nothing of a move but its outcome: the bucket lies on the target if a shard had switched, else stays.

        Raises StorageError where one of its shards cannot be reached; the move is then still to be cleared.
        """
        with self._on(move.target) as there, self._on(move.source) as here:
            if _switched_on(there, move) or _switched_on(here, move):
                self._switched(move)
            if there.execute(statement("bucket_move_follows"), move.to_dict()).fetchone():
                there.execute(sql.SQL("DROP SUBSCRIPTION {}").format(sql.Identifier(move.name)))
            here.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(move.name)))
            here.execute(statement("bucket_move_slot_drop"), move.to_dict())
            for connection in (here, there):
                connection.execute(statement("bucket_move_loose_drop"), move.to_dict())
        self._database.rows(statement("bucket_move_forget"), move.to_dict())

    def _copied(self, move: BucketMove, say: Tell) -> bool:
        """Copy the bucket and let the target follow; False where the index went."""
        values = move.to_dict() | {"source_url": self._shards[move.source].url}
        say(f"copying {move.sentence}")
        with self._on(move.target) as there, self._on(move.source) as here:
            index = self._database.row(statement("bucket_move_index"), values)
            if index is None:
                return False
            _check_log(here, self._shards[move.source])
            there.execute(statement("bucket_move_prepare"), values | index)
            here.execute(statement("bucket_move_publish"), values)
            here.execute(statement("bucket_move_slot"), values)
            there.execute(statement("bucket_move_subscribe"), values)
            while not self._has_copied(there, move):
                if self._database.row(statement("bucket_move_index"), values) is None:
                    return False
                time.sleep(PAUSE)
            say(f"building the graph of {move.sentence}")
            there.execute(statement("bucket_move_graph"), values)
            end = _end_of_log(here, move)
            while not _has_followed(here, move, end):
                self._has_copied(there, move)
                time.sleep(PAUSE)
        say(f"switching {move.sentence}")
        return True

    def _has_copied(self, there: Connection, move: BucketMove) -> bool:
        row = only_row(there.execute(statement("bucket_move_copied"), move.to_dict()))
        if row["errors"] >= FAILURES:
            raise StorageError(
                f"Shard {move.target} failed {FAILURES} times to copy {move.sentence}; the log of that server says why."
            )
        return bool(row["done"])

    def _switched(self, move: BucketMove) -> bool:
        """Let the bucket lie on the target, as soon as nobody is at its index; False where the index went."""
        patience = LEAST_WAIT
        while True:
            try:
                done = self._switched_at_once(move, patience)
            except StorageError as error:
                if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                    raise
                done = None
            if done is not None:
                return done
            patience = min(2 * patience, LONGEST_WAIT)
            time.sleep(PAUSE)

    def _switched_at_once(self, move: BucketMove, patience: int) -> bool | None:
        """Switch on all three servers, the coordinator last; None where writing did not come to an end in time."""
        values = move.to_dict()
        with self._database.transaction() as coordinator:
            coordinator.execute(statement("index_turn"), {"name": move.index})
            index = coordinator.execute(statement("bucket_move_hold"), values).fetchone()
            if index is None:
                return False
            with self._in_transaction(move.source) as here, self._in_transaction(move.target) as there:
                given = _switched_on(here, move)
                if not given and not self._has_everything(move):
                    return None
                for connection in (coordinator, here, there):
                    connection.execute(statement("bucket_move_patience"), {"patience": str(patience)})
                coordinator.execute(statement("bucket_move_keep_out", move.index))
                if not given:
                    if not self._has_everything(move):  # of a writer that takes no turns
                        return None
                    counts = only_row(here.execute(statement("bucket_move_statistics"), values))
                    there.execute(statement("bucket_move_take"), values | index | counts)
                    here.execute(statement("bucket_move_give"), values)
                coordinator.execute(statement("bucket_move_done"), values)
        return True

    def _has_everything(self, move: BucketMove) -> bool:
        """Wait a while until the target has all that was written on the source."""
        with self._on(move.source) as here:
            end, until = _end_of_log(here, move), time.monotonic() + PATIENCE
            while not _has_followed(here, move, end):
                if time.monotonic() > until:
                    return False
                time.sleep(PAUSE)
        return True

    @contextmanager
    def _on(self, number: int, *, autocommit: bool = True) -> Generator[Connection]:
        """Yield a connection to a shard, on which each statement commits by itself unless told otherwise."""
        url = self._shards[number].url
        opened = psycopg.Connection[Row].connect
        # psycopg leaves a connection open whose last commit fails
        with (
            translated(url),
            closing(opened(url, autocommit=autocommit, row_factory=dict_row)) as connection,
            connection,
        ):
            yield connection

    def _in_transaction(self, number: int) -> AbstractContextManager[Connection]:
        return self._on(number, autocommit=False)


def _check_log(connection: Connection, shard: Shard) -> None:
    row = only_row(connection.execute(statement("bucket_move_log_level")))
    if row["wal_level"] != "logical":
        raise ConfigurationError(
            f"Shard {shard.number} ({shard.place}) writes its log for wal_level = {row['wal_level']}; set wal_level = "
            "logical in its postgresql.conf and restart it, then buckets can leave it."
        )
    if row["slots_free"] < 3:
        raise ConfigurationError(
            f"Shard {shard.number} ({shard.place}) lets no more servers follow it; raise max_replication_slots and "
            "max_wal_senders by four or more in its postgresql.conf and restart it."
        )


def _switched_on(connection: Connection, move: BucketMove) -> bool:
    return bool(only_row(connection.execute(statement("bucket_move_switched"), move.to_dict()))["switched"])


def _end_of_log(connection: Connection, move: BucketMove) -> str:
    connection.execute(statement("bucket_move_mark"), move.to_dict())
    return str(only_row(connection.execute(statement("bucket_move_log_end")))["log_end"])


def _has_followed(connection: Connection, move: BucketMove, end: str) -> bool:
    row = connection.execute(statement("bucket_move_followed"), move.to_dict() | {"log_end": end}).fetchone()
    return bool(row and row["followed"])
