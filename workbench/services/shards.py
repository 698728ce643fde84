"""The shards of a cluster: add and remove servers, spread the buckets of indexes over them, and look how they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.errors import Cancelled, Conflict
from workbench.services.corpus import Corpus
from workbench.storage.cluster import Shard
from workbench.storage.lost_shard import let_go
from workbench.storage.rebalancing import clear_broken_moves, rebalance
from workbench.storage.shard_state import MoveState, ShardState, move_states, shard_states
from workbench.types import OnProgress, Progress, Value


@dataclass(frozen=True, slots=True)
class RemovedShard(Value):
    """A server that is no shard any more; ``lacking`` counts the documents that indexes lack by it, by their names."""

    number: int
    place: str
    lacking: Mapping[str, int]

    @property
    def sentence(self) -> str:
        """The words for people: what has become of the shard, and what is to be done."""
        if not self.lacking:
            return f"{self.place} is no shard any more."
        counts = [f"{count:,} document{'s' * (count != 1)} of {name}" for name, count in self.lacking.items()]
        builds = [f"'workbench indexes build {name}'" for name in self.lacking]
        return (
            f"{self.place} is no shard any more. The passages of {' and '.join(counts)} lay there: run "
            f"{' and '.join(builds)} to embed these again, and no others."
        )


class ShardService:
    """The verbs over shards. Indexes that are made after the first one was added lie on them."""

    def __init__(self, corpus: Corpus) -> None:
        self._cluster = corpus.cluster

    def list(self) -> list[ShardState]:
        """Return the shards in the order they were added; each is asked whether it answers."""
        return shard_states(self._cluster)

    def moves(self) -> list[MoveState]:
        """Return the buckets that are on their way from shard to shard, and the moves that broke off."""
        return move_states(self._cluster)

    def add(self, url: str) -> Shard:
        """Make an empty database a shard.

        Raises:
            StorageError: it cannot be reached, or one side lacks an extension.
            Conflict: it is part of the cluster already, holds indexes, or reads words in another way.
        """
        return self._cluster.add(url)

    def rebalance(self, on_progress: OnProgress | None = None) -> int:
        """Spread the buckets of every index evenly over all shards, while others search and write; return how many.

        Raises:
            Conflict: there is no shard, or buckets are being moved already.
            StorageError: a shard cannot be reached, or cannot be reached by another one.
            ConfigurationError: a shard is not set up for logical replication.
            Cancelled: it was interrupted; what was moved stays, and another call goes on.
        """
        if not self._cluster.shards():
            raise Conflict("There is no shard to spread buckets over; add one: workbench cluster add URL.")
        return self._moved(on_progress)

    def remove(self, shard: str, on_progress: OnProgress | None = None, *, lost: bool = False) -> RemovedShard:
        """Move what a shard holds to the others, and let go of it; ``shard`` is its number or its address.

        With ``lost`` it is not asked: it is gone for good, and indexes lack the documents whose passages lay there
        until they are built again.

        Raises:
            NotFound: there is no such shard.
            Conflict: it is the last one and holds something, buckets are being moved already, or it is to be lost
                and answers.
            StorageError, ConfigurationError, Cancelled: as ``rebalance``.
        """
        leaving = self._cluster.shard(shard)
        if lost:
            return RemovedShard(leaving.number, leaving.place, let_go(self._cluster, leaving))
        if len(self._cluster.shards()) == 1 and self._cluster.buckets_held():
            raise Conflict(
                f"{leaving.place} is the last shard, so what it holds cannot go anywhere; add another server first "
                "('workbench cluster add URL'), or delete the indexes that lie on it."
            )
        self._moved(on_progress, leaving)
        while not self._cluster.forget(leaving):  # an index was made meanwhile
            self._moved(on_progress, leaving)
        return RemovedShard(leaving.number, leaving.place, {})

    def check(self) -> tuple[int, int]:
        """Clear what broke off: passages of documents that their index does not hold, and moves of buckets.

        Returns how many of each. Raises StorageError.
        """
        moves = clear_broken_moves(self._cluster)
        return self._cluster.clear_leftovers(), moves

    def _moved(self, on_progress: OnProgress | None, leaving: Shard | None = None) -> int:
        last = Progress(0, 0)

        def on_move(moved: int, total: int, text: str) -> None:
            nonlocal last
            last = Progress(moved, total, text)
            if on_progress is not None:
                on_progress(last)

        try:
            return rebalance(self._cluster, on_move, leaving)
        except KeyboardInterrupt:
            raise Cancelled(
                f"Stopped after {last.done} bucket{'' if last.done == 1 else 's'}; what was moved stays, the rest lies "
                "where it was. Run it again to go on."
            ) from None
