"""The shards of a cluster as they are now: which answer, and how many buckets and bytes of indexes each holds."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from workbench.errors import StorageError
from workbench.sizes import size_text
from workbench.storage.cluster import Cluster, Shard
from workbench.storage.database import check_reachable, connect
from workbench.storage.driver_errors import translated
from workbench.storage.rebalancing import moves_under_way
from workbench.storage.statements import statement
from workbench.types import Value

CONNECT_TIMEOUT = 2  # seconds


@dataclass(frozen=True, slots=True)
class ShardState(Value):
    """A shard's number, address without the password, whether it answers, and how many buckets of indexes it holds.

    ``bytes`` is the size of its database, and ``indexes`` that of each index's buckets by name; None and nothing where
    it does not answer.
    """

    number: int
    place: str
    is_reachable: bool
    buckets: int
    bytes: int | None
    indexes: Mapping[str, int]

    @property
    def sentence(self) -> str:
        """The state in a sentence."""
        held = f"{self.buckets} bucket{'' if self.buckets == 1 else 's'} of indexes"
        size = "; it cannot be reached" if self.bytes is None else f"; {size_text(self.bytes)} on disk"
        return f"{self.place} holds {held}{size}"


@dataclass(frozen=True, slots=True)
class MoveState(Value):
    """A bucket of an index that is on its way from shard to shard; nobody is at a move that broke off."""

    index: str
    bucket: int
    source: int
    target: int
    is_going_on: bool

    @property
    def sentence(self) -> str:
        """The state in a sentence."""
        way = f"bucket {self.bucket} of {self.index} goes from shard {self.source} to shard {self.target}"
        return way if self.is_going_on else f"{way}; the move broke off: 'workbench cluster rebalance' goes on"


def move_states(cluster: Cluster) -> list[MoveState]:
    """Return the moves of buckets that are begun and not ended: one, or none, but for what broke off."""
    moves, going_on = moves_under_way(cluster)
    return [MoveState(move.index, move.bucket, move.source, move.target, going_on) for move in moves]


def shard_states(cluster: Cluster) -> list[ShardState]:
    """Return the shards in the order they were added, all asked at once."""
    shards, held = cluster.shards(), cluster.buckets_held()
    if not shards:
        return []
    with ThreadPoolExecutor(len(shards)) as pool:
        answers = list(pool.map(_sizes, shards))
    return [
        ShardState(shard.number, shard.place, size is not None, held.get(shard.number, 0), size, indexes)
        for shard, (size, indexes) in zip(shards, answers, strict=True)
    ]


def answers_now(shard: Shard) -> bool:
    """Return whether a shard can be reached."""
    try:
        check_reachable(shard.url, CONNECT_TIMEOUT)
    except StorageError:
        return False
    return True


def _sizes(shard: Shard) -> tuple[int | None, dict[str, int]]:
    """Return the bytes of a shard's database and of each index there; None where it does not answer."""
    try:
        with translated(shard.url), connect(shard.url, connect_timeout=CONNECT_TIMEOUT) as there:
            row = there.execute(statement("cluster_sizes_on_shard")).fetchone()
    except StorageError:
        return None, {}
    return (int(row[0]), dict(row[1])) if row else (None, {})
