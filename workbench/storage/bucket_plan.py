"""Which bucket of an index goes where, so that every shard holds as many as the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from workbench.types import Value


@dataclass(frozen=True, slots=True)
class PlannedMove(Value):
    """A bucket of an index that is to go from one shard to another, by their numbers."""

    index: str
    bucket: int
    source: int
    target: int


def planned_moves(index: str, held: Mapping[int, Collection[int]], leaving: int | None = None) -> list[PlannedMove]:
    """Return the fewest moves after which no two shards differ by more than one bucket, and ``leaving`` holds none.

    ``held`` are the buckets of the index by shard, of all shards, the empty ones too.
    """
    staying = sorted((shard for shard in held if shard != leaving), key=lambda shard: (-len(held[shard]), shard))
    if not staying:
        return []
    least, rest = divmod(sum(len(buckets) for buckets in held.values()), len(staying))
    room = {shard: least + (place < rest) - len(held[shard]) for place, shard in enumerate(staying)}
    takers = [shard for shard in sorted(staying) for _ in range(room[shard])]
    givers = [
        (shard, bucket)
        for shard in sorted(held)
        for bucket in sorted(held[shard])[max(0, len(held[shard]) + room[shard]) if shard in room else 0 :]
    ]
    return [PlannedMove(index, bucket, source, target) for (source, bucket), target in zip(givers, takers, strict=True)]
