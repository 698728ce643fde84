"""Buckets spread over the shards anew: a newcomer gets its share, and a server that leaves is emptied."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from psycopg import sql

from workbench.errors import Conflict
from workbench.storage.bucket_move import BucketMove, BucketMover
from workbench.storage.bucket_plan import PlannedMove, planned_moves
from workbench.storage.cluster import Cluster, Shard
from workbench.storage.database import connect
from workbench.storage.driver_errors import translated
from workbench.storage.migrate import migrate
from workbench.storage.pooler import lock_held
from workbench.storage.statements import statement

_LOCK = 7_215_007  # any constant; it names "movers of buckets" among the coordinator's advisory locks

OnMove = Callable[[int, int, str], None]  # buckets that are moved, how many it will be, and what goes on


def moves_under_way(cluster: Cluster) -> tuple[list[BucketMove], bool]:
    """Return the moves that are begun and not ended, and whether somebody is at it; otherwise they broke off."""
    moves = [BucketMove(**row) for row in cluster.database.rows(statement("bucket_moves"))]
    row = cluster.database.row(statement("bucket_move_is_going_on")) or {}
    return moves, bool(row["going_on"])


def rebalance(cluster: Cluster, on_move: OnMove, leaving: Shard | None = None) -> int:
    """Move buckets until every shard holds as many of each index as the others; ``leaving`` none. Return how many.

    It can be stopped at any time: what was moved stays, and another call goes on.

    Raises:
        Conflict: buckets are being moved already.
        StorageError, ConfigurationError: what ``BucketMover.move`` raises.
    """
    with alone(cluster):
        for shard in cluster.shards():
            migrate(shard.url)
        _clear(cluster)
        mover, moved = BucketMover(cluster), 0
        while moves := _wanted(cluster, leaving):  # anew after each: indexes come and go

            def say(text: str, total: int = moved + len(moves), moved: int = moved) -> None:
                on_move(moved, total, text)

            moved += mover.move(moves[0], say)
        return moved


def clear_broken_moves(cluster: Cluster) -> int:
    """Clear what moves left that broke off, unless somebody moves buckets now; return how many. Raises StorageError."""
    try:
        with alone(cluster):
            return _clear(cluster)
    except Conflict:
        return 0


def _clear(cluster: Cluster) -> int:
    mover, (moves, _) = BucketMover(cluster), moves_under_way(cluster)
    for move in moves:
        mover.clear(move)
    return len(moves)


def _wanted(cluster: Cluster, leaving: Shard | None) -> list[PlannedMove]:
    numbers = [shard.number for shard in cluster.shards()]
    held = dict[str, dict[int, list[int]]]()
    for row in cluster.database.rows(statement("bucket_move_plannable")):
        of_index = held.setdefault(row["index_name"], {number: [] for number in numbers})
        of_index[row["shard"]].append(row["bucket"])
    number = leaving.number if leaving else None
    return [move for index, buckets in held.items() for move in planned_moves(index, buckets, number)]


@contextmanager
def alone(cluster: Cluster) -> Generator[None]:
    """Keep other movers of buckets away. Raises Conflict where there is one."""
    url = cluster.database.url
    with (
        translated(url),
        connect(url) as connection,
        lock_held(connection, sql.SQL("%s::bigint"), _LOCK, waits=False) as held,
    ):
        if not held:
            raise Conflict("Buckets are being moved already; 'workbench status' says which, wait until that has ended.")
        yield
