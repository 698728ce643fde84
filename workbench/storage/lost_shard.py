"""A shard that is lost for good is let go of: its buckets begin anew, empty, on the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from workbench.errors import Conflict
from workbench.storage.bucket_move import BucketMove, BucketMover
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
        mover = BucketMover(cluster)
        for move in moves_under_way(cluster)[0]:
            if lost.number in (move.source, move.target):
                _forget_move(cluster, move, others)
            else:
                mover.clear(move)
        with cluster.database.transaction() as connection:
            connection.execute(statement("cluster_alone"))
            held = _held(others)
            for row in connection.execute(statement("bucket_move_plannable")).fetchall():
                if row["shard"] != lost.number and (row["index_name"], row["bucket"]) not in held[row["shard"]]:
                    gone = {"index": row["index_name"], "bucket": row["bucket"], "shard": lost.number}
                    connection.execute(statement("cluster_deal_bucket"), gone)  # by a move that ended there alone
            buckets = connection.execute(statement("cluster_lost_buckets"), {"lost": lost.number}).fetchall()
            if buckets and not others:
                raise Conflict(
                    f"{lost.place} is the only shard, so its buckets can begin anew nowhere; add another server first "
                    "('workbench cluster add URL'), or delete the indexes that lie on it."
                )
            dealt = _dealt(cluster, others, buckets, held)
            return _begun_anew(cluster, connection, lost, others, dealt)


def _held(shards: Sequence[Shard]) -> dict[int, set[tuple[str, int]]]:
    """Return which buckets of which indexes the shards have themselves, by their numbers."""
    held = dict[int, set[tuple[str, int]]]()
    for shard in shards:
        with translated(shard.url), psycopg.Connection[Row].connect(shard.url, row_factory=dict_row) as there:
            rows = there.execute(statement("cluster_held_on_shard")).fetchall()
        held[shard.number] = {(row["index"], bucket) for row in rows for bucket in row["buckets"]}
    return held


def _dealt(
    cluster: Cluster, others: Sequence[Shard], buckets: Sequence[Row], held: Mapping[int, set[tuple[str, int]]]
) -> list[Row]:
    """Say of each bucket which shard it begins anew on: on one that has it, else where the fewest are."""
    counts, dealt = Counter(cluster.buckets_held()), list[Row]()
    for row in buckets:
        have = [number for number, of in held.items() if (row["index"], row["bucket"]) in of]
        number = min(have or [shard.number for shard in others], key=lambda number: (counts[number], number))
        counts[number] += 1
        dealt.append({**row, "shard": number})
    return dealt


def _begun_anew(
    cluster: Cluster, connection: Connection, lost: Shard, others: Sequence[Shard], dealt: Sequence[Row]
) -> dict[str, int]:
    names = defaultdict[str, dict[str, str]](dict)
    for shard in others:
        with translated(shard.url), psycopg.Connection[Row].connect(shard.url, row_factory=dict_row) as there:
            for row in dealt:
                if row["shard"] == shard.number:
                    there.execute(statement("cluster_hold_empty_bucket"), row)
            for row in there.execute(statement("cluster_held_on_shard")).fetchall():
                names[row["index"]][str(shard.number)] = row["called"]
    rows = connection.execute(statement("cluster_lost_documents"), {"lost": lost.number}).fetchall()
    for row in dealt:
        connection.execute(statement("cluster_deal_bucket"), row)
    for index in dict.fromkeys(row["index"] for row in dealt):
        connection.execute(statement("cluster_attach_anew"), {"index": index, "names": Jsonb(names[index])})
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
