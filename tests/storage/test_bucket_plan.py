"""The fewest moves after which every shard holds as many buckets as the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from workbench.storage.bucket_plan import planned_moves


def after(held: Mapping[int, range], leaving: int | None = None) -> tuple[list[int], int]:
    """Return how many buckets each shard holds after the moves, and how many moves that takes."""
    moves = planned_moves("main", held, leaving)
    assert all(move.bucket in held[move.source] for move in moves)
    assert len({move.bucket for move in moves}) == len(moves)
    counts = Counter({shard: len(buckets) for shard, buckets in held.items()})
    counts.update(move.target for move in moves)
    counts.subtract(move.source for move in moves)
    return [counts[shard] for shard in sorted(held)], len(moves)


def test_a_newcomer_gets_its_share_from_all_others() -> None:
    assert after({1: range(16), 2: range(16, 32), 3: range(0)}) == ([11, 11, 10], 10)


def test_a_shard_that_leaves_is_emptied_into_all_others() -> None:
    assert after({1: range(11), 2: range(11, 22), 3: range(22, 32)}, leaving=1) == ([0, 16, 16], 11)


@pytest.mark.parametrize("leaving", [None, 3])
def test_nothing_moves_where_shards_differ_by_one_bucket(leaving: int | None) -> None:
    assert (
        planned_moves("main", {1: range(11), 2: range(11, 21), 3: range(0)} if leaving else {1: range(2)}, leaving)
        == []
    )
    held = {1: range(11), 2: range(11, 21)}
    assert planned_moves("main", {**held, 3: range(0)} if leaving else held, leaving) == []


def test_more_shards_than_buckets_hold_one_or_none() -> None:
    assert after({1: range(2), 2: range(0), 3: range(0)}) == ([1, 1, 0], 1)
