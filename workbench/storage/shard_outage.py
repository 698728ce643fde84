"""Searches while a shard is away: over what the others hold, with a note of what could not be seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from workbench.errors import StorageError
from workbench.storage.cluster import Cluster, Shard
from workbench.storage.database import Connection
from workbench.storage.shard_state import answers_now
from workbench.storage.statements import statement

REST = 5.0  # seconds after which a shard that was away is asked again


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
        """Let a connection find the tables of the shards that can be reached."""
        if self._away and time.monotonic() - self._looked_at > REST:
            self._look([shard for shard in self._cluster.shards() if shard in self._away])
        if not self._away:
            yield
            return
        values = {"away": sorted(shard.number for shard in self._away)}
        place = (connection.execute(statement("cluster_leave_out"), values).fetchone() or {})["place"]
        connection.execute(statement("cluster_search_path"), {"path": f"{place}, public"})
        try:
            yield
        finally:
            if not connection.closed:
                connection.execute(statement("cluster_search_path"), {"path": "public"})

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
