"""The shards of a cluster: add one, look how they are, and clear what a broken writing left on them."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.errors import StorageError
from workbench.services.corpus import Corpus
from workbench.storage.cluster import Shard
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


class ShardService:
    """The verbs over shards. Indexes that are made after the first one was added lie on them."""

    def __init__(self, corpus: Corpus) -> None:
        self._cluster = corpus.cluster

    def list(self) -> list[ShardState]:
        """Return the shards in the order they were added; each is asked whether it answers."""
        held = self._cluster.buckets_held()
        return [
            ShardState(shard.number, shard.place, _answers(shard), held.get(shard.number, 0))
            for shard in self._cluster.shards()
        ]

    def add(self, url: str) -> Shard:
        """Make an empty database a shard.

        Raises:
            StorageError: it cannot be reached, or one side lacks an extension.
            Conflict: it is part of the cluster already, holds indexes, or reads words in another way.
        """
        return self._cluster.add(url)

    def check(self) -> int:
        """Delete passages of documents that their index does not hold; return how many. Raises StorageError."""
        return self._cluster.clear_leftovers()


def _answers(shard: Shard) -> bool:
    try:
        check_reachable(shard.url, CONNECT_TIMEOUT)
    except StorageError:
        return False
    return True
