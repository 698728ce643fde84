"""Searches while a shard is away: over what the others hold, with a note of what could not be seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg.pq import TransactionStatus

from workbench.errors import StorageError
from workbench.storage.cluster import Cluster, Shard
from workbench.storage.database import Connection, connect
from workbench.storage.driver_errors import translated
from workbench.storage.shard_state import answers_now
from workbench.storage.statements import statement

REST = 5.0  # seconds after which a shard that was away is asked again
PATIENCE = 2.0  # seconds for a replica to hear of what the coordinator has made
PAUSE = 0.02  # seconds between two looks


class NotHeardOf(psycopg.OperationalError):
    """A replica lags so far behind that the primary is to be read."""


class ShardOutage:
    """Which shards cannot be reached. Asked after a failure, and every few seconds while one is away."""

    def __init__(self, cluster: Cluster, *, strict: bool = False) -> None:
        """Take ``strict``: a search then fails where a shard is away."""
        self._cluster, self._strict = cluster, strict
        self._away: tuple[Shard, ...] = ()
        self._looked_at = 0.0
        self._shares: dict[str, float] = {}
        self._lock = threading.Lock()

    @property
    def away(self) -> tuple[Shard, ...]:
        """The shards that could not be reached when they were last asked."""
        return self._away

    def noticed(self) -> bool:
        """Ask every shard after a failure; return whether there are any, so that another search may go better.

        Raises StorageError in strict mode where one is away.
        """
        shards = self._cluster.shards()
        self._look(shards)
        return bool(shards)

    def note(self, index: str) -> str | None:
        """Say which shards a search of an index could not see, and what share of its passages they hold."""
        if not self._away:
            return None
        if index not in self._shares:
            values = {"index": index, "away": [shard.number for shard in self._away]}
            row = self._cluster.database.row(statement("cluster_unseen"), values) or {}
            self._shares[index] = float(row["share"])
        return (
            f"shards: {_named(self._away)} cannot be reached; {self._shares[index]:.0%} of the passages were not seen"
        )

    @contextmanager
    def leaving_out(self, connection: Connection) -> Generator[None]:
        """Let a connection, of the coordinator or of a replica, find the tables of the shards that can be reached."""
        if self._away and time.monotonic() - self._looked_at > REST:
            self._look([shard for shard in self._cluster.shards() if shard in self._away])
        if not self._away:
            yield
            return
        # through a pooler all of it is one transaction, and nothing may be left behind that
        within = connection.info.transaction_status != TransactionStatus.IDLE
        self._see(connection, {"away": sorted(shard.number for shard in self._away), "within": within})
        try:
            yield
        finally:
            if not within and not connection.closed:
                connection.execute(statement("cluster_see_everything"))

    def _see(self, connection: Connection, values: dict[str, object]) -> None:
        """Set a search path by a schema that the coordinator has, or makes now, and that its replica hears of."""
        until: float | None = None
        while connection.execute(statement("cluster_see_left_out"), values).fetchone() is None:
            if until is None:
                url = self._cluster.database.url
                with translated(url), connect(url) as coordinator:
                    coordinator.execute(statement("cluster_leave_out"), values)
                until = time.monotonic() + PATIENCE
            elif time.monotonic() > until:
                raise NotHeardOf("it has not heard yet of the tables without the shards that are away")
            else:
                time.sleep(PAUSE)

    def _look(self, shards: tuple[Shard, ...] | list[Shard]) -> None:
        with self._lock:
            away = tuple(shard for shard in shards if not answers_now(shard))
            self._looked_at = time.monotonic()
            if away != self._away:
                self._away, self._shares = away, {}
        if away and self._strict:
            raise StorageError(f"{_named(away)} cannot be reached; start it, or set WORKBENCH_STRICT_SHARDS=false.")


def _named(shards: tuple[Shard, ...]) -> str:
    return " and ".join(f"shard {shard.number} ({shard.place})" for shard in shards)
