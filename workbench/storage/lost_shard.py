"""A shard that is lost for good is let go of: its buckets begin anew, empty, on the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from workbench.errors import Conflict
from workbench.storage.bucket_move import BucketMove
from workbench.storage.cluster import Cluster, Shard
from workbench.storage.database import Connection, Row
from workbench.storage.driver_errors import translated
from workbench.storage.migrate import migrate
from workbench.storage.rebalancing import alone, moves_under_way
from workbench.storage.shard_state import answers_now
from workbench.storage.statements import statement


def let_go(cluster: Cluster, lost: Shard) -> dict[str, int]:
    """Forget a shard without asking it; return how many documents each index lacks from now on, by its name.

    Raises:
        Conflict: it answers, no other shard is left for its buckets, or buckets are being moved.
        StorageError: one of the others cannot be reached; nothing has changed then.
    """
    with alone(cluster):
        if answers_now(lost):
            raise Conflict(
                f"{lost.place} answers, so it is not lost; leave --lost out, then what it holds goes to the others."
            )
        others = [shard for shard in cluster.shards() if shard != lost]
        for shard in others:
            migrate(shard.url)
        for move in moves_under_way(cluster)[0]:
            if lost.number in (move.source, move.target):
                _forget_move(cluster, move, others)
        with cluster.database.transaction() as connection:
            connection.execute(statement("cluster_alone"))
            buckets = connection.execute(statement("cluster_lost_buckets"), {"lost": lost.number}).fetchall()
            if buckets and not others:
                raise Conflict(
                    f"{lost.place} is the only shard, so its buckets can begin anew nowhere; add another server first "
                    "('workbench cluster add URL'), or delete the indexes that lie on it."
                )
            return _dealt_out(cluster, connection, lost, others, buckets)


def _dealt_out(
    cluster: Cluster, connection: Connection, lost: Shard, others: Sequence[Shard], buckets: Sequence[Row]
) -> dict[str, int]:
    held, urls = Counter(cluster.buckets_held()), {shard.number: shard.url for shard in others}
    dealt = list[Row]()
    for row in buckets:
        number = min(urls, key=lambda number: (held[number], number))
        held[number] += 1
        dealt.append({**row, "shard": number})
    for number, url in urls.items():
        with translated(url), psycopg.connect(url) as there:
            for row in dealt:
                if row["shard"] == number:
                    there.execute(statement("cluster_hold_empty_bucket"), row)
    rows = connection.execute(statement("cluster_lost_documents"), {"lost": lost.number}).fetchall()
    for row in dealt:
        connection.execute(statement("cluster_deal_bucket"), row)
    for index in dict.fromkeys(row["index"] for row in dealt):
        connection.execute(statement("cluster_attach_anew"), {"index": index})
    connection.execute(statement("cluster_forget_left_out"))
    cluster.drop_server(connection, lost)
    return {row["index_name"]: row["documents"] for row in rows}


def _forget_move(cluster: Cluster, move: BucketMove, others: Sequence[Shard]) -> None:
    """Leave nothing of a move on the one of its shards that is still there."""
    opened = psycopg.Connection[Row].connect
    for shard in others:
        if shard.number not in (move.source, move.target):
            continue
        with translated(shard.url), opened(shard.url, autocommit=True, row_factory=dict_row) as there:
            name = sql.Identifier(move.name)
            if there.execute(statement("bucket_move_follows"), move.to_dict()).fetchone():
                there.execute(sql.SQL("ALTER SUBSCRIPTION {} DISABLE").format(name))
                there.execute(sql.SQL("ALTER SUBSCRIPTION {} SET (slot_name = NONE)").format(name))
                there.execute(sql.SQL("DROP SUBSCRIPTION {}").format(name))
            there.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(name))
            there.execute(statement("bucket_move_slot_drop"), move.to_dict())
            there.execute(statement("bucket_move_loose_drop"), move.to_dict())
    cluster.database.rows(statement("bucket_move_forget"), move.to_dict())
