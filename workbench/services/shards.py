"""The shards of a cluster: add one, look how they are, and clear what a broken writing left on them."""

from __future__ import annotations

from workbench.services.corpus import Corpus
from workbench.storage.cluster import Shard
from workbench.storage.shard_state import ShardState, shard_states


class ShardService:
    """The verbs over shards. Indexes that are made after the first one was added lie on them."""

    def __init__(self, corpus: Corpus) -> None:
        self._cluster = corpus.cluster

    def list(self) -> list[ShardState]:
        """Return the shards in the order they were added; each is asked whether it answers."""
        return shard_states(self._cluster)

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
