"""The shards of a cluster as they are now: which answer, and how many buckets of indexes each holds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from workbench.errors import StorageError
from workbench.storage.cluster import Cluster, Shard
from workbench.storage.database import check_reachable
from workbench.types import Value

CONNECT_TIMEOUT = 2.0  # seconds


@dataclass(frozen=True, slots=True)
class ShardState(Value):
    """A shard's number, address without the password, whether it answers, and how many buckets of indexes it holds."""

    number: int
    place: str
    is_reachable: bool
    buckets: int

    @property
    def sentence(self) -> str:
        """The state in a sentence."""
        held = f"{self.buckets} bucket{'' if self.buckets == 1 else 's'} of indexes"
        return f"{self.place} holds {held}" + ("" if self.is_reachable else "; it cannot be reached")


def shard_states(cluster: Cluster) -> list[ShardState]:
    """Return the shards in the order they were added, all asked at once."""
    shards, held = cluster.shards(), cluster.buckets_held()
    if not shards:
        return []
    with ThreadPoolExecutor(len(shards)) as pool:
        answers = list(pool.map(answers_now, shards))
    return [
        ShardState(shard.number, shard.place, answer, held.get(shard.number, 0))
        for shard, answer in zip(shards, answers, strict=True)
    ]


def answers_now(shard: Shard) -> bool:
    """Return whether a shard can be reached."""
    try:
        check_reachable(shard.url, CONNECT_TIMEOUT)
    except StorageError:
        return False
    return True
